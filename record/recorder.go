// Package record makes visits durable: it counts them in batches, each batch one transaction, and gives each visit the
// numbers of its own moment.
package record

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
	"footfall/visit"
)

// Options of Open. The zero value of a field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // default: nowhere
	Clock   func() time.Time      // default time.Now

	// MaxWait is how long a visit may have to wait for its batch; one that would wait longer is refused. Default 2 s.
	MaxWait time.Duration

	// Helpers that spare look-ups. They change no number.
	Filter       bool  // a Bloom filter of all visitors
	FilterMemory int64 // bytes that the filter may take; default 256 MiB
	Memory       int64 // bytes for remembering recent visitors; default none
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.MaxWait == 0 {
		o.MaxWait = 2 * time.Second
	}
	if o.FilterMemory == 0 {
		o.FilterMemory = 256 << 20
	}
	return o
}

// Visit is one to be counted: who came where, and when.
type Visit struct {
	App      int32
	CountsBy db.CountsBy // how the app told day and visitor
	Target   visit.Target
	Visitor  netip.Addr
	Day      int32
	NewPages int64 // it may make a page if no more are made that day; 0: any number
}

// Recorder counts visits in batches. While a lane writes one batch its next one gathers, so that the batches grow with
// the load and no timer is needed. A visit's page and site are in one lane, and no target is in two: lanes never
// wait for each other's locks. It is safe for concurrent use.
type Recorder struct {
	lanes   []*lane
	seed    maphash.Seed
	caches  *caches
	upkeep  *upkeep
	metrics *metrics
}

// Open starts a recorder on a migrated database. Close ends it; the database stays open.
func Open(ctx context.Context, d *db.DB, o Options) (*Recorder, error) {
	o = o.withDefaults()
	r := &Recorder{seed: maphash.MakeSeed(), metrics: newMetrics(o.Metrics)}
	r.caches = newCaches(d, o, r.metrics)
	r.upkeep = newUpkeep(d, o)
	if err := r.upkeep.makeDays(ctx); err != nil {
		return nil, fmt.Errorf("open recorder: %w", err)
	}
	if _, err := r.caches.get(ctx); err != nil { // so that the filter begins to read the tables now, not with the first visit
		r.caches.close()
		return nil, fmt.Errorf("open recorder: %w", err)
	}
	for range Lanes() {
		l := newLane(d, r.caches, o, r.metrics)
		r.lanes = append(r.lanes, l)
		go l.run()
	}
	r.upkeep.start()
	return r, nil
}

// Lanes is how many batches an instance writes side by side, each on a connection of its own. While the database works on the
// batch of one lane, another lane makes use of this machine's processors: one lane a processor. Beyond four, the batches
// would become small, and with them what a batch saves.
func Lanes() int { return min(4, runtime.GOMAXPROCS(0)) }

// Record returns when the visit has committed, or has failed. It does not listen to the caller's context: an accepted visit is
// counted with its batch, or refused with it when the batch has waited too long; both within bounded time.
func (r *Recorder) Record(v Visit) (visit.Answer, error) {
	e := entry{Visit: v}
	if now := r.caches.current.Load(); now != nil { // here, beside other visits, so that the lane need not
		now.lookUp(&e)
	}
	lane := r.lanes[maphash.String(r.seed, v.Target.Site)%uint64(len(r.lanes))]
	b, place, err := lane.accept(e)
	if err != nil {
		r.metrics.visits.WithLabelValues("refused").Inc()
		return visit.Answer{}, err
	}
	<-b.done
	mine := &b.entries[place]
	r.metrics.outcome(mine.err)
	if mine.other && mine.err == nil {
		r.metrics.other.Inc()
	}
	return mine.answer, mine.err
}

// Ready reports whether every day that may be counted now has its partition.
func (r *Recorder) Ready(ctx context.Context) error { return r.upkeep.ready(ctx) }

// Generation is a number that changes when all that is remembered of the tables must be forgotten: after an erasure, or where
// another database may answer. 0: nothing is remembered.
func (r *Recorder) Generation() uint64 {
	if now := r.caches.current.Load(); now != nil {
		return now.number
	}
	return 0
}

// Close refuses new visits, and returns when every accepted one has been answered and nothing runs in the background.
func (r *Recorder) Close() {
	for _, l := range r.lanes {
		l.close()
	}
	for _, l := range r.lanes {
		<-l.ended
	}
	r.caches.close()
	r.upkeep.close()
}

func (m *metrics) outcome(err error) {
	var told *visit.Error
	switch {
	case err == nil:
		m.visits.WithLabelValues("counted").Inc()
	case errors.As(err, &told) && told.Kind == visit.Lost:
		m.visits.WithLabelValues("lost").Inc()
	default:
		m.visits.WithLabelValues("refused").Inc()
	}
}
