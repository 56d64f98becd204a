package imports

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"footfall/intake/logs"
	"footfall/visit"
)

// Rules specify which lines of a log count.
type Rules struct {
	Format   logs.Format // "": any
	Site     string      // for lines that name no host
	From, To int32       // days; 0: no limit
	Methods  []string
	Statuses []int
	Hosts    []string // empty: all hosts that the app counts
	Static   bool     // count static files
	Bots     bool     // count bots
}

// Reason is the reason why a line does not count.
type Reason string

// The reasons.
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

// Reasons lists all reasons.
var Reasons = []Reason{OtherFrom, OtherTo, OtherMethod, OtherStatus, StaticFile, OtherHost, Ignored, Bot, Header, TooOld, BeforeAfter}

// The default rules. A server responds with 304 if the browser has the page in its cache.
var (
	DefaultMethods  = []string{"GET"}
	DefaultStatuses = []int{200, 304}
)

// leavesOut returns why the rules leave out a line, or "" if they do not.
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

// static contains the endings of files that are parts of pages, or that programs read.
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

// isStatic reports whether the path of a request ends like a static file.
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

// uriOf returns the URI of a line, or the problem why the line has no URI. Pages are stored without a scheme. A host with
// port 443 gets the scheme https, so that the default port 443 is dropped.
func (r *Rules) uriOf(l *logs.Line) (uri string, problem string) {
	if l.HasWholeURI() {
		return string(l.Target), ""
	}
	if len(l.Target) == 0 || l.Target[0] != '/' {
		return "", "the requested target is not a path"
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
