package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"

	"footfall/visit"
)

const longestName = 100 // characters: the table knows

// readName reads the name of an account as people type it: a word or several, or an address of mail.
// folded is how names are compared, without case and forms of the same letter. A name that could
// be read as another one is refused: with characters that are invisible or turn the direction, or
// with letters of several scripts, as a Latin name with a Cyrillic а.
func readName(typed string) (shown, folded string, err error) {
	shown, err = precis.Nickname.String(typed)
	if err == nil {
		folded, err = precis.Nickname.CompareKey(shown)
	}
	switch {
	case strings.TrimSpace(typed) == "":
		return "", "", visit.Errorf(visit.Invalid, "name", "it is missing: write your name, or your address of mail")
	case err != nil || strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", "", visit.Errorf(visit.Invalid, "name", "it has characters that cannot be seen, or that turn others round: leave them out")
	case utf8.RuneCountInString(shown) > longestName || utf8.RuneCountInString(folded) > longestName:
		return "", "", visit.Errorf(visit.Invalid, "name", "it is longer than %d characters: write a shorter one", longestName)
	case !strings.ContainsFunc(shown, unicode.IsLetter):
		return "", "", visit.Errorf(visit.Invalid, "name", "it has no letter: write one with letters")
	case mixed(shown):
		return "", "", visit.Errorf(visit.Invalid, "name",
			"its letters are of several scripts, so that it could be read as another name: use one")
	}
	return shown, folded, nil
}

// Folded is a name as names are compared; one that nobody can have is as it was typed.
func Folded(typed string) string {
	if _, folded, err := readName(typed); err == nil {
		return folded
	}
	return typed
}

// together are scripts that one text is written in, also with the letters of another.
var together = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo}

// mixed reports whether a text has letters of scripts that do not go together.
func mixed(text string) bool {
	first := ""
	for _, r := range text {
		if !unicode.IsLetter(r) || unicode.In(r, together...) || unicode.In(r, unicode.Common, unicode.Inherited) {
			continue
		}
		for script, table := range unicode.Scripts {
			if !unicode.Is(table, r) {
				continue
			}
			if first != "" && first != script {
				return true
			}
			first = script
		}
	}
	return false
}
