package account

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"

	"footfall/visit"
)

const longestName = 100 // maximum length in characters; the table accounts has the same limit

// readName parses an account's name: one or more words, or an email address. shown is the form for display. folded is the form
// for comparisons: names that differ only in case or in variants of letters have the same folded form. readName rejects names
// that could be mistaken for another name. Such names contain invisible characters, characters that change the direction of text,
// or letters of several scripts, such as a Cyrillic а in a Latin name.
func readName(typed string) (shown, folded string, err error) {
	shown, err = precis.Nickname.String(typed)
	if err == nil {
		folded, err = precis.Nickname.CompareKey(shown)
	}
	switch {
	case strings.TrimSpace(typed) == "":
		return "", "", visit.Errorf(visit.Invalid, "name", "it is missing: write your name, or your email address")
	case err != nil || strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", "", visit.Errorf(visit.Invalid, "name",
			"it has invisible characters, or characters that change the direction of text: remove them")
	case utf8.RuneCountInString(shown) > longestName || utf8.RuneCountInString(folded) > longestName:
		return "", "", visit.Errorf(visit.Invalid, "name", "it is longer than %d characters: write a shorter one", longestName)
	case !strings.ContainsFunc(shown, unicode.IsLetter):
		return "", "", visit.Errorf(visit.Invalid, "name", "it has no letter: write one with letters")
	case hasMixedScripts(shown):
		return "", "", visit.Errorf(visit.Invalid, "name",
			"its letters are of several scripts, so it could be mistaken for another name: use one script")
	}
	return shown, folded, nil
}

// Folded returns a name in the form for comparisons (see readName). It returns an invalid name unchanged.
func Folded(typed string) string {
	if _, folded, err := readName(typed); err == nil {
		return folded
	}
	return typed
}

// mixableScripts lists the scripts that a name may mix with each other, and with letters of one other script.
var mixableScripts = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo}

// hasMixedScripts reports whether a text has letters of several scripts that a name may not mix.
func hasMixedScripts(text string) bool {
	first := ""
	for _, r := range text {
		if !unicode.IsLetter(r) || unicode.In(r, mixableScripts...) || unicode.In(r, unicode.Common, unicode.Inherited) {
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
