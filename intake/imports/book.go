package imports

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"footfall/counter"
	"footfall/db"
	"footfall/pause"
	"footfall/visit"
)

// book is what is written of the logs of an app, while nobody else changes it.
type book interface {
	// find returns the logs that may begin with one of some lines.
	find(ctx context.Context, beginnings []int64) ([]Log, error)
	get(ctx context.Context, ids []int64) ([]Log, error)
	// samplesOfHours returns the samples of all logs, by their ids.
	samplesOfHours(ctx context.Context, hours []int32) (map[int64]samples, error)
	// samplesOf returns the samples of a log in some hours; nil: in all.
	samplesOf(ctx context.Context, id int64, hours []int32) (samples, error)
	// set writes what is known of a log, and its samples of some hours; those without lines it
	// deletes. was is the log as it was found, nil: there is none yet. false: it is not that any more.
	set(ctx context.Context, l, was *Log, changed samples) (written bool, err error)
}

// bookTries is how often in a second the book is asked for that somebody else has.
const bookTries = 10

// withBook runs f in a transaction with the book of the app's logs, which it waits for. What f has
// written stays if this returns nil.
func withBook(ctx context.Context, g *counter.Counting, f func(t tables) error) error {
	err := g.DB().InTx(ctx, func(q *db.Queries) error {
		t := tables{g.App().ID, New(q.Tx())}
		for {
			locked, err := t.q.LogsTryLock(ctx, t.app)
			if err != nil {
				return err
			}
			if locked {
				return f(t)
			}
			if err := pause.For(ctx, time.Second/bookTries); err != nil {
				return err
			}
		}
	})
	if _, says := errors.AsType[*visit.Error](err); says || err == nil || errors.Is(err, errDryRun) || ctx.Err() != nil {
		return err
	}
	return visit.Unanswered(err)
}

// tables is the book of an app in the database.
type tables struct {
	app int32
	q   *Queries
}

func (t tables) find(ctx context.Context, beginnings []int64) ([]Log, error) {
	return t.q.LogsFind(ctx, t.app, beginnings)
}

func (t tables) get(ctx context.Context, ids []int64) ([]Log, error) { return t.q.LogsGet(ctx, ids) }

func (t tables) samplesOfHours(ctx context.Context, hours []int32) (map[int64]samples, error) {
	rows, err := t.q.LogSamplesOfHours(ctx, t.app, hours)
	found := map[int64]samples{}
	for _, row := range rows {
		if found[row.LogID] == nil {
			found[row.LogID] = samples{}
		}
		found[row.LogID][row.Hour] = sampleOf(row.Sample)
	}
	return found, err
}

func (t tables) samplesOf(ctx context.Context, id int64, hours []int32) (samples, error) {
	rows, err := t.q.LogSamplesOf(ctx, id, hours)
	found := samples{}
	for _, row := range rows {
		found[row.Hour] = sampleOf(row.Sample)
	}
	return found, err
}

// samplesWritten is how many samples are written in one statement.
const samplesWritten = 500

func (t tables) set(ctx context.Context, l, was *Log, changed samples) (written bool, err error) {
	if was == nil {
		nothing := int64(0)
		was = &Log{Counted: &nothing}
		if l.ID, err = t.q.LogMake(ctx, LogMakeParams{AppID: t.app, Hash: l.Hash, Beginning: l.Beginning}); err != nil {
			return false, err
		}
	}
	rows, err := t.q.LogSet(ctx, LogSetParams{
		ID: l.ID, Claimed: l.Claimed, Hash: l.Hash, Counted: l.Counted, CountedHash: l.CountedHash, Lines: l.Lines, Beginning: l.Beginning,
		Look: l.Look, Server: l.Server, File: l.File, Inode: l.Inode, Rules: l.Rules, Told: l.Told,
		State: l.State, After: l.After, AfterLines: l.AfterLines, LastAt: l.LastAt, Tail: append([]byte{}, l.Tail...),
		WasCounted: was.Counted, WasLook: was.Look,
	})
	if err != nil || rows == 0 {
		return false, err
	}
	for hours := range slices.Chunk(changed.hours(), samplesWritten) {
		rows, gone := LogSamplesSetParams{AppID: t.app, LogID: l.ID}, []int32(nil)
		for _, hour := range hours {
			if len(changed[hour].lines) == 0 {
				gone = append(gone, hour)
				continue
			}
			rows.Hours, rows.Samples = append(rows.Hours, hour), append(rows.Samples, changed[hour].bytes())
		}
		if len(rows.Hours) > 0 {
			err = t.q.LogSamplesSet(ctx, rows)
		}
		if err == nil && len(gone) > 0 {
			err = t.q.LogSamplesDelete(ctx, l.ID, gone)
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// convert writes anew what 0.1.0 has written of an app's logs, hashed by the key. It ends imports of
// 0.1.0 that still run.
func (t tables) convert(ctx context.Context, h *hashes) error {
	old, err := t.q.OldLogsList(ctx, t.app)
	if err != nil {
		return err
	}
	for _, was := range old {
		l := Log{ID: was.ID, Claimed: was.Claimed, Hash: h.ofBytes(was.Hash), Counted: &was.Next, Lines: was.Lines, File: was.File,
			Rules: was.Rules}
		if was.Next == was.Claimed {
			l.CountedHash = l.Hash
		}
		changed, err := t.oldLines(ctx, h, &l)
		if err != nil {
			return err
		}
		if _, err := t.set(ctx, &l, &Log{}, changed); err != nil {
			return err
		}
		if err := t.q.OldLogTake(ctx, t.app, was.ID); err != nil {
			return err
		}
	}
	return nil
}

// oldLines samples the lines of a log of 0.1.0. Where they stand was not kept: all count as counted.
func (t tables) oldLines(ctx context.Context, h *hashes, l *Log) (samples, error) {
	const most = 1000
	changed, behind := samples{}, int64(-1)
	for {
		rows, err := t.q.OldLogLines(ctx, OldLogLinesParams{LogID: l.ID, Behind: behind, Most: most})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			behind = row.Line
			for at := 0; at+8 <= len(row.Hashes); at += 8 {
				sum := binary.BigEndian.Uint64(row.Hashes[at:])
				if row.Line == 0 && at == 0 {
					begins := h.ofBeginning(sum)
					l.Beginning = &begins
				}
				if hash, ok := h.ofXX(row.Hour, sum); ok {
					changed.of(row.Hour).add(sampled{hash: hash, count: 1})
				}
			}
		}
		if len(rows) < most {
			return changed, nil
		}
	}
}
