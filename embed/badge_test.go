package embed

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var drawnColor = regexp.MustCompile(`^(#[0-9a-f]{3}|#[0-9a-f]{6}|none|url\(#gloss\))$`)

// Whatever the parameters, a badge is an SVG of elements that neither run nor load anything.
func FuzzBadge(f *testing.F) {
	for _, seed := range [][3]string{
		{"visits", "green", "flat"}, {`</title><script>alert(1)</script>`, `red" onload="alert(1)`, "plain"},
		{"访问\u202e\x00", "#ABC", "for-the-badge"},
		{"&lt;]]>", "url(javascript:1)", "x"}, {"\xff\xfe", "0b6e63", "flat-square"}, {strings.Repeat("W", 100), "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], int64(len(seed[0])))
	}
	f.Fuzz(func(t *testing.T, label, color, style string, number int64) {
		b, err := ReadBadge(url.Values{"label": {label}, "color": {color}, "style": {style}})
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
		decoder := xml.NewDecoder(strings.NewReader(string(b.SVG(&number))))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			element, is := token.(xml.StartElement)
			if !is {
				continue
			}
			require.Contains(t, []string{"svg", "title", "style", "g", "rect", "text", "clipPath", "linearGradient", "stop"},
				element.Name.Local)
			for _, a := range element.Attr {
				require.False(t, strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href", a.Name.Local)
				if a.Name.Local == "fill" || a.Name.Local == "stroke" {
					require.Regexp(t, drawnColor, a.Value)
				}
			}
		}
		require.True(t, json.Valid(b.JSON(&number)))
	})
}
