// Package embed contains the parts that other sites put into their pages: the counting script and its script tag,
// badges, and a script for pages that were made for busuanzi (another counter).
package embed

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed" // for go:embed
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

// Paths of the scripts. BusuanziPath is also the path of busuanzi's own script, so that pages made for busuanzi only
// need another host.
const (
	ScriptPath   = "/count.js"
	BusuanziPath = "/busuanzi/2.3/busuanzi.pure.mini.js"
)

// Script is a script that pages load.
type Script struct {
	Plain, Gzipped []byte
}

// Count is the counting script. Busuanzi is the script for pages that were made for busuanzi.
var (
	Count    = newScript(countSource)
	Busuanzi = newScript(busuanziSource)
)

// newScript removes comments and indentation from a script, and compresses the result.
func newScript(source []byte) (s Script) {
	for line := range bytes.Lines(source) {
		code, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte("//")) // the scripts have no // in strings
		if code = bytes.TrimSpace(code); len(code) > 0 {
			s.Plain = append(append(s.Plain, code...), '\n')
		}
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // no error: the level is valid
	_, _ = w.Write(s.Plain)                                 // a bytes.Buffer returns no errors
	_ = w.Close()
	s.Gzipped = out.Bytes()
	return s
}

// Version identifies the contents of Count. PinnedLine puts it into the path of the script.
var Version = func() string {
	sum := sha256.Sum256(Count.Plain)
	return hex.EncodeToString(sum[:6])
}()

// Integrity is the hash of Count for the HTML attribute integrity. With this attribute, a browser runs only this version of the
// script.
var Integrity = func() string {
	sum := sha512.Sum384(Count.Plain)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}()

// Line returns the script tag for the pages of an app. origin is the service's public origin, such as https://count.example.
func Line(origin, app string) string {
	return line(origin+ScriptPath, "", app)
}

// PinnedLine returns a script tag that loads only this version of the script.
func PinnedLine(origin, app string) string {
	return line(origin+"/count."+Version+".js", ` integrity="`+Integrity+`" crossorigin="anonymous"`, app)
}

func line(script, more, app string) string {
	return `<script src="` + html.EscapeString(script) + `"` + more + ` data-app="` + html.EscapeString(app) + `" defer></script>`
}
