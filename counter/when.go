package counter

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
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

// possibleDays are the days of which an app takes visits.
type possibleDays struct {
	first int32
	known bool
}

// chooseDay sets the day of a visit: the present one, or that of the time that the caller gave.
// Where that is kept no longer, it is tooOld. days keeps what has been read about the app.
func (c *Counter) chooseDay(ctx context.Context, a *app.App, at time.Time, days *possibleDays, w *subject) (err error) {
	now := c.clock()
	w.day = visit.DayOf(now, a.Zone)
	if at.IsZero() {
		return nil
	}
	day := visit.DayOf(at, a.Zone)
	ahead := at.After(now.Add(clocksDiffer))
	if !ahead && day >= w.day {
		if !at.After(now) {
			w.when = record.Today
		}
		return nil
	}
	if !days.known {
		if days.first, err = c.firstDay(ctx, a); err != nil {
			return err
		}
		days.known = true
	}
	switch {
	case ahead:
		return visit.Errorf(visit.Invalid, "at", "it lies in the future: possible are days from %s to %s", visit.DayText(days.first), visit.DayText(w.day))
	case day < days.first && a.Mode == app.ByDay:
		w.tooOld = keyGone(a, days.first)
	case day < days.first:
		w.tooOld = visit.Errorf(visit.Invalid, "at", "app %s keeps no visits of that day: the first possible day is %s", a.Name, visit.DayText(days.first))
	}
	w.day, w.when = day, record.Past
	return nil
}

// firstDay returns the first day of which an app takes visits.
func (c *Counter) firstDay(ctx context.Context, a *app.App) (int32, error) {
	ctx, cancel := c.db.InTime(ctx)
	defer cancel()
	var first, keyed int32
	err := c.db.Read(ctx, func(q *db.Queries) (err error) {
		if first, err = q.FirstPossibleDay(ctx, a.ID); err == nil && a.Mode == app.ByDay {
			keyed, err = q.DayKeysFirst(ctx)
		}
		return err
	})
	switch {
	case errors.Is(err, db.ErrNoRows):
		return 0, visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err)
	case err != nil:
		return 0, visit.Unanswered(err)
	case a.Mode == app.ByDay && keyed == 0: // not even that of today has been made
		keyed = visit.DayOf(c.clock(), a.Zone)
	}
	return max(first, keyed, firstDayEver), nil
}

func keyGone(a *app.App, first int32) error {
	return visit.Errorf(visit.Invalid, "at", "app %s hashes visitors with a key of each day, and keeps that one no longer: the first possible day is %s",
		a.Name, visit.DayText(first))
}

// identifyOnPastDay finds the visitor of a day that is over, for an app whose hashes change each
// day. Where its key is gone, nobody knows any more who that is.
func (c *Counter) identifyOnPastDay(ctx context.Context, a *app.App, w *subject) error {
	key, err := c.days.ofPast(ctx, w.day)
	switch {
	case errors.Is(err, db.ErrNoRows):
		w.visitor = netip.IPv6Unspecified()
		if w.tooOld == nil {
			w.tooOld = keyGone(a, visit.DayOf(c.clock(), a.Zone))
		}
		return nil
	case err != nil:
		return visit.Unanswered(err)
	}
	w.visitor, err = a.VisitorByAddress(c.secret, w.address, key)
	return err
}

// isKnown reports whether a visit was counted before with an id; "" if it has none.
func (c *Counter) isKnown(ctx context.Context, a *app.App, id string) (bool, error) {
	known, err := c.areKnown(ctx, []db.Claim{{App: a.ID, ID: id}})
	return len(known) > 0, err
}

func (c *Counter) areKnown(ctx context.Context, ids []db.Claim) (known map[db.Claim]bool, err error) {
	ids = slices.DeleteFunc(ids, func(id db.Claim) bool { return id.ID == "" })
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := c.db.InTime(ctx)
	defer cancel()
	if known, err = c.db.KnownVisitIDs(ctx, ids); err != nil {
		return nil, visit.Unanswered(err)
	}
	return known, nil
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

// FirstDay returns the first day of which the app takes visits.
func (g *Counting) FirstDay(ctx context.Context) (day int32, err error) {
	if !g.days.known {
		if g.days.first, err = g.counter.firstDay(ctx, g.app); err != nil {
			return 0, err
		}
		g.days.known = true
	}
	return g.days.first, nil
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

// TellInstances makes running instances read the visitors anew, after another process has counted
// many: their filters would take each of those for new once.
func (g *Counting) TellInstances(ctx context.Context) error {
	ctx, cancel := g.counter.db.InTime(ctx)
	defer cancel()
	if err := g.counter.db.InTx(ctx, func(q *db.Queries) error { return q.VisitorsReadAnew(ctx) }); err != nil {
		return visit.Unanswered(err)
	}
	return nil
}

func (g *Counting) setPause(ctx context.Context, p Pause, hours int32) error {
	ctx, cancel := g.counter.db.InTime(ctx)
	defer cancel()
	err := g.counter.db.InTx(ctx, func(q *db.Queries) error {
		_, err := q.RetentionPauseSet(ctx, db.RetentionPauseSetParams{App: g.app.ID, Run: int64(p), Hours: hours})
		return err
	})
	g.days.known = false
	if err != nil {
		return visit.Unanswered(err)
	}
	return nil
}
