// Package imports counts the visits that access logs tell of, each once: whatever a log is called,
// however it is packed, and whoever was killed while it was read.
//
// A log is known by what it begins with (claim.go), and its position moves in the transaction that
// counts its visits (package feed, to which count.go gives the lines).
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
	"footfall/counter/app"
	"footfall/db"
	"footfall/intake/logs"
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
	DryRun bool                           // look only
	Follow bool                           // go on as the files grow, until the context ends
	Notice func(text string, cause error) // cause: nil if there is no more to tell

	every        time.Duration // how often files that are followed are looked at; default lookEvery
	pauses       time.Duration // how often retention is paused anew; default pauseEvery
	patience     time.Duration // how long a database is waited for; default patience
	stretchLines int           // default stretchLines
	evidence     int           // default evidence
}

// Progress tells whoever watches an import how far it is.
type Progress struct {
	Looked  atomic.Int64 // bytes that were looked at
	Total   atomic.Int64 // bytes that are to be counted; 0 until that is known
	Done    atomic.Int64 // of these
	Lines   atomic.Int64
	Counted atomic.Int64 // visits
}

// source is a log that is imported.
type source struct {
	file     *file
	scanner  *scanner
	log      db.LogsListRow
	position *record.Position
	until    int64 // what is to be counted ends here
	idle     bool  // nothing of it is to be counted now
	hopeless bool  // and nothing ever will be
	head     head  // of the file

	done   func() // while it is read for counting
	lines  lines
	parser *logs.Parser
	line   logs.Line // the one that counts next
	number int64     // of lines before position
}

// run is one import.
type run struct {
	Options
	counter  *counter.Counter
	counting *counter.Counting
	asked    time.Time // when counting was
	pause    counter.Pause
	paused   time.Time // when retention was

	following bool // the files, all of which were counted once
	sources   []*source
	summary   *Summary
	progress  *Progress
	retry     *feed.Retry
}

// patience is how long an import waits for a database that does not count.
const patience = 10 * time.Minute

// errDryRun takes back what a dry run has claimed.
var errDryRun = errors.New("only looked")

// Run imports logs. Its summary tells of all that was read, also where it ends with an error.
func Run(ctx context.Context, c *counter.Counter, o Options, p *Progress) (*Summary, error) {
	r := &run{Options: o, counter: c, pause: counter.NewPause(), summary: newSummary(), progress: p,
		retry: feed.NewRetry(o.Notice, cmp.Or(o.patience, patience), feed.IsAway)}
	defer r.close()
	if err := r.refresh(ctx); err != nil {
		return r.summary, err
	}
	if err := r.open(); err != nil {
		return r.summary, err
	}
	err := r.withBook(ctx, func(k *book) error {
		err := r.claim(ctx, k)
		if err == nil && r.DryRun {
			err = errDryRun
		}
		return err
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return r.summary, err
	}
	for _, s := range r.sources {
		s.settle()
	}
	if err := r.retry.Do(ctx, func() error { return r.keepPaused(ctx) }); err != nil {
		return r.summary, err
	}
	if err := r.count(ctx, r.sources); err != nil {
		return r.summary, err
	}
	for _, s := range r.sources {
		if !s.idle {
			s.goesOn()
		}
	}
	if err := r.end(ctx); err != nil {
		return r.summary, err
	}
	if r.Follow {
		r.following = true
		return r.summary, r.follow(ctx)
	}
	return r.summary, nil
}

// manyCounted visits are so many that the instances which run had better read the visitors anew
// than find out about each of them by a batch that is written twice.
const manyCounted = 1000

// end lets the night's work go on, and the instances know of those who came in.
func (r *run) end(ctx context.Context) error {
	if r.DryRun {
		return nil
	}
	if r.summary.Counted >= manyCounted {
		if err := r.retry.Do(ctx, func() error { return r.counting.TellInstances(ctx) }); err != nil {
			return err
		}
	}
	return r.retry.Do(ctx, func() error { return r.counting.ResumeRetention(ctx, r.pause) })
}

// refreshEvery is how long an import goes by the settings that the app had.
const refreshEvery = 10 * time.Second

// refresh reads the settings of the app, unless that was done of late.
func (r *run) refresh(ctx context.Context) error {
	if r.counting != nil && time.Since(r.asked) < refreshEvery {
		return nil
	}
	counting, err := r.permit(ctx)
	if err == nil {
		r.counting, r.asked = counting, time.Now()
	}
	return err
}

// permit asks for the permission to count visits of the app.
func (r *run) permit(ctx context.Context) (*counter.Counting, error) {
	g, err := r.counter.AuthorizeOperator(ctx, r.App)
	if err == nil && g.App().Mode == app.ByID {
		return nil, visit.Errorf(visit.Invalid, "app", "%s tells visitors apart by ids, which no log has: import into an app that goes by addresses", r.App)
	}
	return g, err
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
		s.done()
		s.done = nil
	}
	s.forget()
	s.file.close()
}

// settle notes that what was claimed of the file stays so.
func (s *source) settle() {
	if s.scanner != nil {
		s.scanner.settle()
	}
	s.head.see(s.file)
}

// goesOn notes that all was counted that is to be counted now.
func (s *source) goesOn() {
	s.log.Next = s.until
	s.scanner.beginnings, s.scanner.places = nil, []int64{s.until}
}

// forget lets go what was found out about the file.
func (s *source) forget() {
	if s.scanner != nil {
		s.scanner.done()
		s.scanner = nil
	}
}
