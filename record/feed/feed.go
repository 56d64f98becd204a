// Package feed counts the visits in a source, such as a queue or access logs. It counts each entry of the source
// exactly once, even if the database fails, processes are killed, or other instances read the same source.
//
// For each part of a source, the database stores a position, which shows how far the part has been counted. The
// transaction that counts entries also moves the position. If the connection is lost during a commit, the feed reads
// the position again, because all entries before the position were counted.
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

// Entry is one item of a source, such as a line of a log.
type Entry[T any] struct {
	Data     T                // the source's own data about the item
	Position *record.Position // how far the part of the source that contains the entry has been counted
	Next     int64            // the position after the entry
	Line     db.LogLine       // for access logs: the line to record as counted
	Fate     Fate
	Visit    record.Visit  // set if Fate is Counts
	Refusal  *visit.Error  // the reason if Fate is Refused
	Why      visit.Skipped // the reason if Fate is Skipped
	ByOthers bool          // another reader of the same source has moved the position past this entry

	settled bool
}

// Fate is how an entry is handled. Before the entry is counted, Fate is the plan. Afterwards it is the result.
type Fate int

// The values of Fate. The source sets the fate of each entry. Feed.Choose may change Counts to Before, or Before to
// Counts. After counting, the feed changes Counts to the result.
const (
	Counts   Fate = iota // the entry is to be counted
	Passes               // the entry has no visit to count, and only moves the position
	Before               // an earlier import has counted the entry
	Counted              // the entry was counted or, in a dry run, would be counted
	Repeated             // a visit with the same id was counted before
	Skipped              // deliberately not counted: see Why
	Refused              // not counted, because the entry is invalid
)

// Source provides entries. One goroutine calls Read, and another one calls Keep, Unaccepted and Settled.
// Both goroutines call Decide.
type Source[T any] interface {
	// Read waits until there are entries, and returns at most "most" of them. The entries of each part are in order.
	// Some of them may be before the position of their part. If Read returns io.EOF, there are no further entries.
	Read(ctx context.Context, most int) ([]Entry[T], error)
	// Decide returns a function that decides the fate of an entry with the present settings of its app. The function
	// may be called repeatedly for the same entry.
	Decide(ctx context.Context) (func(ctx context.Context, e *Entry[T]) error, error)
	// Unaccepted is called if an entry's visit can never be stored in the tables. If Unaccepted returns an error, the
	// feed stops with this error. If it returns nil, the entry is refused.
	Unaccepted(e *Entry[T], err error) error
	// Keep returns the refused messages that are stored in the database when the position moves past an entry. If
	// first is true, the entry is the first one of its part in a chunk.
	Keep(e *Entry[T], first bool) []record.Refusal
	// Settled is called with entries whose results are final, in order.
	Settled(entries []*Entry[T])
}

// A chunk has at most manyEntries times as many entries as it may have visits. The limit is needed because a source
// may have long sequences of entries without a visit to count.
const manyEntries = 8

// Feed counts the entries of a source.
type Feed[T any] struct {
	Source   Source[T]
	Recorder *record.Recorder
	Retry    *Retry // nil if nothing is retried
	Fill     bool   // read until each chunk has the best size for counting; only for sources whose Read never waits
	DryRun   bool
	// Choose is called before each attempt to send entries to the database. It decides again which entries count, and
	// sets their Fate (to Counts or Before) and their Line. If Choose is nil, the fates stay unchanged.
	Choose func(ctx context.Context, entries []Entry[T]) error
	// OnResult is called with the result of each sent visit, before Settled. It may be nil.
	OnResult func(e *Entry[T], got record.Result)
}

// Run counts until the source ends or an error occurs. A new goroutine reads entries, and the caller's
// goroutine counts them.
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

// read reads the next chunk. If the source fails with a temporary error after some entries, read returns these
// entries without the error, and the next call continues.
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

func (f *Feed[T]) decide(ctx context.Context, entries []Entry[T]) error {
	decide, err := f.Source.Decide(ctx)
	for i := 0; i < len(entries) && err == nil; i++ {
		if e := &entries[i]; e.Fate != Passes && !e.settled {
			err = decide(ctx, e)
		}
	}
	return err
}

// Refuse sets the fate of e to Refused if err is about the entry itself, and then returns nil. It returns all other
// errors.
func (e *Entry[T]) Refuse(err error) error {
	verr, ok := errors.AsType[*visit.Error](err)
	if !ok || verr.Kind != visit.Invalid && verr.Kind != visit.Forbidden {
		return err
	}
	e.Fate, e.Refusal = Refused, verr
	return nil
}

// record counts entries, and moves the positions past entries that do not count. It retries while the database is
// unavailable.
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
			// The app may have been changed in the meantime, so decide the fates again.
			if err := f.decide(ctx, entries); err != nil && !f.Retry.isTemporary(err) {
				return err
			}
		}
	}
}

// choose calls Feed.Choose, if it is set, to decide which entries still count. If no entry counts after this call,
// and no line must be recorded, choose settles all entries, because no transaction is needed. In a dry run, choose
// always settles all entries.
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

// settle finds the entries that are before the positions of their parts. It marks these as settled (final) and passes
// them to Source.Settled. If byOthers is true, another reader has moved the positions and counted the entries that
// count.
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

// recordOnce tries once to count entries. Even if it returns nil, some entries may not be settled yet. The caller
// must then call recordOnce again with these entries, without waiting.
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
	e, err := f.processResults(entries, f.Recorder.RecordChunk(steps))
	f.settle(entries, false)
	if err == nil {
		return nil
	}
	failed := f.findPositions(ctx, seen)
	// If a position has moved past further entries, another reader has counted them. The exception is that the
	// response to a commit of this feed was lost.
	verr, ok := errors.AsType[*visit.Error](err)
	f.settle(entries, !ok || verr.Kind != visit.Lost)
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, record.ErrMoved), e.settled:
		return nil
	case ok && verr.Kind == visit.Invalid: // the visits of e's day have just been deleted
		e.Fate, e.Refusal = Refused, verr
		return nil
	case ok:
		return err
	case e.Fate != Counts: // the tables do not accept the refused messages that Keep returned for e
		return visit.Unanswered(err)
	}
	if err := f.Source.Unaccepted(e, err); err != nil {
		return err
	}
	e.Fate, e.Refusal = Refused, visit.Errorf(visit.Invalid, "", "internal error").Because(err)
	return nil
}

// processResults applies the results to the entries. It returns the first entry that failed, and the error of this
// entry. An entry that has no visit, or whose visit was counted before, has not failed.
func (f *Feed[T]) processResults(entries []Entry[T], results []record.Result) (failed *Entry[T], err error) {
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

func (f *Feed[T]) findPositions(ctx context.Context, positions map[*record.Position]bool) error {
	for p := range positions {
		if err := f.Recorder.FindPosition(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
