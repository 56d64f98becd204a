// Package feed counts what a source has, each entry once: whatever happens to the database
// meanwhile, whoever is killed, and whoever else reads the same source.
//
// How far a part of a source was counted is a position, which moves in the transaction that counts.
// Where the connection is lost during a commit, the position is read again: entries before it were
// counted.
package feed

import (
	"context"
	"errors"
	"io"
	"slices"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// Entry is what a part of a source has at a place. Of is what the source itself needs to know of
// it.
type Entry[T any] struct {
	Of       T
	Position *record.Position // of its part
	Next     int64            // where the part goes on behind it
	Line     db.LogLine       // of an access log: the line that is recorded as counted
	Fate     Fate
	Visit    record.Visit  // where it Counts
	Refusal  *visit.Error  // why it is Refused
	Why      visit.Skipped // why it is Skipped
	ByOthers bool          // another reader of the same source has moved the position past it

	settled bool
}

// Fate is what becomes of an entry.
type Fate int

// The fates. Entries come with one of the first two from their source; Choose changes Counts and Before.
const (
	Counts   Fate = iota // it is to be counted
	Passes               // it has no visit, and is only passed
	Before               // an earlier import has counted it
	Counted              // or, in a dry run, it would be
	Repeated             // counted before, with its id
	Skipped              // not counted, on purpose
	Refused              // not counted: something is wrong with it
)

// Source has entries. One goroutine calls Read, and another one Keep, Unaccepted and Settled.
type Source[T any] interface {
	// Read returns the entries that come next, so many at most, those of a part in their order, and
	// waits until there are some. Entries that are behind their positions already may be among them.
	// io.EOF says that none come after these.
	Read(ctx context.Context, most int) ([]Entry[T], error)
	// Decide returns what finds out what is to become of an entry, by the settings that its app has
	// now. It may be asked again about the same entry.
	Decide(ctx context.Context) (func(ctx context.Context, e *Entry[T]) error, error)
	// Unaccepted hears that the tables do not accept a visit, and never will. The feed ends with the
	// error that it returns; nil: the entry is refused.
	Unaccepted(e *Entry[T], err error) error
	// Keep returns what the database is to keep of an entry, as it is passed. first: no entry of its
	// part comes before it.
	Keep(e *Entry[T], first bool) []record.Refusal
	// Settled hears what became of entries, once that is certain, in their order.
	Settled(entries []*Entry[T])
}

// manyEntries is how many entries a chunk may have for each of the visits that it should have:
// nothing may count of a source for long.
const manyEntries = 8

// Feed counts what a source has.
type Feed[T any] struct {
	Source   Source[T]
	Recorder *record.Recorder
	Retry    *Retry // nil: nothing is tried again
	Fill     bool   // the source never waits: as many visits are counted together as is best
	DryRun   bool
	// Choose decides which entries still count, just before they are sent, each time that they are: it
	// sets their Fate to Counts or Before, and their Line. nil: all do.
	Choose func(ctx context.Context, entries []Entry[T]) error
	// OnResult gets the result of each visit that was sent, before Settled; may be nil.
	OnResult func(e *Entry[T], got record.Result)
}

// Run counts until the source ends, or until an error. One goroutine reads, and this one counts.
func (f *Feed[T]) Run(ctx context.Context) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks, ended := make(chan []Entry[T], 1), make(chan error, 1)
	go func() {
		defer close(chunks)
		ended <- f.readAll(reading, chunks)
	}()
	var err error
	for chunk := range chunks {
		if err == nil {
			if err = f.record(ctx, chunk); err != nil {
				cancel()
			}
		}
	}
	if read := <-ended; err == nil {
		err = read
	}
	return err
}

func (f *Feed[T]) readAll(ctx context.Context, chunks chan<- []Entry[T]) error {
	for {
		chunk, err := f.read(ctx)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(chunk) > 0 {
			select {
			case chunks <- chunk:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err != nil {
			return nil //nolint:nilerr // all was read
		}
	}
}

// read reads the next chunk. After an error that passes, the next call goes on.
func (f *Feed[T]) read(ctx context.Context) (chunk []Entry[T], err error) {
	for visits, most := 0, f.Recorder.ChunkVisits(); visits < most && len(chunk) < manyEntries*most && err == nil; {
		var some []Entry[T]
		failed := f.Retry.Do(ctx, func() error {
			if some, err = f.Source.Read(ctx, most-visits); len(some) > 0 && f.Retry.isTemporary(err) || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		})
		if failed == nil {
			failed = f.Retry.Do(ctx, func() error { return f.decide(ctx, some) })
		}
		if failed != nil {
			return nil, failed
		}
		for i := range some {
			if some[i].Fate == Counts {
				visits++
			}
		}
		if chunk == nil {
			chunk = some
		} else {
			chunk = append(chunk, some...)
		}
		if !f.Fill {
			break
		}
	}
	if f.Retry.isTemporary(err) {
		err = nil
	}
	return chunk, err
}

// decide finds out what is to become of entries.
func (f *Feed[T]) decide(ctx context.Context, entries []Entry[T]) error {
	decide, err := f.Source.Decide(ctx)
	for i := 0; i < len(entries) && err == nil; i++ {
		if e := &entries[i]; e.Fate != Passes && !e.settled {
			err = decide(ctx, e)
		}
	}
	return err
}

// Refuse refuses an entry for an error that is about itself. It returns every other one.
func (e *Entry[T]) Refuse(err error) error {
	verr, ok := errors.AsType[*visit.Error](err)
	if !ok || verr.Kind != visit.Invalid && verr.Kind != visit.Forbidden {
		return err
	}
	e.Fate, e.Refusal = Refused, verr
	return nil
}

// record counts entries, and passes those that do not count, whatever happens to the database
// meanwhile.
func (f *Feed[T]) record(ctx context.Context, entries []Entry[T]) error {
	if f.DryRun {
		return f.Retry.Do(ctx, func() error { return f.choose(ctx, entries) })
	}
	f.settle(entries, true)
	for w := f.Retry.begin(); ; {
		entries = slices.DeleteFunc(entries, func(e Entry[T]) bool { return e.settled })
		if len(entries) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := f.choose(ctx, entries)
		if err == nil && !entries[0].settled {
			err = f.recordOnce(ctx, entries)
		}
		switch {
		case err == nil:
			w = f.Retry.begin()
		case !f.Retry.isTemporary(err):
			return err
		default:
			if err := w.wait(ctx, err); err != nil {
				return err
			}
			// The app may have been changed meanwhile.
			if err := f.decide(ctx, entries); err != nil && !f.Retry.isTemporary(err) {
				return err
			}
		}
	}
}

// choose decides which entries still count. If none does, they are settled without a transaction.
func (f *Feed[T]) choose(ctx context.Context, entries []Entry[T]) error {
	if f.Choose != nil {
		if err := f.Choose(ctx, entries); err != nil {
			return err
		}
	}
	if f.DryRun || f.Choose != nil && !slices.ContainsFunc(entries, func(e Entry[T]) bool { return e.Fate == Counts || e.Line.Hour != nil }) {
		f.settleIf(entries, false, func(*Entry[T]) bool { return true })
	}
	return nil
}

// settle tells the source what became of the entries that their positions have passed; byOthers: of
// what was to be counted, another reader has counted it.
func (f *Feed[T]) settle(entries []Entry[T], byOthers bool) {
	f.settleIf(entries, byOthers, func(e *Entry[T]) bool { return e.Next <= e.Position.Next })
}

func (f *Feed[T]) settleIf(entries []Entry[T], byOthers bool, passed func(e *Entry[T]) bool) {
	settled := make([]*Entry[T], 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if e.settled || !passed(e) {
			continue
		}
		e.settled = true
		if e.Fate == Counts {
			e.Fate = Counted
		}
		e.ByOthers = byOthers
		settled = append(settled, e)
	}
	if len(settled) > 0 {
		f.Source.Settled(settled)
	}
}

// recordOnce counts entries. Where it returns nil, what is not settled is to be tried at once.
func (f *Feed[T]) recordOnce(ctx context.Context, entries []Entry[T]) error {
	steps, seen := make([]record.Step, len(entries)), map[*record.Position]bool{}
	for i := range entries {
		e := &entries[i]
		steps[i] = record.Step{Position: e.Position, Next: e.Next, Line: e.Line, Refused: f.Source.Keep(e, !seen[e.Position])}
		if e.Fate == Counts {
			steps[i].Visit = &e.Visit
		}
		seen[e.Position] = true
	}
	e, err := f.hear(entries, f.Recorder.RecordChunk(steps))
	f.settle(entries, false)
	if err == nil {
		return nil
	}
	failed := f.findPositions(ctx, seen)
	// Others that a position has passed by now somebody else has counted, unless a commit of this
	// feed's was not heard of.
	verr, ok := errors.AsType[*visit.Error](err)
	f.settle(entries, !ok || verr.Kind != visit.Lost)
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, record.ErrMoved), e.settled:
		return nil
	case ok && verr.Kind == visit.Invalid: // its day has just been let go
		e.Fate, e.Refusal = Refused, verr
		return nil
	case ok:
		return err
	case e.Fate != Counts: // what the source keeps of it is not accepted
		return visit.Unanswered(err)
	}
	if err := f.Source.Unaccepted(e, err); err != nil {
		return err
	}
	e.Fate, e.Refusal = Refused, visit.Errorf(visit.Invalid, "", "internal error").Because(err)
	return nil
}

// hear hears what became of entries. It returns the first that is neither counted nor passed.
func (f *Feed[T]) hear(entries []Entry[T], results []record.Result) (failed *Entry[T], err error) {
	for i, got := range results {
		e := &entries[i]
		if f.OnResult != nil && e.Fate == Counts {
			f.OnResult(e, got)
		}
		switch {
		case got.Err == nil, errors.Is(got.Err, record.ErrNumbersLost), failed != nil:
		case errors.Is(got.Err, record.ErrRepeated):
			e.Fate = Repeated
		default:
			failed, err = e, got.Err
		}
	}
	return failed, err
}

// findPositions looks where positions are now.
func (f *Feed[T]) findPositions(ctx context.Context, positions map[*record.Position]bool) error {
	for p := range positions {
		if err := f.Recorder.FindPosition(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
