package imports

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"footfall/intake/logs"
	"footfall/visit"
)

// Rules specify which lines of a log are counted as visits.
type Rules struct {
	Format   logs.Format // the format of all lines; "": each line may have any format
	Site     string      // site of the lines that contain no host
	From, To int32       // the first and the last day to count; 0: no limit
	Methods  []string
	Statuses []int
	Hosts    []string // empty: all hosts whose visits the app counts
	Static   bool     // also count static files
	Bots     bool     // also count bots
}

// Reason is a reason not to count a line that could be parsed.
type Reason string

// The reasons, with the texts that the summary of an import shows.
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

// The default values of Methods and Statuses. The status 304 is included, because a server sends it if the browser has the
// page in its cache.
var (
	DefaultMethods  = []string{"GET"}
	DefaultStatuses = []int{200, 304}
)

// leavesOut returns the reason why the rules leave out a line, or "" if the line may count.
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

// static contains the extensions of static files. A static file is not a page: it is a part of pages, or programs read it.
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

// isStatic reports whether the path in target ends with an extension in static.
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

// uriOf returns the URI of the page that a line requests, or the problem if the URI cannot be determined. Footfall stores
// pages without a scheme. The scheme only decides which default port is removed, so a host with port 443 gets the scheme
// https.
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
