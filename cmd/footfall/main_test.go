package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/embed"
	"footfall/migrations"
)

// The first steps of a new user, from an empty folder.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	data := newData(t)
	s := serve(t, "--data", data, "--countries=") // an empty flag selects the installed file, if there is one
	first := `{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`
	page := s.url + "/visit?app=demo&ip=192.168.0.1&uri=http://hhui.top/home"
	status, body := get(page)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, first, body)
	assert.Positive(t, metric(t, s, "footfall_data_free_bytes"))
	eventually(t, "the database is measured", func() bool { return metric(t, s, "footfall_database_bytes") > 1_000_000 })
	for _, url := range []string{s.url + "/readyz", s.admin + "/readyz", s.admin + "/metrics"} {
		eventually(t, url, func() bool { status, _ := get(url); return status == http.StatusOK })
	}

	// Changes by `app` apply at once.
	shop := s.url + "/visit?app=shop&uri=http://example.com/"
	status, _ = get(shop)
	assert.Equal(t, http.StatusNotFound, status)
	well(t, "app", "add", "shop", "--ipv6-prefix=56", "--site=example.org", "--site=example.com:3000", "--keep-query=b", "--keep-query=a,c",
		"--tags=default,plan", "--data", data)
	status, _ = get(shop)
	assert.Equal(t, http.StatusForbidden, status)
	dark := footfall(t, "app", "set", "shop", "--site=example.com", "--data", data)
	assert.Equal(t, exitUsage, dark.code, "no site goes dark by a list that should have added one")
	assert.Contains(t, dark.stderr, "footfall: --site: app shop counts example.org, example.com:3000, which this list leaves out")
	assert.Equal(t, "app shop counts example.org,example.com:3000,example.com\n",
		well(t, "app", "site", "add", "shop", "example.com", "example.org", "--data", data))
	assert.Equal(t, "app shop counts example.com\n",
		well(t, "app", "site", "remove", "shop", "example.com:3000", "example.org", "--data", data))
	status, _ = get(shop)
	assert.Equal(t, http.StatusOK, status)
	for says, args := range map[string][]string{
		"app shop would no longer list any site":                              {"remove", "shop", "example.com"},
		"app shop does not list a.example, but example.com":                   {"remove", "shop", "a.example"},
		"app demo counts any site; with a list of sites, it would count only": {"add", "demo", "a.example"},
		`"a/b" is not a site`:                                                 {"add", "shop", "a/b"},
	} {
		assert.Contains(t, footfall(t, append(append([]string{"app", "site"}, args...), "--data", data)...).stderr, says)
	}
	again := footfall(t, "app", "add", "shop", "--data", data)
	assert.Contains(t, again.stderr, "there is an app shop already", "and not that it lists no site")
	keyed := footfall(t, "app", "key", "add", "shop", "--scope=read", "--data", data)
	assert.Contains(t, keyed.stderr, "With it, programs can read reports, like "+s.url+"/api/apps/shop/days. People sign in with accounts: ")
	assert.Contains(t, well(t, "app", "add", "second", "--site=example.com", "--data", data), embed.Line(s.url, "second"), "where it runs")
	well(t, "app", "delete", "second", "--yes", "--data", data)
	well(t, "app", "set", "shop", "--public-counts=answers", "--public-events=signup,like/*", "--tags=default,plan", "--data", data)
	assert.Contains(t, well(t, "app", "list", "--data", data), "public-events=signup,like/*")
	well(t, "app", "set", "shop", "--public-counts=off", "--public-events=", "--tags=", "--data", data)
	assert.Contains(t, well(t, "app", "list", "--data", data), "tags=hour")
	assert.NotContains(t, well(t, "app", "list", "--data", data), "public-events")
	well(t, "app", "set", "shop", "--public-counts=answers", "--tags=default,plan", "--access=open", "--site=", "--data", data)
	status, _ = get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://example.net/")
	assert.Equal(t, http.StatusOK, status)
	well(t, "app", "set", "shop", "--access=sites", "--site=example.com", "--data", data)
	status, _ = get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://example.net/")
	assert.Equal(t, http.StatusForbidden, status)
	assert.Equal(t, "NAME  ACCESS  VISITOR  TZ   IPV6-PREFIX  SITES        KEEP-QUERY  OTHER SETTINGS\n"+
		"demo  open    address  UTC  64           -            -           public-counts=read\n"+
		"shop  sites   hashed   UTC  56           example.com  b,a,c       public-counts=answers,tags=default,plan\n", well(t, "app", "list", "--data", data))

	// The tables.
	assert.Equal(t, "1\n", well(t, "psql", "--data", data, "--", "-Atc",
		"SELECT hot FROM pages JOIN counters ON page_id = id WHERE uri = 'hhui.top/home'"))
	assert.Equal(t, "footfall\n", well(t, "psql", "--data", data, "--", "-Atc", "SELECT current_user"))
	assert.Equal(t, 3, footfall(t, "psql", "--data", data, "--", "-v", "ON_ERROR_STOP=1", "-f", writeFile(t, "SELECT 1/0;")).code,
		"psql's own exit code")
	refused := footfall(t, "psql", "--data", data, "--read-only", "--", "-c", "DELETE FROM apps")
	assert.Equal(t, 1, refused.code)
	assert.Contains(t, refused.stderr, "read-only")
	assert.Regexp(t, `(?m)^00001_\w+\.sql +\d{4}-`, well(t, "migrate", "status", "--data", data))

	// Only one service per directory.
	second := footfall(t, "serve", "--data", data, "--addr=127.0.0.1:0", "--admin-addr=off")
	assert.Equal(t, 1, second.code)
	assert.Contains(t, second.stderr, "--data: "+data+": footfall already serves from this folder")

	address := strings.TrimPrefix(s.url, "http://")
	awaitHealth(t, address, 0, "ready\n")
	assert.Zero(t, s.stop())
	assert.Equal(t, 1, footfall(t, "health", "--addr", address).code)

	// The service's output shows the next steps.
	assert.Regexp(t, `^\n  Open this to begin:  `+regexp.QuoteMeta(s.url)+`/start/[A-Za-z0-9_-]{43}\n\n$`, s.stdout.String())
	assert.Contains(t, s.said(), "the app demo is open")

	// Short commands start the server themselves, and earlier counts are still there.
	assert.Equal(t, "1\n", well(t, "psql", "--data", data, "--", "-Atc",
		"SELECT hot FROM pages JOIN counters ON page_id = id WHERE uri = 'hhui.top/home'"))
	well(t, "app", "set", "demo", "--access=sites", "--site=hhui.top", "--data", data)
	s = serve(t, "--data", data)
	assert.NotContains(t, s.said(), "the app demo is open", "it stays as it was set")
	_, body = get(s.url + "/counts?app=demo&uri=http://hhui.top/home")
	assert.Equal(t, strings.ReplaceAll(first, `"rank":1`, `"rank":0`), body)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Without a secret, the owner has to decide explicitly to store addresses.
func TestAppNeedsASecret(t *testing.T) {
	t.Parallel()
	url := withDemo(t)
	refused := footfall(t, "app", "add", "shop", "--site=example.com", url)
	assert.Equal(t, exitUsage, refused.code)
	for _, words := range []string{
		"footfall: --visitor: ", "app add shop … --secret-file secret\n", "app add shop … --visitor address\n",
	} {
		assert.Contains(t, refused.stderr, words)
	}
	assert.NotContains(t, well(t, "app", "list", url), "shop")
	well(t, "app", "add", "plain", "--site=example.com", "--visitor=address", url)
	well(t, "app", "add", "shop", "--site=example.com", "--secret-file", writeFile(t, strings.Repeat("s", 32)), url)
	list := well(t, "app", "list", url)
	assert.Regexp(t, `(?m)^shop +sites +hashed `, list)
	assert.Regexp(t, `(?m)^plain +sites +address `, list)
}

// In JSON logs, durations have a unit, as in text.
func TestJSONLogsSayTimesInWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log, faults := globals{LogLevel: "info", LogFormat: "json"}.logger(&out)
	require.Empty(t, faults)
	log.Info("done", "took", 1500*time.Millisecond)
	assert.Contains(t, out.String(), `"took":"1.5s"`)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"app"}, []string{"expected one of"}},
		{[]string{"count"}, []string{"unexpected argument count"}},
		{[]string{"serve", "--no-such-flag"}, []string{"unknown flag --no-such-flag"}},
		{[]string{"app", "add"}, []string{"<name>"}},
		{[]string{"serve", "--addr=nowhere", "--admin-addr=1.2.3.4", "--database-url=mysql://u:topsecret@h/d", "--max-wait=soon",
			"--log-level=loud", "--log-format=xml"},
			[]string{"--addr:", "--admin-addr:", "--database-url:", "--max-wait:", "--log-level:", "--log-format:"}},
		{[]string{"serve", "--filter=maybe", "--memory=some"}, []string{"--filter:", `--memory: "some" is not a possible size`}},
		{[]string{"serve", "--filter=", "--memory=4MB", "--remember-ids=0"}, []string{"--filter:", "--memory:", "at least 5MiB",
			"--remember-ids:"}},
		{[]string{"serve", "--public-url=https://blog.example/numbers/"}, []string{"--public-url:", "without a slash at its end"}},
		{[]string{"serve", "--public-url=https://blog.example/a/../b"}, []string{"--public-url:"}},
		{[]string{"app", "add", "blog", "--public-url=https://blog.example/n;Path=x"}, []string{"--public-url:"}},
		{[]string{"serve", "--memory", "-1"}, []string{`footfall: --memory: it has no value: "-1" begins with a dash, like a flag`}},
		{[]string{"serve", "--memory=-320MB"}, []string{`--memory: "-320MB" is not a possible size: write one like 320MB`}},
		{[]string{"serve", "--addr=127.0.0.1:99999", "--max-wait=0s", "--data="}, []string{"--addr:", "--max-wait:", "--data:"}},
		{[]string{"serve", "--database-url=postgres://h/d?default_query_exec_mode=simple_protocol"}, []string{"simple_protocol"}},
		{[]string{"serve", "--trust-proxy=0.0.0.0/0", "--trust-proxy=here,10.0.0.1/8", "--proxy-header=Host", "--country-header=CF Country",
			"--secret-file=/no/such/file"},
			[]string{"0.0.0.0/0", `"here"`, "10.0.0.0/8", "--proxy-header:", `--country-header: "CF Country" cannot be`, "--secret-file:"}},
		{[]string{"serve", "--country-header=CF-IPCountry", "--max-wait=0s"}, []string{"--country-header: it has no effect without --trust-proxy",
			"--max-wait:"}},
		{[]string{"serve", "--require-standby"}, []string{"--require-standby: the embedded server has no standby"}},
		{[]string{"standby", "require", "on"}, []string{"standby require: the embedded server has no standby"}},
		{[]string{"standby", "require", "maybe"}, []string{`standby require: "maybe" is neither on nor off`}},
		{[]string{"app", "key", "add", "shop"}, []string{"--scope"}},
		{[]string{"health", "--addr=nowhere"}, []string{"--addr:"}},
	} {
		r := footfall(t, c.args...)
		assert.Equal(t, 2, r.code, "%v: %s", c.args, r.stderr)
		for _, words := range c.says {
			assert.Contains(t, r.stderr, words)
		}
		assert.NotContains(t, r.stderr, "topsecret")
	}
	r := footfall(t, "serve", "--cells=postgres://h/d", "--require-standby", "--data=", "--max-wait=0s")
	assert.Contains(t, r.stderr, "--max-wait:")
	assert.NotContains(t, r.stderr, "--require-standby:", "cells have servers of their own")
	assert.NotContains(t, r.stderr, "--data:")
	r = footfall(t, "serve", "--countries=/nowhere")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "--countries: file of countries: open /nowhere: no such file or directory: name another file, or off")
}

// If its file of countries breaks, a service keeps the data that it had loaded. It logs this, and the file's vendor.
func TestServeKeepsCountries(t *testing.T) {
	t.Parallel()
	const header, range1 = "# Vendor: Somebody\n# License: CC0\n", "3221225984,3221226239," // 192.0.2.0/24
	file := filepath.Join(t.TempDir(), "countries")
	require.NoError(t, os.WriteFile(file, []byte(range1+"DE\n"), 0o600))
	database := withDemo(t)
	s := serve(t, database, "--countries", file)
	visit := func(host string) {
		status, _ := get(s.url + "/visit?app=demo&ip=192.0.2.1&uri=http://" + host)
		assert.Equal(t, http.StatusOK, status)
	}
	require.NoError(t, os.WriteFile(file, []byte("no countries"), 0o600))
	eventually(t, "it says that it is broken",
		func() bool { return strings.Contains(s.said(), "the file of countries has changed and cannot be read") })
	visit("a")
	require.NoError(t, os.WriteFile(file, []byte(header+range1+"AT\n"), 0o600))
	eventually(t, "it is read again", func() bool { return strings.Contains(s.said(), "the file of countries was read again") })
	visit("b")
	eventually(t, "it says who has made it", func() bool {
		_, body := get(s.url + "/dash/demo/b?range=today&from_by=country")
		return strings.Contains(body, "Country data: Somebody, CC0.")
	})
	assert.Zero(t, s.stop())
	for host, country := range map[string]string{"a": "DE", "b": "AT"} {
		assert.Contains(t, well(t, "report", "tags", host, "--app=demo", "--name=country", database), country)
	}
}

// Every flag's help shows its default, unless it is a switch.
func TestHelpTellsDefaults(t *testing.T) {
	t.Parallel()
	help := strings.Join(strings.Fields(well(t, "serve", "--help")), " ")
	for _, flag := range []string{"data", "postgres-bin", "log-level", "log-format", "addr", "admin-addr", "max-wait",
		"filter", "memory", "remember-ids", "countries", "secret-file", "trust-proxy", "proxy-header", "sign-in-header", "country-header",
		"[no-]migrate"} {
		name := "FOOTFALL_" + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(flag, "[no-]"), "-", "_"))
		assert.Regexp(t, regexp.MustCompile(`--`+regexp.QuoteMeta(flag)+`[= ].*Default: [^$]* \(\$`+name+`\)`), help)
	}
}

// The metrics show how many look-ups filter and memory save, also after a restart, when the filter has loaded the tables.
// Without filter and memory, the counted numbers are the same.
func TestHelpersSaveLookUps(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	for _, run := range []struct {
		flags           []string
		visitor, answer string
		asked, byFilter int // look-ups of the first visit; a visit has two keys
		asked2, memory  int // look-ups of the same visit, sent again
	}{
		{nil, "192.0.2.1", `{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`, 0, 2, 0, 2},
		{nil, "192.0.2.1", `{"site":{"pv":1,"uv":1,"rank":1,"hot":3},"page":{"pv":1,"uv":1,"rank":1,"hot":3}}`, 2, 0, 2, 2},
		{[]string{"--memory=0"}, "192.0.2.2",
			`{"site":{"pv":2,"uv":2,"rank":2,"hot":5},"page":{"pv":2,"uv":2,"rank":2,"hot":5}}`, 2, 0, 4, 0},
		{[]string{"--filter=off", "--memory=5MB"}, "192.0.2.3",
			`{"site":{"pv":3,"uv":3,"rank":3,"hot":7},"page":{"pv":3,"uv":3,"rank":3,"hot":7}}`, 2, 0, 2, 2},
		{[]string{"--filter=only", "--memory=5MB"}, "192.0.2.4",
			`{"site":{"pv":4,"uv":4,"rank":4,"hot":9},"page":{"pv":4,"uv":4,"rank":4,"hot":9}}`, 0, 2, 2, 0},
	} {
		s := serve(t, append([]string{database}, run.flags...)...)
		if run.flags == nil || run.byFilter > 0 {
			require.Eventually(t, func() bool { return metric(t, s, "footfall_filter_ready") == 1 }, dbtest.Patience, dbtest.Tick)
		}
		page := s.url + "/visit?app=demo&uri=http://hhui.top/home&ip=" + run.visitor
		status, body := get(page)
		require.Equal(t, http.StatusOK, status, body)
		assert.Equal(t, run.answer, body)
		assert.Equal(t, run.asked, metric(t, s, "footfall_existence_queries_total"))
		assert.Equal(t, run.byFilter, metric(t, s, `footfall_existence_queries_skipped_total{by="filter"}`))
		status, _ = get(page)
		require.Equal(t, http.StatusOK, status)
		assert.Equal(t, run.asked2, metric(t, s, "footfall_existence_queries_total"))
		assert.Equal(t, run.memory, metric(t, s, `footfall_existence_queries_skipped_total{by="memory"}`))
		require.Zero(t, s.stop())
	}
}

// metric returns the value of one line of the service's metrics.
func metric(t *testing.T, s *running, line string) int {
	t.Helper()
	_, text := get(s.admin + "/metrics")
	for l := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(l, line+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err)
			return int(n)
		}
	}
	require.Fail(t, "no such metric", line)
	return 0
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	data := filepath.Join(newData(t), "data")
	taken := l.Addr().String()
	for flag, args := range map[string][]string{
		"--addr":       {"--addr=" + taken, "--admin-addr=off"},
		"--admin-addr": {"--addr=127.0.0.1:0", "--admin-addr=" + taken},
	} {
		r := footfall(t, append([]string{"serve", "--data", data}, args...)...)
		assert.Equal(t, 1, r.code)
		assert.Contains(t, r.stderr, flag+": listen tcp "+taken)
		assert.NoDirExists(t, data, "nothing was begun")
	}
}

// Requests in progress when the service is stopped are answered, and answered visits are in the tables.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	s := serve(t, database)
	var answered, begun atomic.Int64
	var clients sync.WaitGroup
	for n := range 32 {
		clients.Go(func() {
			for {
				begun.Add(1)
				status, body := get(fmt.Sprintf("%s/visit?app=demo&ip=192.0.2.%d&uri=http://a.example/%d", s.url, n, n%3))
				if status == 0 {
					return // the listener is closed
				}
				if !assert.Equal(t, http.StatusOK, status, body) {
					return
				}
				answered.Add(1)
			}
		})
	}
	eventually(t, "there is load", func() bool { return answered.Load() > 500 })
	assert.Zero(t, s.stop())
	clients.Wait()
	hot, err := strconv.ParseInt(strings.TrimSpace(well(t, "psql", database, "--",
		"-Atc", "SELECT hot FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example'")), 10, 64)
	require.NoError(t, err)
	assert.Equal(t, answered.Load(), hot)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, withDemo(t))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	// A request whose body is never sent. The service responds with "100 Continue" once it reads the body.
	_, err = conn.Write([]byte("POST /visit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: " +
		"100-continue\r\n\r\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue")
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	eventually(t, "it stops", func() bool { _, ok := s.logged("stopping: visits in progress are answered first"); return ok })
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 1, s.wait())
}

// killPostgres kills the postmaster.
func killPostgres(t *testing.T, data string) {
	t.Helper()
	read, err := os.ReadFile(filepath.Join(data, "postgres", "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(read), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// kills counts killed processes and cut connections, by kind.
type kills map[string]int

// each fails the test unless each kind occurred, and returns the counts.
func (k kills) each(t *testing.T, names ...string) string {
	t.Helper()
	counts := make([]string, len(names))
	for i, name := range names {
		assert.Positive(t, k[name], name)
		counts[i] = fmt.Sprintf("%d %s", k[name], name)
	}
	return "killed or cut: " + strings.Join(counts, ", ")
}

// takenBack returns the expected output of reverting the last step.
func takenBack(t *testing.T) string {
	steps, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	last := len(steps) - 1
	return fmt.Sprintf("rolled back %s, and dropped all functions and views; remaining migrations: %d", steps[last], last)
}

func TestGivenDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	r := footfall(t, "app", "list", "--database-url", url)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "migrate up")
	assert.Contains(t, well(t, "migrate", "status", "--database-url", url), "pending")
	assert.Contains(t, well(t, "migrate", "up", "--database-url", url), "applied 00001")
	assert.Contains(t, well(t, "migrate", "up", "--database-url", url), "nothing to do")
	assert.Contains(t, well(t, "migrate", "down", "--yes", "--database-url", url), takenBack(t))
	s := serve(t, "--database-url", url)
	beside := footfall(t, "migrate", "down", "--yes", "--database-url", url)
	assert.Equal(t, 1, beside.code)
	assert.Contains(t, beside.stderr, "running services use these tables (1 in all): stop these services first")
	assert.Contains(t, s.said(), "there is no app yet")
	assert.NotContains(t, well(t, "app", "list", "--database-url", url), "demo")
	well(t, "app", "add", "shop", "--visitor=address", "--access=open", "--database-url", url)
	status, _ := get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://a.example/")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "2\n", well(t, "psql", "--database-url", url, "--", "-Atc", "SELECT count(*) FROM pages"))
	assert.Zero(t, s.stop())
	assert.Contains(t, s.stdout.String(), "Open this to begin:", "wherever nobody has an account")
}

func TestFiveStartAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	var services []*running
	for range 5 {
		services = append(services, start(t, "--database-url", url))
	}
	for _, s := range services {
		s.awaitReady()
	}
	well(t, "app", "add", "shop", "--visitor=address", "--access=open", "--database-url", url)
	for i, s := range services {
		_, body := get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://a.example/")
		assert.Contains(t, body, fmt.Sprintf(`"page":{"pv":1,"uv":1,"rank":1,"hot":%d}`, i+1))
	}
}

// The service waits for a database that does not exist yet, and can be stopped while waiting.
func TestDatabaseNotThere(t *testing.T) {
	t.Parallel()
	s := start(t, "--database-url", "postgres://footfall@127.0.0.1:1/footfall")
	eventually(t, "it waits", func() bool { _, ok := s.logged("waiting for the database"); return ok })
	assert.Zero(t, s.stop())
	r := footfall(t, "app", "list", "--database-url", "postgres://footfall@127.0.0.1:1/footfall")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "connection refused")
}

func TestHealthOfOneThatIsNotReady(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/readyz", r.URL.Path)
		w.WriteHeader(int(status.Load()))
		fmt.Fprint(w, `{"error":"visits cannot be counted now"}`)
	})}
	go func() { _ = server.Serve(l) }() // ends with Close
	defer server.Close()
	awaitHealth(t, l.Addr().String(), 0, "ready\n")
	status.Store(http.StatusServiceUnavailable)
	awaitHealth(t, l.Addr().String(), 1, "503 Service Unavailable visits cannot be counted now")
}

// awaitHealth requests the health of a service until code and text match. A request that times out on a slow machine is
// repeated.
func awaitHealth(t *testing.T, address string, code int, says string) {
	t.Helper()
	eventually(t, says, func() bool {
		r := footfall(t, "health", "--addr", address)
		return r.code == code && strings.Contains(r.stdout+r.stderr, says)
	})
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		":80": "127.0.0.1:80", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80",
		"192.0.2.1:80": "192.0.2.1:80", "[::1]:80": "[::1]:80", "localhost:80": "localhost:80",
	} {
		assert.Equal(t, want, reachable(address), address)
	}
}

func TestForPsql(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, options, target, want string }{
		{"postgres://u@h/d", "", "postgres://u@h/d", "-c search_path=footfall"},
		{"postgres://u@h/d?pool_max_conns=3&sslmode=disable", "-c x=y", "postgres://u@h/d?sslmode=disable", "-c x=y -c search_path=footfall"},
		{"postgres:///d?host=%2Ftmp%2Fa+b&options=-c%20a%3Db", "", "postgres:///d?host=%2Ftmp%2Fa%20b", "-c a=b -c search_path=footfall"},
		{"host=h dbname=d", "", "host=h dbname=d", "-c search_path=footfall"},
	} {
		target, options := psqlTarget(c.url, c.options, []string{"search_path=footfall"})
		assert.Equal(t, c.target, target)
		assert.Equal(t, c.want, options)
	}
}
