package visit

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The properties of a byte in a URI, as bits of targetByte. A byte is plain in a part of the URI if it is written
// unchanged there. All other bytes are percent-encoded, as in the URL standard. "%" is plain in no part: it is either
// the start of an escape or escaped itself.
const (
	printable       = 1 << iota // a printable ASCII character other than "%"
	unreserved                  // a character that has the same meaning with and without percent-encoding
	plainInHost                 // plain in a host that needs no conversion (isPlainHost)
	plainInPath                 // plain in a segment of a path
	plainInQuery                // plain in the value of a query parameter
	plainInName                 // plain in the name of a query parameter
	plainInFragment             // plain in a fragment
)

var targetByte = classifyTargetBytes()

func classifyTargetBytes() (class [256]uint8) {
	for c := 0x20; c < 0x7f; c++ {
		if c != '%' {
			class[c] = printable | plainInPath | plainInQuery | plainInName | plainInFragment
		}
	}
	forbid := func(bits uint8, characters string) {
		for _, c := range []byte(characters) {
			class[c] &^= bits
		}
	}
	forbid(plainInPath|plainInQuery|plainInName|plainInFragment, ` "<>`)
	forbid(plainInPath|plainInFragment, "`")
	forbid(plainInPath|plainInQuery|plainInName, "#")
	forbid(plainInPath, `?^{}/\`)
	forbid(plainInQuery|plainInName, `'`)
	forbid(plainInName, "&=")

	allow := func(bits uint8, characters string) {
		for _, c := range []byte(characters) {
			class[c] |= bits
		}
	}
	const lower, digits = "abcdefghijklmnopqrstuvwxyz", "0123456789"
	allow(unreserved, lower+"ABCDEFGHIJKLMNOPQRSTUVWXYZ"+digits+"-._~")
	allow(plainInHost, lower+digits+"-._")
	return class
}

// targetTextProblem checks the characters of a URI, both before and after decoding. It returns a description of the
// problem, or "" if there is none.
func targetTextProblem(uri string) string {
	for i := 0; i < len(uri); i++ {
		if targetByte[uri[i]]&printable == 0 {
			return targetOddTextProblem(uri) // in a separate function, because it is rarely needed and this loop must stay fast
		}
	}
	if uri == "" {
		return "it is missing: give the address of the page, like http://example.com/page"
	}
	return ""
}

func targetOddTextProblem(uri string) string {
	if strings.ContainsFunc(uri, unicode.IsControl) {
		return "it contains a control character: remove it, or percent-encode it"
	}
	if !utf8.ValidString(uri) {
		return "it is not valid UTF-8: encode it as UTF-8"
	}
	// The unescaped characters are valid UTF-8. So if the decoded text is invalid, the escapes are invalid.
	var space [256]byte
	decoded := appendDecoded(space[:0], uri)
	if bytes.IndexByte(decoded, 0) >= 0 {
		return "it contains NUL (%%00): remove it"
	}
	if !utf8.Valid(decoded) {
		return "its percent-escapes are not valid UTF-8: percent-encode the bytes of UTF-8"
	}
	return ""
}

func escapeAt(s string, i int) (decoded byte, ok bool) {
	if i+2 >= len(s) || s[i] != '%' {
		return 0, false
	}
	high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
	return high<<4 | low, high < 16 && low < 16
}

// hexDigit returns the value of a hexadecimal digit, or at least 16 for any other byte.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

func appendDecoded(out []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c, ok := escapeAt(s, i); ok {
			out = append(out, c)
			i += 2
		} else {
			out = append(out, s[i])
		}
	}
	return out
}

// decodesTo reports whether s equals want after its percent-escapes are decoded.
func decodesTo(s, want string) bool {
	var space [64]byte
	return string(appendDecoded(space[:0], s)) == want
}

// appendCanonical appends s in its canonical spelling. Plain bytes stay unchanged. Escapes of
// unreserved characters are decoded, and other escapes get upper-case digits. All other bytes are
// escaped.
func appendCanonical(out []byte, s string, plain uint8) []byte {
	for i := 0; i < len(s); {
		run := i
		for run < len(s) && targetByte[s[run]]&plain != 0 {
			run++
		}
		out = append(out, s[i:run]...)
		if run == len(s) {
			break
		}
		c, escaped := escapeAt(s, run)
		switch {
		case escaped && targetByte[c]&unreserved != 0:
			out = append(out, c)
		case escaped:
			out = appendEscape(out, c)
		default:
			out = appendEscape(out, s[run])
		}
		i = run + 1
		if escaped {
			i += 2
		}
	}
	return out
}

// appendEscaped appends a decoded text, and escapes its bytes that are not plain.
func appendEscaped(out []byte, text string, plain uint8) []byte {
	for i := 0; i < len(text); i++ {
		if targetByte[text[i]]&plain != 0 {
			out = append(out, text[i])
		} else {
			out = appendEscape(out, text[i])
		}
	}
	return out
}

func appendEscape(out []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(out, '%', digits[c>>4], digits[c&15])
}
