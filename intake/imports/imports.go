// Package imports counts the visits in access logs. The k-th occurrence of a line in a file counts if the line was counted
// fewer than k times before. Because of this rule, nothing counts twice if files are renamed, compressed, cut, merged or
// imported again, even if several imports run at once. An import may also be killed and started again.
//
// counted.go loads the lines that were already counted, and count.go decides which lines of a chunk count. The transaction
// that counts these lines also records them. If another import has recorded lines of the same hours in the meantime, the
// transaction fails. Then count.go decides again.
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

// Options configure an import.
type Options struct {
	App     string
	Files   []string // paths, patterns, or - for standard input
	Stdin   io.Reader
	Rules   Rules
	Server  string    // name of the server that wrote the files; "": no name
	After   time.Time // lines with earlier times are left out
	Another bool      // import files even if their first lines were already counted for another server

	DryRun bool                           // only report what would be counted
	Follow bool                           // also count lines that are appended later, until the context is canceled
	Notice func(text string, cause error) // called with messages for the operator; cause may be nil

	every    time.Duration // interval between checks of followed files; default lookEvery
	holds    time.Duration // interval between renewals of the position and the pause; default holdEvery
	patience time.Duration // how long to wait for an unavailable database; default: the constant patience
}

// Progress contains numbers that an import updates while it runs.
type Progress struct {
	Total   atomic.Int64 // size of the files that are read, in bytes
	Done    atomic.Int64 // bytes that were read, after decompression
	Lines   atomic.Int64
	Counted atomic.Int64 // number of counted visits
}

// run is the state of one import.
type run struct {
	Options
	counter      *counter.Counter
	app          *settings
	settingsRead time.Time // when refresh last read the app's settings
	name         string    // name of this import in the tables positions and read_logs
	position     *record.Position
	pause        counter.Pause     // pauses retention, so that no old days are deleted during the import
	renewed      time.Time         // when hold last renewed the position and the pause
	startHash    [sha256.Size]byte // value of settings.hash when the import started to read files
	sequence     int64             // number of the last entry that was passed to the feed
	counted      *counted
	closed       *closed // logs that Footfall 0.2 counted; nil: it counted no log
	servers      bool    // checkServer must compare the files with lines that were counted for other named servers

	following bool      // all files were read to their end, and are now followed
	sources   []*source // all files
	changed   []*source // files to read; the others have not changed since an earlier import
	summary   *Summary
	progress  *Progress
	retry     *feed.Retry
}

// settings contains the app's settings and keys, which the import reads again every refreshEvery.
type settings struct {
	*counter.Counting
	hashes *hashes
	first  time.Time         // start of the first day for which the app still accepts visits
	hash   [sha256.Size]byte // hash of all settings and flags that decide which lines count
}

// patience is the default time for which an import waits for an unavailable database.
const patience = 10 * time.Minute

// Run imports logs. Even if it returns an error, the summary includes all lines that were read.
func Run(ctx context.Context, c *counter.Counter, o Options, p *Progress) (*Summary, error) {
	r := newRun(c, o, p)
	err := r.all(ctx)
	for _, s := range r.sources {
		r.closeSource(s)
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

// do runs steps one after the other. If the database is unavailable during a step, do waits and repeats this step.
func (r *run) do(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := r.retry.Do(ctx, func() error { return step(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) tx(ctx context.Context, f func(q *Queries) error) error {
	if err := r.app.DB().InTx(ctx, func(q *db.Queries) error { return f(New(q.Tx())) }); err != nil {
		return visit.Unanswered(err)
	}
	return nil
}

// refreshEvery is the interval at which an import reads the app's settings again.
const refreshEvery = 10 * time.Second

func (r *run) refreshed(ctx context.Context) error {
	if time.Since(r.settingsRead) < refreshEvery {
		return nil
	}
	return r.refresh(ctx)
}

func (r *run) refresh(ctx context.Context) error {
	g, err := r.permit(ctx)
	if err != nil {
		return err
	}
	h, err := loadHashes(ctx, g)
	if err != nil {
		return err
	}
	first, err := g.FirstDay(ctx)
	if err != nil {
		return err
	}
	a := g.App()
	begins := time.Date(int(first/10000), time.Month(first/100%100), int(first%100), 0, 0, 0, 0, a.Zone)
	decide := fmt.Appendf(nil, "%#v", []any{r.Server, r.Rules, r.After.Unix(), a.Tz, a.Sites, a.Ignore,
		a.SkipsBots(false), a.SkipsBots(true), a.Visitor}) // not a.Bots: its address differs in each process
	r.app, r.settingsRead = &settings{g, h, begins, sha256.Sum256(decide)}, time.Now()
	if r.counted == nil {
		r.counted = newCounted(g.DB(), a.ID, r.Server)
	}
	return nil
}

func (r *run) permit(ctx context.Context) (*counter.Counting, error) {
	g, err := r.counter.AuthorizeOperator(ctx, r.App)
	if err == nil && g.App().Mode == app.ByID {
		return nil, visit.Errorf(visit.Invalid, "app",
			"%s distinguishes visitors by ids, which logs do not contain: import into an app that distinguishes them by address", r.App)
	}
	return g, err
}

// open opens all files. If some of them have problems, it returns one error with all problems.
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
			faults = append(faults, fmt.Errorf("%s: it cannot be followed: only an uncompressed file can grow", f.name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return visit.Errorf(visit.Invalid, "", "%v", err)
	}
	return nil
}

func (r *run) closeSource(s *source) {
	s.end()
	s.file.close()
	if r.Server == "" && s.changes > mostChanges {
		r.summary.note("these may be logs of several servers: name each with --server")
	}
}

// mostChanges is how often lines in a file may alternate between new and already counted. If they alternate more often, the
// files are probably logs of several servers.
const mostChanges = 20

const (
	// holdEvery is the interval at which an import renews its position and its pause of retention. If it did not renew
	// them, both would expire.
	holdEvery = 5 * time.Minute
	// positionSource is the value of the column source in the table positions, for all imports.
	positionSource = "logs"
	// manyCounted is the number of counted visits after which an import makes running instances load the visitors again.
	// Otherwise an instance would take a visitor of the import for a new one, and would have to write the visitor's batch
	// twice.
	manyCounted = 1000
)

// hold renews the import's position. It also renews the pause of retention, so that no old days are deleted during the
// import. An import that follows files does not pause retention, because it only counts recent visits.
func (r *run) hold(ctx context.Context) error {
	if r.DryRun || time.Since(r.renewed) < cmp.Or(r.holds, holdEvery) {
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
	if r.renewed.IsZero() {
		r.position = position
	}
	r.renewed = time.Now()
	return nil
}

// resume ends the pause of retention. If the import has counted at least manyCounted visits, resume first makes running
// instances load the visitors again.
func (r *run) resume(ctx context.Context) error {
	if r.summary.Counted >= manyCounted {
		if err := r.app.ReloadVisitors(ctx); err != nil {
			return err
		}
	}
	return r.app.ResumeRetention(ctx, r.pause)
}

// end deletes the import's position. If this fails, the daily retention deletes the position after a week.
func (r *run) end(ctx context.Context) {
	if r.renewed.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	_ = r.tx(ctx, func(q *Queries) error { return q.ImportEnd(ctx, r.app.App().ID, r.name) })
}

const endWithin = 2 * time.Second
