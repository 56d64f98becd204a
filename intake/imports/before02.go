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

// Footfall 0.2 stored in the table logs which logs it had counted, but not their lines. The times up to the last line that
// it counted for a server are closed: it is unknown whether 0.2 counted a line with such a time. These lines may count only
// if their file begins with a part of a log that 0.2 counted. Then the lines of this part are recorded as counted. Version
// 0.4 will remove this Go file.

// closed contains the logs that 0.2 counted and whose lines may be in the imported files.
type closed struct {
	logs  []ClosedLogsRow // sorted by bytes
	until time.Time       // the time of the last line that 0.2 counted, in any of the logs
	auto  bool            // 0.2 was configured to leave out lines up to until, so they are left out even without --after
}

// beginning describes the part at the start of a file that 0.2 counted.
type beginning struct {
	recorded int64          // length of the part in bytes
	log      *ClosedLogsRow // nil: 0.2 counted no part of the file
}

// findClosed loads the logs that 0.2 counted into r.closed. It waits for running transactions of 0.2.
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

// has reports whether a time is closed: 0.2 counted a line with this time or with a later one.
func (c *closed) has(at time.Time) bool { return c != nil && !at.Truncate(time.Second).After(c.until) }

// bytes returns the length of the part of the log whose hash 0.2 stored, or 0 if it stored no hash.
func (l *ClosedLogsRow) bytes() int64 {
	switch {
	case l.CountedHash != nil:
		return l.Counted
	case l.Hash != nil:
		return l.Claimed
	}
	return 0
}

// decide02 finds out whether 0.2 counted a line. If so, it sets of.recorded: the line is recorded as counted, without a
// visit. If this is unknown, and the line would count now, decide02 refuses the whole file.
func (d *reader) decide02(ctx context.Context, s *source, text []byte, of *logLine) error {
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
	case s.lines.start < s.old.recorded:
		of.recorded = true
		return nil
	case s.old.log != nil && !c.othersHave(s.old.log, of.hour):
		return nil
	case after.Equal(c.until) && at.Equal(after): // 0.2 may have counted only some lines of this second
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
	e := feed.Entry[logLine]{Data: *of}
	e.Data.source, e.Data.line = s, s.lines.number
	if err := decide(ctx, &e); err != nil || e.Fate != feed.Counts {
		return err
	}
	s.refuse("line %d is from a time for which 0.2 has counted logs of this server, and it is unknown whether it counted this line: "+
		"add --after %s, once, to leave out the lines up to then", s.lines.number, c.until.UTC().Format(time.RFC3339))
	return nil
}

// othersHave reports whether any log of 0.2 except log has lines of this hour.
func (c *closed) othersHave(log *ClosedLogsRow, hour int32) bool {
	for i := range c.logs {
		if l := &c.logs[i]; l != log && slices.Contains(l.Hours, hour) {
			return true
		}
	}
	return false
}

// match compares the start of file f with the parts of logs that 0.2 counted. It returns the longest part that is equal.
func (c *closed) match(f *file, h *hashes) (found beginning, err error) {
	if f.stdin != nil {
		return found, nil // standard input can be read only once
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
			break // the file is shorter than this part and all later ones
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

// tails contains the lines of the last second that 0.2 counted: how often it counted each line, by the hash that it stored.
type tails map[uint64]int

// tails02 returns the tails for a source. The first call creates them from the logs in c.
func (s *source) tails02(c *closed) tails {
	if s.tails == nil {
		s.tails = tails{}
		for _, l := range c.logs {
			if !l.LastAt.Truncate(time.Second).Equal(c.until) {
				continue
			}
			for tail := l.Tail; len(tail) >= 12; tail = tail[12:] {
				if binary.BigEndian.Uint32(tail[8:]) == 0 { // 0: the line is from the last second
					s.tails[binary.BigEndian.Uint64(tail)]++
				}
			}
		}
	}
	return s.tails
}

// take removes one occurrence of a line from t. It returns false if t does not contain the line any more: then 0.2 did not
// count this occurrence.
func (t tails) take(h *hashes, l *logs.Line, text []byte) bool {
	block := blockOf(h.key, "lines")
	if h.dayKeys != nil {
		day := time.Unix(int64(l.Hour())*3600, 0).UTC()
		half := h.dayKeys[int32(day.Year()*10000+int(day.Month())*100+day.Day())] //nolint:gosec // a day
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
