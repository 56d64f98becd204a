// Package inbox stores visits durably for a fraction of the cost of counting them, and counts them
// a moment later, each exactly once.
//
// Put adds a visit to the writer (write.go): while the writer writes one transaction, visits gather
// for the next transaction. One instance at a time reads the waiting rows (drain.go), and counts
// their visits in transactions that also delete the rows (chunk.go). If the visits of an app cannot
// be counted now, they are set aside and retried later. Each instance regularly checks how many
// visits wait (view.go).
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

// Options configure Open. A zero field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // default: the metrics are not registered
	// Limit is the maximum number of waiting visits. Default 10 million.
	Limit int64
}

// Inbox is one instance's access to the inbox. It is safe for concurrent use.
type Inbox struct {
	writer *writer
	drain  *drainer
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Open starts accepting visits, and counting the visits that wait in the inbox. Close stops both.
// The recorder stays open, and must be closed after the inbox.
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

// Put writes a visit to the inbox, and returns when the visit has committed there or has failed.
// The visit is counted later with its present day, visitor and tags. Put takes no context for the
// same reason as Recorder.Record.
func (i *Inbox) Put(v record.Visit) error {
	if v.Tags != nil {
		tags := v.Tags() // here, because many callers run concurrently, but only one writer
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

// Close refuses new visits, and returns when all accepted visits are written and all background
// work has stopped. Waiting visits stay in the table for the next start.
func (i *Inbox) Close() {
	i.writer.close()
	i.stop()
	i.ended.Wait()
}

// Settle counts all visits of an app that were accepted before the call, and returns how many of
// them were waiting.
func Settle(ctx context.Context, d *db.DB, r *record.Recorder, app int32, o Options) (waited int64, err error) {
	return newDrainer(d, r, nil, o, newMetrics(nil)).settleAll(ctx, app)
}

// Behind returns the number of accepted visits of an app that are not counted yet.
func (i *Inbox) Behind(ctx context.Context, app int32) (visits int64, err error) {
	after := i.drain.view.drainedUpTo.Load()
	err = read(ctx, i.drain.db, func(q *db.Queries) (err error) { visits, err = q.InboxBehind(ctx, app, after); return err })
	return visits, err
}

// read runs f with the time limit of one statement.
func read(ctx context.Context, d *db.DB, f func(q *db.Queries) error) error {
	ctx, cancel := d.InTime(ctx)
	defer cancel()
	return d.Read(ctx, f)
}
