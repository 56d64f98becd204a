package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"footfall/bench/literal"
	"footfall/bench/tables"
	"footfall/counter"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// The helpers of the contenders that have them are those that `footfall serve` has by default.
const (
	filterMemory = 256 << 20
	memoryBytes  = 64 << 20
)

// contender is one way of counting that is compared with the others.
type contender struct {
	ContenderAbout
	alone bool // counts one visit a transaction
	// prepare makes an empty database ready for open, outside of what is measured.
	prepare func(ctx context.Context, address string) error
	// open begins to count in the database. What it returns must be closed.
	open func(ctx context.Context, address string) (counting, error)
	// read returns what the tables hold after it was closed.
	read func(ctx context.Context, address string) (standing, error)

	helpers record.Options // of one that is the service: Filter and Memory, and their sizes
}

// counting is a contender that counts.
type counting interface {
	visit(ctx context.Context, r counter.Request) (visit.Answer, error)
	spent() (spending, error)
	close()
}

// spending is what a contender has used up so far.
type spending struct {
	asked   float64 // existence queries
	helpers int64   // bytes of its filter and memory
	outside int64   // of these, bytes that the Go heap does not hold
}

// contenders in the order of the tables.
var contenders = []contender{
	literally("naive", "one visit a transaction: look the visitor up, insert or not, add to the counters; wrong when two visits meet", literal.Naive, false),
	literally("naive+filter", "naive, but what a Bloom filter calls surely new is not looked up", literal.NaiveFilter, false),
	literally("baseline", "one visit a transaction, in one round trip: INSERT … ON CONFLICT DO NOTHING and counter upserts; exact", literal.Baseline, true),
	service("batched", "Footfall without helpers: visits that wait are counted in one transaction", record.Options{}, true),
	service("batched+filter", "batched, and a filter of all visitors spares look-ups of new ones", withFilter, true),
	service("batched+memory", "batched, and a memory of recent visitors spares look-ups of those", withMemory, true),
	service("batched+both", "batched with filter and memory: what `footfall serve` does", withBoth, true),
}

var (
	withFilter = record.Options{Filter: true, FilterMemory: filterMemory}
	withMemory = record.Options{Memory: memoryBytes}
	withBoth   = record.Options{Filter: true, FilterMemory: filterMemory, Memory: memoryBytes}
)

// noon is when all visits happen: one day, so that midnight does not fall into a run.
func noon() time.Time { return time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC) }

// literally is a contender that counts one visit a transaction.
func literally(name, about string, way literal.Way, exact bool) contender {
	return contender{
		ContenderAbout: ContenderAbout{name, about, exact}, alone: true,
		prepare: func(context.Context, string) error { return nil },
		open: func(ctx context.Context, address string) (counting, error) {
			store, err := literal.Open(ctx, address, way)
			if err != nil {
				return nil, err
			}
			return literalCounting{store, visit.DayOf(noon(), time.UTC)}, nil
		},
		read: literalTables,
	}
}

// literalCounting takes the same requests as the service.
type literalCounting struct {
	store *literal.Store
	day   int32
}

func (l literalCounting) visit(ctx context.Context, r counter.Request) (visit.Answer, error) {
	target, err := visit.Normalize(r.URI, nil)
	if err != nil {
		return visit.Answer{}, err
	}
	visitor, err := visit.VisitorOf(r.IP, 64)
	if err != nil {
		return visit.Answer{}, err
	}
	return l.store.Visit(ctx, target, visitor, l.day)
}

func (l literalCounting) spent() (spending, error) {
	bytes := l.store.FilterBytes()
	return spending{asked: float64(l.store.Asked()), helpers: bytes, outside: outsideHeap(bytes)}, nil
}

func (l literalCounting) close() { l.store.Close() }

func literalTables(ctx context.Context, address string) (standing, error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return standing{}, fmt.Errorf("bench: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s := newStanding()
	q := literal.New(conn)
	counters, err := q.CountersAll(ctx)
	if err != nil {
		return standing{}, fmt.Errorf("bench: read the counters: %w", err)
	}
	for _, c := range counters {
		s.sums[c.Uri] = sums{pv: c.Pv, uv: c.Uv, hot: c.Hot}
	}
	visitors, err := q.VisitorsAll(ctx)
	if err != nil {
		return standing{}, fmt.Errorf("bench: read the visitors: %w", err)
	}
	for _, v := range visitors {
		s.came(v.Uri, v.Ip, v.Rank)
	}
	ranks, days, err := literal.Wrong(ctx, conn)
	s.unproven = max(ranks, -ranks) + max(days, -days)
	return s, err
}

// service is a contender that is Footfall itself, in this process.
func service(name, about string, helpers record.Options, exact bool) contender {
	return contender{
		ContenderAbout: ContenderAbout{name, about, exact}, helpers: helpers,
		prepare: func(ctx context.Context, address string) error {
			d, err := openFootfall(ctx, address)
			if err != nil {
				return err
			}
			defer d.Close()
			_, err = internTargets(ctx, d) // a page is new once, and that is not what is measured
			return err
		},
		open: func(ctx context.Context, address string) (counting, error) { return openService(ctx, address, helpers) },
		read: serviceTables,
	}
}

// serviceCounting is a counter on a database.
type serviceCounting struct {
	db      *db.DB
	counter *counter.Counter
	metrics *prometheus.Registry
}

// openService returns when the filter, if there is one, has read the tables.
func openService(ctx context.Context, address string, o record.Options) (_ counting, err error) {
	s := serviceCounting{metrics: prometheus.NewRegistry()}
	if s.db, err = db.Open(ctx, address, db.Options{}); err != nil {
		return nil, err
	}
	o.Clock, o.Metrics = noon, s.metrics
	o.MaxWait = maxWait
	if s.counter, err = counter.Open(ctx, s.db, counter.Options{Options: o}); err != nil {
		s.db.Close()
		return nil, err
	}
	if !o.Filter {
		return s, nil
	}
	err = waitUntil(ctx, "the filter is ready", func() (bool, error) {
		told, err := gather(s.metrics)
		if err != nil {
			return false, err
		}
		ready, err := told.of(metricFilterReady)
		return ready == 1, err
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s serviceCounting) visit(ctx context.Context, r counter.Request) (visit.Answer, error) {
	return s.counter.Visit(ctx, r)
}

func (s serviceCounting) spent() (spending, error) {
	told, err := gather(s.metrics)
	if err != nil {
		return spending{}, err
	}
	asked, err1 := told.of(metricAsked)
	filter, err2 := told.of(metricFilterBytes)
	memory, err3 := told.of(metricMemoryBytes)
	return spending{
		asked: asked, helpers: int64(filter + memory), outside: outsideHeap(int64(filter)),
	}, errors.Join(err1, err2, err3)
}

func (s serviceCounting) close() {
	s.counter.Close()
	s.db.Close()
}

func serviceTables(ctx context.Context, address string) (standing, error) {
	conn, err := connect(ctx, address)
	if err != nil {
		return standing{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s := newStanding()
	q := tables.New(conn)
	counters, err := q.CountersByURI(ctx)
	if err != nil {
		return standing{}, fmt.Errorf("bench: read the counters: %w", err)
	}
	for _, c := range counters {
		s.sums[c.Uri] = sums{pv: c.Pv, uv: c.Uv, hot: c.Hot}
	}
	visitors, err := q.VisitorsByURI(ctx)
	if err != nil {
		return standing{}, fmt.Errorf("bench: read the visitors: %w", err)
	}
	for _, v := range visitors {
		s.came(v.Uri, v.Ip, v.Rank)
	}
	if s.unproven, err = q.TargetsAmiss(ctx); err != nil {
		return standing{}, fmt.Errorf("bench: check the tables: %w", err)
	}
	return s, nil
}

// gather sums a registry's metrics over their labels.
func gather(metrics prometheus.Gatherer) (figures, error) {
	families, err := metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	told := figures{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			// One of the two is there; the other's value is 0.
			told[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return told, nil
}

// outsideHeap is what of a filter's memory the Go heap does not hold: all of it where it is mapped.
func outsideHeap(filter int64) int64 {
	if runtime.GOOS == "linux" {
		return filter
	}
	return 0
}
