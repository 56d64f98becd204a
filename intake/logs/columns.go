package logs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// column is the meaning of a value in a line. The header of a W3C log, or a log_format of nginx, defines the column of each
// value.
type column byte

const (
	nothing column = iota
	client
	host
	hostHeader // the host that the client requested; host is the name in the server's configuration
	method
	target
	query
	request
	status
	day
	clock
	moments // a time in any format that parseTime accepts
	agent
	referrer
)

// w3c maps the column names in headers of W3C logs to columns. CloudFront writes such logs, too.
var w3c = map[string]column{
	"c-ip": client, "cs-host": host, "cs(host)": host, "x-host-header": hostHeader, "cs-method": method, "cs-uri": target,
	"cs-uri-stem": target, "cs-uri-query": query, "sc-status": status, "date": day, "time": clock, "cs(user-agent)": agent,
	"cs(referer)": referrer,
}

// variables maps the variables in a log_format of nginx to columns.
var variables = map[string]column{
	"remote_addr": client, "server_name": host, "host": hostHeader, "http_host": hostHeader, "request": request, "request_method": method,
	"request_uri": target, "uri": target, "status": status, "time_local": moments, "time_iso8601": moments, "msec": moments,
	"http_user_agent": agent, "http_referer": referrer,
}

// piece is one variable of a log_format, and the fixed text that follows the variable.
type piece struct {
	column         column
	following      []byte // the text after the variable; empty: the variable extends to the end of the line
	isNextVariable bool   // another variable follows immediately: following is /, the first character of its value
}

// layout is a parsed log_format of nginx. front is the fixed text before the first variable.
type layout struct {
	front  []byte
	pieces []piece
}

// LogFormat is the Format of lines that a log_format of nginx describes.
const LogFormat Format = "log_format"

// Check returns an error if format is neither the name of a built-in format nor a valid log_format.
func Check(format Format) error {
	_, err := newParser(format)
	return err
}

// readLayout parses a log_format of nginx. Variables that it does not know become columns without a meaning. It returns an
// error if a variable that every visit needs is missing.
func readLayout(text string) (*layout, error) {
	front, rest, _ := strings.Cut(text, "$")
	l, has := layout{front: []byte(front)}, map[column]bool{}
	for more := true; more; {
		rest = strings.TrimPrefix(rest, "{")
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
		if end < 0 {
			end = len(rest)
		}
		one := piece{column: variables[rest[:end]]}
		var behind string
		behind, rest, more = strings.Cut(strings.TrimPrefix(rest[end:], "}"), "$")
		if behind == "" && more {
			if one.isNextVariable = strings.HasPrefix(rest, "request_uri") || strings.HasPrefix(rest, "uri"); !one.isNextVariable {
				return nil, fmt.Errorf("%.64q has two variables with nothing between them, so it is unclear where the first one ends", text)
			}
			behind = "/"
		}
		one.following, has[one.column] = []byte(behind), true
		l.pieces = append(l.pieces, one)
	}
	for _, needed := range []struct {
		is   bool
		what string
	}{{has[client], "$remote_addr"}, {has[moments], "$time_local, $time_iso8601 or $msec"}, {has[status], "$status"},
		{has[request] || has[target] && has[method], "$request, or $request_method and $request_uri"}} {
		if !needed.is {
			return nil, fmt.Errorf("%.64q lacks %s", text, needed.what)
		}
	}
	return &l, nil
}

var errLayout = errors.New("it does not match the log_format")

// parseLogFormat parses a line as p.layout describes it.
func (p *Parser) parseLogFormat(text []byte, l *Line) error {
	l.Format = LogFormat
	rest, ok := bytes.CutPrefix(text, p.layout.front)
	if !ok {
		return errLayout
	}
	for _, one := range p.layout.pieces {
		end := len(rest)
		if len(one.following) > 0 {
			end = bytes.Index(rest, one.following)
		}
		if end < 0 {
			return errLayout
		}
		value := rest[:end]
		if bytes.IndexByte(value, '\\') >= 0 {
			value = p.unescape(value)
		}
		if err := p.put(l, one.column, value); err != nil {
			return err
		}
		if rest = rest[end:]; !one.isNextVariable {
			rest = rest[len(one.following):]
		}
	}
	return nil
}

// put stores the value of a column in l.
func (p *Parser) put(l *Line, c column, value []byte) error {
	var ok bool
	switch c {
	case client:
		if l.Client = value; !likeAddress(value) {
			return errClient
		}
	case host, hostHeader:
		if string(value) != "-" && (c == hostHeader || len(l.Host) == 0) {
			l.Host = value
		}
	case method:
		l.Method = value
	case target:
		l.Target = value
	case request:
		l.setRequest(value)
	case moments:
		if l.Time, l.ahead, ok = parseTime(value); !ok {
			return errTime
		}
	case status:
		if l.Status, ok = parseStatus(value); !ok {
			return errStatus
		}
	case agent:
		l.Agent, l.HasAgent = value, true
	case referrer:
		l.Referer = value
	}
	return nil
}

// Header is a header line of a W3C log. It defines the columns of the lines that follow it.
type Header struct {
	text       string
	columns    []column
	cloudFront bool
}

// Header reports whether a line starts with #, like the header lines of W3C logs. If the line defines columns, Header
// stores them in p.Head. If these columns do not include one that every visit needs, the parser instead detects the format
// of each following line from the line itself.
func (p *Parser) Header(text []byte) bool {
	names, ok := bytes.CutPrefix(text, []byte("#Fields:"))
	if ok && string(names) != p.Head.text {
		p.Head = Header{text: string(names), cloudFront: bytes.Contains(names, []byte("x-edge-"))}
		var columns []column
		for _, name := range strings.Fields(strings.ToLower(p.Head.text)) {
			columns = append(columns, w3c[name])
		}
		has := func(c column) bool { return slices.Contains(columns, c) }
		if has(client) && has(method) && has(target) && has(status) && has(day) && has(clock) {
			p.Head.columns = columns
		}
	}
	return ok || len(text) > 0 && text[0] == '#'
}

// columns parses a line of a W3C log, whose columns are in p.Head. Its time is in UTC.
func (p *Parser) columns(text []byte, l *Line) error {
	l.Format = W3C
	parting := byte(' ')
	if p.Head.cloudFront {
		l.Format = CloudFront
		if bytes.IndexByte(text, '\t') >= 0 {
			parting = '\t'
		}
	}
	var onDay, at, asked []byte
	for _, c := range p.Head.columns {
		if len(text) == 0 {
			return errEnds
		}
		value := text
		if end := bytes.IndexByte(text, parting); end >= 0 {
			value, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		switch c {
		case day:
			onDay = value
		case clock:
			at = value
		case query:
			asked = value
		case target, agent, referrer:
			value = p.plain(value, c)
			fallthrough
		default:
			if err := p.put(l, c, value); err != nil {
				return err
			}
		}
	}
	if len(asked) > 0 && string(asked) != "-" {
		from := len(p.scratch)
		p.scratch = append(append(p.scratch, l.Target...), '?')
		p.scratch = append(p.scratch, p.plain(asked, query)...)
		l.Target = p.scratch[from:len(p.scratch):len(p.scratch)]
	}
	var ok bool
	if l.Time, ok = parseDayAndClock(onDay, at); !ok {
		return errTime
	}
	return nil
}

// plain returns the decoded value of column c. CloudFront escapes spaces and other characters as in URLs, for example as
// %20. IIS writes each space in a User-Agent as +.
func (p *Parser) plain(value []byte, c column) []byte {
	from := len(p.scratch)
	switch {
	case p.Head.cloudFront && bytes.IndexByte(value, '%') >= 0:
		p.unpercent(value)
		if again := p.scratch[from:]; c == agent && bytes.Contains(again, []byte("%20")) { // CloudFront escaped agents twice until 2019
			from = len(p.scratch)
			p.unpercent(again)
		}
	case !p.Head.cloudFront && c == agent && bytes.IndexByte(value, '+') >= 0:
		for _, one := range value {
			if one == '+' {
				one = ' '
			}
			p.scratch = append(p.scratch, one)
		}
	default:
		return value
	}
	return p.scratch[from:len(p.scratch):len(p.scratch)]
}

// unpercent decodes the percent escapes in a text, and appends the result to p.scratch.
func (p *Parser) unpercent(text []byte) {
	for i := 0; i < len(text); i++ {
		if text[i] == '%' {
			if value, ok := hex(text[i+1:], 2); ok {
				p.scratch = append(p.scratch, byte(value)) //nolint:gosec // two digits
				i += 2
				continue
			}
		}
		p.scratch = append(p.scratch, text[i])
	}
}
