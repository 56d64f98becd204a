package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/embedded"
)

// Backups made while visits are counted, and restored as described in docs/operating.md, keep every promise, and
// contain every visit that was answered before the backup started.
func TestBackups(t *testing.T) {
	if testing.Short() {
		t.Skip("two servers and two copies; db and counter test that restored databases are recognized")
	}
	t.Parallel()
	bin, err := embedded.Find(os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(bin, "pg_basebackup")); err != nil {
		t.Skip("the server has no pg_basebackup")
	}
	data, kept := usedData(t), newData(t)
	well(t, "app", "add", "shop", "--access=open", "--data", data) // without the secret, its visitors cannot be recognized
	well(t, "app", "add", "club", "--access=open", "--visitor=id", "--tags=default,age", "--data", data)
	people := func(data, line string) {
		r := footfallTyped(t, line, "people", "load", "club", "-", "--data", data)
		require.Zero(t, r.code, r.stdout+r.stderr)
	}
	rows := func(data, first string) string {
		return well(t, "psql", "--data", data, "--", "-Atc", first+`; SELECT p.*, people_period() FROM people AS p ORDER BY period, id;
			SELECT proname, proconfig FROM pg_proc WHERE proname IN ('lock_people', 'turn_people') AND prosecdef ORDER BY 1`)
	}
	rows(data, `UPDATE epochs SET value = value - 1 WHERE name = 'people'`)
	people(data, `{"id":"device:1","is":"user:1"}`)
	rows(data, `SELECT turn_people()`)
	people(data, `{"id":"cookie:1","is":"user:1","tags":{"age":"25-34"}}`)
	both := rows(data, "")
	require.Equal(t, 6, strings.Count(both, "\n"), "of one period device:1 and user:1, of the next cookie:1 and user:1, two functions: %s",
		both)
	rows(data, `INSERT INTO accounts (owner, name, folded) VALUES (true, 'Olga', 'olga');
		INSERT INTO account_sessions (account_id, hash, browser) VALUES (1, sha256('kept'), '')`)
	s := serve(t, "--data", data)
	numbered := func(n int) string { return fmt.Sprintf("10.0.%d.%d", n/200, n%200) }
	visited := func(n int) {
		status, _ := get(fmt.Sprintf("%s/visit?app=shop&ip=%s&uri=http://example.com/%d", s.url, numbered(n), n%7))
		assert.Equal(t, http.StatusOK, status)
	}
	const before, erased = 260, 4 // a row of erased ranks covers 256, so these ranks are in two rows
	for n := range before {
		visited(n)
	}
	for n := before - erased - 2; n < before-2; n++ {
		well(t, "visitor", "erase", "shop", numbered(n), "--yes", "--data", data)
	}
	stop := make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		for n := before; ; n++ {
			select {
			case <-stop:
				return
			default:
				visited(n)
			}
		}
	})
	tool := func(name string, args ...string) []byte {
		cmd := exec.Command(filepath.Join(bin, name),
			append([]string{"--host=" + data + "/socket", fmt.Sprint("--port=", embedded.Port), "--username=footfall"}, args...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		require.NoError(t, err, said.String())
		return out
	}
	dump := tool("pg_dump", "footfall")
	base := filepath.Join(kept, "base")
	tool("pg_basebackup", "--checkpoint=fast", "--pgdata="+base)
	close(stop)
	counting.Wait()
	require.Zero(t, s.stop())

	check := func(restored string) {
		require.NoError(t, exec.Command("install", "-m", "600", filepath.Join(data, "secret"), filepath.Join(restored, "secret")).Run())
		assert.Equal(t, both, rows(restored, ""))
		people(restored, `{"id":"cookie:2","is":"device:1"}`)
		well(t, "verify", "--data", restored)
		s = serve(t, "--data", restored)
		for n := range before {
			if n < before-erased-2 || n >= before-2 {
				_, body := get(fmt.Sprintf("%s/counts?app=shop&ip=%s&uri=http://example.com/", s.url, numbered(n)))
				assert.Contains(t, body, fmt.Sprintf(`"rank":%d,`, n+1))
			}
		}
		assert.Equal(t, "255 256 257 258\n", well(t, "psql", "--data", restored, "--", "-Atc", `
			SELECT string_agg(rank::text, ' ' ORDER BY rank) FROM report.ranks WHERE app = 'shop' AND target = 'example.com' AND visitor IS NULL`))
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url+"/new", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Cookie", "footfall_session=kept")
		signedIn, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, signedIn.StatusCode, "who was signed in still is")
		require.NoError(t, signedIn.Body.Close())
		visited(0)
		require.Zero(t, s.stop())
		well(t, "verify", "--data", restored)
		assert.Equal(t, "t\n", well(t, "psql", "--data", restored, "--", "-Atc", `
			SELECT (SELECT sum(pv) FROM report.tag_days WHERE name = 'hour') = (SELECT sum(pv) FROM report.sites)`),
			"each visitor of a day came at some hour")
	}
	logical := newData(t)
	well(t, "app", "add", "empty", "--access=open", "--data", logical)
	well(t, "psql", "--data", logical, "--", "-q", "-c", "SET client_min_messages = warning; DROP SCHEMA footfall, report CASCADE")
	r := footfallTyped(t, string(dump), "psql", "--data", logical, "--", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null")
	require.Zero(t, r.code, r.stderr)
	assert.Empty(t, r.stdout)
	well(t, "psql", "--data", logical, "--", "-c", "VACUUM ANALYZE")
	check(logical)

	physical := newData(t)
	require.NoError(t, exec.Command("cp", "-a", base, filepath.Join(physical, "postgres")).Run())
	if os.Geteuid() == 0 {
		require.NoError(t, exec.Command("chown", "-R", "--reference="+filepath.Join(data, "postgres"), filepath.Join(physical, "postgres")).Run())
	}
	check(physical)
}

// An app is copied from one database to another by a file, and by standard output and input. A refused command leaves
// no file and no app.
func TestAppExportAndLoad(t *testing.T) {
	t.Parallel()
	appGoes(t, withDemo(t), withDemo(t))
}

// appGoes copies an app from one database to another, and back.
func appGoes(t *testing.T, from, to string) {
	t.Helper()
	dir := t.TempDir()
	secret, other := filepath.Join(dir, "secret"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("s", 40)), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(strings.Repeat("o", 40)), 0o600))
	ours := "--secret-file=" + secret
	well(t, "app", "add", "blog", "--visitor=hashed", "--site=blog.example", from, ours)
	log := filepath.Join(dir, "access.log")
	require.NoError(t, os.WriteFile(log, []byte("blog.example 192.0.2.1 - - ["+time.Now().Format("02/Jan/2006:15:04:05 -0700")+
		"] \"GET / HTTP/1.1\" 200 7\n"), 0o600))
	well(t, "import", log, "--app=blog", from, ours)
	totals := well(t, "report", "days", "blog.example", "--app=blog", from)

	file := filepath.Join(dir, "blog.zip")
	r := footfall(t, "app", "export", "blog", file, from, ours)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stderr, "It has no visitors: it is for other tools")
	assert.Contains(t, footfall(t, "app", "load", file, to, ours).stderr, "was exported without visitors")
	assert.Contains(t, footfall(t, "app", "export", "blog", file, "--visitors", from, ours).stderr, "the file already exists")
	none := filepath.Join(dir, "none.zip")
	assert.Contains(t, footfall(t, "app", "export", "none", none, from, ours).stderr, "none")
	assert.NoFileExists(t, none, "nothing half done")

	zip := footfall(t, "app", "export", "blog", "-", "--visitors", from, ours)
	require.Zero(t, zip.code, zip.stderr)
	r = footfallWith(t, []string{"TMPDIR=" + dir}, zip.stdout, "app", "load", "-", to, ours)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, "loaded app blog, as it was at ")
	assert.NotContains(t, r.stdout, "counts nothing")
	assert.Equal(t, totals, well(t, "report", "days", "blog.example", "--app=blog", to))
	assert.Contains(t, well(t, "changes", "blog", to), "loaded from an export")
	well(t, "verify", "--app=blog", to)
	zip = footfall(t, "app", "export", "blog", "-", "--visitors", to, ours)
	require.Zero(t, zip.code, zip.stderr)
	r = footfallTyped(t, zip.stdout, "app", "load", "-", "--as=back", from, ours)
	require.Zero(t, r.code, r.stderr)
	assert.Equal(t, strings.Replace(totals, "blog:", "back:", 1), well(t, "report", "days", "blog.example", "--app=back", from))
	well(t, "verify", from)
	r = footfallTyped(t, zip.stdout, "app", "load", "-", "--as=again", to, "--secret-file="+other)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, "Its numbers can be read here, but nothing is counted for it: visitors of app again are hashed with a secret")
	assert.Contains(t, footfallWith(t, []string{"TMPDIR=" + dir}, "nothing", "app", "load", "-", to, ours).stderr,
		"it is not a complete zip file")
	assert.Contains(t, footfall(t, "app", "load", dir, to, ours).stderr, "it is not a regular file")
	left, err := filepath.Glob(filepath.Join(dir, "footfall-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
