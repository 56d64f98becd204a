// Package imports counts the visits in access logs, each line by one rule: the k-th time a line is in a
// file, it counts if fewer than k of it have been counted. So files may be renamed, packed, cut, merged
// and read again, by several imports at once, and imports may be killed.
//
// counted.go knows which lines were counted; count.go decides which lines of a chunk count. The batch
// that counts them records them (function count_lines), unless others have changed the hours since.
package imports

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
)

// Options say what to import, and how.
type Options struct {
	App     string
	Files   []string // also patterns, and - for standard input
	Stdin   io.Reader
	Rules   Rules
	Server  string    // that wrote the files; "": it has no name
	After   time.Time // lines before this second were counted elsewhere
	Another bool      // the files are not another server's, though its lines are the same

	DryRun bool                           // count nothing
	Follow bool                           // read on as the files grow, until the context ends
	Notice func(text string, cause error) // cause: nil if there is no more to tell

	every    time.Duration // how often followed files are looked at; default lookEvery
	pauses   time.Duration // how often the pause of retention is renewed; default pauseEvery
	patience time.Duration // how long to wait for a database that does not count; default patience
}

// Progress shows how far an import is.
type Progress struct {
	Total   atomic.Int64 // bytes of the files that are read
	Done    atomic.Int64 // of these
	Lines   atomic.Int64
	Counted atomic.Int64 // visits
}

// run is one import.
type run struct {
	Options
	counter  *counter.Counter
	app      *settings
	asked    time.Time // when the settings were read
	pause    counter.Pause
	paused   time.Time         // when retention was
	name     string            // of the import's position
	began    [sha256.Size]byte // the options when it began to read files
	position *record.Position
	opened   time.Time // when the position was
	sequence int64     // of the last line that was read for counting
	counted  *counted
	closed   *closed // logs that 0.2 has counted; nil: there are none
	servers  bool    // lines of other named servers were counted before

	following bool // the files, all of which were counted once
	sources   []*source
	summary   *Summary
	progress  *Progress
	retry     *feed.Retry
}

// settings are what an import needs to know of the app.
type settings struct {
	*counter.Counting
	hashes *hashes
	first  time.Time // when the first day begins that the app still counts
	hash   [sha256.Size]byte
}

// patience is how long an import waits for a database that does not count.
const patience = 10 * time.Minute

// Run imports logs. Its summary covers all lines that were read, also if it ends with an error.
func Run(ctx context.Context, c *counter.Counter, o Options, p *Progress) (*Summary, error) {
	r := newRun(c, o, p)
	defer r.close()
	err := r.all(ctx)
	r.end(ctx)
	return r.summary, err
}

func newRun(c *counter.Counter, o Options, p *Progress) *run {
	return &run{Options: o, counter: c, pause: counter.NewPause(), name: "run " + rand.Text(), summary: newSummary(), progress: p,
		retry: feed.NewRetry(o.Notice, cmp.Or(o.patience, patience), feed.IsAway)}
}

func (r *run) all(ctx context.Context) error {
	if err := r.retry.Do(ctx, func() error { return r.refresh(ctx) }); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	if err := r.retry.Do(ctx, func() error { return r.keepPaused(ctx) }); err != nil {
		return err
	}
	if err := r.retry.Do(ctx, func() error { return r.findServers(ctx) }); err != nil {
		return err
	}
	if err := r.findClosed(ctx); err != nil {
		return err
	}
	if err := r.countFiles(ctx); err != nil {
		return err
	}
	if r.DryRun {
		return nil
	}
	if err := r.retry.Do(ctx, func() error { return r.resume(ctx) }); err != nil {
		return err
	}
	if r.Follow {
		r.following = true
		return r.follow(ctx)
	}
	return nil
}

// countFiles counts the files that have changed since an import read them to their end.
func (r *run) countFiles(ctx context.Context) error {
	changed := r.sources
	var err error
	if !r.DryRun {
		if changed, err = r.begin(ctx); err != nil {
			return err
		}
	}
	if err := r.count(ctx, changed); err != nil || r.DryRun {
		return err
	}
	return r.remember(ctx, changed)
}

// refreshEvery is how long an import goes by the settings that the app had.
const refreshEvery = 10 * time.Second

// refreshed reads the settings of the app, unless it did lately.
func (r *run) refreshed(ctx context.Context) error {
	if time.Since(r.asked) < refreshEvery {
		return nil
	}
	return r.refresh(ctx)
}

func (r *run) refresh(ctx context.Context) error {
	g, err := r.permit(ctx)
	if err != nil {
		return err
	}
	h, err := hashesOf(ctx, g)
	if err != nil {
		return err
	}
	first, err := g.FirstDay(ctx)
	if err != nil {
		return err
	}
	a := g.App()
	begins := time.Date(int(first/10000), time.Month(first/100%100), int(first%100), 0, 0, 0, 0, a.Zone)
	r.app, r.asked = &settings{Counting: g, hashes: h, first: begins, hash: r.optionsHash(a)}, time.Now()
	if r.counted == nil {
		r.counted = newCounted(g.DB(), a.ID, r.Server)
	}
	return nil
}

// permit asks for the permission to count visits of the app.
func (r *run) permit(ctx context.Context) (*counter.Counting, error) {
	g, err := r.counter.AuthorizeOperator(ctx, r.App)
	if err == nil && g.App().Mode == app.ByID {
		return nil, visit.Errorf(visit.Invalid, "app",
			"%s tells visitors apart by ids, which no log has: import into an app that goes by addresses", r.App)
	}
	return g, err
}

// open opens all files, or reports all that is wrong with them.
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
		if f.stdin == nil {
			open = append(open, f)
		}
		if len(open) > mostOpen && !r.Follow {
			open = leaveOld(open)
		}
		if r.Follow && (f.packed != plain || f.stdin != nil) {
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

// letGo closes a file, and adds what it has to report to the summary.
func (r *run) letGo(s *source) {
	if s.lines != nil {
		s.lines.close()
		s.lines = nil
	}
	s.file.close()
	if s.told != nil {
		r.summary.Problems, r.summary.Notes = append(r.summary.Problems, s.told[problems]...), append(r.summary.Notes, s.told[notes]...)
	}
	if r.Server == "" && s.mixed.number > mostChanges {
		r.summary.note("these may be logs of several servers: name each with --server")
	}
}

// mostChanges is how often new lines of a file may alternate with lines that were counted before, until they
// may be those of several servers.
const mostChanges = 20
