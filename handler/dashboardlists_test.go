package handler

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/report"
)

// manyPages adds pages to hhui.top, which has one page, so that it has n. Each number orders the pages differently.
func (e *edge) manyPages(n int) {
	e.t.Helper()
	_, err := e.Conn(e.t).Exec(e.t.Context(), `
		WITH made AS (
			INSERT INTO footfall.pages (app_id, site_id, uri)
			SELECT s.app_id, s.id, 'hhui.top/p' || n FROM footfall.pages AS s, generate_series(2, $1::integer) AS n WHERE s.uri = 'hhui.top'
			RETURNING id, site_id, substr(uri, 11)::integer AS n
		), numbers AS (
			SELECT id, site_id, 2 * $1::integer + n * 7919% $1::integer AS hot, $1::integer + n AS pv, $1::integer + 1 - n AS uv FROM made
		), counted AS (
			INSERT INTO footfall.counters (page_id, hot, pv, uv) SELECT id, hot, pv, uv FROM numbers
		)
		INSERT INTO footfall.days (page_id, site_id, day_id, hot, pv, new_visitors) SELECT id, site_id, 20190629, hot, pv, uv FROM numbers`, n)
	require.NoError(e.t, err)
}

var (
	listedPage = regexp.MustCompile(`<a href="[^"]*" title="(hhui\.top/[^"]*)">`)
	allPages   = regexp.MustCompile(`<a href="([^"]*)">(All [0-9][^<]*)</a>`)
	nextPages  = regexp.MustCompile(`<a href="([^"]*)" rel="next">Next 100`)
)

// walks reads a list in parts.
func (e *edge) walks(path string) (listed []string, pages int) {
	e.t.Helper()
	for next := path; next != ""; pages++ {
		a := e.get(next)
		require.Equal(e.t, http.StatusOK, a.status, a.body)
		for _, found := range listedPage.FindAllStringSubmatch(a.body, -1) {
			listed = append(listed, html.UnescapeString(found[1]))
		}
		next = ""
		if more := nextPages.FindStringSubmatch(a.body); more != nil {
			next = html.UnescapeString(more[1])
		}
	}
	return listed, pages
}

// uris returns the pages of a file, in its order.
func (e *edge) uris(path string) (uris []string) {
	e.t.Helper()
	a := e.get(path)
	require.Equal(e.t, http.StatusOK, a.status)
	if strings.HasSuffix(path, "json") {
		var read struct{ Pages []report.Page }
		require.NoError(e.t, json.Unmarshal([]byte(a.body), &read))
		for _, row := range read.Pages {
			uris = append(uris, row.URI)
		}
		return uris
	}
	lines, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	require.NoError(e.t, err)
	require.Equal(e.t, "uri", lines[0][0])
	for _, line := range lines[1:] {
		uris = append(uris, line[0])
	}
	return uris
}

// A list shows the number of its rows, and leads to all of them in the same order.
func TestDashboardListsAreWhole(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const site = "/dash/demo/hhui.top"
	e.counting(0, "192.0.2.1", "http://hhui.top/home")
	assert.NotRegexp(t, allPages, e.get(site).body, "one is all")
	e.manyPages(207)
	conn := e.Conn(t)
	for by, column := range map[string]string{"": "pv", "pv": "pv", "uv": "new_visitors", "hot": "hot"} {
		want := dbtest.Column[string](t, conn,
			`SELECT p.uri FROM footfall.pages AS p JOIN footfall.days AS d ON d.page_id = p.id WHERE p.site_id IS NOT NULL ORDER BY d.`+column+
				` DESC, p.id`)
		require.Len(t, want, 207)
		first, _ := e.walks(site + "?by=" + by)
		assert.Equal(t, want[:10], first, by)
		all := allPages.FindStringSubmatch(e.get(site + "?by=" + by).body)
		require.NotNil(t, all)
		assert.Equal(t, "All 207", all[2])
		listed, parts := e.walks(html.UnescapeString(all[1]))
		assert.Equal(t, want, listed, by)
		assert.Equal(t, 3, parts)
		for _, format := range []string{"csv", "json"} {
			assert.Equal(t, want, e.uris(site+"?by="+by+"&panel=pages&format="+format), by)
		}
		found := slices.DeleteFunc(slices.Clone(want), func(uri string) bool { return !strings.Contains(uri, "/p1") })
		listed, parts = e.walks(site + "?all&find=/P1&by=" + by)
		assert.Equal(t, found, listed, by)
		assert.Equal(t, 2, parts, "100 and some")
	}
	assert.Contains(t, e.get(site+"?all&skip=200").body, "201–207 of 207")
	assert.Contains(t, e.get(site+"?all&skip=300").body, "There are only 207")
	assert.Regexp(t, `>All 1[0-9]+</a>`, e.get(site+"?find=/p1").body)
	for _, wrong := range []string{"x", "-1", "10001"} {
		assert.Equal(t, http.StatusBadRequest, e.get(site+"?all&skip="+wrong).status, wrong)
	}

	for i := range 101 {
		e.counting(0, "192.0.2.1", fmt.Sprintf("http://s%03d.example/", i))
	}
	app := e.get("/dash/demo?sort=site").body
	assert.Contains(t, app, "1–100 of 102")
	assert.NotContains(t, app, "s100.example")
	assert.Contains(t, e.get("/dash/demo?sort=site&skip=100").body, "s100.example")
}

// A visitor who opens a page many times a day raises its page views, but not its place.
func TestPagesAreOrderedByVisits(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for range 9 {
		e.counting(0, "192.0.2.1", "http://hhui.top/reloaded")
	}
	for day := range 2 {
		e.counting(day, "192.0.2.2", "http://hhui.top/read")
		e.counting(day, "192.0.2.3", "http://hhui.top/read")
	}
	for visitor := range 2 {
		e.counting(1, fmt.Sprintf("192.0.2.%d", visitor+2), "http://hhui.top/shared")
	}
	e.counting(1, "192.0.2.2", "http://other.example/")
	const site = "/dash/demo/hhui.top"
	heads := regexp.MustCompile(`aria-sort="descending"><(?:a|span)[^>]*>([^<]*)<`)
	for _, c := range []struct {
		path, by string
		pages    []string
	}{
		{site, "Visits", []string{"/read", "/shared", "/reloaded"}},
		{site + "?all", "Visits", []string{"/read", "/shared", "/reloaded"}},
		{site + "?by=pv", "Visits", []string{"/read", "/shared", "/reloaded"}},
		{site + "?by=hot", "Page views", []string{"/reloaded", "/read", "/shared"}},
		{site + "?find=e", "Visits", []string{"/read", "/shared", "/reloaded"}},
		{site + "?find=e&by=change", "Visits", []string{"/read", "/shared", "/reloaded"}},
		{site + "?from=2019-06-29&to=2019-06-29", "Visitors", []string{"/read", "/reloaded"}},
		{site + "?where=page:/*", "Visits", []string{"/read", "/shared", "/reloaded"}},
		{"/dash/demo", "Visits", []string{"/read", "/shared", "/reloaded"}},
	} {
		body := e.get(c.path).body
		_, list, _ := strings.Cut(body, `class="rows pages"`)
		list, _, _ = strings.Cut(list, "</table>")
		var pages []string
		for _, found := range listedPage.FindAllStringSubmatch(list, -1) {
			pages = append(pages, strings.TrimPrefix(found[1], "hhui.top"))
		}
		assert.Equal(t, c.pages, pages, c.path)
		if head := heads.FindStringSubmatch(list); assert.NotNil(t, head, c.path) {
			assert.Equal(t, c.by, head[1], c.path)
		}
	}
}

// The server orders lists by change, over all rows and not only the shown ones. They have two numbers unless more are
// requested.
func TestDashboardListsByChange(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	visits := func(day, page, visitors int, from string) {
		e.Clock.Set(noon.AddDate(0, 0, day))
		for i := range visitors {
			e.brings(100*(day%2)+10*page+i, fmt.Sprintf("http://hhui.top/p%d", page), from)
		}
	}
	visits(0, 0, 1, "") // the first day, which is incomplete
	for i, of := range [][2]int{{1, 2}, {3, 1}} {
		day := 1 + 7*i
		for page := range 9 {
			visits(day, page, 5, "https://a.example/")
		}
		visits(day, 9, of[0], "https://b.example/")
		visits(day, 10, of[1], "https://b.example/")
	}
	e.Close() // also adds up the tags
	e.Clock.Set(noon.AddDate(0, 0, 9))
	const site = "/dash/demo/hhui.top?from=2019-07-07&to=2019-07-07"
	usual := e.get(site).body
	assert.NotContains(t, pagesOn(usual), "hhui.top/p10")
	assert.NotContains(t, usual, `class="n change"`)
	assert.Contains(t, usual, "More columns")
	byChange := e.get(site + "&by=change").body
	assert.Equal(t, "hhui.top/p9", pagesOn(byChange)[0])
	assert.Contains(t, byChange, `aria-sort="descending"><a href="/dash/demo/hhui.top?from=2019-07-07&amp;to=2019-07-07&amp;by=change#pages"`)
	all := e.get(site + "&by=change&all").body
	assert.Equal(t, "hhui.top/p10", pagesOn(all)[10], "which has lost most")
	assert.Equal(t, []string{"a.example 45 44", "b.example 4 3"}, e.tagsOn(site, "from"))
	assert.Equal(t, []string{"b.example 4 3", "a.example 45 44"}, e.tagsOn(site+"&by=change", "from"))
}

// Files have all rows, however many: they are read and sent in parts.
func TestDashboardFilesAreWhole(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const site = "/dash/demo/hhui.top"
	e.counting(0, "192.0.2.1", "http://hhui.top/home")
	e.manyPages(report.DeepestTop + 500)
	want := desk.Column[string](t, e.Desk, `SELECT uri FROM footfall.pages WHERE site_id IS NOT NULL ORDER BY uri COLLATE "C"`)
	for _, format := range []string{"csv", "json"} {
		assert.True(t, slices.Equal(want, e.uris(site+"?panel=pages&format="+format)), format)
		assert.True(t, slices.Equal(want[1:], e.uris(site+"?find=/p&panel=search&format="+format)), "all but /home: %s", format)
	}
	assert.Contains(t, e.get(site).body, "All, more than 10")
	last := e.get(site + "?all&skip=9900").body
	assert.Len(t, listedPage.FindAllString(last, -1), 100)
	assert.NotRegexp(t, nextPages, last)
	assert.Contains(t, last, "The CSV and JSON files have all rows")
}

// A file that cannot be read to its end is cut off visibly.
func TestDashboardFilesThatBreakAreCut(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	s := newService(e.options)
	r := &reports{s}
	breaks := report.Report{Name: "sites", Read: func(_ context.Context, _ *report.Reader, l report.Look) (*report.Rows, error) {
		if l.After.Name != "" {
			return nil, errors.New("gone")
		}
		l.After.Name = "more"
		return &report.Rows{Name: "sites", List: make([]report.Site, 1000), Follow: &l}, nil
	}}
	s.routes = []route{{"/file", getOnly, func(c echo.Context) error {
		return r.serve(c, breaks, s.Cells.Home(), s.Cells.Home().Reports, report.Look{App: "demo"},
			"csv")
	}}}
	response, err := http.Get(listen(t, s.echo(newMetrics(prometheus.NewRegistry())), s.Log) +
		"/file") //nolint:noctx // the test's own server
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, string(body))
}
