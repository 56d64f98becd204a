package record

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/pause"
	"footfall/record/bloom"
)

// filterError is the probability that the filter does not report a new visitor as new, so that the visitor is looked
// up needlessly. At 0.001, the filter needs 14 bits of memory per visitor, and the needless look-ups cost almost
// nothing compared to writing all visitors. At 0.01, it would still need 10 bits.
const filterError = 0.001

// filter is a Bloom filter of the (target, visitor) pairs in the tables, where a target is a page or a site. It
// reports visitors that are certainly new to a target, so that batches need not look up these visitors. It reports no
// visitor as new before it has read the tables, or after its memory is used up. In the second case, the filter logs a
// warning. Its methods may be called concurrently.
type filter struct {
	memory int64 // maximum size in bytes
	log    *slog.Logger
	warned *sync.Once                   // so that the memory warning is logged only once; shared by all filters of an instance
	bloom  atomic.Pointer[bloom.Filter] // set by prepare, which first counts the rows; nil before that
	ready  atomic.Bool                  // set by warm when it has read every row, or when the memory is used up
}

// surelyNew reports whether the visitor is certainly new to the target: no visit of this visitor has been counted,
// except perhaps by another instance a moment ago. The result true is called a hint. The result false means that the
// visitor may be new or not.
func (f *filter) surelyNew(target int64, visitor netip.Addr) bool {
	return f != nil && f.ready.Load() && !f.bloom.Load().Has(bloom.Visitor(target, visitor))
}

// add adds a pair to the filter, and logs a warning once if the filter's memory is used up.
func (f *filter) add(target int64, visitor netip.Addr) {
	if f == nil {
		return
	}
	b := f.bloom.Load()
	if b == nil {
		return // warm will read all committed pairs from the tables, including this one
	}
	b.Add(bloom.Visitor(target, visitor))
	if b.Saturated() {
		f.warned.Do(func() {
			f.log.Warn("the filter's memory is used up, so every visitor is looked up from now on; raise --memory",
				"keys", b.Stats().Keys, "bytes", f.memory)
		})
	}
}

const (
	warmRows     = 20_000           // rows per query
	warmLogEvery = 10 * time.Second // interval between log lines
	warmPatience = 30 * time.Second // time limit of a query
)

// warming is the progress of a filter in reading the tables. Only one goroutine uses it.
type warming struct {
	began, logged time.Time
	rows, read    int64 // number of rows at the start, and number of rows read
	after         db.VisitorsAfterParams
}

// warm reads all visitors of the tables into the filter. After each query it pauses for as long as the query took, so
// that the database has time for other work. If a call fails, the next call with the same w continues after the rows
// that were read.
func (f *filter) warm(ctx context.Context, d *db.DB, w *warming) error {
	if f.bloom.Load() == nil {
		if err := f.prepare(ctx, d, w); err != nil {
			return err
		}
	}
	for !f.bloom.Load().Saturated() {
		asked := time.Now()
		some, err := readVisitors(ctx, d, w.after)
		if err != nil {
			return err
		}
		for _, v := range some {
			f.add(v.PageID, v.Ip)
			w.after.PageID, w.after.Ip = v.PageID, v.Ip
		}
		w.read += int64(len(some))
		if len(some) < warmRows {
			break
		}
		if time.Since(w.logged) > warmLogEvery {
			w.logged = time.Now()
			f.log.Info("the filter is reading the visitors", "read", w.read, "of", w.rows)
		}
		if pause.For(ctx, time.Since(asked)) != nil {
			return ctx.Err()
		}
	}
	f.ready.Store(true)
	stats := f.bloom.Load().Stats()
	if stats.Saturated {
		return nil // add or prepare has logged a warning
	}
	f.log.Info("the filter is ready", "visitors", w.read, "bytes", stats.Bytes, "error", stats.Error,
		"took", time.Since(w.began).Round(time.Millisecond))
	return nil
}

// prepare creates the Bloom filter, with room for twice the present number of visitors.
func (f *filter) prepare(ctx context.Context, d *db.DB, w *warming) error {
	w.began, w.logged = time.Now(), time.Now()
	ctx, cancel := context.WithTimeout(ctx, warmPatience)
	defer cancel()
	if err := inOrder(ctx, d, func(q *db.Queries) (err error) {
		w.rows, err = q.VisitorsCount(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("count the visitors: %w", err)
	}
	b, err := bloom.New(bloom.Config{Keys: uint64(2 * w.rows), Error: filterError, MaxBytes: f.memory}) //nolint:gosec // a number of rows
	if err != nil {
		return err
	}
	w.after = db.VisitorsAfterParams{PageID: -1, Ip: netip.IPv4Unspecified(), Rows: warmRows}
	f.bloom.Store(b)
	if need := bloom.SizeFor(uint64(w.rows), filterError); w.rows > 0 && need > f.memory { //nolint:gosec // a number of rows
		f.warned.Do(func() {
			f.log.Warn("the filter's memory is too small for the existing visitors, so every visitor is looked up; raise --memory",
				"rows", w.rows, "bytes", f.memory, "needed", need)
		})
	}
	if w.rows > 0 {
		f.log.Info("the filter starts to read the visitors", "rows", w.rows, "bytes", b.Stats().Bytes)
	}
	return nil
}

func readVisitors(ctx context.Context, d *db.DB, after db.VisitorsAfterParams) (some []db.VisitorsAfterRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, warmPatience)
	defer cancel()
	if err := inOrder(ctx, d, func(q *db.Queries) (err error) {
		some, err = q.VisitorsAfter(ctx, after)
		return err
	}); err != nil {
		return nil, fmt.Errorf("read visitors: %w", err)
	}
	return some, nil
}

// inOrder runs read in a transaction that reads tables in key order, with warmPatience as the
// statement timeout.
func inOrder(ctx context.Context, d *db.DB, read func(q *db.Queries) error) error {
	return d.InTx(ctx, func(q *db.Queries) error {
		if err := q.ReadInOrder(ctx, strconv.FormatInt(warmPatience.Milliseconds(), 10)); err != nil {
			return err
		}
		return read(q)
	})
}

// stats returns the statistics of the Bloom filter. If there is no Bloom filter yet, all numbers are zero.
func (f *filter) stats() bloom.Stats {
	if f == nil {
		return bloom.Stats{}
	}
	if b := f.bloom.Load(); b != nil {
		return b.Stats()
	}
	return bloom.Stats{}
}
