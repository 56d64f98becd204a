package desk

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/visit"
)

// Seen is a visit that was counted, as its client knows it.
type Seen struct {
	Visitor string   // who came, as whom they count
	Era     int      // how often they had been erased before
	Page    string   // with its site: a.example/x
	Day     int32    // that it counts for
	SiteTag []string // "name value", of those that sites alone have
	PageTag []string // of those that pages have, too

	Answer     visit.Answer // with the numbers of its own moment; none: they are not known
	Began, Got int64        // moments, in one order for all clients; 0: they are not known
}

// Model is what must be counted of visits, by the rules alone: by sets of who came when. It is for
// one app, whose visits are counted in any order. It is safe for concurrent use.
type Model struct {
	mu   sync.Mutex
	seen []Seen
}

// Counted notes visits that are counted for certain.
func (m *Model) Counted(some ...Seen) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, some...)
}

// at is a visit at one of its two targets.
type at struct {
	*Seen
	counts visit.Counts
	tags   []string
}

func (a at) visitor() string { return fmt.Sprint(a.Visitor, "#", a.Era) }

// targets are the visits of each site and page, in the order of their hot where that is known, and
// in that of their notes otherwise.
func (m *Model) targets() map[string][]at {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string][]at{}
	for i := range m.seen {
		s := &m.seen[i]
		site, _, _ := strings.Cut(s.Page, "/")
		all[site] = append(all[site], at{s, s.Answer.Site, slices.Concat(s.SiteTag, s.PageTag)})
		all[s.Page] = append(all[s.Page], at{s, s.Answer.Page, s.PageTag})
	}
	for _, visits := range all {
		slices.SortStableFunc(visits, func(a, b at) int { return cmp.Compare(a.counts.Hot, b.counts.Hot) })
	}
	return all
}

// Answers holds the numbers of each visit's own moment against those that its place makes it: all
// visits that were counted are noted, and erased visitors are none of theirs. The order of hot
// decides everything else: who was first, on which day, and so each number.
func (m *Model) Answers(t testing.TB) {
	t.Helper()
	for target, visits := range m.targets() {
		ranks, days, latest := map[string]int64{}, map[string]bool{}, int64(0)
		for i, v := range visits {
			if ranks[v.visitor()] == 0 {
				ranks[v.visitor()] = int64(len(ranks) + 1)
			}
			days[fmt.Sprint(v.visitor(), v.Day)] = true
			want := visit.Counts{Hot: int64(i + 1), UV: int64(len(ranks)), PV: int64(len(days)), Rank: ranks[v.visitor()]}
			require.Equal(t, want, v.counts, "%s: the visit of %s in place %d", target, v.Visitor, i+1)
			if v.Got > 0 {
				require.Greater(t, v.Got, latest,
					"%s: hot %d was answered before a visit with a lower hot began", target, v.counts.Hot)
			}
			latest = max(latest, v.Began) // when the last of the earlier visits had begun
		}
	}
}

// Of is what was counted of a target: how many visits, and on which days each visitor came.
type Of struct {
	Hot  int64
	Came map[string]map[int32]bool // by "visitor#era"
}

// All is what was counted of each target.
func (m *Model) All() map[string]Of {
	all := map[string]Of{}
	for target, visits := range m.targets() {
		o := Of{int64(len(visits)), map[string]map[int32]bool{}}
		for _, v := range visits {
			if o.Came[v.visitor()] == nil {
				o.Came[v.visitor()] = map[int32]bool{}
			}
			o.Came[v.visitor()][v.Day] = true
		}
		all[target] = o
	}
	return all
}

// PV is on how many days visitors came, each for themselves.
func (o Of) PV() (pv int64) {
	for _, days := range o.Came {
		pv += int64(len(days))
	}
	return pv
}

// Days are those on which somebody came, in order.
func (o Of) Days() []int32 {
	all := map[int32]bool{}
	for _, days := range o.Came {
		maps.Copy(all, days)
	}
	return slices.Sorted(maps.Keys(all))
}

// Uniques is how many came from one day to another.
func (o Of) Uniques(from, to int32) (n int) {
	for _, days := range o.Came {
		for day := range days {
			if from <= day && day <= to {
				n++
				break
			}
		}
	}
	return n
}

// Totals are a line "uri hot pv uv" for each target, in order.
func (m *Model) Totals() (lines []string) {
	for target, o := range m.All() {
		lines = append(lines, fmt.Sprint(target, " ", o.Hot, " ", o.PV(), " ", len(o.Came)))
	}
	slices.Sort(lines)
	return lines
}

// Tags are a line "uri day name value pv newcomers" for each sum by tag, in order. A visit brings
// tags if it is the first of its visitor on its day, and a newcomer if it is the first of all.
func (m *Model) Tags() (lines []string) {
	sums := map[string][2]int{}
	for target, visits := range m.targets() {
		came := map[string]bool{}
		for _, v := range visits {
			once := fmt.Sprint(v.visitor(), " ", v.Day)
			if came[once] {
				continue
			}
			for _, tag := range v.tags {
				key := fmt.Sprint(target, " ", v.Day, " ", tag)
				sum := sums[key]
				sum[0]++
				if !came[v.visitor()] {
					sum[1]++
				}
				sums[key] = sum
			}
			came[once], came[v.visitor()] = true, true
		}
	}
	for key, sum := range sums {
		lines = append(lines, fmt.Sprint(key, " ", sum[0], " ", sum[1]))
	}
	slices.Sort(lines)
	return lines
}

// TotalsOf is what the tables say where Model has Totals.
func (d *Desk) TotalsOf(t testing.TB) []string {
	t.Helper()
	return Column[string](t, d, `SELECT concat_ws(' ', uri, hot, pv, uv) COLLATE "C" FROM pages JOIN counters ON page_id = id ORDER BY 1`)
}

// TagsOf is what the tables say where Model has Tags, once all that was brought is added up.
func (d *Desk) TagsOf(t testing.TB) []string {
	t.Helper()
	require.Eventually(t, func() bool { return d.One(t, `SELECT count(*) FROM tag_news`) == 0 }, dbtest.Patience, dbtest.Tick)
	lines := Column[string](t, d, `
		SELECT format('%s %s %s %s %s %s', p.uri, d.day_id, t.name, t.value, d.pv, d.newcomers)
		FROM tag_days AS d
		JOIN pages AS p ON p.id = d.page_id
		JOIN tags AS t ON t.id = d.tag_id`)
	slices.Sort(lines)
	return lines
}
