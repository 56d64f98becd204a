// Package logs parses lines of access logs of web servers.
//
// The format is detected for each line:
//
//   - A line that starts with { is JSON.
//   - A line after a W3C header has the columns of the header.
//   - A line that starts with a protocol and a time comes from a load balancer.
//   - All other lines have the Common Log Format, one of its extensions, or HAProxy's format.
//
// So a file may contain several formats, for example if a server's configuration changed. The operator can describe any
// other format with a log_format of nginx.
package logs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format is the format of a line.
type Format string

// The formats.
const (
	Common       Format = "common"
	Combined     Format = "combined"
	CommonHost   Format = "common+host" // with a leading virtual host
	CombinedHost Format = "combined+host"
	Nginx        Format = "nginx" // JSON with the names of nginx's variables
	Caddy        Format = "caddy"
	Traefik      Format = "traefik"
	W3C          Format = "w3c" // as written by IIS
	CloudFront   Format = "cloudfront"
	ALB          Format = "alb" // Application Load Balancer of AWS
	HAProxy      Format = "haproxy"
)

// Formats lists all formats.
var Formats = []Format{Common, Combined, CommonHost, CombinedHost, Nginx, Caddy, Traefik, W3C, CloudFront, ALB, HAProxy}

// LongestLine is the maximum length of a line, in bytes. Web servers already refuse requests of a hundredth of this length.
const LongestLine = 1 << 20

// Line holds the fields of a line. Missing fields are empty. The slices are valid until the parser reads the next line.
type Line struct {
	Text   []byte // the whole line; in Docker's json-file the text of "log"; nil if the line is empty, too long or has a NUL
	Format Format
	Time   time.Time
	Host   []byte // with the port, if present
	Client []byte // address
	Method []byte
	Target []byte // of the request: a path or a full URI
	Status int
	Agent  []byte

	Referer []byte // the referrer; some servers write - if there is no referrer

	TellsAgent bool // the format includes the User-Agent, even if it is empty

	ahead int // seconds by which the line's clock is ahead of UTC
}

// Hour returns the hours since 1970 on the line's own clock. Equal lines have the same hour.
func (l *Line) Hour() int32 { return int32((l.Time.Unix() + int64(l.ahead)) / 3600) } //nolint:gosec // a few hundred thousand

// NamesHost reports whether the line contains the requested host.
func (l *Line) NamesHost() bool { return len(l.Host) > 0 || l.HasWholeURI() }

// HasWholeURI reports whether the target is a URI with a host, not a path.
func (l *Line) HasWholeURI() bool {
	t := l.Target
	return len(t) > 7 && (bytes.EqualFold(t[:7], []byte("http://")) || bytes.EqualFold(t[:8], []byte("https://")))
}

// Errors of lines. They are created once and not for each line, so that invalid lines are as fast to read as valid ones.
var (
	errEmpty    = errors.New("it is empty")
	errTooLong  = errors.New("it is longer than 1 MB")
	errNUL      = errors.New("it contains a NUL character")
	errClient   = errors.New("it does not begin with the address of a visitor")
	errNoTime   = errors.New("it has no time in brackets, and no #Fields line before it names the fields of a visit")
	errTime     = errors.New("its time cannot be read")
	errRequest  = errors.New("it has no request in quotes")
	errStatus   = errors.New("it has no status")
	errEnds     = errors.New("it is incomplete")
	errJSON     = errors.New("it is not JSON")
	errNoFields = errors.New("it has no address, time, request or status under a known name")
	errFormat   = errors.New("it is not in the given format")
)

// Parser parses lines. It is not safe for concurrent use.
type Parser struct {
	Head Header // the header read last; the caller may set it to the header of another parser

	only    Format         // "": any
	scratch []byte         // decoded texts of the current line
	hour    hour           // the hour of an earlier line
	layout  *layout        // nil: detect the format of each line
	zone    *time.Location // for HAProxy; nil: not given
	local   struct {       // an hour in zone, and its offset from UTC
		hour  int64
		ahead int
	}
}

// NewParser returns a parser for one format, or for all formats if only is "". The caller must have checked the format
// with Check.
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
		return p, fmt.Errorf("%.64q is not a known format: write one of %v, a log_format of nginx (with its $), or leave it out",
			only, Formats)
	}
	return p, nil
}

// Parse parses a line without its \n. The error is the reason why the line is invalid. The time of an invalid line is set if
// the time precedes the invalid part.
func (p *Parser) Parse(text []byte, l *Line) error {
	p.scratch = p.scratch[:0]
	return p.parse(text, l)
}

// trimLine removes a trailing \r, and returns an error if the text cannot be a line.
func trimLine(text []byte) ([]byte, error) {
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
	text, err := trimLine(text)
	if err != nil {
		return err
	}
	l.Text = text
	switch {
	case p.layout != nil:
		err = p.parseLogFormat(text, l)
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
