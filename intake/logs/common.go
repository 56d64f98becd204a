package logs

import "bytes"

// common parses a line of the Common Log Format:
//
//	[host[:port] ]client identity user [time] "request" status size[ "referrer" "agent"]
//
// It ignores further fields at the end of the line, because many servers are configured to add some.
func (p *Parser) common(text []byte, l *Line) error {
	hosted, rest, err := p.cutTime(text, l)
	if err != nil {
		return err
	}
	if l.Format == HAProxy {
		return p.haproxy(rest, l)
	}
	request, rest, ok := p.quoted(rest)
	if !ok {
		return errRequest
	}
	l.setRequest(request)
	if rest, ok = l.cutStatus(rest); !ok {
		return errStatus
	}
	_, behind, _ := bytes.Cut(bytes.TrimPrefix(rest, space), space) // skips the size of the response
	if len(rest) < 2 {
		return errEnds
	}
	l.Format = Common
	if hosted {
		l.Format = CommonHost
	}
	if len(behind) == 0 || behind[0] != '"' {
		return nil
	}
	if l.Referer, rest, ok = p.quoted(behind); !ok {
		return errEnds
	}
	if l.Agent, _, ok = p.quoted(rest); !ok {
		return errEnds
	}
	l.Format, l.HasAgent = Combined, true
	if hosted {
		l.Format = CombinedHost
	}
	return nil
}

var space = []byte(" ")

// cutTime parses a line up to and including its time, and returns the rest of the line. hosted is true if the line begins
// with the name of a virtual host.
func (p *Parser) cutTime(text []byte, l *Line) (hosted bool, rest []byte, err error) {
	bracket := bytes.IndexByte(text, '[')
	if bracket == 0 || bracket > 0 && text[bracket-1] != ' ' {
		bracket = bytes.Index(text, []byte(" [")) + 1
	}
	if bracket < 1 {
		return false, nil, errNoTime
	}
	if rest = text[bracket+1:]; isHAProxys(rest) {
		rest, err = p.cutHAProxy(text[:bracket-1], rest, l)
		return false, rest, err
	}
	hosted, ok := l.cutClient(text[:bracket-1])
	if !ok {
		return false, nil, errClient
	}
	end := bytes.IndexByte(rest, ']')
	if end < 0 {
		return false, nil, errNoTime
	}
	if l.Time, l.ahead, ok = p.hour.parse(rest[:end]); !ok {
		return false, nil, errTime
	}
	return hosted, rest[end+1:], nil
}

// cutClient parses the part of a line before the time. This part begins with the client's address, or with a virtual host
// and then the client's address. If the second field looks like an address, the first field is a virtual host.
func (l *Line) cutClient(head []byte) (hosted, ok bool) {
	first, rest, found := bytes.Cut(head, space)
	if !found {
		return false, false
	}
	second, _, _ := bytes.Cut(rest, space)
	if likeAddress(second) {
		l.Host, l.Client = first, second
		return true, true
	}
	l.Client = first
	return false, likeAddress(first)
}

// likeAddress reports whether a text contains only characters of IP addresses, including at least one dot or colon. A later
// step parses the address.
func likeAddress(text []byte) bool {
	parted := false
	for _, c := range text {
		switch ofAddresses[c] {
		case 0:
			return false
		case parts:
			parted = true
		}
	}
	return parted
}

// parts is the value in ofAddresses for dots and colons, which separate the parts of an address. For hexadecimal digits,
// the value is 1. For all other characters, it is 0.
const parts = 2

var ofAddresses = func() (of [256]byte) {
	for _, c := range []byte("0123456789abcdefABCDEF") {
		of[c] = 1
	}
	of['.'], of[':'] = parts, parts
	return of
}()

// quoted parses a text in double quotes. It returns the text without quotes and escapes, and the rest of the line after the
// closing quote.
func (p *Parser) quoted(text []byte) (value, rest []byte, ok bool) {
	text = bytes.TrimPrefix(text, space)
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	text = text[1:]
	end := bytes.IndexByte(text, '"')
	if end < 0 {
		return nil, nil, false
	}
	if bytes.IndexByte(text[:end], '\\') < 0 {
		return text[:end], text[end+1:], true
	}
	for end = 0; end < len(text) && text[end] != '"'; end++ {
		if text[end] == '\\' {
			end++
		}
	}
	if end >= len(text) {
		return nil, nil, false
	}
	return p.unescape(text[:end]), text[end+1:], true
}

// setRequest splits a request like "GET /page HTTP/1.1" into l.Method and l.Target. If the client has sent something else,
// both stay empty, but the line is still valid.
func (l *Line) setRequest(request []byte) {
	method, target, _ := bytes.Cut(request, space)
	for _, c := range method {
		if c < 'A' || c > 'Z' {
			return
		}
	}
	if at := bytes.LastIndex(target, []byte(" HTTP/")); at >= 0 {
		target = target[:at]
	}
	l.Method, l.Target = method, target
}

// cutStatus parses the HTTP status at the start of text, and returns the rest.
func (l *Line) cutStatus(text []byte) (rest []byte, ok bool) {
	if len(text) < 4 || text[0] != ' ' || len(text) > 4 && text[4] != ' ' {
		return nil, false
	}
	l.Status, ok = parseStatus(text[1:4])
	return text[4:], ok
}

func parseStatus(text []byte) (status int, ok bool) {
	if len(text) == 0 || len(text) > 3 {
		return 0, false
	}
	return digits(text)
}
