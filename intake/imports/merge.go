package imports

// timeline has the sources in the order of their next lines' times. A source is opened when its time
// comes, so that years of logs take no more memory than a day of them.
type timeline []*source

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timeline) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(s any)        { *t = append(*t, s.(*source)) }
func (t *timeline) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	*t = (*t)[:last]
	return s
}
