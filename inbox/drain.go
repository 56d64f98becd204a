package inbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/record"
)

const (
	// lookEvery is the maximum interval between reads of the table inbox. The writer signals its own writes earlier. But another
	// instance may have written visits, or may have been killed while it counted.
	lookEvery = time.Second
	// restFor is the pause between two rounds, so that each round has more than a few visits.
	restFor = 100 * time.Millisecond
	// readVisits is roughly the number of visits per read.
	readVisits = 8000
	// restsAtMost bounds how long the visits of an app that could not be counted wait for a retry, as a multiple of the statement
	// timeout. Each retry may delay other apps by up to one timeout.
	restsAtMost = 6
	// During a burst of new visits, counting waits before each chunk until the new visits are accepted, for at most yieldAtMost.
	// If the burst continues, the chunk has only 1/burstPart of its normal size. Once the oldest visit in the inbox has waited
	// longer than burst, counting no longer waits, so that it keeps up as far as possible.
	burst       = time.Minute
	burstPart   = 8
	yieldAtMost = time.Second
	yieldLooks  = 5 * time.Millisecond
)

// drainer counts the visits in the inbox. Only its view may be used by several goroutines.
type drainer struct {
	db       *db.DB
	recorder *record.Recorder
	writer   *writer // nil: this process does not write to the inbox
	log      *slog.Logger
	metrics  *metrics
	view     *view

	pausedApps map[int32]*pausedFor // apps whose visits cannot be counted for now
	small      bool                 // the next chunk must be small because of a burst of visits
}

// pausedFor is the time during which an app's visits are set aside.
type pausedFor struct{ since, until time.Time }

func newDrainer(d *db.DB, r *record.Recorder, w *writer, o Options, m *metrics) *drainer {
	return &drainer{
		db: d, recorder: r, writer: w, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), metrics: m,
		view: &view{db: d, writer: w, metrics: m}, pausedApps: map[int32]*pausedFor{},
	}
}

// run counts visits until ctx ends.
func (d *drainer) run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		_, err := d.db.Alone(ctx, db.DrainingInbox, func() error { return d.drain(ctx) })
		if err != nil && ctx.Err() == nil && !failing {
			d.log.Warn("visits in the inbox cannot be counted now; trying again", "in", lookEvery, "error", err)
		}
		failing = err != nil
		if pause.For(ctx, restFor) != nil {
			return
		}
		select {
		case <-d.writer.wrote:
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

// drain first counts the visits of apps that are set aside and due for a retry, one app at a time. Then it counts the visits of
// all other apps. A lock excludes other instances. If this instance loses the connection that holds the lock, another instance
// may drain too, but each visit still counts only once.
func (d *drainer) drain(ctx context.Context) error {
	for app, r := range d.pausedApps {
		if time.Now().Before(r.until) {
			continue
		}
		if err := d.count(ctx, app); err != nil {
			return err
		}
	}
	return d.count(ctx, 0)
}

// count counts the waiting visits of the app of or, if of is 0, of all apps that are not set aside. It regularly starts again
// from the first row, because a row with a smaller number may have committed in the meantime.
func (d *drainer) count(ctx context.Context, of int32) error {
	var began time.Time
	var after int64
	for ctx.Err() == nil {
		if time.Since(began) > lookEvery {
			after, began = d.view.from(of, d.pausedApps), time.Now()
		}
		rows, err := d.read(ctx, of, after)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			delete(d.pausedApps, of)
			return nil
		}
		after = rows[len(rows)-1].Number
		switch err := d.record(ctx, of, rows); {
		case errors.Is(err, errAppPaused):
			return nil
		case errors.Is(err, errRowsChanged):
			began = time.Time{}
			if err := pause.For(ctx, restFor); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return ctx.Err()
}

// read reads the next rows, whose numbers are greater than after.
func (d *drainer) read(ctx context.Context, of int32, after int64) ([]row, error) {
	generation, err := d.recorder.Reading(ctx)
	if err != nil {
		return nil, err
	}
	ask := db.InboxReadParams{After: after, OfApp: of, Visits: readVisits, ButFor: []int32{}}
	if of == 0 {
		for app := range d.pausedApps {
			ask.ButFor = append(ask.ButFor, app)
		}
	}
	var found []db.InboxReadRow
	within, done := d.db.InTime(ctx)
	defer done()
	err = d.db.ReadInbox(within, func(q *db.Queries) (err error) { found, err = q.InboxRead(within, ask); return err })
	rows := make([]row, len(found))
	for i, r := range found {
		at := record.Position{Position: db.Position{Row: r.Number}, Next: int64(r.Counted), Read: generation}
		rows[i] = row{InboxReadRow: r, position: &at, next: int64(r.Counted)}
	}
	return rows, err
}

// putAside sets an app's visits aside for a second. If they were already set aside, it sets them aside again for as long as
// they have been so far, within limits. why is nil if the app is locked: this is normal and is not logged.
func (d *drainer) putAside(app int32, why error) {
	now := time.Now()
	r, again := d.pausedApps[app]
	if !again {
		d.pausedApps[app] = &pausedFor{now, now.Add(time.Second)}
		return
	}
	r.until = now.Add(min(max(now.Sub(r.since), time.Second), restsAtMost*d.db.StatementTimeout()))
	if why != nil {
		d.log.Warn("visits of an app in the inbox cannot be counted now, and are retried later; others are counted",
			"app_id", app, "error", why)
	}
}

// yield waits for at most yieldAtMost while the writer is busy, or while the recorder passes visits on to the inbox. It returns
// whether the burst continues.
func (d *drainer) yield(ctx context.Context) (burstGoesOn bool) {
	if d.writer == nil || d.metrics.age() > burst {
		return false
	}
	for end := time.Now().Add(yieldAtMost); d.writer.isBusy() || d.recorder.Overflows(); {
		if !time.Now().Before(end) || pause.For(ctx, yieldLooks) != nil {
			return true
		}
	}
	return false
}

// appsOf returns the apps of some entries, without duplicates.
func appsOf(entries []entry) (apps []int32) {
	for _, e := range entries {
		apps = append(apps, e.row.AppID)
	}
	slices.Sort(apps)
	return slices.Compact(apps)
}
