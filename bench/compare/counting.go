package compare

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"footfall/bench"
	"footfall/bench/literal"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/counter"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// maxWait lets the service refuse nobody on a machine that is busy with something else: a refused
// visit ends a comparison.
const maxWait = time.Minute

// noon is when all visits in this process happen: one day, so that midnight does not fall into a
// run.
func noon() time.Time { return time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC) }

// literalCounting takes the same requests as the service.
type literalCounting struct {
	store *literal.Store
	day   int32
}

func openLiterally(ctx context.Context, address string, way literal.Way) (counting, error) {
	store, err := literal.Open(ctx, address, way)
	if err != nil {
		return nil, err
	}
	return literalCounting{store, visit.DayOf(noon(), time.UTC)}, nil
}

func (l literalCounting) visit(ctx context.Context, r counter.Request) (visit.Answer, error) {
	target, err := visit.Normalize(r.URI, nil)
	if err != nil {
		return visit.Answer{}, err
	}
	visitor, err := netip.ParseAddr(r.IP)
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
		s.sums[c.Uri] = load.Sums{PV: c.Pv, UV: c.Uv, Hot: c.Hot}
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
	o.Clock, o.Metrics, o.MaxWait = noon, s.metrics, maxWait
	if s.counter, err = counter.Open(ctx, s.db, counter.Options{Options: o}); err != nil {
		s.db.Close()
		return nil, err
	}
	if !o.Filter {
		return s, nil
	}
	err = bench.WaitUntil(ctx, "the filter is ready", func() (bool, error) {
		told, err := gather(s.metrics)
		if err != nil {
			return false, err
		}
		ready, err := told.Of(bench.MetricFilterReady)
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
	asked, helpers, err := usedUp(told)
	return spending{asked: asked, helpers: helpers, outside: outsideHeap(int64(told[bench.MetricFilterBytes]))}, err
}

// usedUp is what the service tells of its existence queries, and of the bytes of its filter and
// memory.
func usedUp(told bench.Figures) (asked float64, helpers int64, err error) {
	asked, err1 := told.Of(bench.MetricAsked)
	filter, err2 := told.Of(bench.MetricFilterBytes)
	memory, err3 := told.Of(bench.MetricMemoryBytes)
	return asked, int64(filter + memory), errors.Join(err1, err2, err3)
}

func (s serviceCounting) close() {
	s.counter.Close()
	s.db.Close()
}

func serviceTables(ctx context.Context, address string) (standing, error) {
	conn, err := bench.Connect(ctx, address, nil)
	if err != nil {
		return standing{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s := newStanding()
	q := tables.New(conn)
	before, err := q.PreloadByURI(ctx)
	if err != nil {
		return standing{}, fmt.Errorf("bench: read what was there before: %w", err)
	}
	for _, b := range before {
		s.before[b.Uri] = b.Visitors
	}
	counters, err := q.CountersByURI(ctx)
	if err != nil {
		return standing{}, fmt.Errorf("bench: read the counters: %w", err)
	}
	for _, c := range counters {
		b := s.before[c.Uri]
		s.sums[c.Uri] = load.Sums{PV: c.Pv - b, UV: c.Uv - b, Hot: c.Hot - b}
	}
	visitors, err := q.VisitorsByURI(ctx)
	if err != nil {
		return standing{}, fmt.Errorf("bench: read the visitors: %w", err)
	}
	for _, v := range visitors {
		s.came(v.Uri, v.Ip, v.Rank-s.before[v.Uri])
	}
	if s.unproven, err = q.TargetsAmiss(ctx); err != nil {
		return standing{}, fmt.Errorf("bench: check the tables: %w", err)
	}
	return s, nil
}

// gather sums a registry's metrics over their labels.
func gather(metrics prometheus.Gatherer) (bench.Figures, error) {
	families, err := metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	told := bench.Figures{}
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
