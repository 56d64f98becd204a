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
	// clocksDiffer allows for wrong clocks: a time of a visit that is at most this far in the future is treated as now.
	clocksDiffer = 5 * time.Minute
	// firstDayEver is the first day for which any app accepts visits. The Web became public later in that year. Callers that do
	// not have a visit's time often send 0, which is in 1970 and therefore refused.
	firstDayEver = 19910101
	// pauseHours is how long a pause of retention (the deletion of old visits) lasts unless it is renewed.
	pauseHours = 24
)

// chooseDay sets the day of a visit: the current day, or the day of at, the time that the caller sent. If the app no longer
// keeps that day, chooseDay sets w.tooOld. first caches the first day for which the app accepts visits; 0 means that it was
// not read yet.
func (c *Counter) chooseDay(ctx context.Context, a *app.App, at time.Time, first *int32, w *subject) (err error) {
	now := c.clock()
	w.day, w.visitTime = visit.DayOf(now, a.Zone), now
	if at.IsZero() {
		return nil
	}
	day := visit.DayOf(at, a.Zone)
	ahead := at.After(now.Add(clocksDiffer))
	if !ahead && day >= w.day {
		if !at.After(now) {
			w.when, w.visitTime = record.Today, at
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
		return visit.Errorf(visit.Invalid, "at", "it is in the future: give a day from %s to %s", visit.DayText(*first),
			visit.DayText(w.day))
	case day < *first && a.Mode == app.ByDay:
		w.tooOld = errDayKeyDeleted(a, *first)
	case day < *first:
		w.tooOld = visit.Errorf(visit.Invalid, "at",
			"app %s no longer keeps visits of that day: the first possible day is %s", a.Name,
			visit.DayText(*first))
	}
	w.day, w.when, w.visitTime = day, record.Past, at
	return nil
}

// firstDay returns the first day for which an app accepts visits.
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
	case a.Mode == app.ByDay && keyed == 0: // not even today's key exists
		keyed = visit.DayOf(c.clock(), a.Zone)
	}
	return max(first, keyed, firstDayEver), nil
}

func errDayKeyDeleted(a *app.App, first int32) error {
	return visit.Errorf(visit.Invalid, "at",
		"app %s hashes visitors with a new key every day, and the key of that day is deleted: the first possible day is %s",
		a.Name, visit.DayText(first))
}

// findCountedIDs returns which of the given visit ids belong to visits of an app that were counted before.
func (c *Counter) findCountedIDs(ctx context.Context, a *app.App, ids ...string) (map[string]bool, error) {
	asked := make([]db.VisitID, 0, len(ids))
	for _, id := range ids {
		if id != "" { // "": the visit has no id
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

// CapToNow returns at if it is not in the future. Otherwise it returns the zero time, which Visit treats as now. isFar
// reports whether at is so far in the future that Visit would refuse it.
func (g *Counting) CapToNow(at time.Time) (capped time.Time, isFar bool) {
	now := g.counter.clock()
	if !at.After(now) {
		return at, false
	}
	return time.Time{}, at.After(now.Add(clocksDiffer))
}

// Latest returns the latest time of a visit that Visit accepts. It is a little in the future, because clocks differ.
func (g *Counting) Latest() time.Time { return g.counter.clock().Add(clocksDiffer) }

// FirstDay returns the first day for which the app accepts visits.
func (g *Counting) FirstDay(ctx context.Context) (day int32, err error) {
	if g.firstDay == 0 {
		g.firstDay, err = g.counter.firstDay(ctx, g.app)
	}
	return g.firstDay, err
}

// Pause identifies a pause of retention, the deletion of old visits. An app may have several pauses at the same time.
type Pause int64

// NewPause returns the id of a new pause. The pause starts when PauseRetention is called.
func NewPause() Pause { return Pause(rand.Int64()) } //nolint:gosec // not a secret

// PauseRetention prevents retention from deleting the days and visitors that the app has now. The pause p ends a day after
// the last call. Imports use it, so that the days for which an import counts visits are not deleted if it runs past
// midnight.
func (g *Counting) PauseRetention(ctx context.Context, p Pause) error {
	return g.setPause(ctx, p, pauseHours)
}

// ResumeRetention ends the pause p.
func (g *Counting) ResumeRetention(ctx context.Context, p Pause) error { return g.setPause(ctx, p, 0) }

func (g *Counting) setPause(ctx context.Context, p Pause, hours int32) error {
	g.firstDay = 0 // a pause may change the first day, so read it again
	return g.write(ctx, func(ctx context.Context, q *db.Queries) error {
		_, err := q.RetentionPauseSet(ctx, db.RetentionPauseSetParams{App: g.app.ID, Run: int64(p), Hours: hours})
		return err
	})
}

// ReloadVisitors makes running instances read the visitors again after another process has counted many visits. Otherwise
// the filter of visitors in an instance's memory would lack these visitors, and the instance would take each of them for
// new once.
func (g *Counting) ReloadVisitors(ctx context.Context) error {
	return g.write(ctx, func(ctx context.Context, q *db.Queries) error { return q.VisitorsReload(ctx) })
}

// write runs f in a transaction, within the time limit of one statement.
func (g *Counting) write(ctx context.Context, f func(ctx context.Context, q *db.Queries) error) error {
	ctx, cancel := g.counter.db.InTime(ctx)
	defer cancel()
	if err := g.counter.db.InTx(ctx, func(q *db.Queries) error { return f(ctx, q) }); err != nil {
		return visit.Unanswered(err)
	}
	return nil
}
