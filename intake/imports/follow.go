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
	// lookEvery is how often followed files are looked at.
	lookEvery = time.Second
	// keptOpen is how long a renamed file is read on: servers write to it until they have opened the new
	// one.
	keptOpen = time.Minute
	// A line that lies further ahead than clocks differ waits until its time has come; one that lies
	// further ahead than this has no time that can be read.
	mostAhead = 24 * time.Hour
)

// follow reads the files on as they grow, until ctx ends, or a file is refused.
func (r *run) follow(ctx context.Context) error {
	renamed := map[*source]time.Time{}
	for {
		if slices.ContainsFunc(r.sources, func(s *source) bool { return s.refused }) {
			return nil // the summary tells why
		}
		if err := pause.For(ctx, cmp.Or(r.every, lookEvery)); err != nil {
			return err
		}
		if err := r.retry.Do(ctx, func() error { return r.refreshed(ctx) }); err != nil {
			continue // the database is away; what is read next waits for it
		}
		var grown []*source // or cut, or with lines whose time has come
		for _, s := range r.sources {
			if size := s.file.size(); size != s.size || s.ahead > 0 && !s.comes.After(r.app.Latest()) {
				grown = append(grown, s)
			}
		}
		if err := r.count(ctx, grown); err != nil {
			return err
		}
		r.lookAtNames(renamed)
	}
}

// lookAtNames opens new files that have a name of the import, as after a rotation, except packed ones:
// their lines were followed. It lets go of files that lost their names a while ago, and are counted.
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
			r.letGo(s)
			return true
		}
		return false
	})
}
