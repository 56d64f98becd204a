package visit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestTitle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, told, kept string }{
		{"as it is", "Prices – 例え & <b>co</b>", "Prices – 例え & <b>co</b>"},
		{"none", "", ""},
		{"of nothing that is seen", " \t\u3000\x00\u202e\u200d\ufe0f\u3164\u2800", ""},
		{"one line", "\n\tPrices\r\n \u2028of\u00a0\u3000all  ", "Prices of all"},
		{"controls", "a\x00b\x1b[2Jc\u0085d\x7f", "ab[2Jc d"},
		{"marks of direction", "\u202eevil\u202c \u2066x\u2069\u200f\u061c", "evil x"},
		{"what cannot be seen", "\ufefff\u200bo\u00ado\U000e0041\ue000", "foo"},
		{"emoji that are joined, Persian", "👩\u200d👧 ❤\ufe0f می\u200cخواهم", "👩\u200d👧 ❤\ufe0f می\u200cخواهم"},
		{"not UTF-8", "caf\xe9", ""},
		{"half a surrogate", "a\xed\xa0\x80", ""},
		{"long", strings.Repeat("a", 250), strings.Repeat("a", 200)},
		{"long, up to a character", strings.Repeat("a", 199) + "é", strings.Repeat("a", 199)},
		{"long, up to a word", strings.Repeat("a", 199) + " b", strings.Repeat("a", 199)},
		{"a megabyte", strings.Repeat("例え ", 100_000), strings.TrimSuffix(strings.Repeat("例え ", 28), " ") + " 例"},
	} {
		assert.Equal(t, c.kept, Title(c.told), c.rule)
		assert.Equal(t, c.kept, Title(c.kept), c.rule)
	}
}

func FuzzTitle(f *testing.F) {
	f.Add("a \u202e\x00é")
	f.Fuzz(func(t *testing.T, told string) {
		kept := Title(told)
		assert.True(t, utf8.ValidString(kept) && len(kept) <= mostTitle && kept == Title(kept) && kept == strings.TrimSpace(kept), "%q", kept)
	})
}
