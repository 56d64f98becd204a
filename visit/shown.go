package visit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown returns a target in readable form. It decodes the percent-escapes of non-ASCII letters. It shows a host in
// Unicode if the host cannot be mistaken for another host. ParseTarget converts the result back to the same target.
//
// Shown does not decode escapes of ASCII characters, because a/b and a%2Fb would look alike. It does not decode
// escapes of invisible characters either (such as control characters), or of bytes that are not UTF-8.
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

// StoredPart converts a part of a path, as a user types it, to the form in which it is stored. It escapes non-ASCII
// letters and spaces.
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

// StoredCondition converts a filter condition that a user has typed. If the condition is about a page or an event,
// its value gets the form in which pages and events are stored. Other conditions stay unchanged. Escapes in the
// result belong to the page or event, and not to the syntax of the condition.
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

// escapedLetter decodes the escapes at the start of text. If they encode a visible non-ASCII character, it returns
// this character and the length of its escapes. Otherwise the length is 0.
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

// shownHost returns a site with its host in Unicode. If a label of the host may be mistaken for another label, it
// returns the site unchanged.
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
	local := strings.ContainsFunc(labels[len(labels)-1], isNotASCII) // the top-level domain is not ASCII
	for _, label := range labels {
		if strings.ContainsFunc(label, isNotASCII) && !isUnmistakable(label, local) {
			return site
		}
	}
	return shown + port
}

// writing is a set of scripts whose letters may occur together in a label.
type writing struct {
	scripts []*unicode.RangeTable
	// alike contains the letters that look like letters of other scripts. A label that has only such letters may be a
	// disguised name. It is shown in Unicode only if the top-level domain of the host is not ASCII.
	alike string
	// foreign means that every letter is treated as if it were in alike, because Footfall has no list of look-alikes
	// for these scripts.
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

// plainLatin has the lower-case letters of European languages, also those that are an ASCII letter with a mark above
// or through it. It lacks letters that differ even less from an ASCII letter, such as the dotless i.
var plainLatin = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 'a', Hi: 'z', Stride: 1}, {Lo: 'ß', Hi: 'ö', Stride: 1}, {Lo: 'ø', Hi: 'ÿ', Stride: 1},
	{Lo: 'ā', Hi: 'į', Stride: 2}, {Lo: 'ĵ', Hi: 'ķ', Stride: 2}, {Lo: 'ĺ', Hi: 'ľ', Stride: 2},
	{Lo: 'ł', Hi: 'ň', Stride: 2}, {Lo: 'ŋ', Hi: 'ŷ', Stride: 2}, {Lo: 'ź', Hi: 'ž', Stride: 2},
}}

// longVowel is the Japanese mark ー, which belongs to several scripts.
var longVowel = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 'ー', Hi: 'ー', Stride: 1}}}

// isUnmistakable reports whether a label cannot be mistaken for an ASCII label. All its letters must belong to one
// writing, and at least one letter must have no look-alike. If local is true (the top-level domain of the host is not
// ASCII), all letters may have look-alikes.
func isUnmistakable(label string, local bool) bool {
	return slices.ContainsFunc(writings, func(w writing) bool {
		own := false // the label has a letter that is not in w.alike
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
