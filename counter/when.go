package counter

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

const (
	// clocksDiffer is how far ahead a time may be that is taken for now.
	clocksDiffer = 5 * time.Minute
	// firstDayEver comes before any web page. A time without a value is far before it.
	firstDayEver = 19910101
	// pauseHours is how long a pause of retention lasts that nobody renews.
	pauseHours = 24
)

// chooseDay sets the day of a visit: the present one, or that of the time that the caller gave.
// Where that is kept no longer, it is tooOld. first is the first day of which the app takes visits,
// which is read where it is 0.
func (c *Counter) chooseDay(ctx context.Context, a *app.App, at time.Time, first *int32, w *subject) (err error) {
	now := c.clock()
	w.day, w.at = visit.DayOf(now, a.Zone), now
	if at.IsZero() {
		return nil
	}
	day := visit.DayOf(at, a.Zone)
	ahead := at.After(now.Add(clocksDiffer))
	if !ahead && day >= w.day {
		if !at.After(now) {
			w.when, w.at = record.Today, at
		}
		return nil
	}
	if *first == 0 {
		if *first, err = c.firstDay(ctx, a); err != nil {
			return err
		}
	}
	switch {
	case ahead:
		return visit.Errorf(visit.Invalid, "at", "it lies in the future: possible are days from %s to %s", visit.DayText(*first),
			visit.DayText(w.day))
	case day < *first && a.Mode == app.ByDay:
		w.tooOld = keyGone(a, *first)
	case day < *first:
		w.tooOld = visit.Errorf(visit.Invalid, "at", "app %s keeps no visits of that day: the first possible day is %s", a.Name,
			visit.DayText(*first))
	}
	w.day, w.when, w.at = day, record.Past, at
	return nil
}

// firstDay returns the first day of which an app takes visits.
func (c *Counter) firstDay(ctx context.Context, a *app.App) (int32, error) {
	var first, keyed int32
	err := c.readInTime(ctx, func(q *db.Queries) (err error) {
		if first, err = q.FirstPossibleDay(ctx, a.ID); err == nil && a.Mode == app.ByDay {
			keyed, err = q.DayKeysFirst(ctx)
		}
		return err
	})
	switch {
	case errors.Is(err, db.ErrNoRows):
		return 0, visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err)
	case err != nil:
		return 0, err
	case a.Mode == app.ByDay && keyed == 0: // not even that of today has been made
		keyed = visit.DayOf(c.clock(), a.Zone)
	}
	return max(first, keyed, firstDayEver), nil
}

func keyGone(a *app.App, first int32) error {
	return visit.Errorf(visit.Invalid, "at",
		"app %s hashes visitors with a key of each day, and keeps that one no longer: the first possible day is %s",
		a.Name, visit.DayText(first))
}

// countedIDs are those of some ids with which visits of an app were counted before.
func (c *Counter) countedIDs(ctx context.Context, a *app.App, ids ...string) (map[string]bool, error) {
	asked := make([]db.VisitID, 0, len(ids))
	for _, id := range ids {
		if id != "" { // a visit that has none
			asked = append(asked, db.VisitID{App: a.ID, ID: id})
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	ctx, cancel := c.db.InTime(ctx)
	defer cancel()
	found, err := c.db.KnownVisitIDs(ctx, asked)
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	counted := make(map[string]bool, len(found))
	for claim := range found {
		counted[claim.ID] = true
	}
	return counted, nil
}

// NotAhead returns a time, or the zero one, which is now, in place of one that lies ahead. isFar: by
// more than Visit takes for now.
func (g *Counting) NotAhead(at time.Time) (capped time.Time, isFar bool) {
	now := g.counter.clock()
	if !at.After(now) {
		return at, false
	}
	return time.Time{}, at.After(now.Add(clocksDiffer))
}

// Latest is the latest time that Visit takes for now.
func (g *Counting) Latest() time.Time { return g.counter.clock().Add(clocksDiffer) }

// FirstDay returns the first day of which the app takes visits.
func (g *Counting) FirstDay(ctx context.Context) (day int32, err error) {
	if g.firstDay == 0 {
		g.firstDay, err = g.counter.firstDay(ctx, g.app)
	}
	return g.firstDay, err
}

// Pause is a pause of retention. An app may have several at once, each until it is ended.
type Pause int64

// NewPause returns a pause that has not begun.
func NewPause() Pause { return Pause(rand.Int64()) } //nolint:gosec // it is no secret

// PauseRetention keeps all days, and visitors, that are there now, for a day at most from the last
// call with this pause on: for whoever reads in what may take longer than a night.
func (g *Counting) PauseRetention(ctx context.Context, p Pause) error {
	return g.setPause(ctx, p, pauseHours)
}

// ResumeRetention ends the pause.
func (g *Counting) ResumeRetention(ctx context.Context, p Pause) error { return g.setPause(ctx, p, 0) }

func (g *Counting) setPause(ctx context.Context, p Pause, hours int32) error {
	g.firstDay = 0 // to be read anew
	return g.write(ctx, func(ctx context.Context, q *db.Queries) error {
		_, err := q.RetentionPauseSet(ctx, db.RetentionPauseSetParams{App: g.app.ID, Run: int64(p), Hours: hours})
		return err
	})
}

// TellInstances makes running instances read the visitors anew, after another process has counted
// many: their filters would take each of those for new once.
func (g *Counting) TellInstances(ctx context.Context) error {
	return g.write(ctx, func(ctx context.Context, q *db.Queries) error { return q.VisitorsReadAnew(ctx) })
}

// write runs f in a transaction, in the time that one statement may take.
func (g *Counting) write(ctx context.Context, f func(ctx context.Context, q *db.Queries) error) error {
	ctx, cancel := g.counter.db.InTime(ctx)
	defer cancel()
	if err := g.counter.db.InTx(ctx, func(q *db.Queries) error { return f(ctx, q) }); err != nil {
		return visit.Unanswered(err)
	}
	return nil
}
