// Package embed is what goes into other people's pages: the script that counts, the line that loads
// it, and badges.
package embed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed" // for the file below
	"encoding/base64"
	"encoding/hex"
	"html"
)

//go:embed count.js
var source []byte

// ScriptPath is where the script is served under its plain name.
const ScriptPath = "/count.js"

// Script is what pages load: the source without comments and indentation.
var Script = func() (plain []byte) {
	for line := range bytes.Lines(source) {
		code, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte("//")) // which is in no text of it
		if code = bytes.TrimSpace(code); len(code) > 0 {
			plain = append(append(plain, code...), '\n')
		}
	}
	return plain
}()

// Gzipped is the script, smaller.
var Gzipped = func() []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // which is a level
	_, _ = w.Write(Script)                                  // a bytes.Buffer refuses nothing
	_ = w.Close()
	return out.Bytes()
}()

// Version is in the name of this version.
var Version = func() string {
	sum := sha256.Sum256(Script)
	return hex.EncodeToString(sum[:6])
}()

// Integrity lets a browser run this version and nothing else.
var Integrity = func() string {
	sum := sha512.Sum384(Script)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}()

// Line is the line for pages of an app. origin is where people reach the service, as
// https://count.example.
func Line(origin, app string) string {
	return line(origin+ScriptPath, "", app)
}

// PinnedLine is the line for pages that run this version of the script and no other.
func PinnedLine(origin, app string) string {
	return line(origin+"/count."+Version+".js", ` integrity="`+Integrity+`" crossorigin="anonymous"`, app)
}

func line(script, more, app string) string {
	return `<script src="` + html.EscapeString(script) + `"` + more + ` data-app="` + html.EscapeString(app) + `" defer></script>`
}

// Sentence is one for a page to begin with.
const Sentence = `<p data-footfall-sentence hidden>You are visitor <b data-footfall="page.rank"></b> of this page.</p>`
