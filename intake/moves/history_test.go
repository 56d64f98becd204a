package moves_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/intake/moves"
	"footfall/visit"
	"footfall/web/words"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// imports imports files into the app blog, which counts blog.example, or open, which counts any.
type imports struct {
	*desk.Desk
	t *testing.T
	h moves.History
}

func newImports(t *testing.T) *imports {
	t.Helper()
	t.Parallel()
	open, tz := app.AccessOpen, "Europe/Berlin"
	o := desk.Options{Real: true, Apps: map[string]app.Settings{"open": {Access: &open}, "blog": {Sites: []string{"blog.example"}, TZ: &tz}}}
	d := desk.Idle(t, desk.Database(t, o), o)
	d.Admin = admin.NewAdmin(d.DB, nil)
	return &imports{Desk: d, t: t}
}

// file is a named file. It becomes a zip if its content consists of several files.
type file struct{ name, text string }

func (i *imports) read(to admin.History, files ...file) (admin.HistoryResult, error) {
	i.t.Helper()
	i.h = moves.History{Source: to.Source, Skip: i.h.Skip}
	for _, f := range files {
		i.h.Files = append(i.h.Files, moves.File{Name: f.name, From: strings.NewReader(f.text)})
	}
	if to.App == "" {
		to.App = "blog"
	}
	return i.h.Import(i.t.Context(), i.Admin, to)
}

func (i *imports) well(source string, files ...file) admin.HistoryResult {
	i.t.Helper()
	done, err := i.read(admin.History{Source: source}, files...)
	require.NoError(i.t, err)
	return done
}

// rows returns all rows of history, one per line.
func (i *imports) rows() string {
	i.t.Helper()
	return strings.Join(i.Column(`
		SELECT concat_ws(' ', d.day_id, h.uri, coalesce(h.page_views::text, '-'), coalesce(h.visits::text, '-'), coalesce(h.visitors::text, '-'),
			coalesce(h.new_visitors::text, '-'))
		FROM history AS h JOIN history_days AS d ON d.id = h.day ORDER BY d.day_id, d.site, h.uri <> d.site, h.uri`), "\n")
}

func (i *imports) Column(sql string) []string {
	i.t.Helper()
	return dbtest.Column[string](i.t, i.Conn(i.t), sql)
}

func zipped(files ...file) string {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		w, _ := z.Create(f.name)
		_, _ = w.Write([]byte(f.text))
	}
	_ = z.Close()
	return out.String()
}

func gzipped(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return out.String()
}

func inUTF16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

const plain = "day,page,page_views,visits,visitors,new\n2024-05-03,/a,9,5,4,1\n2024-05-03,/b,3,,,\n2024-05-04,/a,1,1,1,0\n"

// The numbers of each day in the exports of other services. "-" means unknown. The files are made up, in the original
// formats.
func TestFormats(t *testing.T) {
	i := newImports(t)
	goat := "2Path,Title,Event,UserAgent,Browser,System,Session,Bot,Referrer,Referrer scheme,Screen size,Location,FirstVisit,Date\n" +
		"/a,\"A, \"\"quoted\"\"\nin two lines\",false,,Firefox 126,Linux,s1,0,,o,\"1920,1080,1\",DE,true,2024-05-03T10:00:00Z\n" +
		"/a?utm_source=x,A,false,,,,s1,0,,o,,DE,false,2024-05-03T10:01:00Z\n" +
		"/b,B,false,,,,s1,0,,o,,DE,true,2024-05-03T21:59:59Z\n" + // in Berlin, a second before the next day
		"/b,B,false,,,,s2,0,,o,,DE,true,2024-05-03T22:00:00Z\n" +
		"click,Click,true,,,,s2,0,,o,,DE,true,2024-05-03T22:00:00Z\n" +
		"/b,B,false,,,,s3,5,,o,,DE,true,2024-05-03T22:00:00Z\n"
	umami := "website_id,session_id,visit_id,event_id,hostname,url_path,url_query,page_title,event_type,event_name,created_at\n" +
		"w,s1,v1,e1,blog.example,/a,utm_source=x,A,1,,2024-05-03 10:00:00\nw,s1,v2,e2,blog.example,/a,,A,1,,2024-05-03T18:00:00.000Z\n" +
		"w,s2,v3,e3,blog.example,/b,,B,1,,2024-05-03 18:00:00.123+00\nw,s2,v3,e4,blog.example,/b,,B,2,click,2024-05-03 18:00:00\n"
	for _, c := range []struct {
		name, source string
		files        []file
		want         string
		leftOut      map[string]int64
	}{
		{"plain", "csv", []file{{"a.csv", plain}},
			"20240503 blog.example 12 - - -\n20240503 blog.example/a 9 5 4 1\n20240503 blog.example/b 3 - - -\n" +
				"20240504 blog.example 1 - - -\n20240504 blog.example/a 1 1 1 0", nil},
		{"plain, as spreadsheets write it; two spellings of a page", "csv", []file{{"a.csv",
			"\ufeffday;page;page_views;visitors\r\n20240503;https://blog.example/a#x;2;1\r\n20240503;blog.example/%61;3;3\r\n20240503;;9;3\r\n"}},
			"20240503 blog.example 9 - 3 -\n20240503 blog.example/a 5 - - -", nil},
		{"GoatCounter's CSV", "goatcounter", []file{{"a.csv.gz", gzipped(goat)}},
			"20240503 blog.example 3 1 1 -\n20240503 blog.example/a 2 1 1 -\n" +
				"20240503 blog.example/b 1 1 1 -\n20240504 blog.example 1 1 1 -\n20240504 blog.example/b 1 1 1 -", map[string]int64{"events": 1,
				"bots": 1}},
		{"GoatCounter's JSON", "goatcounter", []file{{"a.zip", zipped(file{"x/hit_stats.jsonl",
			`{"hour":"2024-05-03T10:00:00Z","path_id":1,"ref_id":1,"count":4}
{"hour":"2024-05-03T11:00:00Z","path_id":1,"ref_id":2,"count":2}

{"hour":"2024-05-03T11:00:00Z","path_id":3,"ref_id":2,"count":2}
{"hour":"2024-05-03T22:00:00Z","path_id":2,"ref_id":2,"count":1}`}, file{"x/paths.jsonl",
			`{"id":1,"path":"/a","title":"A"}` + "\n" + `{"id":2,"path":"/ü"}` + "\n" + `{"id":3,"event":true,"path":"click"}`})}},
			"20240503 blog.example 6 - - -\n20240503 blog.example/a 6 - 6 -\n20240504 blog.example 1 - - -\n20240504 blog.example/%C3%BC 1 - 1 -",
			map[string]int64{"events": 1}},
		{"Umami's zip", "umami", []file{{"export.zip", zipped(file{"event_data.csv", "x"}, file{"website_event.csv", umami})}},
			"20240503 blog.example 3 3 2 -\n20240503 blog.example/a 2 2 1 -\n20240503 blog.example/b 1 1 1 -", map[string]int64{"events": 1}},
		{"Umami's table, from MySQL", "umami", []file{{"website_event.tsv", strings.ReplaceAll(umami, ",", "\t")}},
			"20240503 blog.example 3 3 2 -\n20240503 blog.example/a 2 2 1 -\n20240503 blog.example/b 1 1 1 -", map[string]int64{"events": 1}},
		{"Plausible's zip", "plausible", []file{{"blog.zip", zipped(
			file{"imported_pages_20240503_20240504.csv", "date,hostname,page,visits,visitors,pageviews,total_scroll_depth\n" +
				"\"2024-05-03\",\"blog.example\",\"/a\",5,4,9,0\n2024-05-03,blog.example,/b,1,1,1,\n"},
			file{"imported_browsers_20240503_20240504.csv", "date,browser,visitors\n2024-05-03,Firefox,4\n"},
			file{"imported_visitors_20240503_20240504.csv", "date,visitors,pageviews,bounces,visits,visit_duration\n2024-05-03,4,10,1,5,60\n"})}},
			"20240503 blog.example 10 5 4 -\n20240503 blog.example/a 9 5 4 -\n20240503 blog.example/b 1 1 1 -", nil},
		{"Matomo's CSV of pages, in which columns come up later, and of visits", "matomo", []file{
			{"pages.csv", inUTF16("date,label,nb_visits,nb_uniq_visitors,nb_hits,metadata_url,metadata_segment\n" +
				"2024-05-03,/a,3,2,4,https://blog.example/a\n2024-05-03,Others,1,1,1,\n2024-05-04,/a,1,1,1,https://blog.example/a,x\n")},
			{"visits.csv", "date,nb_uniq_visitors,nb_visits,nb_actions,bounce_count,nb_pageviews\n2024-05-03,2,3,7,1\n2024-05-04,1,1,3,1,2\n"}},
			"20240503 blog.example 4 3 2 -\n20240503 blog.example/a 4 3 2 -\n20240504 blog.example 2 1 1 -\n20240504 blog.example/a 1 1 1 -",
			map[string]int64{"lines": 1}},
		{"Google Analytics", "ga4", []file{{"ga.csv", "# ----------------------------------------\n# Pages, by day\n# 20240503-20240504\n\n" +
			"Date,Page path and screen class,Views,Sessions,Active users,New users\n20240503,/a,9,5,4,1\n20240503,(not set),1,1,1,0\n" +
			",,10,6,5,1,\n"}},
			"20240503 blog.example 9 - - -\n20240503 blog.example/a 9 5 4 1", map[string]int64{"sums": 2}},
	} {
		done, err := i.read(admin.History{Source: c.source}, c.files...)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, i.rows(), c.name)
		if c.leftOut == nil {
			c.leftOut = map[string]int64{}
		}
		assert.Equal(t, c.leftOut, i.h.LeftOut, c.name)
		before := i.rows()
		again, err := i.read(admin.History{Source: c.source, DryRun: true}, c.files[len(c.files)-1])
		require.NoError(t, err, c.name)
		if len(c.files) == 1 {
			assert.Zero(t, again.Added+again.Replaced, "%s: the same again", c.name)
		}
		assert.Equal(t, before, i.rows(), "%s: a trial", c.name)
		_, err = i.Admin.RemoveHistory(t.Context(), "blog", done.ImportID)
		require.NoError(t, err, c.name)
		require.Empty(t, i.rows(), c.name)
	}
}

// Errors are reported with their place, and nothing is imported.
func TestBadFiles(t *testing.T) {
	i := newImports(t)
	head := "day,page,page_views,visits,visitors,new\n"
	whole := zipped(file{"website_event.csv", "url_path,created_at\n"})
	bomb := "2Path,Event,Session,Date\n" + strings.Repeat("click,true,s,\n", 2_000_000)
	for _, c := range []struct {
		source, text, says string
	}{
		{"csv", head + "2024-05-03,/a,-9,,,\n", `a.csv, line 2, column page_views: "-9" is not a number`},
		{"csv", head + "2024-05-02,/a,9,,1,\n2024-05-03,/a,9,,1,9\n", `a.csv, line 3, column new: 9 is more than visitors, 1: new visitors are`},
		{"csv", head + "2024-05-03,/a,9,,\"1,204\",\n", `a.csv, line 2, column visitors: "1,204" is not a number`},
		{"csv", head + "2024-05-03,/a,9,,,\n03/05/2024,/a,9,,,\n",
			`a.csv, line 3, column day: "03/05/2024" is not a day: write year, month and day`},
		{"csv", head + "2024-02-30,/a,9,,,\n", `line 2, column day: "2024-02-30" is not a day`},
		{"csv", head + "2999-01-01,/a,9,,,\n", "line 2: 2999-01-01 is in the future: in Europe/Berlin it is 20"},
		{"csv", head + "1980-01-01,/a,9,,,\n", "line 2: 1980-01-01 is before 1991"},
		{"csv", head + "2024-05-03,https://other.example/a,9,,,\n", "line 2: app blog does not count other.example"},
		{"csv", head + "2024-05-03,(events)/a,9,,,\n", "line 2: it is not a page"},
		{"csv", head + "2024-05-03,blog.example/(deleted),9,,,\n", "line 2: it is not a page"},
		{"csv", head + "2024-05-03,/a\x01,9,,,\n", "line 2: it contains a control character"},
		{"csv", head + "2024-05-03,/a,9000000000000,,,\n", "line 2: 9000000000000 is more than 1000000000000"},
		{"csv", head + "2024-05-03,/a,9\n", "line 2: it has 3 columns, and the first line names 6"},
		{"csv", head + "2024-05-03,/\xfc,9,,,\n", "line 2, column 2: it is not UTF-8"},
		{"csv", head + "2024-05-03,\"/a,9,,,\n", "it is not CSV"},
		{"csv", head + "2024-05-03,\"" + strings.Repeat("a", 3<<20), "a line is longer than 1 MB"},
		{"csv", "", "it is empty"},
		{"csv", head, "there is no line of numbers"},
		{"csv", "date,page,page_views\n", "line 1: column day is missing"},
		{"csv", "day,page,hits\n", "line 1: column page_views is missing"},
		{"csv", "day,page_views\n", "line 1: column page is missing"},
		{"csv", "\x00\x01\x02\x03", "it is not text"},
		{"umami", whole[:len(whole)-20], "it is damaged or incomplete"},
		{"csv", "PK\x01\x02000000000000000000000000'\x00\x00\x00\x00\x0000000000000000000000000000000PK\x05\x0600000000?\x00\x00\x000000\x00\x00",
			"it is incomplete"},
		{"umami", zipped(file{"other.csv", "x"}),
			"the zip contains none of the expected files, website_event.csv: from Umami, this can be read: its table"},
		{"umami", "url_path,created_at,session_id\n/a,03.05.2024,s\n", `line 2, column day: "03.05.2024" is not a time`},
		{"plausible", "date,browser,visitors,bounces\n", "there is no line of numbers: is it an export of Plausible?"},
		{"goatcounter", zipped(file{"paths.jsonl", "{"}), "line 1: it is not JSON from GoatCounter"},
		{"goatcounter", zipped(file{"hit_stats.jsonl", `{"hour":"2024-05-03T10:00:00Z","path_id":1,"count":1}`}),
			"path_id: 1 is not in paths.jsonl"},
		{"csv", gzipped(plain)[:60], "it is incomplete"}, {"csv", gzipped(plain)[:12] + strings.Repeat("x", 60), "it is damaged"},
		{"goatcounter", gzipped(bomb), "more than 200 times its size"},
		{"goatcounter", zipped(file{"a.csv", bomb}), "more than 200 times its size"},
	} {
		_, err := i.read(admin.History{Source: c.source}, file{"a.csv", c.text})
		require.ErrorContains(t, err, c.says)
		require.Empty(t, i.rows(), c.says)
	}
	_, err := i.read(admin.History{App: "open", Source: "csv"}, file{"a.csv", plain})
	require.ErrorContains(t, err, "a.csv, line 2: the line has no host: specify the site with --site")
	_, err = i.read(admin.History{App: "open", Source: "csv", Site: "blog.example"}, file{"a.csv", head +
		"2024-05-03,https://b.example/a,9,,,\n"})
	require.ErrorContains(t, err, "a.csv, line 2: it belongs to another host, b.example")
	_, err = i.read(admin.History{Source: "csv", Site: "b.example"}, file{"a.csv", plain})
	require.ErrorContains(t, err, "app blog does not count b.example")
	_, err = i.read(admin.History{Source: "csv"}, file{"a.csv", plain}, file{"a.csv", plain})
	require.ErrorContains(t, err, "a.csv: it is given twice")
	_, err = i.read(admin.History{Source: "csv"}, file{"a.csv", plain}, file{"b.csv", plain})
	require.ErrorContains(t, err, "b.csv: it is the same as a.csv: name it once")
	require.Empty(t, i.rows())

	// All faults are reported, or wrong days skipped on request.
	text := plain + strings.Repeat("x,/a,1,,,\n", 200)
	_, err = i.read(admin.History{Source: "csv"}, file{"a.csv", text})
	require.ErrorContains(t, err, "line 5, ")
	require.ErrorContains(t, err, "\nand 100 more\nNothing was imported.")
	i.h.Skip = true
	done := i.well("csv", file{"a.csv", text})
	assert.Equal(t, int64(2), done.Added)
	assert.Equal(t, "203 lines read; days of sites: 2 added, 0 replaced, 0 unchanged, from 2024-05-03 to 2024-05-04\n"+
		"unreadable lines left out: 200",
		i.h.Describe(&done, words.English().Say))
}

// A day belongs to one import. The same source can replace it, and another source is refused.
func TestDaysAreOfOneSource(t *testing.T) {
	i := newImports(t)
	i.well("csv", file{"a.csv", plain})
	before := i.rows()
	again := i.well("csv", file{"a.csv", plain})
	assert.Equal(t, [4]int64{0, 0, 2, 0}, [4]int64{again.Added, again.Replaced, again.Same, int64(again.ImportID)})
	assert.Len(t, i.Column(`SELECT 'x' FROM history_imports`), 1)

	_, err := i.read(admin.History{Source: "matomo"}, file{"m.csv",
		"date,nb_visits,nb_hits,metadata_url\n2024-05-04,1,1,https://blog.example/z\n2024-05-05,1,1,https://blog.example/z\n"})
	require.ErrorContains(t, err, "blog.example already has days of the source another counter (2024-05-04 to 2024-05-04): "+
		"a day can have only one source.")
	assert.Equal(t, before, i.rows())

	// A day that lacks a page, or has another number, is replaced completely.
	done := i.well("csv", file{"b.csv", "day,page,page_views\n2024-05-03,/a,9\n2024-05-05,/a,2\n"})
	assert.Equal(t, [3]int64{1, 1, 0}, [3]int64{done.Added, done.Replaced, done.Same})
	assert.Equal(t, "20240503 blog.example 9 - - -\n20240503 blog.example/a 9 - - -\n20240504 blog.example 1 - - -\n"+
		"20240504 blog.example/a 1 1 1 0\n20240505 blog.example 2 - - -\n20240505 blog.example/a 2 - - -", i.rows())
	done = i.well("csv", file{"c.csv", "day,page,page_views\n2024-05-04,/a,1\n"})
	assert.Equal(t, int64(1), done.Replaced)
	list, err := i.Admin.HistoryImports(t.Context(), "blog")
	require.NoError(t, err)
	require.Len(t, list, 2, "an import without days is deleted")
	assert.Equal(t, [2]int64{1, 2}, [2]int64{list[0].Days, list[1].Days})

	removed, err := i.Admin.RemoveHistory(t.Context(), "blog", list[0].ID, list[1].ID)
	require.NoError(t, err)
	assert.Equal(t, int64(3), removed)
	assert.Empty(t, i.rows())
	_, err = i.Admin.RemoveHistory(t.Context(), "blog", 1)
	require.ErrorContains(t, err, "app blog has no history import 1")
}

// Offsets cover the days that were not counted here, so visitors of other days are not included.
func TestOffsetsOfDaysThatAreShown(t *testing.T) {
	i := newImports(t)
	i.Exec(t, `INSERT INTO pages (app_id, uri) SELECT id, 'blog.example' FROM apps WHERE name = 'blog'`)
	i.Exec(t, `INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) SELECT id, id, 20240504, 1, 1, 1 FROM pages`)
	done, err := i.read(admin.History{Source: "goatcounter", Offsets: true}, file{"a.csv", "2Path,Session,Date\n" +
		"/a,s1,2024-05-03T10:00:00Z\n/a,s2,2024-05-04T10:00:00Z\n/a,s3,2024-05-04T10:00:00Z\n/b,s2,2024-05-04T10:00:00Z\n" +
		"/a,s1,2024-05-05T10:00:00Z\n"})
	require.NoError(t, err)
	assert.Equal(t, int64(1), done.Hidden)
	assert.Equal(t, []string{"blog.example 2 2 1", "blog.example/a 2 2 1"},
		i.Column(`SELECT concat_ws(' ', uri, hot, pv, uv) FROM offsets ORDER BY 1`))
}

// totals returns the offsets of the app blog, one per line.
func (i *imports) totals() string {
	i.t.Helper()
	return strings.Join(i.Column(`SELECT concat_ws(' ', uri, hot, pv, uv) FROM offsets WHERE hot > 0 ORDER BY 1`), "\n")
}

// Totals of several imports add up. Each import keeps its own part, and so do numbers set by hand.
func TestImportsAddUp(t *testing.T) {
	i := newImports(t)
	bring := func(source string, try bool, files ...file) admin.HistoryResult {
		t.Helper()
		done, err := i.read(admin.History{Source: source, Offsets: true, DryRun: try}, files...)
		require.NoError(t, err)
		return done
	}
	goat := file{"goat.csv", "2Path,Session,Date\n/a,s1,2024-03-01T10:00:00Z\n/a,s2,2024-03-01T10:00:00Z\n/b,s1,2024-03-02T10:00:00Z\n"}
	other := file{"other.csv", "day,page,page_views,visits,visitors,new\n2024-04-01,/a,10,,4,\n2024-04-02,/c,5,,,\n"}
	const goats = "blog.example 3 3 2\nblog.example/a 2 2 2\nblog.example/b 1 1 1"
	bring("goatcounter", false, goat)
	require.Equal(t, goats, i.totals())

	// A trial shows the same changes as the import makes.
	const both = "blog.example 18 3 2\nblog.example/a 12 6 2\nblog.example/b 1 1 1\nblog.example/c 5 0 0"
	for _, try := range []bool{true, false} {
		done := bring("csv", try, other)
		require.Equal(t, admin.OffsetCounts{Added: 1, Changed: 2, Same: 1}, *done.Offsets)
		var shown []string
		for _, o := range done.Totals {
			shown = append(shown, fmt.Sprint(o.Uri, " ", []int64{o.WasHot, o.WasPv, o.WasUv}, []int64{o.Hot, o.Pv, o.Uv}))
		}
		require.Equal(t, []string{"blog.example [3 3 2] [18 3 2]", "blog.example/a [2 2 2] [12 6 2]", "blog.example/c [0 0 0] [5 0 0]"}, shown)
		require.Equal(t, map[bool]string{true: goats, false: both}[try], i.totals())
	}
	for _, again := range []func() admin.HistoryResult{
		func() admin.HistoryResult { return bring("csv", false, other) }, func() admin.HistoryResult { return bring("goatcounter", false, goat) },
	} {
		require.Equal(t, admin.OffsetCounts{Same: 4}, *again().Offsets)
		require.Equal(t, both, i.totals())
	}

	// By hand, in addition to the imports.
	_, first, err := i.Admin.PutOffsets(t.Context(), "blog", []admin.Offset{{URI: "blog.example/a", Hot: 100, PV: 50, UV: 20}}, false)
	require.NoError(t, err)
	require.Equal(t, [2]int64{12, 112}, [2]int64{first[0].WasHot, first[0].Hot})
	require.Contains(t, i.totals(), "blog.example/a 112 56 22\n")
	_, err = i.Admin.SetOffsets(t.Context(), "blog", []admin.Offset{{URI: "blog.example/a", Hot: 7, PV: 7, UV: 7}}, false)
	require.NoError(t, err)
	require.Contains(t, i.totals(), "blog.example/a 19 13 9\n", "it replaces the numbers set by hand before")
	list, err := i.Admin.Offsets(t.Context(), "blog")
	require.NoError(t, err)
	require.Equal(t, admin.Offset{URI: "blog.example/a", Hot: 7, PV: 7, UV: 7}, list[1].ByHand())

	// A later export that also contains earlier days: their visitors are not new on later days. A changed day
	// replaces its own part.
	bring("goatcounter", false, file{"goat.csv", goat.text + "/a,s1,2024-03-03T10:00:00Z\n/a,s3,2024-03-03T10:00:00Z\n"})
	require.Equal(t, "blog.example 20 5 3\nblog.example/a 21 15 10\nblog.example/b 1 1 1\nblog.example/c 5 0 0", i.totals())
	_, err = i.read(admin.History{Source: "csv"}, file{"other.csv", strings.ReplaceAll(other.text, "/c,5", "/c,6")})
	require.NoError(t, err)
	require.Contains(t, i.totals(), "blog.example 21 5 3\n", "without --offsets, too")
	require.Contains(t, i.totals(), "blog.example/c 6 0 0")

	// Days that are counted here later leave the totals with the next change.
	i.Exec(t, `INSERT INTO pages (app_id, uri) SELECT id, 'blog.example' FROM apps WHERE name = 'blog'`)
	i.Exec(t, `INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) SELECT id, id, 20240402, 1, 1, 1 FROM pages`)

	// An import that is removed leaves the totals, and numbers set by hand stay until they are removed.
	imports, err := i.Admin.HistoryImports(t.Context(), "blog")
	require.NoError(t, err)
	var goatcounters, others []int32
	for _, one := range imports {
		if one.Source == "goatcounter" {
			goatcounters = append(goatcounters, one.ID)
		} else {
			others = append(others, one.ID)
		}
	}
	require.Len(t, goatcounters, 2)
	before := i.totals()
	done, err := i.Admin.TakeBackHistory(t.Context(), "blog", true, goatcounters)
	require.NoError(t, err)
	require.Equal(t, [3]int64{3, 21, 10}, [3]int64{done.Replaced, done.Totals[0].WasHot, done.Totals[0].Hot})
	require.Equal(t, before, i.totals())
	_, err = i.Admin.RemoveHistory(t.Context(), "blog", goatcounters...)
	require.NoError(t, err)
	require.Equal(t, "blog.example 10 0 0\nblog.example/a 17 11 7", i.totals())
	_, err = i.Admin.RemoveOffset(t.Context(), "blog", "blog.example")
	require.ErrorContains(t, err, "the offset of blog.example is from imported history")
	removed, err := i.Admin.RemoveOffset(t.Context(), "blog", "blog.example/a")
	require.NoError(t, err)
	require.Equal(t, admin.Offset{URI: "blog.example/a", Hot: 7, PV: 7, UV: 7}, removed)
	require.Equal(t, "blog.example 10 0 0\nblog.example/a 10 4 0", i.totals())
	_, err = i.Admin.RemoveHistory(t.Context(), "blog", others...)
	require.NoError(t, err)
	require.Empty(t, i.Column(`SELECT uri FROM offsets`))
}

// 0.2.0 set the sums of an import as offsets, in place of other imports. Importing the same files again does not add
// them twice, and restores the lost numbers.
func TestOffsetsOfTheVersionBefore(t *testing.T) {
	i := newImports(t)
	goat := file{"goat.csv", "2Path,Session,Date\n/a,s1,2024-03-01T10:00:00Z\n/a,s2,2024-03-01T10:00:00Z\n"}
	other := file{"other.csv", "day,page,page_views,visits,visitors,new\n2024-04-01,/a,10,,4,\n"}
	i.well("goatcounter", goat)
	i.well("csv", other)
	i.Exec(t, `INSERT INTO offsets (app_id, uri, hot, pv, uv) SELECT id, u, 10, p, 0
		FROM apps, (VALUES ('blog.example', 0), ('blog.example/a', 4)) AS v (u, p) WHERE name = 'blog'`)
	for _, again := range []struct {
		source string
		file   file
	}{{"csv", other}, {"goatcounter", goat}, {"csv", other}} {
		_, err := i.read(admin.History{Source: again.source, Offsets: true}, again.file)
		require.NoError(t, err)
		if again.source == "goatcounter" {
			break
		}
		require.Equal(t, "blog.example 10 0 0\nblog.example/a 10 4 0", i.totals())
	}
	require.Equal(t, "blog.example 12 2 2\nblog.example/a 12 6 2", i.totals())
}

// A file that is read and stored in several portions leads to the same rows as in one.
func TestPortions(t *testing.T) {
	i := newImports(t)
	var goat, text strings.Builder
	goat.WriteString("2Path,Session,Date\n")
	for n := range 12_000 {
		fmt.Fprintf(&goat, "/%d,s%d,2024-05-03T10:00:00Z\n", n%2, n%7)
	}
	i.well("goatcounter", file{"a.csv", goat.String()})
	assert.Equal(t, "20240503 blog.example 12000 7 7 -\n20240503 blog.example/0 6000 7 7 -\n20240503 blog.example/1 6000 7 7 -", i.rows())

	text.WriteString("day,page,page_views\n")
	wide := strings.Repeat("x", 1400)
	for n := range 25_000 {
		fmt.Fprintf(&text, "2024-05-04,/%d%s,%d\n", n, wide, n%2)
	}
	i.well("csv", file{"b.csv", text.String()})
	const put = `FROM history AS h JOIN history_days AS d ON d.id = h.day AND d.day_id = 20240504`
	assert.Equal(t, []int64{25_001, 25_000}, []int64{i.One(t, `SELECT count(*) `+put), i.One(t, `SELECT sum(page_views)::bigint `+put)})
	assert.Greater(t, i.One(t, `SELECT pg_relation_size('history')`), int64(32<<20), "it fits in one portion")
}

// Of two concurrent imports one waits. An interrupted import leaves nothing.
func TestImportsAtOnce(t *testing.T) {
	i := newImports(t)
	other := "date,nb_visits,nb_hits,metadata_url\n2024-05-04,1,1,https://blog.example/z\n"
	fails := make(chan error, 8)
	for n := range cap(fails) {
		go func() {
			h := moves.History{Source: []string{"csv", "matomo"}[n%2], Files: []moves.File{{Name: "a", From: strings.NewReader([]string{plain,
				other}[n%2])}}}
			_, err := h.Import(context.Background(), i.Admin, admin.History{App: "blog"})
			fails <- err
		}()
	}
	refused := 0
	for range cap(fails) {
		if err := <-fails; err != nil {
			require.ErrorContains(t, err, "a day can have only one source")
			refused++
		}
	}
	assert.Equal(t, 4, refused)
	assert.Len(t, i.Column(`SELECT 'x' FROM history_imports`), 1)

	before := i.rows()
	_, err := i.Admin.ImportHistory(t.Context(), admin.History{App: "blog", Source: "csv", Files: []string{"a"}},
		func(to *admin.HistoryTo) error {
			for n := range 12000 {
				told := admin.HistoryLine{Page: fmt.Sprintf("/%d", n), Day: 20240601, PageViews: 1, Visits: admin.Unknown, Visitors: admin.Unknown,
					New: admin.Unknown}
				require.NoError(t, to.Add(t.Context(), &told))
			}
			return errors.New("cut off")
		})
	require.ErrorContains(t, err, "cut off")
	assert.Equal(t, before, i.rows())
}

// While history is imported, visits count, also for new pages. Deleting a page or an app deletes its history. An
// import whose connection is cut leaves nothing.
func TestImportWhileCounting(t *testing.T) {
	t.Parallel()
	open := app.AccessOpen
	o := desk.Options{Real: true, Apps: map[string]app.Settings{"demo": {Access: &open}, "other": {Access: &open}}}
	i := &imports{Desk: desk.On(t, desk.Database(t, o), o), t: t}
	i.Count(t, "192.0.2.1", "http://a.example/old")
	bring := func(name string, offsets bool, within func()) error {
		_, err := i.Admin.ImportHistory(t.Context(), admin.History{App: name, Source: "csv", Files: []string{"a"}, Offsets: offsets},
			func(to *admin.HistoryTo) (err error) {
				for n := 0; n < 6002 && err == nil; n++ { // some are being sent
					told := admin.HistoryLine{Page: fmt.Sprintf("a.example/%d", n), Day: 20240502, PageViews: 9, Visits: admin.Unknown, Visitors: 4,
						New: admin.Unknown}
					if n < 2 {
						told.Page, told.Day = []string{"a.example/old", "a.example/before"}[n], 20240503
					}
					err = to.Add(t.Context(), &told)
				}
				within()
				return err
			})
		return err
	}
	require.NoError(t, bring("demo", true, func() {
		i.Count(t, "192.0.2.2", "http://a.example/new")
		i.Count(t, "192.0.2.2", "http://a.example/old")
		another := i.Admin.WithSlots(admin.NewSlots(t.Context())) // a command in another process
		require.NoError(t, another.DeletePage(t.Context(), "demo", "a.example/old"))
	}))
	require.NoError(t, bring("other", false, func() {
		i.CountAs(t, counter.Request{App: "other", IP: "192.0.2.1",
			URI: "http://a.example/"})
	}))
	require.ErrorContains(t, bring("other", false, func() {
		i.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%read_history%' AND pid <> pg_backend_pid()
			AND datname = current_database()`)
	}), "import history of app other")
	assert.Equal(t, int64(4), i.One(t, `SELECT count(*) FROM history_days`))
	assert.Equal(t, int64(2*6004), i.One(t, `SELECT count(*) FROM history`))
	i.Check(t)

	for _, page := range []string{"a.example/old", "a.example/before"} { // the second one was never counted here
		require.NoError(t, i.Admin.DeletePage(t.Context(), "demo", page))
	}
	assert.Equal(t, int64(2), i.One(t, `SELECT count(*) FROM history WHERE uri IN ('a.example/old', 'a.example/before')`), "of the other app")
	require.NoError(t, i.Admin.DeleteApp(t.Context(), "demo"))
	assert.Equal(t, int64(6004), i.One(t, `SELECT count(*) FROM history`))
	i.Check(t)
}

// If the app is moving, or deleted, when its files have been read, nothing is stored. From then on the app stays
// unchanged until the import has finished. In the meantime new pages are counted, unless offsets are set.
func TestImportDuringAMove(t *testing.T) {
	i := newImports(t)
	bring := func(offsets bool, within string) error {
		_, err := i.Admin.ImportHistory(t.Context(), admin.History{App: "blog", Source: "csv", Files: []string{"a"}, Offsets: offsets},
			func(to *admin.HistoryTo) error {
				i.Exec(t, within)
				return to.Add(t.Context(), &admin.HistoryLine{Page: "/a", Day: 20240503, PageViews: 9, Visits: -1, Visitors: -1, New: -1})
			})
		return err
	}
	for _, c := range []struct{ within, says string }{
		{`UPDATE apps SET moving_to = 'there' WHERE name = 'blog'`, "app blog is moving to the cell there"},
		{`UPDATE apps SET cell = 'there', moving_to = NULL WHERE name = 'blog'`, "app blog is in the cell there"},
		{`UPDATE apps SET deleted_at = now(), cell = NULL WHERE name = 'blog'`, "this app is being deleted"},
		{`UPDATE apps SET name = 'former' WHERE name = 'blog'`, `there is no app "blog"`},
		{`UPDATE apps SET tz = 'UTC' WHERE name = 'blog'`, "tz: the time zone of app blog was changed in the meantime"},
	} {
		for _, offsets := range []bool{false, true} {
			require.ErrorContains(t, bring(offsets, c.within), c.says)
			require.Empty(t, i.rows())
			i.Exec(t, `UPDATE apps SET name = 'blog', tz = 'Europe/Berlin', deleted_at = NULL, cell = NULL, moving_to = NULL
				WHERE name IN ('blog', 'former')`)
		}
	}
	require.NoError(t, bring(false, `SELECT 1`))
	utc := app.Settings{TZ: new("UTC")}
	require.ErrorContains(t, i.Admin.SetApp(t.Context(), "blog", utc),
		"tz: app blog has history with days in the time zone Europe/Berlin: remove it first")
	removing := func() error { _, err := i.Admin.RemoveHistory(context.Background(), "blog", 1); return err }
	for _, do := range []func() error{func() error { return bring(false, `SELECT 1`) }, removing} {
		tx, err := i.Conn(t).Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `LOCK history_imports, history_days IN ACCESS EXCLUSIVE MODE`)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- do() }()
		require.Eventually(t, func() bool {
			return i.One(t, `SELECT count(*) FROM pg_locks WHERE NOT granted
				AND relation IN ('history_imports'::regclass, 'history_days'::regclass)`) > 0
		}, dbtest.Patience, dbtest.Tick)
		for sql, refused := range map[string]bool{`SELECT FROM apps WHERE name = 'blog' FOR NO KEY UPDATE NOWAIT`: true,
			`SELECT FROM apps WHERE name = 'blog' FOR KEY SHARE NOWAIT`: false} {
			_, err := i.Tables().Exec(t.Context(), sql)
			assert.Equal(t, refused, err != nil, "%s: %v", sql, err)
		}
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, <-done)
	}
	require.Empty(t, i.rows())
	require.NoError(t, i.Admin.SetApp(t.Context(), "blog", utc))
}

// FuzzHistory reads arbitrary input as a file of any source: reading ends, with or without an error, and the accepted
// numbers keep the rules of the tables.
func FuzzHistory(f *testing.F) {
	for _, text := range []string{plain, inUTF16(plain), gzipped(plain), zipped(file{"website_event.csv",
		"url_path,created_at\n/a,2024-05-03 10:00:00\n"}),
		zipped(file{"paths.jsonl", `{"id":1,"path":"/a"}`}, file{"hit_stats.jsonl", `{"hour":"2024-05-03T10:00:00Z","path_id":1,"count":4}`}),
		"2Path,Event,Bot,Session,Date\n/a,false,0,s,2024-05-03T10:00:00Z\n", "# x\n\nDate,Page path,Views\n20240503,/a,1\n,,1,x\n",
		"date;metadata_url;nb_hits\n2024-05-03;https://blog.example/%zz;4\n"} {
		for n := range len(moves.Sources()) {
			f.Add(n, text)
		}
	}
	o := desk.Options{Real: true, Apps: map[string]app.Settings{"blog": {Sites: []string{"blog.example"}}}}
	d := desk.Idle(f, desk.Database(f, o), o)
	f.Fuzz(func(t *testing.T, n int, text string) {
		sources := moves.Sources()
		h := moves.History{Source: sources[uint(n)%uint(len(sources))], Skip: n%2 == 0, //nolint:gosec // any will do
			Files: []moves.File{{Name: "a", From: strings.NewReader(text)}}}
		done, err := h.Import(t.Context(), d.Admin, admin.History{App: "blog", DryRun: true, Offsets: true})
		if err == nil {
			assert.True(t, h.Lines > 0 || done.ImportID == 0)
			_ = h.Describe(&done, words.English().Say)
			return
		}
		_, told := errors.AsType[*visit.Error](err)
		assert.True(t, told, "%v", err)
	})
}
