package imports

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"footfall/intake/logs"
	"footfall/record/feed"
)

// Logs that 0.2 has counted are in the table logs, which does not have their lines. So the hours up to
// the last line that 0.2 has counted of a server are closed for that server. Only a file that begins with
// the counted part of a log may count there. The lines of that part are recorded as counted, once. 0.4
// removes this file.

// closed are the logs of 0.2 whose lines may be in the files of an import.
type closed struct {
	logs  []ClosedLogsRow // in the order of how much of each is counted
	until time.Time       // the last counted line of all of them
	auto  bool            // lines up to then are left out without --after, as 0.2 was told
}

// beginning is how far a file is a log that 0.2 has counted.
type beginning struct {
	known int64          // so many bytes of it are counted
	log   *ClosedLogsRow // nil: it begins with no log
}

// findClosed finds the logs of 0.2, and waits until none of its imports counts.
func (r *run) findClosed(ctx context.Context) error {
	return r.tx(ctx, func(q *Queries) error {
		rows, err := q.ClosedLogs(ctx, r.app.App().ID)
		if err != nil {
			return err
		}
		others := func(l ClosedLogsRow) bool { return r.Server != "" && l.Server != "" && l.Server != r.Server }
		c := &closed{logs: slices.DeleteFunc(rows, others)}
		if r.closed = nil; len(c.logs) == 0 {
			return nil
		}
		slices.SortStableFunc(c.logs, func(a, b ClosedLogsRow) int { return cmp.Compare(a.bytes(), b.bytes()) })
		for _, l := range c.logs {
			if l.LastAt.After(c.until) {
				c.until = l.LastAt
			}
		}
		c.until = c.until.Truncate(time.Second)
		c.auto = len(c.logs) == 1 && c.logs[0].Told == "counted"
		r.closed = c
		return nil
	})
}

// has reports whether a time is one up to which 0.2 has counted.
func (c *closed) has(at time.Time) bool { return c != nil && !at.Truncate(time.Second).After(c.until) }

// bytes is how many bytes of a file show whether it begins with the log; 0: none do.
func (l *ClosedLogsRow) bytes() int64 {
	switch {
	case l.CountedHash != nil:
		return l.Counted
	case l.Hash != nil:
		return l.Claimed
	}
	return 0
}

// decide02 finds out whether a line that was not counted yet may have been counted by 0.2. If it was, it is
// only recorded; if that is not known, the file is refused.
func (d *reader) decide02(ctx context.Context, s *source, text []byte, of *read) error {
	c, at := d.closed, s.line.Time.Truncate(time.Second)
	if !c.has(at) {
		return nil
	}
	if s.old == nil {
		old, err := c.match(s.file, d.app.hashes)
		if err != nil {
			s.refuse("%s", s.file.readProblem(err))
			return nil
		}
		s.old = &old
	}
	after := d.After
	if after.IsZero() && c.auto && s.old.log == nil {
		after = c.until
	}
	switch {
	case s.lines.at < s.old.known:
		of.recorded = true
		return nil
	case s.old.log != nil && !c.othersHave(s.old.log, of.hour):
		return nil
	case after.Equal(c.until) && at.Equal(after): // of that second, 0.2 has counted some lines
		of.recorded = s.tails02(c).take(d.app.hashes, &s.line, text)
		return nil
	case !after.IsZero() && at.Before(after):
		of.recorded = true
		return nil
	}
	decide, err := d.Decide(ctx)
	if err != nil {
		return err
	}
	e := feed.Entry[read]{Of: *of}
	e.Of.source, e.Of.line = s, s.lines.number
	if err := decide(ctx, &e); err != nil || e.Fate != feed.Counts {
		return err
	}
	s.refuse("line %d is of a time up to which 0.2 has counted the logs of this server, and it is not known whether it counted this line: "+
		"add --after %s to leave out the lines up to then, once", s.lines.number, c.until.UTC().Format(time.RFC3339))
	return nil
}

// othersHave reports whether another log than one has lines of an hour.
func (c *closed) othersHave(log *ClosedLogsRow, hour int32) bool {
	for i := range c.logs {
		if l := &c.logs[i]; l != log && slices.Contains(l.Hours, hour) {
			return true
		}
	}
	return false
}

// match finds the log of which most is counted that a file begins with.
func (c *closed) match(f *file, h *hashes) (found beginning, err error) {
	if f.stdin != nil {
		return found, nil // it is being read
	}
	reader, done, err := f.read(0)
	if err != nil {
		return found, err
	}
	defer done()
	sum, place := sha256.New(), int64(0)
	for i := range c.logs {
		l := &c.logs[i]
		if l.bytes() == 0 {
			continue
		}
		n, err := io.CopyN(sum, reader, l.bytes()-place)
		if place += n; errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break // the file is shorter
		} else if err != nil {
			return found, err
		}
		want, is := l.Hash, sum.Sum(nil)
		if l.CountedHash != nil {
			want = l.CountedHash
		}
		if l.Keyed {
			is = keyedSum(h.key, "log", string(is))
		}
		if bytes.Equal(is, want) {
			found = beginning{l.Counted, l}
		}
	}
	return found, nil
}

// tails are the lines of the last second that 0.2 has counted, by its own hashes.
type tails map[uint64]int

// tails02 returns those of a source, from which each line is taken once.
func (s *source) tails02(c *closed) tails {
	if s.tails == nil {
		s.tails = tails{}
		for _, l := range c.logs {
			if !l.LastAt.Truncate(time.Second).Equal(c.until) {
				continue
			}
			for tail := l.Tail; len(tail) >= 12; tail = tail[12:] {
				if binary.BigEndian.Uint32(tail[8:]) == 0 { // seconds before the last one
					s.tails[binary.BigEndian.Uint64(tail)]++
				}
			}
		}
	}
	return s.tails
}

// take takes a line; false: 0.2 has not counted it.
func (t tails) take(h *hashes, l *logs.Line, text []byte) bool {
	block := blockOf(h.key, "lines")
	if h.halves != nil {
		day := time.Unix(int64(l.Hour())*3600, 0).UTC()
		half := h.halves[int32(day.Year()*10000+int(day.Month())*100+day.Day())] //nolint:gosec // a day
		block = blockOf(h.key, "lines", string(half))
	}
	var hash [aes.BlockSize]byte
	binary.BigEndian.PutUint64(hash[:], xxhash.Sum64(text))
	block.Encrypt(hash[:], hash[:])
	key := binary.BigEndian.Uint64(hash[:])
	if t[key] == 0 {
		return false
	}
	t[key]--
	return true
}
