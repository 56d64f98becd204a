package imports

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"footfall/intake/logs"
	"footfall/pause"
)

const (
	// lookEvery is how often files that are followed are looked at.
	lookEvery = time.Second
	// keptOpen is how long a file is read on that was renamed: servers write to it until they have
	// opened the new one.
	keptOpen = time.Minute
)

// follow goes on with the files as they grow, until ctx ends. Where another file has the name of
// one, as after a rotation, both are read.
func (r *run) follow(ctx context.Context) error {
	renamed := map[*source]time.Time{}
	for {
		if err := pause.For(ctx, cmp.Or(r.every, lookEvery)); err != nil {
			return err
		}
		if err := r.refresh(ctx); err != nil {
			continue // the database is away; what is read next waits for it
		}
		if err := r.lookAtNames(ctx, renamed); err != nil {
			return err
		}
		for _, s := range r.sources {
			if err := r.grown(ctx, s); err != nil {
				return err
			}
		}
	}
}

// lookAtNames lets go of files that were renamed a while ago, or cut, and opens those that have
// their names now.
func (r *run) lookAtNames(ctx context.Context, renamed map[*source]time.Time) error {
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
		case !same && time.Since(renamed[s]) > keptOpen:
			if err := r.grown(ctx, s); err != nil {
				return err
			}
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
			r.sources = append(r.sources, &source{file: f, idle: true})
		}
	}
	r.openNew(named)
	return nil
}

// openNew opens files that have come since and that the patterns of the import mean, but for those
// that only have another name now, and for packed ones: what is in these was followed.
func (r *run) openNew(named map[string]bool) {
	names, _ := findFiles(r.Files)
	for _, name := range names {
		if _, ok := named[name]; ok {
			continue
		}
		f, err := openFile(name, nil)
		if err != nil {
			continue
		}
		if f.packed != plain || slices.ContainsFunc(r.sources, func(s *source) bool { return s.file.is(f) }) {
			f.close()
			continue
		}
		r.sources = append(r.sources, &source{file: f, idle: true})
	}
}

// wasCut reports whether a file has other content than what was read of it.
func (s *source) wasCut(size int64) bool {
	if s.scanner == nil {
		return false
	}
	return size < s.scanner.place || s.head.differs(s.file)
}

// grown counts what a source has got since it was looked at last.
func (r *run) grown(ctx context.Context, s *source) error {
	had, err := s.file.handle.Stat()
	if err != nil || s.hopeless || had.Size() == 0 || s.scanner != nil && had.Size() <= s.scanner.place {
		return nil //nolint:nilerr // it is looked at again
	}
	problems := len(r.summary.Problems)
	err = r.retry.Do(ctx, func() error {
		err := r.withBook(ctx, func(k *book) error { return r.claimGrown(ctx, k, s) })
		if err != nil { // what it has claimed was taken back
			s.forget()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.settle()
	for _, words := range r.summary.Problems[problems:] {
		r.Notice(words, nil)
	}
	if s.position == nil || s.log.Next >= s.until {
		return nil
	}
	s.line = logs.Line{}
	if err := r.count(ctx, []*source{s}); err != nil {
		return err
	}
	s.goesOn()
	return nil
}

// claimGrown claims what a source has got; all of it, where it has not been looked at before.
func (r *run) claimGrown(ctx context.Context, k *book, s *source) error {
	if now := k.logs[s.log.ID]; s.scanner == nil || s.position == nil || now == nil || now.Claimed != s.scanner.place {
		s.forget()
		return r.look(ctx, k, s) // it was not claimed as it is, or others have claimed more of it
	}
	s.scanner.is = k.logs[s.log.ID]
	s.scanner.run()
	if s.scanner.place == s.log.Claimed {
		return nil
	}
	return r.take(ctx, k, s)
}
