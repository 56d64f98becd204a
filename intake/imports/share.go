package imports

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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

// compare compares new lines of a file with those of all other logs, and returns those that have
// lines of it, first the one that has most.
func (r *run) compare(ctx context.Context, b book, s *source) ([]*shared, error) {
	found := map[int64]*shared{}
	for hours := range slices.Chunk(s.rest.hours(), hoursAtOnce) {
		there, err := b.samplesOfHours(ctx, hours, s.log.ID)
		if err != nil {
			return nil, err
		}
		for id, theirs := range there {
			o := found[id]
			if o == nil {
				o = &shared{visitors: map[uint64]bool{}, contains: true}
				found[id] = o
			}
			for hour, sample := range theirs {
				o.add(s.rest[hour], sample)
			}
		}
	}
	logs, err := b.get(ctx, slices.Sorted(maps.Keys(found)))
	if err != nil {
		return nil, err
	}
	for i := range logs {
		found[logs[i].ID].log = &logs[i]
	}
	maps.DeleteFunc(found, func(_ int64, o *shared) bool { return o.both == 0 || o.log == nil })
	return slices.SortedFunc(maps.Values(found), func(a, b *shared) int {
		return cmp.Or(cmp.Compare(b.both, a.both), cmp.Compare(a.log.ID, b.log.ID))
	}), nil
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
