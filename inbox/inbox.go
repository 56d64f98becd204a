// Package inbox takes visits in durably, for a fraction of what counting costs, and has them
// counted a moment later, each exactly once.
//
// The way of a visit: Put waits for the writer (write.go): while one transaction is written, visits
// gather for the next. One instance at a time reads what waits (drain.go), and has it counted by
// transactions that delete its rows (chunk.go). What cannot be counted now is passed by, and tried
// again later. What waits, each instance looks at now and then (view.go).
package inbox

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
	"footfall/record"
	"footfall/visit/tag"
)

// Options of Open. The zero value of a field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // default: nowhere
	// Limit is how many visits may wait. Default 10 million.
	Limit int64
}

// Inbox is the inbox as one instance uses it. It is safe for concurrent use.
type Inbox struct {
	writer *writer
	drain  *drainer
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Open begins to take visits, and to count what is there. Close ends both; the recorder stays open,
// and must not be closed before.
func Open(d *db.DB, r *record.Recorder, o Options) *Inbox {
	ctx, stop := context.WithCancel(context.Background())
	m := newMetrics(o.Metrics)
	w := newWriter(d, o, m)
	i := &Inbox{writer: w, drain: newDrainer(d, r, w, o, m), stop: stop}
	i.ended.Go(w.run)
	i.ended.Go(func() { i.drain.run(ctx) })
	i.ended.Go(func() { i.drain.view.watch(ctx) })
	return i
}

// Put returns when the visit has committed to the inbox, or has failed. Its day, its visitor and
// its tags are those that it is counted with. It takes no context, for the reason for which
// Recorder.Record takes none.
func (i *Inbox) Put(v record.Visit) error {
	if v.Tags != nil {
		tags := v.Tags() // by the goroutine of the caller: the writer is one for all
		v.Tags = func() tag.Set { return tags }
	}
	g, place, err := i.writer.accept(v)
	if err == nil {
		<-g.done
		err = g.errs[place]
	}
	i.writer.metrics.outcome(err)
	return err
}

// Close refuses new visits, and returns when every accepted one has been answered and nothing runs
// in the background. What waits stays in the table, for the next start.
func (i *Inbox) Close() {
	i.writer.close()
	i.stop()
	i.ended.Wait()
}

// Settle counts all visits of an app that were accepted before it was called, and returns how many
// waited.
func Settle(ctx context.Context, d *db.DB, r *record.Recorder, app int32, o Options) (waited int64, err error) {
	return newDrainer(d, r, nil, o, newMetrics(nil)).settleAll(ctx, app)
}

// Behind is how many accepted visits of an app are not counted yet.
func (i *Inbox) Behind(ctx context.Context, app int32) (visits int64, err error) {
	after := i.drain.view.gone.Load()
	err = read(ctx, i.drain.db, func(q *db.Queries) (err error) { visits, err = q.InboxBehind(ctx, app, after); return err })
	return visits, err
}

// read runs f in as much time as a read may take.
func read(ctx context.Context, d *db.DB, f func(q *db.Queries) error) error {
	ctx, cancel := d.InTime(ctx)
	defer cancel()
	return d.Read(ctx, f)
}
