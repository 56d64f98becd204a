package logs

import "bytes"

// common parses a line of the Common Log Format:
//
//	[host[:port] ]client identity user [time] "request" status size[ "referrer" "agent"]
//
// It ignores the rest of the line, because many servers are configured to add fields.
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
	_, behind, _ := bytes.Cut(bytes.TrimPrefix(rest, space), space) // skips the size
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
	l.Format, l.TellsAgent = Combined, true
	if hosted {
		l.Format = CombinedHost
	}
	return nil
}

var space = []byte(" ")

// cutTime parses a line up to its time, and returns the rest of the line. hosted reports whether the line begins with a
// virtual host.
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

// cutClient parses the part of a line before the time. If the second field looks like an address, the first field is a
// virtual host. Without a virtual host, the second field is the identity, which never looks like an address.
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

// likeAddress reports whether a text consists of the characters of an IP address. The address itself is parsed later.
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

// parts marks the characters that separate the parts of an address: dots and colons. In ofAddresses, hexadecimal
// digits are 1, and other characters 0.
const parts = 2

var ofAddresses = func() (of [256]byte) {
	for _, c := range []byte("0123456789abcdefABCDEF") {
		of[c] = 1
	}
	of['.'], of[':'] = parts, parts
	return of
}()

// quoted reads a text in quotes, and returns its unescaped value and the text after the closing quote.
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

// setRequest splits the request in a line into its method and its target. If the request is not HTTP, l.Method and l.Target
// stay empty. The line is still valid, because the client and not the server wrote the garbage.
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

// cutStatus parses the status, and returns the rest of the line.
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
