package compare

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"footfall/admin"
	"footfall/bench"
	"footfall/bench/literal"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// counting is a contender that counts in this process.
type counting interface {
	visit(ctx context.Context, r counter.Request) (visit.Answer, error)
	figures() (bench.Figures, error) // by the names of the service's metrics
	close()
}

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

func (l literalCounting) figures() (bench.Figures, error) {
	return bench.Figures{bench.MetricAsked: float64(l.store.Asked()), bench.MetricFilterBytes: float64(l.store.FilterBytes()), bench.MetricMemoryBytes: 0}, nil
}

func (l literalCounting) close() { l.store.Close() }

func literalTables(ctx context.Context, address string) (standing, error) {
	s := newStanding()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return s, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	q := literal.New(conn)
	counters, err1 := q.CountersAll(ctx)
	for _, c := range counters {
		s.sums[c.Uri] = load.Sums{PV: c.Pv, UV: c.Uv, Hot: c.Hot}
	}
	visitors, err2 := q.VisitorsAll(ctx)
	for _, v := range visitors {
		s.came(v.Uri, v.Ip, v.Rank)
	}
	losses, err3 := q.Losses(ctx)
	s.unproven = max(losses.Ranks, -losses.Ranks) + max(losses.Days, -losses.Days)
	return s, errors.Join(err1, err2, err3)
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
	if o.Filter {
		err = bench.WaitUntil(ctx, "the filter is ready", func() (bool, error) {
			figures, err := s.figures()
			return figures[bench.MetricFilterReady] == 1, err
		})
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s serviceCounting) visit(ctx context.Context, r counter.Request) (visit.Answer, error) {
	return s.counter.Visit(ctx, r)
}

func (s serviceCounting) figures() (bench.Figures, error) {
	families, err := s.metrics.Gather()
	figures := bench.Figures{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			// One of the two is there; the other's value is 0.
			figures[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return figures, err
}

func (s serviceCounting) close() {
	s.counter.Close()
	s.db.Close()
}

func serviceTables(ctx context.Context, address string) (standing, error) {
	s := newStanding()
	err := bench.Ask(ctx, address, func(q *tables.Queries) error {
		before, err1 := q.PreloadByURI(ctx)
		for _, b := range before {
			s.before[b.Uri] = b.Visitors
		}
		counters, err2 := q.CountersByURI(ctx)
		for _, c := range counters {
			b := s.before[c.Uri]
			s.sums[c.Uri] = load.Sums{PV: c.Pv - b, UV: c.Uv - b, Hot: c.Hot - b}
		}
		visitors, err3 := q.VisitorsByURI(ctx)
		for _, v := range visitors {
			s.came(v.Uri, v.Ip, v.Rank-s.before[v.Uri])
		}
		amiss, err4 := q.TargetsAmiss(ctx)
		s.unproven = amiss
		return errors.Join(err1, err2, err3, err4)
	})
	return s, err
}

// setUp makes the tables and an app, outside of what is measured, with so many rows of visitors. It
// returns the key that visits show; "": none.
func (c contender) setUp(ctx context.Context, address string, preload int) (key string, err error) {
	if c.program != "" {
		return "", errors.Join(setUpByProgram(ctx, c.program, address), fill(ctx, address, preload))
	}
	d, err := bench.Migrated(ctx, address)
	if err != nil {
		return "", err
	}
	defer d.Close()
	admin := admin.New(d, nil)
	if err := admin.AddApp(ctx, load.App, c.settings); err != nil {
		return "", err
	}
	if c.keyed {
		if key, err = admin.AddKey(ctx, load.App, []app.Scope{app.ScopeAssert}); err != nil {
			return "", err
		}
	}
	return key, fill(ctx, address, preload)
}

// setUpByProgram lets another version make its own tables and an app that counts whatever a caller
// asserts.
func setUpByProgram(ctx context.Context, program, address string) error {
	for _, words := range [][]string{{"migrate", "up"}, {"app", "add", load.App, "--access", "open", "--visitor", "address"}} {
		out, err := exec.CommandContext(ctx, program, append(words, "--database-url", address)...).CombinedOutput() //nolint:gosec // the caller names it
		if err != nil {
			return fmt.Errorf("old: %s %s: %s: %s", program, strings.Join(words, " "), err.Error(), strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// fill makes the site and all its pages: a page is new once, and that is not what is measured. Then
// it makes so many rows of visitors: half as many people, each of whom came to one page, and so to
// the site. It needs no more of the tables than versions share.
func fill(ctx context.Context, address string, preload int) error {
	uris := make([]string, load.Pages)
	for i := range uris {
		uris[i] = load.PageURI(i)
	}
	return bench.Ask(ctx, address, func(q *tables.Queries) error {
		err := q.TargetsMake(ctx, tables.TargetsMakeParams{Site: load.Site, Pages: uris})
		if err == nil && preload > 0 {
			err = errors.Join(
				q.VisitorsPreload(ctx, tables.VisitorsPreloadParams{Visitors: int64(preload / 2), Multiplier: load.Multiplier}),
				q.CountersPreload(ctx), q.Vacuum(ctx), q.Checkpoint(ctx))
		}
		return err
	})
}
