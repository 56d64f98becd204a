package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/report/draw"
	"footfall/visit"
)

// printed returns an answer as text.
func printed(t *testing.T, a Answer, f Format) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, Print(&out, a, f, draw.Style{ASCII: true}))
	return out.String()
}

// Stored values are in canonical form, but printing still escapes all of them.
func TestNothingStoredIsPrintedRaw(t *testing.T) {
	t.Parallel()
	const bad = "=a/\x1b]0;owned\a\x1b[31m\u202e\u009b2J\r\n\"</script>"
	day := Day{Day: 20190629, Pv: 1, NewVisitors: 1, Hot: 1}
	in := visit.Range{From: 20190629, To: 20190629}
	for name, answer := range map[string]Answer{
		"top": &Rows{Look: Look{App: bad, Target: bad, In: in, By: "pv"}, Name: "pages",
			List: []TitledPage{{PageBetween{URI: bad, Shown: visit.Shown(bad), PV: 1}, bad}}},
		"no top":   &Rows{Look: Look{App: bad, Target: bad, In: in, By: "pv"}, Name: "pages", List: []TitledPage{}},
		"days":     dayByDay{App: bad, Target: bad, Range: in, Days: []Day{day}, PV: 1},
		"no days":  dayByDay{App: bad, Target: bad, Range: in},
		"page":     overview{App: bad, Target: bad, Hot: 1, FirstDays: []firstDay{{Day: day, UV: 1}}, LastDays: []Day{day}},
		"no page":  overview{App: bad, Target: bad},
		"visitors": &Rows{Look: Look{App: bad, Target: bad}, Name: "visitors", List: []DayVisitor{{Rank: 1}}, Of: VisitorCount{20190629, 1, true}},
		"nobody":   &Rows{Look: Look{App: bad, Target: bad}, Name: "visitors", List: []DayVisitor{}, Of: VisitorCount{Day: 20190629}},
		"rank":     &Rows{Look: Look{App: bad, Target: bad}, List: []Ranked{{Rank: 1}}, One: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := printed(t, answer, Text)
			var shown strings.Builder
			require.NoError(t, Print(&shown, answer, CSV, draw.Style{Width: 80}))
			require.NoError(t, Print(&shown, answer, JSON, draw.Style{Width: 80}))
			text += shown.String()
			for _, r := range text {
				require.True(t, r == '\n' || unicode.IsPrint(r), "%q in %q", r, text)
			}
			assert.NotContains(t, printed(t, answer, CSV), "\n\"=a", "no formula")
			assert.True(t, json.Valid([]byte(printed(t, answer, JSON))))
		})
	}
	var svg bytes.Buffer
	require.NoError(t, Print(&svg, dayByDay{App: bad, Target: bad, Range: in, Days: []Day{day}}, SVG, draw.Style{}))
	assert.NotContains(t, svg.String(), "</script>")
}

func TestDaysNoLongerKeptAreReported(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "demo: 1,234 visitors came to a/ on 2019-06-29; the list of visitors is no longer kept\n",
		printed(t, &Rows{Look: Look{App: "demo", Target: "a/"}, List: []DayVisitor{}, Of: VisitorCount{20190629, 1234, false}}, Text))
	assert.Equal(t, "demo: visitor 7 of a/ was erased or forgotten: only the rank is still stored\n",
		printed(t, &Rows{Look: Look{App: "demo", Target: "a/"}, List: []Ranked{{Rank: 7, Erased: true}}}, Text))
}

func TestUniquesReportTheirAccuracy(t *testing.T) {
	t.Parallel()
	for says, uniques := range map[string]Uniques{
		"1,234":                              {Uniques: 1234, Exact: true},
		"about 1,234 (standard error 1.6 %)": {Uniques: 1234, StandardError: 0.01625},
		"7, and 2 days of visitors who were erased": {Uniques: 7, Exact: true, Erased: 2},
	} {
		assert.Equal(t, says, uniques.String())
	}
}
