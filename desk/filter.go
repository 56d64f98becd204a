package desk

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// dayAtSite describes what one visitor did at a site on one day.
type dayAtSite struct {
	visitor string
	day     int32
	tags    []string // tags of the first visit of the day, as "name value"
	pages   map[string]bool
	events  map[string]bool
	isNew   bool
}

// daysAtSite returns a dayAtSite for each visitor and day whose rows are still stored. eras contains for each visitor
// how often the visitor was erased. Visits from before the last erasure are left out. If site is "", all sites
// together are treated as one site, and page names start with their site.
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

// holds reports whether the visitor's day meets a condition, like new, !returning or page:/a|/b*.
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

// Where returns the expected numbers of a site from one day to another. A visitor is included only on days on which
// this visitor meets all conditions. The result contains these lines:
//   - "numbers visitors new pv"
//   - "day D pv new" for each day
//   - "page P uniques new pv" for each page
//   - "tag name value pv new" for each tag
//   - "event E visitors of" for each event. "of" is the number of all included visitors
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
	if len(conditions) == 0 && site != "" { // in this case SQL reads stored sums, which include erased visitors
		of = m.All()[site].Uniques(from, to)
	}
	for event, who := range did {
		lines = append(lines, fmt.Sprint("event ", event, " ", len(who), " ", of))
	}
	slices.Sort(lines)
	return lines
}

// AnyConditions returns one to three random conditions, and negates about a third of them. The map "of" contains the
// possible values of some names. A condition on such a name gets one or two of its values.
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

// WhereOf returns the same lines as Model.Where, computed by SQL. At random, it calls either one function for each
// report, or filter_panels, which computes all panels of a page in one query.
func (d *Desk) WhereOf(t testing.TB, site string, from, to int32, names []string, conditions ...string) []string {
	t.Helper()
	sql := `
		SELECT concat_ws(' ', 'numbers', visitors, new_visitors, pv)
		FROM report.numbers_where('demo', $1, $2, $3, $5)
		UNION ALL
		SELECT concat_ws(' ', 'day', first_day, pv, new_visitors) FROM report.days_where('demo', $1, $2, $3, $5)
		UNION ALL
		SELECT concat_ws(' ', 'tag', name, value, pv, new_visitors) FROM report.tags_where('demo', $1, $4, $2, $3, $5, 1000)
		WHERE value <> '(none)'
		UNION ALL
		SELECT concat_ws(' ', 'page', substr(uri, length($1) + 1), uniques, new_visitors, pv)
		FROM report.pages_where('demo', $1, $2, $3, $5, 1000)`
	if rand.IntN(8) > 0 {
		sql = `
		SELECT CASE part
				WHEN 'numbers' THEN concat_ws(' ', part, visitors, new_visitors, pv)
				WHEN 'days'    THEN concat_ws(' ', 'day', day_id, pv, new_visitors)
				WHEN 'tags'    THEN concat_ws(' ', 'tag', name, value, pv, new_visitors)
				WHEN 'pages'   THEN concat_ws(' ', 'page', substr(value, length($1) + 1), visitors, new_visitors, pv)
			END
		FROM footfall.filter_panels('demo', $1, $2, $3, $5, '{numbers,days,tags,pages,since}', $4, most_values => 1000, most_pages => 1000)
		WHERE part <> 'since' AND value IS DISTINCT FROM '(none)'`
	}
	events := `
		SELECT concat_ws(' ', 'event', event, visitors, of_visitors) FROM report.events_where('demo', $1, $2, $3, $5, 1000)`
	if site != "" && len(conditions) == 0 && rand.IntN(2) == 0 { // filters call filter_few for sites with few visits
		events = `
		SELECT concat_ws(' ', 'event', substr(e.uri, 10), count(DISTINCT f.ip), s.uniques)
		FROM footfall.targets_sums(ARRAY(SELECT p.id FROM footfall.pages AS p WHERE p.uri = $1), $2, $3) AS s
		CROSS JOIN LATERAL footfall.filter_few(s.page_id, ARRAY(SELECT p.id FROM footfall.pages AS p WHERE p.uri LIKE '(events)/%'), $2, $3) AS f
		JOIN footfall.pages AS e ON e.id = f.page_id
		GROUP BY e.uri, s.uniques`
	}
	lines := Column[string](t, d, sql+" UNION ALL "+events, site, from, to, names, conditions)
	slices.Sort(lines)
	return lines
}

// Reached returns the expected results for goals and funnel steps. As in Where, a visitor is included only on days on
// which this visitor meets all conditions. The result contains these lines:
//   - one <visits> <onepage>: <visits> counts each included visitor once a day, and <onepage> those who saw only one page
//     on this day
//   - goal <goal> <value> <visitors> <all>: how many of all included visitors reached the goal. There is a line for the
//     total (<value> is empty), for each day (<value> is the day), and for each value of the tag
//   - step <number> <visitors> <sameday>: how many visitors did this step and all steps before it, and how many of them
//     on one day
func (m *Model) Reached(site string, eras map[string]int, from, to int32, tag string, goals, steps, conditions []string) (lines []string) {
	days := map[string][]*dayAtSite{}
	of, reached := map[string]map[string]bool{}, map[string]map[string]bool{}
	put := func(into map[string]map[string]bool, key, visitor string) {
		if into[key] == nil {
			into[key] = map[string]bool{}
		}
		into[key][visitor] = true
	}
	visits, one := 0, 0
	for _, d := range m.daysAtSite(site, eras) {
		if d.day < from || d.day > to || slices.ContainsFunc(conditions, func(c string) bool { return !d.holds(c) }) {
			continue
		}
		days[d.visitor] = append(days[d.visitor], d)
		if visits++; len(d.pages) == 1 {
			one++
		}
		keys := []string{"", fmt.Sprint(d.day)}
		for _, t := range d.tags {
			if rest, is := strings.CutPrefix(t, tag+" "); is {
				keys = append(keys, rest)
			}
		}
		if len(keys) == 2 {
			keys = append(keys, "(none)")
		}
		for _, key := range keys {
			put(of, key, d.visitor)
			for _, goal := range goals {
				if d.holds(goal) {
					put(reached, goal+" "+key, d.visitor)
				}
			}
		}
	}
	lines = append(lines, fmt.Sprint("one ", visits, " ", one))
	for key, all := range of {
		n := len(all)
		if key == "" && len(conditions) == 0 && site != "" { // in this case SQL reads stored sums, which include erased visitors
			n = m.All()[site].Uniques(from, to)
		}
		for _, goal := range goals {
			lines = append(lines, fmt.Sprint("goal ", goal, " ", key, " ", len(reached[goal+" "+key]), " ", n))
		}
	}
	lines = append(lines, funnel(days, steps)...)
	slices.Sort(lines)
	return lines
}

// funnel returns a line "step N visitors sameday" for each step. visitors is how many visitors reached the steps 1 to
// N in this order, possibly on different days. sameday is how many of them did so on a single day. days contains each
// visitor's days.
func funnel(days map[string][]*dayAtSite, steps []string) (lines []string) {
	far, sameDay := make([]int, len(steps)), make([]int, len(steps))
	for _, came := range days {
		slices.SortFunc(came, func(a, b *dayAtSite) int { return cmp.Compare(a.day, b.day) })
		at, most := 0, 0
		for _, d := range came {
			for at < len(steps) && d.holds(steps[at]) {
				at++
			}
			on := slices.IndexFunc(steps, func(step string) bool { return !d.holds(step) })
			if on < 0 {
				on = len(steps)
			}
			most = max(most, on)
		}
		for i := range steps {
			if i < at {
				far[i]++
			}
			if i < most {
				sameDay[i]++
			}
		}
	}
	for i := range steps {
		lines = append(lines, fmt.Sprint("step ", i+1, " ", far[i], " ", sameDay[i]))
	}
	return lines
}

// ReachedOf returns the same lines as Model.Reached, computed by SQL.
func (d *Desk) ReachedOf(t testing.TB, site string, from, to int32, tag string, goals, steps, conditions []string) []string {
	t.Helper()
	lines := Column[string](t, d, `
		SELECT concat_ws(' ', 'one', visits, one_page) FROM report.one_page_where('demo', $1, $2, $3, $7)
		UNION ALL
		SELECT concat_ws(' ', 'goal', r.goal, r.value, r.visitors, r.of_visitors)
		FROM unnest($5::text[]) AS g (goal)
		CROSS JOIN unnest(ARRAY[NULL, 'day', $4]) AS b (by)
		CROSS JOIN LATERAL report.goals_where('demo', $1, $2, $3, $7, g.goal, b.by, 1000) AS r
		WHERE r.of_visitors > 0 -- none is no row by day
		UNION ALL
		SELECT concat_ws(' ', 'step', place, visitors, same_day) FROM report.funnel_where('demo', $1, $2, $3, $6, $7)`,
		site, from, to, tag, goals, steps, conditions)
	slices.Sort(lines)
	return lines
}
