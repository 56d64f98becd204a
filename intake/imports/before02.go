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
// it counted for a server are closed: for most lines with these times, it is unknown whether 0.2 counted them. An exception
// is a file that begins with a part of a log that 0.2 counted. The lines of this part are recorded as counted, and the
// lines after it may count. Version 0.4 will remove this Go file.

// closed contains the logs that 0.2 counted and whose lines may be in the imported files.
type closed struct {
	logs  []ClosedLogsRow // sorted by bytes
	until time.Time       // the time of the last line that 0.2 counted, in any of the logs
	auto  bool            // 0.2 was configured to leave out lines up to until, so they are left out even without --after
}

// beginning describes which part of a file 0.2 counted. The part is at the start of the file.
type beginning struct {
	recorded int64          // length of the part in bytes
	log      *ClosedLogsRow // nil: 0.2 counted no part of the file
}

// findClosed stores the logs that 0.2 counted in r.closed. It first waits for running transactions of 0.2.
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

// bytes returns how many bytes at the start of the log 0.2 has hashed, or 0 if it stored no hash.
func (l *ClosedLogsRow) bytes() int64 {
	switch {
	case l.CountedHash != nil:
		return l.Counted
	case l.Hash != nil:
		return l.Claimed
	}
	return 0
}

// decide02 sets of.recorded if 0.2 counted a line or --after leaves it out, so that the line is recorded as counted, but
// without a visit. If it is unknown whether 0.2 counted the line, and the line would count now, decide02 refuses the whole
// file.
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

// othersHave reports whether a log of 0.2 other than log contains lines of this hour.
func (c *closed) othersHave(log *ClosedLogsRow, hour int32) bool {
	for i := range c.logs {
		if l := &c.logs[i]; l != log && slices.Contains(l.Hours, hour) {
			return true
		}
	}
	return false
}

// match compares the start of file f with the parts of logs that 0.2 counted. It returns the longest part with which f
// begins.
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

// tails contains the lines with the time closed.until, the last second that 0.2 counted. It maps the hash that 0.2 stored
// for a line to how often 0.2 counted the line.
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

// take removes one occurrence of a line from t, and returns true. If t contains no occurrence of the line, take returns
// false, because 0.2 has not counted this occurrence.
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
