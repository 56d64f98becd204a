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
	// lookEvery is how often files that are followed are looked at.
	lookEvery = time.Second
	// keptOpen is how long a file is read on that was renamed: servers write to it until they have
	// opened the new one.
	keptOpen = time.Minute
)

// follow goes on with the files as they grow, until ctx ends, or nothing more of one can be counted.
func (r *run) follow(ctx context.Context) error {
	renamed := map[*source]time.Time{}
	for {
		if slices.ContainsFunc(r.sources, func(s *source) bool { return s.refused }) {
			return nil // the summary tells why
		}
		if err := pause.For(ctx, cmp.Or(r.every, lookEvery)); err != nil {
			return err
		}
		if err := r.refreshed(ctx); err != nil {
			continue // the database is away; what is read next waits for it
		}
		var grown []*source // or cut, or with lines whose time has come
		for _, s := range r.sources {
			if size := s.file.size(); size != s.size || s.ahead > 0 && !s.comes.After(r.latest()) {
				grown = append(grown, s)
			}
		}
		if err := r.countAll(ctx, grown); err != nil {
			return err
		}
		r.lookAtNames(renamed)
	}
}

// lookAtNames opens files that have come since and have a name of the import, as after a rotation, but
// for packed ones: what is in these was followed. It lets go of those that lost theirs a while ago, and
// are counted.
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
			r.sources = append(r.sources, &source{file: f})
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
