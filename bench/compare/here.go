package compare

import (
	"context"
	"errors"
	"fmt"
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

// visitHere measures a contender in this process: it opens the contender, lets c.Clients concurrent clients count the
// visits of a task, and closes the contender. It returns the measured times, the number of keys that the contender looked
// up to find out whether they are new, and the counted visits.
func (c *comparison) visitHere(ctx context.Context, of contender, t task, address string) (load.Measure, float64, []load.Arrival, error) {
	sequence := t.sequence
	if of.literal { // fewer visits, because a literal contender is at least ten times slower
		sequence = sequence[:max(len(sequence)/10, min(len(sequence), 1500))]
	}
	open, err := of.open(ctx, address)
	if err != nil {
		return load.Measure{}, 0, nil, err
	}
	defer open.Close()
	waits, began := make([]time.Duration, len(sequence)), time.Now()
	err = load.RunConcurrently(ctx, c.Clients, len(sequence), func(ctx context.Context) func(int) error {
		return func(n int) error {
			r := counter.Request{App: load.App, URI: "http://" + load.PageURI(int(sequence[n].Page)),
				IP: load.Address(int(sequence[n].Visitor)).String()}
			sent := time.Now()
			if _, err := open.Visit(ctx, r); err != nil {
				return fmt.Errorf("visit %d: %w", n, err)
			}
			waits[n] = time.Since(sent)
			return nil
		}
	})
	took := time.Since(began)
	if err != nil {
		return load.Measure{}, 0, nil, err
	}
	f, err := open.Figures()
	return load.MeasureOf(waits, took), f[bench.MetricAsked], sequence, err
}

// counting is a contender that has been opened in this process.
type counting interface {
	Visit(ctx context.Context, r counter.Request) (visit.Answer, error)
	Figures() (bench.Figures, error) // values of the contender's metrics, by name
	Close()
}

// noon returns the time of all visits that are counted in this process. It is fixed, so that midnight cannot pass during a
// measurement.
func noon() time.Time { return time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC) }

func literalTables(ctx context.Context, address string) (storedNumbers, error) {
	s := newStoredNumbers()
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
		s.addVisitor(v.Uri, v.Ip, v.Rank)
	}
	losses, err3 := q.Losses(ctx)
	s.unproven = max(losses.Ranks, -losses.Ranks) + max(losses.Days, -losses.Days)
	return s, errors.Join(err1, err2, err3)
}

// serviceCounting is Footfall's counter with its database and metrics. It implements counting.
type serviceCounting struct {
	*counter.Counter
	db      *db.DB
	metrics *prometheus.Registry
}

// openService opens Footfall's counter. If the counter has a filter, openService waits until the filter is ready.
func openService(ctx context.Context, address string, o record.Options) (_ counting, err error) {
	s := serviceCounting{metrics: prometheus.NewRegistry()}
	if s.db, err = db.Open(ctx, address, db.Options{}); err != nil {
		return nil, err
	}
	// A refused visit would end the comparison. MaxWait is long, so that no visit is refused on a busy machine.
	o.Clock, o.Metrics, o.MaxWait = noon, s.metrics, time.Minute
	if s.Counter, err = counter.Open(ctx, s.db, counter.Options{Options: o}); err != nil {
		s.db.Close()
		return nil, err
	}
	if o.Filter {
		err = bench.WaitUntil(ctx, "the filter is ready", func() (bool, error) {
			figures, err := s.Figures()
			return figures[bench.MetricFilterReady] == 1, err
		})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s serviceCounting) Figures() (bench.Figures, error) {
	families, err := s.metrics.Gather()
	figures := bench.Figures{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			// Each metric is either a counter or a gauge. For a counter, the value of the gauge is 0, and vice versa.
			figures[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return figures, err
}

func (s serviceCounting) Close() {
	s.Counter.Close()
	s.db.Close()
}

func serviceTables(ctx context.Context, address string) (storedNumbers, error) {
	s := newStoredNumbers()
	err := bench.WithQueries(ctx, address, func(q *tables.Queries) error {
		counters, err1 := q.CountersByURI(ctx)
		for _, c := range counters {
			s.sums[c.Uri] = load.Sums{PV: c.Pv, UV: c.Uv, Hot: c.Hot}
		}
		visitors, err2 := q.VisitorsByURI(ctx)
		for _, v := range visitors {
			s.addVisitor(v.Uri, v.Ip, v.Rank)
		}
		amiss, err3 := q.TargetsAmiss(ctx)
		s.unproven = amiss
		return errors.Join(err1, err2, err3)
	})
	return s, err
}

// setUp creates the tables, an app, and the site with all its pages, because the first visit to a missing page would be
// slower. One statement creates the site and its pages. It works with the tables of several versions.
func (c contender) setUp(ctx context.Context, address string) error {
	if c.program != "" { // another version must create its own tables
		for _, words := range [][]string{{"migrate", "up"}, {"app", "add", load.App, "--access", "open", "--visitor", "address"}} {
			out, err := exec.CommandContext(ctx, c.program, append(words, "--database-url",
				address)...).CombinedOutput() //nolint:gosec // the caller names it
			if err != nil {
				return fmt.Errorf("old: %s %s: %s: %s", c.program, strings.Join(words, " "), err.Error(), strings.TrimSpace(string(out)))
			}
		}
	} else {
		d, err := bench.OpenMigrated(ctx, address)
		if err != nil {
			return err
		}
		defer d.Close()
		open := "open"
		if err := admin.NewAdmin(d, nil).AddApp(ctx, load.App, app.Settings{Access: &open}); err != nil {
			return err
		}
	}
	uris := make([]string, load.Pages)
	for i := range uris {
		uris[i] = load.PageURI(i)
	}
	return bench.WithQueries(ctx, address, func(q *tables.Queries) error {
		return q.TargetsMake(ctx, uris, load.Site)
	})
}
