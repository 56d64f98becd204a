// Package imports counts the visits that access logs tell of, each once: whatever a log is called,
// however it is packed, and whoever was killed while it was read.
//
// A log is its bytes from the beginning (decide.go): how many of them are counted, and the hash of
// exactly these, move in the transaction that counts them (package feed, to which count.go gives the
// lines).
package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"footfall/counter"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
)

// Options say what to import, and how.
type Options struct {
	App    string
	Files  []string // also patterns, and - for standard input
	Stdin  io.Reader
	Rules  Rules
	Server string // that wrote them; "": it is not told

	// What is told of files that share lines with logs: that only lines after a second are to count,
	// those behind what was counted, or all.
	After        time.Time
	AfterCounted bool
	Another      bool

	DryRun bool                           // look only
	Follow bool                           // go on as the files grow, until the context ends
	Notice func(text string, cause error) // cause: nil if there is no more to tell

	every    time.Duration // how often files that are followed are looked at; default lookEvery
	pauses   time.Duration // how often retention is paused anew; default pauseEvery
	patience time.Duration // how long a database is waited for; default patience
}

// Progress tells whoever watches an import how far it is.
type Progress struct {
	Looked  atomic.Int64 // bytes that were looked at
	Total   atomic.Int64 // bytes that are to be counted; 0 until that is known
	Done    atomic.Int64 // of these
	Lines   atomic.Int64
	Counted atomic.Int64 // visits
}

// source is a file that is imported.
type source struct {
	file *file
	head head // of the file
	seen
	log        Log
	shorter    []*source        // with which it begins, that are read where it is not
	moved      bool             // it takes the place of the log, and begins elsewhere
	position   *record.Position // nil: nothing of it is to be counted
	refused    bool             // and somebody must look at it
	toldBefore bool

	reading
}

// run is one import.
type run struct {
	Options
	service
	app    *settings
	asked  time.Time // when they were
	paused time.Time // when retention was
	first  int32     // the first day that the app still counts

	following bool // the files, all of which were counted once
	sources   []*source
	twins     map[int64][]*source // those that begin alike
	summary   *Summary
	progress  *Progress
	retry     *feed.Retry
}

// patience is how long an import waits for a database that does not count.
const patience = 10 * time.Minute

// errDryRun takes back what a dry run has written.
var errDryRun = errors.New("only looked")

// Run imports logs. Its summary tells of all that was read, also where it ends with an error.
func Run(ctx context.Context, c *counter.Counter, o Options, p *Progress) (*Summary, error) {
	return runOn(ctx, &database{counter: c, name: o.App, pause: counter.NewPause()}, o, p)
}

func runOn(ctx context.Context, on service, o Options, p *Progress) (*Summary, error) {
	r := &run{Options: o, service: on, summary: newSummary(), progress: p,
		retry: feed.NewRetry(o.Notice, cmp.Or(o.patience, patience), feed.IsAway)}
	defer r.close()
	if err := r.refreshed(ctx); err != nil {
		return r.summary, err
	}
	if err := r.open(); err != nil {
		return r.summary, err
	}
	if err := r.retry.Do(ctx, func() error { return r.keepPaused(ctx) }); err != nil {
		return r.summary, err
	}
	if err := r.countAll(ctx); err != nil {
		return r.summary, err
	}
	if !r.DryRun {
		if err := r.retry.Do(ctx, func() error { return r.end(ctx, r.summary.Counted) }); err != nil {
			return r.summary, err
		}
	}
	if r.Follow {
		for _, s := range r.sources {
			s.head.see(s.file)
		}
		r.following = true
		return r.summary, r.follow(ctx)
	}
	return r.summary, nil
}

// countAll counts what is new in all files. Where another import has found other files in the place
// of logs meanwhile, it looks at them anew.
func (r *run) countAll(ctx context.Context) error {
	for {
		if err := r.decideAll(ctx); err != nil {
			return err
		}
		err := r.countThese(ctx, r.sources)
		if !errors.Is(err, record.ErrLookedAnew) {
			return err
		}
	}
}

// decideAll decides what is to be counted of all files; in a dry run without leaving a trace.
func (r *run) decideAll(ctx context.Context) error {
	if err := r.findFirstDay(ctx); err != nil {
		return err
	}
	order, err := r.inOrder(ctx)
	if err != nil {
		return err
	}
	if r.DryRun {
		err := r.inBook(ctx, func(b book) error { return cmp.Or(r.decideEach(ctx, b, order), errDryRun) })
		if errors.Is(err, errDryRun) {
			return nil
		}
		return err
	}
	for len(order) > 0 { // several small files in a transaction
		n, bytes := 1, order[0].file.size()
		for ; n < len(order) && n < filesAtOnce && bytes+order[n].file.size() <= bytesAtOnce; n++ {
			bytes += order[n].file.size()
		}
		if err := r.retry.Do(ctx, func() error {
			return r.inBook(ctx, func(b book) error { return r.decideEach(ctx, b, order[:n]) })
		}); err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

// findFirstDay finds the first day that the app still counts. Not while the book is open, which has a
// connection already.
func (r *run) findFirstDay(ctx context.Context) error {
	return r.retry.Do(ctx, func() (err error) { r.first, err = r.firstDay(ctx); return err })
}

// So many files, and bytes of them, are looked at in a transaction.
const (
	filesAtOnce = 100
	bytesAtOnce = 8 << 20
)

// refreshEvery is how long an import goes by the settings that the app had.
const refreshEvery = 10 * time.Second

// refreshed reads the settings of the app, unless that was done of late.
func (r *run) refreshed(ctx context.Context) error {
	if r.app != nil && time.Since(r.asked) < refreshEvery {
		return nil
	}
	app, err := r.refresh(ctx)
	if err == nil {
		r.app, r.asked = app, time.Now()
	}
	return err
}

// open opens all files, or tells all that is wrong with them.
func (r *run) open() error {
	names, err := findFiles(r.Files)
	faults := []error{err}
	for _, name := range names {
		f, err := openFile(name, r.Stdin)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		r.sources = append(r.sources, &source{file: f})
		if len(names) > mostOpen && !r.Follow {
			f.leave()
		}
		if r.Follow && (f.packed != plain || name == standardInput) {
			faults = append(faults, fmt.Errorf("%s: it cannot be followed: only files that are not packed grow", f.name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return visit.Errorf(visit.Invalid, "", "%v", err)
	}
	return nil
}

func (r *run) close() {
	for _, s := range r.sources {
		s.close()
	}
}

func (s *source) close() {
	if s.done != nil {
		s.endReading()
	}
	s.file.close()
	s.position = nil
}
