package report_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/report"
	"footfall/visit"
)

// reading is a database with an open app "demo", and its reader.
type reading struct {
	*desk.Desk
	*report.Reader
}

var noon = time.Date(2019, 6, 29, 12, 0, 0, 0, time.UTC)

func newReading(t *testing.T) *reading {
	t.Helper()
	o := desk.Options{Began: noon}
	d := desk.Idle(t, desk.Database(t, o), o)
	return &reading{d, report.NewReader(d.DB)}
}

func one[T any](t *testing.T, r *reading, sql string, args ...any) T {
	t.Helper()
	return desk.Column[T](t, r.Desk, sql, args...)[0]
}

// text returns a report as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

func between(pages []report.Page, err error) (numbers []report.PageBetween, _ error) {
	numbers = []report.PageBetween{}
	for _, p := range pages {
		numbers = append(numbers, p.PageBetween)
	}
	return numbers, err
}

func listed(pages report.Panel[report.Page], err error) ([]report.PageBetween, error) {
	return between(pages.Rows, err)
}

// history is some days of random visits, with the number of visits of each target on each day.
type history struct {
	*reading
	random  *rand.Rand
	hot     map[string]map[int32]int64
	days    []int32
	targets []string
}

const firstDay, lastDay = 20190628, 20190705

// newHistory counts visits to a few pages with many visitors, and to many pages with few visitors, so
// that some pages have equal numbers.
func newHistory(t *testing.T) *history {
	t.Helper()
	h := &history{reading: newReading(t), random: rand.New(rand.NewPCG(6, 28)), hot: map[string]map[int32]int64{}}
	counting := desk.On(t, h.URL, desk.Options{Began: noon.AddDate(0, 0, -1)})
	defer counting.Close()
	for len(h.days) < 8 {
		today := visit.DayOf(counting.Clock.Now(), time.UTC)
		h.days = append(h.days, today)
		var sent sync.WaitGroup
		for range 220 {
			site := fmt.Sprintf("s%d.example", h.random.IntN(3))
			page := fmt.Sprintf("%s/%d/%02d", site, h.random.IntN(2), int(h.random.ExpFloat64()*8))
			visitor := netip.AddrFrom4([4]byte{192, 0, 2, byte(h.random.IntN(40))})
			referrer := []string{"", "https://www.google.com/", "https://news.example/a", "https://wiki.example/"}[h.random.IntN(4)]
			for _, target := range []string{site, page} {
				if h.hot[target] == nil {
					h.hot[target] = map[int32]int64{}
					h.targets = append(h.targets, target)
				}
				h.hot[target][today]++
			}
			sent.Go(func() {
				_, err := counting.Visit(context.Background(), counter.Request{App: "demo", IP: visitor.String(), URI: "http://" + page,
					Referrer: referrer})
				assert.NoError(t, err)
			})
		}
		sent.Wait()
		counting.Clock.Set(counting.Clock.Now().AddDate(0, 0, 1))
	}
	require.Equal(t, int32(lastDay), h.days[len(h.days)-1])
	return h
}

// someDays returns a range that may start and end on days without visits.
func (h *history) someDays() visit.Range {
	edges := append([]int32{0, 20190601, 20190801, 99991231}, h.days...)
	from, to := edges[h.random.IntN(len(edges))], edges[h.random.IntN(len(edges))]
	return visit.Range{From: min(from, to), To: max(from, to)}
}

// someTargets returns some targets, possibly including one without visits.
func (h *history) someTargets() (targets []string) {
	for range 1 + h.random.IntN(5) {
		targets = append(targets, h.targets[h.random.IntN(len(h.targets))])
	}
	if h.random.IntN(4) == 0 {
		targets = append(targets, "never.example/")
	}
	return targets
}

// pages returns the pages of a site, or of all sites, with their numbers in a range, by plain SQL over the visits.
// hot is not included.
func (h *history) pages(t *testing.T, site string, in visit.Range) (pages []report.PageBetween) {
	t.Helper()
	rows, err := h.Tables().Query(t.Context(), `
		SELECT p.uri, count(v.ip), count(v.ip) FILTER (WHERE w.first_day = v.day_id), count(DISTINCT v.ip)
		FROM pages AS p
		LEFT JOIN visits AS v ON v.page_id = p.id AND v.day_id BETWEEN $2 AND $3
		LEFT JOIN visitors AS w ON w.page_id = v.page_id AND w.ip = v.ip
		WHERE p.site_id IS NOT NULL AND ($1 = '' OR p.uri LIKE $1 || '/%')
		GROUP BY p.id
		ORDER BY p.id`, site, in.From, in.To)
	require.NoError(t, err)
	var p report.PageBetween
	_, err = pgx.ForEachRow(rows, []any{&p.URI, &p.PV, &p.NewVisitors, &p.Uniques}, func() error {
		p.Hot, p.Shown = 0, p.URI
		for day, hot := range h.hot[p.URI] {
			if day >= in.From && day <= in.To {
				p.Hot += hot
			}
		}
		pages = append(pages, p)
		return nil
	})
	require.NoError(t, err)
	return pages
}

var numbers = map[string]func(report.PageBetween) int64{
	"pv":  func(p report.PageBetween) int64 { return p.PV },
	"uv":  func(p report.PageBetween) int64 { return p.NewVisitors },
	"hot": func(p report.PageBetween) int64 { return p.Hot },
}

// top sorts pages by a number, and returns the first n. The pages must be in order of their ids.
func top(pages []report.PageBetween, by string, n int) []report.PageBetween {
	number := numbers[by]
	some := slices.DeleteFunc(slices.Clone(pages), func(p report.PageBetween) bool { return number(p) == 0 })
	slices.SortStableFunc(some, func(a, b report.PageBetween) int { return cmp.Compare(number(b), number(a)) })
	return some[:min(n, len(some))]
}

// agree compares all numbers read with the visits, for some ranges.
func (h *history) agree(t *testing.T, ranges int) {
	t.Helper()
	for range ranges {
		in, targets := h.someDays(), h.someTargets()
		const distinct = `SELECT count(DISTINCT v.ip) FROM visits AS v JOIN pages AS p ON p.id = v.page_id AND %s WHERE v.day_id BETWEEN $2
			AND $3`
		u, err := h.UniquesOf(t.Context(), report.Look{App: "demo", Target: targets[0], In: in})
		require.NoError(t, err)
		require.Equal(t, report.Uniques{Uniques: one[int64](t, h.reading, fmt.Sprintf(distinct, "p.uri = $1"), targets[0], in.From, in.To),
			Exact: true}, u, "%s %v", targets[0], in)
		u, err = h.UniquesOf(t.Context(), report.Look{App: "demo", Targets: targets, In: in})
		require.NoError(t, err)
		require.Equal(t, report.Uniques{Uniques: one[int64](t, h.reading, fmt.Sprintf(distinct, "p.uri = ANY ($1)"), targets, in.From, in.To),
			Exact: true}, u, "%v %v", targets, in)
		prefix := targets[0][:1+h.random.IntN(len(targets[0]))]
		u, err = h.UniquesOf(t.Context(), report.Look{App: "demo", Prefix: prefix, In: in})
		require.NoError(t, err)
		require.Equal(t, report.Uniques{Uniques: one[int64](t, h.reading,
			fmt.Sprintf(distinct, "p.site_id IS NOT NULL AND starts_with(p.uri, $1)"), prefix, in.From, in.To), Exact: true}, u, "%s %v", prefix, in)

		site := []string{"", "s0.example", "s1.example", "never.example"}[h.random.IntN(4)]
		by := []string{"pv", "uv", "hot"}[h.random.IntN(3)]
		n := 1 + h.random.IntN(len(h.targets)+5)
		counted := h.pages(t, site, in)
		pages, err := listed(h.TopPages(t.Context(), report.Look{App: "demo", Target: site, In: in, By: by, N: n}))
		require.NoError(t, err)
		require.Equal(t, text(t, append([]report.PageBetween{}, top(counted, by, n)...)), text(t, pages), "%d of %q by %s in %v", n, site, by, in)

		after := targets[len(targets)-1]
		pages, err = between(h.PagesAfter(t.Context(), report.Look{App: "demo", Target: site, After: report.Cursor{Name: after}, In: in}, n))
		require.NoError(t, err)
		counted = slices.DeleteFunc(counted, func(p report.PageBetween) bool { return p.URI <= after })
		slices.SortFunc(counted, func(a, b report.PageBetween) int { return cmp.Compare(a.URI, b.URI) })
		require.Equal(t, text(t, append([]report.PageBetween{}, counted[:min(n, len(counted))]...)), text(t, pages), "%d of %q after %s in %v", n,
			site, after, in)

		days, err := h.Days(t.Context(), "demo", targets[0], in, 1000)
		require.NoError(t, err)
		require.Equal(t, h.rangeMembers(targets[0], in), len(days))
		for _, day := range days {
			require.Equal(t, h.hot[targets[0]][day.Day], day.Hot)
			require.Equal(t, one[int64](t, h.reading, fmt.Sprintf(distinct, "p.uri = $1"), targets[0], day.Day, day.Day), day.Pv)
		}
	}
}

func (h *history) rangeMembers(target string, in visit.Range) (days int) {
	for day := range h.hot[target] {
		if day >= in.From && day <= in.To {
			days++
		}
	}
	return days
}

func TestReportsAgreeWithTheVisits(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.Exec(t, `INSERT INTO titles (page_id, title, told_at) SELECT id, 'Title of ' || uri, now() FROM pages WHERE site_id IS NOT NULL`)
	ranges := dbtest.LongOrShort(100, 25)
	h.agree(t, ranges)
	h.panelsAgree(t)
	for _, day := range h.days {
		require.True(t, one[bool](t, h.reading, `SELECT close_day($1)`, day))
	}
	require.Positive(t, one[int64](t, h.reading, `SELECT count(*) FROM tops`))
	h.agree(t, ranges)
	h.Exec(t, `SELECT pack_returns(0, 2000)`)
	require.Positive(t, one[int64](t, h.reading, `SELECT count(*) FROM packed_returns`))
	h.panelsAgree(t)
	for range 5 {
		h.Exec(t, `DELETE FROM tops WHERE random() < 0.3`)
		h.agree(t, dbtest.LongOrShort(20, 8))
	}
	h.visitorsAgree(t)
	h.filtersAgree(t)
}

// visitorsAgree compares the visitors and their ranks.
func (h *history) visitorsAgree(t *testing.T) {
	t.Helper()
	for range dbtest.LongOrShort(30, 15) {
		target, day := h.targets[h.random.IntN(len(h.targets))], h.days[h.random.IntN(len(h.days))]
		var read []string
		var last netip.Addr
		for {
			part, err := h.Visitors(t.Context(), report.Look{App: "demo", Target: target, Day: day, After: report.Cursor{Visitor: last}, N: 6})
			require.NoError(t, err)
			for _, v := range part {
				read, last = append(read, fmt.Sprint(v.Visitor, v.Rank, v.New)), v.Visitor
				byRank, err := h.Ranked(t.Context(), report.Look{App: "demo", Target: target, Rank: v.Rank})
				require.NoError(t, err)
				byAddress, err := h.Ranked(t.Context(), report.Look{App: "demo", Target: target, Stored: []netip.Addr{v.Visitor}})
				require.NoError(t, err)
				require.Equal(t, byRank, byAddress)
				require.Equal(t, v.Visitor, byRank.Visitor)
				require.Equal(t, v.New, byRank.FirstDay == day)
			}
			if len(part) < 7 {
				break
			}
		}
		require.Equal(t, desk.Column[string](t, h.Desk, `
			SELECT host(v.ip) || ' ' || w.rank || ' ' || (w.first_day = v.day_id)
			FROM visits AS v JOIN visitors AS w USING (page_id, ip) JOIN pages AS p ON p.id = v.page_id
			WHERE p.uri = $1 AND v.day_id = $2 ORDER BY v.ip`, target, day), append([]string{}, read...))
	}
	for _, target := range []string{h.targets[0], "never.example"} {
		_, err := h.Ranked(t.Context(), report.Look{App: "demo", Target: target, Rank: 1000})
		require.ErrorIs(t, err, report.ErrNoVisitor)
		_, err = h.Ranked(t.Context(), report.Look{App: "demo", Target: target, Stored: []netip.Addr{netip.MustParseAddr("203.0.113.1")}})
		require.ErrorIs(t, err, report.ErrNoVisitor)
	}
	sites, err := h.Sites(t.Context(), "demo", "", 2)
	require.NoError(t, err)
	more, err := h.Sites(t.Context(), "demo", sites[1].Site, 2)
	require.NoError(t, err)
	var read []string
	for _, s := range append(sites, more...) {
		read = append(read, fmt.Sprint(s.Site, " ", s.PV, s.UV, s.Hot))
	}
	require.Equal(t, desk.Column[string](t, h.Desk, `
		SELECT p.uri || ' ' || count(*) || ' ' || count(DISTINCT v.ip) || ' ' || (SELECT c.hot FROM counters AS c WHERE c.page_id = p.id)
		FROM visits AS v JOIN pages AS p ON p.id = v.page_id WHERE p.site_id IS NULL GROUP BY p.id ORDER BY p.uri`), read)
}

// newLongLists returns a reading with three sites of very different sizes. Many of their pages have
// equal numbers.
func newLongLists(t *testing.T) *reading {
	t.Helper()
	r := newReading(t)
	r.Exec(t, `SELECT setseed(0.6)`)
	r.Exec(t, `INSERT INTO pages (app_id, uri) SELECT 1, 's' || s || '.example' FROM generate_series(1, 3) AS s`)
	r.Exec(t, `
		INSERT INTO pages (app_id, site_id, uri)
		SELECT 1, s.id, s.uri || '/' || n
		FROM pages AS s JOIN (VALUES ('s1.example', 1300), ('s2.example', 400), ('s3.example', 3)) AS size (uri, pages) ON size.uri = s.uri
		CROSS JOIN LATERAL generate_series(1, size.pages) AS n`)
	r.Exec(t, `
		INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
		SELECT p.id, p.site_id, 20190600 + day, n.pv + floor(power(random(), 4) * 9), n.pv, n.pv
		FROM pages AS p
		CROSS JOIN generate_series(1, 9) AS day
		CROSS JOIN LATERAL (SELECT floor(power(random(), 6) * 12)::bigint AS pv, p.id) AS n
		WHERE p.site_id IS NOT NULL AND random() < 0.9`)
	r.Exec(t, `
		INSERT INTO days (page_id, day_id, hot, pv, new_visitors)
		SELECT site_id, day_id, sum(hot), sum(pv), sum(new_visitors) FROM days GROUP BY site_id, day_id`)
	return r
}

func TestTopPagesAroundListLengths(t *testing.T) {
	t.Parallel()
	r := newLongLists(t)
	want := func(site, by string, in visit.Range, n int) []string {
		return desk.Column[string](t, r.Desk, `
			SELECT p.uri || ' ' || sum(CASE $2 WHEN 'hot' THEN d.hot ELSE d.pv END)
			FROM pages AS p JOIN days AS d ON d.page_id = p.id AND d.day_id BETWEEN $3 AND $4
			WHERE p.site_id IS NOT NULL AND ($1 = '' OR p.uri LIKE $1 || '/%')
			GROUP BY p.id
			HAVING sum(CASE $2 WHEN 'hot' THEN d.hot ELSE d.pv END) > 0
			ORDER BY sum(CASE $2 WHEN 'hot' THEN d.hot ELSE d.pv END) DESC, p.id
			LIMIT $5`, site, by, in.From, in.To, n)
	}
	lines := func(pages []report.PageBetween, by string) []string {
		list := []string{}
		for _, p := range pages {
			list = append(list, fmt.Sprint(p.URI, " ", numbers[by](p)))
		}
		return list
	}
	ranges := []visit.Range{visit.AllDays, {From: 20190603, To: 20190603}, {From: 20190602, To: 20190607}}
	check := func() {
		for _, n := range []int{1, 24, 25, 26, 100, 249, 250, 251, 999, 1000, 1001, 2000} {
			for i, site := range []string{"", "s1.example", "s2.example", "s3.example"} {
				if testing.Short() && (n+i)%2 == 0 {
					continue
				}
				by, in := []string{"pv", "hot", "uv"}[(n+i)%3], ranges[(n/3+i)%3]
				pages, err := listed(r.TopPages(t.Context(), report.Look{App: "demo", Target: site, In: in, By: by, N: n}))
				require.NoError(t, err)
				require.Equal(t, want(site, by, in, n), lines(pages, by), "%d of %q by %s in %v", n, site, by, in)
			}
		}
	}
	check()
	r.Exec(t, `INSERT INTO closed_days (day_id) SELECT 20190600 + day FROM generate_series(1, 9) AS day ON CONFLICT DO NOTHING;
		SELECT make_tops()`)
	check()
	r.Exec(t, `DELETE FROM tops WHERE random() < 0.4`)
	check()

	for _, by := range []string{"pv", "hot"} {
		var all []report.PageBetween
		for at := new(report.Cursor); at != nil; {
			var part []report.Page
			var err error
			part, at, err = r.TopPagesAfter(t.Context(), report.Look{App: "demo", In: visit.AllDays, By: by, After: *at, N: 450})
			require.NoError(t, err)
			some, _ := between(part, nil)
			all = append(all, some...)
		}
		require.Equal(t, want("", by, visit.AllDays, 10000), lines(all, by), "part by part, by %s", by)
	}
}

// A page that is in no day's list, because other pages were ahead on each day, is still first in total if it was
// close on all days.
func TestTopPagesThatNoListHas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loud  int // the number of the page loud, which is in one list; the page steady has 90
		first string
	}{{88, "steady"}, {90, "steady"}, {91, "loud"}} { // if the numbers are equal, the page with the smaller id is first
		for _, others := range []int{100, 1000} { // the length of a list that is read first, and its whole length
			if testing.Short() && others == 1000 && c.loud == 88 {
				continue
			}
			t.Run(fmt.Sprint(c.loud, " ", others), func(t *testing.T) {
				t.Parallel()
				r := newReading(t)
				r.Exec(t, `INSERT INTO pages (app_id, uri) VALUES (1, 'a.example')`)
				r.Exec(t, `INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'a.example/' || n FROM generate_series(1, 9 * $1::integer) AS n`,
					others)
				r.Exec(t, `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'a.example/steady')`)
				r.Exec(t, `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'a.example/loud')`)
				r.Exec(t, `
					INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
					SELECT p.id, 1, 20190601 + d, n, n, n
					FROM pages AS p
					CROSS JOIN generate_series(0, 8) AS d
					CROSS JOIN LATERAL (SELECT CASE p.uri WHEN 'a.example/loud' THEN $1 ELSE 10 END) AS number (n)
					WHERE p.site_id = 1
					  AND (p.uri = 'a.example/steady' OR p.uri = 'a.example/loud' AND d = 0 OR (p.id - 2) / $2 = d)`, c.loud, others)
				r.Exec(t, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) SELECT 1, day_id, sum(hot), sum(pv), sum(new_visitors) FROM days
					GROUP BY day_id`)
				r.Exec(t, `INSERT INTO closed_days (day_id) SELECT 20190601 + d FROM generate_series(0, 8) AS d; SELECT make_tops()`)
				require.Equal(t, int64(1), one[int64](t, r, `
					SELECT count(DISTINCT p.uri) FROM tops AS t CROSS JOIN unnest(t.page_ids[:$1]) AS l (id) JOIN pages AS p ON p.id = l.id
					WHERE p.uri IN ('a.example/steady', 'a.example/loud')`, others))
				r.Exec(t, `INSERT INTO counters (page_id, hot, pv, uv) SELECT page_id, sum(hot), sum(pv), sum(new_visitors) FROM days GROUP BY page_id`)
				first := func(in visit.Range) {
					pages, err := listed(r.TopPages(t.Context(), report.Look{App: "demo", Target: "", In: in, By: "pv", N: 2}))
					require.NoError(t, err)
					require.Len(t, pages, 2)
					assert.Equal(t, "a.example/"+c.first, pages[0].URI)
					assert.GreaterOrEqual(t, pages[1].PV, int64(88))
					pages, err = listed(r.TopPages(t.Context(), report.Look{App: "demo", Target: "a.example", In: in, By: "hot", N: 1}))
					require.NoError(t, err)
					require.Len(t, pages, 1)
					assert.Equal(t, "a.example/"+c.first, pages[0].URI)
				}
				first(visit.AllDays)
				r.Exec(t, `INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
					VALUES (1, NULL, 20190531, 999, 999, 0), (2, 1, 20190531, 999, 999, 0)`)
				r.Exec(t, `UPDATE counters SET hot = hot + 999, pv = pv + 999 WHERE page_id IN (1, 2)`)
				first(visit.Range{From: 20190601, To: 20190630}) // the numbers of this range are not the all-time numbers
			})
		}
	}
}

// A request for very many pages is refused with a remedy, without a delay.
func TestUniquesOfTooManyPages(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	r.Exec(t, `INSERT INTO pages (app_id, uri) VALUES (1, 'a.example')`)
	r.Exec(t, `INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, 'a.example/p' || n FROM generate_series(1, 100001) AS n`)
	_, err := r.UniquesOf(t.Context(), report.Look{App: "demo", Prefix: "a.example/p", In: visit.AllDays})
	var told *visit.Error
	require.ErrorAs(t, err, &told)
	assert.Equal(t, visit.Invalid, told.Kind)
	assert.Contains(t, told.Message(), "choose fewer days, fewer pages, or a whole site")
	for _, prefix := range []string{"a.example/p1", "a.example/", "a.ex"} {
		u, err := r.UniquesOf(t.Context(), report.Look{App: "demo", Prefix: prefix, In: visit.AllDays})
		require.NoError(t, err, prefix)
		assert.Equal(t, report.Uniques{Exact: true}, u, prefix)
	}
}

// Uniques of groups of targets are estimated if the rows of their visits were deleted.
func TestSketchesEstimate(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	in := visit.Range{From: 20190601, To: 20190603}
	sizes := []int{0, 1, 2, 10, 50, 200, 1000, 5000, 50000}
	for day := in.From; day <= in.To; day++ {
		r.Exec(t, `SELECT make_visits_day($1)`, day)
	}
	r.Exec(t, `INSERT INTO pages (app_id, uri) VALUES (1, 'a.example')`)
	for i, size := range sizes {
		r.Exec(t, `INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, format('a.example/%s/%s', $1::integer, n)
			FROM generate_series(0, 2) AS n`, i)
		// Every visitor visits one page on one day, and every third also another page on another day.
		r.Exec(t, `
			INSERT INTO visits (page_id, day_id, previous_day, ip)
			SELECT p.id, 20190601 + (v + again) % 3, 0, '10.0.0.0'::inet + ($1::integer * 100000 + v)
			FROM generate_series(1, $2::integer) AS v
			CROSS JOIN generate_series(0, 1) AS again
			JOIN pages AS p ON p.uri = format('a.example/%s/%s', $1::integer, (v / 7 + again) % 3)
			WHERE again = 0 OR v % 3 = 0`, i, size)
	}
	group := func(i int) []string {
		return []string{fmt.Sprintf("a.example/%d/0", i), fmt.Sprintf("a.example/%d/1", i), fmt.Sprintf("a.example/%d/2", i)}
	}
	for i, size := range sizes {
		u, err := r.UniquesOf(t.Context(), report.Look{App: "demo", Targets: group(i), In: in})
		require.NoError(t, err)
		require.Equal(t, report.Uniques{Uniques: int64(size), Exact: true}, u)
	}
	r.Exec(t, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) SELECT 1, day_id, count(*), count(DISTINCT ip), 0 FROM visits
		GROUP BY day_id`)
	r.Exec(t, `SELECT close_day(20190600 + day) FROM unnest('{1, 3}'::integer[]) AS day`) // the second day has no sketch
	r.Exec(t, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20190604)`)
	r.Exec(t, `DELETE FROM visits WHERE day_id <> 20190602`)
	estimated := func() (all []int64) {
		for i, size := range sizes {
			u, err := r.UniquesOf(t.Context(), report.Look{App: "demo", Targets: group(i), In: in})
			require.NoError(t, err)
			assert.False(t, u.Exact)
			assert.InDelta(t, 0.01625, u.StandardError, 1e-9)
			assert.LessOrEqual(t, math.Abs(float64(u.Uniques)-float64(size)), math.Ceil(5*u.StandardError*float64(size)), "%d visitors", size)
			under, err := r.UniquesOf(t.Context(), report.Look{App: "demo", Prefix: fmt.Sprintf("a.example/%d/", i), In: in})
			require.NoError(t, err)
			assert.Equal(t, u, under)
			all = append(all, u.Uniques)
		}
		return all
	}
	mixed := estimated()
	r.Exec(t, `SELECT close_day(20190602)`)
	r.Exec(t, `DELETE FROM visits`)
	assert.Equal(t, mixed, estimated(), "a sketch equals one with later additions")
	assert.LessOrEqual(t, one[int](t, r, `SELECT max(pg_column_size(s)) FROM sketches AS s`), 17_000)
}

// The service reads as footfall_app, including views on tables that it may not read.
func TestServiceReadsReports(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	dbtest.NeedSuperuser(t, h.Tables())
	require.NoError(t, h.Admin.DeletePage(t.Context(), "demo", "http://"+h.targets[1]))
	h.checkDeleted(t, h.targets[0]+visit.DeletedPage)
	_, err := h.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.7")
	require.NoError(t, err)
	for _, day := range h.days[:4] {
		require.True(t, one[bool](t, h.reading, `SELECT close_day($1)`, day))
	}
	h.Exec(t, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, $1)`, h.days[3])
	d := dbtest.Open(t, dbtest.WithParameter(t, h.URL, "role", "footfall_app"), db.Options{})
	service := report.NewReader(d)
	read := func(from *report.Reader) string {
		all, ctx, site := []any{}, t.Context(), h.targets[0]
		add := func(v any, err error) {
			require.NoError(t, err)
			all = append(all, v)
		}
		for _, in := range []visit.Range{visit.AllDays, {From: firstDay + 1, To: lastDay}} {
			for by := range numbers {
				_, err := listed(from.TopPages(ctx, report.Look{App: "demo", Target: "", In: in, By: by, N: 1000}))
				require.NoError(t, err)
			}
			add(from.PagesAfter(ctx, report.Look{App: "demo", In: in}, 1000))
			add(from.Days(ctx, "demo", site, in, 1000))
			add(from.UniquesOf(ctx, report.Look{App: "demo", Target: site, In: in}))
			add(from.UniquesOf(ctx, report.Look{App: "demo", Targets: h.targets[:5], In: in}))
			add(from.UniquesOf(ctx, report.Look{App: "demo", Prefix: site[:3], In: in}))
		}
		filtered := report.Look{App: "demo", Target: "s1.example", In: visit.Range{From: lastDay, To: lastDay}, Where: []string{"source:google"}}
		add(from.UniquesOf(ctx, filtered))
		add(from.TopPages(ctx, filtered))
		add(from.Sites(ctx, "demo", "", 10))
		add(from.Visitors(ctx, report.Look{App: "demo", Target: site, Day: lastDay, N: 100}))
		add(from.Ranked(ctx, report.Look{App: "demo", Target: site, Rank: 3}))
		_, err := from.Ranked(ctx, report.Look{App: "demo", Target: site, Stored: []netip.Addr{netip.MustParseAddr("192.0.2.7")}})
		require.ErrorIs(t, err, report.ErrNoVisitor)
		return text(t, all)
	}
	said := read(service)
	require.Equal(t, read(h.Reader), said)
	require.Contains(t, said, "/(deleted)")
	require.Contains(t, said, `"exact":false`)
}

// checkDeleted compares the uniques of a page (deleted) with its rows.
func (h *history) checkDeleted(t *testing.T, page string) {
	t.Helper()
	for _, in := range []visit.Range{visit.AllDays, {From: firstDay, To: firstDay + 1}, {From: firstDay + 1, To: lastDay}} {
		want := one[int64](t, h.reading, `SELECT count(DISTINCT v.ip) FROM visits v JOIN pages p ON p.id = v.page_id
			WHERE p.uri = $1 AND v.day_id BETWEEN $2 AND $3`, page, in.From, in.To)
		require.Positive(t, want)
		uniques, err := h.UniquesOf(t.Context(), report.Look{App: "demo", Target: page, In: in})
		require.NoError(t, err)
		assert.Equal(t, report.Uniques{Uniques: want, Exact: true}, uniques, "%v", in)
		listed, err := between(h.PagesAfter(t.Context(), report.Look{App: "demo", Prefix: page, In: in}, 1))
		require.NoError(t, err)
		assert.Equal(t, want, listed[0].Uniques, "%v", in)
		assert.Zero(t, listed[0].NewVisitors, "it is not known who was new")
	}
}

// A read of a locked table waits as long as the caller wants, and no longer. Its connection, one of two, can be used
// again.
func TestReadingEndsInTime(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	other := r.Conn(t)
	tx, err := other.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE pages`)
	require.NoError(t, err)
	for range 4 {
		soon, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := r.Sites(soon, "demo", "", 1)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, tx.Rollback(t.Context()))
	sites, err := r.Sites(t.Context(), "demo", "", 1)
	require.NoError(t, err)
	assert.Empty(t, sites)
	_, err = listed(r.TopPages(t.Context(), report.Look{App: "demo", Target: "", In: visit.AllDays, By: "rank", N: 1}))
	require.Error(t, err)
	assert.True(t, strings.HasPrefix(err.Error(), "read top pages: "), err)
	assert.False(t, errors.Is(err, report.ErrNoVisitor))
}
