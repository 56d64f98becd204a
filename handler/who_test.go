package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/report"
)

var nextRows = regexp.MustCompile(`<a href="([^"]*)" rel="next">Next 100`)

// Visitors are only shown to signed-in accounts, even if the numbers are public, and never by a link.
func TestDashboardShowsVisitors(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for day := range 2 {
		for i := range 130 {
			e.counting(day, fmt.Sprintf("192.0.2.%d", 10+i+day), "http://hhui.top/home")
		}
	}
	const list = "/dash/demo/hhui.top?range=all&who"
	anybody, owner, other := newPerson(e), e.member("Ann", "demo"), e.member("Bob", "shop")

	share := e.share("demo", "")
	for _, path := range []string{list, list + "&panel=who&format=csv", list + "&panel=who&format=json", "/dash/demo/hhui.top?page=/home&who",
		share + "/hhui.top?range=all&who", e.share("demo", "hhui.top") + "?who&panel=who&format=csv"} {
		for name, p := range map[string]*person{"anybody": anybody, "the owner of another app": other} {
			a := p.get(path)
			assert.Equal(t, http.StatusForbidden, a.status, "%s: %s", name, path)
			assert.NotContains(t, a.body, "192.0.2.")
		}
	}
	assert.Equal(t, http.StatusForbidden, owner.get(share+"/hhui.top?who").status, "a link shows no more to those who have signed in")
	assert.NotContains(t, anybody.get("/dash/demo/hhui.top").body, ">Visitors</a>")
	page := html.UnescapeString(owner.get("/dash/demo/hhui.top?range=all").body)
	assert.Regexp(t, `<a href="/dash/demo/hhui.top\?range=all[^"]*&who">Visitor list</a>`, page)

	var listed []string
	conn := e.Conn(e.t)
	for next := list; next != ""; {
		a := owner.get(next)
		require.Equal(t, http.StatusOK, a.status, a.body)
		found := panelSQL.FindStringSubmatch(a.body)
		require.NotNil(t, found)
		var told string
		statement := strings.TrimSuffix(html.UnescapeString(found[3]), ";")
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT coalesce(json_agg(t), '[]')::text FROM (`+statement+`) AS t`).Scan(&told),
			statement)
		shown := owner.get(html.UnescapeString(found[2])).body
		saysTheSame(t, told, shown)
		assertCSV(t, shown, owner.get(html.UnescapeString(found[1])).body)
		var read struct{ Visitors []report.VisitorOfDay }
		require.NoError(t, json.Unmarshal([]byte(shown), &read))
		rows := read.Visitors
		assert.Len(t, rows, 260, "the files have all, wherever the list is")
		for _, row := range rows[len(listed):min(len(listed)+100, len(rows))] {
			listed = append(listed, fmt.Sprint(row.Day, " ", row.Visitor))
			assert.Contains(t, a.body, row.Visitor.String())
		}
		next = ""
		if more := nextRows.FindStringSubmatch(a.body); more != nil {
			next = html.UnescapeString(more[1])
		}
	}
	var want []string
	for _, day := range []int{1, 0} {
		for i := range 130 {
			want = append(want, fmt.Sprintf("%d 192.0.2.%d", []int{20190629, 20190630}[day], 10+i+day))
		}
	}
	assert.Equal(t, want, listed)

	for _, wrong := range []string{"&after=x", "&after=20190629", "&after=20190629,x", "&after=0,192.0.2.1", "&after=20190629,fe80::1%25eth0",
		"&panel=numbers&format=csv"} {
		assert.Equal(t, http.StatusBadRequest, owner.get(list+wrong).status, wrong)
	}
	first := list + "&after=20190630,192.0.2.255" // of the day before
	assert.Contains(t, owner.get(first).body, ">192.0.2.10<")
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.EraseVisitor(ctx, "demo", "192.0.2.10")
		return err
	})
	assert.NotContains(t, owner.get(first).body, ">192.0.2.10<")
}
