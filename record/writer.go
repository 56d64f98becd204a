package record

import (
	"cmp"
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

// busyTries is the maximum number of attempts to send a batch that fails because of other transactions.
const busyTries = 20

// entry is a visit that was accepted to be counted, or a step of a chunk without a visit. A writer sets its answer or
// its error.
type entry struct {
	Visit

	// The following fields are set from the caches by generation.lookUp. Record calls lookUp before the lane accepts
	// the entry, to save work in the lane's only goroutine. The writer calls lookUp again if there was no generation
	// (set of caches) then, or if it has changed.
	generation *generation
	site, page entryTarget
	other      visit.Target // set if the visit counts for a target (other), because the app has reached its limit of new pages
	lacksTags  bool         // the cache lacks the ids of some of the visit's tags
	unresolved bool         // the visitor may be linked to a person; resolve finds the person
	person     netip.Addr   // the person for whom the visit counts

	tags            tag.Set // the visit's tags, returned by Tags, and the person's tags
	movedToLaterDay bool    // turnDays has moved the visit to a later day

	repeated bool  // set by findRepeated: the ID was counted before, or there is no visit
	step     *Step // the entry's step in a chunk; nil: not in a chunk

	answer visit.Answer
	err    error
}

// entryTarget is the cached data about an entry's site or page, and about the entry's visitor at this site or page.
type entryTarget struct {
	id           int64 // 0: not in the cache
	countedToday bool  // the visitor has been counted at the target on the entry's day
	rank         int64 // the visitor's rank, if countedToday
	tags         []int32
}

func (e *entry) lacksTarget() bool { return e.site.id == 0 || e.page.id == 0 }

// isPassed reports whether the entry has no visit and only moves a position.
func (e *entry) isPassed() bool { return e.step != nil && e.step.Visit == nil }

// job contains visits that a writer must count. If a lane's visits are all live and have no ids, all flags of the job
// are false.
type job struct {
	entries    []*entry // the entries that have no answer or error yet
	maxEntries int      // maximum number of entries of the next transaction

	ids        bool // some visits have ids (ids.go)
	past       bool // some visits are of past days (late.go)
	late       bool // the visits are sent as a late batch: they may be of any days, in any order (late.go)
	lateChosen bool // the value of late is final
	chunk      bool // the visits are a chunk: after the first failure, no further visit is counted (chunks.go)

	readGeneration uint64 // for inbox rows: the number of the generation that was present when they were read; 0 for other sources

	took time.Duration // how long the database took for the job's batches; they held their locks for at most this time
}

func newJob(entries []*entry) *job {
	j := &job{entries: entries, maxEntries: len(entries)}
	for _, e := range entries {
		j.ids = j.ids || e.ID != ""
		j.past = j.past || e.When == Past
	}
	return j
}

// pass removes this number of entries from the start of the job, because they have their answers or errors.
func (j *job) pass(entries int) { j.entries = j.entries[entries:] }

// fail sets the error of this number of entries at the start of the job, and removes them. In a chunk, it also fails
// all other entries, with ErrNotReached.
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

func (j *job) failAll(err error) { j.fail(len(j.entries), err) }

// failWhere fails and removes the entries for which the function why returns an error. It reports whether there were
// any.
func (j *job) failWhere(why func(*entry) error) bool {
	before := len(j.entries)
	j.entries = slices.DeleteFunc(j.entries, func(e *entry) bool {
		e.err = why(e)
		return e.err != nil
	})
	return len(j.entries) < before
}

// writer sends the visits of a job to the database until each visit is counted or has failed. It retries after most
// faults. Only one goroutine uses it.
type writer struct {
	db          *db.DB
	metrics     *metrics
	withTimeout func(time.Duration) (context.Context, context.CancelFunc)
	pulse       *pulse      // shared with the other writers
	caches      *caches     // shared with the other writers
	generation  *generation // the caches from which the present batch is made
	hints       hintPolicy
	draft       draft
	learning    sync.WaitGroup // the goroutine of chunkCommitted, which reads the draft
}

func newWriter(d *db.DB, c *caches, p *pulse, o Options, m *metrics) *writer {
	return &writer{db: d, metrics: m, withTimeout: o.within, pulse: p, caches: c, draft: newDraft()}
}

// write sets every entry's answer or error. It uses no request's context, because a caller who leaves
// must not cancel the batch for the other callers.
func (w *writer) write(j *job) {
	ctx, cancel := w.withTimeout(db.WritePatience * w.db.StatementTimeout())
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
			j.maxEntries = min(2*j.maxEntries, len(j.entries)) // after split has reduced maxEntries, it grows again step by step
			try = 0
		case db.FaultBusy, db.FaultStale, db.FaultID:
			if fault == db.FaultStale {
				w.caches.drop(w.generation)
			}
			if try >= busyTries || !pause.Again(ctx, try) {
				j.failAll(visit.Errorf(visit.Unavailable, "", "the database is busy; try again").Because(err))
			}
		case db.FaultDay:
			if failed := w.turnDays(ctx, j, sent); failed != nil || try >= busyTries {
				j.failAll(errDayUnavailable(cmp.Or(failed, err)))
			}
		case db.FaultNoDay:
			if failed := w.makeDays(ctx, j.entries); failed != nil || try >= busyTries || !pause.Again(ctx, try) {
				j.failAll(errDayUnavailable(cmp.Or(failed, err)))
			}
		case db.FaultLate, db.FaultTooOld, db.FaultLocked:
			w.handlePastDayFault(ctx, j, fault, err)
		case db.FaultMoved:
			j.failAll(ErrMoved)
		case db.FaultAhead: // this machine's clock was changed since it was measured, so measure it again
			err = errors.Join(err, w.db.MeasureClock(ctx))
			j.failAll(markLogged(visit.Errorf(visit.Unavailable, "", "this instance's clock was wrong; try again").Because(err)))
		case db.FaultHint:
			if !w.draft.hasHints() { // a key was violated, but not because of a wrong hint: the tables are faulty
				j.split(sent, err)
				try = 0
				break
			}
			w.metrics.wrongHints.Inc()
			w.hints.recordWrongHint()
		case db.FaultData:
			j.split(sent, err)
			try = 0
		case db.FaultUnknown:
			w.afterLostCommit(ctx, j, sent, id, try)
		default:
			w.pulse.record(err)
			j.failAll(markLogged(visit.Errorf(visit.Unavailable, "", "the database cannot count now; try again").Because(err)))
		}
	}
	w.generation = nil // so that an idle lane does not keep a dropped generation in memory
}

// attempt sends the entries at the start of the job to the database, as many as fit into one transaction. sent is the
// number of these entries. If the transaction commits, attempt sets their answers. If attempt returns an error, the
// error applies to all of them.
func (w *writer) attempt(ctx context.Context, j *job) (sent int, id [16]byte, err error) {
	w.learning.Wait()
	entries := j.entries[:min(j.maxEntries, len(j.entries))]
	if err := w.ensureIDs(ctx, j, entries); err != nil {
		return len(entries), id, err
	}
	if j.readGeneration != 0 && j.readGeneration != w.generation.number {
		return len(entries), id, ErrMoved
	}
	if j.past {
		if err := w.chooseLate(ctx, j); err != nil {
			return len(entries), id, err
		}
	}
	b := &w.draft.batch
	b.ID = uuid.Must(uuid.NewV7())
	sent = w.draft.fill(entries, w.generation, j.late, w.hints.areAllowed())
	entries = entries[:sent]
	addIDs(b, entries)
	if j.chunk {
		w.prepareChunk(entries)
	}
	begin := time.Now()
	err = w.db.Write(ctx, b, &w.draft.outcome)
	j.took += time.Since(begin)
	if err != nil {
		return sent, b.ID, err
	}
	w.pulse.record(nil)
	w.draft.replay(entries)
	if j.chunk {
		w.chunkCommitted(entries)
	} else {
		w.draft.learn(w.generation) // before callers get their answers, so that a client's next visit finds its visitor in the memory
	}
	w.hints.recordCommit()
	w.metrics.countLookUps(&w.draft.lookUps)
	return sent, b.ID, nil
}

// ensureIDs gets the present generation, and prepares the entries for sending. It looks up entries that were looked
// up in another generation, finds the persons of visitors, marks repeated entries, and gets the ids of missing
// targets and tags.
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

// split handles a batch that the database refuses because of some of its entries. It halves the number of entries per
// batch until the refused batch has only one entry, so that only the refused entries fail. If the app of such an
// entry was deleted or changed, the error states this. Otherwise it is an internal error: the visit was validated
// before, so the fault is in Footfall or in the tables.
func (j *job) split(sent int, err error) {
	switch {
	case sent > 1:
		j.maxEntries = sent / 2
	case errors.Is(err, db.ErrAppGone):
		j.fail(1, visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err))
	case errors.Is(err, db.ErrAppChanged):
		j.fail(1, visit.Errorf(visit.Unavailable, "", "the app has just been changed; try again").Because(err))
	default:
		j.fail(1, fmt.Errorf("a visit cannot be stored: %w", err))
	}
}

// afterLostCommit handles a batch whose connection was lost, so that it may or may not have committed. The batch has
// the entries at the start of the job, and sent is their number.
func (w *writer) afterLostCommit(ctx context.Context, j *job, sent int, id [16]byte, try int) {
	// The next response may come from another database, such as a restored one or a promoted standby. Its tables may
	// differ from the caches.
	w.caches.drop(w.generation)
	asking, cancel := w.withTimeout(db.DidCommitPatience * w.db.StatementTimeout())
	defer cancel()
	committed, err := w.db.DidCommit(asking, id)
	switch {
	case err != nil:
		j.fail(sent, visit.Errorf(visit.Lost, "", "the connection to the database was lost, so it is unknown whether this visit was counted: "+
			"query /counts, or if it had an id, send it again with the same id").Because(err))
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

// turnDays handles a batch that was refused because one of its sites was already counted on a later day. This happens
// if another instance, whose clock is ahead, has already started the next day. turnDays moves live entries to the
// site's last day. An entry whose time was passed by the caller keeps its day, and the job is then sent as a late
// batch.
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
			e.generation = nil // so that the entry is looked up again, as Past
			e.When, j.past, j.late = Past, true, true
		default:
			if e.VisitorOn != nil {
				if e.Visitor, err = e.VisitorOn(ctx, day); err != nil {
					return err
				}
			}
			e.generation, e.Day, e.movedToLaterDay = nil, day, true
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
