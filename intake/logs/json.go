package logs

import "bytes"

// json parses a line of JSON. It does not use encoding/json, which is several times slower and does not accept the escape
// \x. nginx writes \x if it is not configured to write JSON escapes.
func (p *Parser) json(text []byte, l *Line) error {
	r := jsonReader{parser: p, text: text, line: l}
	l.Format = Nginx
	if !r.object(atTop, 0) || r.space() < len(text) {
		return errJSON
	}
	if r.wrapped != nil && !r.request {
		return p.parse(bytes.TrimSuffix(r.wrapped, []byte("\n")), l)
	}
	if r.badTime && r.timeRank == 0 {
		return errTime
	}
	if len(l.Client) == 0 || r.timeRank == 0 || !r.request || !r.status {
		return errNoFields
	}
	return nil
}

// jsonReader parses one line of JSON, and stores the values that it finds in line.
type jsonReader struct {
	parser *Parser
	text   []byte
	at     int
	line   *Line

	// A line may contain a value under several names. Each name has a rank, and the value of the name with the highest rank
	// is used. These fields contain the highest ranks found so far.
	clientRank, hostRank, targetRank, timeRank int

	request, status, badTime bool

	wrapped []byte // a line of any format that is a string in the JSON; Docker stores the lines of containers in this way
}

// place is the kind of object that contains a value. Values in other objects (elsewhere) are ignored.
type place int

const (
	atTop     place = iota
	inRequest       // the object "request" of Caddy
	inHeaders       // the object "headers" in Caddy's "request"
	elsewhere
)

// deepest is the maximum depth of nested values. Lines from Caddy have a depth of four.
const deepest = 32

// object parses a JSON object. It returns false if the syntax is invalid.
func (r *jsonReader) object(where place, depth int) bool {
	return r.list('{', '}', depth, func() bool {
		r.space()
		name, ok := r.string()
		return ok && r.take(':') && r.value(where, name, depth)
	})
}

// array parses a JSON array. If the array is in the request's headers, each element is a value of the header with the array's
// name. The elements of other arrays are ignored.
func (r *jsonReader) array(where place, name []byte, depth int) bool {
	if where != inHeaders {
		where = elsewhere
	}
	return r.list('[', ']', depth, func() bool { return r.value(where, name, depth+1) })
}

// list parses comma-separated elements between the characters begin and end. It calls one for each element.
func (r *jsonReader) list(begin, end byte, depth int, one func() bool) bool {
	if !r.take(begin) || depth > deepest {
		return false
	}
	if r.take(end) {
		return true
	}
	for one() {
		if r.take(end) {
			return true
		}
		if !r.take(',') {
			return false
		}
	}
	return false
}

// value parses the value after a name. If the value is a string or a word and the parser knows the name, value stores it.
func (r *jsonReader) value(where place, name []byte, depth int) bool {
	if r.space() == len(r.text) {
		return false
	}
	switch r.text[r.at] {
	case '{':
		inner := elsewhere
		switch {
		case where == atTop && string(name) == "request":
			inner, r.line.Format = inRequest, Caddy
		case where == inRequest && string(name) == "headers":
			inner = inHeaders
		}
		return r.object(inner, depth+1)
	case '[':
		return r.array(where, name, depth)
	case '"':
		value, ok := r.string()
		if ok {
			r.found(where, name, value)
		}
		return ok
	}
	from := r.at
	for r.at < len(r.text) && bytes.IndexByte(endsOfWords, r.text[r.at]) < 0 {
		r.at++
	}
	word := r.text[from:r.at]
	if !isWord(word) {
		return false
	}
	r.found(where, name, word)
	return true
}

var endsOfWords = []byte(",}] \t")

// isWord reports whether a text is true, false, null or a number. It also accepts some texts that only look like a number.
func isWord(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	if c := text[0]; c == '-' || '0' <= c && c <= '9' {
		for _, c := range text {
			if (c < '0' || c > '9') && bytes.IndexByte([]byte("+-.eE"), c) < 0 {
				return false
			}
		}
		return true
	}
	return string(text) == "true" || string(text) == "false" || string(text) == "null"
}

func (r *jsonReader) string() ([]byte, bool) {
	value, rest, ok := r.parser.quoted(r.text[r.at:])
	if ok {
		r.at = len(r.text) - len(rest)
	}
	return value, ok
}

// take skips white space, and then the character c. If the next character is not c, take returns false.
func (r *jsonReader) take(c byte) bool {
	if r.space() == len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// space skips spaces and tabs, and returns the position after them.
func (r *jsonReader) space() int {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\t') {
		r.at++
	}
	return r.at
}
