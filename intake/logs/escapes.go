package logs

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape decodes the escapes of JSON, Apache and nginx, which do not contradict each other. Unknown escapes stay
// unchanged.
func (p *Parser) unescape(text []byte) []byte {
	from := len(p.scratch)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' || i+1 == len(text) {
			p.scratch = append(p.scratch, c)
			continue
		}
		i++
		switch c = text[i]; c {
		case '"', '\\', '/', '\'':
			p.scratch = append(p.scratch, c)
		case 'b', 'f', 'n', 'r', 't', 'v':
			p.scratch = append(p.scratch, controls[c])
		case 'x':
			if value, ok := hex(text[i+1:], 2); ok {
				p.scratch = append(p.scratch, byte(value)) //nolint:gosec // two digits
				i += 2
				continue
			}
			p.scratch = append(p.scratch, '\\', c)
		case 'u':
			r, length := unescapeRune(text[i+1:])
			if length == 0 {
				p.scratch = append(p.scratch, '\\', c)
				continue
			}
			p.scratch = utf8.AppendRune(p.scratch, r)
			i += length
		default:
			p.scratch = append(p.scratch, '\\', c)
		}
	}
	return p.scratch[from:len(p.scratch):len(p.scratch)]
}

var controls = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// unescapeRune decodes the hexadecimal digits after \u. If they are the first half of a surrogate pair, it also decodes the
// second half. length is the number of decoded bytes, or 0 if text does not start with four hexadecimal digits.
func unescapeRune(text []byte) (r rune, length int) {
	first, ok := hex(text, 4)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 4
	}
	if len(text) >= 10 && text[4] == '\\' && text[5] == 'u' {
		if second, ok := hex(text[6:], 4); ok {
			if whole := utf16.DecodeRune(first, second); whole != utf8.RuneError {
				return whole, 10
			}
		}
	}
	return utf8.RuneError, 4
}

// hex parses the first digits characters of text as a hexadecimal number.
func hex(text []byte, digits int) (value rune, ok bool) {
	if len(text) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[:digits]), 16, 32)
	return rune(n), err == nil //nolint:gosec // at most four digits
}
