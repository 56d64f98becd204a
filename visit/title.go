package visit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostTitle is the maximum size of a stored title in bytes.
const mostTitle = 200

// Title returns the form in which a page's title is stored: one line, cut off if it is too long. Invisible characters
// are removed, for example marks that change the direction of the text. "" means that the page has no usable title.
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

// joins reports whether an invisible character changes how the characters next to it look: it joins letters or emoji,
// separates letters, or makes a letter an emoji.
func joins(r rune) bool { return r == '\u200d' || r == '\u200c' || r == '\ufe0f' }
