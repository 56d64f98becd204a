// Package logs reads lines of access logs, as web servers write them.
//
// A line says itself what format it has: one that begins with { is JSON, any other one is of the
// Common Log Format or one of its extensions. So a file may have lines of several formats, as where
// the settings of a server were changed.
package logs

import (
	"bytes"
	"errors"
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
)

// Formats are all of them.
var Formats = []Format{Common, Combined, CommonHost, CombinedHost, Nginx, Caddy, Traefik}

// LongestLine is how long a line may be, in bytes. Web servers refuse requests of a hundredth of
// it.
const LongestLine = 1 << 20

// Line is what a line tells of a request. What is empty it does not tell. The texts hold until the
// parser that has read them reads the next line.
type Line struct {
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

// IsHeader reports whether a line only tells of those behind it, as W3C's begin with #.
func IsHeader(text []byte) bool { return len(text) > 0 && text[0] == '#' }

// What is wrong with a line. The errors are values, so that bad lines are as quick to read as good
// ones.
var (
	errEmpty    = errors.New("it is empty")
	errTooLong  = errors.New("it is longer than 1 MB")
	errNUL      = errors.New("it has a NUL")
	errClient   = errors.New("it does not begin with the address of a visitor")
	errNoTime   = errors.New("it has no time in brackets")
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
	only    Format // "": any
	scratch []byte // texts of the present line that were written with escapes
	hour    hour   // that a line has shown
}

// NewParser makes a parser of lines of one format, or of any where it is "".
func NewParser(only Format) *Parser { return &Parser{only: only} }

// Parse reads a line, which ends before its \n. Its error says what is wrong with the line; what time it
// shows is read all the same, if that stands before what is wrong.
func (p *Parser) Parse(text []byte, l *Line) error {
	p.scratch = p.scratch[:0]
	return p.parse(text, l)
}

// Time reads of a line the time alone that Parse reads of it; false: it shows none. That takes a third
// of the time, but for JSON, of which all is read.
func (p *Parser) Time(text []byte, l *Line) bool {
	p.scratch = p.scratch[:0]
	*l = Line{}
	if text, err := bare(text); err == nil && text[0] == '{' {
		_ = p.json(text, l)
	} else if err == nil {
		_, _, _ = p.cutTime(text, l)
	}
	return !l.Time.IsZero()
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
	switch {
	case err != nil:
		return err
	case text[0] == '{':
		err = p.json(text, l)
	default:
		err = p.common(text, l)
	}
	if err == nil && p.only != "" && l.Format != p.only {
		return errFormat
	}
	return err
}
