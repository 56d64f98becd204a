// Package record makes visits durable. It counts them in batches, each of which is one transaction,
// and gives each visit the numbers of its own moment.
//
// The way of a visit: Recorder.Record (lane.go) puts it into a lane, the lane's writer makes a draft
// of each batch, and db.Write sends that to the database. Many visits at once go beside the lanes,
// through a writer of their own (chunks.go).
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

// Options of Open. The zero value of a field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // default: nowhere
	Clock   func() time.Time      // default: the database's, as db.DB.Now tells it

	// MaxWait is how long a visit may have to wait for its batch. A visit that would have to wait
	// longer is refused. Default 2 s.
	MaxWait time.Duration

	// RememberIDs is for how many days a call is remembered after it was last sent, and the id of a
	// visit after it came first. Default 7.
	RememberIDs int

	// Overflow: the caller puts visits into the inbox that would wait for longer than MaxWait. They
	// fail with ErrOverloaded, and do not count as refused.
	Overflow bool

	// These save look-ups in the tables. They change no number.
	Filter       bool  // have a Bloom filter of all visitors
	FilterMemory int64 // bytes that the filter may take; default 256 MiB
	Memory       int64 // bytes that the memory of recent visitors may take; default 0: none

	// Brief: a command counts next to the service, which keeps the tables in order. Upkeep starts after its
	// first interval, and the filter reads the tables once visits are counted.
	Brief bool

	// Calm: upkeep begins after its first interval, and not at once. For tests, most of which have
	// ended by then.
	Calm bool

	// Tests of what hangs let time pass themselves.
	now    func() time.Time                                          // by which visits wait; default time.Now
	within func(time.Duration) (context.Context, context.CancelFunc) // a time that runs out; default by the clock
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

// Visit is a visit to be counted: which visitor came where, and on which day.
type Visit struct {
	App      int32
	CountsBy db.CountsBy // the settings of the app from which Visitor and Day were made
	Target   visit.Target
	Visitor  netip.Addr
	Day      int32
	// VisitorOn returns the visitor on another day. It is nil unless the app hashes visitors by
	// day.
	VisitorOn func(ctx context.Context, day int32) (netip.Addr, error)
	When      When
	NewPages  int64 // how many new pages the app may have a day; 0: any number
	// Tags reads what else the visit brings; nil: nothing. It is called only if the visit may be the
	// first of its visitor on its day, by the caller of Record or later.
	Tags func() tag.Set
	// ID makes the visit repeatable: what is sent with it again counts nothing, and is ErrRepeated.
	// "": it has none.
	ID string
	// Title is what the page calls itself, as visit.Title writes it; "": it is not told. SeenFrom is the
	// network of whoever has seen it. The caller may vouch for it: then nobody else has to agree.
	Title    string
	SeenFrom netip.Addr
	Vouched  bool
}

// When is how the day of a visit was chosen.
type When int

// The days of visits.
const (
	Live  When = iota // it is the present one, and the last one of the site where that is later
	Today             // it is the present one, by a time that the caller gave: the visit keeps it
	Past              // by such a time it may be before the last one of the site
)

// Recorder counts visits in batches. While a lane writes one batch, its next one gathers, so
// batches grow with the load and no timer is needed. All pages of a site are in the site's lane, so
// lanes never wait for each other's locks; those of chunks are held for moments. A Recorder is safe
// for concurrent use.
type Recorder struct {
	db      *db.DB
	lanes   []*lane // the last one is of past days, whose batches may have to wait for an app that is locked
	chunks  *chunks
	seed    maphash.Seed
	caches  *caches
	here    *here
	titles  *titles
	pulse   *pulse
	upkeep  *upkeep
	metrics *metrics

	overflowed atomic.Int64 // when a visit did so last, in nanoseconds
}

// Open starts a recorder on a migrated database. Close ends it; the database stays open.
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
	if !o.Brief { // the filter starts to read the tables now, rather than with the first visit
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

// laneCount is how many batches of live visits an instance writes side by side, each on a
// connection of its own: one for each processor, since one lane can prepare a batch while the
// database works on that of another. With more than four, batches would become small and save
// little.
func laneCount() int { return min(4, runtime.GOMAXPROCS(0)) }

// Connections is how many connections for batches a Recorder needs (db.Options.Writers): one for
// each lane, that of past days included, one for chunks, one for the inbox, and one to
// find out whether a batch committed whose connection was lost.
func Connections() int { return laneCount() + 4 }

// Ready returns an error, which says why, unless a batch was written of late or one can be, nothing
// waits in vain for the synchronous standby, and every day that it is now somewhere has its partition.
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

// DaysLeft is for how many days after today visits can be counted, unless days are made, as Ready saw it last.
func (r *Recorder) DaysLeft() int { return int(r.upkeep.left.Load()) }

// Generation is a number that changes whenever the caches are dropped, as after an erasure or when
// another database may answer. Callers who keep anything of the tables must drop it then. 0 means
// that there are no caches at present.
func (r *Recorder) Generation() uint64 {
	if now := r.caches.current.Load(); now != nil {
		return now.number
	}
	return 0
}

// Close refuses new visits, and returns when every accepted visit has been answered and nothing
// runs in the background.
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
