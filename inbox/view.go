package inbox

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/pause"
)

const (
	// A transaction gets the numbers of its rows before it commits. It has normally committed or failed after putTimeout.
	// If it commits even later, look finds its rows within wholeEvery.
	putTimeout = 30 * time.Second
	wholeEvery = time.Minute
	// watch spends at most 1/lookShare of its time on reading the table inbox.
	lookShare = 20
)

// view contains the results of this instance's last read of the table inbox. PostgreSQL keeps deleted rows until old
// transactions have ended, and such rows slow down reads. So the view stores the number up to which no row is waiting, and
// reads start after this number.
type view struct {
	db      *db.DB
	writer  *writer // writer of this process; nil: the process does not write to the inbox
	metrics *metrics

	drainedUpTo atomic.Int64 // no row up to this number is waiting

	mu           sync.Mutex      // guards the following fields
	firsts       map[int32]int64 // app → number of the app's first waiting row
	last         int64           // the largest row number that look has found so far
	marked       time.Time       // when mark was last set to the value of last
	mark         int64
	ended        int64     // largest row number found more than putTimeout ago; rows committed later normally have larger numbers
	lastFullLook time.Time // when look last read all rows, not only the rows after drainedUpTo
}

// watch calls look regularly until ctx ends, even while another instance drains the inbox.
func (v *view) watch(ctx context.Context) {
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		began := time.Now()
		_ = v.look(ctx) // ignore the error, because drainer.run logs errors of the database
		rest = max(lookEvery, lookShare*time.Since(began))
	}
}

// look reads which rows of the inbox are waiting. It updates the view, the metrics and the writer's limits.
func (v *view) look(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, after, written := time.Now(), v.drainedUpTo.Load(), int64(0)
	if now.Sub(v.lastFullLook) > wholeEvery {
		after = 0
	}
	if v.writer != nil {
		written = v.writer.written.Load()
	}
	var apps []db.InboxLookRow
	within, done := v.db.InTime(ctx)
	defer done()
	if err := v.db.ReadInbox(within, func(q *db.Queries) (err error) { apps, err = q.InboxLook(within, after); return err }); err != nil {
		return err
	}
	if after == 0 {
		v.lastFullLook = now
	}
	first := int64(math.MaxInt64)
	v.firsts = make(map[int32]int64, len(apps))
	for _, app := range apps {
		v.firsts[app.AppID] = app.First
		first, v.last = min(first, app.First), max(v.last, app.Last)
	}
	if now.Sub(v.marked) > putTimeout {
		v.ended, v.mark, v.marked = v.mark, v.last, now
	}
	v.drainedUpTo.Store(min(v.ended, first-1))
	if v.writer != nil {
		v.writer.updateLimits(apps, written)
	}
	v.metrics.show(apps, v.db.ClockOffset())
	return nil
}

// findStart returns the row number after which the drainer must start to read. app is the id of the app whose rows the
// drainer reads. If app is 0, the drainer reads the rows of all apps that are not in butFor.
func (v *view) findStart(app int32, butFor map[int32]*asidePeriod) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	from := v.ended
	for a, first := range v.firsts {
		if a == app || app == 0 && butFor[a] == nil {
			from = min(from, first-1)
		}
	}
	if app != 0 && v.firsts[app] == 0 {
		return v.drainedUpTo.Load()
	}
	return from
}
