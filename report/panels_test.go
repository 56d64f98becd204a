package report_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/report"
	"footfall/visit"
)

// panelsAgree compares the panels of the dashboard with the visits, and with the results of their own statements.
func (h *history) panelsAgree(t *testing.T) {
	t.Helper()
	for range dbtest.LongOrShort(40, 8) {
		look := report.Look{App: "demo", Target: h.targets[h.random.IntN(len(h.targets))], Before: []int{0, 2, 7}[h.random.IntN(3)]}
		edges := append([]int32{20190601, 20190801}, h.days...)
		from, to := edges[h.random.IntN(len(edges))], edges[h.random.IntN(len(edges))]
		look.In = visit.Range{From: min(from, to), To: max(from, to)}
		look.Compared = look.In
		if h.random.IntN(2) == 0 && look.In.Days() > 1 { // the last day has not ended
			look.Compared.To = visit.LastDays(2, look.In.To).From
		}

		numbers, err := h.Numbers(t.Context(), look)
		require.NoError(t, err)
		said(t, h, numbers)
		rows := []visit.Range{look.In}
		if look.Before > 0 && look.Compared != look.In {
			rows = append(rows, look.Compared)
		}
		if look.Before > 0 {
			rows = append(rows, look.Compared.Earlier(look.Before))
		}
		require.Len(t, numbers.Rows, len(rows))
		for i, row := range numbers.Rows {
			require.Equal(t, rows[i], visit.Range{From: row.FirstDay, To: row.LastDay})
			h.numbersAgree(t, look.Target, rows[i], row.Uniques, row.NewVisitors, row.Pv, row.Hot)
		}

		h.tagsAgree(t, look, numbers.Rows[0].Pv, numbers.Rows[0].NewVisitors)

		look.Compared.From = edges[h.random.IntN(len(edges))]
		chart, err := h.Chart(t.Context(), of(look, func(l *report.Look) { l.Period = []string{"day", "week", "month"}[h.random.IntN(3)] }))
		require.NoError(t, err)
		said(t, h, chart)
		next := look.In.From
		site, _, _ := strings.Cut(look.Target, "/")
		began, err := h.FirstDay(t.Context(), "demo", site)
		require.NoError(t, err)
		for _, row := range chart.Rows {
			require.Equal(t, next, row.FirstDay)
			in := visit.Range{From: row.FirstDay, To: row.LastDay}
			next = visit.Range{From: in.To}.Earlier(-1).From
			if in.To < began {
				require.Equal(t, [4]int64{report.Unknown, report.Unknown, report.Unknown, report.Unknown},
					[4]int64{row.Visitors, row.NewVisitors, row.Pv, row.Hot}, "%s was not counted %v", look.Target, in)
			} else {
				h.numbersAgree(t, look.Target, in, row.Visitors, row.NewVisitors, row.Pv, row.Hot)
			}
			require.Equal(t, look.Before > 0 && row.FirstDay >= look.Compared.From && row.FirstDay <= look.Compared.To &&
				visit.Range{To: min(in.To, look.Compared.To)}.Earlier(look.Before).To >= began, row.Compared)
			if row.Compared {
				in.To = min(in.To, look.Compared.To)
				require.Equal(t, h.distinct(t, look.Target, in.Earlier(look.Before)), row.VisitorsBefore)
			} else {
				require.Zero(t, row.VisitorsBefore)
			}
		}
		require.Equal(t, visit.Range{From: look.In.To}.Earlier(-1).From, next, "the last day is in it")
		h.returnsAgree(t, look)
	}
	h.listsAgree(t)
}

// tagsAgree compares the values of tags with the counted tags, and with the other numbers of the range.
func (h *history) tagsAgree(t *testing.T, look report.Look, pv, newVisitors int64) {
	t.Helper()
	name := "source"
	if !strings.Contains(look.Target, "/") && h.random.IntN(2) == 0 {
		name = "hour"
	}
	tags, err := h.Tags(t.Context(), of(look, func(l *report.Look) { l.Name, l.N = name, report.DeepestTop }))
	require.NoError(t, err)
	said(t, h, tags)
	before := look.Compared.Earlier(look.Before)
	if look.Before == 0 {
		before = visit.Range{From: 1}
	}
	var read []string
	for _, row := range tags.Rows {
		require.Equal(t, int32(firstDay), row.Since)
		if row.Value != report.WithoutTag {
			read = append(read, fmt.Sprint(row.Value, " ", row.Pv, row.Newcomers, row.PvCompared, row.PvBefore))
		}
		pv, newVisitors = pv-row.Pv, newVisitors-row.Newcomers
	}
	if len(tags.Rows) > 0 {
		require.Zero(t, pv, "all visits are pv")
		require.Zero(t, newVisitors, "no visit was late")
		require.Equal(t, report.WithoutTag, tags.Rows[len(tags.Rows)-1].Value)
		require.True(t, slices.IsSortedFunc(tags.Rows[:len(tags.Rows)-1], func(a, b report.TagValue) int { return int(b.Pv - a.Pv) }))
		first, err := h.Tags(t.Context(), of(look, func(l *report.Look) { l.Name, l.N = name, 1 }))
		require.NoError(t, err)
		require.Equal(t, append(slices.Clone(tags.Rows[:min(1, len(tags.Rows)-1)]), tags.Rows[len(tags.Rows)-1]), first.Rows)
	}
	require.ElementsMatch(t, desk.Column[string](t, h.Desk, `
		SELECT concat_ws(' ', d.value, d.pv, d.newcomers, d.compared, d.before)
		FROM (
			SELECT d.value, coalesce(sum(d.pv) FILTER (WHERE d.day_id BETWEEN $3 AND $4), 0) AS pv,
			       coalesce(sum(d.newcomers) FILTER (WHERE d.day_id BETWEEN $3 AND $4), 0) AS newcomers,
			       coalesce(sum(d.pv) FILTER (WHERE d.day_id BETWEEN $3 AND $5), 0) AS compared,
			       coalesce(sum(d.pv) FILTER (WHERE d.day_id BETWEEN $6 AND $7), 0) AS before
			FROM report.tag_days AS d WHERE d.app = 'demo' AND d.target = $1 AND d.name = $2 GROUP BY d.value
		) AS d WHERE d.pv + d.before > 0`, look.Target, name, look.In.From, look.In.To, look.Compared.To, before.From, before.To), read, "%v %s",
		look, name)
}

func (h *history) distinct(t *testing.T, target string, in visit.Range) int64 {
	t.Helper()
	return one[int64](t, h.reading, `SELECT count(DISTINCT v.ip) FROM visits AS v JOIN pages AS p ON p.id = v.page_id WHERE p.uri = $1
		AND v.day_id BETWEEN $2 AND $3`, target, in.From, in.To)
}

func (h *history) numbersAgree(t *testing.T, target string, in visit.Range, uniques, newVisitors, pv, hot int64) {
	t.Helper()
	sum := int64(0)
	for day, n := range h.hot[target] {
		if day >= in.From && day <= in.To {
			sum += n
		}
	}
	require.Equal(t, one[string](t, h.reading, `
		SELECT concat_ws(' ', count(DISTINCT v.ip), count(*) FILTER (WHERE v.previous_day = 0), count(*), $4::bigint)
		FROM visits AS v JOIN pages AS p ON p.id = v.page_id
		WHERE p.uri = $1 AND v.day_id BETWEEN $2 AND $3`, target, in.From, in.To, sum),
		fmt.Sprint(uniques, newVisitors, pv, hot), "%s %v", target, in)
}

func (h *history) returnsAgree(t *testing.T, look report.Look) {
	t.Helper()
	returns, err := h.ReturnedAfter(t.Context(), look)
	require.NoError(t, err)
	said(t, h, returns)
	after := int32(0)
	for _, row := range returns.Rows {
		require.Equal(t, after+1, row.FromDays, "no number of days is left out")
		after = row.ToDays
		require.Equal(t, one[int64](t, h.reading, `
			SELECT count(*)
			FROM visits AS v JOIN pages AS p ON p.id = v.page_id
			WHERE p.uri = $1 AND v.day_id BETWEEN $2 AND $3 AND v.previous_day > 0
			  AND day_date(v.day_id) - day_date(nullif(v.previous_day, 0)) BETWEEN $4 AND $5`,
			look.Target, look.In.From, look.In.To, row.FromDays, row.ToDays), row.Visitors, "%v %v", look, row)
	}
	require.Equal(t, int32(report.OrMore), after)
}

// listsAgree compares sites, pages and first visits.
func (h *history) listsAgree(t *testing.T) {
	t.Helper()
	look := report.Look{App: "demo", In: visit.Range{From: h.days[2], To: h.days[5]}, Before: 2,
		Compared: visit.Range{From: h.days[2], To: h.days[4]}}
	sites, err := h.SitesBetween(t.Context(), look)
	require.NoError(t, err)
	said(t, h, sites)
	require.Len(t, sites.Rows, 3)
	for _, row := range sites.Rows {
		h.numbersAgree(t, row.Site, look.In, row.Uniques, row.NewVisitors, row.Pv, row.Hot)
		require.Equal(t, h.distinct(t, row.Site, look.Compared), row.UniquesCompared)
		require.Equal(t, h.distinct(t, row.Site, look.Compared.Earlier(2)), row.UniquesBefore)
		require.Equal(t, one[int32](t, h.reading, `SELECT min(v.day_id) FROM visits AS v JOIN pages AS p ON p.id = v.page_id
			WHERE p.uri = $1`, row.Site), row.FirstDay)
		require.Len(t, row.Last30Days, 30)
	}
	look.Target = "s1.example"
	look.By, look.N = "hot", report.DeepestTop
	pages, err := h.TopPages(t.Context(), look)
	require.NoError(t, err)
	saidPages(t, h, pages)
	first5, err := h.TopPages(t.Context(), of(look, func(l *report.Look) { l.N = 5 }))
	require.NoError(t, err)
	require.Equal(t, pages.Rows[:5], first5.Rows)
	visited, err := h.PagesVisited(t.Context(), of(look, func(l *report.Look) { l.N = 1000 }))
	require.NoError(t, err)
	require.Len(t, pages.Rows, int(visited))
	byURI, err := h.PagesAfter(t.Context(), look, report.DeepestTop)
	require.NoError(t, err)
	var texts []string
	for _, row := range byURI {
		texts = append(texts, text(t, row))
	}
	require.True(t, slices.IsSortedFunc(byURI, func(a, b report.Page) int { return strings.Compare(a.URI, b.URI) }))
	for _, row := range pages.Rows {
		require.Contains(t, texts, text(t, row))
		h.numbersAgree(t, row.URI, look.In, row.Uniques, row.NewVisitors, row.PV, row.Hot)
		require.Equal(t, h.distinct(t, row.URI, look.Compared), row.UniquesCompared)
		require.Equal(t, h.distinct(t, row.URI, look.Compared.Earlier(2)), row.UniquesBefore)
	}
	brought, err := h.TagPages(t.Context(), of(look, func(l *report.Look) { l.Name, l.Value = "source", "google" }))
	require.NoError(t, err)
	said(t, h, brought)
	var to []string
	for _, row := range brought.Rows {
		to = append(to, fmt.Sprint(row.Uri, " ", row.Pv, row.Newcomers))
	}
	require.Equal(t, desk.Column[string](t, h.Desk, `
		SELECT concat_ws(' ', d.target, sum(d.pv), sum(d.newcomers))
		FROM report.tag_days AS d JOIN pages AS p ON p.uri = d.target
		WHERE d.target LIKE 's1.example/%' AND d.name = 'source' AND d.value = 'google' AND d.day_id BETWEEN $1 AND $2
		GROUP BY d.target, p.id ORDER BY sum(d.pv) DESC, p.id`, look.In.From, look.In.To), to)
	first, err := h.FirstVisits(t.Context(), look)
	require.NoError(t, err)
	said(t, h, first)
	var read []string
	for _, row := range first.Rows {
		read = append(read, fmt.Sprint(row.Rank, row.FirstDay, row.IsRound))
	}
	require.Equal(t, desk.Column[string](t, h.Desk, `
		SELECT concat_ws(' ', w.rank, w.first_day, w.rank = ANY ('{1,2,5,10,20,50}'))
		FROM visitors AS w JOIN pages AS p ON p.id = w.page_id JOIN counters AS c ON c.page_id = p.id
		WHERE p.uri = 's1.example' AND (w.rank > c.uv - 4 OR w.rank = ANY ('{2,5,10,20}'))
		ORDER BY w.rank DESC LIMIT 8`), strings.Split(strings.NewReplacer("true", "t", "false", "f").Replace(strings.Join(read, "\n")), "\n"))
	all, err := h.WhoCame(t.Context(), look)
	require.NoError(t, err)
	said(t, h, all)
	for after, i := (report.Cursor{}), 0; ; i++ {
		came, err := h.WhoCame(t.Context(), of(look, func(l *report.Look) { l.After, l.N = after, 7 }))
		require.NoError(t, err)
		require.Equal(t, all.SQL, came.SQL)
		var read []string
		for _, row := range came.Rows {
			after = report.Cursor{Day: row.Day, Visitor: row.Visitor}
			read = append(read, fmt.Sprint(row.Day, row.Visitor, row.Rank, row.FirstDay, row.PreviousDay, row.LastDay))
		}
		if len(came.Rows) < 7 {
			require.Greater(t, i, 1, "several parts of the list")
			break
		}
		require.Equal(t, desk.Column[string](t, h.Desk, `
			SELECT concat_ws(' ', v.day_id, host(v.ip), w.rank, w.first_day, v.previous_day, w.last_day)
			FROM visits AS v JOIN pages AS p ON p.id = v.page_id JOIN visitors AS w ON w.page_id = p.id AND w.ip = v.ip
			WHERE p.uri = 's1.example' AND v.day_id BETWEEN $1 AND $2
			ORDER BY v.day_id DESC, v.ip LIMIT 7 OFFSET $3`, look.In.From, look.In.To, 7*i), read)
	}
	apps, err := h.AppsToday(t.Context(), []string{"demo", "it's"})
	require.NoError(t, err)
	said(t, h, apps)
	require.Equal(t, int64(3), apps.Rows[0].Sites)

	found, err := h.FindPages(t.Context(), look)
	require.NoError(t, err)
	require.Len(t, found.Rows, len(byURI))
	for _, row := range found.Rows {
		require.Contains(t, texts, text(t, row))
		require.Equal(t, h.distinct(t, row.URI, look.Compared), row.UniquesCompared)
		require.Equal(t, h.distinct(t, row.URI, look.Compared.Earlier(2)), row.UniquesBefore)
	}
	require.Equal(t, int32(firstDay), apps.Rows[0].FirstDay)
	began, err := h.FirstDay(t.Context(), "demo", "s1.example")
	require.NoError(t, err)
	require.Equal(t, int32(firstDay), began)

	look.In, look.Before = visit.Range{To: lastDay}, 0
	look.Target = "s1.example"
	numbers, err := h.Numbers(t.Context(), look)
	require.NoError(t, err)
	require.Equal(t, int32(firstDay), numbers.Rows[0].FirstDay, "all days begin with the first that was counted")
	chart, err := h.Chart(t.Context(), of(look, func(l *report.Look) { l.Period = "day" }))
	require.NoError(t, err)
	require.Equal(t, int32(firstDay), chart.Rows[0].FirstDay)

	look.Target = "o'reilly.example"
	never, err := h.Numbers(t.Context(), look)
	require.NoError(t, err)
	require.Empty(t, never.Rows)
	said(t, h, never)
	chart, err = h.Chart(t.Context(), of(look, func(l *report.Look) { l.Period = "day" }))
	require.NoError(t, err)
	require.Empty(t, chart.Rows)
}

func of(l report.Look, change func(*report.Look)) report.Look {
	change(&l)
	return l
}

// saidPages is said, without the columns that only the statement or the rows have.
func saidPages(t *testing.T, h *history, p report.Panel[report.Page]) {
	t.Helper()
	p.SQL = "SELECT (to_jsonb(t) - 'page_id' || jsonb_build_object('shown', t.uri)) AS row FROM (" + strings.TrimSuffix(p.SQL, ";") + ") AS t"
	var rows []map[string]report.Page
	for _, page := range p.Rows {
		rows = append(rows, map[string]report.Page{"row": page})
	}
	said(t, h, report.Panel[map[string]report.Page]{Rows: rows, SQL: p.SQL})
}

// said compares the rows of a panel with the rows of its statement, by the names of their columns.
func said[Row any](t *testing.T, h *history, p report.Panel[Row]) {
	t.Helper()
	statement := strings.TrimSuffix(p.SQL, ";")
	require.NotContains(t, statement, "$")
	rows := p.Rows
	if rows == nil {
		rows = []Row{}
	}
	require.JSONEq(t, one[string](t, h.reading, `SELECT coalesce(json_agg(t), '[]')::text FROM (`+statement+`) AS t`), text(t, rows), p.SQL)
}

// filtersAgree compares three sources of numbers for filtered visitors: the statement that reads all parts, the
// statements of single panels, and the panels' calls of report.*_where.
func (h *history) filtersAgree(t *testing.T) {
	t.Helper()
	counting := desk.On(t, h.URL, desk.Options{Began: noon.AddDate(0, 0, 6)})
	for i := range 30 {
		_, err := counting.Visit(t.Context(), counter.Request{App: "demo", IP: fmt.Sprintf("192.0.2.%d", i),
			Event: []string{"buy", "signup"}[i%2]})
		require.NoError(t, err)
	}
	counting.Close()
	kinds := map[string]int{}
	for _, conditions := range [][]string{nil, {"new"}, {"source:google|(none)", "!page:/0/00"}, {"event:buy"}, {"page:/1/*", "returning"}} {
		for _, period := range []string{"day", "week", "month"} {
			look := report.Look{App: "demo", Target: "s1.example", In: visit.Range{From: h.days[1], To: lastDay}, Where: conditions,
				Period: period, Name: "source", Names: []string{"hour", "source"}, By: "pv", N: report.DeepestTop}
			if conditions == nil {
				look.Target = "" // all sites as one
			}
			read, err := h.Filter(t.Context(), look, "numbers", "days", "tags", "pages", "events", "since")
			require.NoError(t, err)
			require.Zero(t, read.Since)
			page := of(look, func(l *report.Look) { l.Filtered = read })
			kinds["numbers"] += sameCall(t, h, "visitors", "uniques", look, page, h.Numbers)
			kinds["chart"] += sameCall(t, h, "", "", look, page, h.Chart)
			kinds["tags"] += sameCall(t, h, "new_visitors", "newcomers", look, page, h.Tags)
			kinds["events"] += sameCall(t, h, "", "", look, page, h.Events)
			if conditions != nil {
				kinds["pages"] += sameCall(t, h, "", "", look, page, h.TopPages)
				uniques, err := h.UniquesOf(t.Context(), look)
				require.NoError(t, err)
				numbers, err := h.Numbers(t.Context(), look)
				require.NoError(t, err)
				require.Equal(t, numbers.Rows[0].Uniques, uniques.Uniques)
			}
		}
	}
	for _, kind := range []string{"numbers", "chart", "tags", "events", "pages"} {
		require.Greater(t, kinds[kind], 12, kind)
	}
}

// sameCall returns the number of rows of a panel's call. It compares these rows with the rows of the panel's
// own statement, and with the rows of the page's statement, in their common columns. column and name are two
// names of the same column: the call uses a different name.
func sameCall[Row any](t *testing.T, h *history, column, name string, look, page report.Look,
	read func(context.Context, report.Look) (report.Panel[Row], error),
) int {
	t.Helper()
	rows := func(text string) (rows []map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(text), &rows))
		return slices.DeleteFunc(rows, func(row map[string]any) bool { return row["pv"] == 0.0 }) // the call leaves out such periods
	}
	alone, err := read(t.Context(), look)
	require.NoError(t, err)
	together, err := read(t.Context(), page)
	require.NoError(t, err)
	require.Equal(t, alone.SQL, together.SQL)
	called := rows(one[string](t, h.reading, "SELECT coalesce(json_agg(t), '[]')::text FROM ("+strings.TrimSuffix(alone.SQL, ";")+") AS t"))
	for _, p := range []report.Panel[Row]{alone, together} {
		ran := rows(text(t, p.Rows))
		require.Len(t, ran, len(called), alone.SQL)
		for i, row := range called {
			compared := 0
			for key, value := range row {
				if key == column {
					key = name
				}
				if other, has := ran[i][key]; has {
					require.Equal(t, value, other, "%s of row %d: %s", key, i, alone.SQL)
					compared++
				}
			}
			require.GreaterOrEqual(t, compared, 3, alone.SQL)
		}
	}
	return len(called)
}
