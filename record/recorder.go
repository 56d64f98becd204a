// Package record stores visits durably. It counts them in batches, each of which is one transaction, and
// returns for each visit the numbers at that moment.
//
// Recorder.Record (lane.go) puts a visit into a lane. The lane's writer makes a draft of each batch, and
// db.Write sends it to the database. Large numbers of visits bypass the lanes through a separate writer
// (chunks.go).
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

// Options configure Open. A zero field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // default: nowhere
	Clock   func() time.Time      // default: the database's clock, db.DB.Now

	// MaxWait is how long a visit may wait for its batch. A visit that would wait longer is refused.
	// Default 2 s.
	MaxWait time.Duration

	// RememberIDs is for how many days a call is remembered after it was last sent, and a visit's id after it
	// first arrived. Default 7.
	RememberIDs int

	// Overflow: the caller puts visits that would wait longer than MaxWait into the inbox. For these
	// visits, Record returns ErrOverloaded, and they do not count as refused.
	Overflow bool

	// The following options save look-ups in the tables. They do not affect numbers.
	Filter       bool  // use a Bloom filter of all visitors
	FilterMemory int64 // maximum size of the filter in bytes; default 256 MiB
	Memory       int64 // maximum size of the memory of recent visitors in bytes; default 0: none

	// Brief: the recorder belongs to a command that runs next to the service. The service maintains the
	// tables, so upkeep starts only after its first interval, and the filter reads the tables only once
	// visits are counted.
	Brief bool

	// Calm: upkeep starts after its first interval, not immediately. For tests, because most tests end
	// before that.
	Calm bool

	// Tests with hanging databases control the time with the following fields.
	now    func() time.Time                                          // the clock for waiting visits; default time.Now
	within func(time.Duration) (context.Context, context.CancelFunc) // a context with a timeout; default: by the real clock
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
	CountsBy db.CountsBy // the app's settings with which Visitor and Day were computed
	Target   visit.Target
	Visitor  netip.Addr
	Day      int32
	// VisitorOn returns the visitor's address on another day. It is nil unless the app hashes
	// visitors by day.
	VisitorOn func(ctx context.Context, day int32) (netip.Addr, error)
	When      When
	NewPages  int64 // how many new pages the app may have per day; 0: any number
	// Tags returns the visit's tags; nil: none. It is called only if the visit may be its visitor's first one
	// of the day. The call may happen after Record has returned.
	Tags func() tag.Set
	// ID makes it safe to send the visit again: a second visit with the same ID is not counted, and fails
	// with ErrRepeated. "": no ID.
	ID string
	// Title is the page's title, as visit.Title returns it; "": unknown. SeenFrom is the network of the client
	// that has seen the title. If Vouched, the title counts without the agreement of other visitors.
	Title    string
	SeenFrom netip.Addr
	Vouched  bool
}

// When is how a visit's day was chosen.
type When int

// The days of visits.
const (
	Live  When = iota // the present day, or the site's last day if that is later
	Today             // the present day according to the time that the caller gave; the visit keeps this day
	Past              // a day according to the time that the caller gave; it may be before the site's last day
)

// Recorder counts visits in batches. While a lane writes one batch, it collects the next one, so that batches
// grow with the load without a timer. All pages of a site are in the site's lane, so that lanes never wait for
// each other's locks. Chunks hold their locks only for a moment. A Recorder is safe for concurrent use.
type Recorder struct {
	db      *db.DB
	lanes   []*lane // the last one is for past days, whose batches may have to wait for a locked app
	chunks  *chunks
	seed    maphash.Seed
	caches  *caches
	here    *here
	titles  *titles
	pulse   *pulse
	upkeep  *upkeep
	metrics *metrics

	overflowed atomic.Int64 // the time of the last overflow in nanoseconds
}

// Open starts a recorder on a migrated database. Close stops it, but leaves the database open.
func Open(ctx context.Context, d *db.DB, o Options) (*Recorder, error) {
	o = o.withDefaults(d)
	r := &Recorder{db: d, seed: maphash.MakeSeed(), pulse: newPulse(d, o.Log), metrics: newMetrics(o.Metrics)}
	r.here = &here{came: map[pair]struct{}{}}
	r.titles = &titles{clock: o.Clock, told: map[int64]string{}}
	r.caches = newCaches(d, o, r.metrics)
	r.upkeep = newUpkeep(d, o, r.here, r.titles, r.metrics)
	if err := r.upkeep.measureClock(ctx); err != nil {
		return nil, fmt.Errorf("open recorder: %w", err)
	}
	if err := r.upkeep.makeDays(ctx); err != nil {
		return nil, fmt.Errorf("open recorder: %w", err)
	}
	if !o.Brief { // the filter starts to read the tables before the first visit
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

// laneCount returns how many batches of live visits an instance writes concurrently, each on its own
// connection: one per processor, because one lane can prepare a batch while the database writes another
// lane's. With more than four lanes, batches would become small and save little.
func laneCount() int { return min(4, runtime.GOMAXPROCS(0)) }

// Connections returns how many connections for batches a Recorder needs (db.Options.Writers): one for each
// lane including the lane for past days, one for chunks, one for the inbox, and one to find out, after a
// connection was lost, whether its batch committed.
func Connections() int { return laneCount() + 4 }

// Ready returns nil if visits can be counted: a batch was written recently or a probe succeeds, no commit
// waits for a synchronous standby that does not respond, and the present days of all time zones have
// partitions.
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

// DaysLeft returns for how many days after today partitions exist, as of the last Ready or upkeep.
func (r *Recorder) DaysLeft() int { return int(r.upkeep.left.Load()) }

// Generation returns a number that changes whenever the caches are dropped, for example after an erasure, or
// when another database may respond. Callers must then drop their own cached contents of the tables. 0 means
// that there are no caches at present.
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
		<-l.ended
	}
	r.chunks.close()
	r.caches.close()
	r.upkeep.close()
}
