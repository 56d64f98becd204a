package reports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/pause"
)

// compareUniques asks for the uniques of targets in ranges of days at random, and counts them in
// the plainest way.
func (r *asking) compareUniques(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 2)) //nolint:gosec // to be repeated, not to be secret
	var asked, counted []time.Duration
	err := bench.Ask(ctx, r.address, func(q *tables.Queries) error {
		for n := range r.Samples {
			came := r.world.came[random.IntN(len(r.world.came))]
			target := tables.TargetsInOrderRow{ID: came.ID, Uri: came.Uri} // as often as it is visited
			switch {
			case n%25 == 0:
				target = r.world.sites[random.IntN(len(r.world.sites))]
			case n%2 == 0: // as many that are hardly ever visited
				target = r.world.targets[random.IntN(len(r.world.targets))]
			}
			from, to := r.world.anyDays(random)
			began := time.Now()
			got, err1 := q.ReportUniques(ctx, tables.ReportUniquesParams{App: r.made.App, Target: target.Uri, FromDay: from, ToDay: to})
			answered := time.Now()
			truth, err2 := q.UniquesCounted(ctx, tables.UniquesCountedParams{PageID: target.ID, FromDay: from, ToDay: to})
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			asked, counted = append(asked, answered.Sub(began)), append(counted, time.Since(answered))
			if got.Uniques != truth || !got.Exact {
				r.report.Wrong = append(r.report.Wrong, fmt.Sprintf("%s from %d to %d: %d uniques (exact: %t), and there were %d", target.Uri, from, to, got.Uniques, got.Exact, truth))
			}
		}
		return nil
	})
	r.report.add("uniques of a range at random", asked, 0)
	r.report.add("the same by count(DISTINCT ip)", counted, 0)
	r.report.note("%d ranges at random compared with count(DISTINCT ip): %d differ", r.Samples, len(r.report.Wrong))
	return err
}

// serving runs f on a service of its own process.
func (r *asking) serving(ctx context.Context, f func(p *bench.Process) error) (err error) {
	p, err := bench.Start(ctx, r.Footfall, func(addr, admin string) []string {
		return append([]string{"serve", "--addr", addr, "--admin-addr", admin, "--database-url", r.address, "--max-wait", "10s"}, r.secret...)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := p.Shows(bench.MetricFilterReady, 1); err != nil {
		return err
	}
	return f(p)
}

const (
	longestLoad = 30 * time.Minute // bounds a steady load
	warmUp      = time.Second      // of visits, before they and what is asked beside them are measured

	steadyConnections = 512 // so many that hardly any visit waits for an answer to another
)

var errEnough = errors.New("enough")

// visit is the request of a visit, which one of a hundred pages led to.
func (r *asking) visit(p *bench.Process, ip netip.Addr, uri string, n int) []byte {
	return load.VisitRequest(p.URL, r.made.App, uri, fmt.Sprintf("&ip=%s&referrer=https://from-%d.example/", ip, n%100))
}

// whileCounting runs f while visits come at a steady rate, and returns how those fared that came
// meanwhile, and how long that was.
func (r *asking) whileCounting(ctx context.Context, p *bench.Process, f func() error) (waits []time.Duration, took time.Duration, err error) {
	s := &load.Steady{URL: p.URL, Requests: r.Rate * int(longestLoad.Seconds()), PerSecond: float64(r.Rate), Connections: steadyConnections,
		Request: func(n int) []byte {
			ip, uri := r.world.nextVisit()
			return r.visit(p, ip, uri, n)
		}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make(chan error, 1) // the result of the goroutine, which ends with ctx
	go func() { sent <- s.Send(ctx) }()
	if err = pause.For(ctx, warmUp); err == nil {
		began := time.Now()
		err = f()
		took = time.Since(began)
	}
	cancel(errEnough)
	if failed := <-sent; !errors.Is(failed, errEnough) {
		return nil, 0, errors.Join(failed, err)
	}
	waits = s.Waits[r.Rate*int(warmUp.Seconds()):]
	return slices.DeleteFunc(waits, func(w time.Duration) bool { return w == 0 }), took, err
}

// beside is whileCounting on a service of its own, summed up.
func (r *asking) beside(ctx context.Context, what string, f func(p *bench.Process) error) error {
	return r.serving(ctx, func(p *bench.Process) error {
		waits, took, err := r.whileCounting(ctx, p, func() error { return f(p) })
		r.report.add("visits beside "+what, waits, took)
		return err
	})
}

// measureAnswers asks one report after the other while visits are counted, as one client that keeps
// its connection.
func (r *asking) measureAnswers(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 1)) //nolint:gosec // to be repeated, not to be secret
	took := make([][]time.Duration, len(questions))
	err := r.beside(ctx, "reports", func(p *bench.Process) error {
		for run := range r.Runs {
			if run%50 == 0 {
				r.Doing("%d of %d runs of %d reports", run, r.Runs, len(questions))
			}
			for i, q := range questions {
				began := time.Now()
				if _, err := bench.Fetch(ctx, p.URL+r.drawn(random, q), nil); err != nil {
					return fmt.Errorf("%s: %w", q, err)
				}
				took[i] = append(took[i], time.Since(began))
			}
		}
		return nil
	})
	for i, q := range questions {
		r.report.add(q, took[i], 0)
	}
	return err
}

// measureVerify proves all numbers beside visits.
func (r *asking) measureVerify(ctx context.Context) error {
	return r.beside(ctx, "verify", func(*bench.Process) error {
		began := time.Now()
		out, err := exec.CommandContext(ctx, r.Footfall, "verify", "--database-url", r.address).CombinedOutput() //nolint:gosec // the program that is measured
		if err != nil {
			r.report.Wrong = append(r.report.Wrong, fmt.Sprintf("verify: %s: %s", err.Error(), out))
		}
		r.report.note("all was verified in %.0f s", time.Since(began).Seconds())
		return ctx.Err()
	})
}

// measureRates counts visits as fast as they are answered: by new visitors, and by the same once
// more. It tells what the tables took before.
func (r *asking) measureRates(ctx context.Context) error {
	err := bench.Ask(ctx, r.address, func(q *tables.Queries) error {
		s, err := q.Sizes(ctx)
		r.report.note("%s rows of visits take %d bytes each, %s of visitors %d, the whole database %s",
			bench.Grouped(float64(s.Visits)), s.VisitsBytes/max(1, s.Visits), bench.Grouped(float64(s.Visitors)), s.VisitorsBytes/max(1, s.Visitors), bench.Grouped(float64(s.AllBytes)))
		return err
	})
	if err != nil {
		return err
	}
	return r.serving(ctx, func(p *bench.Process) error {
		first, visits := rand.Int32(), 500*r.Runs
		for _, who := range []string{"new visitors", "the same once more"} {
			s := &load.Steady{URL: p.URL, Requests: visits, PerSecond: math.Inf(1), Connections: 64, Request: func(n int) []byte {
				page := r.world.came[n*7919%len(r.world.came)] // as often as it is visited
				return r.visit(p, load.Address(int(first)+n), page.Uri, n)
			}}
			began := time.Now()
			if err := s.Send(ctx); err != nil {
				return err
			}
			r.report.note("%s visits a second by %s", bench.Grouped(float64(visits)/time.Since(began).Seconds()), who)
		}
		return nil
	})
}

const (
	openDashboards = 20
	refreshAfter   = 5 * time.Second // as web/dash.js does
	refreshRests   = 50              // times as long as it took
)

// measureDashboards counts visits beside nothing else and beside dashboards that are open, in turns,
// so that it shows what gets slower or faster in the meantime. Each dashboard shows the last 30 days
// of a site.
func (r *asking) measureDashboards(ctx context.Context) error {
	turn := time.Second * time.Duration(min(r.Runs, 30))
	for range min(2, 1+r.Runs/100) {
		var took []time.Duration
		err := errors.Join(
			r.beside(ctx, "nothing else", func(*bench.Process) error { return pause.For(ctx, turn) }),
			r.beside(ctx, fmt.Sprintf("%d open dashboards", openDashboards), func(p *bench.Process) (err error) {
				took, err = r.look(ctx, p, turn)
				return err
			}))
		if err != nil {
			return err
		}
		r.report.add("their pages, of a site and 30 days", took, 0)
	}
	return nil
}

// look keeps all dashboards open for a while, and returns how long their pages took. They have been
// opened one after the other, so that they do not all ask at once.
func (r *asking) look(ctx context.Context, p *bench.Process, long time.Duration) ([]time.Duration, error) {
	until, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	took, errs := make([][]time.Duration, openDashboards), make([]error, openDashboards)
	var refused atomic.Int64
	var all sync.WaitGroup // goroutines, which end with until, once their page is read
	for i := range openDashboards {
		all.Go(func() {
			page := fmt.Sprintf("%s/dash/%s/%s", p.URL, r.made.App, r.world.sites[i%len(r.world.sites)].Uri)
			for rest := min(refreshAfter, long) * time.Duration(i) / openDashboards; pause.For(until, rest) == nil; {
				began := time.Now()
				_, err := bench.Fetch(ctx, page, nil) // to its end
				passed := time.Since(began)
				rest = max(refreshAfter, refreshRests*passed)
				switch {
				case errors.Is(err, bench.ErrBusy):
					refused.Add(1)
				case err != nil:
					errs[i] = err
				default:
					took[i] = append(took[i], passed)
				}
			}
		})
	}
	all.Wait()
	if n := refused.Load(); n > 0 {
		r.report.note("%d pages of dashboards were refused, since the service was busy", n)
	}
	return slices.Concat(took...), errors.Join(errs...)
}

const (
	peopleApp  = "people"
	loadings   = 10   // parts in which ids are loaded, so that it shows whether it gets slower
	idsAtOnce  = 100  // that one call looks up
	firstAsked = 1000 // look-ups that find hardly anything in memory, where caches were emptied before

	betweenLookUps = 5 * time.Millisecond
)

// measurePeople looks up at random for whom ids stand, while visits are counted. They are loaded
// where the app is missing: four stand for a person each, who has an id of their own.
func (r *asking) measurePeople(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "footfall-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	secret := filepath.Join(folder, "secret") // the same each time, as an earlier run may have loaded the ids
	if err := os.WriteFile(secret, []byte(strings.Repeat("of the benchmark", 2)), 0o600); err != nil {
		return err
	}
	r.secret = []string{"--secret-file", secret}
	if err := r.loadPeople(ctx); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(r.Seed, 3)) //nolint:gosec // to be repeated, not to be secret
	var without, first, later, many []time.Duration
	err = r.beside(ctx, "look-ups of people", func(p *bench.Process) error {
		// timed rests before it asks: a client that never does measures what it takes away itself.
		timed := func(took *[]time.Duration, persons int, ask func() (string, error)) error {
			if err := pause.For(ctx, betweenLookUps); err != nil {
				return err
			}
			began := time.Now()
			said, err := ask()
			*took = append(*took, time.Since(began))
			if found := strings.Count(said, `"person"`); err == nil && found != persons {
				r.report.Wrong = append(r.report.Wrong, fmt.Sprintf("%d of %d are found: %.200s", found, persons, said))
			}
			return err
		}
		for n := range firstAsked + 10*r.Runs {
			took := &first
			if n >= firstAsked {
				took = &later
			}
			err := errors.Join(timed(&without, 0, func() (string, error) { return bench.Fetch(ctx, p.URL+"/livez", nil) }), timed(took, 1, func() (string, error) {
				return bench.Fetch(ctx, fmt.Sprintf("%s/people?app=%s&id=%d", p.URL, peopleApp, random.IntN(r.People)), nil)
			}))
			if err != nil {
				return err
			}
		}
		for range r.Runs {
			ids := make([]string, idsAtOnce)
			for i := range ids {
				ids[i] = strconv.Itoa(random.IntN(r.People))
			}
			body, _ := json.Marshal(map[string]any{"app": peopleApp, "ids": ids}) // cannot fail for strings
			if err := timed(&many, idsAtOnce, func() (string, error) { return bench.Fetch(ctx, p.URL+"/people/lookup", body) }); err != nil {
				return err
			}
		}
		return nil
	})
	r.report.add("answers without the database", without, 0)
	r.report.add(fmt.Sprintf("the first %d look-ups", firstAsked), first, 0)
	r.report.add("look-ups after them", later, 0)
	r.report.add(fmt.Sprintf("look-ups of %d ids at once", idsAtOnce), many, 0)
	return err
}

// loadPeople loads the ids with the program that is measured. Those of persons come after the
// others.
func (r *asking) loadPeople(ctx context.Context) error {
	run := func(in string, words ...string) error {
		c := exec.CommandContext(ctx, r.Footfall, append(append(words, "--database-url", r.address), r.secret...)...) //nolint:gosec // the program that is measured
		c.Stdin = strings.NewReader(in)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", c, err, out)
		}
		return nil
	}
	persons := max(1, r.People/4)
	return bench.Ask(ctx, r.address, func(q *tables.Queries) error {
		if _, err := q.AppID(ctx, peopleApp); err == nil {
			return nil // from an earlier run
		}
		if err := run("", "app", "add", peopleApp, "--visitor", "id", "--access", "open"); err != nil {
			return err
		}
		for part := range loadings {
			from, to := r.People*part/loadings, r.People*(part+1)/loadings
			r.Doing("loading ids %d to %d", from, to)
			var lines bytes.Buffer
			for n := from; n < to; n++ {
				fmt.Fprintf(&lines, "{\"id\":\"%d\",\"is\":\"%d\"}\n", n, r.People+n%persons)
			}
			began := time.Now()
			if err := run(lines.String(), "people", "load", peopleApp, "-"); err != nil {
				return err
			}
			took := time.Since(began)
			size, err := q.PeopleBytes(ctx)
			if err != nil {
				return err
			}
			r.report.note("ids %d to %d were loaded at %.0f a second; with their persons they take %d bytes each", from, to, float64(to-from)/took.Seconds(), size/int64(to+min(to, persons)))
		}
		return nil
	})
}
