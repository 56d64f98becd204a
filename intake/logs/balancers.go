package logs

import (
	"bytes"
	"errors"
	"time"
)

// balancer reads a line of an Application Load Balancer of AWS:
//
//	https 2018-07-02T22:23:00.186641Z app/name/50dc6c49 192.0.2.7:2817 10.0.0.1:80 0.0 0.0 0.0 200 200 0 57 "request" "agent" …
func (p *Parser) balancer(text []byte, l *Line) (err error) {
	l.Format = ALB
	_, text, _ = bytes.Cut(text, space)
	for at := range 11 {
		value, rest, found := bytes.Cut(text, space)
		if !found {
			return errEnds
		}
		text = rest
		switch at {
		case 0:
			err = p.put(l, moments, value)
		case 2:
			err = p.put(l, client, withoutPort(value))
		case 7:
			if string(value) != "-" {
				err = p.put(l, status, value)
			}
		}
		if err != nil {
			return err
		}
	}
	asked, text, ok := p.quoted(text)
	if !ok {
		return errRequest
	}
	l.setRequest(asked)
	if l.Agent, _, l.HasAgent = p.quoted(text); !l.HasAgent {
		return errEnds
	}
	return nil
}

// isBalancers reports whether a line starts with a protocol and a time, like the lines of AWS's load balancers.
func isBalancers(text []byte) bool {
	first := bytes.IndexByte(text, ' ')
	if first < 2 || first > 5 || len(text) < first+12 || text[first+5] != '-' || text[first+11] != 'T' {
		return false
	}
	switch string(text[:first]) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
		return true
	}
	return false
}

// withoutPort removes the port from an address. It also removes the brackets around an IPv6 address.
func withoutPort(text []byte) []byte {
	if at := bytes.LastIndexByte(text, ':'); at >= 0 {
		text = text[:at]
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("[")), []byte("]"))
}

var errNoZone = errors.New("HAProxy writes times without a time zone: name the zone, as in --format haproxy@Europe/Berlin")

// isHAProxys reports whether text starts with a time in HAProxy's format, 06/Feb/2009:12:14:14.655, and a closing bracket.
func isHAProxys(text []byte) bool { return len(text) > 24 && text[20] == '.' && text[24] == ']' }

// cutHAProxy parses the first half of a line of HAProxy. head is the part before the time. It may start with a prefix that
// syslog added. rest starts with the time. cutHAProxy returns the part after the time.
func (p *Parser) cutHAProxy(head, rest []byte, l *Line) ([]byte, error) {
	if l.Format = HAProxy; p.zone == nil {
		return nil, errNoZone
	}
	if err := p.put(l, client, withoutPort(head[bytes.LastIndexByte(head, ' ')+1:])); err != nil {
		return nil, err
	}
	month := bytes.Index(months, rest[3:6])
	onDay, ok := digits(rest[0:2])
	year, ok2 := digits(rest[7:11])
	seconds, ok3 := parseClock(rest[12:20])
	milli, ok4 := digits(rest[21:24])
	if month < 0 || month%3 != 0 {
		return nil, errTime
	}
	local, ok := moment(year, month/3+1, onDay, seconds, 1_000_000*milli, ok && ok2 && ok3 && ok4)
	if !ok {
		return nil, errTime
	}
	if hour := local.Unix() / 3600; hour != p.local.hour || p.local.hour == 0 {
		_, ahead := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), 0, 0, 0, p.zone).Zone()
		p.local.hour, p.local.ahead = hour, ahead
	}
	l.ahead = p.local.ahead
	l.Time = local.Add(-time.Duration(l.ahead) * time.Second)
	return rest[25:], nil
}

// haproxy parses the part of a line of HAProxy after the time:
//
//	frontend backend/server 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "request"
func (p *Parser) haproxy(rest []byte, l *Line) error {
	for range 4 {
		_, behind, found := bytes.Cut(rest, space)
		if !found {
			return errEnds
		}
		rest = behind
	}
	code, rest, _ := bytes.Cut(rest, space)
	if string(code) != "-1" { // -1 means that the client disconnected before the response
		if err := p.put(l, status, code); err != nil {
			return err
		}
	}
	at := bytes.IndexByte(rest, '"')
	if at < 0 {
		return errRequest
	}
	asked, _, ok := p.quoted(rest[at:])
	if !ok {
		return errRequest
	}
	l.setRequest(asked)
	return nil
}
