package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"footfall/counter"
	"footfall/db"
)

// GenerateOptions of a generated app. A zero field means its default.
type GenerateOptions struct {
	DatabaseURL string       // where Footfall's tables are; must be given
	Migrate     bool         // bring them up to date
	App         string       // that is made; default: generated
	Visits      int          // default 10,000,000
	Days        int          // default 60
	Until       time.Time    // the last day, in UTC; default: yesterday
	Pages       int          // default 100,000
	Visitors    int          // default 1,000,000
	Sites       int          // default 20
	Seed        uint64       // default 1
	Progress    func(string) // told what is being done; may be nil
}

func (o *GenerateOptions) complete() {
	if o.App == "" {
		o.App = "generated"
	}
	for value, whole := range map[*int]int{&o.Visits: 10_000_000, &o.Days: 60, &o.Pages: 100_000, &o.Visitors: 1_000_000, &o.Sites: 20} {
		if *value == 0 {
			*value = whole
		}
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Until.IsZero() {
		o.Until = time.Now().UTC().AddDate(0, 0, -1)
	}
	o.Until = o.Until.UTC().Truncate(24 * time.Hour)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// generation is a run of Generate.
type generation struct {
	GenerateOptions
	drawn *drawnVisits
	days  []dayOfRows // beside drawn.days
	sums  []dayRow    // by target
	total int64       // rows
	done  atomic.Int64
	ids   []int64 // of targets in the tables
}

// Generate fills the tables of an app of its own with made-up visits, as if they had been counted: every promise on the tables holds.
// It is for databases that nobody else writes to meanwhile.
func Generate(ctx context.Context, o GenerateOptions) (_ *GenerateReport, err error) {
	o.complete()
	if err := o.check(); err != nil {
		return nil, err
	}
	g := &generation{GenerateOptions: o}
	began := time.Now()
	appID, err := g.addApp(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("app: %s was begun and is not complete: delete it with `footfall app delete %s`, or begin with a new folder: %w", o.App, o.App, err)
		}
	}()
	o.Progress(fmt.Sprintf("drawing %s visits", grouped(float64(o.Visits))))
	if g.drawn = drawVisits(o); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	g.count()
	r := &GenerateReport{App: o.App, Visits: o.Visits, Days: o.Days, Pages: o.Pages, Visitors: o.Visitors, Sites: o.Sites, Seed: o.Seed}
	if err := g.write(ctx, appID); err != nil {
		return nil, err
	}
	r.Tables, err = g.settle(ctx)
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

// addApp adds the app that counts in UTC, and believes what it is told.
func (g *generation) addApp(ctx context.Context) (id int32, err error) {
	d, err := db.Open(ctx, g.DatabaseURL, db.Options{})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if g.Migrate {
		_, err = d.MigrateUp(ctx)
	} else {
		err = d.CheckSchema(ctx)
	}
	if err != nil {
		return 0, err
	}
	open, unlimited := "open", "0"
	settings := keepForever()
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

// count sums the visits up, so that it is known how many rows there will be.
func (g *generation) count() {
	g.days, g.sums = sortVisits(g.drawn).byDay()
	g.total = int64(2 * len(g.sums)) // pages and counters
	for _, d := range g.days {
		g.total += int64(len(d.came) + len(d.visitors) + len(d.days) + len(d.returns))
	}
}
