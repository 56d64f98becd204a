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

// snapshots finds out how old the oldest snapshot in the database is. As long as one lasts,
// PostgreSQL keeps all versions of rows since, and each visit leaves versions that the next ones to
// its site have to pass. The goroutine of upkeep uses it.
type snapshots struct {
	age    prometheus.Gauge
	seen   map[string]time.Time // since when holders are seen whose beginning the server does not say
	warned pause.Seldom[string] // of holders
}

func newSnapshots(m *metrics) *snapshots {
	return &snapshots{warned: pause.Seldom[string]{Every: snapshotWarnEvery}, age: m.register.NewGauge(prometheus.GaugeOpts{
		Name: "footfall_oldest_snapshot_seconds",
		Help: "For how long somebody has held a snapshot of the database, which makes counting slower the longer it lasts. It is looked for " +
			"every minute.",
	})}
}

// look looks for the oldest snapshot, and warns if it is too old.
func (s *snapshots) look(ctx context.Context, d *db.DB, now time.Time, log *slog.Logger) error {
	var holders []db.SnapshotHoldersRow
	if err := d.Read(ctx, func(q *db.Queries) (err error) { holders, err = q.SnapshotHolders(ctx); return err }); err != nil {
		return err
	}
	oldest, since := s.oldest(holders, now)
	s.age.Set(now.Sub(since).Seconds())
	if s.due(oldest.Holder, since, now) {
		log.Warn("counting becomes slower the longer a snapshot of the database is held: end it, unless it is needed",
			"holder", oldest.Holder, "since", since.UTC().Format(time.RFC3339), "end_it_with", oldest.Ending)
	}
	return nil
}

// oldest returns who has held theirs for longest, and since when; now where nobody holds any.
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

// due reports whether a holder is to be warned of: if it is for too long, and has not been
// warned of within the hour.
func (s *snapshots) due(holder string, since, now time.Time) bool {
	if now.Sub(since) <= db.SnapshotMayLast {
		return false
	}
	_, speak := s.warned.Next(holder, now)
	return speak
}
