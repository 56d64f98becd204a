package main

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// TestHistory imports days counted by other services, with an operator's commands.
func TestHistory(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	first := writeFile(t, "day,page,page_views,visits,visitors,new\n2024-05-03,/a,9,5,4,1\n2024-05-04,http://a.example/a,3,,,\n")
	do := func(args ...string) result { return footfall(t, append(args, database)...) }
	assert.Contains(t, do("history", "import", "--app=demo", "--from=csv", first).stderr,
		"line 2: the line has no host: specify the site with --site")
	trial := do("history", "import", "--app=demo", "--from=csv", "--site=a.example", "--offsets", "--dry-run", first)
	assert.Equal(t, "DAY         PAGE OR SITE  PAGE VIEWS  VISITS  VISITORS  NEW\n"+
		"2024-05-03  a.example     9           –       –         –\n2024-05-03  a.example/a   9           5       4         1\n"+
		"2024-05-04  a.example     3           –       –         –\n2024-05-04  a.example/a   3           –       –         –\n"+
		"\nPAGE OR SITE  TOTALS BEFORE      AFTER\n"+
		"a.example     hot 0, pv 0, uv 0  hot 12, pv 0, uv 0\na.example/a   hot 0, pv 0, uv 0  hot 12, pv 4, uv 0\n"+
		"without --dry-run: 2 lines read; days of sites: 2 added, 0 replaced, 0 unchanged, from 2024-05-03 to 2024-05-04\n"+
		"offsets: 2 added, 0 changed, 0 unchanged\n", trial.stdout, trial.stderr)
	assert.Equal(t, 1, strings.Count(do("history", "list", "--app=demo").stdout, "\n"))
	well(t, "history", "import", "--app=demo", "--from=csv", "--site=a.example", "--offsets", first, database)
	assert.Equal(t, "PAGE OR SITE  HOT  PV  UV  HOT FROM HISTORY\na.example     12   0   0   12\na.example/a   12   4   0   12\n",
		well(t, "offset", "list", "demo", database))
	assert.Contains(t, well(t, "history", "import", "--app=demo", "--from=csv", "--site=a.example", "--offsets", first, database),
		"0 added, 0 replaced, 2 unchanged, from 2024-05-03 to 2024-05-04\noffsets: 0 added, 0 changed, 2 unchanged\n")
	assert.Regexp(t, `\n2 .* another counter +a\.example +2 +2024-05-03 +2024-05-04 +`, well(t, "history", "list", "--app=demo", database))
	days := do("report", "days", "a.example/a", "--from=all", "--history", "--csv").stdout
	assert.Equal(t, "day,pv,new_visitors,hot,visits,source\n20240503,4,1,9,5,csv\n20240504,,,3,,csv\n", days)
	// Before any visit is counted here, the report has one row for each requested day, even for days that were not imported.
	assert.Equal(t, "day,pv,new_visitors,hot,visits,source\n20240503,4,1,9,5,csv\n20240504,,,3,,csv\n20240505,,,,,\n",
		do("report", "days", "a.example/a", "--from=20240501", "--to=20240505", "--history", "--csv").stdout)
	assert.Equal(t, "demo: a.example/a, from 2024-05-03 to 2024-05-05\n\n"+
		"DAY         PV                       NEW  HOT  VISITS  COUNTED BY\n"+
		"2024-05-03   4 ####################    1    9       5  another counter\n"+
		"2024-05-04   –                         –    3       –  another counter\n"+
		"2024-05-05   –                         –    –       –  –\n\n"+
		"counted by another counter from 2024-05-03 to 2024-05-04: daily visitors –, page views 12\n",
		do("report", "days", "a.example/a", "--from=20240503", "--to=20240505", "--history", "--ascii").stdout)
	drawn := do("report", "days", "a.example/a", "--from=20240503", "--to=20240505", "--history", "--svg=-").stdout
	assert.Contains(t, drawn, "2024-05-03: counted by another counter: visitors 4, page views 9")
	assert.Contains(t, drawn, `class="bar none"><title>2024-05-05: no count</title>`)
	assert.Contains(t, do("report", "days", "a.example/a", "--from=all", "--history", "--json").stdout, `"source": "csv"`)
	assert.NotContains(t, do("report", "days", "a.example/a", "--from=all").stdout, "another counter")
	assert.Contains(t, do("page", "delete", "demo", "a.example/a", "--yes").stdout, "its numbers from elsewhere, for 2 days, are deleted")
	assert.Equal(t, "PAGE OR SITE  TOTALS BEFORE       AFTER\na.example     hot 12, pv 0, uv 0  hot 0, pv 0, uv 0\n"+
		"without --dry-run: removed 2 days\n", well(t, "history", "remove", "--app=demo", "--dry-run", "2", database))
	assert.Equal(t, "removed 2 days\n", well(t, "history", "remove", "--app=demo", "2", database))
	assert.Equal(t, "PAGE OR SITE  HOT  PV  UV  HOT FROM HISTORY\n", well(t, "offset", "list", "demo", database))
	assert.Contains(t, do("history", "remove", "--app=demo", "2").stderr, "app demo has no history import 2")

	// Slow input is first stored in a file, so that no session waits for it.
	slow := exec.Command(os.Args[0], "history", "import", "--app=demo", "--from=csv", "--site=a.example", "-", database)
	slow.Env = environment()
	typed, err := slow.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, slow.Start())
	_, err = io.WriteString(typed, "day,page,page_views\n"+strings.Repeat("2024-05-03,/a,1\n", 20_000)) // more than a pipe has room for
	require.NoError(t, err)
	conn := dbtest.Connect(t, strings.TrimPrefix(database, "--database-url="))
	awaitNobodyElse(t, conn)
	_, err = io.WriteString(typed, "2024-05-04,/a,1\n")
	require.NoError(t, errors.Join(err, typed.Close(), slow.Wait()))
	assert.Contains(t, do("history", "list", "--app=demo").stdout, "standard input")
	well(t, "history", "remove", "--app=demo", "3", database)
	totals := writeFile(t, "uri,hot\na.example,7\n")
	assert.Equal(t, "offsets: 1 added, 0 changed, 0 unchanged\n", well(t, "history", "import", "--app=demo", "--from=vercount", totals,
		database))
	assert.Contains(t, well(t, "changes", database), "history")
}

// An import that is killed, at any point, has changed nothing. If the import is repeated, it is complete.
func TestHistoryIsKilled(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	conn := dbtest.Connect(t, strings.TrimPrefix(database, "--database-url="))
	is := func() []string {
		return dbtest.Column[string](t, conn, `
			SELECT concat_ws(' ', d.day_id, h.uri, h.page_views) FROM history AS h JOIN history_days AS d ON d.id = h.day
			UNION ALL SELECT concat_ws(' ', uri, hot) FROM offsets
			UNION ALL SELECT 'import of ' || files[1] FROM history_imports ORDER BY 1`)
	}
	first := writeFile(t, "day,page,page_views\n2024-05-03,a.example/a,1\n2024-05-04,a.example/a,1\n")
	second := writeFile(t, "day,page,page_views\n"+strings.Repeat("2024-05-03,a.example/a,3\n", 6000)+"2024-05-05,a.example/b,4\n")
	args := func(file string) []string {
		return []string{"history", "import", "--app=demo", "--from=csv", "--offsets", file, database}
	}
	well(t, args(first)...)
	before := is()
	for _, holding := range []string{
		`SELECT pg_advisory_xact_lock(hashtext('footfall.history'), id) FROM apps WHERE name = 'demo'`, // everything was read
		`LOCK history IN SHARE MODE`, `LOCK offsets IN SHARE MODE`, `LOCK changes IN SHARE MODE`, // half of it was stored, and then all
	} {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), holding)
		require.NoError(t, err)
		importing := exec.Command(os.Args[0], args(second)...)
		importing.Env = environment()
		require.NoError(t, importing.Start())
		require.Eventually(t, func() bool {
			return dbtest.Column[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
				WHERE d.datname = current_database() AND NOT l.granted)`)[0]
		}, dbtest.Patience, dbtest.Tick, holding)
		require.NoError(t, importing.Process.Kill())
		_ = importing.Wait()
		assert.True(t, importing.ProcessState.Sys().(syscall.WaitStatus).Signaled())
		require.NoError(t, tx.Rollback(t.Context()))
		awaitNobodyElse(t, conn)
		assert.Equal(t, before, is(), holding)
	}
	for range 2 {
		well(t, args(second)...)
		assert.Equal(t, []string{"20240503 a.example 18000", "20240503 a.example/a 18000", "20240504 a.example 1", "20240504 a.example/a 1",
			"20240505 a.example 4", "20240505 a.example/b 4", "a.example 18005", "a.example/a 18001", "a.example/b 4",
			"import of " + filepath.Base(first), "import of " + filepath.Base(second)}, is())
	}
}

// awaitNobodyElse waits until there is no other session. The session of a command ends shortly after the command.
func awaitNobodyElse(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	require.Eventually(t, func() bool {
		return dbtest.Column[int](t, conn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND pid <> pg_backend_pid() AND backend_type = 'client backend'`)[0] == 0
	}, dbtest.Patience, dbtest.Tick)
}

// TestOffset sets numbers that were counted before, with an operator's commands, next to a running service.
func TestOffset(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	s := serve(t, database)
	status, body := get(s.url + "/visit?app=demo&ip=192.0.2.1&uri=http://a.example/")
	require.Equal(t, http.StatusOK, status)
	assert.Equal(t, `{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`, body)
	set := []string{"offset", "set", "demo", "http://a.example/", "--hot=1000", "--uv=200", "--pv=300", database}
	assert.Equal(t, "offsets: 1 added, 0 changed, 0 unchanged\n", well(t, set...))
	assert.Equal(t, "offsets: 0 added, 0 changed, 1 unchanged\n", well(t, set...))
	_, body = get(s.url + "/visit?app=demo&ip=192.0.2.1&uri=http://a.example/")
	assert.Equal(t, `{"site":{"pv":1,"uv":1,"rank":1,"hot":2},"page":{"pv":301,"uv":201,"rank":201,"hot":1002}}`, body,
		"in force when the command returns")

	file := writeFile(t, "uri,hot,uv\na.example,5000,400\na.example/new,7,\n")
	assert.Equal(t, "PAGE OR SITE   TOTALS BEFORE      AFTER\na.example      hot 0, pv 0, uv 0  hot 5000, pv 400, uv 400\n"+
		"a.example/new  hot 0, pv 0, uv 0  hot 7, pv 0, uv 0\noffsets: would be 2 added, 0 changed, 0 unchanged\n",
		well(t, "offset", "import", "demo", file, "--dry-run", database))
	assert.Equal(t, "offsets: 2 added, 0 changed, 0 unchanged\n", well(t, "offset", "import", "demo", file, database))
	assert.Equal(t, "offsets: 0 added, 0 changed, 2 unchanged\n", well(t, "offset", "import", "demo", file, database))
	assert.Equal(t, "PAGE OR SITE   HOT   PV   UV   HOT FROM HISTORY\na.example      5000  400  400  0\n"+
		"a.example/     1000  300  200  0\na.example/new  7     0    0    0\n", well(t, "offset", "list", "demo", database))
	listed := well(t, "offset", "list", "demo", "--csv", database)
	assert.Equal(t, "uri,hot,uv,pv\na.example,5000,400,400\na.example/,1000,200,300\na.example/new,7,0,0\n", listed)
	again := footfallTyped(t, listed, "offset", "import", "demo", "-", database)
	assert.Equal(t, "offsets: 0 added, 0 changed, 3 unchanged\n", again.stdout, again.stderr)
	_, body = get(s.url + "/visit?app=demo&ip=192.0.2.2&uri=http://a.example/new")
	assert.Equal(t, `{"site":{"pv":402,"uv":402,"rank":402,"hot":5003},"page":{"pv":1,"uv":1,"rank":1,"hot":8}}`, body)

	page := well(t, "report", "page", "a.example", database)
	assert.Contains(t, page, "in all: pv 402, uv 402, hot 5,003\ncounted by another tool and included above: pv 400, uv 400, hot 5,000\n")
	assert.Contains(t, well(t, "report", "page", "a.example", "--no-offsets", database), "in all: pv 2, uv 2, hot 3\n\n")
	assert.Contains(t, well(t, "report", "rank", "a.example", "402", database), "192.0.2.2")
	assert.Contains(t, footfall(t, "report", "rank", "a.example", "400", database).stderr,
		"visitor number 400 of a.example was counted elsewhere")
	assert.Contains(t, well(t, "report", "rank", "a.example", "192.0.2.2", "--no-offsets", database), "visitor 2 of a.example")
	assert.Regexp(t, `192.0.2.1 +401`, well(t, "report", "visitors", "a.example", database))
	well(t, "verify", database)

	wrong := writeFile(t, "uri,hot,uv,pv\nhttp://a.example/x,1,2,\nftp://a.example/,1,,\nhttp://a.example/y,many,,\nhttp://a.example/z,5,,\n")
	for _, more := range [][]string{{}, {"--dry-run"}} {
		r := footfall(t, append([]string{"offset", "import", "demo", wrong, database}, more...)...)
		assert.Equal(t, exitUsage, r.code)
		for _, says := range []string{"footfall: line 2: hot: 1 is less than uv, 2", "footfall: line 3: uri: ",
			`footfall: line 4: hot: "many" is not a number`} {
			assert.Contains(t, r.stderr, says)
		}
	}
	assert.Equal(t, listed, well(t, "offset", "list", "demo", "--csv", database), "all or nothing")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"set", "demo", "http://a.example/", "--hot=5", "--uv=6"}, "footfall: --hot: 5 is less than uv, 6"},
		{[]string{"set", "nobody", "http://a.example/", "--hot=5"}, `footfall: app: there is no app "nobody"`},
		{[]string{"set", "demo", "http://a.example/"}, "--hot"},
		{[]string{"set", "demo", "http://a.example/", "--hot=-1", "--uv=-1", "--pv=-1"}, "footfall: --uv: -1 is less than 0"},
		{[]string{"set", "demo", "ftp://a.example/", "--hot=1"}, "footfall: uri: "},
		{[]string{"import", "demo", filepath.Join(t.TempDir(), "none.csv")}, "no such file"},
		{[]string{"import", "demo", writeFile(t, "")}, "footfall: file: it is empty"},
		{[]string{"remove", "demo", "http://a.example/none"}, "has no offset for a.example/none"},
	} {
		r := footfall(t, append(append([]string{"offset"}, c.args...), database)...)
		assert.NotZero(t, r.code, c.args)
		assert.Contains(t, r.stderr, c.says, c.args)
	}
	assert.Equal(t, "removed the offset of a.example/ (hot 1000, pv 300, uv 200)\n", well(t, "offset", "remove", "demo", "http://a.example",
		database))
	well(t, "offset", "set", "demo", "a.example/never", "--hot=7", database)
	assert.Equal(t, "deleted a.example/never, for which nothing was counted; its offset (hot 7, pv 0, uv 0) is deleted\n",
		well(t, "page", "delete", "demo", "a.example/never", "--yes", database))
	_, body = get(s.url + "/counts?app=demo&ip=192.0.2.1&uri=http://a.example/")
	assert.Contains(t, body, `"page":{"pv":1,"uv":1,"rank":1,"hot":2}`)
	assert.Zero(t, s.stop())
}

// elsewhere contains samples of the other services that docs/moving.md names.
type elsewhere struct {
	folder string   // the working directory of the commands, like a reader's checkout
	env    []string // the environment of the commands
	known  *strings.Replacer
	sql    *pgx.Conn // on the database of the service
}

// newElsewhere creates samples of all services in the document.
func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	database := dbtest.New(t)
	e := &elsewhere{folder: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(e.folder, "bin"), 0o700))
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(e.folder, "bin", "footfall")))
	secret := writeFile(t, strings.Repeat("s", 32))
	well(t, "app", "add", "blog", "--site=blog.example", "--database-url", database, "--secret-file", secret)
	e.env = append(environment(), "FOOTFALL_DATABASE_URL="+database, "FOOTFALL_SECRET_FILE="+secret, "TOKEN=secret")
	for name, text := range map[string]string{
		"access.log": `192.0.2.7 - - [` + time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700") + `] "GET /hello HTTP/1.1" 200 9 "-" "` +
			browser + `"` + "\n",
		"goatcounter-export.csv": `2Path,Title,Event,UserAgent,Browser,System,Session,Bot,Referrer,Referrer scheme,Screen size,Location,FirstVisit,Date
/hello?utm=1,"A ""title"", with` + "\n" + `two lines",false,,Firefox 140,Linux,s1,0,,,"1,1,1",DE,true,2026-08-04T12:00:00Z
/hello,Hello,false,,Firefox 140,Linux,s1,0,,,"1,1,1",DE,false,2026-08-04T12:01:00Z
/hello,Hello,false,,Firefox 140,Linux,s2,0,,,"1,1,1",DE,true,2026-08-05T12:00:00Z
/,Home,false,,Firefox 140,Linux,s2,0,,,"1,1,1",DE,true,2026-08-05T12:00:00Z
click-me,,true,,Firefox 140,Linux,s2,0,,,"1,1,1",DE,true,2026-08-05T12:00:00Z
/hello,Hello,false,,Bot,Linux,s3,5,,,"1,1,1",DE,true,2026-08-05T12:00:00Z
`,
		"Counter.0.jsonl": `#filetype:JSON-streaming {"type":"Class","class":"Counter"}
{"objectId":"5f0c8a1b2d3e4f5061728394","url":"/hello/","title":"Hello","time":120,"createdAt":"2020-01-02T03:04:05.000Z"}
{"url":"/hello/","time":3}
{"target":"site-pv","time":500}
{"target":"site-uv","time":90}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(e.folder, name), []byte(text), 0o600))
	}
	var err error
	e.sql, err = pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.sql.Close(t.Context()) })
	services := peers(t)
	e.known = strings.NewReplacer(
		"https://cdn.busuanzi.cc", services+"/cc", "https://busuanzi.example", services+"/soxft",
		"https://busuanzi.ibruce.info", services+"/ibruce", "https://events.vercount.one",
		services+"/vercount",
		"https://matomo.example", services+"/matomo", "https://blog.example/sitemap.xml", services+"/sitemap.xml", "redis://127.0.0.1:6379/0",
		busuanziOf(t))
	return e
}

// peers returns the URL of a server that responds like the services that are queried for numbers.
func peers(t *testing.T) string {
	var asked, inCC atomic.Int64 // the counters of the original and of busuanzi.cc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hot := map[string]int{"https://blog.example/": 40, "https://blog.example/hello": 30}
		switch r.URL.Path {
		case "/sitemap.xml":
			fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>`+
				`https://blog.example/</loc></url><url><loc>https://blog.example/hello</loc></url></urlset>`)
		case "/soxft/api":
			fmt.Fprintf(w, `{"data":{"page_pv":%d,"page_uv":9,"site_pv":70,"site_uv":11},"message":"ok","success":true}`,
				hot[r.Header.Get("x-bsz-referer")])
		case "/ibruce/busuanzi":
			fmt.Fprintf(w, `try{%s({"site_uv":12,"page_pv":%d,"version":2.4,"site_pv":%d});}catch(e){}`, r.URL.Query().Get("jsonpCallback"),
				hot[r.Header.Get("Referer")]+1, 70+asked.Add(1))
		case "/cc/api.php": // this service counts each request
			var page struct{ URL string }
			_ = json.NewDecoder(r.Body).Decode(&page)
			fmt.Fprintf(w, `{"busuanzi_today_pv":"5","busuanzi_today_uv":2,"busuanzi_site_pv":%d,"busuanzi_site_uv":12,"busuanzi_page_pv":"%d",`+
				`"busuanzi_page_uv":10}`, 70+inCC.Add(1), hot[page.URL]+1)
		case "/vercount/api/v2/log":
			assert.Equal(t, http.MethodGet, r.Method, "which counts nothing")
			fmt.Fprintf(w, `{"status":"success","message":"Data retrieved successfully","data":{"site_uv":11,"site_pv":70,"page_pv":%d}}`,
				hot[r.URL.Query().Get("url")])
		case "/matomo/index.php":
			assert.Equal(t, "secret", r.FormValue("token_auth"))
			assert.Equal(t, "Actions.getPageUrls", r.FormValue("method"))
			fmt.Fprint(w, `[{"label":"\/hello","nb_visits":25,"nb_hits":30,"sum_daily_nb_uniq_visitors":20,"url":"https:\/\/blog.example\/hello"},
				{"label":"\/hello?x=1","nb_visits":1,"nb_hits":2,"sum_daily_nb_uniq_visitors":1,"url":"https:\/\/blog.example\/hello?x=1"},{"label":"Others","nb_hits":9}]`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// startRedis starts a Redis for the test, and returns its URL. It skips the test if none is installed.
func startRedis(t *testing.T) (url string) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server found: scripts/install-deps redis")
	}
	address := dbtest.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	server := exec.CommandContext(t.Context(), "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(),
		"--requirepass", "secret")
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Wait() }) // killed when the test ends
	url = "redis://default:secret@" + address + "/3"
	eventually(t, "redis-server takes its password", func() bool { return exec.Command("redis-cli", "-e", "-u", url, "PING").Run() == nil })
	return url
}

// busuanziOf returns a Redis with data of soxft/busuanzi: below bsz with the names and types of version 2.8, below
// old with those of earlier versions. One page is no longer listed, and another was never opened.
func busuanziOf(t *testing.T) string {
	url := startRedis(t)
	var commands strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&commands, format+"\n", a...) }
	md := func(text string) string {
		sum := md5.Sum([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	for host, paths := range map[string][]string{"blog.example": {"/hello", "/日本/", "/gone"}, "www.blog.example": {"/"}} {
		site, all := md(host), 0
		for i, path := range paths {
			hot, now, old := 30-10*i, md(path)[8:24], md(host+"&"+path)
			all += hot
			say("ZADD bsz:page_pv:%s %d %s", site[8:24], hot, now)
			say("PFADD bsz:page_uv:%s:%s 1 2", site[8:24], now)
			say("ZADD old:page_pv:%s %d %s", site, hot, old)
			say("SADD old:page_uv:%s 1 2", old)
		}
		say("SET bsz:site_pv:%s %d", site[8:24], all)
		say("PFADD bsz:site_uv:%s 1 2 3", site[8:24])
		say("SET old:site_pv:%s %d", site, all)
		say("SADD old:site_uv:%s 1 2 3", site)
	}
	say("SET bsz:site_pv:%s 1", md("www.blog.example")[8:24]) // fewer visits than visitors, because visitors are only estimated
	fill := exec.Command("redis-cli", "-e", "-u", url)
	fill.Stdin = strings.NewReader(commands.String())
	out, err := fill.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return url
}

// shellBlock matches the commands in a document, below a heading.
var shellBlock = regexp.MustCompile("(?ms)^(?:## (.*?)$|```sh\n(.*?\n)```)")

// runBlocks runs the commands of a document in order. It returns the output and the offsets set below each heading.
func (e *elsewhere) runBlocks(t *testing.T, document string) (said, set map[string]string) {
	t.Helper()
	said, set = map[string]string{}, map[string]string{}
	heading := ""
	for _, block := range shellBlock.FindAllStringSubmatch(document, -1) {
		if block[1] != "" {
			heading = block[1]
			continue
		}
		script := exec.Command("bash", "-euo", "pipefail", "-c", e.known.Replace(block[2]))
		script.Dir, script.Env = e.folder, e.env
		out, err := script.CombinedOutput()
		require.NoError(t, err, "%s: %s\n%s", heading, block[2], out)
		said[heading] += string(out)
		var rows string
		require.NoError(t, e.sql.QueryRow(t.Context(), `
			WITH gone AS (DELETE FROM footfall.offsets RETURNING *)
			SELECT coalesce(string_agg(concat_ws(' ', uri, hot, pv, uv), '; ' ORDER BY uri COLLATE "C"), '') FROM gone`).Scan(&rows))
		set[heading] += rows + "\n"
		_, err = e.sql.Exec(t.Context(), `TRUNCATE footfall.history_imports CASCADE`) // otherwise its totals would return with the next ones
		require.NoError(t, err)
	}
	return said, set
}

// TestMovingIsAsWritten runs every command of docs/moving.md, in order, against samples of the other services.
func TestMovingIsAsWritten(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl", "psql", "sed", "redis-cli"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("not installed: " + program)
		}
	}
	document, err := os.ReadFile("../../docs/moving.md")
	require.NoError(t, err)
	e := newElsewhere(t)
	said, set := e.runBlocks(t, string(document))
	both := "blog.example 70 11 11; blog.example/ 40 %[1]d %[1]d; blog.example/hello 30 %[1]d %[1]d\n"
	assert.Equal(t, map[string]string{
		"Days that others have counted": "blog.example 4 2 2; blog.example/ 1 1 1; blog.example/hello 3 2 2\n",
		"What an offset does":           "\nblog.example 50000 30000 21000; blog.example/hello 12345 6789 6789\n",
		"A list of pages":               "\n",
		"A busuanzi of your own":        "blog.example 60 3 3; blog.example/hello 30 2 2\n",
		"A busuanzi of somebody else":   fmt.Sprintf(both, 9) + fmt.Sprintf(both, 0),
		"Vercount":                      fmt.Sprintf(both, 0),
		"LeanCloud":                     "blog.example 500 90 90; blog.example/hello/ 123 0 0\n",
		"Matomo":                        "blog.example/hello 32 21 0\n",
		"Access logs":                   "\n",
	}, set)
	assert.Contains(t, said["A busuanzi of your own"],
		"blog.example has 3 pages with numbers\nno numbers of https://blog.example/\n")
	assert.Contains(t, said["A busuanzi of your own"], "offsets: would be 2 added")
	assert.Contains(t, said["Access logs"], "visits counted   1\n")
	assert.Contains(t, said["Days that others have counted"],
		"days of sites: 2 added, 0 replaced, 0 unchanged, from 2026-08-04 to 2026-08-05")
}

// TestMovingInChineseIsAsWritten runs every command of docs/moving.zh-CN.md.
func TestMovingInChineseIsAsWritten(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl", "psql", "sed", "redis-cli"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("not installed: " + program)
		}
	}
	document, err := os.ReadFile("../../docs/moving.zh-CN.md")
	require.NoError(t, err)
	_, set := newElsewhere(t).runBlocks(t, string(document))
	both := "blog.example 70 11 11; blog.example/ 40 %[1]d %[1]d; blog.example/hello 30 %[1]d %[1]d\n"
	assert.Equal(t, map[string]string{
		"准备":          "\n\n",
		"LeanCloud":   "blog.example 500 90 90; blog.example/hello/ 123 0 0\n",
		"busuanzi.cc": fmt.Sprintf(both, 9),
		"不蒜子":         fmt.Sprintf(both, 0),
		"Vercount":    fmt.Sprintf(both, 0),
	}, set)
}

// TestBusuanziIsReadAsItWasKept runs the script of docs/moving.md for busuanzi on realistic data, and on the data of older
// versions of busuanzi.
func TestBusuanziIsReadAsItWasKept(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "redis-cli"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("not installed: " + program)
		}
	}
	document, err := os.ReadFile("../../docs/moving.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)\n```sh\n(REDIS=.*?\n)bin/footfall").FindSubmatch(document)
	require.NotNil(t, found)
	assert.LessOrEqual(t, strings.Count(string(found[1]), "\n"), 30)
	redis := busuanziOf(t)
	run := func(redis, prefix, pages string) (numbers, said string, err error) {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "pages.txt"), []byte(pages), 0o600))
		script := exec.Command("bash", "-euo", "pipefail", "-c", strings.NewReplacer("redis://127.0.0.1:6379/0", redis, "PREFIX=bsz", "PREFIX="+
			prefix).Replace(string(found[1])))
		script.Dir = folder
		out, err := script.CombinedOutput()
		written, _ := os.ReadFile(filepath.Join(folder, "numbers.csv"))
		return string(written), string(out), err
	}
	const pages = "http://blog.example/hello?page=2\nhttps://blog.example/hello#top\n" +
		"https://Blog.example/%E6%97%A5%E6%9C%AC/\nhttps://blog.example\n" +
		"https://www.blog.example\nhttps://never.example/a\n"
	for prefix, www := range map[string]string{"bsz": `"www.blog.example",1,1`, "old": `"www.blog.example",30,3`} {
		numbers, said, err := run(redis, prefix, pages)
		require.NoError(t, err, said)
		assert.ElementsMatch(t, []string{
			"uri,hot,uv", `"blog.example",60,3`, `"https://blog.example/hello",30,2`, `"https://Blog.example/%E6%97%A5%E6%9C%AC/",20,2`, www,
			`"https://www.blog.example/",30,2`, "",
		}, strings.Split(numbers, "\n"), prefix)
		for _, says := range []string{"no numbers of never.example\n", "no numbers of https://never.example/a\n",
			"no numbers of https://blog.example/\n", "blog.example has 3 pages with numbers\n"} {
			assert.Contains(t, said, says)
		}
	}
	numbers, said, err := run(redis, "other", pages)
	require.NoError(t, err, said)
	assert.Equal(t, "uri,hot,uv\n", numbers, "keys of another prefix are most likely a slip")
	_, said, err = run("redis://127.0.0.1:1", "bsz", pages)
	require.Error(t, err, "no numbers are printed for a failed query")
	assert.Contains(t, said, "Could not connect")
	numbers, _, _ = run(strings.Replace(redis, "secret", "another", 1), "bsz", pages)
	assert.NotRegexp(t, `,\d+,`, numbers)
}
