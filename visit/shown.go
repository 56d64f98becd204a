package visit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown returns a target in readable form. It decodes escapes of non-ASCII letters. It shows a host in Unicode if the
// host cannot be mistaken for another host. ParseTarget parses the result as the same target.
//
// Shown does not decode escapes of ASCII, because a/b and a%2Fb would look alike. It does not decode escapes of
// invisible characters either, such as controls and marks of direction, or escapes of bytes that are not UTF-8.
func Shown(target string) string {
	host, path := target, ""
	if slash := strings.IndexByte(target, '/'); slash >= 0 {
		host, path = target[:slash], target[slash:]
	}
	if hasPunycode(host) {
		host = shownHost(host)
	}
	if strings.IndexByte(path, '%') >= 0 {
		path = shownPath(path)
	}
	return host + path
}

// StoredPart converts typed text to the stored form of a part of a path: it escapes non-ASCII letters and
// spaces.
func StoredPart(part string) string {
	out := make([]byte, 0, len(part))
	for _, c := range []byte(part) {
		if c <= ' ' || c >= 0x7f {
			out = appendEscape(out, c)
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// StoredCondition converts the page or event in a typed condition of a filter to its stored spelling. Other conditions
// stay unchanged. The escapes in the result are part of the page or event, not of the condition's syntax.
func StoredCondition(typed string) string {
	name, value, _ := strings.Cut(strings.TrimPrefix(typed, "!"), ":")
	if name != "page" && name != "event" {
		return typed
	}
	return strings.TrimSuffix(typed, value) + StoredPart(value)
}

func shownPath(path string) string {
	var out strings.Builder
	for at := 0; at < len(path); {
		letter, length := escapedLetter(path[at:])
		if length == 0 || isDrawnOver(letter) && cannotCarryMark(out.String()) {
			out.WriteByte(path[at])
			at++
			continue
		}
		out.WriteRune(letter)
		at += length
	}
	return out.String()
}

// escapedLetter returns the visible non-ASCII character whose escapes are at the start of text, and the length
// of these escapes. The length is 0 if text does not start with the escapes of a visible non-ASCII character.
func escapedLetter(text string) (letter rune, length int) {
	var bytes [utf8.UTFMax]byte
	n := 0
	for ; n < len(bytes); n++ {
		decoded, escaped := escapeAt(text, 3*n)
		if !escaped {
			break
		}
		bytes[n] = decoded
	}
	letter, size := utf8.DecodeRune(bytes[:n])
	if letter < utf8.RuneSelf || letter == utf8.RuneError || !isSeen(letter) {
		return 0, 0
	}
	return letter, 3 * size
}

func isSeen(r rune) bool {
	const blankBraille = '\u2800'
	return unicode.IsPrint(r) && r != blankBraille && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func isDrawnOver(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) }

// cannotCarryMark reports whether a text ends with a character on which no combining mark, such as an accent, may be
// drawn. A mark on a slash, for example, would hide the end of a segment.
func cannotCarryMark(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return last < utf8.RuneSelf && !unicode.IsLetter(last) && !unicode.IsDigit(last)
}

// shownHost returns a site in Unicode, unless one of its labels may be mistaken for another label.
func shownHost(site string) string {
	host, port := site, ""
	if colon := strings.LastIndexByte(site, ':'); colon >= 0 {
		host, port = site[:colon], site[colon:]
	}
	shown, err := targetIDNA.ToUnicode(host)
	if err != nil {
		return site
	}
	if again, err := targetIDNA.ToASCII(shown); err != nil || again != host {
		return site
	}
	labels := strings.Split(strings.TrimSuffix(shown, "."), ".")
	local := strings.ContainsFunc(labels[len(labels)-1], isNotASCII) // a country's top-level domain in its own script
	for _, label := range labels {
		if strings.ContainsFunc(label, isNotASCII) && !isUnmistakable(label, local) {
			return site
		}
	}
	return shown + port
}

// writing is a set of scripts whose letters may be mixed in a label.
type writing struct {
	scripts []*unicode.RangeTable
	// alike lists the letters that look like letters of other scripts. A label that has only letters from alike may
	// be a disguised name. It is not shown in Unicode, unless the top-level domain of the host is not ASCII.
	alike string
	// foreign means that no list of look-alike letters exists for the scripts, so every letter counts as a
	// look-alike.
	foreign bool
}

var writings = []writing{
	{scripts: []*unicode.RangeTable{plainLatin}},
	{scripts: []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, longVowel}},
	{scripts: []*unicode.RangeTable{unicode.Han, unicode.Bopomofo}},
	{scripts: []*unicode.RangeTable{unicode.Han, unicode.Hangul}},
	{scripts: []*unicode.RangeTable{unicode.Cyrillic}, alike: "авеһгіјӏкмнорстухѕԁԛԝъьҽпгѵѡзбԍүҳҫқ"},
	{scripts: []*unicode.RangeTable{unicode.Greek}, alike: "αβγεηικνοπρστυχωϲόάέήίύώ"},
	{scripts: []*unicode.RangeTable{unicode.Arabic}, foreign: true},
	{scripts: []*unicode.RangeTable{unicode.Hebrew}, foreign: true},
	{scripts: []*unicode.RangeTable{unicode.Thai}, foreign: true},
	{scripts: []*unicode.RangeTable{unicode.Devanagari}, foreign: true},
	{scripts: []*unicode.RangeTable{unicode.Bengali}, foreign: true},
	{scripts: []*unicode.RangeTable{unicode.Tamil}, foreign: true},
	{scripts: []*unicode.RangeTable{unicode.Georgian}, foreign: true},
	{scripts: []*unicode.RangeTable{unicode.Armenian}, foreign: true},
}

// plainLatin has the lower-case letters of European languages. It lacks letters that differ from an ASCII letter
// by less than a mark above or through the letter, such as the dotless i.
var plainLatin = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 'a', Hi: 'z', Stride: 1}, {Lo: 'ß', Hi: 'ö', Stride: 1}, {Lo: 'ø', Hi: 'ÿ', Stride: 1},
	{Lo: 'ā', Hi: 'į', Stride: 2}, {Lo: 'ĵ', Hi: 'ķ', Stride: 2}, {Lo: 'ĺ', Hi: 'ľ', Stride: 2},
	{Lo: 'ł', Hi: 'ň', Stride: 2}, {Lo: 'ŋ', Hi: 'ŷ', Stride: 2}, {Lo: 'ź', Hi: 'ž', Stride: 2},
}}

// longVowel is the Japanese mark ー, which belongs to several scripts.
var longVowel = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 'ー', Hi: 'ー', Stride: 1}}}

// isUnmistakable reports whether a label cannot be mistaken for a label in ASCII. All its letters must belong to one
// writing, and one of them must have no look-alike. If local is true (the host's top-level domain is not ASCII
// either), look-alikes are allowed.
func isUnmistakable(label string, local bool) bool {
	return slices.ContainsFunc(writings, func(w writing) bool {
		own := false // the label has a letter without a look-alike
		for _, r := range label {
			switch {
			case '0' <= r && r <= '9', r == '-':
			case !unicode.In(r, w.scripts...) || !unicode.In(r, unicode.L, unicode.Mn, unicode.Mc):
				return false
			default:
				own = own || !strings.ContainsRune(w.alike, r)
			}
		}
		return local || own && !w.foreign
	})
}
