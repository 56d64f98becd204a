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
	// lookEvery is how often the table is looked at, at most, though nobody has said that visits came:
	// another instance may have written some, or have been killed while it counted.
	lookEvery = time.Second
	// restFor is the pause between two rounds, so that each has more than a few visits.
	restFor = 100 * time.Millisecond
	// readVisits is about how many visits are read at once.
	readVisits = 8000
	// restsAtMost is how long visits of an app that cannot be counted wait at most before they are
	// tried again, in times that a statement may take: for so long the others wait whenever they are.
	restsAtMost = 6
	// In a burst of visits each chunk waits, for yieldAtMost, so that they are taken in first, and
	// has only one visit in burstPart of what it has otherwise. Once a visit has waited for longer
	// than a burst may last, chunks wait no more: counting then keeps up as far as it can.
	burst       = time.Minute
	burstPart   = 8
	yieldAtMost = time.Second
	yieldLooks  = 5 * time.Millisecond
)

// drainer counts what is in the inbox. One goroutine uses it, but for its view.
type drainer struct {
	db       *db.DB
	recorder *record.Recorder
	writer   *writer // nil: this process writes nothing
	log      *slog.Logger
	metrics  *metrics
	view     *view

	aside map[int32]*rest // apps whose visits cannot be counted for now, and are passed by
	small bool            // the next chunk is to be: visits come in a burst
}

// rest is for how long visits of an app are passed by.
type rest struct{ since, until time.Time }

func newDrainer(d *db.DB, r *record.Recorder, w *writer, o Options, m *metrics) *drainer {
	return &drainer{
		db: d, recorder: r, writer: w, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), metrics: m,
		view: &view{db: d, writer: w, metrics: m}, aside: map[int32]*rest{},
	}
}

// run counts what comes until ctx ends.
func (d *drainer) run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		_, err := d.db.Alone(ctx, db.DrainingInbox, func() error { return d.drain(ctx) })
		if err != nil && ctx.Err() == nil && !failing {
			d.log.Warn("the inbox is not counted for now; it is tried again", "in", lookEvery, "error", err)
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

// drain counts what is to be tried again, an app at a time, and then all others. Should the
// connection be lost that keeps other instances from it, each visit still counts once.
func (d *drainer) drain(ctx context.Context) error {
	for app, r := range d.aside {
		if time.Now().Before(r.until) {
			continue
		}
		if err := d.count(ctx, app); err != nil {
			return err
		}
	}
	return d.count(ctx, 0)
}

// count counts what waits of one app, or (0) of all but those that are passed by. It begins anew now
// and then: a row whose number is smaller may have committed since.
func (d *drainer) count(ctx context.Context, of int32) error {
	var began time.Time
	var after int64
	for ctx.Err() == nil {
		if time.Since(began) > lookEvery {
			after, began = d.view.from(of, d.aside), time.Now()
		}
		rows, err := d.read(ctx, of, after)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			delete(d.aside, of)
			return nil
		}
		after = rows[len(rows)-1].Number
		switch err := d.record(ctx, of, rows); {
		case errors.Is(err, errAside):
			return nil
		case errors.Is(err, errReadAnew):
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

// read reads the next rows behind a number.
func (d *drainer) read(ctx context.Context, of int32, after int64) ([]row, error) {
	generation, err := d.recorder.Reading(ctx)
	if err != nil {
		return nil, err
	}
	ask := db.InboxReadParams{After: after, OfApp: of, Visits: readVisits, ButFor: []int32{}}
	if of == 0 {
		for app := range d.aside {
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

// putAside passes by what waits of an app: for a second, and then for as long again as it has been.
// why is "" where the app is locked, as is normal.
func (d *drainer) putAside(app int32, why error) {
	now := time.Now()
	r, again := d.aside[app]
	if !again {
		d.aside[app] = &rest{now, now.Add(time.Second)}
		return
	}
	r.until = now.Add(min(max(now.Sub(r.since), time.Second), restsAtMost*d.db.StatementTimeout()))
	if why != nil {
		d.log.Warn("visits of an app in the inbox cannot be counted, and are tried again later; others are counted", "app_id", app, "error", why)
	}
}

// yield makes room for visits that wait to be written, here or to be counted. It returns whether
// they still come like that.
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

// appsOf are the apps of some entries.
func appsOf(entries []entry) (apps []int32) {
	for _, e := range entries {
		apps = append(apps, e.row.AppID)
	}
	slices.Sort(apps)
	return slices.Compact(apps)
}
