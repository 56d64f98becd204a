package draw

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// partsOf parses an inline drawing, which may contain neither a style nor a script.
func partsOf(t *testing.T, drawn string) (parts []xml.StartElement, texts string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader("<div>" + drawn + "</div>")); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return parts, texts
		}
		require.NoError(t, err)
		switch part := token.(type) {
		case xml.StartElement:
			assert.NotContains(t, []string{"style", "script", "image", "foreignObject"}, part.Name.Local)
			for _, a := range part.Attr {
				assert.NotEqual(t, "style", a.Name.Local)
				assert.NotRegexp(t, `^on|href`, a.Name.Local)
			}
			parts = append(parts, part)
		case xml.CharData:
			texts += string(part)
		}
	}
}

// measures returns the values of an attribute of all parts of a class.
func measures(t *testing.T, parts []xml.StartElement, class, name string) (all []float64) {
	t.Helper()
	for _, part := range parts {
		values := map[string]string{}
		for _, a := range part.Attr {
			values[a.Name.Local] = a.Value
		}
		if values["class"] == class && values[name] != "" {
			n, err := strconv.ParseFloat(strings.TrimSuffix(values[name], "%"), 64)
			require.NoError(t, err)
			all = append(all, n)
		}
	}
	return all
}

func TestPlot(t *testing.T) {
	t.Parallel()
	out := Plot{Summary: hostile, Bars: []PlotBar{
		{Name: hostile, Label: "1\u202f000 " + hostile, Visitors: 1000, New: 250, Compared: true, Before: 500},
		{Name: "b", Label: "none", Compared: true}, {Name: "c", Visitors: 10, New: 10, OutOfRange: true},
		{Name: "d", Visitors: 5, New: 0, Noted: true, Compared: true},
	}}.HTML()
	assert.NotContains(t, out, "NaN")
	parts, texts := partsOf(t, out)
	assert.Contains(t, texts, "1\u202f000 ", "the space in a number")
	assert.Contains(t, texts, "1,000", "the end of the axis")
	const high = plotRoom
	assert.InDeltaSlice(t, []float64{high * .75, high * .005}, measures(t, parts, "back", "height"), .06, "those who return")
	assert.InDeltaSlice(t, []float64{high * .25, high * .01}, measures(t, parts, "new", "height"), .06)
	assert.Equal(t, []float64{0, 25, 50, 75}, measures(t, parts, "room", "x"))
	assert.Equal(t, 1, strings.Count(out, `class="bar beside"`))
	assert.Equal(t, []float64{87.5}, measures(t, parts, "noted", "cx"), "the mark of a note, above the middle of its bar")
	_, line, _ := strings.Cut(out, `class="before"`)
	assert.Equal(t, 4, strings.Count(line, "<line"), "three steps, one between two of them, and a gap")

	for _, few := range [][]PlotBar{nil, {{Name: "a"}}, make([]PlotBar, 400)} {
		out := Plot{Bars: few}.HTML()
		parts, _ := partsOf(t, out)
		assert.LessOrEqual(t, len(measures(t, parts, "name", "x"))+len(measures(t, parts, "name spare", "x")), plotNames)
		assert.NotContains(t, out, "NaN")
	}

	out = Plot{Bars: []PlotBar{{Label: "a day", Link: `/?a="&b`}, {}}}.HTML()
	assert.Contains(t, out, `role="group"`)
	assert.Equal(t, 1, strings.Count(out, `<a href="/?a=&#34;&amp;b" tabindex="-1"><title>a day`))
}

func TestPlotsEndAboveTheirBars(t *testing.T) {
	t.Parallel()
	for most, top := range map[int64]int64{0: 1, 1: 1, 5: 5, 6: 6, 7: 8, 1126: 1500, 1000: 1000, 123456: 150000} {
		ticks := Plot{Bars: []PlotBar{{Visitors: most}}}.ticks()
		assert.Equal(t, top, ticks[len(ticks)-1], "for %d", most)
		assert.LessOrEqual(t, len(ticks), plotTicks+1)
		assert.Zero(t, ticks[0])
	}
}

func TestSmallDrawings(t *testing.T) {
	t.Parallel()
	for _, numbers := range [][]int64{nil, {1}, {0, 0, 0}, {3, 1, 2}} {
		drawn := Spark(hostile, numbers, 4)
		parts, _ := partsOf(t, drawn)
		assert.Len(t, parts, 5)
		assert.NotContains(t, drawn, "NaN")
	}
	parts, _ := partsOf(t, Share("rank", 1, 4)+Share("rank", 0, 0)+Share("rank", 1, 1_000_000)+Parts(1, 3)+Parts(0, 0))
	var widths []string
	for _, part := range parts {
		for _, a := range part.Attr {
			if part.Name.Local == "rect" && a.Name.Local == "width" {
				widths = append(widths, a.Value)
			}
		}
	}
	assert.Equal(t, []string{"25.00%", "0.00%", "0.50%", "100%", "25.00%", "100%", "0.00%"}, widths)
}
