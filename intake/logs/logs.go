// Package logs parses lines of access logs of web servers.
//
// The format is detected for each line:
//
//   - A line that starts with { is parsed as JSON.
//   - A line after a W3C header has the columns that the header names.
//   - A line that starts with a protocol and a time comes from a load balancer of AWS.
//   - All other lines have the Common Log Format, one of its extensions, or HAProxy's format.
//
// So a file may contain lines of several formats, for example if a server's configuration was changed. For any other
// format, the operator passes a description: a log_format of nginx.
package logs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format is the name of a line format.
type Format string

// The built-in formats.
const (
	Common       Format = "common"
	Combined     Format = "combined"
	CommonHost   Format = "common+host" // begins with a virtual host
	CombinedHost Format = "combined+host"
	Nginx        Format = "nginx" // JSON, usually with the names of nginx's variables
	Caddy        Format = "caddy"
	Traefik      Format = "traefik"
	W3C          Format = "w3c" // written by IIS, for example
	CloudFront   Format = "cloudfront"
	ALB          Format = "alb" // Application Load Balancer of AWS
	HAProxy      Format = "haproxy"
)

// Formats contains all built-in formats.
var Formats = []Format{Common, Combined, CommonHost, CombinedHost, Nginx, Caddy, Traefik, W3C, CloudFront, ALB, HAProxy}

// LongestLine is the maximum length of a line, in bytes. Web servers refuse requests long before a line gets so long.
const LongestLine = 1 << 20

// Line contains the fields of a line. Missing fields are empty. The slices are valid until the parser parses the next line.
type Line struct {
	Text   []byte // the line; in a log of Docker, the line inside the JSON; nil if the line is empty, too long or contains a NUL
	Format Format
	Time   time.Time
	Host   []byte // the requested host, with its port if the line contains one
	Client []byte // address
	Method []byte
	Target []byte // the requested path, or a full URI
	Status int
	Agent  []byte

	Referer []byte // the referrer; "-" if the server writes "-" for a missing referrer

	HasAgent bool // the line has a field for the User-Agent, which may be empty

	ahead int // offset of the line's time zone from UTC, in seconds
}

// Hour returns the number of hours since 1970 by the clock of the line's own time zone. Lines with the same text have the
// same hour.
func (l *Line) Hour() int32 { return int32((l.Time.Unix() + int64(l.ahead)) / 3600) } //nolint:gosec // a few hundred thousand

// NamesHost reports whether the line contains the host of the page.
func (l *Line) NamesHost() bool { return len(l.Host) > 0 || l.HasWholeURI() }

// HasWholeURI reports whether l.Target is a URI with scheme and host, and not only a path.
func (l *Line) HasWholeURI() bool {
	t := l.Target
	return len(t) > 7 && (bytes.EqualFold(t[:7], []byte("http://")) || bytes.EqualFold(t[:8], []byte("https://")))
}

// The reasons why a line is invalid. Parse returns these values, because creating a new error for each line would be slow.
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
	Head Header // the last header line in the log; the caller may copy it from another parser

	only    Format         // the only accepted format; "": any format
	scratch []byte         // memory for decoded texts of the current line
	hour    hour           // caches the hour of the last parsed time
	layout  *layout        // the log_format of all lines; nil: detect the format of each line
	zone    *time.Location // time zone of HAProxy's times; nil: not specified
	local   struct {       // caches the offset of zone from UTC during one hour
		hour  int64
		ahead int
	}
}

// NewParser returns a parser that accepts only lines of the format only, or of any format if only is "". The caller must
// have validated the format with Check.
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

// Parse parses text, a line without its \n, into l. It returns an error if the line is invalid. Even then, it sets l.Time
// if the time precedes the invalid part of the line.
func (p *Parser) Parse(text []byte, l *Line) error {
	p.scratch = p.scratch[:0]
	return p.parse(text, l)
}

// trimLine removes a trailing \r. It returns an error if the line is empty, is too long or contains a NUL.
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
