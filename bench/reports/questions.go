package reports

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
)

// question is a report with parameters at random. It is as long as SQL and HTTP take to bring all
// of its answer.
type question struct {
	name string
	path func(w *world, random *rand.Rand) string
}

// query is one behind a path; numbers are days.
func query(pairs ...any) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return "?" + values.Encode()
}

// calls are reports below the path of an app in the API.
var calls = []question{
	{"GET sites", func(*world, *rand.Rand) string { return "sites" }},
	{"GET pages, 30 days by pv", func(w *world, random *rand.Rand) string {
		from, to := w.randomDays(random, 30)
		return "pages" + query("order", "pv", "limit", 20, "from", from, "to", to)
	}},
	{"GET pages of a site, 30 days by hot", func(w *world, random *rand.Rand) string {
		from, to := w.randomDays(random, 30)
		return "pages" + query("site", w.randomSite(random), "order", "hot", "limit", 20, "from", from, "to", to)
	}},
	{"GET pages of a site, 30 days by uri", func(w *world, random *rand.Rand) string {
		from, to := w.randomDays(random, 30)
		return "pages" + query("site", w.randomSite(random), "order", "uri", "limit", 100, "from", from, "to", to)
	}},
	{"GET days of a page, 60 days", func(w *world, random *rand.Rand) string {
		from, to := w.randomDays(random, 60)
		return "days" + query("uri", "http://"+w.randomPage(random), "from", from, "to", to)
	}},
	{"GET visitors of a page on a day", func(w *world, random *rand.Rand) string {
		day, _ := w.randomDays(random, 1)
		return "visitors" + query("uri", "http://"+w.randomPage(random), "day", day)
	}},
	{"GET ranks, by address", func(w *world, random *rand.Rand) string {
		v := w.came[random.IntN(len(w.came))]
		return "ranks" + query("uri", "http://"+v.Uri, "ip", v.Ip)
	}},
	{"GET uniques of a page", func(w *world, random *rand.Rand) string {
		from, to := w.anyDays(random)
		return "uniques" + query("uri", "http://"+w.randomPage(random), "from", from, "to", to)
	}},
	{"GET uniques of a site", func(w *world, random *rand.Rand) string {
		from, to := w.anyDays(random)
		return "uniques" + query("site", w.randomSite(random), "from", from, "to", to)
	}},
}

// pages are those of the dashboard, below the path of an app, in a range of days.
var pages = []question{
	{"app", func(*world, *rand.Rand) string { return "?" }},
	{"site", func(w *world, random *rand.Rand) string { return "/" + w.randomSite(random) + "?" }},
	{"page", func(w *world, random *rand.Rand) string {
		site, path, _ := strings.Cut(w.randomPage(random), "/")
		return "/" + site + query("page", "/"+path) + "&"
	}},
}

// questions are all, each with the path from the root of the service.
func (w *world) questions() (all []question) {
	below := func(name, before string, q question, after string) {
		all = append(all, question{name, func(w *world, random *rand.Rand) string { return before + q.path(w, random) + after }})
	}
	for _, q := range calls {
		below(q.name, "/api/apps/"+w.app+"/", q, "")
	}
	all = append(all, question{"dashboard, first page", func(*world, *rand.Rand) string { return "/" }})
	for _, span := range []string{"today", "7d", "30d", "90d", "all"} {
		for _, q := range pages {
			below("dashboard, "+q.name+", "+span, "/dash/"+w.app, q, "range="+span)
		}
	}
	return all
}
