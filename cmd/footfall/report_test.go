package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// seen is a visit of a test: a day, a visitor and a page.
type seen struct {
	day  int32
	from string
	uri  string
}

// testSecret is the key of hashed visitors.
var testSecret = bytes.Repeat([]byte("s"), app.SecretBytes)

// countAll counts visits for an app demo on a new database, in order and each on its day. It returns the URL of the database.
func countAll(t *testing.T, settings app.Settings, visits ...seen) (url string) {
	t.Helper()
	o := desk.Options{Began: time.Date(2019, 6, 29, 12, 0, 0, 0, time.UTC)}
	o.Secret = testSecret
	d := desk.On(t, dbtest.New(t), o)
	defer d.Close()
	open := "open"
	settings.Access = &open
	require.NoError(t, admin.NewAdmin(d.DB, testSecret).AddApp(t.Context(), "demo", settings))
	for _, v := range visits {
		day, err := time.Parse("20060102", fmt.Sprint(v.day))
		require.NoError(t, err)
		d.Clock.Set(day.Add(12 * time.Hour))
		request := counter.Request{App: "demo", URI: v.uri, IP: v.from}
		if settings.Visitor != nil && *settings.Visitor == "id" {
			request.IP, request.Visitor = "", v.from
		}
		d.CountAs(t, request)
	}
	return d.URL
}

// sixSteps are six visits on two days, and two later visits.
var sixSteps = []seen{
	{20190629, "192.168.0.1", "http://hhui.top/home"},
	{20190629, "192.168.0.1", "http://hhui.top/home"},
	{20190629, "192.168.0.1", "http://hhui.top/index"},
	{20190629, "192.168.0.2", "http://hhui.top/index"},
	{20190629, "192.168.0.2", "http://hhui.top/home"},
	{20190630, "192.168.0.2", "http://hhui.top/home"},
	{20190702, "192.168.0.3", "http://hhui.top/home"},
	{20190702, "192.168.0.1", "http://hhui.top/index"},
}

// A user with the rights of footfall_report can run all reports, even in a read-only session, and nothing else.
func TestReports(t *testing.T) {
	t.Parallel()
	owner := countAll(t, app.Settings{}, sixSteps...)
	url := dbtest.WithParameter(t, owner, "options", "-c role=footfall_report -c default_transaction_read_only=on")
	assert.Equal(t, 1, footfall(t, "app", "add", "shop", "--visitor=address", "--site=shop.example", "--database-url="+url).code)
	for _, c := range []struct {
		name string
		args string
		says string
	}{
		{"top pages", "top --from=20190629 --to=2019-07-02 --ascii", `
demo: top pages by pv, from 2019-06-29 to 2019-07-02

#  PAGE            PV                       NEW  UNIQUES  HOT
1  hhui.top/home    4 ####################    3        3    5
2  hhui.top/index   3 ###############         2        2    3
`},
		{"top pages of a site by visits", "top --from=1d --to=20190629 --by=hot --site=http://HHUI.top/ -n 1 --ascii", `
demo, hhui.top: top pages by hot, on 2019-06-29

#  PAGE           PV  NEW  UNIQUES  HOT
1  hhui.top/home   2    2        2    3 ####################
`},
		{"hours", "tags hhui.top --name=hour --from=20190628 --to=20190702 --ascii", `
demo: hhui.top by hour, from 2019-06-28 to 2019-07-02

HOUR    PV                       NEW
12       5 ####################    3
(none)   0                         0

tags are recorded from 2019-06-29 on: visitors of earlier days are listed as (none)
`},
		{"visitors of one page", "panel one-page --from=20190629 --to=20190702", `
demo, hhui.top: one_page

VISITS  ONE PAGE  UNKNOWN
     5         3        0
`},
		{"numbers of all sites as one", "panel numbers --from=20190629 --to=20190702", `
demo: numbers

FIRST DAY   LAST DAY    UNIQUES  NEW VISITORS  PV  HOT  EXACT
2019-06-29  2019-07-02        3             3   5    8  true
`},
		{"a page's first visitors", "panel first-visits hhui.top/index", `
demo, hhui.top/index: first_visits

RANK  FIRST DAY   IS ROUND
   2  2019-06-29  true
   1  2019-06-29  true
`},
		{"uniques of pages that start alike", "panel uniques --prefix=http://hhui.top/ --from=20190629 --to=20190702", `
demo: uniques

UNIQUES  EXACT  STANDARD ERROR  ERASED
      3  true   0                    0
`},
		{"the pages in order of page views", "pages hhui.top --order=hot --from=20190629 --to=20190702 -n 1 --ascii", `
demo, hhui.top: top pages by hot, from 2019-06-29 to 2019-07-02

#  PAGE           PV  NEW  UNIQUES  HOT
1  hhui.top/home   4    3        3    5 ####################
`},
		{"the pages with a word in their path", "pages hhui.top --find=HOME --from=20190629 --to=20190702 --ascii", `
demo, hhui.top: top pages by pv, from 2019-06-29 to 2019-07-02

#  PAGE           PV                       NEW  UNIQUES  HOT
1  hhui.top/home   4 ####################    3        3    5
`},
		{"the sites of the app", "sites-between --from=20190629 --to=20190702 --csv", `
site,today,uniques,new_visitors,pv,hot,uniques_before,last_30_days,uniques_compared,first_day
hhui.top,0,3,3,5,8,0,"[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]",3,20190629
`},
		{"totals of the sites", "sites --csv", `
site,pv,uv,hot,since,shown
hhui.top,5,3,8,2019-06-29T00:00:00Z,hhui.top
`},
		{"the pages of visitors without a source", "panel tag-pages hhui.top --value=(none) --from=20190629 --to=20190702", `
demo, hhui.top: nothing was counted
`},
		{"the visitors in a range", "panel who-came hhui.top --from=20190630 --to=20190702 -n 1", `
demo, hhui.top: visitors

DAY         VISITOR      RANK  FIRST DAY   PREVIOUS DAY  LAST DAY
2019-07-02  192.168.0.1     1  2019-06-29  2019-06-29    2019-07-02
`},
		{"sources of a page", "tags hhui.top/home --from=20190630 --to=20190702 --ascii", `
demo: hhui.top/home by source, from 2019-06-30 to 2019-07-02

SOURCE  PV                       NEW
(none)   2 ####################    1
`},
		{"tags of nothing", "tags example.com --to=20190702", `
demo: nothing was counted for example.com from 2019-06-03 to 2019-07-02
`},
		{"top pages of another site", "top --from=all --site=example.com", `
demo, example.com: nothing was counted on any day
`},
		{"top pages of now, when nobody comes", "top --to=20190801 --from=20190703", `
demo: nothing was counted from 2019-07-03 to 2019-08-01
`},
		{"days of the only site", "days --from=4d --to=20190702 --ascii", `
demo: hhui.top, from 2019-06-29 to 2019-07-02

DAY         PV                       NEW  HOT
2019-06-29   2 ####################    2    5
2019-06-30   1 ##########              0    1
2019-07-01   0                         0    0
2019-07-02   2 ####################    1    2

in all: pv 5, new visitors 3, hot 8; uniques 3
`},
		{"all days of a page, as a URI", "days http://HHUI.top:80/a/../index#top --from=all --ascii", `
demo: hhui.top/index, from 2019-06-29 to 2019-07-02

DAY         PV                       NEW  HOT
2019-06-29   2 ####################    2    2
2019-06-30   0                         0    0
2019-07-01   0                         0    0
2019-07-02   1 ##########              0    1

in all: pv 3, new visitors 2, hot 3; uniques 2
`},
		{"days that one of them returned on", "days hhui.top/home --from=20190630 --to=20190702 --csv", `
day,pv,new_visitors,hot
20190630,1,0,1
20190701,0,0,0
20190702,1,1,1
`},
		{"days of a page that nobody knows", "days hhui.top/none --from=all", `
demo: nothing was counted for hhui.top/none on any day
`},
		{"a page", "page hhui.top/home --to=20190702 --ascii", `
demo: hhui.top/home

in all: pv 4, uv 3, hot 5

FIRST DAYS  PV  HOT  RANKS
2019-06-29   2    3  1 to 2
2019-06-30   1    1  -
2019-07-02   1    1  3

pv of 4 days, at most 2 a day:
#=_=

uniques: 3 in 7 days, 3 in 30 days, 3 in 90 days, up to 2019-07-02
`},
		{"a site", "page hhui.top --to=20190702 --csv", `
target,pv,uv,hot,uniques_7_days,uniques_30_days,uniques_90_days
hhui.top,5,3,8,3,3,3
`},
		{"a page that nobody knows", "page hhui.top/none", `
demo: nothing was counted for hhui.top/none
`},
		{"who came", "visitors hhui.top/home --day=20190629", `
demo: 2 visitors of hhui.top/home on 2019-06-29

VISITOR      RANK  NEW
192.168.0.1     1  new
192.168.0.2     2  new
`},
		{"some who came", "visitors hhui.top --day=2019-07-02 -n 1", `
demo: 2 visitors of hhui.top on 2019-07-02

VISITOR      RANK  NEW
192.168.0.1     1

not listed: 1 visitor, erased or later in the order of addresses (-n shows more)
`},
		{"who came, all", "visitors hhui.top --day=2019-07-02 -n 0 --csv", `
visitor,rank,new
192.168.0.1,1,false
192.168.0.3,3,true
`},
		{"nobody", "visitors hhui.top/home --day=20190701", `
demo: hhui.top/home had no visitors on 2019-07-01
`},
		{"who was the third", "rank hhui.top/home 3", `
demo: visitor 3 of hhui.top/home is 192.168.0.3, whose first day was 2019-07-02 and last day 2019-07-02
`},
		{"which number", "rank http://hhui.top/index 192.168.0.1 --csv", `
rank,visitor,first_day,last_day,erased
1,192.168.0.1,20190629,20190702,false
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"report"}, strings.Fields(c.args)...)
			assert.Equal(t, strings.TrimPrefix(c.says, "\n"), well(t, append(args, "--database-url="+url)...))
		})
	}
	t.Run("as JSON", func(t *testing.T) { t.Parallel(); reportsAsJSON(t, url) })
	t.Run("drawn", func(t *testing.T) { t.Parallel(); reportsAreDrawn(t, url) })
}

func reportsAsJSON(t *testing.T, url string) {
	for args, says := range map[string]string{
		"top --from=20190630 --to=20190702 -n 1": `{"app": "demo", "from": 20190630, "to": 20190702, "by": "pv",
			"pages": [{"uri": "hhui.top/home", "pv": 2, "new_visitors": 1, "uniques": 2, "hot": 2, "shown": "hhui.top/home"}]}`,
		"top --site=example.com --from=20190630 --to=20190702": `{"app": "demo", "site": "example.com", "from": 20190630, "to": 20190702, "by": "pv", "pages": []}`,
		"days hhui.top/home --from=20190701 --to=20190702": `{"app": "demo", "target": "hhui.top/home", "from": 20190701, "to": 20190702,
			"days": [{"day": 20190701, "pv": 0, "new_visitors": 0, "hot": 0}, {"day": 20190702, "pv": 1, "new_visitors": 1, "hot": 1}],
			"pv": 1, "new_visitors": 1, "hot": 1, "uniques": 1, "exact": true, "standard_error": 0, "erased": 0}`,
		"tags hhui.top --name=hour --from=20190702 --to=20190702": `{"app": "demo", "target": "hhui.top", "name": "hour", "from": 20190702, "to": 20190702, "since": 20190629,
			"tags": [{"value": "12", "pv": 2, "newcomers": 1}, {"value": "(none)", "pv": 0, "newcomers": 0}]}`,
		"visitors hhui.top/home --day=20190630": `{"app": "demo", "target": "hhui.top/home", "day": 20190630, "pv": 1, "kept": true,
			"visitors": [{"visitor": "192.168.0.2", "rank": 2, "new": false}]}`,
		"visitors hhui.top/home --day=20190701": `{"app": "demo", "target": "hhui.top/home", "day": 20190701, "pv": 0, "kept": true, "visitors": []}`,
		"rank hhui.top 2":                       `{"app": "demo", "target": "hhui.top", "rank": 2, "visitor": "192.168.0.2", "first_day": 20190629, "last_day": 20190630, "erased": false}`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			assert.JSONEq(t, says, well(t, append(append([]string{"report"}, strings.Fields(args)...), "--json", "--database-url="+url)...))
		})
	}
	var page struct {
		UV        int64            `json:"uv"`
		FirstDays []map[string]any `json:"first_days"`
		LastDays  []map[string]any `json:"last_days"`
		Uniques   []map[string]any `json:"uniques"`
	}
	require.NoError(t, json.Unmarshal([]byte(well(t, "report", "page", "hhui.top/home", "--to=20190702", "--json", "--database-url="+url)),
		&page))
	assert.EqualValues(t, 3, page.UV)
	assert.Equal(t, map[string]any{"day": 20190629., "pv": 2., "new_visitors": 2., "hot": 3., "uv": 2.}, page.FirstDays[0])
	assert.Len(t, page.LastDays, 4, "earlier days are not recorded")
	assert.Equal(t, map[string]any{"days": 7., "from": 20190626., "to": 20190702., "uniques": 3., "exact": true, "standard_error": 0.,
		"erased": 0.}, page.Uniques[0])
}

// The name of each report of the API is also a command, and reads the report with that name.
func TestEachReportHasACommand(t *testing.T) {
	t.Parallel()
	url := countAll(t, app.Settings{}, sixSteps...)
	further := map[string][]string{
		"days": {"hhui.top"}, "tags": {"hhui.top"}, "visitors": {"hhui.top", "--day=20190630"}, "tag-pages": {"hhui.top", "--value=google"},
		"uniques": {"hhui.top"}, "funnel": {"hhui.top", "--step=page:/home"}, "goals": {"hhui.top", "--goal=page:/home"},
	}
	for _, k := range report.Reports {
		name := map[string]string{"ranks": "rank"}[k.Name] // the only one with another name
		args := append([]string{"report", cmp.Or(name, k.Name)}, further[k.Name]...)
		if name != "" {
			args = append(args, "hhui.top", "1")
		}
		r := footfall(t, append(args, "--json", "--database-url="+url)...)
		assert.Zero(t, r.code, "%v: %s", args, r.stderr)
		assert.True(t, json.Valid([]byte(r.stdout)), "%v: %s", args, r.stdout)
	}
	assert.Equal(t, 2, footfall(t, "report", "nothing", "--database-url="+url).code)
}

// Reports refuse invalid requests, and requests that they cannot answer.
func TestReportsThatCannotBe(t *testing.T) {
	t.Parallel()
	url := countAll(t, app.Settings{}, append(sixSteps, seen{20190702, "192.168.0.4", "http://example.com/=1+1"})...)
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"top --app=nobody", 1, []string{`app: there is no app "nobody"`, "`footfall app list` shows all apps"}},
		{"top --from=20190631 --to=soon", 2, []string{`--from: "20190631" is not a day`, `--to: "soon" is not a day`}},
		{"top --from=0d", 2, []string{`--from: "0d" is not a day`}},
		{"top --from=20190702 --to=20190701", 2, []string{"--from: 20190702 is after the last day"}},
		{"panel here example.com --where=new", 2, []string{"--where: the report here does not take it"}},
		{"chart hhui.top --compared-from=20190629", 2, []string{"--compared-from: it is given without days_before"}},
		{"panel one-page", 2, []string{"app demo has several sites: name one of them: example.com, hhui.top"}},
		{"panel events", 2, []string{`numbers`, `here`, `events`}},
		{"top -n 0", 2, []string{"-n: 0 pages"}},
		{"top --by=uniques", 2, []string{"--by must be one of"}},
		{"top --json --csv", 2, []string{"--json and --csv"}},
		{"days", 2, []string{"uri: app demo has several sites", "--site: example.com, hhui.top"}},
		{"days hhui.top --site=hhui.top", 2, []string{"--site: a page is named, too"}},
		{"days ftp://hhui.top/", 2, []string{"uri: it does not begin with http://"}},
		{"days hhui.top --svg=/no/such/folder/days.svg", 1, []string{"--svg: "}},
		{"days hhui.top --svg=- --json", 2, []string{"--svg: - is standard output"}},
		{"page", 2, []string{"<uri>"}},
		{"page hhui.top --to=never", 2, []string{"--to: "}},
		{"visitors hhui.top --day=soon --n=-1", 2, []string{"--day: ", "-n: -1 is less than 0"}},
		{"tags hhui.top --name=colour", 2, []string{`name: "colour" is not a tag of this app: use source,`}},
		{"tags hhui.top -n 0", 2, []string{"-n: 0 values"}},
		{"tags hhui.top/home --name=browser", 2, []string{"name: pages only have source and campaign"}},
		{"rank hhui.top 5", 1, []string{"hhui.top has no visitor number 5"}},
		{"rank hhui.top 192.168.0.9", 1, []string{`hhui.top has no visitor "192.168.0.9"`}},
		{"rank hhui.top somebody", 2, []string{`n|address: "somebody" is neither a number nor a visitor: it is not an IPv4 or IPv6 address`}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			r := footfall(t, append(append([]string{"report"}, strings.Fields(c.args)...), "--database-url="+url)...)
			assert.Equal(t, c.code, r.code, r.stderr)
			for _, words := range c.says {
				assert.Contains(t, r.stderr, words)
			}
			assert.Empty(t, r.stdout)
		})
	}
	assert.Contains(t, well(t, "report", "top", "--site=example.com", "--from=all", "--csv", "--database-url="+url),
		`"example.com/=1+1",1,1,1,1,"example.com/=1+1",`+"\n")
}

func TestReportChoosesTheApp(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	none := footfall(t, "report", "top", "--database-url="+url)
	assert.Equal(t, 1, none.code)
	assert.Contains(t, none.stderr, "app: there is no app yet: add one")
	well(t, "app", "add", "shop", "--visitor=address", "--site=example.com", "--site=*.example.com", "--site=both.example", "--database-url="+
		url)
	assert.Contains(t, well(t, "report", "top", "--database-url="+url), "shop: nothing was counted from ")
	assert.Equal(t, "shop: nothing was counted from 2019-06-30 to 2019-07-01\n", well(t, "report", "days", "--from=2d", "--to=20190701",
		"--database-url="+url))
	assert.Equal(t, "day,pv,new_visitors,hot\n20190701,0,0,0\n", well(t, "report", "days", "--csv", "--from=1d", "--to=20190701",
		"--database-url="+url))
	assert.Contains(t, well(t, "report", "top", "--site=elsewhere.example", "--database-url="+url),
		"shop, elsewhere.example: nothing was counted from ")
	well(t, "app", "add", "blog", "--visitor=address", "--site=例え.jp", "--site=both.example", "--database-url="+url)
	none = footfall(t, "report", "days", "elsewhere.example", "--database-url="+url)
	assert.Equal(t, 2, none.code)
	assert.Contains(t, none.stderr, "app: no app counts elsewhere.example: name one of blog, shop")
	well(t, "app", "add", "demo", "--visitor=address", "--access=open", "--database-url="+url)
	for args, app := range map[string]string{
		"top --site=a.example.com": "shop", "days --site=example.com": "shop", "days https://example.com/a": "shop", "page example.com": "shop",
		"page http://例え.jp/日本": "blog", "visitors xn--r8jz45g.jp": "blog", "days elsewhere.example": "demo",
		"top --app=shop --site=elsewhere.example": "shop",
	} {
		assert.Contains(t, well(t, append([]string{"report", "--database-url=" + url}, strings.Fields(args)...)...), app, args)
	}
	mistaken := footfall(t, "report", "top", "--app=example.com", "--database-url="+url)
	assert.Equal(t, 1, mistaken.code)
	assert.Contains(t, mistaken.stderr, `there is no app "example.com", which looks like a site: `)
	for args, says := range map[string]string{
		"top": "app: there are several apps: name one of blog, demo, shop", "days": "app: there are several apps: name one of blog, demo, shop",
		"days both.example": "app: several apps count both.example: name one of blog, shop",
		"days blog":         "blog is an app, and not a listed site: name a site, or the app with --app blog",
	} {
		several := footfall(t, append([]string{"report", "--database-url=" + url}, strings.Fields(args)...)...)
		assert.Equal(t, 2, several.code, args)
		assert.Contains(t, several.stderr, says, args)
	}
}

// Reports show hashed visitors, networks as visitors, and erased visitors.
func TestRankOfAnybody(t *testing.T) {
	t.Parallel()
	byID := "id"
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, testSecret, 0o600))
	ids := countAll(t, app.Settings{Visitor: &byID}, seen{20190629, "ann", "http://a/"}, seen{20190629, "7", "http://a/"})
	for asked, rank := range map[string]string{"ann": "1", "id:7": "2"} {
		said := well(t, "report", "rank", "a/", asked, "--csv", "--secret-file="+secret, "--database-url="+ids)
		assert.Regexp(t, `\n`+rank+`,fd[0-9a-f:]+,20190629,20190629,false\n$`, said)
		stored := strings.Split(said, ",")[5]
		assert.Equal(t, said, well(t, "report", "rank", "a/", stored, "--csv", "--database-url="+ids), "as reports name this visitor")
	}

	url := countAll(t, app.Settings{}, seen{20190629, "2001:db8::1", "http://a/"}, seen{20190629, "192.0.2.1", "http://a/"})
	assert.Contains(t, well(t, "report", "rank", "a/", "2001:db8::2", "--database-url="+url), "visitor 1 of a/ is 2001:db8::,",
		"the network of the visitor")
	well(t, "visitor", "erase", "demo", "192.0.2.1", "--yes", "--database-url="+url)
	assert.Contains(t, well(t, "report", "rank", "a/", "2", "--database-url="+url), "visitor 2 of a/ was erased")
	assert.Contains(t, well(t, "report", "rank", "a/", "2", "--csv", "--database-url="+url), "\n2,,,,true\n")
	assert.Contains(t, well(t, "report", "visitors", "a/", "--day=20190629", "--database-url="+url),
		"not listed: 1 visitor, erased or later in the order of addresses (-n shows more)")
}

// A report accepts pages as another report prints them, even if no URI has this form. A page with port 80 is not the page
// without a port.
func TestReportsAcceptTheirOwnOutput(t *testing.T) {
	t.Parallel()
	url := countAll(t, app.Settings{}, seen{20190629, "192.0.2.1", "https://a:80/x"}, seen{20190629, "192.0.2.1", "http://a:443/x"},
		seen{20190629, "192.0.2.1", "http://[2001:db8::1]:3000/"}, seen{20190629, "192.0.2.1", "http://a/x%2fy%28"})
	well(t, "page", "delete", "demo", "http://a/x%2fy%28", "--yes", "--database-url="+url)
	table := strings.Split(well(t, "report", "top", "--from=all", "--csv", "--database-url="+url), "\n")
	require.Len(t, table, 6, "a line of names, four pages, and the end: %v", table)
	for _, row := range table[1:5] {
		page := strings.Trim(strings.Split(row, ",")[0], `"`)
		assert.Contains(t, well(t, "report", "page", page, "--csv", "--database-url="+url), ",1,", page)
		site, _, _ := strings.Cut(page, "/")
		assert.NotContains(t, well(t, "report", "page", site, "--database-url="+url), "nothing was counted", site)
	}
	assert.Contains(t, strings.Join(table, "\n"), "a/(deleted)")
}

// Days have the same meaning on the command line and over REST.
func TestDaysMeanTheSameEverywhere(t *testing.T) {
	t.Parallel()
	ahead := min(max(12-time.Now().UTC().Hour(), -11), 11) // the time zone with about noon now, so that no day ends during the test
	zone := fmt.Sprintf("Etc/GMT%+d", -ahead)              // in these names, + means west of UTC
	today := visit.DayOf(time.Now().Add(time.Duration(ahead)*time.Hour), time.UTC)
	var visits []seen
	for ago := range 9 {
		visits = append(visits, seen{visit.LastDays(9-ago, today).From, "192.0.2.1", "http://a/"})
	}
	url := countAll(t, app.Settings{TZ: &zone}, visits...)
	s := serve(t, "--database-url", url)
	type days struct {
		From, To int32
		Days     []struct{ Day int32 }
	}
	for asked, want := range map[[2]string]visit.Range{
		{"7d", ""}: visit.LastDays(7, today), {"today", ""}: {From: today, To: today}, {"yesterday", ""}: visit.LastDays(2, today),
		{"yesterday", "yesterday"}: {From: visits[7].day, To: visits[7].day}, {"3d", "yesterday"}: {From: visits[5].day, To: visits[7].day},
		{fmt.Sprint(visits[2].day), "today"}: {From: visits[2].day, To: today},
	} {
		args, query := []string{"report", "days", "a", "--json", "--database-url=" + url, "--from=" + asked[0]}, "?site=a&from="+asked[0]
		if asked[1] != "" {
			args, query = append(args, "--to="+asked[1]), query+"&to="+asked[1]
		}
		var typed, fetched days
		require.NoError(t, json.Unmarshal([]byte(well(t, args...)), &typed))
		status, body := get(s.url + "/api/apps/demo/days" + query)
		require.Equal(t, http.StatusOK, status, body)
		require.NoError(t, json.Unmarshal([]byte(body), &fetched))
		assert.Equal(t, typed, fetched, query)
		assert.Equal(t, want, visit.Range{From: fetched.From, To: fetched.To}, query)
	}
	assert.Zero(t, s.stop())
}

func reportsAreDrawn(t *testing.T, url string) {
	ago, ahead := time.Now().UTC().AddDate(0, 0, -2).Format("20060102"), time.Now().UTC().AddDate(0, 0, 7).Format("20060102")
	days := strings.Split(strings.TrimSpace(well(t, "report", "days", "--csv", "--from="+ago, "--to="+ahead, "--database-url="+url)), "\n")
	assert.GreaterOrEqual(t, len(days), 4)
	assert.LessOrEqual(t, days[len(days)-1][:8], time.Now().UTC().Format("20060102"), "no day that is yet to come")
	assert.Equal(t, exitUsage, footfall(t, "report", "days", "--from="+ahead, "--to="+ahead, "--database-url="+url).code)
	alone := well(t, "report", "days", "--from=all", "--svg=-", "--database-url="+url)
	assert.True(t, strings.HasPrefix(alone, "<svg "), alone)
	assert.True(t, strings.HasSuffix(alone, "</svg>\n"), "nothing stands behind it")
	path := filepath.Join(t.TempDir(), "days.svg")
	assert.Contains(t, well(t, "report", "days", "--from=all", "--svg="+path, "--database-url="+url), "in all: pv 5")
	drawn, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, alone, string(drawn))
	assert.Contains(t, string(drawn), "hhui.top, from 2019-06-29 to 2019-07-02")
	assert.Contains(t, string(drawn), "2019-07-02: 2 visitors, 1 of them new; 2 visits")
	decoder := xml.NewDecoder(bytes.NewReader(drawn))
	for err == nil {
		_, err = decoder.Token()
	}
	assert.True(t, errors.Is(err, io.EOF), err)
}

// A visitor who visits on several days of a week or month counts once in it.
func TestReportGroupsLongRanges(t *testing.T) {
	t.Parallel()
	url := countAll(t, app.Settings{}, seen{20190103, "192.168.0.1", "http://a/"}, seen{20190105, "192.168.0.1", "http://a/"},
		seen{20190105, "192.168.0.2", "http://a/"}, seen{20190105, "192.168.0.2", "http://a/"}, seen{20190107, "192.168.0.1", "http://a/"},
		seen{20190214, "192.168.0.3", "http://a/"})
	weeks := strings.Split(well(t, "report", "days", "a", "--from=20190101", "--to=20190414", "--ascii", "--database-url="+url), "\n")
	assert.Equal(t, []string{
		"demo: a, from 2019-01-01 to 2019-04-14, by week", "",
		"WEEK        UNIQUES                       NEW  PV  HOT",
		"2019-01-03        2 ####################    2   3    4",
		"2019-01-07        1 ##########              0   1    1",
		"2019-01-14        0                         0   0    0",
	}, weeks[:6])
	assert.Equal(t, []string{"2019-04-08        0                         0   0    0", "", "in all: pv 5, new visitors 3, hot 6; uniques 3",
		""}, weeks[len(weeks)-4:])
	assert.Contains(t, well(t, "report", "days", "a", "--from=20170301", "--to=20201231", "--ascii", "--database-url="+url), `
2019-01        2 ####################    2   4    5
2019-02        1 ##########              1   1    1
2019-03        0                         0   0    0
`)
	drawn := well(t, "report", "days", "a", "--from=20190101", "--to=20190414", "--svg=-", "--database-url="+url)
	assert.Contains(t, drawn, ">a, from 2019-01-01 to 2019-04-14, by week<")
	assert.Contains(t, drawn, ">Visitors of each week: new visitors, and returning visitors (hatched).<")
	assert.Contains(t, drawn, ">from 2019-01-03 to 2019-01-06: 2 visitors, 2 of them new; 4 visits<")
	assert.Equal(t, 103, strings.Count(well(t, "report", "days", "a", "--from=20190101", "--to=20190414", "--csv", "--database-url="+url),
		"\n"), "a line for each day from the first that was counted on")
}

// Tables of every command show pages as text, and keep later columns aligned.
func TestTablesShowTargetsAsText(t *testing.T) {
	t.Parallel()
	url := countAll(t, app.Settings{}, seen{20190629, "192.0.2.1", "https://例え.jp/日本語"},
		seen{20190629, "192.0.2.1", "http://a.example/"})
	well(t, "psql", "--database-url="+url, "--", "-qc", `INSERT INTO footfall.titles (page_id, title, told_at)
		SELECT id, E'表題 \u202e', now() FROM footfall.pages WHERE key = footfall.page_key('a.example/')`)
	assert.Equal(t, `demo: top pages by pv, on 2019-06-29

#  PAGE            PV                       NEW  UNIQUES  HOT  TITLE
1  例え.jp/日本語   1 ####################    1        1    1
2  a.example/       1 ####################    1        1    1  表題 \u202e
`, well(t, "report", "top", "--from=20190629", "--to=20190629", "--ascii", "--database-url="+url))
	assert.Regexp(t, `^demo, a.example: here\n\nVISITORS  MINUTES\n +[01]        5\n$`,
		well(t, "report", "panel", "here", "a.example", "--database-url="+url))
	assert.Equal(t, `TARGET          STORED AS  RANK  FIRST DAY  LAST DAY
a.example       192.0.2.1  1     20190629   20190629
a.example/      192.0.2.1  1     20190629   20190629
例え.jp         192.0.2.1  1     20190629   20190629
例え.jp/日本語  192.0.2.1  1     20190629   20190629
`, well(t, "visitor", "show", "demo", "192.0.2.1", "--database-url="+url))
	well(t, "app", "set", "demo", "--access=sites", "--site=*.例え.jp", "--site=a.example", "--database-url="+url)
	assert.Contains(t, well(t, "app", "list", "--database-url="+url), " *.例え.jp,a.example ")
	deleted := well(t, "page", "delete", "demo", "例え.jp/日本語", "--yes", "--database-url="+url)
	assert.Contains(t, deleted, "deleted 例え.jp/日本語;")
	assert.Contains(t, deleted, "are now part of 例え.jp/(deleted)")
}

func TestStyleOfATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environment map[string]string
		ascii       bool
		want        draw.Style
	}{
		{map[string]string{"LANG": "de_DE.UTF-8"}, false, draw.Style{}},
		{map[string]string{"LANG": "C", "LC_ALL": "C.utf8"}, false, draw.Style{}},
		{map[string]string{"LANG": "de_DE.UTF-8"}, true, draw.Style{ASCII: true}},
		{map[string]string{"LANG": "de_DE.UTF-8", "NO_COLOR": "1"}, false, draw.Style{ASCII: true}},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_CTYPE": "C"}, false, draw.Style{ASCII: true}},
		{map[string]string{"LC_CTYPE": "en_US.UTF-8", "LC_ALL": "POSIX"}, false, draw.Style{ASCII: true}},
		{nil, false, draw.Style{ASCII: true}},
	} {
		assert.Equal(t, c.want, styleOf(&bytes.Buffer{}, c.ascii, func(name string) string { return c.environment[name] }), "%v", c.environment)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "pipe"))
	require.NoError(t, err)
	defer file.Close()
	assert.Zero(t, terminalWidth(file), "nothing is cut in a file")
}
