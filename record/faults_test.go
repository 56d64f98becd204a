package record

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/verify"
	"footfall/visit"
	"footfall/visit/tag"
)

// world is a database with an app, and recorders that count for it.
type world struct {
	url  string
	conn *pgx.Conn // the test's connection
	demo Visit     // a visit to the app's site a.example
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldAt(t, dbtest.NewPrepared(t, "demo", time.Now(), addDemo(t)))
}

func addDemo(t *testing.T) func(*db.DB) {
	return func(d *db.DB) {
		require.NoError(t, d.InTx(t.Context(), func(q *db.Queries) error { _, err := q.AppAdd(t.Context(), "demo"); return err }))
	}
}

// worldAt returns a world on a database that has the app.
func worldAt(t *testing.T, url string) *world {
	t.Helper()
	w := &world{url: url, conn: dbtest.Connect(t, url)}
	apps, err := dbtest.Open(t, url, db.Options{}).Apps(t.Context())
	require.NoError(t, err)
	w.demo = Visit{App: apps[0].ID, CountsBy: apps[0].CountsBy(), Day: visit.DayOf(time.Now(), time.UTC),
		Tags: func() tag.Set { return tag.Set{{Name: tag.Hour, Value: "12"}} }}
	return w
}

// recorder starts a recorder whose visits may wait for a minute, unless o sets another limit.
func recorder(t *testing.T, d *db.DB, o Options) *Recorder {
	t.Helper()
	if o.MaxWait == 0 {
		o.MaxWait = time.Minute
	}
	r, err := Open(t.Context(), d, o)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// visit returns a visit to a page of a site.
func (w *world) visit(visitor int, page string) Visit {
	v := w.demo
	site, _, _ := strings.Cut(page, "/")
	v.Target, v.Visitor = visit.Target{Site: site, Page: page}, netip.AddrFrom4([4]byte{192, 0, 2, byte(visitor)})
	return v
}

// start records a visit to a page of a site in a goroutine, and sends the result: the numbers pv uv rank hot of site
// and page, or the error.
func (w *world) start(r *Recorder, visitor int, page string) <-chan string {
	v := w.visit(visitor, page)
	told := make(chan string, 1)
	go func() {
		a, err := r.Record(v)
		if err != nil {
			told <- err.Error()
			return
		}
		told <- fmt.Sprintf("%d %d %d %d | %d %d %d %d", a.Site.PV, a.Site.UV, a.Site.Rank, a.Site.Hot, a.Page.PV, a.Page.UV, a.Page.Rank,
			a.Page.Hot)
	}()
	return told
}

func (w *world) count(t *testing.T, r *Recorder, visitor int, page string) string {
	t.Helper()
	return receive(t, w.start(r, visitor, page))
}

// receive waits for a result, with a time limit for very slow machines.
func receive(t *testing.T, told <-chan string) string {
	t.Helper()
	select {
	case text := <-told:
		return text
	case <-time.After(2 * time.Minute):
		require.Fail(t, "waited in vain")
		return ""
	}
}

// hold locks the counters of a target in a separate transaction, until release.
func (w *world) hold(t *testing.T, target string) (holder *pgx.Conn, release func()) {
	t.Helper()
	holder = dbtest.Connect(t, dbtest.WithParameter(t, w.url, "deadlock_timeout", "10min")) // other sessions detect deadlocks first
	_, err := holder.Exec(t.Context(), `BEGIN`)
	require.NoError(t, err)
	require.NoError(t, lock(t.Context(), holder, target))
	return holder, func() { _ = holder.Close(context.Background()) }
}

func lock(ctx context.Context, conn *pgx.Conn, target string) error {
	_, err := conn.Exec(ctx, `SELECT FROM counters WHERE page_id = (SELECT id FROM pages WHERE key = page_key($1)) FOR UPDATE`, target)
	return err
}

// blocked waits until this number of sessions wait for the held locks, and returns their processes.
func (w *world) blocked(t *testing.T, sessions int) (pids []int32) {
	t.Helper()
	return dbtest.AwaitWaiting(t, w.conn, sessions)
}

// prove verifies all promises on the tables.
func (w *world) prove(t *testing.T) {
	t.Helper()
	proof, err := verify.Run(t.Context(), dbtest.Open(t, w.url, db.Options{}), verify.Options{Limit: 3})
	require.NoError(t, err)
	for _, p := range proof.Promises {
		assert.Zero(t, p.Violations, "%s: %+v", p.Name, p.Offenders)
	}
}

// faults is a log that counts the batches that did not commit at once, by fault.
type faults struct {
	mu   sync.Mutex
	seen map[string]int
}

func (f *faults) log() *slog.Logger { return slog.New(f) }

func (f *faults) Enabled(context.Context, slog.Level) bool { return true }
func (f *faults) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f *faults) WithGroup(string) slog.Handler            { return f }
func (f *faults) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "fault" {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.seen == nil {
				f.seen = map[string]int{}
			}
			f.seen[a.Value.String()]++
		}
		return true
	})
	return nil
}

func (f *faults) of(fault db.Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[fault.String()]
}

// A batch that is the victim of a deadlock is sent again, and counts once. The batch waits for the site's lock.
// Another transaction holds the page's lock, and waits for the table counters, which the batch is using. When the
// site's lock is released, the batch waits for the page, which completes the deadlock. The batch's wait starts
// last, so the batch's check finds the deadlock, even on a slow machine.
func TestDeadlockOfABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seen faults
	r := recorder(t, dbtest.Open(t, dbtest.WithParameter(t, w.url, "deadlock_timeout", "10ms"), db.Options{}), Options{Log: seen.log()})
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "a.example/"))
	_, releaseSite := w.hold(t, "a.example")
	other, releasePage := w.hold(t, "a.example/")
	told := w.start(r, 2, "a.example/")
	w.blocked(t, 1)
	locked := make(chan error, 1)
	go func() {
		_, err := other.Exec(context.Background(), `LOCK TABLE counters IN EXCLUSIVE MODE`)
		locked <- err
	}()
	w.blocked(t, 2)
	releaseSite()
	require.NoError(t, <-locked, "the batch gives way")
	releasePage()
	require.Equal(t, "2 2 2 2 | 2 2 2 2", receive(t, told))
	require.Positive(t, seen.of(db.FaultBusy), "there was no deadlock: this test tests nothing")
	w.prove(t)
}

// The server cancels a batch's statement that takes too long. The visit is refused, and not
// counted.
func TestStatementThatTakesTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{})
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "a.example/"))
	_, release := w.hold(t, "a.example")
	told := w.start(r, 2, "a.example/")
	_, err := w.conn.Exec(t.Context(), `SELECT pg_cancel_backend($1)`, w.blocked(t, 1)[0]) // like statement_timeout
	require.NoError(t, err)
	require.Contains(t, receive(t, told), notNow)
	release()
	require.Equal(t, "2 2 2 2 | 2 2 2 2", w.count(t, r, 2, "a.example/"), "once")
	w.prove(t)
}

// A migration after which batches have to write more data waits for the present batch of an older instance, and the
// database refuses the instance's next batches. The instance counts again when the migration is reverted.
func TestInstanceOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{})
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "a.example/"))
	_, release := w.hold(t, "a.example")
	underWay := w.start(r, 2, "a.example/")
	w.blocked(t, 1)
	step := func(version int) error {
		_, err := w.conn.Exec(t.Context(), fmt.Sprintf(`SET lock_timeout = '100ms';
			ALTER TABLE batches DROP CONSTRAINT batches_by_this_version,
				ADD CONSTRAINT batches_by_this_version CHECK (schema_version = %d) NOT VALID`, version))
		return err
	}
	require.Equal(t, db.FaultBusy, db.FaultOf(step(4)), "a batch is under way")
	release()
	require.Equal(t, "2 2 2 2 | 2 2 2 2", receive(t, underWay))
	require.NoError(t, step(4))
	for _, page := range []string{"a.example/", "b.example/new"} {
		require.Contains(t, w.count(t, r, 3, page), notNow)
	}
	require.ErrorContains(t, r.Ready(t.Context()), "visits cannot be counted now: the tables belong to a newer footfall")
	require.NoError(t, step(3))
	require.Equal(t, "3 3 3 3 | 3 3 3 3", w.count(t, r, 3, "a.example/"), "once")
	w.prove(t)
}
