package handler

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
)

// notes sends the form of notes of an app, with the token of its page.
func (p *person) notes(app string, fields ...string) answer {
	p.t.Helper()
	found := formToken.FindStringSubmatch(p.get("/note?app=" + app).body)
	require.NotNil(p.t, found)
	form := url.Values{"token": {found[1]}, "app": {app}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return p.do(http.MethodPost, "/note", form)
}

// noted is all that the table has of notes.
func (e *edge) noted() (rows string) {
	e.t.Helper()
	require.NoError(e.t, dbtest.Connect(e.t, e.database).QueryRow(e.t.Context(), `
		SELECT coalesce(string_agg(concat_ws('|', app, site, day_id, note), ' ' ORDER BY app, day_id, note), '') FROM report.notes`).Scan(&rows))
	return rows
}

func TestNotesAreWrittenByThoseWhoMay(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	reader, writer, ofDemo := newPerson(e), newPerson(e), newPerson(e)
	require.Equal(t, http.StatusSeeOther, reader.signsIn("/dash/shop", e.key("shop", counter.ScopeRead)).status)
	require.Equal(t, http.StatusSeeOther, writer.signsIn("/dash/shop", e.key("shop", counter.ScopeRead, counter.ScopeNote)).status)
	require.Equal(t, http.StatusSeeOther, ofDemo.signsIn("/enter", e.key("demo", counter.ScopeRead, counter.ScopeNote)).status)
	require.Equal(t, http.StatusForbidden, newPerson(e).signsIn("/dash/shop", e.key("shop", counter.ScopeNote)).status, "a key that does not let them look")

	form := []string{"day", "2019-06-29", "text", "A new version"}
	for name, p := range map[string]*person{"nobody": newPerson(e), "who may read": reader, "who may write of another app": ofDemo} {
		p.get("/enter") // gives the token of forms
		missing, closed := p.get("/note?app=shoq"), p.get("/note?app=shop")
		assert.Equal(t, http.StatusForbidden, closed.status, name)
		assert.Equal(t, strings.ReplaceAll(closed.body, "/dash/shop", "/dash/shoq"), missing.body, name)
		assert.Equal(t, http.StatusForbidden, p.notes("shop", form...).status, name)
	}
	assert.Equal(t, http.StatusForbidden, newPerson(e).notes("demo", form...).status, "an open app, which everybody may look at")
	for _, token := range []string{"", "guessed", strings.Repeat("A", 43)} {
		a := writer.do(http.MethodPost, "/note", url.Values{"token": {token}, "app": {"shop"}, "day": {"2019-06-29"}, "text": {"forged"}})
		assert.Equal(t, http.StatusForbidden, a.status, "a form of another site's page")
	}
	for _, wrong := range [][]string{
		{"day", "2019-02-29", "text", "x"}, {"day", "", "text", "x"}, {"day", "1066-10-14", "text", "x"}, {"day", "2019-06-29", "text", " "},
		{"day", "2019-06-29", "text", strings.Repeat("ü", 201)}, {"day", "2019-06-29", "text", "a\nb"}, {"day", "2019-06-29", "text", "a\u202eb"}, {"day", "2019-06-29", "text", "a\xff"},
		{"day", "2019-06-29", "text", "x", "site", "other.example"}, {"day", "2019-06-29", "text", "x", "site", "a b"}, {"remove", "x"},
	} {
		a := writer.notes("shop", wrong...)
		assert.Equal(t, http.StatusBadRequest, a.status, wrong)
		assert.Contains(t, a.body, `role="alert"`, wrong)
	}
	assert.Equal(t, http.StatusNotFound, writer.notes("shop", "remove", "999").status)
	require.Empty(t, e.noted())

	a := writer.notes("shop", append(form, "site", "example.com")...)
	assert.Equal(t, http.StatusSeeOther, a.status, a.body)
	assert.Equal(t, "/note?app=shop&site=example.com", a.header.Get("Location"))
	assert.Equal(t, http.StatusSeeOther, ofDemo.notes("demo", "day", "today", "text", strings.Repeat("ü", 200)).status)
	require.Equal(t, "demo|20190629|"+strings.Repeat("ü", 200)+" shop|example.com|20190629|A new version", e.noted())
	var number string
	require.NoError(t, dbtest.Connect(e.t, e.database).QueryRow(t.Context(), `SELECT max(id) FROM footfall.notes WHERE text LIKE 'A%'`).Scan(&number))
	assert.Equal(t, http.StatusNotFound, ofDemo.notes("demo", "remove", number).status, "another app's")
	assert.Contains(t, writer.get("/note?app=shop").body, `name="remove" value="`+number+`"`)
	assert.Equal(t, http.StatusSeeOther, writer.notes("shop", "remove", number).status)
	assert.Equal(t, http.StatusNotFound, writer.notes("shop", "remove", number).status)
	assert.NotContains(t, e.noted(), "A new version")

	_, err := dbtest.Connect(e.t, e.database).Exec(t.Context(), `
		INSERT INTO footfall.notes (app_id, day_id, text) SELECT id, 20190629, 'one of many' FROM footfall.apps, generate_series(1, 1000) WHERE name = 'shop'`)
	require.NoError(t, err)
	assert.Contains(t, writer.notes("shop", form...).body, "as many as it may have")
}

func TestNotesAreShownOnCharts(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	e.counting(3, "192.168.0.1", "http://other.example/")
	shared, writer := e.share("demo", "hhui.top"), newPerson(e)
	require.Equal(t, http.StatusSeeOther, writer.signsIn("/enter", e.key("demo", counter.ScopeRead, counter.ScopeNote)).status)
	const hostile = `<script>hacked=1</script>"';--.`
	for _, n := range [][]string{{"2019-06-29", hostile, ""}, {"2019-06-30", "Of one site", "hhui.top"}, {"2019-06-30", "Of another", "other.example"}, {"2018-01-01", "Long ago", ""}} {
		require.Equal(t, http.StatusSeeOther, writer.notes("demo", "day", n[0], "text", n[1], "site", n[2]).status)
	}
	for path, notes := range map[string]int{"/dash/demo/hhui.top": 2, "/dash/demo/hhui.top?page=/home": 2, shared: 1} {
		a := newPerson(e).get(path)
		assert.Equal(t, notes, strings.Count(a.body, `<circle class="noted" cx="`)-strings.Count(a.body, `cx="5" cy="5"`), path)
		ofApp := notes == 2 // a link to one site does not show what was noted of the whole app
		assert.Equal(t, ofApp, strings.Contains(a.body, html.EscapeString(hostile)[:20]), path)
		assert.Equal(t, ofApp, strings.Contains(a.body, "Noted of 29 Jun: "), path)
		assert.Contains(t, a.body, "Noted of 30 Jun: Of one site.")
		assert.Contains(t, a.body, "<td><bdi>2019-06-30 Of one site</bdi></td>")
		assert.NotContains(t, a.body, "Of another")
		assert.NotContains(t, a.body, "Long ago")
		assert.NotContains(t, a.body, "<script>hacked")
		assert.NotContains(t, a.body, "/note?")
	}
	assert.Contains(t, writer.get("/dash/demo/hhui.top").body, "/note?app=demo&amp;site=hhui.top")
	rows := e.get("/dash/demo/hhui.top?panel=chart&format=json&range=all&period=month").body
	assert.Contains(t, rows, `"notes":["2019-06-29 \u003cscript`)
	assert.Contains(t, e.get("/dash/demo/hhui.top?panel=chart&format=csv").body, `"2019-06-30 Of one site"`)
	assert.Contains(t, e.get("/dash/demo/other.example").body, "Of another")
}
