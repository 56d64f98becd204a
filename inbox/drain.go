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
	// lookEvery is the maximum interval between reads of the table inbox. The writer of this instance wakes the drainer
	// after each write. But there may also be visits that other instances wrote, or did not count because they were killed.
	lookEvery = time.Second
	// restFor is the pause between two calls of drain. During this pause, more visits arrive, so that each call counts more
	// than a few.
	restFor = 100 * time.Millisecond
	// readVisits is approximately the number of visits that one query reads from the inbox.
	readVisits = 8000
	// maxRestTimeouts limits how long an app waits for a retry after its visits could not be counted. The limit is a
	// multiple of the statement timeout, because each retry may delay other apps by one timeout.
	maxRestTimeouts = 6
	// During a burst of new visits, the drainer waits before each chunk until the writer has written them, but at most for
	// yieldAtMost. It checks this every yieldInterval. If the burst continues, the chunk has only 1/burstPart of its normal
	// size. If the oldest visit in the inbox has waited longer than burst, the drainer no longer waits.
	burst         = time.Minute
	burstPart     = 8
	yieldAtMost   = time.Second
	yieldInterval = 5 * time.Millisecond
)

// drainer counts the visits in the inbox. Only its field view is safe for concurrent use.
type drainer struct {
	db       *db.DB
	recorder *record.Recorder
	writer   *writer // writer of this process; nil: the process does not write to the inbox
	log      *slog.Logger
	metrics  *metrics
	view     *view

	pausedApps map[int32]*asidePeriod // apps that are set aside, because their visits cannot be counted now
	small      bool                   // the next chunk must be small, because new visits are arriving in a burst
}

// asidePeriod is the time during which an app is set aside: its visits are not counted.
type asidePeriod struct{ since, until time.Time }

func newDrainer(d *db.DB, r *record.Recorder, w *writer, o Options, m *metrics) *drainer {
	return &drainer{
		db: d, recorder: r, writer: w, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), metrics: m,
		view: &view{db: d, writer: w, metrics: m}, pausedApps: map[int32]*asidePeriod{},
	}
}

// run calls drain again and again until ctx ends. While another instance drains the inbox, run does not call drain.
func (d *drainer) run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		_, err := d.db.RunAlone(ctx, db.DrainingInbox, func() error { return d.drain(ctx) })
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

// drain first counts the visits of the apps that were set aside and whose time to wait is over, one app at a time. Then it
// counts the visits of all other apps. The caller must hold a database lock, so that no other instance drains. If the
// connection with this lock is lost, two instances may drain at once, but each visit still counts only once.
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

// count counts the waiting visits of the app with the id of. If of is 0, it counts the visits of all apps that are not set
// aside. It reads rows in the order of their numbers. Every lookEvery, it starts again from the first row, because a row
// with a smaller number may have been committed in the meantime.
func (d *drainer) count(ctx context.Context, of int32) error {
	var began time.Time
	var after int64
	for ctx.Err() == nil {
		if time.Since(began) > lookEvery {
			after, began = d.view.findStart(of, d.pausedApps), time.Now()
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

// read reads the next rows of the inbox, whose numbers are greater than after. of is the id of an app; 0: all apps that are
// not set aside.
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

// putAside sets an app aside: its visits are not counted for a second. If the app was already set aside, it waits twice as
// long as before, up to a limit, and why is logged. why is nil if another transaction has locked the app, because this is
// not a problem.
func (d *drainer) putAside(app int32, why error) {
	now := time.Now()
	r, again := d.pausedApps[app]
	if !again {
		d.pausedApps[app] = &asidePeriod{now, now.Add(time.Second)}
		return
	}
	r.until = now.Add(min(max(now.Sub(r.since), time.Second), maxRestTimeouts*d.db.StatementTimeout()))
	if why != nil {
		d.log.Warn("visits of an app in the inbox cannot be counted now, and are retried later; others are counted",
			"app_id", app, "error", why)
	}
}

// yield waits while the writer is busy or the recorder passes visits on to the inbox, because many new visits are then
// arriving. It waits at most for yieldAtMost, and reports whether the burst continues.
func (d *drainer) yield(ctx context.Context) (burstGoesOn bool) {
	if d.writer == nil || d.metrics.age() > burst {
		return false
	}
	for end := time.Now().Add(yieldAtMost); d.writer.isBusy() || d.recorder.Overflows(); {
		if !time.Now().Before(end) || pause.For(ctx, yieldInterval) != nil {
			return true
		}
	}
	return false
}

// appsOf returns the ids of the apps in entries, without duplicates.
func appsOf(entries []entry) (apps []int32) {
	for _, e := range entries {
		apps = append(apps, e.row.AppID)
	}
	slices.Sort(apps)
	return slices.Compact(apps)
}
