package record

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
	"footfall/pause"
)

const snapshotWarnEvery = time.Hour

// snapshots monitors the age of the oldest snapshot in the database. While a snapshot is held, for example by a long
// transaction, PostgreSQL keeps all row versions that were replaced after the snapshot was taken. Each visit replaces
// rows, so the next visits to the same site become slower, because they must skip the old versions. Only the upkeep
// goroutine uses this type.
type snapshots struct {
	age    prometheus.Gauge
	seen   map[string]time.Time // when each snapshot holder was first seen; only for snapshots whose start is not reported
	warned pause.Seldom[string] // limits the warnings about each holder
}

func newSnapshots(m *metrics) *snapshots {
	return &snapshots{warned: pause.Seldom[string]{Every: snapshotWarnEvery}, age: m.register.NewGauge(prometheus.GaugeOpts{
		Name: "footfall_oldest_snapshot_seconds",
		Help: "Age of the oldest open snapshot of the database. The older it is, the slower counting becomes. Measured " +
			"every minute.",
	})}
}

// look finds the oldest snapshot, and logs a warning if this snapshot is too old.
func (s *snapshots) look(ctx context.Context, d *db.DB, now time.Time, log *slog.Logger) error {
	var holders []db.SnapshotHoldersRow
	if err := d.Read(ctx, func(q *db.Queries) (err error) { holders, err = q.SnapshotHolders(ctx); return err }); err != nil {
		return err
	}
	oldest, since := s.oldest(holders, now)
	s.age.Set(now.Sub(since).Seconds())
	if s.shouldWarn(oldest.Holder, since, now) {
		log.Warn("a snapshot of the database has been open for a long time, which slows down counting: end it, unless it is needed",
			"holder", oldest.Holder, "since", since.UTC().Format(time.RFC3339), "end_it_with", oldest.Ending)
	}
	return nil
}

// oldest returns the holder of the oldest snapshot, and the time when this snapshot was taken (since). If there is no
// snapshot, since is now.
func (s *snapshots) oldest(holders []db.SnapshotHoldersRow, now time.Time) (oldest db.SnapshotHoldersRow, since time.Time) {
	seen := map[string]time.Time{}
	since = now
	for _, h := range holders {
		began := h.Since
		if began.Unix() == 0 {
			key := h.Holder + " " + h.Keeps
			began = now
			if first, seen := s.seen[key]; seen {
				began = first
			}
			seen[key] = began
		}
		if began.Before(since) {
			oldest, since = h, began
		}
	}
	s.seen = seen
	return oldest, since
}

// shouldWarn reports whether to log a warning about a holder's snapshot. It must be older than db.SnapshotMayLast,
// and there must have been no warning about this holder within snapshotWarnEvery.
func (s *snapshots) shouldWarn(holder string, since, now time.Time) bool {
	if now.Sub(since) <= db.SnapshotMayLast {
		return false
	}
	_, speak := s.warned.Next(holder, now)
	return speak
}
