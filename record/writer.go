package record

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"footfall/db"
	"footfall/visit"
)

const (
	// writePatience is how long a batch may take. It is as long as its statements may take one after the other, so that the
	// server is the first to give up, and tells.
	writePatience = 15 * time.Second
	// askPatience is how long it may take beyond that to learn what became of a batch whose connection was lost: a server that
	// was killed recovers first.
	askPatience = 10 * time.Second
	// busyTries is how often a batch that met others is sent again.
	busyTries = 20
)

// entry is one accepted visit. What the writer sets is read when its batch is done.
type entry struct {
	Visit

	// Set by generation.lookUp, before the entry is accepted where that can be, so that lanes need not; else by the writer.
	generation *generation // what site and page rest on
	site, page subject
	other      bool // they are (other): there was no room for the page

	answer visit.Answer
	err    error
}

// subject is a target as an entry's visitor comes to it.
type subject struct {
	id           int64 // 0: not known
	countedToday bool  // the visitor is known to be counted there on the entry's day
	rank         int64 // the visitor's, where countedToday
}

// writer makes the visits of a batch durable, whatever it meets. It is used by one goroutine.
type writer struct {
	db         *db.DB
	log        *slog.Logger
	metrics    *metrics
	caches     *caches     // shared with the other writers
	generation *generation // what the batch in hand is made from
	trust      trust
	draft      draft
}

func newWriter(d *db.DB, c *caches, o Options, m *metrics) *writer {
	return &writer{db: d, log: o.Log, metrics: m, caches: c, draft: newDraft()}
}

// write gives every entry its answer or its error. The context of no request is in it: a caller who left must not
// take others along.
func (w *writer) write(entries []entry) {
	ctx, cancel := context.WithTimeout(context.Background(), writePatience)
	defer cancel()
	w.writeAll(ctx, entries)
	w.generation = nil // a lane that rests must not keep alive what has been dropped
}

// writeAll sends the entries until each has its answer or its error.
func (w *writer) writeAll(ctx context.Context, entries []entry) {
	for try := 1; len(entries) > 0; try++ {
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
			if try >= busyTries || !pause(ctx, try) {
				fail(entries, visit.Errorf(visit.Unavailable, "", "the database is busy; try again").Because(err))
				return
			}
		case db.FaultNoDay:
			if err := w.makeDays(ctx, entries); err != nil || try >= busyTries || !pause(ctx, try) {
				fail(entries, visit.Errorf(visit.Unavailable, "", "the day cannot be counted yet; try again").Because(err))
				return
			}
		case db.FaultHint:
			if !w.draft.hinted() { // no hint was given: a row is there that should not be
				w.split(ctx, entries, err)
				return
			}
			w.metrics.wrongHints.Inc()
			w.trust.lose()
		case db.FaultData:
			w.split(ctx, entries, err)
			return
		case db.FaultUnknown:
			var sendAgain bool
			if entries, sendAgain = w.afterLostCommit(ctx, entries, sent, id, try); !sendAgain {
				return
			}
		default:
			fail(entries, visit.Errorf(visit.Unavailable, "", "the database cannot count now; try again").Because(err))
			return
		}
	}
}

// attempt sends as many of the first entries as fit one transaction, and answers them if it commits.
func (w *writer) attempt(ctx context.Context, entries []entry) (sent int, id [16]byte, err error) {
	if err := w.ensureIDs(ctx, entries); err != nil {
		return 0, id, err
	}
	id = uuid.Must(uuid.NewV7())
	sent = w.draft.fill(entries, w.generation, w.trust.hintsAllowed())
	w.draft.batch.ID = id
	if err := w.db.Write(ctx, &w.draft.batch, &w.draft.outcome); err != nil {
		return sent, id, err
	}
	w.draft.replay(entries[:sent])
	w.draft.learn(w.generation)
	w.trust.gain()
	w.metrics.spared(&w.draft.saved)
	return sent, id, nil
}

// ensureIDs sees to it that what is remembered of the entries is of the present generation, and that their targets have ids.
func (w *writer) ensureIDs(ctx context.Context, entries []entry) (err error) {
	if w.generation, err = w.caches.get(ctx); err != nil {
		return err
	}
	missing := false
	for i := range entries {
		e := &entries[i]
		if e.generation != w.generation {
			w.generation.lookUp(e)
		}
		missing = missing || e.site.id == 0 || e.page.id == 0
	}
	if !missing {
		return nil
	}
	return w.generation.targets.intern(ctx, w.db, entries)
}

// split finds the entries that the database refuses: only they fail. What callers send is checked before it comes
// here, so that this is a fault of Footfall or of the tables, and is answered so.
func (w *writer) split(ctx context.Context, entries []entry, err error) {
	if len(entries) == 1 {
		fail(entries, fmt.Errorf("a visit cannot be stored: %w", err))
		return
	}
	half := len(entries) / 2
	w.writeAll(ctx, entries[:half])
	w.writeAll(ctx, entries[half:])
}

// afterLostCommit deals with a batch of the first entries that may have committed. It returns what is left to be sent; false
// when time is up.
func (w *writer) afterLostCommit(ctx context.Context, entries []entry, sent int, id [16]byte, try int) ([]entry, bool) {
	w.caches.drop(w.generation) // it may be another database that answers next: a restored one, or a standby promoted
	committed, err := w.didCommit(id)
	switch {
	case err != nil:
		fail(entries[:sent], &visit.Error{Kind: visit.Lost, Err: err,
			Message: "the connection to the database was lost: it is not known whether this visit was counted: ask /counts"})
		return entries[sent:], true
	case committed:
		fail(entries[:sent], &visit.Error{Kind: visit.Lost, Message: "counted, but its numbers were lost: ask /counts"})
		return entries[sent:], true
	case !pause(ctx, try):
		fail(entries, visit.Errorf(visit.Unavailable, "", "the database cannot count now; try again"))
		return nil, false
	}
	return entries, true
}

// didCommit finds out what became of a batch whose connection was lost, as soon as the database answers again.
func (w *writer) didCommit(id [16]byte) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	for try := 1; ; try++ {
		committed, err = w.db.Claim(ctx, id)
		if err == nil || !pause(ctx, try) {
			return committed, err
		}
	}
}

func (w *writer) makeDays(ctx context.Context, entries []entry) error {
	made := map[int32]bool{}
	for i := range entries {
		day := entries[i].Day
		if made[day] {
			continue
		}
		if _, err := w.db.MakeDay(ctx, day); err != nil {
			return fmt.Errorf("make partition of day %d: %w", day, err)
		}
		made[day] = true
	}
	return nil
}

func (w *writer) logFault(fault db.Fault, err error, visits int) {
	w.metrics.faults.WithLabelValues(fault.String()).Inc()
	w.log.Warn("a batch did not commit at once", "fault", fault.String(), "visits", visits, "error", err)
}

func fail(entries []entry, err error) {
	for i := range entries {
		entries[i].err = err
	}
}

// pause waits a little, longer with each try; false when ctx has ended.
func pause(ctx context.Context, try int) bool {
	limit := min(time.Millisecond<<min(try, 9), 250*time.Millisecond)
	return sleep(ctx, limit/2+rand.N(limit/2)) //nolint:gosec // only to keep instances out of step
}
