package desk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// dayAtSite is a visitor of a site on a day.
type dayAtSite struct {
	visitor string
	day     int32
	tags    []string // "name value", of the first visit of the day
	pages   map[string]bool
	events  map[string]bool
	isNew   bool
}

// daysAtSite are all whose rows are there: of those who were erased so often (by visitor), the last era. The
// site "" is all of them as one, with the sites in the names of pages.
func (m *Model) daysAtSite(site string, eras map[string]int) (all []*dayAtSite) {
	const events = "(events)"
	days, first, targets := map[string]*dayAtSite{}, map[string]int32{}, m.targets()
	for of, visits := range targets {
		if of != site && (site != "" || of == events || strings.Contains(of, "/")) {
			continue
		}
		came := map[string]bool{}
		for _, v := range visits {
			if v.Era < eras[v.Visitor] {
				continue
			}
			key := fmt.Sprint(v.visitor(), " ", v.Day)
			d := days[key]
			if d == nil {
				d = &dayAtSite{visitor: v.visitor(), day: v.Day, pages: map[string]bool{}, events: map[string]bool{}}
				days[key] = d
				all = append(all, d)
			}
			if !came[key] {
				came[key], d.tags = true, append(slices.Clone(d.tags), v.tags...)
			}
			d.pages[strings.TrimPrefix(v.Page, site)] = true
			if first[d.visitor] == 0 || d.day < first[d.visitor] {
				first[d.visitor] = d.day
			}
		}
	}
	for _, e := range targets[events] {
		if d := days[fmt.Sprint(e.visitor(), " ", e.Day)]; d != nil {
			d.events[strings.TrimPrefix(e.Page, events+"/")] = true
		}
	}
	for _, d := range all {
		d.isNew = first[d.visitor] == d.day
		slices.Sort(d.tags)
		d.tags = slices.Compact(d.tags)
	}
	return all
}

// holds reports whether a condition does.
func (d *dayAtSite) holds(condition string) bool {
	if rest, not := strings.CutPrefix(condition, "!"); not {
		return !d.holds(rest)
	}
	name, values, _ := strings.Cut(condition, ":")
	switch name {
	case "new", "returning":
		return d.isNew == (name == "new")
	}
	return slices.ContainsFunc(strings.Split(values, "|"), func(value string) bool {
		if name == "page" {
			below, is := strings.CutSuffix(value, "*")
			for page := range d.pages {
				if page == value || is && strings.HasPrefix(page, below) {
					return true
				}
			}
			return false
		}
		if name == "event" {
			return d.events[value]
		}
		if value == "(none)" {
			return !slices.ContainsFunc(d.tags, func(t string) bool { return strings.HasPrefix(t, name+" ") })
		}
		return slices.Contains(d.tags, name+" "+value)
	})
}

// Where are what must be told of those at a site, from one day to another, for whom conditions hold: a line
// "numbers visitors new pv"; "day D pv new" for each; "page P uniques new pv", "tag name value pv new", and "event E visitors of".
func (m *Model) Where(site string, eras map[string]int, from, to int32, conditions ...string) (lines []string) {
	visitors, days, tags := map[string]bool{}, map[int32][2]int{}, map[string][2]int{}
	pages, came, firstOn := map[string][3]int{}, map[string]bool{}, map[string]int32{}
	did := map[string]map[string]bool{}
	fresh, pv := 0, 0
	all := m.daysAtSite(site, eras)
	for _, d := range all {
		for page := range d.pages {
			if key := page + " " + d.visitor; firstOn[key] == 0 || d.day < firstOn[key] {
				firstOn[key] = d.day
			}
		}
	}
	for _, d := range all {
		if d.day < from || d.day > to || slices.ContainsFunc(conditions, func(c string) bool { return !d.holds(c) }) {
			continue
		}
		one := map[bool]int{true: 1}[d.isNew]
		visitors[d.visitor], fresh, pv = true, fresh+one, pv+1
		days[d.day] = [2]int{days[d.day][0] + 1, days[d.day][1] + one}
		for _, tag := range d.tags {
			tags[tag] = [2]int{tags[tag][0] + 1, tags[tag][1] + one}
		}
		for event := range d.events {
			if did[event] == nil {
				did[event] = map[string]bool{}
			}
			did[event][d.visitor] = true
		}
		for page := range d.pages {
			p, key := pages[page], page+" "+d.visitor
			if p[2]++; !came[key] {
				p[0]++
			}
			if firstOn[key] == d.day {
				p[1]++
			}
			pages[page], came[key] = p, true
		}
	}
	lines = append(lines, fmt.Sprint("numbers ", len(visitors), " ", fresh, " ", pv))
	for day, n := range days {
		lines = append(lines, fmt.Sprint("day ", day, " ", n[0], " ", n[1]))
	}
	for tag, n := range tags {
		lines = append(lines, fmt.Sprint("tag ", tag, " ", n[0], " ", n[1]))
	}
	for page, n := range pages {
		lines = append(lines, fmt.Sprint("page ", page, " ", n[0], " ", n[1], " ", n[2]))
	}
	of := len(visitors)
	if len(conditions) == 0 && site != "" { // sums know of those who were erased
		of = m.All()[site].Uniques(from, to)
	}
	for event, who := range did {
		lines = append(lines, fmt.Sprint("event ", event, " ", len(who), " ", of))
	}
	slices.Sort(lines)
	return lines
}

// AnyConditions are some of a list, each a few of its values, by chance; some are negated. Values stand in order
// behind their names.
func AnyConditions(of map[string][]string) (conditions []string) {
	names := []string{"new", "returning"}
	for name := range of {
		names = append(names, name, name)
	}
	for range 1 + rand.IntN(3) {
		c := names[rand.IntN(len(names))]
		if values := of[c]; len(values) > 0 {
			values = slices.Clone(values)
			rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
			c += ":" + strings.Join(values[:1+rand.IntN(min(2, len(values)))], "|")
		}
		if rand.IntN(3) == 0 {
			c = "!" + c
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// WhereOf is what SQL says where Model has Where.
func (d *Desk) WhereOf(t testing.TB, site string, from, to int32, names []string, conditions ...string) []string {
	t.Helper()
	lines := Column[string](t, d, `
		SELECT concat_ws(' ', 'numbers', visitors, new_visitors, pv)
		FROM report.numbers_where('demo', $1, $2, $3, $5)
		UNION ALL
		SELECT concat_ws(' ', 'day', first_day, pv, new_visitors) FROM report.days_where('demo', $1, $2, $3, $5)
		UNION ALL
		SELECT concat_ws(' ', 'tag', name, value, pv, new_visitors) FROM report.tags_where('demo', $1, $4, $2, $3, $5, 1000)
		WHERE value <> '(none)'
		UNION ALL
		SELECT concat_ws(' ', 'event', event, visitors, of_visitors) FROM report.events_where('demo', $1, $2, $3, $5, 1000)
		UNION ALL
		SELECT concat_ws(' ', 'page', substr(uri, length($1) + 1), uniques, new_visitors, pv)
		FROM report.pages_where('demo', $1, $2, $3, $5, 1000)`,
		site, from, to, names, conditions)
	slices.Sort(lines)
	return lines
}
