package imports

import "container/heap"

// timeline gives lines of several sources in the order of their times, as far as each source is in
// order itself. A source is opened when its time comes, so that years of logs take no more memory
// than a day of them.
type timeline []*source

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].line.Time.Before(t[j].line.Time) }
func (t timeline) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(s any)        { *t = append(*t, s.(*source)) }
func (t *timeline) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	*t = (*t)[:last]
	return s
}

// first is the source whose line comes next; nil: all are read. read is called for each source that
// is to read its next line, and says whether it has one.
func (t *timeline) first(read func(*source) bool) *source {
	for len(*t) > 0 {
		s := (*t)[0]
		if s.lines != nil {
			return s
		}
		t.advance(read) // up to here it stood at its first time
	}
	return nil
}

// advance lets the source that comes first read its next line.
func (t *timeline) advance(read func(*source) bool) {
	if read((*t)[0]) {
		heap.Fix(t, 0)
	} else {
		heap.Pop(t)
	}
}
