package handler

import (
	"context"
	"html"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"footfall/admin"
)

func TestNotesAreShownOnCharts(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	e.counting(3, "192.168.0.1", "http://other.example/")
	shared := e.share("demo", "hhui.top")
	const hostile = `<script>hacked=1</script>"';--.`
	for _, n := range [][]string{{"2019-06-29", hostile, ""}, {"2019-06-30", "Of one site", "hhui.top"},
		{"2019-07-02", "Of another", "other.example"}, {"2018-01-01", "Long ago", ""}} {
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			_, err := a.AddNote(ctx, "demo", n[0], n[1], n[2])
			return err
		})
	}
	for path, notes := range map[string]int{"/dash/demo/hhui.top": 2, "/dash/demo/hhui.top?page=/home": 2, shared: 1} {
		a := newPerson(e).get(path)
		assert.Equal(t, notes, strings.Count(a.body, `<circle class="noted" cx="`)-strings.Count(a.body, `cx="5" cy="5"`), path)
		ofApp := notes == 2 // a link to one site does not show notes of the whole app
		assert.Equal(t, ofApp, strings.Contains(a.body, html.EscapeString(hostile)[:20]), path)
		assert.Equal(t, 1, strings.Count(a.body, "</time> – <bdi>Of one site</bdi>"), "only below the chart")
		assert.Contains(t, a.body, "<td><bdi>2019-06-30 Of one site</bdi></td>")
		assert.NotContains(t, a.body, "Of another")
		assert.NotContains(t, a.body, "Long ago")
		assert.NotContains(t, a.body, "<script>hacked")
	}
	rows := e.get("/dash/demo/hhui.top?panel=chart&format=json&range=all&period=month").body
	assert.Contains(t, rows, `"notes":["2019-06-29 \u003cscript`)
	assert.Contains(t, e.get("/dash/demo/hhui.top?panel=chart&format=csv").body, `"2019-06-30 Of one site"`)
	assert.Contains(t, e.get("/dash/demo/other.example").body, "Of another")
}
