package record

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/pause"
)

// The oldest snapshot is measured; after five minutes a warning names its holder, once an hour.
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
		assert.Equal(t, step.warns, s.due(oldest.Holder, since, now), step.name)
	}
}

// An instance tells of whoever holds a snapshot when it starts.
func TestOldSnapshotIsToldOf(t *testing.T) {
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
