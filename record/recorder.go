// Package record counts visits durably. It writes visits in batches, with one transaction for each batch. For each
// visit, it returns the numbers at the moment of the visit.
//
// Recorder.Record (lane.go) puts a visit into a lane, which is a queue with its own writer. The writer (writer.go)
// converts visits to a db.Batch (draft.go), and DB.Write sends the batch to the database. Recorder.RecordChunk
// (chunks.go) counts many visits at once. It bypasses the lanes and uses a separate writer.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
	"footfall/visit"
	"footfall/visit/tag"
)

// Options configure Open. A field with the zero value has its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // default: the metrics are not registered
	Clock   func() time.Time      // default: the database's clock, db.DB.Now

	// MaxWait is how long a visit may wait until its batch is written. If a visit would have to wait longer, it is
	// refused. Default 2 s.
	MaxWait time.Duration

	// RememberIDs is for how many days ids are remembered. For the Idempotency-Key of a call, these days start when
	// the call was last sent. For the id of a visit, they start when the visit first arrived. Default 7.
	RememberIDs int

	// Overflow means that the caller puts a visit into the inbox if it would wait longer than MaxWait. For such a
	// visit, Record returns an error with the cause ErrOverloaded, and does not add it to the metrics as refused.
	Overflow bool

	// The following three options reduce look-ups of visitors in the tables. They do not affect the counted
	// numbers.
	Filter       bool  // use a Bloom filter of all visitors
	FilterMemory int64 // maximum size of the filter in bytes; default 256 MiB
	Memory       int64 // maximum size of the memory of recent visitors in bytes; default 0: none

	// Brief means that the recorder belongs to a command that runs next to a service, which already maintains the
	// tables. So each recurring task of the recorder first waits for one interval, and the filter reads the tables
	// only after the first visit has arrived.
	Brief bool

	// Calm means that each recurring task of the recorder first waits for one interval. Tests use Calm: most of them
	// end before that, so that these tasks never run in them.
	Calm bool

	// The following fields are for tests, which use them to control the time while the database hangs.
	now    func() time.Time                                          // the clock to measure how long visits wait; default time.Now
	within func(time.Duration) (context.Context, context.CancelFunc) // returns a context with a timeout; default: a real timeout
}

func (o Options) withDefaults(d *db.DB) Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxWait = cmp.Or(o.MaxWait, 2*time.Second)
	o.RememberIDs = cmp.Or(o.RememberIDs, 7)
	o.FilterMemory = cmp.Or(o.FilterMemory, 256<<20)
	if o.Clock == nil {
		o.Clock = d.Now
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.within == nil {
		o.within = func(d time.Duration) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), d)
		}
	}
	return o
}

// Visit is a visit to be counted: its target, its visitor, and its day.
type Visit struct {
	App      int32
	CountsBy db.CountingSettings // the app's settings with which Visitor and Day were computed
	Target   visit.Target
	Visitor  netip.Addr
	Day      int32
	// VisitorOn returns the visitor's address on another day. It is needed if the recorder moves the visit to another
	// day. It may be nil if the address is the same on all days, or if the visit keeps its day.
	VisitorOn func(ctx context.Context, day int32) (netip.Addr, error)
	When      When
	NewPages  int64 // maximum number of new pages of the app per day; 0: no limit
	// Tags returns the visit's tags. nil: no tags. Tags is called only if the visit may be its visitor's first visit
	// of the day. It may be called repeatedly, and by another goroutine.
	Tags func() tag.Set
	// ID makes it safe to send the visit again: if a visit with the same ID was counted before, this one is not
	// counted, and fails with ErrRepeated. "": no ID.
	ID string
	// Title is the page's title, as returned by visit.Title. "": unknown. SeenFrom is the network of the client that
	// has seen this title. If Vouched is true, the title is stored even if no other visitor has seen it.
	Title    string
	SeenFrom netip.Addr
	Vouched  bool
}

// When is the way in which the day of a visit was chosen.
type When int

// The values of When.
const (
	Live  When = iota // the present day, or the site's last day if that is later
	Today             // the caller passed a time on the present day; the visit keeps this day
	Past              // the caller passed a time; its day may be before the site's last day
)

// Recorder counts visits in batches. While a lane writes one batch, it collects the visits of the next batch, so
// batches become larger under load. All visits to a site and its pages use the same lane, except visits of past days.
// So lanes of live visits never wait for each other's locks. Chunks (RecordChunk) may lock the same rows, but only
// for a moment. A Recorder is safe for concurrent use.
type Recorder struct {
	db       *db.DB
	lanes    []*lane // the last lane is for visits of past days, because its batches may have to wait while an app is locked
	chunks   *chunks
	seed     maphash.Seed
	caches   *caches
	presence *presence
	titles   *titles
	pulse    *pulse
	upkeep   *upkeep
	metrics  *metrics

	overflowed atomic.Int64 // when the last visit had to go to the inbox, in nanoseconds since 1970
}

// Open starts a recorder on a migrated database. Close stops it, but leaves the database open.
func Open(ctx context.Context, d *db.DB, o Options) (*Recorder, error) {
	o = o.withDefaults(d)
	r := &Recorder{db: d, seed: maphash.MakeSeed(), pulse: newPulse(d, o.Log), metrics: newMetrics(o.Metrics)}
	r.presence = &presence{visitors: map[pair]struct{}{}}
	r.titles = &titles{clock: o.Clock, pending: map[int64]string{}}
	r.caches = newCaches(d, o, r.metrics)
	r.upkeep = newUpkeep(d, o, r.presence, r.titles, r.metrics)
	if err := r.upkeep.measureClock(ctx); err != nil {
		return nil, fmt.Errorf("open recorder: %w", err)
	}
	if err := r.upkeep.makeDays(ctx); err != nil {
		return nil, fmt.Errorf("open recorder: %w", err)
	}
	if !o.Brief { // so that the filter starts to read the tables before the first visit arrives
		if _, err := r.caches.get(ctx); err != nil {
			r.caches.close()
			return nil, fmt.Errorf("open recorder: %w", err)
		}
	}
	r.chunks = newChunks(d, r.caches, r.pulse, o, r.metrics)
	for range laneCount() + 1 {
		l := newLane(d, r.caches, r.pulse, o, r.metrics)
		r.lanes = append(r.lanes, l)
		go l.run()
	}
	r.upkeep.start()
	return r, nil
}

// laneCount returns the number of lanes for live visits: one per processor, at most four. Each lane writes on
// its own connection. While the database writes a batch of one lane, another lane can prepare its next batch.
// With more than four lanes, batches would become small and save little.
func laneCount() int { return min(4, runtime.GOMAXPROCS(0)) }

// Connections returns how many connections a Recorder needs in the pool for batches (db.Options.Writers):
//   - one for each lane, including the lane for past days
//   - one for chunks
//   - one for the inbox
//   - one to check whether a batch committed after its connection was lost
func Connections() int { return laneCount() + 4 }

// Ready returns nil if visits can be counted:
//   - The table visits has partitions for the present days of all time zones.
//   - No commit waits for a synchronous standby that does not respond.
//   - A batch was written recently, or a probe (a batch without visits) can be written.
func (r *Recorder) Ready(ctx context.Context) error {
	err := r.upkeep.ready(ctx)
	if err == nil {
		err = r.db.AwaitsStandby(ctx)
	}
	if err == nil {
		err = r.pulse.ready(ctx)
	}
	if verr := (*visit.Error)(nil); err == nil || errors.As(err, &verr) {
		return err
	}
	return visit.Errorf(visit.Unavailable, "", "visits cannot be counted now: %s", db.Reason(err)).Because(err)
}

// DaysLeft returns the number of consecutive days after today for which the table visits has partitions. Upkeep and
// Ready update this number.
func (r *Recorder) DaysLeft() int { return int(r.upkeep.daysLeft.Load()) }

// Generation returns the number of the present caches, or 0 if there are no caches at present. The number changes
// when the caches are dropped. This happens after an erasure, for example, or after a lost connection, because a
// different database may be at the other end of the new connection. Callers that cache contents of the tables must
// drop them when the number changes.
func (r *Recorder) Generation() uint64 {
	if now := r.caches.current.Load(); now != nil {
		return now.number
	}
	return 0
}

// Close refuses new visits, and returns when every accepted visit has its answer and all background work has
// stopped.
func (r *Recorder) Close() {
	for _, l := range r.lanes {
		l.close()
	}
	for _, l := range r.lanes {
		<-l.runEnded
	}
	r.chunks.close()
	r.caches.close()
	r.upkeep.close()
}
