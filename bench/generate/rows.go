package generate

import (
	"iter"
	"math/bits"
	"slices"
)

// A target is a number from 0 on: the sites, and then the pages.

type (
	visitorRow struct{ visitor, rank, first, last int32 } // days are places in drawnVisits.days
	cameRow    struct{ visitor, day, previous int32 }     // previous -1: never before
	dayRow     struct{ day, hot, pv, uv int32 }
	returnRow  struct{ day, previous, visitors int32 }
)

// tally is all that the tables hold of one target, each list in the order of its table's key.
type tally struct {
	target   int
	visitors []visitorRow
	came     []cameRow
	days     []dayRow
	returns  []returnRow
}

// sortedVisits are visits sorted by target, visitor and time: a number for each target of each
// visit.
type sortedVisits struct {
	drawn       *drawnVisits
	keys        []uint64 // target, visitor and number of the visit
	dayOf       []int16  // by visit
	visitorBits int
	visitBits   int
}

func bitsOf(n int) int { return bits.Len64(uint64(n)) } //nolint:gosec // not negative

func sortVisits(c *drawnVisits) *sortedVisits {
	s := &sortedVisits{
		drawn: c, keys: make([]uint64, 0, 2*len(c.page)), dayOf: make([]int16, len(c.page)),
		visitorBits: bitsOf(c.people), visitBits: bitsOf(len(c.page)),
	}
	day := 0
	for n, page := range c.page {
		for n >= c.dayEnds[day] {
			day++
		}
		s.dayOf[n] = int16(day) //nolint:gosec // days are checked to fit
		s.keys = append(s.keys, s.key(int(c.siteOf[page]), n), s.key(c.sites+int(page), n))
	}
	slices.Sort(s.keys)
	return s
}

func (s *sortedVisits) key(target, n int) uint64 {
	return uint64(target)<<(s.visitorBits+s.visitBits) | uint64(s.drawn.visitor[n])<<s.visitBits | uint64(n) //nolint:gosec // none is negative
}

// targets counts the visits of one target after the other, in their order. What it yields holds
// until the next.
func (s *sortedVisits) targets() iter.Seq[*tally] {
	return func(yield func(*tally) bool) {
		var t tally
		days := make([]dayRow, len(s.drawn.days))
		var firsts []uint64 // the first visit of each visitor, and the visitor's place
		var returns []uint64
		for begin := 0; begin < len(s.keys); {
			t.target = int(s.keys[begin] >> (s.visitorBits + s.visitBits)) //nolint:gosec // was an int
			clear(days)
			t.visitors, t.came, t.days, t.returns = t.visitors[:0], t.came[:0], t.days[:0], t.returns[:0]
			firsts, returns = firsts[:0], returns[:0]
			end := begin
			for ; end < len(s.keys) && int(s.keys[end]>>(s.visitorBits+s.visitBits)) == t.target; end++ { //nolint:gosec // was an int
				number := int(s.keys[end] & (1<<s.visitBits - 1))                     //nolint:gosec // was an int
				visitor := int32(s.keys[end] >> s.visitBits & (1<<s.visitorBits - 1)) //nolint:gosec // was an int32
				day := int32(s.dayOf[number])
				days[day].hot++
				last, previous := len(t.visitors)-1, int32(-1)
				switch {
				case last < 0 || t.visitors[last].visitor != visitor:
					firsts = append(firsts, uint64(number)<<32|uint64(len(t.visitors))) //nolint:gosec // none is negative
					t.visitors = append(t.visitors, visitorRow{visitor: visitor, first: day, last: day})
					days[day].uv++
				case t.visitors[last].last == day:
					continue
				default:
					previous = t.visitors[last].last
					returns = append(returns, uint64(day)<<32|uint64(t.visitors[last].last)) //nolint:gosec // none is negative
					t.visitors[last].last = day
				}
				days[day].pv++
				t.came = append(t.came, cameRow{visitor, day, previous})
			}
			begin = end
			t.conclude(firsts, returns, days)
			if !yield(&t) {
				return
			}
		}
	}
}

// conclude ranks the visitors by their first visits, and lists the days.
func (t *tally) conclude(firsts, returns []uint64, days []dayRow) {
	slices.Sort(firsts)
	for i, first := range firsts {
		t.visitors[first&(1<<32-1)].rank = int32(i + 1) //nolint:gosec // visitors are checked to fit
	}
	for day, row := range days {
		if row.hot > 0 {
			row.day = int32(day) //nolint:gosec // days are checked to fit
			t.days = append(t.days, row)
		}
	}
	slices.Sort(returns)
	for _, r := range returns {
		day, previous := int32(r>>32), int32(r&(1<<32-1)) //nolint:gosec // were int32
		if last := len(t.returns) - 1; last >= 0 && t.returns[last].day == day && t.returns[last].previous == previous {
			t.returns[last].visitors++
			continue
		}
		t.returns = append(t.returns, returnRow{day, previous, 1})
	}
}

// dayOfRows are the rows that came into being on one day, each list in the order of its table's
// key. Tables are filled day by day, since that is how they would have grown.
type dayOfRows struct {
	came     []targetRow[cameRow]
	visitors []targetRow[visitorRow]
	days     []targetRow[dayRow]
	returns  []targetRow[returnRow]
}

type targetRow[T any] struct {
	target int32
	row    T
}

// byDay divides the rows by days. The sums of the targets are beside them, by target.
func (s *sortedVisits) byDay() (days []dayOfRows, sums []dayRow) {
	days, sums = make([]dayOfRows, len(s.drawn.days)), make([]dayRow, s.drawn.sites+len(s.drawn.siteOf))
	for t := range s.targets() {
		target := int32(t.target) //nolint:gosec // targets are checked to fit
		for _, c := range t.came {
			days[c.day].came = append(days[c.day].came, targetRow[cameRow]{target, c})
		}
		for _, v := range t.visitors {
			days[v.first].visitors = append(days[v.first].visitors, targetRow[visitorRow]{target, v})
		}
		for _, d := range t.days {
			days[d.day].days = append(days[d.day].days, targetRow[dayRow]{target, d})
			sum := &sums[target]
			sum.hot, sum.pv, sum.uv = sum.hot+d.hot, sum.pv+d.pv, sum.uv+d.uv
		}
		for _, r := range t.returns {
			days[r.day].returns = append(days[r.day].returns, targetRow[returnRow]{target, r})
		}
	}
	return days, sums
}

// firstVisits are the numbers of the first visits to each target.
func (c *drawnVisits) firstVisits() []int {
	first := make([]int, c.sites+len(c.siteOf))
	for n := len(c.page) - 1; n >= 0; n-- {
		first[c.siteOf[c.page[n]]], first[c.sites+int(c.page[n])] = n, n
	}
	return first
}
