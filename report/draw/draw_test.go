package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	t.Parallel()
	pages := Table{
		Columns: []Column{{Name: "PAGE", MayBeCut: true}, {Name: "PV", Bar: true}, {Name: "NEW"}, {Name: "SINCE"}},
		Rows: [][]any{
			{"hhui.top/home", int64(1600), int64(12), "2019-06-29"},
			{"例え.jp/一", int64(810), int64(0), "-"},
			{"cafe\u0301.example/", int64(10), int64(1), Day(20190701)},
			{"none.example/", int64(0), int64(0), ""},
		},
	}
	for _, c := range []struct {
		name  string
		style Style
		drawn []string
	}{
		{"a terminal of UTF-8", Style{Width: 100}, []string{
			"PAGE              PV                       NEW  SINCE",
			"hhui.top/home  1,600 ████████████████████   12  2019-06-29",
			"例え.jp/一       810 ██████████▏             0  -",
			"cafe\u0301.example/     10 ▏                       1  2019-07-01",
			"none.example/      0                         0",
		}},
		{"ASCII", Style{ASCII: true}, []string{
			"PAGE              PV                       NEW  SINCE",
			"hhui.top/home  1,600 ####################   12  2019-06-29",
			"例え.jp/一       810 ##########              0  -",
			"cafe\u0301.example/     10 #                       1  2019-07-01",
			"none.example/      0                         0",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, strings.Join(c.drawn, "\n")+"\n", pages.Text(c.style))
		})
	}
}

func TestLongNamesAreCutOnTerminalsAlone(t *testing.T) {
	t.Parallel()
	long := "example.com/" + strings.Repeat("a/", 200) + "end"
	table := Table{Columns: []Column{{Name: "PAGE", MayBeCut: true}, {Name: "PV", Bar: true}}, Rows: [][]any{{long, int64(7)}}}
	for _, width := range []int{20, 40, 79, 80, 132} {
		row := strings.Split(table.Text(Style{Width: width}), "\n")[1]
		assert.LessOrEqual(t, Columns(row), max(width, leastWide+gapWidth+2+1+barNarrow))
		assert.Regexp(t, `^exampl.*….*/end +7 █`, row)
	}
	table.Rows = append(table.Rows, []any{"short", int64(7)})
	lines := strings.Split(table.Text(Style{}), "\n")
	assert.True(t, strings.HasPrefix(lines[1], long+"   7 █"), lines[1])
	assert.True(
		t,
		strings.HasPrefix(lines[2], "short"+strings.Repeat(" ", mostWide-len("short"))+"   7 █"),
		"not filled up to the longest: %s",
		lines[2],
	)
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		columns int
		ascii   bool
		want    string
	}{
		{"abcdefghij", 10, false, "abcdefghij"},
		{"abcdefghij", 9, false, "abcd…ghij"},
		{"abcdefghij", 8, false, "abcd…hij"},
		{"abcdefghij", 8, true, "abc...ij"},
		{"一二三四五", 9, false, "一二…四五"},
		{"一二三四五", 8, false, "一二…五"},
		{"e\u0301e\u0301e\u0301e\u0301", 3, false, "e\u0301…e\u0301"},
		{"a/%E6%97%A5%E6%9C%AC/b", 14, false, "a/…%E6%9C%AC/b"},
		{"a/%E6%97%A5%E6%9C%AC/b", 15, false, "a/…%E6%9C%AC/b"},
		{"a/%2F%20%2F/b", 12, false, "a/%2F…%2F/b"},
		{"a/%2F%20%2F/b", 11, false, "a/%2F…%2F/b"},
		{"a/%2F%20%2F/b", 10, false, "a/%2F…/b"},
		{`a/\u202e\x1b/bc`, 13, false, `a/…\x1b/bc`},
		{"a/🇩🇪🇯🇵/b", 7, false, "a/…🇯🇵/b"},
		{"a/👍🏽👍🏽/b", 9, false, "a/…👍🏽/b"},
		{"a/हिन्दी/b", 8, false, "a/हि…/b"},
		{"abc", 2, false, ".."},
		{"abc", 0, false, ""},
	} {
		cut := Style{ASCII: c.ascii}.cut(c.text, c.columns)
		assert.Equal(t, c.want, cut)
		assert.LessOrEqual(t, Columns(cut), c.columns)
	}
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	numbers := []int64{0, 1, 50, 100, 0, 1000}
	assert.Equal(t, "▁▂▂▂▁█", Style{}.Sparkline(numbers))
	assert.Equal(t, "_..._#", Style{ASCII: true}.Sparkline(numbers))
	assert.Equal(t, "▁▁", Style{}.Sparkline([]int64{0, 0}))
	assert.Empty(t, Style{}.Sparkline(nil))
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, written := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		assert.Equal(t, written, Number(n))
	}
}

// hostile is a text that may not be written unchanged to a terminal or a browser.
var hostile = "example.com/</title><script>alert(1)</script>&\"'" + "\x1b[31m\x1b]0;owned\a\r\n\x00\u009b2J\u202egnp.exe\ufffe\xff"

func TestNothingReachesATerminalRaw(t *testing.T) {
	t.Parallel()
	table := Table{Columns: []Column{{Name: "PAGE", MayBeCut: true}}, Rows: [][]any{{hostile}, {"plain \"quoted\" \\ page"}}}
	lines := strings.Split(table.Text(Style{}), "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, `example.com/</title><script>alert(1)</script>&"'\x1b[31m\x1b]0;owned\a\r\n\x00\u009b2J\u202egnp.exe\ufffe\xff`, lines[1])
	assert.Equal(t, `plain "quoted" \ page`, lines[2])
}

func TestSVG(t *testing.T) {
	t.Parallel()
	out := Plot{Summary: hostile, Bars: []PlotBar{{Name: hostile, Label: hostile, Visitors: 40, New: 10}}}.SVG(hostile)
	for _, outside := range []string{"<script", "\x1b", "href", "@import", "src=", "<div", "NaN"} {
		assert.NotContains(t, out, outside)
	}
	assert.Equal(t, strings.Count(out, "url("), strings.Count(out, "url(#hatch)"))
	assert.Contains(t, out, "prefers-color-scheme: dark")
	texts := ""
	for decoder := xml.NewDecoder(strings.NewReader(out)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if text, is := token.(xml.CharData); is {
			texts += string(text)
		}
	}
	assert.Contains(t, texts, "<script>alert(1)</script>", "it stays text")
}

// Programs that do not understand the style use the colours in attributes.
func TestSVGNeedsNoStyle(t *testing.T) {
	t.Parallel()
	chart := Plot{Bars: []PlotBar{{Name: "2019-06-29", Visitors: 40, New: 40}}}.SVG("a")
	drawn := 0
	for decoder := xml.NewDecoder(strings.NewReader(chart)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		part, is := token.(xml.StartElement)
		colour, coloured := map[string]string{"svg": "fill", "rect": "fill", "line": "stroke"}[part.Name.Local]
		if !is || !coloured || part.Name.Local == "svg" && drawn > 0 {
			continue // an embedded picture has the colours of the outer one
		}
		drawn++
		assert.True(t, slices.ContainsFunc(part.Attr, func(a xml.Attr) bool { return a.Name.Local == colour }), "%s of %v", colour, part)
	}
	assert.Greater(t, drawn, 3)

	converter, err := exec.LookPath("rsvg-convert")
	if err != nil {
		t.Skip("rsvg-convert, which draws without a browser, is not here (Debian: librsvg2-bin)")
	}
	convert := exec.CommandContext(t.Context(), converter)
	convert.Stdin = strings.NewReader(chart)
	picture, err := convert.Output()
	require.NoError(t, err)
	decoded, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	white, _, _, _ := decoded.At(svgWide-4, svgHigh-4).RGBA()
	assert.EqualValues(t, 0xffff, white, "the paper")
	red, _, blue, _ := decoded.At(svgLeft+(svgWide-svgLeft-svgRight)/2, svgHigh-16-plotBottom-20).RGBA()
	assert.Greater(t, blue, 2*red, "the bar of new visitors")
}
