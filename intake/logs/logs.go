// Package logs reads lines of access logs, as web servers write them.
//
// A line says itself what format it has: one that begins with { is JSON, one behind a header of
// W3C has the columns that this names, one that begins with a protocol and a time is a balancer's, any
// other one is of the Common Log Format, one of its extensions, or HAProxy's. So a file may have lines
// of several formats, as where the settings of a server were changed. Whoever writes another one gives
// the log_format of nginx that says so.
package logs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format is how a line is written.
type Format string

// The formats.
const (
	Common       Format = "common"
	Combined     Format = "combined"
	CommonHost   Format = "common+host" // with the virtual host in front
	CombinedHost Format = "combined+host"
	Nginx        Format = "nginx" // JSON, with the names of nginx's variables
	Caddy        Format = "caddy"
	Traefik      Format = "traefik"
	W3C          Format = "w3c" // as IIS writes it
	CloudFront   Format = "cloudfront"
	ALB          Format = "alb" // Application Load Balancer of AWS
	HAProxy      Format = "haproxy"
)

// Formats are all of them.
var Formats = []Format{Common, Combined, CommonHost, CombinedHost, Nginx, Caddy, Traefik, W3C, CloudFront, ALB, HAProxy}

// LongestLine is how long a line may be, in bytes. Web servers refuse requests of a hundredth of
// it.
const LongestLine = 1 << 20

// Line is what a line tells of a request. What is empty it does not tell. The texts hold until the
// parser that has read them reads the next line.
type Line struct {
	Text   []byte // the line itself; in Docker's json-file the text in "log"; nil: it cannot be a line
	Format Format
	Time   time.Time
	Host   []byte // and the port, if there is one
	Client []byte // address
	Method []byte
	Target []byte // what was asked for: a path, or a whole URI
	Status int
	Agent  []byte

	Referer []byte // the page that the visitor comes from; - where the server writes that it has none

	TellsAgent bool // the format has the User-Agent, also where it is empty

	ahead int // seconds by which the clock that it shows is ahead of UTC
}

// Hour is the hour that the line shows, since 1970, by whatever clock it shows: equal lines show the
// same one.
func (l *Line) Hour() int32 { return int32((l.Time.Unix() + int64(l.ahead)) / 3600) } //nolint:gosec // some hundred thousand

// NamesHost reports whether the line says which host was asked.
func (l *Line) NamesHost() bool { return len(l.Host) > 0 || l.HasWholeURI() }

// HasWholeURI reports whether what was asked for is a URI with its host, and not a path.
func (l *Line) HasWholeURI() bool {
	t := l.Target
	return len(t) > 7 && (bytes.EqualFold(t[:7], []byte("http://")) || bytes.EqualFold(t[:8], []byte("https://")))
}

// What is wrong with a line. The errors are values, so that bad lines are as quick to read as good
// ones.
var (
	errEmpty    = errors.New("it is empty")
	errTooLong  = errors.New("it is longer than 1 MB")
	errNUL      = errors.New("it has a NUL")
	errClient   = errors.New("it does not begin with the address of a visitor")
	errNoTime   = errors.New("it has no time in brackets, and no #Fields before it that name a visit's")
	errTime     = errors.New("its time cannot be read")
	errRequest  = errors.New("it has no request in quotes")
	errStatus   = errors.New("it has no status")
	errEnds     = errors.New("it ends in the middle")
	errJSON     = errors.New("it is not JSON")
	errNoFields = errors.New("it has no address, time, request or status under a name that is known")
	errFormat   = errors.New("it is of another format than the one named")
)

// Parser reads lines. It is not safe for concurrent use.
type Parser struct {
	Head Header // that was read last, or of another parser

	only    Format         // "": any
	scratch []byte         // texts of the present line that were written with escapes
	hour    hour           // that a line has shown
	layout  *layout        // nil: each line is as it says itself
	zone    *time.Location // of HAProxy; nil: not known
	local   struct {       // an hour of it, and how far that is ahead of UTC
		hour  int64
		ahead int
	}
}

// NewParser makes a parser of lines of one format, or of any where it is "". Check has said whether the
// format is one.
func NewParser(only Format) *Parser {
	p, _ := newParser(only)
	return p
}

func newParser(only Format) (p *Parser, err error) {
	p = &Parser{only: only}
	if strings.Contains(string(only), "$") {
		p.only = LogFormat
		p.layout, err = readLayout(string(only))
		return p, err
	}
	name, zone, zoned := strings.Cut(string(only), "@")
	if zoned && Format(name) == HAProxy {
		p.only = HAProxy
		if p.zone, err = time.LoadLocation(zone); err != nil || zone == "" || zone == "Local" {
			return p, fmt.Errorf("%.64q is not a time zone: write one like haproxy@Europe/Berlin or haproxy@UTC", zone)
		}
		return p, nil
	}
	if only == HAProxy {
		return p, errNoZone
	}
	if only != "" && !slices.Contains(Formats, only) {
		return p, fmt.Errorf("%.64q is not known: write one of %v, a log_format of nginx (with its $), or leave it out", only, Formats)
	}
	return p, nil
}

// Parse reads a line, which ends before its \n. Its error says what is wrong with the line; what time it
// shows is read all the same, if that stands before what is wrong.
func (p *Parser) Parse(text []byte, l *Line) error {
	p.scratch = p.scratch[:0]
	return p.parse(text, l)
}

// bare is a line without what may stand behind it, if it may be one.
func bare(text []byte) ([]byte, error) {
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	switch {
	case len(text) == 0:
		return nil, errEmpty
	case len(text) > LongestLine:
		return nil, errTooLong
	case bytes.IndexByte(text, 0) >= 0:
		return nil, errNUL
	}
	return text, nil
}

func (p *Parser) parse(text []byte, l *Line) error {
	*l = Line{}
	text, err := bare(text)
	if err != nil {
		return err
	}
	l.Text = text
	switch {
	case p.layout != nil:
		err = p.own(text, l)
	case text[0] == '{':
		err = p.json(text, l)
	case p.Head.columns != nil:
		err = p.columns(text, l)
	case isBalancers(text):
		err = p.balancer(text, l)
	default:
		err = p.common(text, l)
	}
	if err == nil && p.only != "" && l.Format != p.only {
		return errFormat
	}
	return err
}
