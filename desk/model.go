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

// Seen is a visit that was counted, with all data that its client has about it.
type Seen struct {
	Visitor string   // the visitor for whom the visit counts
	Era     int      // how often the visitor had been erased before the visit
	Page    string   // the page with its site, like a.example/x
	Day     int32    // the day for which the visit counts
	SiteTag []string // tags that only sites have, as "name value"
	PageTag []string // tags that pages and sites have, as "name value"

	Answer     visit.Answer // the response, with the numbers after the visit; empty: not recorded
	Began, Got int64        // start and end of the request, on one clock for all clients; 0: not recorded
}

// Model computes the numbers that a counter should have for one app. Its input is the visits that were counted, in
// any order. It applies only the rules of counting, to sets of visitors and days. A Model is safe for concurrent use.
type Model struct {
	mu   sync.Mutex
	seen []Seen
}

// Counted adds visits to the model. The counter must have counted each of them.
func (m *Model) Counted(some ...Seen) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, some...)
}

// targetVisit is a visit as it was counted for its site or for its page. It has the numbers and tags of this target.
type targetVisit struct {
	*Seen
	counts visit.Counts
	tags   []string
}

func (a targetVisit) visitor() string { return fmt.Sprint(a.Visitor, "#", a.Era) }

// targets returns the visits of each site and page, in the order in which they were counted. Every visit increases a
// target's number hot by 1, so targets sorts by hot in the answers. Visits without a recorded answer stay in the
// order in which Counted added them.
func (m *Model) targets() map[string][]targetVisit {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string][]targetVisit{}
	for i := range m.seen {
		s := &m.seen[i]
		site, _, _ := strings.Cut(s.Page, "/")
		all[site] = append(all[site], targetVisit{s, s.Answer.Site, slices.Concat(s.SiteTag, s.PageTag)})
		all[s.Page] = append(all[s.Page], targetVisit{s, s.Answer.Page, s.PageTag})
	}
	for _, visits := range all {
		slices.SortStableFunc(visits, func(a, b targetVisit) int { return cmp.Compare(a.counts.Hot, b.counts.Hot) })
	}
	return all
}

// Answers fails the test if a visit's answer has wrong numbers. The model must contain every counted visit, and no
// visit of an erased visitor. The number hot in an answer shows how many visits to the target were counted before
// this visit. From these visits, Answers computes the numbers that the answer should have.
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
					"%s: a visit got hot %d before another visit began, which got a lower hot", target, v.counts.Hot)
			}
			latest = max(latest, v.Began) // the latest start among the visits with a lower hot
		}
	}
}

// ExpectedCounts contains the expected counts of a target: the number of visits, and each visitor's days.
type ExpectedCounts struct {
	Hot  int64
	Came map[string]map[int32]bool // for each "visitor#era": the days with a visit
}

// All returns the counts of all targets.
func (m *Model) All() map[string]ExpectedCounts {
	all := map[string]ExpectedCounts{}
	for target, visits := range m.targets() {
		o := ExpectedCounts{int64(len(visits)), map[string]map[int32]bool{}}
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

// PV returns the number of visitor days: each visitor counts once per day.
func (o ExpectedCounts) PV() (pv int64) {
	for _, days := range o.Came {
		pv += int64(len(days))
	}
	return pv
}

// Days returns the days with visitors, in order.
func (o ExpectedCounts) Days() []int32 {
	all := map[int32]bool{}
	for _, days := range o.Came {
		maps.Copy(all, days)
	}
	return slices.Sorted(maps.Keys(all))
}

// Uniques returns the number of different visitors in this range of days.
func (o ExpectedCounts) Uniques(from, to int32) (n int) {
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

// Totals returns a line "uri hot pv uv" for each target, in order.
func (m *Model) Totals() (lines []string) {
	for target, o := range m.All() {
		lines = append(lines, fmt.Sprint(target, " ", o.Hot, " ", o.PV(), " ", len(o.Came)))
	}
	slices.Sort(lines)
	return lines
}

// Tags returns a sorted line "uri day name value pv newcomers" for each target, day and tag. Only a visitor's first
// visit of a day counts for its tags. newcomers is the number of these visits that were also the visitor's very first
// visit to the target.
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

// TotalsOf returns the same lines as Model.Totals, read from the tables.
func (d *Desk) TotalsOf(t testing.TB) []string {
	t.Helper()
	return Column[string](t, d, `SELECT concat_ws(' ', uri, hot, pv, uv) COLLATE "C" FROM pages JOIN counters ON page_id = id ORDER BY 1`)
}

// TagsOf returns the same lines as Model.Tags, read from the table tag_days. It first waits until the rows of
// tag_news have been added to tag_days.
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
