package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/db/embedded"
)

// TestNextVersion upgrades a database of this version, with unfinished work, to two made-up next versions, while visits are
// counted. The first version has a step that keeps schema_version, so that instances of both versions count at the same time.
// The second version raises schema_version, so that older instances return 503 with the reason.
func TestNextVersion(t *testing.T) {
	t.Parallel()
	next, steps := nextVersions(t)
	database := dbtest.Empty(t)
	url := "--database-url=" + database
	well(t, "migrate", "up", url)
	f := newFailover(t, database)
	old, conn := f.services, dbtest.Connect(t, dbtest.WithParameter(t, database, "search_path", "footfall"))
	counted := func(s *running, app string) (int, string) {
		return get(s.url + "/visit?app=" + app + "&ip=192.0.2.1&uri=http://blog.example/0")
	}

	// One app's log is half imported, and its days are packed. The other app's log is imported completely.
	log := accessLog(t, "access.log", 5, 600)
	for _, app := range []string{"halved", "whole"} {
		well(t, "app", "add", app, "--visitor=address", "--site=blog.example", "--access=open", url)
	}
	well(t, "import", log, "--app=whole", url)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	require.NoError(t, os.WriteFile(log, []byte(strings.Join(lines[:300], "")), 0o600))
	well(t, "import", log, "--app=halved", url)
	require.NoError(t, os.WriteFile(log, text, 0o600))
	eventually(t, "the daily task of the services has ended", func() bool { return footfall(t, "retain", url).code == exitDone })
	require.Positive(t, dbtest.Column[int](t, conn, `SELECT count(*) FROM packed_returns`)[0])

	// The inbox fills, because no instance may count it.
	f.visits, f.pace = math.MaxInt32, 20*time.Millisecond
	var clients sync.WaitGroup
	clients.Go(f.caller)
	clients.Go(f.acceptor)
	for range 8 {
		clients.Go(f.client)
	}
	defer func() { f.taken.Store(f.visits); clients.Wait() }()
	counts := func() { f.awaitAnswers(f.answered.Load() + 200) }
	counts()
	eventually(t, "nobody else counts what waits", func() bool {
		return dbtest.Column[bool](t, conn, `SELECT pg_try_advisory_lock(hashtext($1))`, db.DrainingInbox)[0]
	})
	waiting := func() int64 {
		return dbtest.Column[int64](t, conn, `SELECT sum(inbox_behind(id))::bigint FROM apps`)[0]
	}
	eventually(t, "visits wait", func() bool { return waiting() > 0 })
	copied := dumped(t, database)

	f.goTo(old[1])
	require.Zero(t, old[0].stop())
	first := startOf(t, next[0], url)
	first.awaitReady()
	applied, _ := first.logged("schema brought up to date")
	assert.Contains(t, applied.whole, steps[0])
	assert.Contains(t, applied.whole, "functions and views")
	f.goTo(old[1], first)
	assert.Positive(t, waiting())
	dbtest.Column[bool](t, conn, `SELECT pg_advisory_unlock(hashtext($1))`, db.DrainingInbox)
	counts()
	for _, s := range []*running{old[1], first} {
		for _, app := range []string{"halved", "whole"} {
			status, body := counted(s, app)
			assert.Equal(t, http.StatusOK, status, body)
		}
	}
	refused := footfall(t, "serve", "--addr=127.0.0.1:0", "--admin-addr=off", url)
	assert.Equal(t, exitFailed, refused.code)
	assert.Contains(t, refused.stderr, "use a newer footfall")
	r := footfallOf(t, next[0], nil, "", "import", log, "--app=halved", url)
	assert.Regexp(t, `\ncounted before +1\nlines unchanged, not read +299\n`, r.stdout, r.stderr)
	assert.Empty(t, differing(t, "halved", "whole", url))
	f.goTo(first)
	require.Zero(t, old[1].stop())

	second := startOf(t, next[1], url)
	second.awaitReady()
	applied, _ = second.logged("schema brought up to date")
	assert.Contains(t, applied.whole, steps[1])
	f.goTo(first, second)
	f.services = []*running{first}
	f.takesNothing()
	status, why := get(first.url + "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, why, "visits cannot be counted now: the tables belong to a newer footfall")
	counts()
	f.goTo(second)
	require.Zero(t, first.stop())
	counts()

	f.taken.Store(f.visits) // stops the clients
	clients.Wait()
	eventually(t, "all that was accepted is counted", func() bool { return waiting() == 0 })
	t.Logf("%d visits answered, %d failed, %d in calls, %d accepted, %v: %s", f.answered.Load(), f.failed.Load(), f.called, f.accepted,
		f.statuses, f.compare())
	assert.Positive(t, f.called)
	assert.Positive(t, f.accepted)
	r = footfallOf(t, next[1], nil, "", "verify", url)
	assert.Contains(t, r.stdout, "0 violations", r.stderr)

	// Goes back to this version, on a copy of the database.
	back := dbtest.Empty(t)
	url = "--database-url=" + back
	r = footfallTyped(t, copied, "psql", url, "--", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null")
	require.Zero(t, r.code, r.stderr)
	s := serve(t, url)
	status, body := counted(s, "whole")
	assert.Equal(t, http.StatusOK, status, body)
	well(t, "import", log, "--app=halved", url)
	counted(s, "halved")
	assert.Empty(t, differing(t, "halved", "whole", url))
	assert.Contains(t, well(t, "verify", url), "0 violations")
}

// goTo directs clients to these instances only.
func (c *crash) goTo(services ...*running) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = nil
	for _, s := range services {
		c.url.Store(&s.url)
		c.others = append(c.others, s.url)
	}
}

// dumped returns a backup made as described in docs/operating.md.
func dumped(t *testing.T, database string) string {
	t.Helper()
	bin, err := embedded.Find(os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"))
	require.NoError(t, err)
	target, options := psqlTarget(database, "", nil)
	dump := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), "--dbname="+target)
	dump.Env = append(os.Environ(), "PGOPTIONS="+options)
	text, err := dump.Output()
	require.NoError(t, err)
	return string(text)
}

// nextVersions builds two programs: one with an additional step and changed functions, and one with two additional steps, the
// second of which raises schema_version. It returns the programs and the names of the steps.
func nextVersions(t *testing.T) (programs, steps []string) {
	t.Helper()
	there, err := filepath.Glob("../../migrations/0*.sql")
	require.NoError(t, err)
	folder, overlay := t.TempDir(), map[string]map[string]string{"Replace": {}}
	put := func(path, text string) {
		path, err := filepath.Abs("../../" + path)
		require.NoError(t, err)
		put := filepath.Join(folder, filepath.Base(path))
		require.NoError(t, os.WriteFile(put, []byte(text), 0o600))
		overlay["Replace"][path] = put
	}
	raise := func(path, behind string) (to int) { // to is the raised number
		text, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		number := regexp.MustCompile("(" + behind + `)(\d+)`)
		put(path, number.ReplaceAllStringFunc(string(text), func(found string) string {
			parts := number.FindStringSubmatch(found)
			before, err := strconv.Atoi(parts[2])
			require.NoError(t, err)
			to = before + 1
			return parts[1] + strconv.Itoa(to)
		}))
		require.Positive(t, to, "%s has no number behind %s", path, behind)
		return to
	}
	last, err := strconv.Atoi(filepath.Base(there[len(there)-1])[:5])
	require.NoError(t, err)
	build := func(step string) {
		steps = append(steps, fmt.Sprintf("%05d_made_up.sql", last+len(steps)+1))
		put("migrations/"+steps[len(steps)-1], "-- +goose Up\n"+step)
		text, err := json.Marshal(overlay)
		require.NoError(t, err)
		program := filepath.Join(folder, steps[len(steps)-1]+".program")
		require.NoError(t, os.WriteFile(program+".json", text, 0o600))
		// Nearly all packages are compiled for these builds. The programs run only briefly, so optimizing would take longer
		// than it saves.
		said, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-gcflags=footfall/...=-N -l", "-ldflags=-s -w",
			"-overlay="+program+".json", "-o="+program, ".").CombinedOutput()
		require.NoError(t, err, string(said))
		programs = append(programs, program)
	}
	raise("migrations/migrations.go", "const Functions = ")
	put("migrations/functions/made_up.sql", "CREATE FUNCTION made_up() RETURNS integer LANGUAGE sql AS 'SELECT 1';")
	build("ALTER TABLE pages ADD COLUMN made_up integer NOT NULL DEFAULT 0;")
	version := raise("db/visits.sql.gen.go", `VALUES \(\$1, |generate_series\(0, 1\), `)
	build(fmt.Sprintf(`ALTER TABLE batches DROP CONSTRAINT batches_by_this_version;
		ALTER TABLE batches ADD CONSTRAINT batches_by_this_version CHECK (schema_version = %d) NOT VALID;`, version))
	return programs, steps
}
