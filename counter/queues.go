package counter

import (
	"context"

	"footfall/counter/app"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// MayConsume is the permission to count the visits of a queue for an app: whoever has the database
// needs no key.
func (c *Counter) MayConsume(ctx context.Context, name string) (*Counting, error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, err
	}
	a := register.Apps[name]
	switch {
	case a == nil:
		return nil, app.NoApp(name)
	case a.Fault != nil:
		return nil, visit.Errorf(visit.Invalid, "app", "%v", a.Fault)
	}
	return &Counting{counter: c, app: a}, nil
}

// MayImport is the permission to count the visits of logs for an app: whoever has the
// database needs no key.
func (c *Counter) MayImport(ctx context.Context, name string) (*Counting, error) {
	g, err := c.MayConsume(ctx, name)
	if err == nil && g.app.Mode == app.ByID {
		return nil, visit.Errorf(visit.Invalid, "app", "%s tells visitors apart by ids, which no log has: import into an app that goes by addresses", name)
	}
	return g, err
}

// App is the app whose visits are counted.
func (g *Counting) App() *app.App { return g.app }

// DB is where they are counted.
func (g *Counting) DB() *db.DB { return g.counter.db }

// Recorder counts what Visit has read.
func (g *Counting) Recorder() *record.Recorder { return g.counter.recorder }

// OpenQueue returns how far a part of a queue was counted; up to its first message, if nobody has
// read it before.
func (g *Counting) OpenQueue(ctx context.Context, source, part string, first int64) (*record.Position, error) {
	return g.counter.recorder.OpenQueue(ctx, db.Position{App: g.app.ID, Source: source, Part: part}, first)
}
