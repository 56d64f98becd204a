package counter_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
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
	"footfall/visit"
	"footfall/visit/tag"
)

// lived returns an app that uses every feature, in this visitor mode. It has five days: the first has no rows left, and three
// are closed. It also has tags of its own, late visits, an erased visitor, offsets, history, notes, titles, goals and people.
func lived(t *testing.T, mode string) *instance {
	t.Helper()
	in := plain.startOn(t, desk.Database(t, desk.Options{Apps: map[string]app.Settings{"demo": {
		Access: ptr("open"), Visitor: &mode, Tags: []string{"default", "plan"}, RetainDays: ptr(0), Goals: []string{"event:signup"},
		Ignore: []string{"203.0.113.0/24"},
	}}}), counter.Options{})
	for day := range 5 {
		for n := range 30 {
			in.CountAs(t, mover(mode, n%(8+3*day), day*n))
		}
		signup := mover(mode, day, 0)
		signup.URI, signup.Event = "", "signup"
		in.CountAs(t, signup)
		if mode != app.ByDay && day > 0 {
			late := mover(mode, 3*day, 1)
			late.At = in.Clock.Now().AddDate(0, 0, -1).Format("2006-01-02T15:04:05Z")
			in.CountAs(t, late)
		}
		in.Clock.Set(in.Clock.Now().AddDate(0, 0, 1))
	}
	in.closeAll(t, 20260702)
	in.Exec(t, `INSERT INTO visits_kept (app_id, from_day, gone_before) VALUES (1, 20260630, 20260630)`)
	in.Exec(t, `DELETE FROM visits WHERE day_id < 20260630`)
	if mode != app.ByDay {
		_, err := in.Admin.EraseVisitor(t.Context(), "demo", mover(mode, 2, 0).IP+mover(mode, 2, 0).Visitor)
		require.NoError(t, err)
	}
	if mode == app.ByID {
		in.link(t, "cookie:1", "visitor 1")
		in.has(t, "visitor 1", tag.Tag{Name: "plan", Value: "pro"})
		in.by(t, "cookie:1", "http://a.example/0")
	}
	in.offset(t, "http://a.example/1", 100, 50, 20)
	_, err := in.Admin.AddNote(t.Context(), "demo", "20260701", "a release, \"quoted\"\u00e9", "a.example")
	require.NoError(t, err)
	in.Exec(t, `INSERT INTO titles (page_id, title, told_at) SELECT id, 'Näme, of ' || uri, now() FROM pages WHERE uri LIKE '%/1'`)
	in.Exec(t, `INSERT INTO history_imports (app_id, source, files) VALUES (1, 'umami', '{"a, b.csv"}')`)
	in.Exec(t, `INSERT INTO history_days (app_id, import_id, day_id, site, in_totals)
		SELECT 1, id, 20260501, 'a.example', true FROM history_imports`)
	in.Exec(t, `INSERT INTO history (day, uri, page_views, visitors, uv) SELECT id, 'a.example/', 7, NULL, NULL FROM history_days
		UNION ALL SELECT id, 'a.example/1', 9, 5, 4 FROM history_days`)
	in.offset(t, "http://a.example/1", 100, 50, 20) // by hand; history is added to it
	require.Equal(t, int64(109), in.One(t, `SELECT hot FROM offsets`))
	in.verified(t)
	return in
}

// mover returns a visit of one of an app's visitors in this visitor mode.
func mover(mode string, who, page int) counter.Request {
	r := counter.Request{App: "demo", URI: fmt.Sprintf("http://%s.example/%d", []string{"a", "a", "b"}[page%3], page%4),
		Referrer: []string{"", "https://google.com/", "https://other.example/x"}[who%3], Language: []string{"de", "en"}[who%2],
		Tags: tag.Set{{Name: "plan", Value: []string{"pro", "free"}[page%2]}}}
	if r.Browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"; mode == app.ByID {
		r.Visitor = fmt.Sprint("visitor ", who)
	} else {
		r.IP = fmt.Sprint("192.0.2.", who%256)
	}
	return r
}

// rows returns an app's rows of all tables, without the columns that differ between databases.
func (in *instance) rows(t *testing.T, name string) (all []string) {
	t.Helper()
	require.Eventually(t, func() bool { return in.One(t, `SELECT count(*) FROM tag_news`) == 0 }, dbtest.Patience, dbtest.Tick)
	for _, sql := range []string{
		`SELECT uri, created_at, hot, pv, uv FROM pages JOIN counters ON page_id = id WHERE app_id = %d`,
		`SELECT uri, day_id, hot, pv, new_visitors, (SELECT s.uri FROM pages s WHERE s.id = d.site_id) FROM pages JOIN days d ON page_id = id WHERE app_id = %d`,
		`SELECT uri, day_id, previous_day, sum(visitors) FROM pages JOIN returns ON page_id = id WHERE app_id = %d GROUP BY 1, 2, 3`,
		`SELECT uri, rank, first_day, last_day FROM pages JOIN visitors ON page_id = id WHERE app_id = %d`,
		`SELECT uri, v.day_id, v.previous_day, r.rank, (SELECT string_agg(name || value, ' ' ORDER BY name) FROM tags g WHERE g.id = ANY (v.tags)),
			v.tags IS NULL FROM pages JOIN visits v ON page_id = id JOIN visitors r ON r.page_id = v.page_id AND r.ip = v.ip WHERE app_id = %d`,
		`SELECT uri, day_id, name, value, d.pv, newcomers FROM pages p JOIN tag_days d ON page_id = p.id JOIN tags g ON g.id = tag_id WHERE p.app_id = %d`,
		`SELECT uri, part, place, places FROM pages JOIN erased_visitors ON page_id = id WHERE app_id = %d`,
		`SELECT uri, day_id, previous_day, visitors FROM pages JOIN erased_visits ON page_id = id WHERE app_id = %d`,
		`SELECT uri, day_id, cardinality(entries) FROM pages JOIN sketches ON page_id = id WHERE app_id = %d AND day_id < 20260630`,
		`SELECT uri, title, told_at FROM pages JOIN titles ON page_id = id WHERE app_id = %d`,
		`SELECT uri, hot, pv, uv, told, history_hot, history_pv, history_uv, by_hand FROM offsets WHERE app_id = %d`, `SELECT day_id, site, text FROM notes WHERE app_id = %d`,
		`SELECT imported_at, source, files, day_id, site, uri, page_views, h.visits, h.visitors, h.new_visitors, h.uv, d.in_totals
			FROM history_imports i
			JOIN history_days d ON d.import_id = i.id JOIN history h ON h.day = d.id WHERE i.app_id = %d`,
		`SELECT from_day FROM visits_kept WHERE app_id = %d`,
		`SELECT id, height, person, (SELECT string_agg(name || value, ' ') FROM tags g WHERE g.id = ANY (tag_ids)) FROM people WHERE app_id = %d`,
		`SELECT tz, ipv6_prefix, access, sites, keep_query, created_at, respect_dnt, bots, ignore, max_requests, max_new_pages, retain_days,
			forget_days, public_counts, tags, filters, goals, titles, public_top, public_events FROM apps WHERE id = %d`,
	} {
		lines := in.Table(t, fmt.Sprintf(sql, in.One(t, `SELECT id FROM apps WHERE name = $1`, name)))
		slices.Sort(lines)
		all = append(append(all, sql), lines...)
	}
	return all
}

// allNumbers returns all numbers of an app: its rows, and every report.
func (in *instance) allNumbers(t *testing.T, name string) []string {
	t.Helper()
	all, reader := in.rows(t, name), report.NewReader(in.DB)
	for _, r := range report.Reports {
		if slices.Contains([]string{"who-came", "visitors", "ranks", "here"}, r.Name) { // addresses differ, and here covers only minutes
			continue
		}
		for _, target := range []string{"a.example", "a.example/1", "b.example", ""} {
			for _, in := range []visit.Range{{From: 20260629, To: 20260703}, {From: 20260701, To: 20260702}} {
				for _, where := range [][]string{nil, {"source:google"}, {"returning", "!plan:pro"}} {
					if where != nil && in.From < 20260630 {
						continue
					}
					rows, err := r.Read(t.Context(), reader, report.Look{App: name, Today: 20260704, Target: target, In: in, N: 50, By: "pv",
						Name: "source", Value: "google", Period: "day", Where: where, Rank: 2, Steps: []string{"page:/0", "event:signup"}})
					text, _ := json.Marshal(rows)
					all = append(all, strings.ReplaceAll(fmt.Sprint(r.Name, target, in, where, string(text), err), name, "demo"))
				}
			}
		}
	}
	return all
}

func (in *instance) exported(t *testing.T, visitors bool) []byte {
	t.Helper()
	var out bytes.Buffer
	_, err := in.Admin.ExportApp(t.Context(), "demo", visitors, &out)
	require.NoError(t, err)
	return out.Bytes()
}

func (in *instance) loads(text []byte, as string) error {
	_, unable, err := in.Admin.LoadApp(context.Background(), bytes.NewReader(text), int64(len(text)), as)
	return errors.Join(unable, err)
}

// elsewhere returns a database with another app, so that ids differ.
func elsewhere(t *testing.T, o counter.Options) *instance {
	t.Helper()
	in := ways[len(ways)-1].startOn(t, desk.Database(t, desk.Options{Apps: map[string]app.Settings{"first": {Access: ptr("open")},
		"second": {Access: ptr("open")}}}), o)
	for n := range 7 {
		in.CountAs(t, counter.Request{App: "second", IP: fmt.Sprint("192.0.2.", n), URI: "http://a.example/", Language: "fr"})
	}
	return in
}

// A loaded app has the same numbers and continues counting: returning visitors are recognized, with their ranks. Its
// hashes, also of browsers, are handled like daily ones.
func TestAppIsLoadedElsewhere(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{app.ByAddress, app.ByID, app.ByDay} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			from, to := lived(t, mode), elsewhere(t, counter.Options{})
			want := from.allNumbers(t, "demo")
			text := from.exported(t, true)
			require.NoError(t, to.loads(text, ""))
			_, err := to.Tables().Exec(t.Context(), `INSERT INTO batches (id, schema_version) VALUES (gen_random_uuid(), 2)`)
			require.ErrorContains(t, err, "batches_by_this_version", "an instance of 0.1.0 would count visitors as others")
			require.Equal(t, want, to.allNumbers(t, "demo"))
			require.EqualValues(t, 7, to.One(t, `SELECT hot FROM pages JOIN counters ON page_id = id
				WHERE app_id <> (SELECT id FROM apps WHERE name = 'demo')
				AND site_id IS NOT NULL`), "another app has what it had")
			to.verified(t)
			require.NoError(t, to.DB.WaitForInstances(t.Context(), dbtest.Patience))
			if mode == app.ByAddress {
				require.Empty(t, to.Table(t, `SELECT ip FROM visitors JOIN pages p ON p.id = page_id
					WHERE p.uri = 'a.example/1' AND NOT ip << 'fd00::/8'`))
			}
			to.Clock.Set(from.Clock.Now())
			if mode == app.ByID { // earlier and later links lead to the same visitors
				for _, in := range []*instance{from, to} {
					in.link(t, "cookie:2", "visitor 2")
					require.Equal(t, in.stored(t, "visitor 1"), in.finds(t, "cookie:1").Person)
					require.Equal(t, in.stored(t, "visitor 2"), in.finds(t, "cookie:2").Person)
				}
			}
			for n := range 12 {
				r := mover(mode, n, n)
				mine, theirs := from.CountAs(t, r), to.CountAs(t, r)
				if mode != app.ByDay || n > 0 {
					require.Equal(t, row(mine), row(theirs), "visitor %d", n)
				}
			}
			require.Equal(t, from.rows(t, "demo"), to.rows(t, "demo"))
			if mode == app.ByID {
				for _, id := range []string{"cookie:1", "cookie:2"} {
					require.Equal(t, from.by(t, id, "http://a.example/0"), to.by(t, id, "http://a.example/0"), id)
				}
			}
			to.verified(t)
			from.verified(t)

			// The copy can be exported and loaded too, and loading the same zip again makes another app, or is
			// refused.
			again := to.exported(t, true)
			require.ErrorContains(t, to.loads(again, ""), "there is an app demo already")
			require.NoError(t, to.loads(again, "dem0"))
			require.Equal(t, to.rows(t, "demo"), to.rows(t, "dem0"))
			to.verified(t)
			to.closeAll(t, 20260705)
			to.verified(t)
		})
	}
}

// An export is a snapshot of one moment, including news of tags, while visits are counted.
func TestExportIsOfOneMoment(t *testing.T) {
	t.Parallel()
	from := lived(t, app.ByHash)
	over, counted := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for n := 0; err == nil; n++ {
			_, err = from.Visit(context.Background(), mover(app.ByHash, n, n))
			select {
			case <-over:
				counted <- err
				return
			default:
			}
		}
		counted <- err
	}()
	for range 5 {
		to := elsewhere(t, counter.Options{})
		require.NoError(t, to.loads(from.exported(t, true), ""))
		to.verified(t)
	}
	close(over)
	require.NoError(t, <-counted)
}

// A zip contains no secret, key, link, address or id of a visitor. Without visitors it contains no hashes either.
func TestExportHasNoSecrets(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{app.ByAddress, app.ByID} {
		from := lived(t, mode)
		key, err := from.Admin.AddKey(t.Context(), "demo", []app.Scope{app.ScopeRead})
		require.NoError(t, err)
		from.Exec(t, `INSERT INTO webhooks (app_id, seen, private, uri, url) VALUES (1, 0, false, 'a.example', 'https://hook.example/token')`)
		from.Exec(t, `UPDATE apps SET log_key = decode(repeat('ab', 32), 'hex') WHERE visitor = 'address'`)
		hash := from.Table(t, `SELECT ip FROM visitors WHERE page_id = 2 LIMIT 1`)[0]
		for _, visitors := range []bool{true, false} {
			text := from.exported(t, visitors)
			for name, content := range unzipped(t, text) {
				for _, secret := range append([]string{string(desk.Secret), key, key[:12], "hook.example", strings.Repeat("ab", 32), "192.0.2.",
					"visitor 1", "cookie:1"}, from.Table(t, `SELECT encode(hash, 'hex') FROM keys`)...) {
					require.NotContains(t, content, secret, "%s of %s", name, mode)
				}
				if !visitors {
					require.NotRegexp(t, `\bfd[0-9a-f]{2}:`, content, name)
					require.NotContains(t, content, hash, name)
					require.NotContains(t, content, "203.0.113.0", name)
				}
			}
		}
	}
	from := lived(t, app.ByAddress)
	first, second := from.exported(t, true), from.exported(t, true)
	require.Equal(t, names(t, first), names(t, second))
	files, again := unzipped(t, first), unzipped(t, second)
	for _, sentence := range []string{"hot: page views; pv: visits, one for each visitor and day; uv: visitors",
		"created_at: when Footfall counted its first visit, which may be of an earlier day"} {
		require.Contains(t, files["README.md"], sentence, "the words of the dashboard")
	}
	require.NotContains(t, files["README.md"], "hot: visits")
	for _, ofNow := range []string{"README.md", "manifest.json"} {
		delete(files, ofNow)
		delete(again, ofNow)
	}
	require.Equal(t, files, again)
	var out bytes.Buffer
	_, err := admin.NewAdmin(from.DB, nil).ExportApp(t.Context(), "demo", true, &out)
	require.ErrorContains(t, err, "secret-file: an export has keyed hashes of visitors")
	_, err = from.Admin.ExportApp(t.Context(), "none", false, &out)
	require.ErrorContains(t, err, "none")
}

func unzipped(t *testing.T, text []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files[f.Name] = string(content)
	}
	return files
}

func names(t *testing.T, text []byte) (names []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	return names
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, content := range files {
		w, err := z.Create(name)
		require.NoError(t, err)
		_, err = io.WriteString(w, content)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

// Zips written by earlier versions can be loaded: this one is of lived(t, app.ByID) at commit aa73431e. Its visitors
// are recognized.
func TestZipOfBefore(t *testing.T) {
	t.Parallel()
	to := elsewhere(t, counter.Options{})
	text, err := os.ReadFile("testdata/takeout-1.zip")
	require.NoError(t, err)
	require.NoError(t, to.loads(text, ""))
	const ofDemo = ` FROM pages AS p WHERE app_id = (SELECT id FROM apps WHERE name = 'demo')`
	require.Equal(t, []string{"(events) 5 5 5\n", "a.example 128 70 20\n", "b.example 30 30 15\n"}, to.Table(t, `
		SELECT concat_ws(' ', uri, hot, pv, uv)
		FROM counters JOIN (SELECT *`+ofDemo+`) AS p ON id = page_id WHERE site_id IS NULL ORDER BY uri COLLATE "C"`))
	var m admin.Manifest
	require.NoError(t, json.Unmarshal([]byte(unzipped(t, text)["manifest.json"]), &m))
	large := strings.Fields("days visitors visits tag_days targets returns packed_returns")
	for _, file := range m.Files {
		table := map[string]string{"returns": "open_returns", "targets": "counters"}[file.Name]
		if table = cmp.Or(table, file.Name); slices.Contains(large, file.Name) {
			require.EqualValues(t, file.Rows, to.One(t, `SELECT count(*) FROM `+table+` WHERE page_id IN (SELECT id`+ofDemo+`)`), file.Name)
		}
	}
	to.verified(t)
	to.Clock.Set(time.Date(2026, 7, 4, 22, 0, 0, 0, time.UTC))
	require.EqualValues(t, 1, to.CountAs(t, mover(app.ByID, 0, 0)).Site.Rank)
	to.verified(t)
}

// An app without its secret can be read, and reports why it does not count.
func TestLoadedWithoutTheSecret(t *testing.T) {
	t.Parallel()
	from, to := lived(t, app.ByAddress), elsewhere(t, counter.Options{Secret: []byte(strings.Repeat("another secret ", 5))})
	to.Admin = admin.NewAdmin(to.DB, []byte(strings.Repeat("another secret ", 5)))
	text := from.exported(t, true)
	require.ErrorContains(t, to.loads(text, ""), "start it with the --secret-file that the app was made with")
	require.Equal(t, from.rows(t, "demo"), to.rows(t, "demo"))
	_, err := to.Visit(t.Context(), mover(app.ByAddress, 1, 1))
	require.ErrorContains(t, err, "this instance cannot count visits of app demo")
	to.verified(t)
}

// For every fault in a zip there is an error message, and nothing is loaded.
func TestZipsThatAreRefused(t *testing.T) {
	t.Parallel()
	from, to := lived(t, app.ByHash), elsewhere(t, counter.Options{})
	text := from.exported(t, true)
	with := func(name string, change func(string) string) []byte {
		files := unzipped(t, text)
		files[name] = change(files[name])
		return zipped(t, files)
	}
	without := func(name string) []byte {
		files := unzipped(t, text)
		delete(files, name)
		return zipped(t, files)
	}
	replace := func(old, is string) func(string) string {
		return func(s string) string { require.Contains(t, s, old); return strings.Replace(s, old, is, 1) }
	}
	resealed := func(name string, change func(string) string) []byte {
		files := unzipped(t, text)
		was := fmt.Sprintf("%x", sha256.Sum256([]byte(files[name])))
		files[name] = change(files[name])
		require.Contains(t, files["manifest.json"], was)
		files["manifest.json"] = strings.Replace(files["manifest.json"], was, fmt.Sprintf("%x", sha256.Sum256([]byte(files[name]))), 1)
		return zipped(t, files)
	}
	const rows = `SELECT (SELECT count(*) FROM visitors), (SELECT count(*) FROM apps), (SELECT count(*) FROM tags),
		(SELECT count(*) FROM days)`
	before := to.Table(t, rows)
	for says, bad := range map[string][]byte{
		"it is not a complete zip file":                               []byte("no zip"),
		"not a complete zip file: zip:":                               text[:len(text)/2],
		"it has no manifest.json":                                     without("manifest.json"),
		"visits.csv is missing":                                       without("visits.csv"),
		"was exported without visitors: only an export":               from.exported(t, false),
		"a newer version of Footfall wrote it, in format 9":           with("manifest.json", replace(`"format": 1`, `"format": 9`)),
		"its manifest.json cannot be read":                            with("manifest.json", func(string) string { return "{" }),
		`does not know the file "later.csv"`:                          with("manifest.json", replace(`"name": "days"`, `"name": "later"`)),
		`days.csv has a column "views"`:                               with("days.csv", replace("hot", "views")),
		"days.csv was changed after the export":                       with("days.csv", replace("\n", "\n1,20200101,1,1,1\n")),
		"days.csv: line 2: no target, tag or log has the number 99":   with("days.csv", replace("\n", "\n99,20260629,1,1,1\n")),
		`days.csv: line 2: "x" is not a number`:                       with("days.csv", replace("\n", "\nx,20260629,1,1,1\n")),
		"days.csv: line 2, column hot: ERROR: invalid":                with("days.csv", replace("\n", "\n1,20200101,x,1,1\n")),
		"visits.csv: line 2: no target, tag or log has the number 77": with("visits.csv", replace("\n", "\nfd00::1,1,20260701,0,\"{77}\"\n")),
		"visits.csv: line 2 is too long":                              with("visits.csv", replace("\n", "\n\""+strings.Repeat("{} ", 6<<20))),
		"not valid text":                                              with("notes.csv", replace("a release", "\xff")),
		`"a.example/\x1b[2J" is not a page or a site`:                 with("targets.csv", replace("a.example/1,", "a.example/\x1b[2J,")),
		`"<xss>" is not a page or a site`:                             with("notes.csv", replace("a.example", "<xss>")),
		`offsets.csv: line 2: uri: "A.example/1" is not`:              with("offsets.csv", replace("a.example/1", "A.example/1")),
		`site: "'self'" is not a site`:                                resealed("app.csv", replace(",{},", ",{'self'},")),
		"has a column":                                                with("notes.csv", func(s string) string { return "\xff\xfed\x00a\x00y\x00\n\x00" + s }),
		"app: ":                                                       with("manifest.json", replace(`"app": "demo"`, `"app": "De mo"`)),
		"is not a day":                                                with("manifest.json", replace("20260629", "20261329")),
	} {
		err := to.loads(bad, "")
		if says == "app: " {
			says = "is not a name for an app"
		}
		require.ErrorContains(t, err, says)
	}
	require.Equal(t, before, to.Table(t, rows))
	var bomb bytes.Buffer
	z := zip.NewWriter(&bomb)
	_, err := z.CreateRaw(&zip.FileHeader{Name: "visits.csv", Method: zip.Deflate, UncompressedSize64: 5 << 30})
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.ErrorContains(t, to.loads(bomb.Bytes(), ""), "it unpacks to more than 200 times its size")
	to.verified(t)
}

// A page whose deletion was interrupted before its app moved is deleted by the next deletion in the new place.
func TestLoadedAsAPageWasDeleted(t *testing.T) {
	t.Parallel()
	from, to := plain.newInstance(t, counter.Options{}), elsewhere(t, counter.Options{})
	for _, page := range []string{"a", "b", "c"} {
		from.Count(t, "192.0.2.1", "http://a.example/"+page)
	}
	require.NoError(t, from.Admin.DeletePage(t.Context(), "demo", "http://a.example/b"))
	from.Exec(t, `UPDATE pages SET uri = 'a.example/(deleted) ' || id WHERE uri = 'a.example/a'`) // and then the deletion was killed
	require.NoError(t, to.loads(from.exported(t, true), ""))
	require.ErrorContains(t, to.Admin.DeletePage(t.Context(), "demo", "http://a.example/a"), "has no page a.example/a")
	require.Equal(t, []string{"a.example 1 1 3\n", "a.example/(deleted) 1 1 2\n", "a.example/c 1 1 1\n"}, to.Table(t, `
		SELECT p.uri, c.pv, c.uv, c.hot FROM counters c JOIN pages p ON p.id = c.page_id
		WHERE p.app_id = (SELECT id FROM apps WHERE name = 'demo') ORDER BY p.uri COLLATE "C"`))
	to.verified(t)
}

// If a day is closed while an app is loaded, the app gets sketches too. The waiting sessions keep the lock order, and
// do not block changes of another app.
func TestLoadWhileADayIsClosed(t *testing.T) {
	t.Parallel()
	from, to := lived(t, app.ByHash), elsewhere(t, counter.Options{})
	text := from.exported(t, true)
	_, err := to.DB.MakeDays(t.Context(), 20260630, 20260701, 20260702, 20260703) // so that only the end has to wait
	require.NoError(t, err)
	to.Exec(t, `SELECT close_day(day) FROM unnest(ARRAY[20260629, 20260630, 20260701]) AS day`) // as in the app's present place
	var led atomic.Int64
	for _, come := range []struct {
		name string
		day  int
		as   func() error
	}{
		{"loaded", 20260702, func() error { return to.loads(text, "loaded") }},
		{"demo", 20260703, func() error { return moves(context.Background(), from, to, "there", "", &led) }},
	} {
		closing, err := to.Tables().Begin(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = closing.Rollback(context.Background()) })
		_, err = closing.Exec(t.Context(), `SELECT close_day($1)`, come.day)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- come.as() }()
		to.waiters(t, 1)
		to.One(t, `SELECT value FROM epochs WHERE name = 'apps' FOR UPDATE NOWAIT`)
		require.NoError(t, closing.Commit(t.Context()))
		require.NoError(t, <-done)
		require.Equal(t, to.One(t, `SELECT count(DISTINCT page_id) FROM visits JOIN pages ON id = page_id JOIN apps a ON a.id = app_id
			WHERE a.name = $1 AND day_id = $2`, come.name, come.day), to.One(t, `SELECT count(*) FROM sketches JOIN pages ON id = page_id
			JOIN apps a ON a.id = app_id WHERE a.name = $1 AND day_id = $2`, come.name, come.day), come.name)
	}
	to.verified(t)
}

// An interrupted load leaves nothing, and of two concurrent loads under one name only one succeeds.
func TestLoadsThatMeet(t *testing.T) {
	t.Parallel()
	from, to := lived(t, app.ByHash), elsewhere(t, counter.Options{})
	text, want := from.exported(t, true), from.rows(t, "demo")
	lock, err := to.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), `SELECT value FROM epochs WHERE name = 'apps' FOR UPDATE`)
	require.NoError(t, err)
	done := make(chan error, 2)
	go func() { done <- to.loads(text, "") }()
	require.Eventually(t, func() bool {
		return to.One(t, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '%load_app%'
			AND cardinality(pg_blocking_pids(pid)) > 0`) > 0
	}, dbtest.Patience, dbtest.Tick)
	require.Error(t, <-done)
	require.NoError(t, lock.Rollback(t.Context()))
	require.Zero(t, to.One(t, `SELECT count(*) FROM apps WHERE name = 'demo'`))
	require.Zero(t, to.One(t, `SELECT count(*) FROM visitors AS v WHERE NOT EXISTS (SELECT FROM pages AS p WHERE p.id = v.page_id)`))
	go func() { done <- to.loads(text, "") }()
	go func() { done <- to.loads(text, "") }()
	first, second := <-done, <-done
	if first != nil {
		first, second = second, first
	}
	require.NoError(t, first)
	require.ErrorContains(t, second, "there is an app demo already")
	assert.Equal(t, want, to.rows(t, "demo"))
	to.verified(t)
}
