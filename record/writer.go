package record

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"footfall/db"
	"footfall/pause"
	"footfall/visit"
	"footfall/visit/tag"
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
	lacksTags  bool         // the ids of some of its tags are not in the cache
	unresolved bool         // its visitor may stand for somebody else, which people.go finds out
	person     netip.Addr   // as whom it counts: its visitor, or for whom that one stands

	read   tag.Set // what Tags has returned, and what the person has
	turned bool    // turnDays has moved it to a later day

	repeated bool  // a visit was counted with its ID before, as far as the last attempt knows; or it has none
	step     *Step // of a chunk; nil: it came by itself

	answer visit.Answer
	err    error
}

// entryTarget is what the caches hold of an entry's site or page, and of the visitor there.
type entryTarget struct {
	id           int64 // 0: not in the cache
	countedToday bool  // the visitor has been counted at the target on the entry's day
	rank         int64 // of the visitor, if countedToday
	tags         []int32
}

func (e *entry) lacksTarget() bool { return e.site.id == 0 || e.page.id == 0 }

// isPassed reports whether the entry has no visit, and only moves a position.
func (e *entry) isPassed() bool { return e.step != nil && e.step.Visit == nil }

// job is visits that a writer makes durable. A live visit without an id needs nothing of what its
// flags are about.
type job struct {
	entries []*entry // that have neither an answer nor an error yet
	most    int      // how many of them the next transaction may have

	ids        bool // some visits have ids (ids.go)
	past       bool // some are of past days (late.go)
	late       bool // they are sent as visits of any days, in any order (late.go)
	lateChosen bool // whether they have to be is certain
	chunk      bool // they are a chunk: after the first that is not counted none is (chunks.go)

	read uint64 // the number of the generation in which they were read from the database; 0: they come from elsewhere

	took time.Duration // how long the database has had batches of it, and so its locks at most
}

func newJob(entries []*entry) *job {
	j := &job{entries: entries, most: len(entries)}
	for _, e := range entries {
		j.ids = j.ids || e.ID != ""
		j.past = j.past || e.When == Past
	}
	return j
}

// pass goes on behind the first entries, which have their answers or their errors.
func (j *job) pass(entries int) { j.entries = j.entries[entries:] }

// fail fails the first entries, and with them the rest of a chunk.
func (j *job) fail(entries int, err error) {
	for i, e := range j.entries {
		switch {
		case i < entries:
			e.err = err
		case j.chunk:
			e.err = ErrNotReached
		}
	}
	if j.chunk {
		entries = len(j.entries)
	}
	j.pass(entries)
}

// failAll fails all entries that are left.
func (j *job) failAll(err error) { j.fail(len(j.entries), err) }

// without fails the entries for which there is an error, and reports whether there is one. The
// others are written.
func (j *job) without(why func(*entry) error) bool {
	before := len(j.entries)
	j.entries = slices.DeleteFunc(j.entries, func(e *entry) bool {
		e.err = why(e)
		return e.err != nil
	})
	return len(j.entries) < before
}

// writer makes the visits of a job durable, whatever faults it meets. One goroutine uses it.
type writer struct {
	db         *db.DB
	metrics    *metrics
	within     func(time.Duration) (context.Context, context.CancelFunc)
	pulse      *pulse      // shared with the other writers
	caches     *caches     // likewise
	generation *generation // the caches from which the present batch is made
	hints      hintPolicy
	draft      draft
	learning   sync.WaitGroup // of the last batch of a chunk, by a goroutine that reads the draft
}

func newWriter(d *db.DB, c *caches, p *pulse, o Options, m *metrics) *writer {
	return &writer{db: d, metrics: m, within: o.within, pulse: p, caches: c, draft: newDraft()}
}

// write gives every entry its answer or its error. It uses no request's context, because a caller
// who leaves must not end the batch for the others.
func (w *writer) write(j *job) {
	ctx, cancel := w.within(db.WritePatience * w.db.StatementTimeout())
	defer cancel()
	for try := 1; len(j.entries) > 0; try++ {
		sent, id, err := w.attempt(ctx, j)
		if errors.Is(err, ErrMoved) {
			j.failAll(err)
			break
		}
		fault := db.FaultOf(err)
		if fault != db.FaultNone {
			w.logFault(fault, err, len(j.entries))
		}
		switch fault {
		case db.FaultNone:
			j.pass(sent)
			j.most = min(2*j.most, len(j.entries)) // less than all behind what the database has refused
			try = 0
		case db.FaultBusy, db.FaultStale, db.FaultID:
			if fault == db.FaultStale {
				w.caches.drop(w.generation)
			}
			if try >= busyTries || !pause.Again(ctx, try) {
				j.failAll(visit.Errorf(visit.Unavailable, "", "the database is busy; try again").Because(err))
			}
		case db.FaultDay:
			if err = w.turnDays(ctx, j, sent); err != nil || try >= busyTries {
				j.failAll(dayNotYet(err))
			}
		case db.FaultNoDay:
			if err = w.makeDays(ctx, j.entries); err != nil || try >= busyTries || !pause.Again(ctx, try) {
				j.failAll(dayNotYet(err))
			}
		case db.FaultLate, db.FaultTooOld, db.FaultLocked:
			w.mendPastDays(ctx, j, fault, err)
		case db.FaultMoved:
			j.failAll(ErrMoved)
		case db.FaultAhead: // somebody has set this machine's clock since it was measured
			err = errors.Join(err, w.db.MeasureClock(ctx))
			j.failAll(logged(visit.Errorf(visit.Unavailable, "", "this instance's clock was wrong; try again").Because(err)))
		case db.FaultHint:
			if !w.draft.hinted() { // then it was no hint that is wrong, but the tables
				j.split(sent, err)
				try = 0
				break
			}
			w.metrics.wrongHints.Inc()
			w.hints.wrong()
		case db.FaultData:
			j.split(sent, err)
			try = 0
		case db.FaultUnknown:
			w.afterLostCommit(ctx, j, sent, id, try)
		default:
			w.pulse.saw(err)
			j.failAll(logged(visit.Errorf(visit.Unavailable, "", "the database cannot count now; try again").Because(err)))
		}
	}
	w.generation = nil // an idle lane must not keep one in memory that has been dropped
}

// attempt sends as many of the first entries as fit one transaction, and answers them if that
// commits. sent is how many entries an error is about.
func (w *writer) attempt(ctx context.Context, j *job) (sent int, id [16]byte, err error) {
	w.learning.Wait()
	entries := j.entries[:min(j.most, len(j.entries))]
	if err := w.ensureIDs(ctx, j, entries); err != nil {
		return len(entries), id, err
	}
	if j.read != 0 && j.read != w.generation.number {
		return len(entries), id, ErrMoved
	}
	if j.past {
		if err := w.chooseLate(ctx, j); err != nil {
			return len(entries), id, err
		}
	}
	b := &w.draft.batch
	b.ID = uuid.Must(uuid.NewV7())
	sent = w.draft.fill(entries, w.generation, j.late, w.hints.allowed())
	entries = entries[:sent]
	addIDs(b, entries)
	if j.chunk {
		w.announce(entries)
	}
	begin := time.Now()
	err = w.db.Write(ctx, b, &w.draft.outcome)
	j.took += time.Since(begin)
	if err != nil {
		return sent, b.ID, err
	}
	w.pulse.saw(nil)
	w.draft.replay(entries)
	if j.chunk {
		w.chunkCommitted(entries)
	} else {
		w.draft.learn(w.generation) // before the answers, so that those who come again at once are remembered
	}
	w.hints.committed()
	w.metrics.countLookUps(&w.draft.lookUps)
	return sent, b.ID, nil
}

// ensureIDs looks the entries up in the present generation, unless that was done before, finds out
// for whom their visitors stand, and gets the ids of targets and tags that are not there.
func (w *writer) ensureIDs(ctx context.Context, j *job, entries []*entry) (err error) {
	if w.generation, err = w.caches.get(ctx); err != nil {
		return err
	}
	unresolved := false
	for _, e := range entries {
		if !e.isPassed() && e.generation != w.generation {
			w.generation.lookUp(e)
		}
		unresolved = unresolved || e.unresolved
	}
	if unresolved {
		if err := w.resolve(ctx, entries); err != nil {
			return err
		}
	}
	missing, untagged := false, false
	for _, e := range entries {
		if !e.isPassed() {
			missing, untagged = missing || e.lacksTarget(), untagged || e.lacksTags
		}
	}
	if j.ids {
		if err := w.findRepeated(ctx, entries); err != nil {
			return err
		}
	}
	if missing {
		err = w.generation.targets.intern(ctx, w.db, entries)
	}
	if err == nil && untagged {
		err = w.generation.tags.intern(ctx, w.db, entries)
	}
	return err
}

// split finds the entries that the database refuses, by halves, so that only these fail. Unless
// their app was deleted or changed under them, they get an internal error: what callers send has been
// checked before, so the fault is Footfall's or the tables'.
func (j *job) split(sent int, err error) {
	switch {
	case sent > 1:
		j.most = sent / 2
	case errors.Is(err, db.ErrAppGone):
		j.fail(1, visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err))
	case errors.Is(err, db.ErrAppChanged):
		j.fail(1, visit.Errorf(visit.Unavailable, "", "the app has just been changed; try again").Because(err))
	default:
		j.fail(1, fmt.Errorf("a visit cannot be stored: %w", err))
	}
}

// afterLostCommit deals with the first entries after the connection was lost, when their batch may
// have committed.
func (w *writer) afterLostCommit(ctx context.Context, j *job, sent int, id [16]byte, try int) {
	// Another database may answer next: one that was restored, or a standby that was promoted.
	w.caches.drop(w.generation)
	asking, cancel := w.within(db.DidCommitPatience * w.db.StatementTimeout())
	defer cancel()
	committed, err := w.db.DidCommit(asking, id)
	switch {
	case err != nil:
		j.fail(sent, visit.Errorf(visit.Lost, "", "the connection to the database was lost: it is not known whether this visit was counted: "+
			"ask /counts, or if it had an id, send it again with that").Because(err))
	case committed:
		if j.chunk {
			movePositions(j.entries[:sent])
		}
		for _, e := range j.entries[:sent] {
			e.err = ErrNumbersLost
			if e.repeated {
				e.err = ErrRepeated
			}
		}
		j.pass(sent)
	case !pause.Again(ctx, try):
		j.failAll(visit.Errorf(visit.Unavailable, "", "the database cannot count now; try again"))
	}
}

// turnDays moves live entries to the last day of their site if that is later: another instance,
// whose clock is ahead, has begun the day. Those whose caller gave a time keep their day, and are
// late where it is not the last one.
func (w *writer) turnDays(ctx context.Context, j *job, sent int) error {
	sites, _ := w.draft.batch.Targets.SiteDays()
	last, err := w.db.LastDays(ctx, sites)
	if err != nil {
		return err
	}
	for _, e := range j.entries[:sent] {
		day := last[e.site.id]
		switch {
		case e.When == Past:
			j.late = true
		case day <= e.Day:
		case e.When == Today:
			e.generation = nil // to be looked up again, as one that may be late
			e.When, j.past, j.late = Past, true, true
		default:
			if e.VisitorOn != nil {
				if e.Visitor, err = e.VisitorOn(ctx, day); err != nil {
					return err
				}
			}
			e.generation, e.Day, e.turned = nil, day, true
		}
	}
	return nil
}

func (w *writer) makeDays(ctx context.Context, entries []*entry) error {
	var days []int32
	for _, e := range entries {
		if !e.repeated && !slices.Contains(days, e.Day) {
			days = append(days, e.Day)
		}
	}
	_, err := w.db.MakeDays(ctx, days...)
	return err
}
