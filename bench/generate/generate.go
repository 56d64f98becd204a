// Package generate fills tables with an app of made-up visits, as many as reports and checks are to
// be tried on.
package generate

import (
	"context"
	_ "embed" // drawn.sql
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/admin"
	"footfall/bench"
	"footfall/bench/tables"
	"footfall/counter/app"
	"footfall/db"
	"footfall/retention"
	"footfall/visit"
)

// Set is the size of what is generated, as flags. A zero field means its default.
type Set struct {
	App      string    `placeholder:"NAME" help:"The app that is made; it must not exist yet. It counts in UTC. Default: generated."`
	Visits   int       `placeholder:"N" help:"How many visits. Default: 10000000."`
	Days     int       `placeholder:"N" help:"Days over which the visits came. Default: 60."`
	Until    time.Time `placeholder:"DAY" format:"2006-01-02" help:"The last day, like 2019-06-29. Default: yesterday."`
	Pages    int       `placeholder:"N" help:"How many pages, few of which are visited often. Default: 100000."`
	Visitors int       `placeholder:"N" help:"How many visitors, few of whom come often. Default: 1000000."`
	Sites    int       `placeholder:"N" help:"How many sites, few of which are large. Default: 20."`
	Seed     uint64    `placeholder:"N" help:"The same seed makes the same visits. Default: 1."`
}

// Completed has the defaults in place of what was not given.
func (s Set) Completed() Set {
	if s.App == "" {
		s.App = "generated"
	}
	for value, whole := range map[*int]int{&s.Visits: 10_000_000, &s.Days: 60, &s.Pages: 100_000, &s.Visitors: 1_000_000, &s.Sites: 20} {
		if *value == 0 {
			*value = whole
		}
	}
	if s.Seed == 0 {
		s.Seed = 1
	}
	if s.Until.IsZero() {
		s.Until = time.Now().UTC().AddDate(0, 0, -1)
	}
	s.Until = s.Until.UTC().Truncate(24 * time.Hour)
	return s
}

// Check tells what of it cannot be made up. What is not given is right.
func (s Set) Check() (faults []error) {
	s = s.Completed()
	for flag, n := range map[string]int{"visits": s.Visits, "days": s.Days, "pages": s.Pages, "visitors": s.Visitors, "sites": s.Sites} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: %d will not do: give 1 or more", flag, n))
		}
	}
	switch {
	case len(faults) > 0:
		return faults
	case s.Pages < s.Sites:
		return []error{fmt.Errorf("pages: %d are too few for %d sites: each has one at least", s.Pages, s.Sites)}
	case s.Visits < max(s.Pages, s.Visitors, s.Days):
		return []error{fmt.Errorf("visits: %d are too few: every page, visitor and day (%d, %d, %d) has one at least", s.Visits, s.Pages, s.Visitors, s.Days)}
	case s.Visitors > 16_000_000:
		return []error{fmt.Errorf("visitors: %d are too many: give up to 16000000", s.Visitors)}
	case s.Days > 10_000:
		return []error{fmt.Errorf("days: %d are too many: give up to 10000", s.Days)}
	case s.Visits > math.MaxInt32:
		return []error{fmt.Errorf("visits: %d are too many: give up to %d", s.Visits, math.MaxInt32)}
	}
	return nil
}

// Report is what Run made.
type Report struct {
	Set
	Seconds float64            `json:"seconds"`
	Tables  []db.TableSizesRow `json:"tables"` // all days of visits are one
}

// Print writes the report for people at a terminal.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "app %s: %s visits over %d days by %s visitors to %s pages of %d sites, seed %d, in %.0f s\n", r.App,
		bench.Grouped(float64(r.Visits)), r.Days, bench.Grouped(float64(r.Visitors)), bench.Grouped(float64(r.Pages)), r.Sites, r.Seed, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\trows\tMB\tindexes MB\t\n")
	for _, size := range r.Tables {
		if size.Rows > 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", size.Name, bench.Grouped(float64(size.Rows)), bench.Megabytes(size.Heap), bench.Megabytes(size.Indexes))
		}
	}
	_ = t.Flush() // w is a person's
}

// generation is a run of Run.
type generation struct {
	Set
	db       *db.DB
	conn     *pgx.Conn
	q        *tables.Queries
	progress func(string)
	drawn    *drawnVisits
	ids      []int64 // of the targets: sites, then pages
}

// Run fills the tables that Options.DatabaseURL names, whose schema is up to date, as if the visits
// of an app of its own had been counted: when it is done every promise on the tables holds, whether
// others count meanwhile or not. The set must have passed Check.
func Run(ctx context.Context, o bench.Options, set Set) (report *Report, err error) {
	o, set = o.Completed(), set.Completed()
	d, err := db.Open(ctx, o.DatabaseURL, db.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.CheckSchema(ctx); err != nil {
		return nil, err
	}
	conn, err := bench.Connect(ctx, o.DatabaseURL, map[string]string{"synchronous_commit": "off", "work_mem": "256MB"}) // it need not wait for the disk
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.Background())
	g := &generation{Set: set, db: d, conn: conn, q: tables.New(conn), progress: o.Progress}
	// Retention would close days that are half filled, and drop those that have visits and no
	// numbers yet.
	turn := retention.New(d, retention.Options{})
	for {
		err = turn.InTurn(ctx, func() error {
			report, err = g.run(ctx)
			return err
		})
		if !errors.Is(err, retention.ErrRunning) {
			return report, err
		}
		g.progress("waiting until retention has ended")
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *generation) run(ctx context.Context) (_ *Report, err error) {
	r := &Report{Set: g.Set}
	began := time.Now()
	// The app counts in UTC, and believes what it is told.
	open, unlimited := "open", "0"
	settings := KeepForever()
	settings.Access, settings.MaxNewPages = &open, &unlimited
	if err := admin.New(g.db, nil).AddApp(ctx, g.App, settings); err != nil {
		return nil, err
	}
	if err = g.fill(ctx); err == nil {
		err = g.db.Read(ctx, func(q *db.Queries) error {
			r.Tables, err = q.TableSizes(ctx)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("app: %s was begun and is not complete: delete it with `footfall app delete %s`, or begin with a new folder: %w", g.App, g.App, err)
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// KeepForever are settings by which the service lets no visits go.
func KeepForever() app.Settings {
	forever := 0
	return app.Settings{RetainDays: &forever, ForgetDays: &forever}
}

//go:embed drawn.sql
var drawnTables string

// fill writes the rows of the app, and lets the planner know them. Days among the generated ones
// that were closed before get what closed days have.
func (g *generation) fill(ctx context.Context) error {
	g.progress(fmt.Sprintf("drawing %s visits", bench.Grouped(float64(g.Visits))))
	if g.drawn = drawVisits(g.Set); ctx.Err() != nil {
		return ctx.Err()
	}
	id, err := g.q.AppID(ctx, g.App)
	if err != nil {
		return err
	}
	if err := g.makeTargets(ctx, id); err != nil {
		return err
	}
	for _, day := range g.drawn.days {
		if _, err := db.New(g.conn).VisitsDayMake(ctx, visit.DayOf(day, time.UTC)); err != nil {
			return err
		}
	}
	closed := tables.ClosedDaysCompleteParams{AppID: id, FromDay: g.dayID(0), ToDay: g.dayID(g.Days - 1)}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the visits", g.copyVisits}, {"who came when", g.q.CameMake}, {"what is there", g.q.CameAnalyze},
		{"visitors", g.q.VisitorsMake}, {"visits", g.q.VisitsMake}, {"days", g.q.DaysMake}, {"returns", g.q.ReturnsMake}, {"counters", g.q.CountersMake},
		{"free space", g.q.TablesVacuum},
		{"closed days", func(ctx context.Context) error { return g.q.ClosedDaysComplete(ctx, closed) }},
	} {
		g.progress("writing " + step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("bench: write %s: %w", step.what, err)
		}
	}
	return nil
}

// dayID is a day as the tables write it.
func (g *generation) dayID(day int) int32 { return visit.DayOf(g.drawn.days[day], time.UTC) }

// makeTargets makes the sites, and then the pages, and finds out their ids.
func (g *generation) makeTargets(ctx context.Context, app int32) error {
	firsts := g.drawn.firstVisits()
	makeSome := func(from, to int) error {
		_, err := g.conn.CopyFrom(ctx, pgx.Identifier{"pages"}, []string{"app_id", "site_id", "created_at", "uri"}, pgx.CopyFromSlice(to-from, func(n int) ([]any, error) {
			n += from
			var site *int64
			if n >= g.Sites {
				site = &g.ids[g.drawn.siteOf[n-g.Sites]]
			}
			return []any{app, site, g.drawn.moment(firsts[n]), g.drawn.target(n)}, nil
		}))
		if err != nil {
			return err
		}
		all, err := g.q.TargetsInOrder(ctx, app)
		for n := from; n < len(all); n++ {
			if all[n].Uri != g.drawn.target(n) {
				return fmt.Errorf("bench: target %d is %s and should be %s", n, all[n].Uri, g.drawn.target(n))
			}
			g.ids = append(g.ids, all[n].ID)
		}
		return err
	}
	if err := errors.Join(makeSome(0, g.Sites), makeSome(g.Sites, g.Sites+g.Pages)); err != nil {
		return err
	}
	today := int64(0)
	for _, first := range firsts {
		if g.drawn.dayOf(first) == g.Days-1 {
			today++
		}
	}
	return g.q.TallyPut(ctx, tables.TallyPutParams{AppID: app, DayID: g.dayID(g.Days - 1), Today: today})
}

// copyVisits writes the visits down, of which all else is made.
func (g *generation) copyVisits(ctx context.Context) error {
	if _, err := g.conn.Exec(ctx, drawnTables); err != nil {
		return err
	}
	day := 0
	_, err := g.conn.CopyFrom(ctx, pgx.Identifier{"drawn"}, []string{"n", "day_id", "page_id", "site_id", "ip"}, pgx.CopyFromSlice(g.Visits, func(n int) ([]any, error) {
		for n >= g.drawn.dayEnds[day] {
			day++
		}
		page := g.drawn.page[n]
		return []any{int32(n), g.dayID(day), g.ids[g.Sites+int(page)], g.ids[g.drawn.siteOf[page]], g.drawn.address(g.drawn.visitor[n])}, nil //nolint:gosec // visits are checked to fit
	}))
	return err
}
