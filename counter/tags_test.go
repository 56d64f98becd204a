package counter_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	"footfall/record"
	"footfall/visit"
	"footfall/visit/country"
	"footfall/visit/tag"
)

var (
	referrers = []string{"", "https://news.example/a?b", "https://www.google.de/", "https://wiki.example/"}
	sources   = []string{"", "news.example", "google", "wiki.example"}
	campaigns = []string{"", "spring", "autumn"}
	events    = []string{"signup", "paid"}
)

// asks returns a visit with some tags, and the model's record of it. An empty at means now. counts is the time that
// the visit should count for.
func asks(visitor string, site, page, source, campaign int, at string, counts time.Time) (r counter.Request, b desk.Seen) {
	r = counter.Request{App: "demo", IP: visitor, At: at, Referrer: referrers[source]}
	r.URI = fmt.Sprintf("http://s%d.example/%d", site, page)
	b = desk.Seen{Visitor: visitor, Page: strings.TrimPrefix(r.URI, "http://"), Day: visit.DayOf(counts, time.UTC)}
	if campaign > 0 {
		r.URI += "?utm_campaign=" + campaigns[campaign]
		b.PageTag = append(b.PageTag, "campaign "+campaigns[campaign])
	}
	if source > 0 {
		b.PageTag = append(b.PageTag, "source "+sources[source])
	}
	b.SiteTag = []string{fmt.Sprintf("hour %02d", counts.Hour())}
	return r, b
}

// send sends a visit.
func (in *instance) send(ctx context.Context, visitor string, site, page, source, campaign int) (b desk.Seen, err error) {
	r, b := asks(visitor, site, page, source, campaign, "", in.Clock.Now())
	b.Answer, err = in.Visit(ctx, r)
	return b, err
}

// sendMany sends visits in a chunk.
func (in *instance) sendMany(t *testing.T, requests []counter.Request, all []desk.Seen) {
	g := in.counting(t)
	var items []counter.Item
	for _, r := range requests {
		item := counter.Item{URI: r.URI, Event: r.Event, IP: r.IP, Referrer: r.Referrer}
		if r.At != "" {
			item.At, _ = visit.ParseTime(r.At)
		}
		items = append(items, item)
	}
	for i, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil, items...)) {
		assert.NoError(t, got.Err)
		all[i].Answer = got.Answer
	}
}

// Many clients visit two instances on one database, whose clocks differ at midnight, with visits of past days and
// erasures in between. Every sum by tag equals the answers.
func TestTagsEqualTheModel(t *testing.T) { everyWay(t, testTagsEqualTheModel) }

func testTagsEqualTheModel(t *testing.T, w way) {
	const clients, sites, pages = 12, 2, 3
	each := dbtest.LongOrShort(40, 10)
	a := w.newInstance(t, counter.Options{})
	a.keepsAll(t)
	b := w.startOn(t, a.URL, counter.Options{})
	day := desk.Noon.Truncate(24 * time.Hour)
	eras := map[string]int{}
	var all []desk.Seen
	must := func(v desk.Seen, err error) {
		require.NoError(t, err)
		all = append(all, v)
	}
	set := func(ofA, ofB time.Duration) {
		a.Clock.Set(day.Add(ofA))
		b.Clock.Set(day.Add(ofB))
	}
	round := func(live time.Time) {
		t.Helper()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for range each {
					var requests []counter.Request
					var sent []desk.Seen
					for range 1 + 3*rand.IntN(2) {
						at, counts := "", live
						if rand.IntN(4) == 0 {
							counts = day.Add(-time.Duration(rand.IntN(72*60)) * time.Minute)
							at = counts.Format(time.RFC3339)
						}
						visitor := fmt.Sprintf("10.0.0.%d", rand.IntN(40))
						r, b := asks(visitor, rand.IntN(sites), rand.IntN(pages), rand.IntN(len(referrers)), rand.IntN(len(campaigns)), at, counts)
						if did := rand.IntN(8); did < 2 {
							r = counter.Request{App: "demo", IP: visitor, At: at, Event: events[did]}
							b.Page, b.PageTag = "(events)/"+r.Event, nil
						}
						b.Era = eras[visitor]
						requests, sent = append(requests, r), append(sent, b)
					}
					var err error
					if in := []*instance{a, b}[rand.IntN(2)]; len(sent) > 1 {
						in.sendMany(t, requests, sent)
					} else {
						sent[0].Answer, err = in.Visit(t.Context(), requests[0])
					}
					mu.Lock()
					all = append(all, sent...)
					mu.Unlock()
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	erase := func(visitors ...int) {
		for _, n := range visitors {
			visitor := fmt.Sprintf("10.0.0.%d", n)
			_, err := a.Admin.EraseVisitor(t.Context(), "demo", visitor)
			require.NoError(t, err)
			eras[visitor]++
		}
	}

	set(22*time.Hour, 22*time.Hour+time.Minute)
	for i := range max(len(referrers), len(campaigns)) { // each value comes from a different visitor
		must(a.send(t.Context(), fmt.Sprintf("192.0.2.%d", i), 0, 0, i%len(referrers), i%len(campaigns)))
	}
	round(day.Add(22 * time.Hour))
	set(24*time.Hour-time.Minute, 24*time.Hour+time.Minute) // it is tomorrow for one instance, and then for all
	for site := range sites {
		must(b.send(t.Context(), "192.0.2.9", site, 0, 1, 1))
	}
	e := desk.Seen{Visitor: "192.0.2.9", Page: "(events)/paid", Day: visit.DayOf(day.Add(24*time.Hour), time.UTC),
		SiteTag: []string{"hour 00"}}
	var err error
	e.Answer, err = b.Visit(t.Context(), counter.Request{App: "demo", IP: e.Visitor, Event: "paid"})
	must(e, err)
	round(day.Add(24 * time.Hour))
	erase(1, 2, 3)
	set(39*time.Hour, 39*time.Hour)
	round(day.Add(39 * time.Hour))
	erase(3, 4)
	round(day.Add(39 * time.Hour))
	if t.Failed() {
		return
	}

	var model desk.Model
	model.Counted(all...)
	require.Equal(t, model.Tags(), a.TagsOf(t))
	a.checkTags(t)
	set(72*time.Hour, 72*time.Hour)
	later := func(i int) { // a known or a new visitor on a later day
		_, err := []*instance{a, b}[i%2].Visit(context.Background(), counter.Request{App: "demo", IP: fmt.Sprintf("10.0.0.%d", 5+i%90),
			URI: fmt.Sprintf("http://s%d.example/%d", i%sites, i%pages)})
		assert.NoError(t, err)
	}
	a.checkFilters(t, &model, eras, later)
	a.retain(t) // as each night
	a.checkFilters(t, &model, eras, later)
	a.Check(t)
	a.warnsOfNoBatch(t)
	b.warnsOfNoBatch(t)
}

// checkFilters compares the filtered numbers with the model, and calls beside once during each query.
func (in *instance) checkFilters(t *testing.T, model *desk.Model, eras map[string]int, beside func(i int)) {
	t.Helper()
	names := []string{"source", "campaign", "hour"}
	// The tag values of visitors of both sites. Other values are refused.
	of := map[string][]string{"page": {"/0", "/1", "/2", "/*"}, "event": events}
	for _, name := range names {
		of[name] = append(desk.Column[string](t, in.Desk, `
			SELECT value
			FROM tags AS g
			JOIN tag_days AS d ON d.tag_id = g.id
			JOIN pages AS p    ON p.id = d.page_id AND p.uri IN ('s0.example', 's1.example')
			WHERE name = $1 AND value IN ('google', 'news.example', 'spring', 'autumn', '22', '23', '00', '15')
			GROUP BY value
			HAVING count(DISTINCT p.id) = 2`, name), "(none)")
	}
	ofAll := maps.Clone(of) // for all sites, which have no pages in common
	delete(ofAll, "page")
	days := []int32{20260626, 20260627, 20260628, 20260629, 20260630, 20260701}
	asked, somebody := dbtest.LongOrShort(500, 150), 0
	var others sync.WaitGroup
	defer others.Wait()
	for i := range asked {
		others.Go(func() { beside(i) })
		site, from, until := fmt.Sprintf("s%d.example", rand.IntN(2)), days[rand.IntN(3)], days[3+rand.IntN(3)]
		conditions := desk.AnyConditions(of)
		switch rand.IntN(4) {
		case 0:
			conditions = []string{}
		case 1:
			site, conditions = "", desk.AnyConditions(ofAll)
		}
		want := model.Where(site, eras, from, until, conditions...)
		require.Equal(t, want, in.WhereOf(t, site, from, until, names, conditions...), "%s from %d to %d: %v", site, from, until, conditions)
		steps, goals := slices.Concat(desk.AnyConditions(of), desk.AnyConditions(of)), []string{"event:paid", "page:/1|/2"}
		if site == "" {
			steps, goals = desk.AnyConditions(ofAll), goals[:1]
		}
		if rand.IntN(8) == 0 {
			require.Equal(t, model.Reached(site, eras, from, until, names[0], goals, steps, conditions),
				in.ReachedOf(t, site, from, until, names[0], goals, steps, conditions),
				"%s from %d to %d: %v, %v", site, from, until, steps, conditions)
		}
		if !slices.Contains(want, "numbers 0 0 0") {
			somebody++
		}
		if site == "" || rand.IntN(4) > 0 {
			continue
		}
		selected := desk.Column[int64](t, in.Desk, `SELECT count(*) FROM report.visitors_where('demo', $1, $2, $3, $4)`,
			site, from, until, conditions)
		require.Contains(t, want, fmt.Sprint("numbers ", desk.Column[string](t, in.Desk, `
			SELECT count(DISTINCT rank) || ' ' || count(*) FILTER (WHERE is_new) FROM report.visitors_where('demo', $1, $2, $3, $4)`,
			site, from, until, conditions)[0], " ", selected[0]))
	}
	assert.Greater(t, somebody, asked/2)
}

// checkTags compares the sums by tag with the other sums.
func (in *instance) checkTags(t *testing.T) {
	t.Helper()
	require.Empty(t, in.Table(t, `
		SELECT page_id, day_id, t.name, sum(g.pv), max(d.pv)
		FROM tag_days g JOIN tags t ON t.id = g.tag_id JOIN days d USING (page_id, day_id)
		GROUP BY page_id, day_id, t.name HAVING sum(g.pv) > max(d.pv)`))
	require.Empty(t, in.Table(t, `
		SELECT page_id, t.name, sum(g.newcomers), max(c.uv)
		FROM tag_days g JOIN tags t ON t.id = g.tag_id JOIN counters c USING (page_id)
		GROUP BY page_id, t.name HAVING sum(g.newcomers) > max(c.uv)`))
}

// come counts a visit of a visitor with a host as the referrer.
func (in *instance) come(t *testing.T, visitor, page, host string) {
	t.Helper()
	_, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: visitor, URI: "http://a.example" + page, Referrer: "https://" + host +
		"/"})
	require.NoError(t, err)
}

// A visitor adds at most one new value a day, even if no instance remembers them.
func TestAVisitorMakesOneValueADay(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{})
	for i, host := range []string{"one.example", "two.example", "three.example"} {
		in.come(t, "192.0.2.1", fmt.Sprint("/", i), host)
	}
	forgetful := plain.startOn(t, in.URL, counter.Options{})
	forgetful.come(t, "192.0.2.1", "/3", "four.example")
	forgetful.come(t, "192.0.2.1", "/4", "one.example")
	in.come(t, "192.0.2.2", "/1", "two.example")
	var sources []string
	for _, line := range in.TagsOf(t) {
		if !strings.Contains(line, "hour") {
			sources = append(sources, line)
		}
	}
	require.Equal(t, []string{
		"a.example 20260629 source one.example 1 1",
		"a.example 20260629 source two.example 1 1",
		"a.example/0 20260629 source one.example 1 1",
		"a.example/1 20260629 source (other) 1 1",
		"a.example/1 20260629 source two.example 1 1",
		"a.example/2 20260629 source (other) 1 1",
		"a.example/3 20260629 source (other) 1 1",
		"a.example/4 20260629 source one.example 1 1",
	}, sources)
}

// An app has a limited number of new values a day across all instances. Further values become (other). Values made up by
// strangers leave room for the app's own tags and for the tags of people, which share another limit.
func TestNewValuesOfADayAreBounded(t *testing.T) {
	t.Parallel()
	a := ways[3].newInstance(t, counter.Options{})
	b := plain.startOn(t, a.URL, counter.Options{})
	const beyond = 20
	flood := func(day int) {
		var wg sync.WaitGroup
		for client := range 8 {
			wg.Go(func() {
				for i := client; i < tag.MostNewADay+beyond; i += 8 {
					[]*instance{a, b}[client%2].come(t, fmt.Sprintf("10.%d.%d.%d", day, i/250, i%250), "/", fmt.Sprintf("h%d.d%d.example", i, day))
				}
			})
		}
		wg.Wait()
	}
	flood(1)
	require.Equal(t, []string{"500 20\n"}, a.others(t, 20260629))
	a.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	b.Clock.Set(a.Clock.Now())
	flood(2)
	require.Equal(t, []string{"500 20\n"}, a.others(t, 20260630))
	a.checkTags(t)
}

func TestNewValuesOfOwnTagsAreBoundedApart(t *testing.T) {
	t.Parallel()
	in, _ := ways[3].newPeople(t, counter.Options{})
	comes := func(id string, r counter.Request) {
		t.Helper()
		r.App, r.Visitor = "demo", id
		r.URI = "http://a.example/?utm_campaign=" + id
		_, err := in.Visit(t.Context(), r)
		require.NoError(t, err)
	}
	plan := func(value string) tag.Set { return tag.Set{{Name: "plan", Value: value}} }
	in.Exec(t, fmt.Sprintf(`INSERT INTO page_tallies (app_id, day_id, today, tags_today) SELECT id, 20260629, 0, %d FROM apps
		WHERE name = 'demo'`, tag.MostNewADay-1))
	comes("one", counter.Request{})
	comes("two", counter.Request{})
	comes("three", counter.Request{Tags: plan("gold")})
	in.has(t, "four", plan("silver")...)
	comes("four", counter.Request{})
	in.Exec(t, fmt.Sprintf(`UPDATE page_tallies SET own_tags_today = own_tags_today + %d`, tag.MostNewADay-3))
	in.has(t, "five", plan("bronze")...)
	comes("five", counter.Request{})
	comes("six", counter.Request{Tags: plan("iron")})
	in.has(t, "seven", plan("tin")...)
	comes("seven", counter.Request{})
	require.Equal(t, []string{
		"a.example 20260629 campaign (other) 6 6", "a.example 20260629 campaign one 1 1", "a.example 20260629 hour 12 7 7",
		"a.example 20260629 plan (other) 2 2", "a.example 20260629 plan bronze 1 1", "a.example 20260629 plan gold 1 1",
		"a.example 20260629 plan silver 1 1", "a.example/ 20260629 campaign (other) 6 6", "a.example/ 20260629 campaign one 1 1",
	}, in.TagsOf(t))
	in.Clock.Set(in.Clock.Now().Add(24 * time.Hour))
	comes("eight", counter.Request{Tags: plan("zinc")})
	require.Equal(t, []string{"1 1\n"}, in.Table(t, `SELECT tags_today, own_tags_today FROM page_tallies`))
}

// others returns the number of a site's visitors on a day with a source of their own, and with (other).
func (in *instance) others(t *testing.T, day int) []string {
	t.Helper()
	in.TagsOf(t)
	return in.Table(t, fmt.Sprintf(`
		SELECT sum(d.pv) FILTER (WHERE t.value <> '(other)')::integer, sum(d.pv) FILTER (WHERE t.value = '(other)')::integer
		FROM tag_days d JOIN tags t ON t.id = d.tag_id JOIN pages p ON p.id = d.page_id
		WHERE t.name = 'source' AND p.site_id IS NULL AND d.day_id = %d`, day))
}

// The news are added up exactly once, despite failures and instances that stop in between.
func TestNoNewsOfTagsAreLost(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{Options: record.Options{Log: slog.New(slog.DiscardHandler)}})
	in.Exec(t, `CREATE SEQUENCE failures`)
	failing := func(how string) {
		t.Helper()
		in.Exec(t, `CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('failures'); `+how+
			`; RETURN NULL; END $$`)
	}
	failing(`RAISE EXCEPTION 'no room'`)
	in.Exec(t, `CREATE TRIGGER fail AFTER INSERT ON tag_days FOR EACH STATEMENT EXECUTE FUNCTION fail()`)
	for i := range 300 {
		in.come(t, fmt.Sprintf("10.0.%d.%d", i/200, i%200), "/", "one.example")
		if i == 100 || i == 200 {
			require.Eventually(t, func() bool { return in.Table(t, `SELECT is_called FROM failures`)[0] == "true\n" }, dbtest.Patience, dbtest.Tick)
			failing(`PERFORM pg_terminate_backend(pg_backend_pid())`)
			in.Exec(t, `ALTER SEQUENCE failures RESTART`)
		}
	}
	in.Close() // it cannot add them up
	require.Empty(t, in.Table(t, `SELECT FROM tag_days`))
	in.Exec(t, `DROP TRIGGER fail ON tag_days`)
	next := plain.startOn(t, in.URL, counter.Options{})
	require.Equal(t, []string{
		"a.example 20260629 hour 12 300 300", "a.example 20260629 source one.example 300 300", "a.example/ 20260629 source one.example 300 300",
	}, next.TagsOf(t))
}

// Deleting a page or an app deletes its tags, including news not added up yet.
func TestTagsGoWithPageAndApp(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{Options: record.Options{Log: slog.New(slog.DiscardHandler)}})
	in.come(t, "192.0.2.1", "/gone", "one.example")
	in.come(t, "192.0.2.1", "/stays", "one.example")
	require.Len(t, in.TagsOf(t), 4)
	pending := func() {
		in.Exec(t, `CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$`)
		in.Exec(t, `CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON tag_days FOR EACH STATEMENT EXECUTE FUNCTION fail()`)
		in.come(t, "192.0.2.2", "/gone", "one.example")
		in.come(t, "192.0.2.2", "/stays", "one.example")
	}
	pending()
	require.NoError(t, in.Admin.DeletePage(t.Context(), "demo", "a.example/gone"))
	in.Exec(t, `DROP TRIGGER fail ON tag_days`)
	require.Equal(t, []string{
		"a.example 20260629 hour 12 2 2", "a.example 20260629 source one.example 2 2", "a.example/stays 20260629 source one.example 2 2",
	}, in.TagsOf(t))
	pending()
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
	in.Exec(t, `DROP TRIGGER fail ON tag_days`)
	require.Empty(t, in.TagsOf(t))
	require.Empty(t, in.Table(t, `SELECT FROM tag_days UNION ALL SELECT FROM tags`))
}

// germany returns a file of countries with one network, 192.0.2.0/24.
func germany(t *testing.T) *country.Countries {
	t.Helper()
	file := filepath.Join(t.TempDir(), "geoip")
	require.NoError(t, os.WriteFile(file, []byte("3221225984,3221226239,DE\n"), 0o600))
	countries, err := country.Open(file, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return countries
}

// The country is looked up from the address, even if only its hash is stored. A visitor known only by an id has none.
func TestCountryIsOfTheAddress(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{Countries: germany(t)})
	open, hashed, byID := "open", "hashed", "id"
	require.NoError(t, in.Admin.AddApp(t.Context(), "hashed", app.Settings{Access: &open, Visitor: &hashed}))
	require.NoError(t, in.Admin.AddApp(t.Context(), "ids", app.Settings{Access: &open, Visitor: &byID}))
	for _, r := range []counter.Request{
		{App: "demo", IP: "192.0.2.1"}, {App: "demo", IP: "198.51.100.1"}, {App: "hashed", IP: "192.0.2.1"},
		{App: "ids", Visitor: "x"}, {App: "ids", Visitor: "y", Peer: peer},
	} {
		r.URI = "http://" + r.App + "/"
		_, err := in.Visit(t.Context(), r)
		require.NoError(t, err)
	}
	require.Equal(t, []string{
		"demo 20260629 country DE 1 1", "demo 20260629 hour 12 2 2", "hashed 20260629 country DE 1 1", "hashed 20260629 hour 12 1 1",
		"ids 20260629 hour 12 2 2",
	}, in.TagsOf(t))
}

// If a caller sends visits of other people, the given tags count, at the given times.
func TestManyVisitsHaveGivenTags(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{Countries: germany(t)})
	in.keepsAll(t)
	g, before := in.counting(t), in.Clock.Now().Add(-27*time.Hour)
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for _, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil,
		counter.Item{URI: "http://a/", IP: "192.0.2.1", Agent: firefox, Language: "pt-BR", At: before},
		counter.Item{URI: "http://a/", IP: "192.0.2.2", Referrer: "https://t.co/x", Country: "ch", At: before},
		counter.Item{URI: "http://a/", IP: "192.0.2.1", Referrer: "https://a.example/", At: before},
		counter.Item{URI: "http://a/?utm_campaign=x", IP: "192.0.2.1", Referrer: "http://a/b", Country: "XX"},
	)) {
		require.NoError(t, got.Err)
	}
	require.Equal(t, []string{
		"a 20260628 browser Firefox 1 1", "a 20260628 country CH 1 1", "a 20260628 country DE 1 1", "a 20260628 device desktop 1 1",
		"a 20260628 hour 09 2 2", "a 20260628 language pt 1 1", "a 20260628 source x 1 1", "a 20260628 system Linux 1 1",
		"a 20260629 campaign x 1 0", "a 20260629 country DE 1 0", "a 20260629 hour 12 1 0",
		"a/ 20260628 source x 1 1", "a/ 20260629 campaign x 1 0",
	}, in.TagsOf(t))
}

// News left by other instances are added up even by an instance that counts nothing. A damaged row does not hold up other rows,
// and the log reports it.
func TestDamagedNewsOfTags(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{})
	in.come(t, "192.0.2.1", "/", "one.example")
	require.Len(t, in.TagsOf(t), 3)
	page, hour := in.One(t, `SELECT id FROM pages WHERE uri = 'a.example'`), in.One(t, `SELECT id FROM tags WHERE name = 'hour'`)
	leave := func(verdicts string, numbers ...int64) {
		var packed []byte
		for _, n := range numbers {
			packed = binary.AppendVarint(packed, n)
		}
		in.Exec(t, fmt.Sprintf(`INSERT INTO tag_news VALUES (%s, '\x%x')`, verdicts, packed))
	}
	for _, verdicts := range []string{"'{}'", "'{3}'", "'{-1}'"} {
		leave(verdicts, 0, page, 20260629, 1, hour)
	}
	leave("NULL", 0, page, 20260629, 1<<62)
	leave("NULL", 0)
	leave("'{1}'", 0, page, 20260629, 1, hour, -1)
	leave("'{1,2}'", 1, page, 20260629, 1, hour)
	require.Contains(t, in.TagsOf(t), "a.example 20260629 hour 12 3 2")
	require.Eventually(t, func() bool { return strings.Contains(in.Log.String(), "a row of tag_news is damaged") }, dbtest.Patience,
		dbtest.Tick)
	in.Check(t)
}

// From the moment the command returns, tags that the app does not list are not counted. The tag hour always is.
func TestTagsAreThoseThatTheAppLists(t *testing.T) {
	t.Parallel()
	in := ways[3].newInstance(t, counter.Options{})
	lists := []string{"default", "none", "language,campaign,plan"}
	for i, list := range lists {
		require.NoError(t, in.Admin.SetApp(t.Context(), "demo", app.Settings{Tags: strings.Split(list, ",")}))
		_, err := in.Visit(t.Context(), counter.Request{
			App: "demo", Peer: peer, URI: fmt.Sprintf("http://s%d.example/?utm_campaign=spring", i), Referrer: "https://news.example/",
			Agent: browser, Languages: "de",
		})
		require.NoError(t, err)
	}
	brought := map[string]string{}
	for _, line := range in.TagsOf(t) {
		parts := strings.Fields(line)
		brought[parts[0]] += parts[2] + " "
	}
	require.Equal(t, map[string]string{
		"s0.example": "browser campaign device hour language source system ", "s0.example/": "campaign source ",
		"s1.example": "hour ",
		"s2.example": "campaign hour language ", "s2.example/": "campaign ",
	}, brought)
}
