package imports

const (
	// numberedFor is a time in seconds. A numbering may forget a line if the newest line is later by more than this time.
	numberedFor = 10 * 60
	// sweepAt is the number of elements in numbering.seconds at which next calls sweep, before it adds another one.
	sweepAt = numberedFor + 60
)

// numbering counts how often each line has occurred in a file. To save memory, it forgets lines that are much older than
// the newest line. If such a line occurs again, its count restarts at 1. The occurrence then looks like an earlier one, so
// it may be left out although it is new.
type numbering struct {
	seconds map[int64]numbered
	newest  int64
	free    []map[uint64]int // empty maps, which next uses again
}

// numbered contains the lines whose times are in the same second.
type numbered struct {
	lines       map[uint64]int // hash of a line → how often the line has occurred in the file
	place, line int64          // offset of the first of these lines, and the number of lines before it
}

// next returns how often a line has occurred in the file, including this occurrence. place is its offset in the file, and
// line is the number of lines before it.
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

// start returns the offset from which a later import must read the file, if this import has read it up to place. From this
// offset, the later import can count correctly how often the lines after place have occurred. lines is the number of lines
// before the returned offset.
func (n *numbering) start(place, line int64) (start, lines int64) {
	for second, is := range n.seconds {
		if second >= n.newest-numberedFor && is.place < place {
			place, line = is.place, is.line
		}
	}
	return place, line
}
