package handler

import (
	"context"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/retention"
)

// Pages, both REST forms and SQL return the same numbers for filtered visitors as a model of sets.
func TestFiltersAgreeInEachWay(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	from := map[string]string{"google": "https://www.google.com/", "wiki.example": "https://wiki.example/a", "(none)": ""}
	var model desk.Model
	for day := range 3 {
		now := noon.AddDate(0, 0, day)
		e.Clock.Set(now)
		for i, source := range []string{"google", "wiki.example", "(none)", "google", "google", "(none)", "wiki.example", "google"} {
			n := (i + 3*day) % 9
			for _, page := range []string{"/home", "/docs/a", "/docs/b", "/home"}[(i+day)%3:] {
				e.brings(n, "http://hhui.top"+page, from[source])
				tags := []string{"hour 12", "source " + source}
				if source == "(none)" {
					tags = tags[:1]
				}
				model.Counted(desk.Seen{Visitor: fmt.Sprint(n), Page: "hhui.top" + page, Day: 20190629 + []int32{0, 1, 72}[day],
					PageTag: tags[1:], SiteTag: tags[:1]})
			}
			for _, event := range []string{"signup", "paid"}[:n%3] {
				require.Equal(t, http.StatusOK, e.get(fmt.Sprintf("/visit?app=demo&ip=192.0.2.%d&event=%s", n, event)).status)
				model.Counted(desk.Seen{Visitor: fmt.Sprint(n), Page: "(events)/" + event, Day: 20190629 + []int32{0, 1, 72}[day]})
			}
		}
	}
	e.Close() // also adds up tags
	other := desk.On(t, e.URL, desk.Options{Began: noon.AddDate(0, 0, 3)})
	later := func(i int) {
		_, err := other.Visit(context.Background(), counter.Request{App: "demo", IP: fmt.Sprintf("192.0.2.%d", i%30),
			URI: "http://hhui.top/home"})
		assert.NoError(t, err)
	}
	e.checkFilters(&model, later)
	never := 0
	require.NoError(t, e.Admin.SetApp(t.Context(), "demo", app.Settings{RetainDays: &never}))
	_, err := retention.NewRetainer(e.DB, retention.Options{Clock: other.Clock.Now}).Run(t.Context())
	require.NoError(t, err)
	e.checkFilters(&model, later) // also after the daily task

	// The former visits to deleted pages are not known, so each deleted page's visitors are separate.
	for _, page := range []string{"/docs/a", "/docs/b", "/home"} {
		require.NoError(t, e.Admin.DeletePage(t.Context(), "demo", "http://hhui.top"+page))
	}
	came := desk.Column[int64](t, e.Desk, `SELECT count(DISTINCT v.ip) FROM footfall.visits AS v JOIN footfall.pages AS p ON p.id = v.page_id
		WHERE p.uri = 'hhui.top/(deleted)' AND v.day_id <= 20190701`)
	assert.Equal(t, came, desk.Column[int64](t, e.Desk,
		`SELECT uniques FROM report.pages_where('demo', 'hhui.top', 20190629, 20190701, '{hour:12}')`))
}

var (
	bigNumber   = regexp.MustCompile(`class="big">([^<]*)`)
	eventsTable = regexp.MustCompile(`(?s)<h2 id="events">.*?</table>`)
	pagesTable  = regexp.MustCompile(`(?s)<h2 id="pages">.*?</table>`)
	fromTable   = regexp.MustCompile(`(?s)<h2 id="from">.*?</table>`)
)

// checkFilters queries visitors under random conditions, in each way, and some of the numbers in every other way. It
// calls beside once during each query.
func (e *edge) checkFilters(model *desk.Model, beside func(i int)) {
	t := e.t
	t.Helper()
	const to, api, in = 20190701, "/api/apps/demo/", "?site=hhui.top&from=20190629&to=20190701&"
	asked, somebody := dbtest.LongOrShort(300, 50), 0
	var others sync.WaitGroup
	defer others.Wait()
	for i := range asked {
		others.Go(func() { beside(i) })
		conditions := desk.AnyConditions(map[string][]string{"source": {"google", "wiki.example", "(none)"}, "hour": {"12"},
			"page": {"/home", "/docs/a", "/docs/*", "/docs/b"}, "event": {"signup", "paid"}})
		want := model.Where("hhui.top", nil, 20190629, to, conditions...)
		require.Equal(t, want, e.WhereOf(t, "hhui.top", 20190629, to, []string{"source", "hour"}, conditions...), conditions)
		query := url.Values{"where": conditions}.Encode()
		if rand.IntN(5) == 0 {
			e.tellsOfGoals(model, to, query, conditions)
		}
		var told []string
		shown := e.get("/dash/demo/hhui.top?range=30d&" + query).body
		for _, n := range bigNumber.FindAllStringSubmatch(shown, -1) {
			told = append(told, n[1])
		}
		require.Len(t, told, 4, conditions)
		assert.Contains(t, want, "numbers "+strings.Join(told[:3], " "), conditions)
		assert.Equal(t, "–", told[3], "the number of returning visits is not recorded")
		if told[0] != "0" {
			somebody++
		}
		row := func(table *regexp.Regexp, name, number string) {
			assert.Regexp(t, `<bdi>`+name+`</bdi>(</a>)?</th><td class="n">`+number+`<`, table.FindString(shown), conditions)
		}
		rand.Shuffle(len(want), func(i, j int) { want[i], want[j] = want[j], want[i] })
		for _, line := range want[:min(len(want), 3)] {
			words := strings.Fields(line)
			switch words[0] {
			case "numbers":
				assert.Contains(t, e.get(api+"numbers"+in+query).body,
					fmt.Sprintf(`"uniques":%s,"new_visitors":%s,"pv":%s,"hot":null`, words[1], words[2], words[3]), conditions)
			case "day":
				assert.Contains(t, e.get(api+"days"+in+"format=csv&"+query).body, strings.Join(words[1:], ",")+",\r\n", conditions)
			case "page":
				row(pagesTable, words[1], words[2])
				assert.Contains(t, e.get(api+"pages"+in+"format=csv&"+query).body,
					fmt.Sprintf("hhui.top%s,%s,%s,%s,,", words[1], words[4], words[3], words[2]), conditions)
			case "event":
				row(eventsTable, words[1], words[2])
				assert.Contains(t, e.get(api+"events"+in+"format=csv&"+query).body, strings.Join(words[1:], ",")+"\r\n", conditions)
			case "tag":
				if words[1] == "source" {
					row(fromTable, words[2], words[3])
				}
				assert.Contains(t, e.get(api+"tags"+in+"format=csv&name="+words[1]+"&"+query).body,
					strings.Join(words[2:], ",")+"\r\n", conditions)
			}
		}
	}
	assert.Greater(t, somebody, asked/3)
}

// Impossible conditions are refused with the possible ones. Chips and values add and remove conditions.
func TestFiltersNamePossibleConditions(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.brings(1, "http://hhui.top/home", "https://www.google.com/")
	e.brings(2, "http://hhui.top/a%7Cb", "")
	e.brings(3, "http://hhui.top/blog/(deleted)", "")
	e.Close()
	const site, api = "/dash/demo/hhui.top?range=today", "/api/apps/demo/numbers?site=hhui.top&"
	for where, says := range map[string]string{
		"source:bing": "there are google", "x": "is not a condition", "colour:red": "there are page, event, new, returning, source",
		"page:/none":   "has no page /none",
		"page:.evil/x": "is not a path", "event:signup": "there are no events", "!source:": "is not a condition",
		"page:/none/*": "has no page", ":x": "is not a condition",
		"page:/home|/none": "has no page /none",
	} {
		for _, at := range []string{site + "&where=", api + "where="} {
			a := e.get(at + url.QueryEscape(where))
			assert.Equal(t, http.StatusBadRequest, a.status, where)
			assert.Contains(t, html.UnescapeString(a.body), says, where)
		}
	}
	_, err := e.Tables().Exec(t.Context(), `SELECT FROM report.numbers_where('demo', '', 20190629, 20190629, ARRAY['page:/docs/*'])`)
	require.ErrorContains(t, err, "where: page:/docs/* needs a site: name one, since each site has its own pages")
	assert.EqualValues(t, 1, e.One(t, `SELECT new_visitors FROM report.pages_where('demo', 'hhui.top', 20190629, 20190629, '{}')
		WHERE uri = 'hhui.top/blog/(deleted)'`), "it is a page like any other")
	nine := strings.Join([]string{"", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, "&where=!source:")
	assert.Equal(t, http.StatusBadRequest, e.get(site+nine).status)
	assert.Contains(t, e.get(api+"days_before=7&from=today&where=new").body, "with a filter, days cannot be compared in one request")

	under := e.get(site + "&where=" + url.QueryEscape("page:/a%257Cb")).body
	assert.Contains(t, under, `class="big">1<`, "a page with an escaped bar in its name")
	assert.Contains(t, under, `<bdi>/a%7Cb</bdi>`)
	assert.NotContains(t, under, "First visits")
	both := e.get(site + "&where=source:google&where=new").body
	less := regexp.MustCompile(`class="less" href="([^"]*)"`).FindAllStringSubmatch(both, -1)
	require.Len(t, less, 2)
	assert.Contains(t, html.UnescapeString(less[0][1]), "where=new")
	assert.NotContains(t, less[0][1], "source")
	assert.Contains(t, html.UnescapeString(both), "ARRAY['source:google', 'new']")

	for days, bar := range map[string]string{"7d&period=day&where=source:google": "?where=source%3Agoogle&from=2019-06-29&to=2019-06-29",
		"today&period=hour": "?where=hour%3A12&range=today&period=hour"} {
		shown := html.UnescapeString(e.get("/dash/demo/hhui.top?range=" + days).body)
		assert.Equal(t, 2, strings.Count(shown, `<a href="/dash/demo/hhui.top`+bar+`"`), "drawn, and in the table")
	}

	for pv, says := range map[int]string{2_000_000: `class="big">1<`, 2_000_001: "too many for one response: choose fewer days"} {
		e.Exec(t, `UPDATE footfall.days SET pv = $1, hot = $1 WHERE site_id IS NULL`, pv)
		assert.Contains(t, e.get(site+"&where=source:google").body, says)
	}
}

// If filters are off, rows store no tags of visits, and tags that were stored before are deleted.
func TestFiltersAreOff(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.brings(1, "http://hhui.top/home", "https://www.google.com/")
	rows := func() int64 { return e.One(t, `SELECT count(*) FROM footfall.visits WHERE tags IS NOT NULL`) }
	require.EqualValues(t, 1, rows())
	off, on := "off", "on"
	require.NoError(t, e.Admin.SetApp(t.Context(), "demo", app.Settings{Filters: &off}))
	require.Zero(t, rows())
	e.brings(2, "http://hhui.top/home", "https://www.google.com/")
	require.Zero(t, rows())
	const site = "/dash/demo/hhui.top?range=today&where=source:google"
	assert.Contains(t, html.UnescapeString(e.get(site).body), "filters of app demo are off")
	require.NoError(t, e.Admin.SetApp(t.Context(), "demo", app.Settings{Filters: &on}))
	e.brings(3, "http://hhui.top/home", "https://www.google.com/")
	require.EqualValues(t, 1, rows())
	e.Clock.Set(noon.Add(24 * time.Hour))
	e.brings(3, "http://hhui.top/home", "https://www.google.com/")
	e.Close()
	today := e.get("/dash/demo/hhui.top?range=7d&where=source:google&where=returning").body
	assert.Contains(t, today, "from 30 June 2019 on")
	assert.Contains(t, today, `class="big">1<`)
	assert.Equal(t, http.StatusBadRequest, e.get("/dash/demo/hhui.top?range=90d&all&where=:x").status, "a condition without a name")
	single := e.get("/dash/demo/hhui.top?range=7d&where=source:google").body
	assert.Regexp(t, `(?s)class="big">–<.*class="big">3<.*class="big">4<`, single, "its days are known for ever, and who came is not")
	assert.Equal(t, http.StatusBadRequest, e.get("/api/apps/demo/numbers?site=hhui.top&where=returning").status)
	assert.Contains(t, e.get("/api/apps/demo/numbers?site=hhui.top&where=source:google").body, `"uniques":null,"new_visitors":3,"pv":4`)
}

// tellsOfGoals compares goals and a funnel, in each way, with the model.
func (e *edge) tellsOfGoals(model *desk.Model, to int32, query string, conditions []string) {
	e.t.Helper()
	goals, steps := []string{"event:paid"}, []string{"page:/docs/*", "!source:google", "event:signup"}
	names := []string{"/docs/*", "not source google", "signup"}
	const api, in, page = "/api/apps/demo/", "?site=hhui.top&from=20190629&to=20190701&", "/dash/demo/hhui.top?range=30d&"
	asks := url.Values{"step": steps}.Encode() + "&" + query
	files := map[string]string{"step": e.get(api + "funnel" + in + "format=csv&" + asks).body}
	pages := map[string]string{"step": e.shown(page + "funnel&" + asks)}
	for _, by := range []string{"", "day", "source"} {
		asks := "goal=event:paid&" + query
		files[by] = e.get(api + "goals" + in + "format=csv&" + strings.TrimSuffix("by="+by, "by=") + "&" + asks).body
		pages[by] = e.shown(page + "goal_by=" + by + "&" + asks)
	}
	for _, line := range model.Reached("hhui.top", nil, 20190629, to, "source", goals, steps, conditions) {
		words := strings.Fields(line)
		number := func(n string) string { return `<td class="n">` + n + `</td>` }
		switch {
		case words[0] == "one":
			assert.Contains(e.t, e.get(api+"one-page"+in+"format=csv&"+query).body, words[1]+","+words[2]+",0\r\n", conditions)
		case words[0] == "step":
			assert.Regexp(e.t, `(?m)^`+words[1]+`,.*,`+words[2]+","+words[3]+"\r$", files["step"], conditions)
			assert.Regexp(e.t, `<bdi>`+regexp.QuoteMeta(names[words[1][0]-'1'])+`</bdi></th>`+number(words[2])+`.*`+number(words[3]), pages["step"],
				conditions)
		case len(words) == 4: // in total
			assert.Contains(e.t, files[""], "event:paid,,"+words[2]+","+words[3]+"\r\n", conditions)
		default:
			by, name := "source", words[2]
			if day, err := time.Parse("20060102", name); err == nil {
				by, name = "day", day.Format("Mon 2 January 2006")
			} else if name == "(none)" {
				name = "Direct"
			}
			assert.Contains(e.t, strings.ReplaceAll(files[by], `"`, ""), strings.Join(words[1:], ",")+"\r\n", conditions)
			assert.Contains(e.t, pages[by], name+`</bdi></th>`+number(words[3])+number(words[4]), conditions)
		}
	}
}
