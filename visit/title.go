package visit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostTitle is how many bytes of a title are kept.
const mostTitle = 200

// Title is the title of a page as it is kept: one line, without what cannot be seen, such as what turns
// the direction of the text around it, and its beginning alone where it is long. "" is none.
func Title(told string) string {
	if !utf8.ValidString(told) {
		return ""
	}
	var title strings.Builder
	space := ""
	for _, r := range told {
		if unicode.IsSpace(r) && title.Len() > 0 {
			space = " "
		}
		if !isSeen(r) && (title.Len() == 0 || !joins(r)) || r == ' ' {
			continue
		}
		if title.Len()+len(space)+utf8.RuneLen(r) > mostTitle {
			break
		}
		title.WriteString(space)
		title.WriteRune(r)
		space = ""
	}
	return title.String()
}

// joins reports whether a character that is not seen makes others look as they should: it joins letters and
// emoji, keeps letters apart, or makes an emoji of a letter.
func joins(r rune) bool { return r == '\u200d' || r == '\u200c' || r == '\ufe0f' }
