package imports

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"footfall/pause"
)

const (
	// lookEvery is the interval at which the import checks whether followed files have grown.
	lookEvery = time.Second
	// keptOpen is how long a file is still read after it was renamed. A server that rotates its log writes to the renamed
	// file until it opens the new file.
	keptOpen = time.Minute
	// mostAhead is how far in the future the time of a line may be. The import counts such a line when its time has come. A
	// line whose time is even later is invalid.
	mostAhead = 24 * time.Hour
)

// follow reads the lines that are appended to the files, until ctx is canceled or a file is refused.
func (r *run) follow(ctx context.Context) error {
	renamed := map[*source]time.Time{}
	for {
		if slices.ContainsFunc(r.sources, func(s *source) bool { return s.refused }) {
			return nil // the summary contains the reason for the refusal
		}
		if err := pause.For(ctx, cmp.Or(r.every, lookEvery)); err != nil {
			return err
		}
		if err := r.retry.Do(ctx, func() error { return r.refreshed(ctx) }); err != nil {
			continue // the database is unavailable: try again
		}
		var grown []*source // files whose size has changed, or that contain a waiting line whose time has come
		for _, s := range r.sources {
			if size := s.file.size(); size != s.size || s.ahead > 0 && !s.aheadUntil.After(r.app.Latest()) {
				grown = append(grown, s)
			}
		}
		if err := r.count(ctx, grown); err != nil {
			return err
		}
		r.lookAtNames(renamed)
	}
}

// lookAtNames opens new files with names that match r.Files. It ignores compressed files, because their lines were read
// before they were compressed. It closes a file that has had no matching name for keptOpen. renamed contains the time when
// each file lost its name.
func (r *run) lookAtNames(renamed map[*source]time.Time) {
	names, _ := findFiles(r.Files)
	named := map[*source]bool{}
	for _, name := range names {
		now, err := os.Stat(name)
		if err != nil {
			continue
		}
		if at := slices.IndexFunc(r.sources, func(s *source) bool { return os.SameFile(now, s.file.info) }); at >= 0 {
			named[r.sources[at]] = true
		} else if f, err := openFile(name, nil); err == nil && f.packed == plain {
			r.sources = append(r.sources, &source{file: f, summary: r.summary})
			named[r.sources[len(r.sources)-1]] = true
		} else if err == nil {
			f.close()
		}
	}
	r.sources = slices.DeleteFunc(r.sources, func(s *source) bool {
		switch {
		case named[s]:
			delete(renamed, s)
		case renamed[s].IsZero():
			renamed[s] = time.Now()
		case time.Since(renamed[s]) > keptOpen && s.ahead == 0:
			delete(renamed, s)
			r.closeSource(s)
			return true
		}
		return false
	})
}
