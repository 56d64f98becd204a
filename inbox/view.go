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
	// putsEnd is the time after which a transaction that has taken a row number has committed or failed. In a hanging
	// session, the transaction may commit even later. Then look finds its row within wholeEvery.
	putsEnd    = 30 * time.Second
	wholeEvery = time.Minute
	// The view spends at most 1/looksTake of the time on reading the table inbox.
	looksTake = 20
)

// view is the result of this instance's last look at the table inbox. PostgreSQL keeps deleted rows until old
// transactions have ended, and these rows slow down reads. So the drainer starts to read after the numbers of
// deleted rows.
type view struct {
	db      *db.DB
	writer  *writer // nil: this process does not write to the inbox
	metrics *metrics

	drainedUpTo atomic.Int64 // no row up to this number is waiting

	mu           sync.Mutex      // guards the following fields
	firsts       map[int32]int64 // app → number of its first waiting row
	last         int64           // the largest row number seen so far
	marked       time.Time       // when mark was the largest row number
	mark         int64
	ended        int64     // the largest row number that was seen more than putsEnd ago
	lastFullLook time.Time // when look last read all rows, and not only rows after gone
}

// watch calls look regularly until ctx ends, even while this or another instance is counting.
func (v *view) watch(ctx context.Context) {
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		began := time.Now()
		_ = v.look(ctx) // run of the drainer logs errors of the database
		rest = max(lookEvery, looksTake*time.Since(began))
	}
}

// look reads which rows are waiting.
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
	if now.Sub(v.marked) > putsEnd {
		v.ended, v.mark, v.marked = v.mark, v.last, now
	}
	v.drainedUpTo.Store(min(v.ended, first-1))
	if v.writer != nil {
		v.writer.updateLimits(apps, written)
	}
	v.metrics.show(apps, v.db.ClockOffset())
	return nil
}

// from returns the row number after which to read the rows of an app or, if app is 0, of all apps except butFor.
func (v *view) from(app int32, butFor map[int32]*pausedFor) int64 {
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
