package imports

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"footfall/intake/logs"
	"footfall/visit"
)

// Rules say what of a log counts.
type Rules struct {
	Format   logs.Format // "": any
	Site     string      // of lines that name no host
	From, To int32       // days; 0: any
	Methods  []string
	Statuses []int
	Hosts    []string // "": all that the app counts
	Static   bool     // files that belong to pages count, too
	Bots     bool     // and so do crawlers
}

// Reason is why a line that could be read is left out.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	OtherFrom   Reason = "before --from"
	OtherTo     Reason = "after --to"
	OtherMethod Reason = "method"
	OtherStatus Reason = "status"
	StaticFile  Reason = "static file"
	OtherHost   Reason = "host"
	Header      Reason = "header"
	TooOld      Reason = "of days that the app no longer keeps"
	BeforeAfter Reason = "before --after"
	Ignored     Reason = "ignored visitor"
	Bot         Reason = "bot"
)

// Reasons are all of them.
var Reasons = []Reason{OtherFrom, OtherTo, OtherMethod, OtherStatus, StaticFile, OtherHost, Ignored, Bot, Header, TooOld, BeforeAfter}

// What counts unless something else is asked for. 304 is what a browser gets that has the page.
var (
	DefaultMethods  = []string{"GET"}
	DefaultStatuses = []int{200, 304}
)

// leavesOut returns why a line does not count, as far as the line itself tells; "": it does.
func (r *Rules) leavesOut(l *logs.Line, zone *time.Location) Reason {
	if r.From != 0 || r.To != 0 {
		switch day := visit.DayOf(l.Time, zone); {
		case day < r.From:
			return OtherFrom
		case r.To != 0 && day > r.To:
			return OtherTo
		}
	}
	switch {
	case !slices.Contains(r.Methods, string(l.Method)):
		return OtherMethod
	case !slices.Contains(r.Statuses, l.Status):
		return OtherStatus
	case !r.Static && isStatic(l.Target):
		return StaticFile
	case len(r.Hosts) > 0 && !r.hasHost(l):
		return OtherHost
	}
	return ""
}

func (r *Rules) hasHost(l *logs.Line) bool {
	host := l.Host
	if len(host) == 0 {
		host = []byte(r.Site)
	}
	return slices.ContainsFunc(r.Hosts, func(one string) bool { return len(one) == len(host) && strings.EqualFold(one, string(host)) })
}

// static are the endings of files that belong to pages, or are read by programs.
var static = map[string]bool{}

func init() {
	for _, ending := range strings.Fields(`
		css js mjs map wasm json xml rss atom txt webmanifest
		png jpg jpeg gif svg webp avif ico bmp tif tiff apng
		woff woff2 ttf otf eot
		mp3 mp4 m4a m4v webm ogg ogv oga wav flac avi mov m3u8 ts vtt`) {
		static[ending] = true
	}
}

// isStatic reports whether a request is for such a file, by the ending of its path.
func isStatic(target []byte) bool {
	if end := bytes.IndexAny(target, "?#;"); end >= 0 {
		target = target[:end]
	}
	name := target[bytes.LastIndexByte(target, '/')+1:]
	dot := bytes.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot-1 > 11 {
		return false
	}
	var lower [12]byte
	ending := append(lower[:0], name[dot+1:]...)
	for i, c := range ending {
		if 'A' <= c && c <= 'Z' {
			ending[i] = c + 'a' - 'A'
		}
	}
	return static[string(ending)]
}

// uriOf is the URI of a line; "": what it asks for is no page. The scheme is not part of what is
// counted, but where a host has the port of https, that port belongs to it.
func (r *Rules) uriOf(l *logs.Line) (uri string, problem string) {
	if l.HasWholeURI() {
		return string(l.Target), ""
	}
	if len(l.Target) == 0 || l.Target[0] != '/' {
		return "", "what it asks for is not a path"
	}
	host, scheme := l.Host, "http://"
	if bytes.HasSuffix(host, []byte(":443")) {
		scheme = "https://"
	}
	var whole strings.Builder
	whole.Grow(len(scheme) + max(len(host), len(r.Site)) + len(l.Target))
	whole.WriteString(scheme)
	if len(host) > 0 {
		whole.Write(host)
	} else {
		whole.WriteString(r.Site)
	}
	if whole.Len() == len(scheme) {
		return "", "it names no host: give the site with --site"
	}
	if bytes.ContainsAny(host, "/?#@\\") {
		return "", "its host cannot be read"
	}
	whole.Write(l.Target)
	return whole.String(), ""
}
