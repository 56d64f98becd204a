package inbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"footfall/db"
	"footfall/pause"
	"footfall/record"
	"footfall/visit"
)

const (
	// waitingAtMost is the maximum number of visits that wait in memory to be written to the table.
	waitingAtMost = 50_000
	// The writer is busy if it wrote gatheredMany or more visits at once within the last busyWindow, or if the present
	// write has already taken longer than slowWrite. The drainer waits while the writer is busy (drainer.yield), because
	// new visits need a response sooner than waiting visits need to be counted.
	gatheredMany = 32
	busyWindow   = 100 * time.Millisecond
	slowWrite    = 20 * time.Millisecond
	// rowVisits is the maximum number of visits in one row of the inbox, so that reading a row needs little memory.
	rowVisits = 2000
	// The visits of all locked apps together may fill 1/asideShare of the inbox. An app is locked while another transaction
	// holds a lock on its past days.
	asideShare = 4
	// busyTries is the maximum number of attempts to write visits, if PostgreSQL rolls back each attempt because of a
	// conflict with another transaction.
	busyTries = 20
)

// gathering contains visits that are written together. Until writer.run takes the gathering, writer.mu guards its fields.
// After that, only the goroutine of writer.run uses visits and errs. This goroutine closes done when the visits are
// written.
type gathering struct {
	visits []record.Visit
	errs   []error
	done   chan struct{}
}

// writer writes visits to the inbox. While it writes one gathering, it collects new visits in another one (next).
type writer struct {
	db      *db.DB
	metrics *metrics
	limit   int64
	wrote   chan struct{} // receives a value after each write, so that the drainer wakes up

	// written is the number of visits that this instance has written so far. waitingOffset is the number of waiting visits
	// that view.look last found, minus the value of written at that time. So waitingOffset plus written is approximately
	// the present number of waiting visits.
	waitingOffset, written atomic.Int64
	// refused contains the ids of the locked apps, if their waiting visits have filled the share of the inbox for locked
	// apps. Otherwise it is empty.
	refused atomic.Pointer[[]int32]

	mu             sync.Mutex // guards the following fields
	wake           sync.Cond  // signals that next or closed has changed
	closed         bool
	next           *gathering // visits for the next write; nil: none
	pending        int        // number of visits in next and in the present write
	since          time.Time  // when the present write started; zero: no write is running
	lastLargeWrite time.Time  // when a write of gatheredMany or more visits last started
}

func newWriter(d *db.DB, o Options, m *metrics) *writer {
	w := &writer{db: d, metrics: m, limit: cmp.Or(o.Limit, 10_000_000), wrote: make(chan struct{}, 1)}
	w.wake.L = &w.mu
	return w
}

// accept adds a visit to the next gathering. It returns this gathering and the visit's index in it.
func (w *writer) accept(v record.Visit) (*gathering, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stalled := time.Duration(0)
	if !w.since.IsZero() {
		stalled = time.Since(w.since)
	}
	switch {
	case w.closed:
		return nil, 0, visit.Errorf(visit.Unavailable, "", "the service is shutting down; try again")
	case w.pending >= waitingAtMost || stalled > w.db.StatementTimeout():
		return nil, 0, visit.Errorf(visit.Unavailable, "", "too many visits are waiting; try again later")
	case w.waitingOffset.Load()+w.written.Load()+int64(w.pending) >= w.limit:
		return nil, 0, visit.Errorf(visit.Unavailable, "", "the inbox is full: %d visits are waiting to be counted; try again later", w.limit)
	}
	if refused := w.refused.Load(); refused != nil && slices.Contains(*refused, v.App) {
		return nil, 0, visit.Errorf(visit.Unavailable, "",
			"visits of this app cannot be counted now, and the part of the inbox for such visits is full; try again later")
	}
	if w.next == nil {
		w.next = &gathering{done: make(chan struct{})}
		w.wake.Signal()
	}
	w.next.visits = append(w.next.visits, v)
	w.pending++
	return w.next, len(w.next.visits) - 1, nil
}

// updateLimits updates waitingOffset and refused after view.look has read the table inbox. written is the value of
// w.written before this read. If locked apps use more than their share, waitingOffset does not include the visits above the
// share, so that they do not reduce the space for other apps.
func (w *writer) updateLimits(apps []db.InboxLookRow, written int64) {
	var waiting, aside int64
	var locked []int32
	for _, app := range apps {
		waiting += app.Visits
		if app.IsLocked {
			aside += app.Visits
			locked = append(locked, app.AppID)
		}
	}
	share := max(w.limit/asideShare, 1)
	w.waitingOffset.Store(waiting - max(aside-share, 0) - written)
	if aside < share {
		locked = nil
	}
	w.refused.Store(&locked)
}

// isBusy reports whether many visits are arriving, or whether the present write takes too long.
func (w *writer) isBusy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.lastLargeWrite) < busyWindow || !w.since.IsZero() && time.Since(w.since) > slowWrite
}

// run writes gatherings until the writer is closed and all accepted visits are written.
func (w *writer) run() {
	for {
		g := w.take()
		if g == nil {
			return
		}
		g.errs = make([]error, len(g.visits))
		ctx, cancel := context.WithTimeout(context.Background(), db.WritePatience*w.db.StatementTimeout())
		w.write(ctx, g.visits, g.errs)
		cancel()
		w.mu.Lock()
		w.pending -= len(g.visits)
		w.since = time.Time{}
		w.mu.Unlock()
		close(g.done)
		select {
		case w.wrote <- struct{}{}:
		default:
		}
	}
}

func (w *writer) take() *gathering {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.next == nil {
		if w.closed {
			return nil
		}
		w.wake.Wait()
	}
	g := w.next
	w.next, w.since = nil, time.Now()
	if len(g.visits) >= gatheredMany {
		w.lastLargeWrite = w.since
	}
	return g
}

func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.wake.Signal()
}

// write writes visits to the inbox. If a visit cannot be written, write stores an error in errs at the visit's index.
func (w *writer) write(ctx context.Context, visits []record.Visit, errs []error) {
	rows, past := columns(visits)
	for try := 1; ; try++ {
		id := uuid.Must(uuid.NewV7())
		err := w.db.Accept(ctx, id, rows, past)
		fault := db.FaultOf(err)
		if fault == db.FaultUnknown {
			asking, cancel := context.WithTimeout(context.Background(), db.DidCommitPatience*w.db.StatementTimeout())
			committed, asked := w.db.DidCommit(asking, id)
			cancel()
			switch {
			case asked != nil:
				refuse(errs, visit.Errorf(visit.Lost, "", "the connection to the database was lost, so it is unknown whether "+
					"this visit was accepted: "+
					"if it had an id, send it again with the same id").Because(errors.Join(err, asked)))
				return
			case committed:
				fault = db.FaultNone
			default:
				fault = db.FaultBusy
			}
		}
		switch fault {
		case db.FaultNone:
			w.written.Add(int64(len(visits)))
			return
		case db.FaultBusy:
			if try < busyTries && pause.Again(ctx, try) {
				continue
			}
		case db.FaultData, db.FaultTooOld, db.FaultLocked:
			if half := len(visits) / 2; half > 0 {
				w.write(ctx, visits[:half], errs[:half])
				w.write(ctx, visits[half:], errs[half:])
				return
			}
			errs[0] = refusal(fault, err)
			return
		case db.FaultAhead: // this machine's clock has changed since MeasureClock was last called
			err = errors.Join(err, w.db.MeasureClock(ctx))
		}
		refuse(errs, visit.Errorf(visit.Unavailable, "", "the inbox cannot accept visits now; try again").Because(err))
		return
	}
}

// refusal returns the error for a visit that the database has refused with err.
func refusal(fault db.Fault, err error) error {
	switch {
	case fault == db.FaultTooOld:
		return visit.Errorf(visit.Invalid, "at", "the app no longer keeps visits of that day").Because(err)
	case fault == db.FaultLocked:
		return visit.Errorf(visit.Unavailable, "",
			"data of the app is being erased, and no visits of earlier days are accepted until that is done; try again later").Because(err)
	case errors.Is(err, db.ErrAppChanged):
		return visit.Errorf(visit.Unavailable, "", "the app has just been changed; try again").Because(err)
	}
	return err
}

func refuse(errs []error, err error) {
	for i := range errs {
		errs[i] = err
	}
}

// columns converts visits to rows of the table inbox. Visits of the same app and with the same settings are in one row, or
// in several rows of at most rowVisits visits. past contains the app and day of each visit to a past day.
func columns(visits []record.Visit) (rows []db.InboxPutParams, past db.PastDayColumns) {
	type group struct {
		app int32
		by  db.CountingSettings
	}
	type text struct {
		row  int
		text string
	}
	open, places, sets := map[group]int{}, map[text]int32{}, map[text]int16{}
	for i := range visits {
		v := &visits[i]
		g := group{v.App, v.CountsBy}
		at, there := open[g]
		if !there || len(rows[at].Pages) == rowVisits {
			at = len(rows)
			open[g] = at
			rows = append(rows, db.InboxPutParams{App: v.App, Tz: v.CountsBy.Tz, Visitor: v.CountsBy.Visitor, Ipv6Prefix: v.CountsBy.Ipv6Prefix})
		}
		r := &rows[at]
		place, there := places[text{at, v.Target.Page}]
		if !there {
			r.Uris = append(r.Uris, v.Target.Page)
			place = int32(len(r.Uris)) //nolint:gosec // at most rowVisits
			places[text{at, v.Target.Page}] = place
		}
		if v.ID != "" && r.Ids == nil {
			r.Ids = make([]string, len(r.Pages))
		}
		if r.Ids != nil {
			r.Ids = append(r.Ids, v.ID)
		}
		brought := int16(0)
		if v.Tags != nil {
			set := text{at, v.Tags().Text()}
			if brought = sets[set]; brought == 0 && set.text != "" {
				r.TagSets = append(r.TagSets, set.text)
				brought = int16(len(r.TagSets)) //nolint:gosec // at most rowVisits
				sets[set] = brought
			}
		}
		r.TagPlaces = append(r.TagPlaces, brought)
		r.Pages, r.Days, r.Ips = append(r.Pages, place), append(r.Days, v.Day), append(r.Ips, v.Visitor)
		r.NewPages = append(r.NewPages, int32(v.NewPages)) //nolint:gosec // at most apps.max_new_pages
		if v.When == record.Past {
			past.Add(v.App, v.Day)
		}
	}
	return rows, past
}
