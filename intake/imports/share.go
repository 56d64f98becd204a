package imports

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A file that shares lines with a log is not counted, unless somebody says what it is: nobody can
// tell which of its lines are the same ones. Lines of few visitors are shared by chance, as those of
// a monitor that asks several servers at once, unless nearly all are.
const (
	shareOfMany = 0.2 // of the lines that were compared, of either, with fewVisitors or more
	shareOfAny  = 0.9 // however few visitors
	hoursAtOnce = 200 // that are compared at once
)

// shared is what a file and a log have in common, in the hours that both have.
type shared struct {
	log                *Log
	mine, theirs, both int
	visitors           map[uint64]bool
	hours              int
	contains           bool // in these hours the log is known to have all lines of the file
}

// neighbours are the logs that have sampled lines of some hours, by the hashes of these, while an import
// has the book: many small files are looked for in what was read for the first one.
type neighbours struct {
	hours map[int32]bool
	logs  map[uint64][]int64
}

// mostNeighbours bounds the hashes.
const mostNeighbours = 1 << 20

// of returns the logs that have sampled lines which a file has in some hours.
func (n *neighbours) of(ctx context.Context, b book, hours []int32, mine samples) (ids []int64, err error) {
	missing := slices.DeleteFunc(slices.Clone(hours), func(hour int32) bool { return n.hours[hour] })
	if len(missing) > 0 {
		if n.logs == nil || len(n.logs) > mostNeighbours {
			n.hours, n.logs, missing = map[int32]bool{}, map[uint64][]int64{}, hours
		}
		for _, hour := range missing {
			n.hours[hour] = true
		}
		there, err := b.samplesOfHours(ctx, missing)
		if err != nil {
			return nil, err
		}
		for id, theirs := range there {
			n.add(id, theirs)
		}
	}
	for _, hour := range hours {
		for _, l := range mine[hour].lines {
			ids = append(ids, n.logs[l.hash]...)
		}
	}
	return ids, nil
}

// wrote hears what was written of a log. Where that are many hours, the next file reads anew.
func (n *neighbours) wrote(id int64, changed samples) {
	if len(changed) > hoursAtOnce/10 {
		*n = neighbours{}
	}
	n.add(id, changed)
}

// add adds what a log has in the hours that were read.
func (n *neighbours) add(id int64, theirs samples) {
	for hour, sample := range theirs {
		for _, l := range sample.lines {
			if n.hours[hour] {
				n.logs[l.hash] = append(n.logs[l.hash], id)
			}
		}
	}
}

// compare compares new lines of a file with those of all other logs, and returns those that have
// lines of it, first the one that has most.
func (r *run) compare(ctx context.Context, b book, s *source) (found []*shared, err error) {
	hours, ids := s.rest.hours(), []int64(nil)
	for some := range slices.Chunk(hours, hoursAtOnce) {
		have, err := r.near.of(ctx, b, some, s.rest)
		if err != nil {
			return nil, err
		}
		ids = append(ids, have...)
	}
	slices.Sort(ids)
	logs, err := b.get(ctx, slices.DeleteFunc(slices.Compact(ids), func(id int64) bool { return id == s.log.ID }))
	if err != nil {
		return nil, err
	}
	for i := range logs {
		o := &shared{log: &logs[i], visitors: map[uint64]bool{}, contains: true}
		for some := range slices.Chunk(hours, hoursAtOnce) {
			theirs, err := b.samplesOf(ctx, o.log.ID, some)
			if err != nil {
				return nil, err
			}
			for hour, sample := range theirs {
				o.add(s.rest[hour], sample)
			}
		}
		if o.both > 0 {
			found = append(found, o)
		}
	}
	slices.SortStableFunc(found, func(a, b *shared) int { return cmp.Compare(b.both, a.both) })
	return found, nil
}

// add compares samples of an hour.
func (o *shared) add(mine, theirs *sample) {
	limit := min(mine.limit, theirs.limit)
	here, there := mine.below(limit), theirs.below(limit)
	o.hours++
	o.mine, o.theirs = o.mine+len(here), o.theirs+len(there)
	o.contains = o.contains && limit == math.MaxUint64
	for i := 0; i < len(here); i++ {
		for len(there) > 0 && there[0].hash < here[i].hash {
			there = there[1:]
		}
		if len(there) == 0 || there[0].hash != here[i].hash {
			o.contains = false
			continue
		}
		o.both++
		o.contains = o.contains && here[i].count <= there[0].count
		if len(o.visitors) < fewVisitors {
			o.visitors[here[i].visitor] = true
		}
	}
}

// isShared reports whether a file shares lines with the log. goesOn: the file is a log that goes on,
// and these are its new lines: a few of them may all be a monitor's.
func (o *shared) isShared(server string, goesOn bool) bool {
	of, many := float64(o.both), len(o.visitors) >= fewVisitors
	least := float64(min(o.mine, o.theirs))
	switch {
	case server != "" && o.log.Server != "" && server != o.log.Server:
		return !goesOn && of >= shareOfAny*least
	case goesOn:
		return many && of >= shareOfMany*float64(o.mine)
	}
	return many && of >= shareOfMany*least || of >= shareOfAny*least
}

// isWhole reports whether a log is known to have counted all lines of a file.
func (o *shared) isWhole(s *source) bool {
	return o.contains && o.hours == len(s.rest) && *o.log.Counted == o.log.Claimed
}

// refusal says why a file that shares lines with a log is not counted, and what to do.
func (o *shared) refusal(server string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d of its lines are in %s, too, of %d that were compared", o.both, nameOf(o.log), o.mine)
	if *o.log.Counted < o.log.Claimed {
		text.WriteString(", which was not counted to its end: nothing of this file is counted. Import that one first, or both together")
		return text.String()
	}
	text.WriteString(": nothing of this file is counted. If it was put together from several logs, import these themselves")
	if o.log.LastAt != nil {
		fmt.Fprintf(&text, "; if it goes on where that one ends, add --after %s", o.log.LastAt.UTC().Format(time.RFC3339))
		text.WriteString(", or --after counted for what shows the last lines each time, as docker logs does")
	}
	if server == "" {
		text.WriteString("; if it is of another server, say which with --server, for both")
	}
	text.WriteString("; if you know that it is another log, add --another")
	return text.String()
}

// nameOf names a log to people.
func nameOf(l *Log) string {
	if l.Server != "" {
		return fmt.Sprintf("%s of %s", l.File, l.Server)
	}
	return l.File
}
