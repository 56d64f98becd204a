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
	seconds map[int64]map[uint64]int
	newest  int64
	free    []map[uint64]int // cleared, to be used again
}

// next returns the number of a line: 1 the first time.
func (n *numbering) next(second int64, hash uint64) int {
	n.newest = max(n.newest, second)
	lines := n.seconds[second]
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
			n.seconds = map[int64]map[uint64]int{}
		}
		n.seconds[second] = lines
	}
	lines[hash]++
	return lines[hash]
}

func (n *numbering) sweep() {
	for second, lines := range n.seconds {
		if second < n.newest-numberedFor {
			delete(n.seconds, second)
			clear(lines)
			n.free = append(n.free, lines)
		}
	}
}
