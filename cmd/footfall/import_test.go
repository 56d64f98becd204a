package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// accessLog writes a log with lines of the last days.
func accessLog(t *testing.T, name string, seed uint64, lines int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	at := time.Now().UTC().AddDate(0, 0, -4)
	var text bytes.Buffer
	for range lines {
		at = at.Add(time.Duration(r.IntN(int(6*24*time.Hour) / lines)))
		fmt.Fprintf(&text, "blog.example 192.0.%d.%d - - [%s] \"GET /%d HTTP/1.1\" 200 7 \"-\" %q\n",
			r.IntN(8), r.IntN(250), at.Format("02/Jan/2006:15:04:05 -0700"), r.IntN(20), browser)
	}
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

func TestImport(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	for _, app := range []string{"blog", "other"} {
		well(t, "app", "add", app, "--visitor=address", "--site=blog.example", database)
	}
	log := accessLog(t, "access.log", 1, 300)
	assert.Contains(t, well(t, "import", log, "--app=blog", "--dry-run", database), "visits that would be counted  300\n")
	assert.Equal(t, "APP  SERVER  DAY  LINES  LAST LINE\n", well(t, "import", "list", "--app=blog", database))
	imported := footfall(t, "import", log, "--app=blog", database)
	assert.Empty(t, imported.stderr)
	first := imported.stdout
	assert.Regexp(t, `^lines read            300\nvisits counted        300\nformat combined\+host  300\ndays  `, first)
	assert.Regexp(t, `^lines read +(1\nvisits counted +0\ncounted before +1\nlines unchanged, not read +299|`+
		`0\nvisits counted +0\nfiles unchanged, not read +1)\n`,
		well(t, "import", log, "--app=blog", database))
	assert.Regexp(t, `\nblog  -       \d{4}-\d\d-\d\d  \d+ +\d{4}-.* UTC\n`, well(t, "import", "list", "--app=blog", database))
	assert.Regexp(t, `\nblog  -  `, well(t, "import", "list", database))
	assert.Contains(t, footfall(t, "import", "list", "--app=none", database).stderr, "none")
	assert.Equal(t, "300\n", well(t, "psql", database, "--", "-Atc", "SELECT hot FROM report.sites WHERE app = 'blog'"))
	r := footfall(t, "import", log, "--app=blog", "--bots", "--after=counted", database)
	assert.Zero(t, r.code)
	assert.Regexp(t, `visits counted +0\n`, r.stdout)
	assert.Contains(t, footfall(t, "import", "forget", "blog", "--from=20200102", "--to=20200101", database).stderr,
		"--from: it is after --to")
	assert.Equal(t, "forgot 0 lines, which another import can count again\n",
		well(t, "import", "forget", "blog", "--server=web1", "--from=20200101", "--to=20991231", database))
	assert.Equal(t, "forgot 300 lines, which another import can count again\n",
		well(t, "import", "forget", "blog", "--from=20200101", "--to=20991231", database))
	assert.NotContains(t, well(t, "import", "list", database), "blog")
	r = footfallTyped(t, "no line\nof a log\n", "import", "-", "--app=blog", database)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, "not readable    2\n")
	assert.Contains(t, r.stderr, "import: no line could be read")
	r = footfall(t, "import", log, "/no/such", "--app=other", database)
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, "footfall: /no/such: there is no such file")
	r = footfall(t, "import", log, "--app=other", "--format=w3", "--site=a/b", "--from=never", "--dry-run", "--follow", database)
	assert.Equal(t, 2, r.code)
	for _, flag := range []string{"--format: ", "--site: ", "--from: ", "--follow: "} {
		assert.Contains(t, r.stderr, flag)
	}
	piped := footfallTyped(t, "blog.example 192.0.2.1 - - ["+time.Now().Format("02/Jan/2006:15:04:05 -0700")+"] \"GET / HTTP/1.1\" 200 7\n",
		"import", "-", "--app=other", database)
	assert.Zero(t, piped.code, piped.stderr)
	assert.Contains(t, piped.stdout, "visits counted      1\n")
}

// The sources and other tags of visitors are shown as soon as an import ends, for all days, and are counted once.
func TestImportBringsTags(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	well(t, "app", "add", "blog", "--visitor=address", "--site=blog.example", database)
	dir := t.TempDir()
	log, countries := filepath.Join(dir, "access.log"), filepath.Join(dir, "geoip")
	now, text := time.Now().UTC(), ""
	for _, line := range []struct {
		before        time.Duration
		address, path string
		referer       string
	}{
		{72 * time.Hour, "192.0.2.1", "/", "https://www.google.de/"},
		{72 * time.Hour, "192.0.2.1", "/next", "https://t.co/x"}, // counts only at the page, which adds no value
		{48 * time.Hour, "198.51.100.1", "/", "https://blog.example/next"},
		{24 * time.Hour, "192.0.2.2", "/?utm_campaign=May", "https://news.example/a?b"},
		{0, "192.0.2.1", "/", "-"},
	} {
		at := now.Add(-line.before).Format("02/Jan/2006:15:04:05 -0700")
		text += fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 7 %q %q\n", line.address, at, line.path, line.referer, browser)
	}
	require.NoError(t, os.WriteFile(log, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(countries, []byte("3221225984,3221226239,DE\n"), 0o600)) // 192.0.2.0/24
	for range 2 {
		well(t, "import", log, "--app=blog", "--site=blog.example", "--countries="+countries, database)
		for ask, says := range map[string]string{
			"blog.example source":      "google 1 1, news.example 1 1, (none) 2 1",
			"blog.example campaign":    "may 1 1, (none) 3 2",
			"blog.example browser":     "Firefox 4 3, (none) 0 0",
			"blog.example country":     "DE 3 2, (none) 1 1",
			"blog.example/next source": "(other) 1 1, (none) 0 0",
		} {
			target, name, _ := strings.Cut(ask, " ")
			rows := strings.TrimSpace(well(t, "report", "tags", target, "--app=blog", "--name="+name, "--csv", database))
			_, rows, _ = strings.Cut(rows, "\n") // the first line has the names of the columns
			assert.Equal(t, says, strings.NewReplacer("\r", "", "\n", ", ", ",", " ", `"`, "").Replace(rows), ask)
		}
	}
}

// An import that is repeatedly killed, together with the service and PostgreSQL, counts the same as an undisturbed
// one. FOOTFALL_CRASH_VISITS and FOOTFALL_CRASH_KILLS make it longer.
func TestImportIsKilled(t *testing.T) {
	t.Parallel()
	visits, times := dbtest.FromEnv(t, "FOOTFALL_CRASH_VISITS", dbtest.LongOrShort(6000, 3000)),
		dbtest.FromEnv(t, "FOOTFALL_CRASH_KILLS", dbtest.LongOrShort(6, 3))
	data := usedData(t)
	s := serve(t, "--data", data)
	for _, app := range []string{"clean", "killed"} {
		well(t, "app", "add", app, "--visitor=address", "--site=blog.example", "--data", data)
	}
	logs := []string{accessLog(t, "a.log", 2, visits/2), accessLog(t, "b.log", 3, visits/2)}
	began := time.Now()
	well(t, append([]string{"import", "--app=clean", "--data", data}, logs...)...)
	took, killed := time.Since(began), kills{}

	for n := range times {
		importing := exec.Command(os.Args[0], append([]string{"import", "--app=killed", "--data", data}, logs...)...)
		importing.Env = environment()
		require.NoError(t, importing.Start())
		wherever := 3 * took / time.Duration(times) * time.Duration(n+1) / time.Duration(times+2)
		time.Sleep(wherever) //nolint:forbidigo // the import is killed at a random point
		switch n % 3 {
		case 1:
			killPostgres(t, data)
			killed["servers"]++
			eventually(t, "PostgreSQL answers", func() bool { status, _ := get(s.url + "/readyz"); return status == 200 })
		case 2:
			require.NoError(t, s.cmd.Process.Kill())
			<-s.ended
			killed["services"]++
			s = start(t, "--data", data)
		}
		_ = importing.Process.Kill() // the import may have exited by itself
		_ = importing.Wait()
		s.awaitReady() // a starting service waits for an import that runs PostgreSQL itself
		if importing.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			killed["imports"]++
		}
	}
	well(t, append([]string{"import", "--app=killed", "--data", data}, logs...)...)
	assert.Empty(t, differing(t, "clean", "killed", "--data", data))
	assert.Equal(t, fmt.Sprintf("%d\n", differentLines(t, logs)), well(t, "psql", "--data", data, "--", "-Atc",
		"SELECT hot FROM report.sites WHERE app = 'killed'"))
	assert.Contains(t, well(t, "verify", "--data", data), "0 violations")
	assert.Zero(t, s.stop())
	t.Logf("%d lines; %s", visits, killed.each(t, "imports", "servers", "services"))
}

// differentLines returns how many lines the logs of one server have. A line that is in several of them, by chance, is one line: the
// logs may be copies.
func differentLines(t *testing.T, logs []string) (lines int) {
	t.Helper()
	most := map[string]int{}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		here := map[string]int{}
		for line := range strings.Lines(string(text)) {
			here[line]++
			most[line] = max(most[line], here[line])
		}
	}
	for _, n := range most {
		lines += n
	}
	return lines
}

// differing lists numbers and rows in which two apps differ.
func differing(t *testing.T, app, other string, database ...string) string {
	t.Helper()
	return well(t, append(append([]string{"psql"}, database...), "--", "-Atc", `
		WITH numbers AS (
			SELECT a.name AS app, concat_ws(' ', p.uri, c.hot, c.pv, c.uv) AS line FROM counters c JOIN pages p ON p.id = c.page_id
			JOIN apps a ON a.id = p.app_id
			UNION ALL SELECT a.name, concat_ws(' ', p.uri, d.day_id, d.hot, d.pv, d.new_visitors) FROM days d JOIN pages p ON p.id = d.page_id
			JOIN apps a ON a.id = p.app_id
			UNION ALL SELECT a.name, concat_ws(' ', p.uri, v.ip, v.first_day, v.last_day) FROM visitors v JOIN pages p ON p.id = v.page_id
			JOIN apps a ON a.id = p.app_id
			UNION ALL SELECT a.name, concat_ws(' ', p.uri, v.ip, v.day_id, v.previous_day) FROM visits v JOIN pages p ON p.id = v.page_id
			JOIN apps a ON a.id = p.app_id
			UNION ALL SELECT a.name, concat_ws(' ', r.part, r.position, r.reason, r.beginning) FROM refused r JOIN apps a ON a.id = r.app_id
		)
		SELECT line, array_agg(app) FROM numbers WHERE app IN ('`+app+`', '`+other+`') GROUP BY line HAVING count(*) <> 2 LIMIT 10`)...)
}
