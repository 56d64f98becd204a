// Package generate fills tables with an app of made-up visits, as many as reports and checks are to
// be tried on.
package generate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"footfall/bench"
	"footfall/counter"
	"footfall/db"
	"footfall/retention"
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
	case bitsOf(s.Pages+s.Sites)+bitsOf(s.Visitors)+bitsOf(s.Visits) > 64:
		return []error{fmt.Errorf("visits: %d by %d visitors to %d pages are too many: give smaller numbers", s.Visits, s.Visitors, s.Pages)}
	}
	return nil
}

// generation is a run of Run.
type generation struct {
	Set
	url      string
	progress func(string)

	drawn *drawnVisits
	days  []dayOfRows // beside drawn.days
	sums  []dayRow    // by target
	total int64       // rows
	done  atomic.Int64
	ids   []int64 // of targets in the tables
}

// Run fills the tables that Options.DatabaseURL names, whose schema is up to date, as if the visits
// of an app of its own had been counted: when it is done every promise on the tables holds, whether
// others count meanwhile or not. The set must have passed Check.
func Run(ctx context.Context, o bench.Options, set Set) (report *Report, err error) {
	o, set = o.Completed(), set.Completed()
	g := &generation{Set: set, url: o.DatabaseURL, progress: o.Progress}
	d, err := db.Open(ctx, g.url, db.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := d.CheckSchema(ctx); err != nil {
		return nil, err
	}
	// Retention would close days that are half filled, and drop those that have visits and no
	// numbers yet.
	turn := retention.New(d, retention.Options{})
	for {
		err = turn.InTurn(ctx, func() error {
			report, err = g.run(ctx, d)
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

func (g *generation) run(ctx context.Context, d *db.DB) (_ *Report, err error) {
	began, set := time.Now(), g.Set
	appID, err := g.addApp(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("app: %s was begun and is not complete: delete it with `footfall app delete %s`, or begin with a new folder: %w", set.App, set.App, err)
		}
	}()
	g.progress(fmt.Sprintf("drawing %s visits", bench.Grouped(float64(set.Visits))))
	if g.drawn = drawVisits(set); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	g.count()
	r := &Report{Set: set}
	if err := g.write(ctx, appID); err != nil {
		return nil, err
	}
	r.Tables, err = g.settle(ctx, appID)
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

// addApp adds the app that counts in UTC, and believes what it is told.
func (g *generation) addApp(ctx context.Context, d *db.DB) (id int32, err error) {
	open, unlimited := "open", "0"
	settings := KeepForever()
	settings.Access, settings.MaxNewPages = &open, &unlimited
	if err := counter.NewAdmin(d, nil).AddApp(ctx, g.App, settings); err != nil {
		return 0, err
	}
	err = d.Read(ctx, func(q *db.Queries) error {
		app, err := q.AppGet(ctx, g.App)
		id = app.ID
		return err
	})
	return id, err
}

// KeepForever are settings by which the service lets no visits go.
func KeepForever() counter.Settings {
	forever := 0
	return counter.Settings{RetainDays: &forever, ForgetDays: &forever}
}

// count sums the visits up, so that it is known how many rows there will be.
func (g *generation) count() {
	g.days, g.sums = sortVisits(g.drawn).byDay()
	g.total = int64(2 * len(g.sums)) // pages and counters
	for _, d := range g.days {
		g.total += int64(len(d.came) + len(d.visitors) + len(d.days) + len(d.returns))
	}
}
