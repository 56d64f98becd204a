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
	"sync/atomic"
	"time"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
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
	holds    time.Duration // how often position and pause are renewed; default holdEvery
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
	name     string    // of the import's position
	position *record.Position
	pause    counter.Pause     // of retention
	held     time.Time         // when position and pause were last renewed
	began    [sha256.Size]byte // the hash of the settings when the import began to read files
	sequence int64             // of the last line that was read for counting
	counted  *counted
	closed   *closed // logs that 0.2 has counted; nil: there are none
	servers  bool    // lines of other named servers were counted before

	following bool      // the files, all of which were counted once
	sources   []*source // the files
	changed   []*source // of these, those that have changed since an import read them to their end
	summary   *Summary
	progress  *Progress
	retry     *feed.Retry
}

// settings are what an import needs to know of the app.
type settings struct {
	*counter.Counting
	hashes *hashes
	first  time.Time         // when the first day begins that the app still counts
	hash   [sha256.Size]byte // of all that decides which lines of a file count
}

// patience is how long an import waits for a database that does not count.
const patience = 10 * time.Minute

// Run imports logs. Its summary covers all lines that were read, also if it ends with an error.
func Run(ctx context.Context, c *counter.Counter, o Options, p *Progress) (*Summary, error) {
	r := newRun(c, o, p)
	err := r.all(ctx)
	for _, s := range r.sources {
		r.letGo(s)
	}
	r.end(ctx)
	return r.summary, err
}

func newRun(c *counter.Counter, o Options, p *Progress) *run {
	return &run{Options: o, counter: c, pause: counter.NewPause(), name: "run " + rand.Text(), position: &record.Position{},
		summary: newSummary(), progress: p, retry: feed.NewRetry(o.Notice, cmp.Or(o.patience, patience), feed.IsAway)}
}

func (r *run) all(ctx context.Context) error {
	if err := r.do(ctx, r.refresh, r.open, r.begin); err != nil || len(r.changed) == 0 {
		return err
	}
	if err := r.do(ctx, r.hold, r.findServers, r.findClosed); err != nil {
		return err
	}
	if err := r.count(ctx, r.changed); err != nil || r.DryRun {
		return err
	}
	if err := r.do(ctx, r.refresh, r.remember, r.resume); err != nil || !r.Follow {
		return err
	}
	r.following = true
	return r.follow(ctx)
}

// do takes steps, and waits for a database that is away.
func (r *run) do(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := r.retry.Do(ctx, func() error { return step(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// tx is a transaction.
func (r *run) tx(ctx context.Context, f func(q *Queries) error) error {
	if err := r.app.DB().InTx(ctx, func(q *db.Queries) error { return f(New(q.Tx())) }); err != nil {
		return visit.Unanswered(err)
	}
	return nil
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
	decide := fmt.Appendf(nil, "%#v", []any{r.Server, r.Rules, r.After.Unix(), a.Tz, a.Sites, a.Ignore, a.Bots, a.Visitor})
	r.app, r.asked = &settings{g, h, begins, sha256.Sum256(decide)}, time.Now()
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
func (r *run) open(context.Context) error {
	names, err := findFiles(r.Files)
	faults := []error{err}
	for _, name := range names {
		f, err := openFile(name, r.Stdin)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		r.sources = append(r.sources, &source{file: f, summary: r.summary})
		if r.Follow && (f.packed != plain || f.stdin != nil) {
			faults = append(faults, fmt.Errorf("%s: it cannot be followed: only files that are not packed grow", f.name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return visit.Errorf(visit.Invalid, "", "%v", err)
	}
	return nil
}

// letGo closes a file.
func (r *run) letGo(s *source) {
	s.end()
	s.file.close()
	if r.Server == "" && s.changes > mostChanges {
		r.summary.note("these may be logs of several servers: name each with --server")
	}
}

// mostChanges is how often new lines of a file may alternate with lines that were counted before, until they
// may be those of several servers.
const mostChanges = 20

const (
	// holdEvery is how often an import renews its position, which is deleted if it is old, and its pause
	// of retention.
	holdEvery = 5 * time.Minute
	// positionSource is the source of the positions of imports.
	positionSource = "logs"
	// manyCounted visits are so many that running instances had better read the visitors again than find
	// out about each of them by a batch that is written twice.
	manyCounted = 1000
)

// hold keeps the import's position, and visits from being let go while they are imported. Those of followed
// files are of the present.
func (r *run) hold(ctx context.Context) error {
	if r.DryRun || time.Since(r.held) < cmp.Or(r.holds, holdEvery) {
		return nil
	}
	if !r.following {
		if err := r.app.PauseRetention(ctx, r.pause); err != nil {
			return err
		}
	}
	position, err := r.app.OpenQueue(ctx, positionSource, r.name, 0)
	if err != nil {
		return err
	}
	if r.held.IsZero() {
		r.position = position
	}
	r.held = time.Now()
	return nil
}

// resume ends the pause of retention, and has running instances read the visitors again.
func (r *run) resume(ctx context.Context) error {
	if r.summary.Counted >= manyCounted {
		if err := r.app.TellInstances(ctx); err != nil {
			return err
		}
	}
	return r.app.ResumeRetention(ctx, r.pause)
}

// end deletes the import's position. If that fails, retention does so a week later.
func (r *run) end(ctx context.Context) {
	if r.held.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	_ = r.tx(ctx, func(q *Queries) error { return q.ImportEnd(ctx, r.app.App().ID, r.name) })
}

const endWithin = 2 * time.Second
