// Package inbox first stores visits in a table, because this takes much less time than counting them. It counts each visit
// a moment later, exactly once.
//
// Put passes a visit to the writer (write.go). While the writer runs one transaction, it collects visits for the next one.
// Only one instance at a time drains the inbox (drain.go): it reads the waiting rows, and counts their visits in
// transactions that also delete the rows (chunk.go). If the visits of an app cannot be counted now, the app is set aside
// and retried later. Each instance regularly checks how many visits wait (view.go).
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

// Options configure Open. If a field is zero, its default is used.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // default: the metrics are not registered
	// Limit is the maximum number of waiting visits. Default 10 million.
	Limit int64
}

// Inbox is the part of an instance that writes visits to the table inbox and counts the visits in this table. It is safe
// for concurrent use.
type Inbox struct {
	writer *writer
	drain  *drainer
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Open starts to accept visits, and to count the visits that wait in the table. Close stops both. The caller must close the
// recorder after the inbox.
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

// Put writes a visit to the inbox, and returns when the transaction has committed or failed. The visit is counted later,
// but with its present day, visitor and tags. Put has no context parameter, because an accepted visit is written even if
// its caller disconnects.
func (i *Inbox) Put(v record.Visit) error {
	if v.Tags != nil {
		tags := v.Tags() // computed here, in the goroutines of the callers, because there is only one writer
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

// Close refuses new visits. It returns when all accepted visits are in the table, and all background goroutines have
// stopped. Visits that are not counted yet stay in the table.
func (i *Inbox) Close() {
	i.writer.close()
	i.stop()
	i.ended.Wait()
}

// Settle counts all visits of an app that are waiting in the inbox when Settle is called. It returns the number of these
// visits.
func Settle(ctx context.Context, d *db.DB, r *record.Recorder, app int32, o Options) (waited int64, err error) {
	return newDrainer(d, r, nil, o, newMetrics(nil)).settleAll(ctx, app)
}

// Behind returns how many accepted visits of an app are not counted yet.
func (i *Inbox) Behind(ctx context.Context, app int32) (visits int64, err error) {
	after := i.drain.view.drainedUpTo.Load()
	err = read(ctx, i.drain.db, func(q *db.Queries) (err error) { visits, err = q.InboxBehind(ctx, app, after); return err })
	return visits, err
}

// read calls f with queries that read the database d. The statement timeout limits the time that f may take.
func read(ctx context.Context, d *db.DB, f func(q *db.Queries) error) error {
	ctx, cancel := d.InTime(ctx)
	defer cancel()
	return d.Read(ctx, f)
}
