package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

// busyTries is how often a batch is sent that is rolled back because of others.
const busyTries = 20

// entry is an accepted visit. The writer sets its answer or its error before the batch is done.
type entry struct {
	Visit

	// Set by generation.lookUp: before the entry is accepted, if there is a generation then, so
	// that the lane need not do it; again by the writer if the generation has changed.
	generation *generation
	site, page entryTarget
	other      visit.Target // counts for this one, (other), since its app has had its new pages of the day

	repeated bool // its id was claimed before, as far as the transaction of the last attempt knows
	known    bool // it has no targets, and its id was claimed before: none are made for it

	step Step // of a chunk whose sources have positions

	answer visit.Answer
	err    error
}

// entryTarget is what the caches hold of an entry's site or page, and of the visitor there.
type entryTarget struct {
	id           int64 // 0: not in the cache
	countedToday bool  // the visitor has been counted at the target on the entry's day
	rank         int64 // of the visitor, if countedToday
}

// writer makes the visits of a batch durable, whatever faults it meets. One goroutine uses it.
type writer struct {
	db         *db.DB
	metrics    *metrics
	within     func(time.Duration) (context.Context, context.CancelFunc)
	pulse      *pulse      // shared with the other writers
	caches     *caches     // likewise
	generation *generation // the caches from which the present batch is made
	hints      hintPolicy
	draft      draft
	chunk      *chunkState    // nil in lanes of live visits
	learning   sync.WaitGroup // of the last batch, by a goroutine that reads the draft
}

func newWriter(d *db.DB, c *caches, p *pulse, o Options, m *metrics) *writer {
	return &writer{db: d, metrics: m, within: o.within, pulse: p, caches: c, draft: newDraft()}
}

// write gives every entry its answer or its error. It uses no request's context, because a caller
// who leaves must not end the batch for the others.
func (w *writer) write(entries []entry) {
	ctx, cancel := w.within(db.WritePatience * w.db.StatementTimeout())
	defer cancel()
	w.chunk.begin()
	w.writeAll(ctx, entries)
	w.generation = nil // an idle lane must not keep a generation in memory that has been dropped
}

// writeAll sends the entries until each has its answer or its error.
func (w *writer) writeAll(ctx context.Context, entries []entry) {
	for try := 1; len(entries) > 0; try++ {
		if w.chunk.hasStopped() {
			fail(entries, ErrNotReached)
			return
		}
		sent, id, err := w.attempt(ctx, entries)
		fault := db.FaultOf(err)
		if fault != db.FaultNone {
			w.logFault(fault, err, len(entries))
		}
		switch fault {
		case db.FaultNone:
			entries, try = entries[sent:], 0
		case db.FaultBusy, db.FaultStale:
			if fault == db.FaultStale {
				w.caches.drop(w.generation)
			}
			if try >= busyTries || !pause.Again(ctx, try) {
				w.giveUp(entries, visit.Errorf(visit.Unavailable, "", "the database is busy; try again").Because(err))
				return
			}
		case db.FaultDay, db.FaultLate, db.FaultGone, db.FaultNoDay:
			if !w.mendDays(ctx, fault, err, entries, sent, try) {
				return
			}
		case db.FaultHeld:
			w.leaveHeld(ctx, entries, err)
			return
		case db.FaultMoved:
			w.giveUp(entries, w.findPositions(ctx, entries, err))
			return
		case db.FaultAhead: // somebody has set this machine's clock since it was measured
			err = errors.Join(err, w.db.MeasureClock(ctx))
			w.giveUp(entries, visit.Errorf(visit.Unavailable, "", "this instance's clock was wrong; try again").Because(err))
			return
		case db.FaultHint:
			if !w.draft.hinted() { // then it was no hint that is wrong, but the tables
				w.split(ctx, entries, err)
				return
			}
			w.metrics.wrongHints.Inc()
			w.hints.wrong()
		case db.FaultData:
			w.split(ctx, entries, err)
			return
		case db.FaultUnknown:
			var sendAgain bool
			if entries, sendAgain = w.afterLostCommit(ctx, entries, sent, id, try); !sendAgain {
				return
			}
		default:
			w.pulse.saw(err)
			w.giveUp(entries, visit.Errorf(visit.Unavailable, "", "the database cannot count now; try again").Because(err))
			return
		}
	}
}

// attempt sends as many of the first entries as fit one transaction, and answers them if that
// commits.
func (w *writer) attempt(ctx context.Context, entries []entry) (sent int, id [16]byte, err error) {
	w.learning.Wait()
	if err := w.ensureIDs(ctx, entries); err != nil {
		return 0, id, err
	}
	if err := w.chunk.judge(ctx, w.db, entries); err != nil {
		return 0, id, err
	}
	id = uuid.Must(uuid.NewV7())
	sent = w.prepare(entries)
	w.draft.batch.ID, w.draft.batch.Moves = id, moves(w.draft.batch.Moves, entries[:sent])
	begin := time.Now()
	err = w.db.Write(ctx, &w.draft.batch, &w.draft.outcome)
	w.chunk.wrote(time.Since(begin))
	if err != nil {
		return sent, id, err
	}
	moved(entries[:sent])
	w.pulse.saw(nil)
	w.chunk.leave(&w.draft.batch.Targets, w.draft.outcome.Sums)
	w.draft.replay(entries[:sent])
	w.learn()
	w.hints.committed()
	w.metrics.countLookUps(&w.draft.lookUps)
	return sent, id, nil
}

// learn lets the caches have what has committed: of a lane before its visits are answered, so that
// those who come again at once are known; of a chunk meanwhile, since whoever sent it sends the
// next one only then.
func (w *writer) learn() {
	g := w.generation
	learn := func() {
		w.draft.learn(g)
		g.numbers.learn(&w.draft)
	}
	if w.chunk == nil || w.chunk.ofMany {
		learn()
		return
	}
	w.learning.Go(learn)
}

// ensureIDs looks the entries up in the present generation, unless that was done before, and gets
// the ids of targets that are not there.
func (w *writer) ensureIDs(ctx context.Context, entries []entry) (err error) {
	if w.generation, err = w.caches.get(ctx); err != nil {
		return err
	}
	missing := false
	for i := range entries {
		e := &entries[i]
		e.known = false
		if e.generation != w.generation {
			w.generation.lookUp(e)
		}
		missing = missing || e.site.id == 0 || e.page.id == 0
	}
	if !missing {
		return nil
	}
	if err := w.findKnown(ctx, entries); err != nil {
		return err
	}
	return w.generation.targets.intern(ctx, w.db, entries)
}

// split finds the entries that the database refuses, by halves, so that only these fail. Unless
// their app has gone or changed under them, they get an internal error: what callers send has been
// checked before, so the fault is Footfall's or the tables'.
func (w *writer) split(ctx context.Context, entries []entry, err error) {
	if len(entries) == 1 {
		switch {
		case errors.Is(err, db.ErrAppGone):
			w.giveUp(entries, visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err))
		case errors.Is(err, db.ErrAppChanged):
			w.giveUp(entries, visit.Errorf(visit.Unavailable, "", "the app has just been changed; try again").Because(err))
		default:
			w.leaveOut(entries, fmt.Errorf("a visit cannot be stored: %w", err))
		}
		return
	}
	half := len(entries) / 2
	w.writeAll(ctx, entries[:half])
	w.writeAll(ctx, entries[half:])
}

// afterLostCommit deals with the first entries after the connection was lost, when their batch may
// have committed. It returns the entries that are still to be sent, or false if there is no time
// left.
func (w *writer) afterLostCommit(ctx context.Context, entries []entry, sent int, id [16]byte, try int) ([]entry, bool) {
	// Another database may answer next: one that was restored, or a standby that was promoted.
	w.caches.drop(w.generation)
	asking, cancel := w.within(db.DidCommitPatience * w.db.StatementTimeout())
	defer cancel()
	committed, err := w.db.DidCommit(asking, id)
	switch {
	case err != nil:
		w.giveUp(entries[:sent], &visit.Error{Kind: visit.Lost, Err: err,
			Message: "the connection to the database was lost: it is not known whether this visit was counted: ask /counts, or if it had an id, send it again with that"})
		return entries[sent:], true
	case committed:
		moved(entries[:sent])
		for i := range entries[:sent] {
			if entries[i].err = ErrNumbersLost; entries[i].repeated {
				entries[i].err = ErrRepeated
			}
		}
		return entries[sent:], true
	case !pause.Again(ctx, try):
		w.giveUp(entries, visit.Errorf(visit.Unavailable, "", "the database cannot count now; try again"))
		return nil, false
	}
	return entries, true
}

// mendDays deals with entries whose days the database refuses. It returns false if all of them have
// their answer or their error.
func (w *writer) mendDays(ctx context.Context, fault db.Fault, err error, entries []entry, sent, try int) bool {
	switch fault {
	case db.FaultNoDay:
		if err = w.makeDays(ctx, entries); err == nil && try < busyTries && pause.Again(ctx, try) {
			return true
		}
	case db.FaultGone:
		w.chunk.becomeLate(entries[:sent])
		if err = w.leaveGone(ctx, entries); err == nil {
			return false
		}
	case db.FaultLate:
		if w.chunk.becomeLate(entries[:sent]) {
			return true
		}
	default:
		var over bool
		if over, err = w.turnDays(ctx, entries[:sent]); err == nil && over && w.chunk == nil {
			w.leaveOver(ctx, entries)
			return false
		}
		if err == nil && try < busyTries {
			w.chunk.becomeLate(entries[:sent])
			return true
		}
	}
	w.giveUp(entries, visit.Errorf(visit.Unavailable, "", "the day cannot be counted yet; try again").Because(err))
	return false
}

// turnDays moves live entries to the last day of their site if that is later: another instance,
// whose clock is ahead, has begun the day. Those whose caller gave a time keep their day; over:
// there are some, of days before the last one.
func (w *writer) turnDays(ctx context.Context, entries []entry) (over bool, err error) {
	sites, _ := w.draft.batch.Targets.SiteDays()
	last, err := w.db.LastDays(ctx, sites)
	if err != nil {
		return false, err
	}
	for i := range entries {
		e := &entries[i]
		day := last[e.site.id]
		if day <= e.Day || e.When == Past {
			continue
		}
		e.generation = nil // to be looked up again, on another day or as one that may be late
		if e.When == Today {
			e.When, over = Past, true
			continue
		}
		if e.VisitorOn != nil {
			if e.Visitor, err = e.VisitorOn(ctx, day); err != nil {
				return false, err
			}
		}
		e.Day = day
	}
	return over, nil
}

func (w *writer) makeDays(ctx context.Context, entries []entry) error {
	var days []int32
	for i := range entries {
		if e := &entries[i]; !e.repeated && !slices.Contains(days, e.Day) {
			days = append(days, e.Day)
		}
	}
	_, err := w.db.MakeDays(ctx, days...)
	return err
}

func (w *writer) logFault(fault db.Fault, err error, visits int) {
	w.metrics.faults.WithLabelValues(fault.String()).Inc()
	level := slog.LevelWarn
	if w.expected(fault, err) {
		level = slog.LevelDebug
	}
	if missed, speak := w.pulse.faults.Next(fault, time.Now()); speak {
		w.pulse.log.Log(context.Background(), level, "a batch did not commit at once",
			"fault", fault.String(), "visits", visits, "error", err, "unlogged_before", missed)
	}
}

// expected reports whether a fault comes of what others do at the same time as they should, and
// needs nobody to look after it: the batch is sent again. (If that does not help either, its visits
// are refused, which their answers say.) What is left tells of a clock, a disk, a
// connection or tables that are not as they should be.
func (w *writer) expected(fault db.Fault, err error) bool {
	switch fault {
	case db.FaultMoved, // somebody else reads the same source
		db.FaultLate,  // the nightly task has closed a day
		db.FaultGone,  // or keeps it no longer
		db.FaultHeld,  // somebody erases
		db.FaultBusy,  // other transactions, or functions that a migration makes again
		db.FaultStale, // somebody or something was erased
		db.FaultDay:   // midnight, where clocks differ
		return true
	case db.FaultNoDay: // days to come are made ahead of time, and past days when they are needed
		return len(w.draft.batch.PastDays.Days) > 0
	case db.FaultHint: // another instance has counted the visitor
		return w.draft.hinted()
	case db.FaultData:
		return errors.Is(err, db.ErrAppGone) || errors.Is(err, db.ErrAppChanged)
	}
	return false
}

func fail(entries []entry, err error) {
	for i := range entries {
		entries[i].err = err
	}
}

// giveUp fails entries, and ends the chunk that they are of.
func (w *writer) giveUp(entries []entry, err error) {
	fail(entries, err)
	w.chunk.stop()
}
