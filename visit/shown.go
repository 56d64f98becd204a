package visit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown returns a target as people read it: escapes of letters that are not ASCII as these letters,
// and a host in Unicode where it cannot be taken for another. What it shows is read as the same
// target by ParseTarget.
//
// Everything else stays as it is stored: escapes of ASCII, without which a/b and a%2Fb would look
// alike; of what cannot be seen, as controls and marks of direction; and of bytes that are not
// UTF-8.
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

// StoredPart returns part of a path that somebody has typed as it is stored: letters that are not
// ASCII, and spaces, as escapes.
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

// StoredCondition returns a condition of a filter that somebody has typed with its pages or events as they are
// stored. Their escapes of letters are part of the target, and not of how a condition is written.
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
		if length == 0 || isDrawnOver(letter) && hangsInTheAir(out.String()) {
			out.WriteByte(path[at])
			at++
			continue
		}
		out.WriteRune(letter)
		at += length
	}
	return out.String()
}

// escapedLetter returns the character that is not ASCII, and can be seen, with whose escapes a text
// begins, and how long they are; 0 if it begins otherwise.
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

// isSeen reports whether a character leaves something on the screen.
func isSeen(r rune) bool {
	const blankBraille = '\u2800'
	return unicode.IsPrint(r) && r != blankBraille && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func isDrawnOver(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) }

// hangsInTheAir reports whether a text ends with nothing over which a mark may be drawn: over a
// slash, say, it would hide where a segment ends.
func hangsInTheAir(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return last < utf8.RuneSelf && !unicode.IsLetter(last) && !unicode.IsDigit(last)
}

// shownHost returns a host, with its port, in Unicode, unless one of its labels may look like
// another one.
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
	local := strings.ContainsFunc(labels[len(labels)-1], isNotASCII) // a domain of a country that writes so
	for _, label := range labels {
		if strings.ContainsFunc(label, isNotASCII) && !isUnmistakable(label, local) {
			return site
		}
	}
	return shown + port
}

// writing is a way to write, of whose letters a label may consist.
type writing struct {
	scripts []*unicode.RangeTable
	// alike are letters that look like those of other scripts. A label of nothing else is a name in
	// disguise, unless its domain is written so as a whole.
	alike string
	// foreign are those whose likenesses nobody has listed here.
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

// plainLatin are lower-case letters of European languages. Not among them are those that differ
// from a letter of ASCII by less than a mark above or through it, as the i without its dot.
var plainLatin = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 'a', Hi: 'z', Stride: 1}, {Lo: 'ß', Hi: 'ö', Stride: 1}, {Lo: 'ø', Hi: 'ÿ', Stride: 1},
	{Lo: 'ā', Hi: 'į', Stride: 2}, {Lo: 'ĵ', Hi: 'ķ', Stride: 2}, {Lo: 'ĺ', Hi: 'ľ', Stride: 2},
	{Lo: 'ł', Hi: 'ň', Stride: 2}, {Lo: 'ŋ', Hi: 'ŷ', Stride: 2}, {Lo: 'ź', Hi: 'ž', Stride: 2},
}}

// longVowel is the mark ー of Japanese, which belongs to several scripts.
var longVowel = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 'ー', Hi: 'ー', Stride: 1}}}

// isUnmistakable reports whether a label is written in one way, with letters that tell it apart
// from a label in ASCII. Local says that its domain is not ASCII either.
func isUnmistakable(label string, local bool) bool {
	return slices.ContainsFunc(writings, func(w writing) bool {
		own := false // has a letter that looks like no other
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
