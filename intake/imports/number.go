package imports

const (
	// numberedFor is how long the lines of a second are remembered, in seconds of the log, after the
	// newest line of the file.
	numberedFor = 10 * 60
	// sweepAt is the number of remembered seconds at which old ones are dropped.
	sweepAt = 2 * numberedFor
)

// numbering counts how often each line has been in a file. It forgets lines that are much older than the
// newest one: if such a line follows again, its number is too low, and fewer visits count.
type numbering struct {
	seconds map[int64]numbered
	newest  int64
	free    []map[uint64]int // cleared, to be used again
}

// numbered are the lines of a second.
type numbered struct {
	lines       map[uint64]int
	place, line int64 // where the first of them begins, and how many lines are before it
}

// next returns the number of a line at a place, with so many lines before it: 1 the first time.
func (n *numbering) next(second int64, hash uint64, place, line int64) int {
	n.newest = max(n.newest, second)
	lines := n.seconds[second].lines
	if lines == nil {
		if len(n.seconds) >= sweepAt {
			n.sweep()
		}
		if last := len(n.free) - 1; last >= 0 {
			lines, n.free = n.free[last], n.free[:last]
		} else {
			lines = map[uint64]int{}
		}
		if n.seconds == nil {
			n.seconds = map[int64]numbered{}
		}
		n.seconds[second] = numbered{lines, place, line}
	}
	lines[hash]++
	return lines[hash]
}

func (n *numbering) sweep() {
	for second, is := range n.seconds {
		if second < n.newest-numberedFor {
			delete(n.seconds, second)
			clear(is.lines)
			n.free = append(n.free, is.lines)
		}
	}
}

// start returns where to begin to read so that the lines after a place get their numbers, and how many lines
// are before that.
func (n *numbering) start(place, line int64) (start, lines int64) {
	for second, is := range n.seconds {
		if second >= n.newest-numberedFor && is.place < place {
			place, line = is.place, is.line
		}
	}
	return place, line
}
