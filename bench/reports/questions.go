package reports

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/tables"
)

// asker asks reports of a world, as somebody who may read reports and nothing else.
type asker struct {
	*world
	q      *tables.Queries
	random *rand.Rand
}

// question is a report with parameters at random. It is as long as SQL and HTTP take to bring all
// of its answer.
type question struct {
	name string
	ask  func(ctx context.Context, a *asker) error
}

// rows drops the answer of a question.
func rows[T any](_ T, err error) error { return err }

// sqlQuestions are asked in SQL.
func sqlQuestions() []question {
	all := []question{
		{"sites", func(ctx context.Context, a *asker) error { return rows(a.q.ReportSites(ctx, a.app)) }},
		{"page", func(ctx context.Context, a *asker) error {
			return rows(a.q.ReportPage(ctx, tables.ReportPageParams{App: a.app, Uri: a.randomPage(a.random)}))
		}},
		{"pages under a path", func(ctx context.Context, a *asker) error {
			path := a.randomSite(a.random) + "/" + generate.Sections[a.random.IntN(len(generate.Sections))] + "/"
			return rows(a.q.ReportPagesUnder(ctx, tables.ReportPagesUnderParams{App: a.app, Path: path}))
		}},
		{"pages of a site, by hot in all", func(ctx context.Context, a *asker) error {
			return rows(a.q.ReportPagesByHot(ctx, tables.ReportPagesByHotParams{App: a.app, Site: a.randomSite(a.random)}))
		}},
		{"visitors today, how many", func(ctx context.Context, a *asker) error {
			return rows(a.q.ReportCountToday(ctx, tables.ReportCountTodayParams{App: a.app, Target: a.randomPage(a.random)}))
		}},
		{"visitors today, 100 of them", func(ctx context.Context, a *asker) error {
			return rows(a.q.ReportVisitorsToday(ctx, tables.ReportVisitorsTodayParams{App: a.app, Target: a.randomPage(a.random)}))
		}},
		{"visits of a day", func(ctx context.Context, a *asker) error {
			day, _ := a.randomDays(a.random, 1)
			return rows(a.q.ReportVisits(ctx, tables.ReportVisitsParams{App: a.app, Uri: a.randomPage(a.random), Day: day}))
		}},
	}
	all = append(all, question{"who came to a site, 100 in 30 days", func(ctx context.Context, a *asker) error {
		from, to := a.randomDays(a.random, 30)
		return rows(a.q.ReportWhoCame(ctx, tables.ReportWhoCameParams{App: a.app, Target: a.randomSite(a.random), FromDay: from, ToDay: to}))
	}})
	for _, kind := range kindsOfTarget {
		all = append(all, question{kind.name + ", a rank", func(ctx context.Context, a *asker) error {
			target := kind.random(a.world, a.random)
			return rows(a.q.ReportRank(ctx, tables.ReportRankParams{App: a.app, Target: target, Rank: 1 + a.random.Int64N(a.uv[target])}))
		}}, question{kind.name + ", uniques", func(ctx context.Context, a *asker) error {
			from, to := a.anyDays(a.random)
			return rows(a.q.ReportUniques(ctx, tables.ReportUniquesParams{App: a.app, Target: kind.random(a.world, a.random), FromDay: from, ToDay: to}))
		}})
		for _, length := range []int{30, 60} {
			all = append(all, question{fmt.Sprintf("%s, %d days", kind.name, length), func(ctx context.Context, a *asker) error {
				from, to := a.randomDays(a.random, length)
				return rows(a.q.ReportDays(ctx, tables.ReportDaysParams{App: a.app, Target: kind.random(a.world, a.random), FromDay: from, ToDay: to}))
			}})
		}
	}
	for _, by := range []string{"pv", "hot"} {
		for _, length := range []int{1, 7, 30, 60} {
			all = append(all, question{fmt.Sprintf("top pages of %d days by %s", length, by), func(ctx context.Context, a *asker) error {
				from, to := a.randomDays(a.random, length)
				return rows(a.q.ReportTopPages(ctx, tables.ReportTopPagesParams{App: a.app, FromDay: from, ToDay: to, N: topPages, By: by}))
			}}, question{fmt.Sprintf("top pages of a site, %d days by %s", length, by), func(ctx context.Context, a *asker) error {
				from, to := a.randomDays(a.random, length)
				site := a.randomSite(a.random)
				return rows(a.q.ReportTopPages(ctx, tables.ReportTopPagesParams{App: a.app, FromDay: from, ToDay: to, N: topPages, By: by, Site: pgtype.Text{String: site, Valid: true}}))
			}})
		}
	}
	return all
}

// topPages is how many are asked for.
const topPages = 10

var kindsOfTarget = []struct {
	name   string
	random func(*world, *rand.Rand) string
}{
	{"page", (*world).randomPage}, {"site", (*world).randomSite},
}

// calls are the same over HTTP: a path and a query, below that of the app.
var calls = []struct {
	name string
	call func(a *asker) (path string, query url.Values)
}{
	{"GET sites", func(*asker) (string, url.Values) { return "sites", url.Values{} }},
	{"GET pages, 30 days by pv", func(a *asker) (string, url.Values) {
		return "pages", a.daysQuery(30, url.Values{"order": {"pv"}, "limit": {"20"}})
	}},
	{"GET pages of a site, 30 days by hot", func(a *asker) (string, url.Values) {
		return "pages", a.daysQuery(30, url.Values{"site": {a.randomSite(a.random)}, "order": {"hot"}, "limit": {"20"}})
	}},
	{"GET pages of a site, 30 days by uri", func(a *asker) (string, url.Values) {
		return "pages", a.daysQuery(30, url.Values{"site": {a.randomSite(a.random)}, "order": {"uri"}, "limit": {"100"}})
	}},
	{"GET days of a page, 60 days", func(a *asker) (string, url.Values) {
		return "days", a.daysQuery(60, url.Values{"uri": {"http://" + a.randomPage(a.random)}})
	}},
	{"GET visitors of a page on a day", func(a *asker) (string, url.Values) {
		day, _ := a.randomDays(a.random, 1)
		return "visitors", url.Values{"uri": {"http://" + a.randomPage(a.random)}, "day": {strconv.Itoa(int(day))}}
	}},
	{"GET ranks, by rank", func(a *asker) (string, url.Values) {
		page := a.randomPage(a.random)
		return "ranks", url.Values{"uri": {"http://" + page}, "rank": {strconv.FormatInt(1+a.random.Int64N(a.uv[page]), 10)}}
	}},
	{"GET ranks, by address", func(a *asker) (string, url.Values) {
		v := a.came[a.random.IntN(len(a.came))]
		return "ranks", url.Values{"uri": {"http://" + v.Uri}, "ip": {v.Ip.String()}}
	}},
	{"GET uniques of a page", func(a *asker) (string, url.Values) {
		from, to := a.anyDays(a.random)
		return "uniques", url.Values{"uri": {"http://" + a.randomPage(a.random)}, "from": {strconv.Itoa(int(from))}, "to": {strconv.Itoa(int(to))}}
	}},
	{"GET uniques of a site", func(a *asker) (string, url.Values) {
		from, to := a.anyDays(a.random)
		return "uniques", url.Values{"site": {a.randomSite(a.random)}, "from": {strconv.Itoa(int(from))}, "to": {strconv.Itoa(int(to))}}
	}},
}

// daysQuery adds a range of days to a query.
func (a *asker) daysQuery(length int, query url.Values) url.Values {
	from, to := a.randomDays(a.random, length)
	query.Set("from", strconv.Itoa(int(from)))
	query.Set("to", strconv.Itoa(int(to)))
	return query
}

// httpQuestions are asked of a service, by one client that keeps its connection.
func httpQuestions(address string) (all []question) {
	for _, c := range calls {
		all = append(all, question{c.name, func(ctx context.Context, a *asker) error {
			path, query := c.call(a)
			_, err := bench.Fetch(ctx, fmt.Sprintf("%s/api/apps/%s/%s?%s", address, a.app, path, query.Encode()))
			return err
		}})
	}
	return all
}

// pageQuestions are pages of the dashboard, from the first byte that is sent to the last that
// comes.
func pageQuestions(address string) (all []question) {
	all = append(all, question{"dashboard, first page", func(ctx context.Context, _ *asker) error {
		return rows(bench.Fetch(ctx, address+"/"))
	}})
	for _, span := range []string{"today", "7d", "30d", "90d", "all"} {
		for _, kind := range []struct {
			name string
			path func(a *asker) string
		}{
			{"app", func(*asker) string { return "?" }},
			{"site", func(a *asker) string { return "/" + a.randomSite(a.random) + "?" }},
			{"page", func(a *asker) string {
				site, path, _ := strings.Cut(a.randomPage(a.random), "/")
				return "/" + site + "?" + url.Values{"page": {"/" + path}}.Encode() + "&"
			}},
			{"folder", func(a *asker) string {
				return "/" + a.randomSite(a.random) + "?folder=/" + generate.Sections[a.random.IntN(len(generate.Sections))] + "/&"
			}},
		} {
			all = append(all, question{fmt.Sprintf("dashboard, %s, %s", kind.name, span), func(ctx context.Context, a *asker) error {
				return rows(bench.Fetch(ctx, address+"/dash/"+a.app+kind.path(a)+"range="+span))
			}})
		}
	}
	return all
}
