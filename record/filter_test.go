package record

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

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

// A filter whose reading was interrupted goes on where it was: nothing is read again, and pairs
// that were added meanwhile stay.
func TestFilterGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	_, err := dbtest.Connect(t, url).Exec(t.Context(), `
		INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
		SELECT 1 + n % 3, inet '10.0.0.0' + n / 3, 1 + n / 3, 20260101, 20260101 FROM generate_series(0, 89999) AS n;
		INSERT INTO counters (page_id, hot, pv, uv) SELECT n, 30000, 30000, 30000 FROM generate_series(1, 3) AS n`)
	require.NoError(t, err)
	d := dbtest.Open(t, url, db.Options{})

	interrupted, interrupt := context.WithCancel(t.Context())
	log := slog.New(onMessage{slog.DiscardHandler, "the filter begins to read the visitors", interrupt})
	f := &filter{memory: 1 << 20, log: log, warned: new(sync.Once)}
	var w warming
	require.Error(t, f.warm(interrupted, d, &w))
	require.False(t, f.ready.Load())
	begun := f.bloom.Load()
	require.NotNil(t, begun)

	w.after.Rows = 1000 // fewer than a step that ends the reading: this one is not interrupted by the end
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

// A filter whose connection is lost while it reads tries again. Visits count meanwhile.
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

// A filter is kept when rows only went, and reads the visitors anew when some may have come in that
// it has not seen.
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
		COMMIT`) // as an erasure does
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

// A filter whose memory is used up says so once, however many visits meet it at once, and however
// often it is followed by another one, as after each import.
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
		_, err := w.conn.Exec(t.Context(), `SELECT read_anew()`) // as an import does
		require.NoError(t, err)
		w.count(t, r, 2, "site2.example/0")
	}
	require.Len(t, warnings.all(), 1)
	require.Contains(t, warnings.all()[0], "give it more with --memory")
}

// warnings is a log of what is a warning or worse, but for the batches that are sent again.
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
