package visit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostTitle is the maximum size of a stored title in bytes.
const mostTitle = 200

// Title returns the stored form of a page's title: one line, shortened if the title is long. Invisible characters are
// removed, such as marks that change the direction of surrounding text. "" means that the page has no usable title.
func Title(sent string) string {
	if !utf8.ValidString(sent) {
		return ""
	}
	var title strings.Builder
	space := ""
	for _, r := range sent {
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

// joins reports whether an invisible character affects how its neighbours look: it joins letters and emoji,
// separates letters, or makes a letter an emoji.
func joins(r rune) bool { return r == '\u200d' || r == '\u200c' || r == '\ufe0f' }
