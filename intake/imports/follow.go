package imports

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"footfall/pause"
	"footfall/record"
)

const (
	// lookEvery is how often files that are followed are looked at.
	lookEvery = time.Second
	// keptOpen is how long a file is read on that was renamed: servers write to it until they have
	// opened the new one.
	keptOpen = time.Minute
)

// follow goes on with the files as they grow, until ctx ends, or nothing more of one can be counted.
// Where another file has the name of one, as after a rotation, both are read.
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
		for _, s := range r.sources {
			if err := r.grown(ctx, s); err != nil {
				return err
			}
		}
		r.lookAtNames(renamed)
	}
}

// lookAtNames lets go of files that were renamed a while ago and are counted, or that were cut, and
// opens those that have their names now.
func (r *run) lookAtNames(renamed map[*source]time.Time) {
	var kept []*source
	named := map[string]bool{} // whether the file of that name is open
	for _, s := range r.sources {
		now, err := os.Stat(s.file.name)
		had, wrong := s.file.handle.Stat()
		same := err == nil && wrong == nil && os.SameFile(now, had)
		named[s.file.name] = named[s.file.name] || same || err != nil
		if !same && renamed[s].IsZero() {
			renamed[s] = time.Now()
		}
		switch {
		case wrong != nil, same && s.wasCut(had.Size()):
			named[s.file.name] = false
		case !same && time.Since(renamed[s]) > keptOpen && s.ahead == 0:
		default:
			kept = append(kept, s)
			continue
		}
		delete(renamed, s)
		s.close()
	}
	r.sources = kept
	for name, open := range named {
		if open {
			continue
		}
		if f, err := openFile(name, nil); err == nil {
			r.sources = append(r.sources, &source{file: f})
		}
	}
	r.openNew(named)
}

// openNew opens files that have come since and that the patterns of the import mean, but for those
// that only have another name now, and for packed ones: what is in these was followed.
func (r *run) openNew(named map[string]bool) {
	names, _ := findFiles(r.Files)
	for _, name := range names {
		f, err := openFile(name, nil)
		if err != nil {
			continue
		}
		if _, known := named[f.name]; known || f.packed != plain || slices.ContainsFunc(r.sources, func(s *source) bool { return s.file.is(f) }) {
			f.close()
			continue
		}
		r.sources = append(r.sources, &source{file: f})
	}
}

// wasCut reports whether a file has other content than what was read of it.
func (s *source) wasCut(size int64) bool { return size < s.place || s.head.differs(s.file) }

// grown counts what a source has got since it was looked at last, and lines whose time has come.
func (r *run) grown(ctx context.Context, s *source) error {
	size := s.file.size()
	if size == s.size && (s.ahead == 0 || s.comes.After(r.latest())) || size == 0 || s.begins && s.wasCut(size) {
		return nil
	}
	if err := r.findFirstDay(ctx); err != nil {
		return err
	}
	if err := r.retry.Do(ctx, func() error {
		return r.inBook(ctx, func(b book) error { return r.decideGrown(ctx, b, s) })
	}); err != nil {
		return err
	}
	s.head.see(s.file)
	for {
		err := r.countThese(ctx, []*source{s})
		if !errors.Is(err, record.ErrLookedAnew) {
			return err
		}
		if err := r.retry.Do(ctx, func() error {
			return r.inBook(ctx, func(b book) error { return r.decide(ctx, b, s) })
		}); err != nil {
			return err
		}
	}
}

// decideGrown decides what is to be counted of what a source has got; of all of it, where it is not
// known, or somebody else has counted more of it.
func (r *run) decideGrown(ctx context.Context, b book, s *source) error {
	if s.position == nil {
		return r.decide(ctx, b, s)
	}
	now, err := b.get(ctx, []int64{s.log.ID})
	if err != nil {
		return err
	}
	if len(now) != 1 || now[0].Look != s.position.Look || *now[0].Counted != s.place || now[0].Claimed != s.place {
		return r.decide(ctx, b, s)
	}
	s.is, s.log, s.start = &now[0], now[0], s.place
	if err := r.readOn(ctx, s); err != nil || s.place == s.start {
		return err
	}
	if goOn, err := r.weigh(ctx, b, s); err != nil || !goOn {
		return err
	}
	written, err := r.write(ctx, b, s)
	if err == nil && !written {
		err = r.decide(ctx, b, s)
	}
	return err
}
