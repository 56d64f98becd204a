package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// printed is an answer as text.
func printed(t *testing.T, a report.Answer, f report.Format) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, report.Print(&out, a, f, draw.Style{ASCII: true}))
	return out.String()
}

// What stands in the tables is in canonical form, and yet nothing is taken for harmless that comes from there.
func TestNothingStoredIsPrintedRaw(t *testing.T) {
	t.Parallel()
	const bad = "=a/\x1b]0;owned\a\x1b[31m\u202e\u009b2J\r\n\"</script>"
	day := report.Day{Day: 20190629, PV: 1, NewVisitors: 1, Hot: 1}
	in := visit.Range{From: 20190629, To: 20190629}
	for name, answer := range map[string]report.Answer{
		"top":      report.Top{App: bad, Site: bad, Range: in, By: "pv", Pages: []report.Page{{URI: bad, PV: 1}}},
		"no top":   report.Top{App: bad, Site: bad, Range: in, By: "pv"},
		"days":     report.DayByDay{App: bad, Target: bad, Range: in, Days: []report.Day{day}, PV: 1, Hot: 1},
		"no days":  report.DayByDay{App: bad, Target: bad, Range: in},
		"page":     report.Overview{App: bad, Target: bad, Hot: 1, FirstDays: []report.FirstDay{{Day: day, UV: 1}}, LastDays: []report.Day{day}},
		"no page":  report.Overview{App: bad, Target: bad},
		"visitors": report.CameOn{App: bad, Target: bad, Day: 20190629, PV: 1, Visitors: []report.DayVisitor{{Rank: 1}}},
		"nobody":   report.CameOn{App: bad, Target: bad, Day: 20190629},
		"rank":     report.RankOf{App: bad, Target: bad, Ranked: report.Ranked{Rank: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := printed(t, answer, report.Text)
			var shown strings.Builder
			require.NoError(t, report.Print(&shown, answer, report.CSV, draw.Style{Width: 80}))
			require.NoError(t, report.Print(&shown, answer, report.JSON, draw.Style{Width: 80}))
			text += shown.String()
			for _, r := range text {
				require.True(t, r == '\n' || unicode.IsPrint(r), "%q in %q", r, text)
			}
			assert.NotContains(t, printed(t, answer, report.CSV), "\n\"=a", "no formula")
			assert.True(t, json.Valid([]byte(printed(t, answer, report.JSON))))
		})
	}
	var svg bytes.Buffer
	require.NoError(t, report.DayByDay{App: bad, Target: bad, Range: in, Days: []report.Day{day}}.WriteSVG(&svg))
	assert.NotContains(t, svg.String(), "</script>")
}

func TestWhatIsKeptNoLongerIsSaid(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "demo: 1,234 visitors came to a/ on 2019-06-29; who they were is not kept any more\n",
		printed(t, report.CameOn{App: "demo", Target: "a/", Day: 20190629, PV: 1234}, report.Text))
	assert.Equal(t, "demo: visitor 7 of a/ was erased, or has not come for long: nothing but the number is kept\n",
		printed(t, report.RankOf{App: "demo", Target: "a/", Ranked: report.Ranked{Rank: 7, Erased: true}}, report.Text))
}

func TestUniquesSayHowSureTheyAre(t *testing.T) {
	t.Parallel()
	for says, uniques := range map[string]report.Uniques{
		"1,234":                              {Uniques: 1234, Exact: true},
		"about 1,234 (standard error 1.6 %)": {Uniques: 1234, StandardError: 0.01625},
		"7, and 2 days of visitors who were erased": {Uniques: 7, Exact: true, Erased: 2},
	} {
		assert.Equal(t, says, uniques.String())
	}
}
