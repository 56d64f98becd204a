package counter

import (
	"context"

	"footfall/counter/app"
	"footfall/db"
	"footfall/record"
)

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
