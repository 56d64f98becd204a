package record

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

const (
	notKnown = "it is unknown whether this visit was counted"
	notNow   = "the database cannot count now; try again"
)

// givenTime is time that the test controls, for one lane that has work.
type givenTime struct {
	mu       sync.Mutex // guards the following fields
	passed   time.Duration
	underWay map[time.Duration]context.CancelFunc // running timeouts, by duration
	ended    bool
}

func (g *givenTime) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Unix(1e9, 0).Add(g.passed)
}

func (g *givenTime) pass(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed += d
}

func (g *givenTime) within(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		cancel()
	}
	g.underWay[d] = cancel
	return ctx, func() {
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.underWay, d)
	}
}

// runOut waits until a timeout of this duration is running, and lets it expire.
func (g *givenTime) runOut(t *testing.T, d time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		cancel := g.underWay[d]
		if cancel != nil {
			cancel()
		}
		return cancel != nil
	}, dbtest.Patience, dbtest.Tick)
}

// end lets every timeout expire, now and later.
func (g *givenTime) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, cancel := range g.underWay {
		cancel()
	}
}

const maxWait = 2 * time.Second

// patient returns a recorder whose time the test controls. Its first visit has been counted.
func (w *world) patient(t *testing.T, d *db.DB) (*Recorder, *givenTime) {
	t.Helper()
	given := &givenTime{underWay: map[time.Duration]context.CancelFunc{}}
	r := recorder(t, d, Options{Filter: true, Memory: 8 << 20, MaxWait: maxWait, now: given.now, within: given.within})
	t.Cleanup(given.end) // or it could not be closed after a failed test
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "a.example/"))
	return r, given
}

// accepted waits until this number of visits are waiting or being written.
func (r *Recorder) accepted(t *testing.T, visits int) {
	t.Helper()
	require.Eventually(t, func() bool {
		pending := 0
		for _, l := range r.lanes {
			l.mu.Lock()
			pending += l.pending
			l.mu.Unlock()
		}
		return pending == visits
	}, dbtest.Patience, dbtest.Tick)
}

// In the service, timeouts expire by themselves: visits are answered within 25 s.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), "postgres:///nowhere", db.Options{})
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, 25*time.Second, (db.WritePatience+db.DidCommitPatience)*d.StatementTimeout())
	require.GreaterOrEqual(t, db.BatchIDsStay, 2*(db.WritePatience+db.DidCommitPatience)*d.StatementTimeout(),
		"the id of a batch outlasts the questions after it")
	ctx, cancel := Options{}.withDefaults(d).within(time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
}

// If the present batch has taken longer than a visit may wait, a new visit is refused immediately. A visit that
// has already waited twice that time for the batch is refused without being sent. After the batch, visits count
// again.
func TestVisitsThatWouldWaitTooLongAreRefused(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]When{"of today": Live, "of a past day": Past} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testVisitsThatWouldWaitTooLong(t, when)
		})
	}
}

func testVisitsThatWouldWaitTooLong(t *testing.T, when When) {
	w := newWorld(t)
	r, time := w.patient(t, dbtest.Open(t, w.url, db.Options{}))
	w.demo.When = when
	_, release := w.hold(t, "a.example")
	inHand := w.start(r, 2, "a.example/")
	w.blocked(t, 1)
	time.pass(maxWait)
	behind := w.start(r, 3, "a.example/")
	r.accepted(t, 2)
	time.pass(1)
	_, err := r.Record(w.visit(1, "a.example/"))
	verr, ok := errors.AsType[*visit.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, visit.Unavailable, verr.Kind)
	require.Positive(t, verr.RetryAfter)
	time.pass(2 * maxWait)
	release()
	require.Equal(t, "2 2 2 2 | 2 2 2 2", receive(t, inHand))
	require.Contains(t, receive(t, behind), "too many visits are waiting")
	require.Equal(t, "3 3 3 3 | 3 3 3 3", w.count(t, r, 3, "a.example/"))
	w.prove(t)
}

// On a slow disk every batch takes longer than a visit with an inbox should wait. The next batch is still counted,
// unless it has waited for much longer than a visit should.
func TestBatchBehindASlowOneIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	given := &givenTime{underWay: map[time.Duration]context.CancelFunc{}}
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{MaxWait: 20 * time.Millisecond, Overflow: true, now: given.now})
	l, v := r.lanes[0], w.visit(1, "a.example/")
	become := func(waited time.Duration) error {
		b := &waitingBatch{entries: []*entry{{Visit: v}}, since: given.now().Add(-waited), done: make(chan struct{})}
		l.mu.Lock()
		l.waiting = append(l.waiting, b)
		l.pending++
		l.wake.Signal()
		l.mu.Unlock()
		<-b.done
		return b.entries[0].err
	}
	require.NoError(t, become(leastPatience))
	require.ErrorIs(t, become(leastPatience+1), ErrOverloaded)
}

// The database hangs during a batch. When patience ends, the outcome of the batch's visits is unknown. Visits that
// have waited too long for the batch are refused, and later visits are refused immediately. When the database
// responds again, visits count, and the batch has counted once.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	network, through := dbtest.NewNetwork(t, w.url)
	// Ends the statements whose cancellation did not reach the server.
	d := dbtest.Open(t, through, db.Options{StatementTimeout: 20 * time.Second})
	r, time := w.patient(t, d)
	t.Cleanup(network.Thaw)
	_, release := w.hold(t, "a.example")
	inHand := w.start(r, 2, "a.example/")
	w.blocked(t, 1)
	behind := w.start(r, 3, "a.example/")
	r.accepted(t, 2)
	network.Freeze()
	release()
	time.pass(3 * maxWait)
	require.Contains(t, w.count(t, r, 3, "a.example/"), "too many visits are waiting", "at once")
	time.runOut(t, db.WritePatience*d.StatementTimeout())
	time.runOut(t, db.DidCommitPatience*d.StatementTimeout())
	require.Contains(t, receive(t, inHand), notKnown)
	require.Contains(t, receive(t, behind), "too many visits are waiting")
	network.Cut() // otherwise abandoned sessions would block others for as long as a statement may take
	network.Thaw()
	// The third visit was not counted. The second visit was counted if its batch had passed the network
	// completely before the network froze.
	w.eventually(t, r, 3, " | 3 3 3 3", " | 2 2 2 2")
	w.prove(t)
}

// The database is unavailable for longer than any patience. No caller waits for ever, and the recorder can
// be closed.
func TestNoDatabaseForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	network, through := dbtest.NewNetwork(t, w.url)
	d := dbtest.Open(t, through, db.Options{})
	r, time := w.patient(t, d)
	_, release := w.hold(t, "a.example")
	lost := w.start(r, 1, "a.example/")
	w.blocked(t, 1)
	behind := w.start(r, 1, "a.example/")
	r.accepted(t, 2)
	network.LeadTo("postgres://nobody@127.0.0.1:1/nowhere")
	network.Cut() // during a batch, so that the caches are dropped
	release()
	time.runOut(t, db.DidCommitPatience*d.StatementTimeout())
	require.Contains(t, receive(t, lost), notKnown)
	time.end() // the visit behind expires now, if it has not been refused before
	require.Contains(t, receive(t, behind), notNow)
	closed := make(chan string, 1)
	go func() { r.Close(); closed <- "" }()
	receive(t, closed)
	w.prove(t)
}

// eventually counts a visit until its numbers end in one of the endings.
func (w *world) eventually(t *testing.T, r *Recorder, visitor int, endings ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		told := w.count(t, r, visitor, "a.example/")
		return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(told, ending) })
	}, dbtest.Patience, dbtest.Tick)
}

// full makes a table refuse rows like a full disk.
const full = `
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '53100'
	USING MESSAGE = 'could not extend file'; END $$;
	CREATE TRIGGER refuse BEFORE INSERT ON `

// An instance is ready if a batch could be written. If it is not ready, it names the reason.
func TestReadyNamesTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, setting, value, says string }{
		{name: "well"},
		{name: "full disk", sql: full + `batches FOR EACH ROW EXECUTE FUNCTION refuse()`, says: "the disk of the database is full"},
		{name: "read-only", setting: "default_transaction_read_only", value: "on",
			says: "the database accepts no writes: it is a standby, or read-only"},
		{name: "right lost", sql: `REVOKE INSERT ON visits FROM footfall_app`, setting: "role", value: "footfall_app",
			says: "the role has no right to do this"},
		{name: "table lost", sql: `ALTER TABLE days RENAME TO gone`, says: "the tables do not match this footfall"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{}).Close() // makes the partitions
			_, err := w.conn.Exec(t.Context(), c.sql)
			require.NoError(t, err)
			url := w.url
			if c.setting != "" {
				url = dbtest.WithParameter(t, url, c.setting, c.value)
			}
			err = recorder(t, dbtest.Open(t, url, db.Options{}), Options{}).Ready(t.Context())
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "visits cannot be counted now: "+c.says)
		})
	}
}

// When the database refuses a batch, the instance is immediately not ready. When it writes a batch, the
// instance is ready again. Neither needs a probe.
func TestBatchesAreThePulse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{})
	require.Contains(t, w.count(t, r, 1, "a.example/"), "1 1 1 1")
	r.pulse.probe = func(context.Context) error { return errors.New("nobody has to probe") }
	hour := time.Now().Add(time.Hour)
	r.pulse.now = func() time.Time { return hour } // the clock stands still, so that observations stay fresh
	require.Contains(t, w.count(t, r, 2, "a.example/"), "2 2 2 2")
	require.NoError(t, r.Ready(t.Context()))

	_, err := w.conn.Exec(t.Context(), full+`visitors FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	require.Contains(t, w.count(t, r, 3, "a.example/"), "the database cannot count now")
	require.ErrorContains(t, r.Ready(t.Context()), "the disk of the database is full")
	_, err = w.conn.Exec(t.Context(), `DROP TRIGGER refuse ON visitors`)
	require.NoError(t, err)
	require.Contains(t, w.count(t, r, 3, "a.example/"), "3 3 3 3")
	require.NoError(t, r.Ready(t.Context()))
}

// Even if many callers check readiness, the database is probed rarely, and only by one caller.
func TestProbesAreRare(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var probes atomic.Int64
	down := errors.New("down")
	p := newPulse(nil, slog.New(slog.DiscardHandler))
	p.now = func() time.Time { return now }
	var asking sync.WaitGroup
	p.probe = func(context.Context) error { probes.Add(1); asking.Wait(); return down } // so that no caller is too late to probe
	ask := func(want error) {
		const callers = 20
		asking.Add(callers)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				asking.Done()
				assert.Equal(t, want, p.ready(t.Context()))
			})
		}
		all.Wait()
	}
	ask(down)
	assert.EqualValues(t, 1, probes.Load())
	now = now.Add(pulseFresh - 1)
	ask(down)
	assert.EqualValues(t, 1, probes.Load(), "recent observations are used")
	p.record(nil)
	ask(nil)
	now = now.Add(pulseFresh - 1)
	ask(nil)
	assert.EqualValues(t, 1, probes.Load(), "a batch is as good as a probe")
	now = now.Add(1)
	ask(down)
	assert.EqualValues(t, 2, probes.Load())

	left, leave := context.WithCancel(t.Context())
	leave()
	now = now.Add(pulseFresh)
	p.probe = func(ctx context.Context) error { return ctx.Err() }
	assert.NoError(t, p.ready(left), "who leaves does not make it fail for others")
}

// If a commit waits for a synchronous standby that does not respond, the instance is not ready and names this
// reason, although batches were written recently. The waiting commit may also be of a new page instead of a batch.
func TestReadyNamesTheStandby(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, true)
	addDemo(t)(dbtest.Open(t, p.URL(), db.Options{}))
	w := worldAt(t, p.URL())
	r := recorder(t, dbtest.Open(t, p.URL(), db.Options{}), Options{})
	require.Contains(t, w.count(t, r, 1, "a.example/"), "1 1 1 1")
	hour := time.Now().Add(time.Hour)
	r.pulse.now = func() time.Time { return hour } // the clock stands still, so that observations stay fresh
	r.pulse.record(nil)
	require.NoError(t, r.Ready(t.Context()))
	p.FreezeWalSender()
	told := w.start(r, 2, "a.example/new")
	require.Eventually(t, func() bool {
		err := r.Ready(t.Context())
		return err != nil && assert.ErrorContains(t, err,
			"visits cannot be counted now: the database's commits wait for the synchronous standby, which does not answer")
	}, dbtest.Patience, dbtest.Tick)
	p.Kill()
	p.Promote()
	p.WaitFor("")
	receive(t, told)
}
