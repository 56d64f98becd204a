// Package embed is what goes into other people's pages: the script that counts, the line that loads
// it, the one for pages made for busuanzi, and badges.
package embed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed" // for the files below
	"encoding/base64"
	"encoding/hex"
	"html"
)

var (
	//go:embed count.js
	countSource []byte
	//go:embed busuanzi.js
	busuanziSource []byte
)

// Where the scripts are served: the first under its plain name, the second where themes look for
// busuanzi's own.
const (
	ScriptPath   = "/count.js"
	BusuanziPath = "/busuanzi/2.3/busuanzi.pure.mini.js"
)

// Script is one that pages load.
type Script struct {
	Plain, Gzipped []byte
}

// The scripts: Count is for pages that have our line, Busuanzi for those that have busuanzi's.
var (
	Count    = newScript(countSource)
	Busuanzi = newScript(busuanziSource)
)

// newScript leaves out comments and indentation.
func newScript(source []byte) (s Script) {
	for line := range bytes.Lines(source) {
		code, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte("//")) // which is in no text of it
		if code = bytes.TrimSpace(code); len(code) > 0 {
			s.Plain = append(append(s.Plain, code...), '\n')
		}
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // which is a level
	_, _ = w.Write(s.Plain)                                 // a bytes.Buffer refuses nothing
	_ = w.Close()
	s.Gzipped = out.Bytes()
	return s
}

// Version is in the name of this version of Count.
var Version = func() string {
	sum := sha256.Sum256(Count.Plain)
	return hex.EncodeToString(sum[:6])
}()

// Integrity lets a browser run this version and nothing else.
var Integrity = func() string {
	sum := sha512.Sum384(Count.Plain)
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
