// Package reports measures how long reports and dashboards take while visits are being counted. It also measures how long
// these visits take.
package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/pause"
	"footfall/retention"
)

// Options are the flags of a measurement.
type Options struct {
	bench.Options
	Data  string   `placeholder:"DIR" help:"Folder of an embedded PostgreSQL that bench generate has filled. Either this or --database-url must be given; visits are added there."`
	Parts []string `enum:"answers,dashboards" default:"answers,dashboards" placeholder:"NAME,…" help:"What to measure: answers (how long reports and pages of the dashboard take while visits are counted), dashboards (how long visits take while 20 dashboards are open). Default: all."`
	Rate  int      `default:"2000" placeholder:"N" help:"Visits per second that are counted at the same time. Default: ${default}."`
	Runs  int      `default:"200" placeholder:"N" help:"How often to request each report. Default: ${default}."`
}

// Check returns the errors in the options.
func (o Options) Check() (f bench.Faults) {
	f.When(o.Data == "" && o.DatabaseURL == "", "data: name the folder that bench generate filled, or a database with --database-url")
	f.Service(o.Footfall)
	return f
}

// Report contains the results of a measurement.
type Report struct {
	Machine string
	Rate    int // planned visits per second
	Notes   []string
	Rows    []Row
}

// Row contains the latencies of one kind of request. The latency of a visit is measured from the moment when the visit was
// due, which may be earlier than the moment when it was sent.
type Row struct {
	What string
	load.Measure
}

func (r *Report) note(format string, of ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, of...))
}

// measurement is the state of one call of Run. It is not safe for concurrent use.
type measurement struct {
	Options
	app, address string                  // name of the app, and URL of the database
	dayVisits    []tables.VisitsOfDayRow // visits of one day; pages are drawn from them, so that frequent pages are drawn more often
	sites        []string
	report       *Report
}

// Run measures reports and dashboards in a database that package generate has filled.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	server, err := bench.OpenServer(ctx, o.Options, o.Data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	r := &measurement{Options: o, address: server.URL, report: &Report{Machine: server.Machine, Rate: o.Rate}}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	measures := map[string]func(context.Context) error{"answers": r.measureAnswers, "dashboards": r.measureDashboards}
	for _, part := range slices.Compact(slices.Sorted(slices.Values(o.Parts))) {
		r.Doing("measuring %s", part)
		if err := measures[part](ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
	}
	return r.report, nil
}

// prepare closes days that have ended, as the service does every night. It returns an error unless exactly one app has
// counted visits in the database, so that the benchmark does not add visits to real apps.
func (r *measurement) prepare(ctx context.Context) error {
	d, err := bench.OpenMigrated(ctx, r.address)
	if err != nil {
		return err
	}
	defer d.Close()
	return bench.WithQueries(ctx, r.address, func(q *tables.Queries) error {
		apps, err := q.AppsThatCounted(ctx)
		if err != nil {
			return err
		}
		if len(apps) != 1 {
			return fmt.Errorf("data: the database has visits of %d apps, but must have only those of the app that bench generate created, "+
				"because visits are added to it: name its folder", len(apps))
		}
		r.app = apps[0]
		began := time.Now()
		done, err := retention.NewRetainer(d, retention.Options{}).Run(ctx)
		if err != nil {
			return err
		}
		r.report.note("%d days were closed in %.1f s", len(done.Closed), time.Since(began).Seconds())
		var err1 error
		r.dayVisits, err = q.VisitsOfDay(ctx, r.app)
		r.sites, err1 = q.SitesOfApp(ctx, r.app)
		return errors.Join(err, err1, q.Vacuum(ctx))
	})
}

// runUnderLoad starts a service, sends visits to it at a steady rate, and calls f in the meantime. It adds the latencies of
// the visits to the report. Half of the visits are by earlier visitors of the visited page, a quarter by earlier visitors
// of any page, and a quarter by new visitors.
func (r *measurement) runUnderLoad(ctx context.Context, what string, f func(p *bench.Process) error) (err error) {
	p, err := bench.Start(ctx, r.Footfall, func(addr, admin string) []string {
		return []string{"serve", "--addr", addr, "--admin-addr", admin, "--database-url", r.address, "--max-wait", "10s"}
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := p.WaitForMetric(bench.MetricFilterReady, 1); err != nil {
		return err
	}
	s := &load.Clients{URL: p.URL, Requests: r.Rate * int(longestLoad.Seconds()), PerSecond: float64(r.Rate), Connections: 512,
		// with 512 connections, hardly any request has to wait for a free connection
		Request: func(n int) []byte {
			v := r.dayVisits[rand.IntN(len(r.dayVisits))] //nolint:gosec // not secret, here and below
			ip := v.Ip.String()
			switch rand.IntN(4) {
			case 0:
				ip = r.dayVisits[rand.IntN(len(r.dayVisits))].Ip.String()
			case 1:
				ip = load.Address(int(rand.Int32())).String()
			}
			query := fmt.Sprintf("&ip=%s&referrer=https://from-%d.example/", ip, n%100) // a hundred different referrers
			return load.VisitRequest(p.URL, r.app, v.Uri, query, "")
		}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make(chan error, 1) // result of the following goroutine, which ends with ctx
	go func() { sent <- s.Send(ctx) }()
	err = pause.For(ctx, warmUp)
	began := time.Now()
	if err == nil {
		err = f(p)
	}
	took := time.Since(began)
	cancel(errEnough)
	if failed := <-sent; !errors.Is(failed, errEnough) {
		return errors.Join(failed, err)
	}
	waits := slices.DeleteFunc(s.Waits[r.Rate*int(warmUp.Seconds()):], func(w time.Duration) bool { return w == 0 })
	r.report.Rows = append(r.report.Rows, Row{"visits with " + what, load.MeasureOf(waits, took)})
	return err
}

const (
	longestLoad = 30 * time.Minute // maximum time of sending visits
	warmUp      = time.Second      // time before the measurement starts
)

var errEnough = errors.New("enough")

// listReportPaths returns the paths of the measured reports and dashboard pages. measureAnswers replaces the placeholders
// in braces by random values: a page, one of its visitors, its site, or any site. Frequent pages are chosen more often.
func listReportPaths() []string {
	all := []string{
		"/api/apps/{app}/sites",
		"/api/apps/{app}/pages?order=pv&limit=20",
		"/api/apps/{app}/pages?site={any}&order=uri&limit=100",
		"/api/apps/{app}/days?uri=http://{page}",
		"/api/apps/{app}/ranks?uri=http://{page}&ip={visitor}",
		"/api/apps/{app}/uniques?site={any}",
		"/api/apps/{app}/uniques?prefix={site}/",
		"/api/apps/{app}/tags?site={any}&name=source",
		"/dash/{app}/{any}?range=all&value=google",
		"/dash/{app}/{any}?where=source:google",
		"/dash/{app}/{any}?where=device:phone&where=returning",
		"/dash/{app}/{site}?where=page:/{path}&where=!source:google",
		"/",
	}
	for _, span := range []string{"today", "7d", "30d", "90d", "all"} {
		all = append(all, "/dash/{app}?range="+span, "/dash/{app}/{any}?range="+span, "/dash/{app}/{site}?page=/{path}&range="+span)
	}
	return all
}

// measureAnswers requests one report after the other over one connection, while visits are being counted.
func (r *measurement) measureAnswers(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 1)) //nolint:gosec // repeatable, not secret
	asked := listReportPaths()
	took := make([][]time.Duration, len(asked))
	err := r.runUnderLoad(ctx, "reports", func(p *bench.Process) error {
		for range r.Runs {
			for i, q := range asked {
				came := r.dayVisits[random.IntN(len(r.dayVisits))]
				site, path, _ := strings.Cut(came.Uri, "/")
				drawn := strings.NewReplacer("{app}", r.app, "{any}", r.sites[random.IntN(len(r.sites))], "{page}", came.Uri,
					"{site}", site, "{path}", path, "{visitor}", came.Ip.String()).Replace(q)
				began := time.Now()
				if _, err := bench.Fetch(ctx, p.URL+drawn); err != nil {
					return fmt.Errorf("%s: %w", q, err)
				}
				took[i] = append(took[i], time.Since(began))
			}
		}
		return nil
	})
	for i, q := range asked {
		r.report.Rows = append(r.report.Rows, Row{q, load.MeasureOf(took[i], 0)})
	}
	return err
}

const (
	openDashboards = 20
	refreshAfter   = 5 * time.Second // the same interval as in web/dash.js
)

// measureDashboards measures the latencies of visits twice: without other load, and while dashboards are open. Each
// dashboard shows the last 30 days of a site. The dashboards are not opened at the same time, so that their requests do not
// all arrive at once.
func (r *measurement) measureDashboards(ctx context.Context) error {
	long := time.Second * time.Duration(min(r.Runs, 30))
	took, errs := make([][]time.Duration, openDashboards), make([]error, openDashboards)
	err := errors.Join(
		r.runUnderLoad(ctx, "nothing else", func(*bench.Process) error { return pause.For(ctx, long) }),
		r.runUnderLoad(ctx, fmt.Sprintf("%d open dashboards", openDashboards), func(p *bench.Process) error {
			until, cancel := context.WithTimeout(ctx, long)
			defer cancel()
			var all sync.WaitGroup // goroutines of dashboards; each ends after its last page, when the context until has ended
			for i := range openDashboards {
				all.Go(func() {
					page := fmt.Sprintf("%s/dash/%s/%s", p.URL, r.app, r.sites[i%len(r.sites)])
					for rest := min(refreshAfter, long) * time.Duration(i) / openDashboards; errs[i] == nil &&
						pause.For(until, rest) == nil; rest = refreshAfter {
						began := time.Now()
						_, errs[i] = bench.Fetch(ctx, page) // including its whole body
						took[i] = append(took[i], time.Since(began))
					}
				})
			}
			all.Wait()
			return errors.Join(errs...)
		}))
	r.report.Rows = append(r.report.Rows, Row{"their pages, for a site and 30 days", load.MeasureOf(slices.Concat(took...), 0)})
	return err
}

// Print writes the report as text.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\nvisits arrived at %d per second\n%s\n", r.Machine, r.Rate, strings.Join(r.Notes, "\n"))
	t := bench.Table{{"what", "times", "per second", "p50 ms", "p99 ms", "max ms"}}
	for _, row := range r.Rows {
		t = append(t, []string{row.What, strconv.Itoa(row.Requests), bench.FormatOrDash(row.PerSecond, bench.Grouped), bench.Short(row.P50Ms),
			bench.Short(row.P99Ms), bench.Short(row.MaxMs)})
	}
	fmt.Fprintf(w, "\n%s", t)
}
