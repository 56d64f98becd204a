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
	"slices"
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
	known     map[int64][]Log     // while the book is open: logs that may begin as its files do, by their first line; 0: it is not known
	near      neighbours
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
	return r.summary, r.all(ctx)
}

func (r *run) all(ctx context.Context) error {
	if err := r.refreshed(ctx); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	if err := r.retry.Do(ctx, func() error { return r.keepPaused(ctx) }); err != nil {
		return err
	}
	if err := r.countAll(ctx, r.sources); err != nil {
		return err
	}
	if !r.DryRun {
		if err := r.retry.Do(ctx, func() error { return r.end(ctx, r.summary.Counted) }); err != nil {
			return err
		}
	}
	if !r.Follow {
		return nil
	}
	r.following = true
	return r.follow(ctx)
}

// countAll counts what is new in files. Where another import has found other files in the place of
// logs meanwhile, it looks at them anew.
func (r *run) countAll(ctx context.Context, files []*source) error {
	for {
		if err := r.decideAll(ctx, files); err != nil {
			return err
		}
		if err := r.countThese(ctx, files); !errors.Is(err, record.ErrLookedAnew) {
			return err
		}
	}
}

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
	var open []*file
	for _, name := range names {
		f, err := openFile(name, r.Stdin)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		r.sources = append(r.sources, &source{file: f})
		if open = append(open, f); len(open) > mostOpen && !r.Follow {
			open = leaveOld(open)
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

// leaveOld closes half of some files, and returns the others: those that were written last, which are
// about to be renamed.
func leaveOld(open []*file) []*file {
	slices.SortFunc(open, func(a, b *file) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	for _, f := range open[len(open)/2:] {
		f.leave()
	}
	return open[:len(open)/2]
}

func (r *run) close() {
	for _, s := range r.sources {
		r.letGo(s)
	}
}

// letGo closes a file, of which the summary tells from then on.
func (r *run) letGo(s *source) {
	s.endReading()
	s.file.close()
	s.position = nil
	r.summary.Problems, r.summary.Notes = append(r.summary.Problems, s.problems...), append(r.summary.Notes, s.notes...)
}
