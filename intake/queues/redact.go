package queues

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longestBeginning = 200 // maximum length in characters
	longestReason    = 250
	redacted         = "…"
)

// mayBeIP matches text that may be a visitor's IP address. redactReason and pageOf remove such text before a refused
// message is stored.
var mayBeIP = regexp.MustCompile(`(?i)\b\d{1,3}(\.\d{1,3}){3}\b|[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*`)

// quotedValue matches error texts that quote the value of a field, for the fields with personal data.
var quotedValue = regexp.MustCompile(`^(ip|visitor|id|agent|at): .*"`)

// example starts the last part of some error texts. This part shows the right syntax.
const example = ": write one like "

// redactReason removes personal data from reason, the error text for a message that cannot be counted. If the text ends
// with an example of the right syntax, the example stays unchanged, because it does not come from the message.
func redactReason(reason string) string {
	told, ours := oneLine(reason), ""
	if at := strings.LastIndex(told, example); at > strings.LastIndexByte(told, '"') {
		told, ours = told[:at], told[at:]
	}
	if quotedValue.MatchString(told) {
		first, last := strings.IndexByte(told, '"'), strings.LastIndexByte(told, '"')
		told = told[:first+1] + redacted + told[last:]
	}
	return cut(mayBeIP.ReplaceAllString(told, redacted)+ours, longestReason)
}

// beginningOf returns the beginning of a refused message without personal data. It keeps the JSON structure, the field
// names, the URI without its query, and the time. It removes all other values, because they may identify the visitor.
func beginningOf(text []byte) string {
	s := oneLine(string(text[:min(len(text), 4*longestBeginning)]))
	var out strings.Builder
	name := "" // the name of the field whose value follows
	for s != "" {
		switch c := s[0]; {
		case strings.IndexByte("{}[]:,", c) >= 0:
			out.WriteByte(c)
			if c == ',' || c == '{' {
				name = ""
			}
			s = s[1:]
		case c == ' ':
			out.WriteByte(c)
			s = s[1:]
		case c == '"':
			value, rest, whole := quoted(s)
			isName := whole && strings.HasPrefix(strings.TrimLeft(rest, " "), ":")
			switch {
			case isName:
				name = value
				out.WriteString(`"` + mayBeIP.ReplaceAllString(value, redacted) + `"`)
			case name == "uri":
				out.WriteString(`"` + pageOf(value) + `"`)
			case name == "at" && whole && date.MatchString(value):
				out.WriteString(`"` + value + `"`)
			default:
				out.WriteString(`"` + redacted + `"`)
			}
			s = rest
		default:
			end := strings.IndexAny(s, `{}[]:," `)
			if end < 0 {
				end = len(s)
			}
			out.WriteString(redacted)
			s = s[end:]
		}
	}
	return cut(out.String(), longestBeginning)
}

// date matches a text that consists of a date, optionally with a time and a time zone.
var date = regexp.MustCompile(`^\d{4}-\d\d?-\d\d?([Tt ]\d\d?:\d\d(:\d\d([.,]\d{1,9})?)?( ?([Zz]|[+-]\d\d(:?\d\d)?))?)?$`)

// pageOf removes the query of a URI, and texts that may be IP addresses. uri may contain JSON escapes. If the URI may
// contain a login, pageOf removes the whole URI.
func pageOf(uri string) string {
	page, rest := strings.ReplaceAll(uri, `\/`, "/"), ""
	if end := strings.IndexAny(page, `?#@\`); end >= 0 {
		if page[end] == '@' {
			return redacted
		}
		page, rest = page[:end], redacted
	}
	if plain, err := url.PathUnescape(page); err != nil {
		page, rest = page[:strings.IndexByte(page, '%')], redacted
	} else if mayBeIP.MatchString(plain) {
		page = oneLine(plain)
	}
	return mayBeIP.ReplaceAllString(page, redacted) + rest
}

// quoted returns the JSON string at the start of s, without its quotes, and the rest of s. whole is false if the closing
// quote is missing.
func quoted(s string) (value, rest string, whole bool) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], s[i+1:], true
		}
	}
	return s[1:], "", false
}

// oneLine replaces white space by spaces, and unprintable characters by question marks.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}

func cut(s string, most int) string {
	n := 0
	for at := range s {
		if n == most {
			return s[:at] + redacted
		}
		n++
	}
	return s
}
