// Package reports measures all but the counting of visits itself: whether uniques are true, how
// long reports take while visits are counted, and how visits fare beside dashboards and verify.
package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/retention"
	"footfall/visit"
)

// Options of a measurement of reports, as flags.
type Options struct {
	bench.Options
	Data    string   `placeholder:"DIR" help:"Folder of an embedded PostgreSQL that is kept: what bench generate made there is asked. One in which others have counted is refused. Default: none."`
	Parts   []string `enum:"uniques,answers,dashboards,verify,rates,people" default:"uniques,answers,dashboards,verify,rates,people" placeholder:"NAME,…" help:"What to measure: uniques (of targets, compared with a plain count), answers (how long reports and pages of the dashboard take while visits are counted), dashboards (how visits fare beside 20 that are open), verify (how they fare while all numbers are recomputed), rates (how many visits a second are counted at most, and what the tables take), people (how long it takes to look up for whom ids stand, and to load these). Default: all."`
	Visits  int      `default:"10000000" quick:"50000" placeholder:"N" help:"Visits that are generated where there are none, by a tenth as many visitors to a hundredth as many pages: see bench generate. Default: ${default}."`
	Rate    int      `default:"2000" placeholder:"N" help:"Visits a second that are counted meanwhile. Default: ${default}."`
	People  int      `default:"1000000" quick:"5000" placeholder:"N" help:"Ids of people that are loaded where there are none. Default: ${default}."`
	Runs    int      `default:"200" quick:"3" placeholder:"N" help:"How often each report is asked for. Default: ${default}."`
	Samples int      `default:"1000" quick:"50" placeholder:"N" help:"Ranges of days at random whose uniques are compared. Default: ${default}."`
}

// set is what is generated.
func (o Options) set() generate.Set {
	return generate.Set{Visits: o.Visits, Pages: max(1, o.Visits/100), Visitors: min(max(1, o.Visits/10), 16_000_000)}.Completed()
}

// parts in the order in which they are measured: that one first which wants the tables as they were
// counted.
var parts = []struct {
	name    string
	measure func(*asking, context.Context) error
}{
	{"uniques", (*asking).compareUniques},
	{"answers", (*asking).measureAnswers},
	{"dashboards", (*asking).measureDashboards},
	{"verify", (*asking).measureVerify},
	{"rates", (*asking).measureRates},
	{"people", (*asking).measurePeople},
}

// Check tells what is wrong with the options.
func (o Options) Check() bench.Faults {
	f := o.set().Check()
	f.Service(o.Footfall)
	return f
}

// Report is what Run measured.
type Report struct {
	Machine string   `json:"machine"`
	Command string   `json:"command"` // that repeats it
	Rate    int      `json:"rate"`    // visits a second that were to be counted meanwhile
	Notes   []string `json:"notes"`
	Rows    []Row    `json:"rows"`
	Wrong   []string `json:"wrong,omitempty"` // what makes the command fail
}

// Row is how long some answers took. Those of visits are from when they were due; none was refused,
// which would have been an error.
type Row struct {
	What string `json:"what"`
	load.Measure
}

// add tells how long answers took, of which so many came in a time; 0: nobody asks.
func (r *Report) add(what string, waits []time.Duration, took time.Duration) {
	r.Rows = append(r.Rows, Row{what, load.MeasureOf(waits, took)})
}

func (r *Report) note(format string, of ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, of...))
}

// asking is a run of Run. One goroutine uses it, but for what a part starts and ends.
type asking struct {
	Options
	made    generate.Set
	address string   // of the database
	secret  []string // names the service the secret of its ids, if some are asked for
	world   *world
	report  *Report
}

// Run measures reading on tables that package generate filled, and fills them first where nobody
// has. An error that wraps bench.ErrUntrue comes with a report.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	r := &asking{Options: o, made: o.set(), report: &Report{Command: o.Command, Rate: o.Rate}}
	server, err := bench.OpenServer(ctx, o.Options, o.Data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	r.report.Machine, r.address = server.Machine, server.URL
	if o.Data == "" {
		if r.address, err = server.Database(ctx, ""); err != nil {
			return nil, err
		}
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	for _, part := range parts {
		if !slices.Contains(o.Parts, part.name) {
			continue
		}
		r.Doing("measuring %s", part.name)
		if err := part.measure(r, ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r.report, bench.Untrue(r.report.Wrong)
}

// prepare generates an app where there is none, and closes the days that are over, as the service
// does each night. It refuses tables in which somebody else has counted: the benchmark adds visits
// to them.
func (r *asking) prepare(ctx context.Context) error {
	d, err := bench.Migrated(ctx, r.address)
	if err != nil {
		return err
	}
	defer d.Close()
	return bench.Ask(ctx, r.address, func(q *tables.Queries) error {
		apps, err := q.AppsThatCounted(ctx)
		switch {
		case err != nil:
			return err
		case len(apps) == 0:
			if err := generate.Run(ctx, bench.Options{DatabaseURL: r.address, Progress: r.Progress}, r.made); err != nil {
				return err
			}
		case len(apps) > 1 || apps[0] != r.made.App:
			return fmt.Errorf("data: the app %s has counted there, and this benchmark adds visits of its own: choose a folder that is new, or that bench generate filled", apps[0])
		}
		began := time.Now()
		done, err := retention.NewRetainer(d, retention.Options{}).Run(ctx)
		if err != nil {
			return err
		}
		r.report.note("%d days were closed in %.1f s", len(done.Closed), time.Since(began).Seconds())
		if err := q.Vacuum(ctx); err != nil {
			return err
		}
		r.world, err = newWorld(ctx, q, r.made.App)
		return err
	})
}

// Print writes the report for people at a terminal.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\nvisits came at %d a second\n", r.Machine, r.Rate)
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	t := bench.Table{{"what", "times", "a second", "p50 ms", "p99 ms", "max ms"}}
	for _, row := range r.Rows {
		t = append(t, []string{row.What, strconv.Itoa(row.Requests), bench.OrNone(row.PerSecond, bench.Grouped), bench.Short(row.P50Ms), bench.Short(row.P99Ms), bench.Short(row.MaxMs)})
	}
	fmt.Fprintf(w, "\n%s\nRepeat it: %s\n", t, r.Command)
}

// world is what the tables hold of which reports are asked for, for questions and visits at random.
type world struct {
	days    []int32                 // that were counted, in order
	came    []tables.VisitsOfDayRow // of one day: pages as often as they are visited
	sites   []tables.TargetsInOrderRow
	targets []tables.TargetsInOrderRow
}

func newWorld(ctx context.Context, q *tables.Queries, app string) (w *world, err error) {
	id, err := q.AppID(ctx, app)
	days, err1 := q.DaysOfApp(ctx, id)
	targets, err2 := q.TargetsInOrder(ctx, id)
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, err
	}
	w = &world{days: days, targets: targets}
	// Of a day that no earlier run of the benchmark added to: those count today.
	day := w.days[max(0, len(w.days)-8)]
	if w.came, err = q.VisitsOfDay(ctx, tables.VisitsOfDayParams{AppID: id, Day: day}); err != nil {
		return nil, err
	}
	if len(w.came) == 0 {
		return nil, fmt.Errorf("data: nobody came on day %d: choose a folder that is new, or that bench generate filled", day)
	}
	if today := visit.DayOf(time.Now(), time.UTC); today > w.days[len(w.days)-1] {
		w.days = append(w.days, today) // there will be visits when it is asked for
	}
	for _, t := range w.targets {
		if !strings.Contains(t.Uri, "/") {
			w.sites = append(w.sites, t)
		}
	}
	return w, nil
}

// randomDays is a range of so many days: every other time the last ones.
func (w *world) randomDays(random *rand.Rand, length int) (from, to int32) {
	length = min(length, len(w.days))
	end := len(w.days)
	if random.IntN(2) == 0 {
		end = length + random.IntN(len(w.days)-length+1)
	}
	return w.days[end-length], w.days[end-1]
}

// anyDays is a range of any length.
func (w *world) anyDays(random *rand.Rand) (from, to int32) {
	a, b := random.IntN(len(w.days)), random.IntN(len(w.days))
	return w.days[min(a, b)], w.days[max(a, b)]
}

// nextVisit is one that may come now, by new visitors each time: half of the visits are by those who
// know the page, a quarter by those who know another one, and a quarter by new visitors.
func (w *world) nextVisit() (ip netip.Addr, uri string) {
	v := w.came[rand.IntN(len(w.came))] //nolint:gosec // no secret, here and below
	switch rand.IntN(4) {
	case 0:
		return w.came[rand.IntN(len(w.came))].Ip, v.Uri
	case 1:
		at := rand.Uint32()
		return netip.AddrFrom4([4]byte{172, byte(at >> 16), byte(at >> 8), byte(at)}), v.Uri
	}
	return v.Ip, v.Uri
}

// questions are paths of reports, in the API and on the dashboard, with what is drawn at random in
// braces: a page as often as it is visited, any site, a visitor of a page, or so many days.
var questions = []string{
	"/api/apps/{app}/sites",
	"/api/apps/{app}/pages?order=pv&limit=20&{30 days}",
	"/api/apps/{app}/pages?site={any}&order=hot&limit=20&{30 days}",
	"/api/apps/{app}/pages?site={any}&order=uri&limit=100&{30 days}",
	"/api/apps/{app}/pages?order=pv&limit=1000",
	"/api/apps/{app}/days?uri=http://{page}&{60 days}",
	"/api/apps/{app}/visitors?uri=http://{page}&{day}",
	"/api/apps/{app}/ranks?uri=http://{page}&ip={visitor}",
	"/api/apps/{app}/uniques?uri=http://{page}&{days}",
	"/api/apps/{app}/uniques?site={any}&{days}",
	"/api/apps/{app}/uniques?prefix={site}/&{days}",
	"/api/apps/{app}/tags?site={any}&name=source&{60 days}",
	"/dash/{app}/{any}?range=all&value=google",
	"/",
}

func init() {
	for _, span := range []string{"today", "7d", "30d", "90d", "all"} {
		questions = append(questions, "/dash/{app}?range="+span, "/dash/{app}/{any}?range="+span, "/dash/{app}/{site}?page=/{path}&range="+span)
	}
}

// drawn puts what is drawn into a question.
func (r *asking) drawn(random *rand.Rand, question string) string {
	w := r.world
	came := w.came[random.IntN(len(w.came))]
	site, path, _ := strings.Cut(came.Uri, "/")
	between := func(from, to int32) string { return fmt.Sprintf("from=%d&to=%d", from, to) }
	day, _ := w.randomDays(random, 1)
	return strings.NewReplacer(
		"{app}", r.made.App, "{any}", w.sites[random.IntN(len(w.sites))].Uri, "{page}", came.Uri, "{site}", site, "{path}", path, "{visitor}", came.Ip.String(),
		"{30 days}", between(w.randomDays(random, 30)), "{60 days}", between(w.randomDays(random, 60)), "{days}", between(w.anyDays(random)),
		"{day}", fmt.Sprintf("day=%d", day),
	).Replace(question)
}
