package record

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/record/bloom"
)

// filterError is how often the filter may take a new visitor for a known one, who is then looked up for nothing. One in 1,000
// is nothing beside what new visitors write, and takes 14 bits for each of them; one in 100 would still take 10.
const filterError = 0.001

// filter is a Bloom filter of the (target, visitor) pairs that the tables hold: it hints at those that they surely do not hold.
// It gives no hints until it has read the tables, and none again once its memory is used up: it says so in the log, and
// everybody is looked up. Its methods may be called concurrently.
type filter struct {
	memory int64 // bytes, at most
	log    *slog.Logger
	bloom  atomic.Pointer[bloom.Filter] // nil until the rows have been counted; set by warm
	ready  atomic.Bool                  // every row has been read; set by warm
	told   atomic.Bool                  // that the memory is used up
}

// newFilter makes a filter; nil, which gives no hints, where there is to be none.
func newFilter(o Options) *filter {
	if !o.Filter {
		return nil
	}
	return &filter{memory: o.FilterMemory, log: o.Log}
}

// surelyNew reports whether the visitor never came to the target, unless another instance was faster. It is the hint; false
// means nothing.
func (f *filter) surelyNew(target int64, visitor netip.Addr) bool {
	return f != nil && f.ready.Load() && !f.bloom.Load().Has(bloom.Visitor(target, visitor))
}

// add tells of a pair that is in the tables: one that has committed.
func (f *filter) add(target int64, visitor netip.Addr) {
	if f == nil {
		return
	}
	b := f.bloom.Load()
	if b == nil {
		return // the rows are read after it is set, this one with them
	}
	b.Add(bloom.Visitor(target, visitor))
	if b.Saturated() && f.told.CompareAndSwap(false, true) {
		f.log.Warn("the filter's memory is used up: every visitor is looked up from now on; give it more with --filter-memory",
			"keys", b.Stats().Keys, "bytes", f.memory)
	}
}

const (
	warmRows     = 20_000 // that are read at once
	warmTells    = 10 * time.Second
	warmPatience = 30 * time.Second // for one of its queries
)

// warming is how far a filter has read the tables. One goroutine uses it.
type warming struct {
	began, told time.Time
	rows, read  int64 // how many there were at the beginning, how many have been read
	after       db.VisitorsAfterParams
}

// warm reads the visitors of the tables, as slowly as it takes to leave half of a connection's time to others, until it has
// them all or ctx ends. After an error it goes on from where it was when it is called again.
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
		if time.Since(w.told) > warmTells {
			w.told = time.Now()
			f.log.Info("the filter is reading the visitors", "read", w.read, "of", w.rows)
		}
		if !sleep(ctx, time.Since(asked)) {
			return ctx.Err()
		}
	}
	f.ready.Store(true)
	stats := f.bloom.Load().Stats()
	if stats.Saturated {
		return nil // which add has told
	}
	f.log.Info("the filter is ready", "visitors", w.read, "bytes", stats.Bytes, "error", stats.Error,
		"took", time.Since(w.began).Round(time.Millisecond))
	return nil
}

// prepare makes the filter, for twice as many visitors as there are.
func (f *filter) prepare(ctx context.Context, d *db.DB, w *warming) error {
	w.began, w.told = time.Now(), time.Now()
	ctx, cancel := context.WithTimeout(ctx, warmPatience)
	defer cancel()
	if err := inOrder(ctx, d, func(q *db.Queries) (err error) {
		w.rows, err = q.VisitorsCount(ctx)
		return err
	}); err != nil {
		return fmt.Errorf("count the visitors: %w", err)
	}
	b, err := bloom.New(bloom.Config{Keys: uint64(2 * w.rows), Error: filterError, MaxBytes: f.memory}) //nolint:gosec // a count
	if err != nil {
		return err
	}
	w.after = db.VisitorsAfterParams{PageID: -1, Ip: netip.IPv4Unspecified(), Rows: warmRows}
	f.bloom.Store(b)
	if need := bloom.SizeFor(uint64(w.rows), filterError); w.rows > 0 && need > f.memory { //nolint:gosec // a count
		f.log.Warn("the filter's memory does not hold the visitors there are; give it more with --filter-memory",
			"rows", w.rows, "bytes", f.memory, "needed", need)
	}
	if w.rows > 0 {
		f.log.Info("the filter begins to read the visitors", "rows", w.rows, "bytes", b.Stats().Bytes)
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

// inOrder reads in a transaction whose plans follow the keys, and whose statements have time.
func inOrder(ctx context.Context, d *db.DB, read func(q *db.Queries) error) error {
	return d.InTx(ctx, func(q *db.Queries) error {
		if err := q.ReadInOrder(ctx, strconv.FormatInt(warmPatience.Milliseconds(), 10)); err != nil {
			return err
		}
		return read(q)
	})
}

// stats describes the filter; nothing where there is none.
func (f *filter) stats() bloom.Stats {
	if f == nil {
		return bloom.Stats{}
	}
	if b := f.bloom.Load(); b != nil {
		return b.Stats()
	}
	return bloom.Stats{}
}
