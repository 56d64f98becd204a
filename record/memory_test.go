package record

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/pause"
	"footfall/visit"
)

// The memory stays within its limit even if many pairs are added. It first evicts the pairs that were not looked
// up.
func TestMemoryKeepsItsBound(t *testing.T) {
	const bytes = 8 << 20
	m := newMemory(bytes)
	before := heap()
	at := func(i int) pair {
		return pairOf(int64(i), netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	most := int64(0)
	const pairs = 400_000 // several times its capacity
	for i := range pairs {
		m.put(at(i), lastCounted{rank: int64(i), day: 20260629})
		if _, ok := m.get(at(7)); i >= 7 && !ok {
			t.Fatalf("pair 7 was looked up all the time, and is not in the memory after %d", i)
		}
		if i%5000 == 0 {
			most = max(most, heap()-before)
		}
	}
	t.Logf("%d pairs in %d bytes, %.0f each; promised %d", m.count(), most, float64(most)/float64(m.count()), memoryEntry)
	require.LessOrEqual(t, most, int64(bytes))
	require.Greater(t, m.count(), bytes/memoryEntry/2)
	newest, ok := m.get(at(pairs - 1))
	require.True(t, ok)
	require.Equal(t, lastCounted{rank: pairs - 1, day: 20260629}, newest)
	_, ok = m.get(at(0))
	require.False(t, ok)
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // bytes in memory
}

func TestNoMemoryHoldsNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(0)
	m.put(pair{target: 1}, lastCounted{rank: 1, day: 1})
	_, ok := m.get(pair{target: 1})
	require.False(t, ok)
	require.Zero(t, m.count())
}

// The more often hints are wrong, the more batches are sent without them. From time to time, hints are tried
// again.
func TestHintPolicy(t *testing.T) {
	t.Parallel()
	var p hintPolicy
	require.True(t, p.areAllowed())
	for _, without := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 256} {
		p.recordWrongHint()
		for i := range without {
			require.False(t, p.areAllowed(), "batch %d of %d", i, without)
			p.recordCommit()
		}
		require.True(t, p.areAllowed())
	}
	for range 8 { // batches with hints that were right
		p.recordCommit()
	}
	p.recordWrongHint()
	p.recordCommit()
	require.True(t, p.areAllowed(), "only the batch with the wrong hint is sent without hints")
}

// onMessage is a log that calls a function when a message is logged.
type onMessage struct {
	slog.Handler
	message string
	call    func()
}

func (h onMessage) Enabled(context.Context, slog.Level) bool { return true }

func (h onMessage) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.call()
	}
	return nil
}

// A filter whose loading was interrupted continues where it stopped: nothing is read again, and pairs added in the
// meantime stay.
func TestFilterContinuesAfterAnError(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	_, err := dbtest.Connect(t, url).Exec(t.Context(), `
		INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
		SELECT 1 + n % 3, inet '10.0.0.0' + n / 3, 1 + n / 3, 20260101, 20260101 FROM generate_series(0, 89999) AS n;
		INSERT INTO counters (page_id, hot, pv, uv) SELECT n, 30000, 30000, 30000 FROM generate_series(1, 3) AS n`)
	require.NoError(t, err)
	d := dbtest.Open(t, url, db.Options{})

	interrupted, interrupt := context.WithCancel(t.Context())
	log := slog.New(onMessage{slog.DiscardHandler, "the filter starts to read the visitors", interrupt})
	f := &filter{memory: 1 << 20, log: log, warned: new(sync.Once)}
	var w warming
	require.Error(t, f.warm(interrupted, d, &w))
	require.False(t, f.ready.Load())
	begun := f.bloom.Load()
	require.NotNil(t, begun)

	w.after.Rows = 1000 // fewer than a step that completes the loading, so that the interruption is not the end
	some, err := readVisitors(t.Context(), d, w.after)
	require.NoError(t, err)
	require.Len(t, some, 1000)
	w.after.Rows = warmRows
	last := some[len(some)-1]
	w.after.PageID, w.after.Ip = last.PageID, last.Ip
	for _, v := range some {
		f.add(v.PageID, v.Ip)
	}
	require.NoError(t, f.warm(t.Context(), d, &w))
	require.True(t, f.ready.Load())
	require.Same(t, begun, f.bloom.Load())
	require.EqualValues(t, 89_000, w.read, "the rest")
	require.InDelta(t, 90_000, f.stats().Keys, 10)
}

// A filter whose connection is lost while it loads tries again. Visits count in the meantime.
func TestFilterTriesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := dbtest.Open(t, w.url, db.Options{})
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, recorder(t, d, Options{}), 1, "a.example/"))
	holder, release := w.hold(t, "a.example")
	_, err := holder.Exec(t.Context(), `LOCK TABLE visitors IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	var warnings warnings
	r := recorder(t, d, Options{Filter: true, Log: slog.New(&warnings)})
	reading := w.blocked(t, 1)
	_, err = w.conn.Exec(t.Context(), `SELECT pg_terminate_backend($1)`, reading[0])
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(warnings.all()) > 0 }, dbtest.Patience, dbtest.Tick)
	release()
	require.Equal(t, "2 2 2 2 | 2 2 2 2", w.count(t, r, 2, "a.example/"))
	require.Eventually(t, func() bool { return r.caches.current.Load().filter.ready.Load() }, dbtest.Patience, dbtest.Tick)
	require.Equal(t, []string{"the filter could not read the visitors and will try again"}, warnings.all())
}

// A command that counts nothing reads no visitors. The first visit starts to fill its filter.
func TestBriefRecorderReadsNoVisitorsBeforeAVisit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := dbtest.Open(t, w.url, db.Options{})
	r := recorder(t, d, Options{Filter: true, Brief: true})
	require.Nil(t, r.caches.current.Load())
	require.NotNil(t, recorder(t, d, Options{Filter: true}).caches.current.Load(), "a service reads them at once")
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "a.example/"))
	require.Eventually(t, r.caches.current.Load().filter.ready.Load, dbtest.Patience, dbtest.Tick)
}

// A filter is kept if rows were only deleted. If there may be visitors that it does not contain, a new filter loads
// all visitors.
func TestFilterIsKeptOverAnErasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{Filter: true, Memory: 1 << 20})
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "a.example/"))
	ready := func(visitor int, answer string) (*generation, *filter) {
		require.Equal(t, answer, w.count(t, r, visitor, "a.example/"))
		now := r.caches.current.Load()
		require.Eventually(t, now.filter.ready.Load, dbtest.Patience, dbtest.Tick)
		return now, now.filter
	}
	before, first := ready(2, "2 2 2 2 | 2 2 2 2")
	_, err := w.conn.Exec(t.Context(), `BEGIN;
		UPDATE visitors SET ip = 'fd00::1' WHERE ip = '192.0.2.1';
		UPDATE visits SET ip = 'fd00::1' WHERE ip = '192.0.2.1';
		COMMIT`) // like an erasure
	require.NoError(t, err)
	after, second := ready(1, "3 3 3 3 | 3 3 3 3")
	require.NotSame(t, before, after, "nothing else is remembered")
	require.Same(t, first, second)

	_, err = w.conn.Exec(t.Context(), `SELECT read_anew()`)
	require.NoError(t, err)
	_, third := ready(3, "4 4 4 4 | 4 4 4 4")
	require.NotSame(t, second, third)
	require.GreaterOrEqual(t, third.stats().Keys, uint64(6), "it has read the tables")
	w.prove(t)
}

// A filter whose memory is used up logs only one warning, even if many visits notice it at the same time, and even
// if the filter is replaced repeatedly, as after each import.
func TestFullFilterWarnsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var warnings warnings
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{Filter: true, FilterMemory: 8, Log: slog.New(&warnings)})
	for generation := range 2 {
		require.Eventually(t, func() bool {
			now := r.caches.current.Load()
			return now != nil && now.filter.ready.Load()
		}, dbtest.Patience, dbtest.Tick)
		var all sync.WaitGroup
		for visitor := range 50 {
			told := w.start(r, visitor, fmt.Sprintf("site%d.example/%d", visitor%4, generation))
			all.Go(func() { assert.Contains(t, <-told, " | ") })
		}
		all.Wait()
		require.True(t, r.caches.current.Load().filter.stats().Saturated)
		_, err := w.conn.Exec(t.Context(), `SELECT read_anew()`) // like an import
		require.NoError(t, err)
		w.count(t, r, 2, "site2.example/0")
	}
	require.Len(t, warnings.all(), 1)
	require.Contains(t, warnings.all()[0], "raise --memory")
}

// warnings is a log of warnings and errors, without those about batches that are sent again.
type warnings struct {
	mu   sync.Mutex
	said []string
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.HasPrefix(r.Message, "a batch did not commit at once") {
		w.said = append(w.said, r.Message)
	}
	return nil
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said)
}

// The age of the oldest snapshot is measured. If it is more than five minutes, a warning names the
// holder, at most once an hour.
func TestOldestSnapshot(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)
	untold := time.Unix(0, 0)
	told := func(name string, after time.Duration) db.SnapshotHoldersRow {
		return db.SnapshotHoldersRow{Holder: name, Keeps: "7", Since: began.Add(after)}
	}
	slot := db.SnapshotHoldersRow{Holder: "slot", Keeps: "1", Since: untold}
	moved := db.SnapshotHoldersRow{Holder: "slot", Keeps: "2", Since: untold}
	s := snapshots{warned: pause.Seldom[string]{Every: snapshotWarnEvery}}
	for _, step := range []struct {
		name    string
		at      time.Duration
		holders []db.SnapshotHoldersRow
		oldest  string
		age     time.Duration
		warns   bool
	}{
		{"nobody", 0, nil, "", 0, false},
		{"one for as long as it may", 5 * time.Minute, []db.SnapshotHoldersRow{told("psql", 0)}, "psql", 5 * time.Minute, false},
		{"for longer, and a newer one", 6 * time.Minute, []db.SnapshotHoldersRow{told("dump", 5*time.Minute), told("psql", 0)}, "psql",
			6 * time.Minute, true},
		{"within the hour", 65 * time.Minute, []db.SnapshotHoldersRow{told("psql", 0)}, "psql", 65 * time.Minute, false},
		{"after an hour", 66 * time.Minute, []db.SnapshotHoldersRow{told("psql", 0)}, "psql", 66 * time.Minute, true},
		{"somebody else", 67 * time.Minute, []db.SnapshotHoldersRow{told("dump", 5*time.Minute)}, "dump", 62 * time.Minute, true},
		{"nobody any more", 68 * time.Minute, nil, "", 0, false},
		{"one that tells nothing", 70 * time.Minute, []db.SnapshotHoldersRow{slot}, "", 0, false},
		{"the same", 76 * time.Minute, []db.SnapshotHoldersRow{slot}, "slot", 6 * time.Minute, true},
		{"it has moved on", 77 * time.Minute, []db.SnapshotHoldersRow{moved}, "", 0, false},
		{"the server's clock is ahead", 78 * time.Minute, []db.SnapshotHoldersRow{told("psql", 80*time.Minute)}, "", 0, false},
	} {
		now := began.Add(step.at)
		oldest, since := s.oldest(step.holders, now)
		assert.Equal(t, step.oldest, oldest.Holder, step.name)
		assert.Equal(t, step.age, now.Sub(since), step.name)
		assert.Equal(t, step.warns, s.shouldWarn(oldest.Holder, since, now), step.name)
	}
}

// An instance warns of sessions that held a snapshot when it started.
func TestOldSnapshotIsLogged(t *testing.T) {
	t.Parallel()
	conn, d, _ := openDemo(t)
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT 1")
	require.NoError(t, err)

	var log bytes.Buffer
	later := func() time.Time { return d.Now().Add(10 * time.Minute) }
	metrics := prometheus.NewRegistry()
	r, err := Open(t.Context(), d, Options{Clock: later, Metrics: metrics, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer r.Close()
	require.Eventually(t, func() bool {
		families, err := metrics.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "footfall_oldest_snapshot_seconds" {
				return f.GetMetric()[0].GetGauge().GetValue() >= 600
			}
		}
		return false
	}, dbtest.Patience, dbtest.Tick, "it was not measured")
	r.Close()
	require.Contains(t, log.String(), fmt.Sprintf("process %d", conn.PgConn().PID()))
	require.Contains(t, log.String(), fmt.Sprintf("SELECT pg_terminate_backend(%d)", conn.PgConn().PID()))
}

// openDemo makes a database with an app, and a visit to it.
func openDemo(t *testing.T) (*pgx.Conn, *db.DB, Visit) {
	t.Helper()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	_, err := conn.Exec(t.Context(), `INSERT INTO apps (name) VALUES ('demo')`)
	require.NoError(t, err)
	d := dbtest.Open(t, url, db.Options{})
	apps, err := d.Apps(t.Context())
	require.NoError(t, err)
	return conn, d, Visit{App: apps[0].ID, CountsBy: apps[0].CountsBy(), Target: visit.Target{Site: "a.example", Page: "a.example/"},
		Visitor: netip.MustParseAddr("2001:db8::"), Day: 20260629}
}

// Visits of an app that is deleted or being deleted are not counted, whether or not its targets still exist.
func TestVisitToADeletedAppIsNotFound(t *testing.T) {
	t.Parallel()
	conn, d, now := openDemo(t)
	one := recorder(t, d, Options{})
	_, err := one.Record(now)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE footfall.apps SET deleted_at = now()`)
	require.NoError(t, err)
	another := recorder(t, d, Options{})
	fresh, gone := now, now
	fresh.Target.Page = "a.example/new"
	gone.App++
	for _, v := range []Visit{now, fresh, gone} {
		var verr *visit.Error
		_, err = another.Record(v)
		require.ErrorAs(t, err, &verr)
		require.Equal(t, visit.NotFound, verr.Kind)
	}
}

// A visit is refused if the app's settings were changed after the visit was admitted, even if its targets are
// cached by now: with the new settings, the app would identify the visitor differently.
func TestVisitOfFormerSettingsIsRefused(t *testing.T) {
	t.Parallel()
	_, d, now := openDemo(t)
	former := now
	former.CountsBy.Ipv6Prefix = 48

	one := recorder(t, d, Options{})
	another := recorder(t, d, Options{})
	_, err := one.Record(now)
	require.NoError(t, err)
	for _, r := range []*Recorder{one, another} { // with and without the targets in memory
		var verr *visit.Error
		_, err = r.Record(former)
		require.ErrorAs(t, err, &verr)
		require.Equal(t, visit.Unavailable, verr.Kind)
		_, err = r.Record(now)
		require.NoError(t, err)
	}
}

// The title of a page is the title that most of its last five visitors, and at least two, have seen. Each
// visitor has one vote. The title can change at most once an hour. A title that a caller vouches for needs no
// votes.
func TestTitlesAreVotedOn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1561766400, 0)
	told := &titles{clock: func() time.Time { return now }, pending: map[int64]string{}}
	g := &generation{ballots: newBallots()}
	sees := func(page int64, visitor int, title string, vouched bool) string {
		e := &entry{Visit: Visit{Title: title, Vouched: vouched, SeenFrom: netip.AddrFrom4([4]byte{192, 0, 2, byte(visitor)})}}
		e.page.id = page
		told.processVote(e, g)
		return told.pending[page]
	}
	for i, c := range []struct {
		visitor int
		title   string
		later   time.Duration
		told    string
	}{
		{1, "a", 0, ""}, {1, "a", 0, ""}, {1, "b", 0, ""}, {1, "b", 2 * time.Hour, ""}, // one visitor has one vote
		{2, "a", 0, ""}, {3, "a", 0, "a"}, // two of three
		{4, "b", 2 * time.Hour, "a"}, {5, "c", 0, "a"}, {6, "b", 0, "a"}, // 2 of 5
		{7, "b", 0, "b"},                                                        // 3 of 5
		{8, "a", 0, "b"}, {9, "a", 0, "b"}, {8, "a", 0, "b"}, {10, "a", 0, "b"}, // within the hour
		{10, "a", 59 * time.Minute, "b"}, {10, "a", time.Minute, "a"},
	} {
		now = now.Add(c.later)
		assert.Equal(t, c.told, sees(1, c.visitor, c.title, false), "%d: %v", i, c)
	}
	assert.Equal(t, "x", sees(2, 1, "x", true))
	assert.Equal(t, "x", sees(2, 1, "y", true), "within the hour")
	for name, e := range map[string]*entry{
		"no title": {}, "no page": {Visit: Visit{Title: "x", Vouched: true}}, "long ago": {Visit: Visit{Title: "x", Vouched: true, When: Past}},
		"(other)": {Visit: Visit{Title: "x", Vouched: true}, other: visit.Target{Page: "a/(other)"}},
	} {
		if e.page.id = 3; name == "no page" {
			e.page.id = 0
		}
		told.processVote(e, g)
		assert.Len(t, told.pending, 2, name)
	}
	for page := range int64(2 * titlesMost) {
		sees(page+10, 1, fmt.Sprint(page), true)
	}
	assert.Len(t, told.pending, titlesMost, "the waiting titles are bounded")
	assert.Less(t, g.ballots.pages.Count(), 2*titleBytes/titleEntry)
}
