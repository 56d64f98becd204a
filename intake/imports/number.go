package imports

const (
	// numberedFor is the time in seconds for which a line of a file is remembered: until the newest line is this much later.
	numberedFor = 10 * 60
	// sweepAt is the number of remembered seconds at which old seconds are dropped.
	sweepAt = numberedFor + 60
)

// numbering counts how often each line has been in a file. It forgets lines that are much older than the newest line. If a
// forgotten line is repeated, its count is too low, and fewer visits count.
type numbering struct {
	seconds map[int64]numbered
	newest  int64
	free    []map[uint64]int // cleared, for reuse
}

// numbered contains the lines of one second.
type numbered struct {
	lines       map[uint64]int // how often each line has been in the file, by hash
	place, line int64          // offset of the first line, and number of lines before it
}

// next returns how often a line has been in the file, including this time. place is the line's offset, and line is the number
// of lines before it.
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

// start returns the offset from which a later import must read, so that the lines after place get the right numbers. lines is
// the number of lines before the returned offset.
func (n *numbering) start(place, line int64) (start, lines int64) {
	for second, is := range n.seconds {
		if second >= n.newest-numberedFor && is.place < place {
			place, line = is.place, is.line
		}
	}
	return place, line
}
