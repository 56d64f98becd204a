package record

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
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
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `SET search_path = footfall;
		INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
		SELECT 1 + n % 3, inet '10.0.0.0' + n / 3, 1 + n / 3, 20260101, 20260101 FROM generate_series(0, 89999) AS n;
		INSERT INTO counters (page_id, hot, pv, uv) SELECT n, 30000, 30000, 30000 FROM generate_series(1, 3) AS n`)
	require.NoError(t, err)
	d, err := db.Open(t.Context(), url, db.Options{})
	require.NoError(t, err)
	defer d.Close()

	interrupted, interrupt := context.WithCancel(t.Context())
	log := slog.New(onMessage{slog.DiscardHandler, "the filter begins to read the visitors", interrupt})
	f := newFilter(Options{Filter: true, FilterMemory: 1 << 20, Log: log})
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
