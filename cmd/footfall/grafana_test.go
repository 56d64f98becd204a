package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/visit"
	"footfall/web/words"
)

// dashboard contains the checked fields of Grafana's dashboards.
type dashboard struct {
	UID           string `json:"uid"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct{ Name, Type, Query, Definition string }
	}
	Panels []struct {
		ID         int
		Title      string
		Type       string
		Datasource struct{ Type, UID string }
		GridPos    struct{ X, Y, W, H int }
		Targets    []struct {
			Datasource            struct{ Type, UID string }
			RawSQL, Format, RefID string
			Expr                  string
			RawQuery              bool
		}
	}
}

func readDashboard(t *testing.T, name string) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../../docs/grafana/" + name + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// grafana contains the values of macros and variables.
type grafana struct{ app, site, from, to, zone string }

func (g grafana) fill(sql string) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	return strings.NewReplacer(
		"${app:sqlstring}", quoted(g.app), "${site:sqlstring}", quoted(g.site), "$__timezone", g.zone,
		"$__timeFrom()", quoted(g.from), "$__timeTo()", quoted(g.to),
	).Replace(sql)
}

// The dashboard shows the counted numbers, and the role that may only read reports can show it.
func TestGrafanaDashboard(t *testing.T) {
	t.Parallel()
	today := visit.DayOf(time.Now(), time.UTC)
	site := "it's.example"
	visits := append([]seen{}, sixSteps...)
	visits = append(visits, seen{20190703, "192.168.0.1", "http://hhui.top/home"}, seen{20190703, "192.168.0.1", "http://example.com/"},
		seen{today, "192.168.0.9", "http://hhui.top/index"})
	conn := dbtest.Connect(t, countAll(t, app.Settings{}, visits...))
	dbtest.NeedSuperuser(t, conn)
	_, err := conn.Exec(t.Context(), `
		WITH made AS (INSERT INTO footfall.tags (app_id, name, value) SELECT app_id, 'source', 'wiki.example' FROM footfall.pages
		WHERE uri = 'hhui.top' RETURNING id)
		INSERT INTO footfall.tag_days (page_id, day_id, tag_id, pv, newcomers) SELECT p.id, 20190630, made.id, 1, 0 FROM made, footfall.pages AS p
		WHERE p.uri = 'hhui.top'`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "SET ROLE footfall_report")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "SELECT FROM footfall.keys")
	require.ErrorContains(t, err, "permission denied")

	show := func(g grafana, sql string) (names []string, table [][]any) {
		filled := g.fill(sql)
		require.NotContains(t, filled, "$", "a macro or variable that Grafana would not know")
		rows, err := conn.Query(t.Context(), filled)
		require.NoError(t, err, filled)
		defer rows.Close()
		for _, field := range rows.FieldDescriptions() {
			names = append(names, field.Name)
		}
		for rows.Next() {
			row, err := rows.Values()
			require.NoError(t, err)
			for i, value := range row {
				if moment, is := value.(time.Time); is {
					row[i] = moment.UTC().Format(time.RFC3339)
				}
			}
			table = append(table, row)
		}
		require.NoError(t, rows.Err(), filled)
		return names, table
	}

	d := readDashboard(t, "footfall")
	utc := grafana{"demo", "hhui.top", "2019-06-29T00:00:00Z", "2019-07-02T23:59:59.999Z", "utc"}
	auckland := grafana{"demo", "hhui.top", "2019-06-28T12:00:00Z", "2019-07-02T11:59:59.999Z", "Pacific/Auckland"}
	for name, c := range map[string]struct {
		grafana
		midnight string // in UTC, on earlier days
	}{"utc": {utc, "2019-06-29T00:00:00Z"}, "Auckland": {auckland, "2019-06-28T12:00:00Z"}} {
		first, err := time.Parse(time.RFC3339, c.midnight)
		require.NoError(t, err)
		at := func(days int) string { return first.AddDate(0, 0, days).Format(time.RFC3339) }
		shown := map[string]string{}
		for _, panel := range d.Panels {
			names, table := show(c.grafana, panel.Targets[0].RawSQL)
			if panel.Title == "Sites" { // the column since of this panel depends on the time of the test
				names, table = names[:4], [][]any{table[0][:4], table[1][:4]}
			}
			shown[panel.Title] = fmt.Sprint(names, table)
		}
		if visit.DayOf(time.Now(), time.UTC) != today {
			delete(shown, "Visitors today") // midnight has passed in the meantime
		} else {
			assert.Equal(t, "[Visitors] [[1]]", shown["Visitors today"])
			delete(shown, "Visitors today")
		}
		assert.Equal(t, map[string]string{
			"Visitors":   "[Visitors] [[3]]",
			"New":        "[New] [[3]]",
			"Visits":     "[Visits] [[5]]",
			"Page views": "[Page views] [[8]]",
			"Visitors by day": fmt.Sprintf("[time Visitors New] [[%s 2 2] [%s 1 0] [%s 0 0] [%s 2 1]]",
				at(0), at(1), at(2), at(3)),
			"Page views by day": fmt.Sprintf("[time Page views] [[%s 5] [%s 1] [%s 0] [%s 2]]", at(0), at(1), at(2), at(3)),
			"Top pages":         "[Page Visitors New Visits Page views] [[hhui.top/home 3 3 4 5] [hhui.top/index 2 2 3 3]]",
			"Sites":             "[Site Visitors Visits Page views] [[hhui.top 4 7 10] [example.com 1 1 1]]",
			"Sources":           "[Source Visits New] [[wiki.example 1 0] [(none) 4 3]]",
		}, shown, name)
		// The service's own dashboard shows the same four numbers with the same labels.
		_, tiles := show(c.grafana, `SELECT n.uniques, n.new_visitors, n.pv, n.hot
			FROM report.numbers(${app:sqlstring}, ${site:sqlstring}, 20190629, 20190702) AS n`)
		for i, word := range []string{"visitors", "new", "visits", "views"} {
			word = words.English().Say("numbers." + word)
			assert.Equal(t, fmt.Sprintf("[%s] [[%v]]", word, tiles[0][i]), shown[word])
		}
	}
	for _, panel := range d.Panels { // a site without visits, with a quote that could break SQL
		show(grafana{"demo", site, utc.from, utc.to, "utc"}, panel.Targets[0].RawSQL)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			_, table := show(utc, v.Query)
			assert.Equal(t, map[string]string{"app": "[[demo]]", "site": "[[hhui.top] [example.com]]"}[v.Name], fmt.Sprint(table))
		}
	}
}

// The dashboards have the fields that Grafana 11 and 12 need to show them, and to let users choose the data source.
func TestGrafanaDashboardsAreWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, uid, kind string
		variables       []string
	}{
		{"footfall", "footfall", "grafana-postgresql-datasource", []string{"datasource", "app", "site"}},
		{"service", "footfall-service", "prometheus", []string{"datasource", "job"}},
	} {
		d := readDashboard(t, c.name)
		assert.Equal(t, c.uid, d.UID)
		assert.GreaterOrEqual(t, d.SchemaVersion, 39)
		variables := []string{}
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
			assert.Contains(t, []string{"query", "datasource"}, v.Type)
			if v.Type == "datasource" {
				assert.Equal(t, c.kind, v.Query)
			} else {
				assert.Equal(t, v.Query, v.Definition)
			}
		}
		assert.Equal(t, c.variables, variables)
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, panel := range d.Panels {
			assert.False(t, ids[panel.ID], "two panels of id %d", panel.ID)
			ids[panel.ID] = true
			assert.Contains(t, []string{"stat", "timeseries", "table"}, panel.Type)
			chosen := struct{ Type, UID string }{c.kind, "${datasource}"}
			assert.Equal(t, chosen, panel.Datasource)
			for _, target := range panel.Targets {
				assert.Equal(t, chosen, target.Datasource)
			}
			if c.name == "footfall" {
				require.Len(t, panel.Targets, 1)
				assert.True(t, panel.Targets[0].RawQuery)
				assert.Equal(t, map[bool]string{true: "time_series", false: "table"}[panel.Type == "timeseries"], panel.Targets[0].Format)
				assert.Empty(t, regexp.MustCompile(`footfall\.`).FindString(panel.Targets[0].RawSQL), "nothing but the schema report")
			}
			assert.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24)
			for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
				for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
					assert.Empty(t, taken[[2]int{x, y}], "%s overlaps", panel.Title)
					taken[[2]int{x, y}] = panel.Title
				}
			}
		}
	}
}
