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
	// putsEnd is how long after its number was given a row has surely committed, or never will. Rows of
	// which that is not so (their session hung) are found within wholeEvery.
	putsEnd    = 30 * time.Second
	wholeEvery = time.Minute
	// looksTake is how much of the time may be spent on looking how much waits.
	looksTake = 20
)

// view is what this instance has seen of the table. Of rows that are gone PostgreSQL keeps something
// for as long as an older transaction might ask for them, so they are passed by their numbers.
type view struct {
	db      *db.DB
	writer  *writer // nil: this process writes nothing
	metrics *metrics

	gone atomic.Int64 // up to this number no row waits

	mu     sync.Mutex      // guards what follows
	firsts map[int32]int64 // the first row that waits, by app
	last   int64           // the largest number that was seen
	marked time.Time       // when mark was the largest
	mark   int64
	ended  int64     // the largest that is older than putsEnd
	whole  time.Time // when rows of any numbers were looked at
}

// watch looks until ctx ends, also while this instance or another one counts for long what is there.
func (v *view) watch(ctx context.Context) {
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		began := time.Now()
		_ = v.look(ctx) // whoever counts tells of errors
		rest = max(lookEvery, looksTake*time.Since(began))
	}
}

// look looks at what waits.
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

// from is the number behind which the rows of an app are to be read, or (0) those of all apps but some.
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
