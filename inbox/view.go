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
	// putsEnd is the time after which a row has committed under its number, or never will. Rows that commit even later (a
	// hanging session) are found within wholeEvery.
	putsEnd    = 30 * time.Second
	wholeEvery = time.Minute
	// looksTake limits looking at the table to 1/looksTake of the time.
	looksTake = 20
)

// view is this instance's last look at the table. Until old transactions have ended, PostgreSQL keeps
// deleted rows, which slow down reads. So reads start after the numbers of deleted rows.
type view struct {
	db      *db.DB
	writer  *writer // nil: this process does not write to the inbox
	metrics *metrics

	gone atomic.Int64 // no row up to this number is waiting

	mu     sync.Mutex      // guards the following fields
	firsts map[int32]int64 // the first waiting row, by app
	last   int64           // the largest number seen so far
	marked time.Time       // when mark was the largest number
	mark   int64
	ended  int64     // the largest number that is older than putsEnd
	whole  time.Time // when rows of all numbers were last read
}

// watch looks regularly until ctx ends, even while this or another instance is counting.
func (v *view) watch(ctx context.Context) {
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		began := time.Now()
		_ = v.look(ctx) // the drainer reports errors
		rest = max(lookEvery, looksTake*time.Since(began))
	}
}

// look reads which rows are waiting.
func (v *view) look(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, after, written := time.Now(), v.gone.Load(), int64(0)
	if now.Sub(v.whole) > wholeEvery {
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
		v.whole = now
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
	v.gone.Store(min(v.ended, first-1))
	if v.writer != nil {
		v.writer.saw(apps, written)
	}
	v.metrics.show(apps, v.db.ClockOffset())
	return nil
}

// from returns the number after which to read the rows of an app or, if app is 0, of all apps except butFor.
func (v *view) from(app int32, butFor map[int32]*rest) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	from := v.ended
	for a, first := range v.firsts {
		if a == app || app == 0 && butFor[a] == nil {
			from = min(from, first-1)
		}
	}
	if app != 0 && v.firsts[app] == 0 {
		return v.gone.Load()
	}
	return from
}
