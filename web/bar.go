package web

import (
	"cmp"
	"fmt"
	"html/template"

	"footfall/visit"
)

type rangeBar struct {
	Spans, More    []option // ranges to choose from: Spans are always visible, More are in a menu
	Chosen         bool     // the selected range is not in Spans: it is in More, or the reader typed it
	Compares       []option // comparisons to choose from; empty if the range is all days, or if there is a filter
	Earlier, Later string   // links to the previous and the next range; "" if there is none
	From, To, Max  string   // values in the form: first day, last day, and the latest day that can be chosen
	Action         string
	Keeps          [][2]string
	Filter         *search // form to filter the page; nil if the page cannot be filtered
	Hint           []string
}

func (v view) rangeBar() rangeBar {
	bar := rangeBar{Action: usualView(v.app, v.site).link(),
		Keeps: v.hiddenFields("range", "from", "to", "period"), To: visit.DayText(v.days.To), Max: visit.DayText(v.app.Today),
		Chosen: v.span == ""}
	if v.days.From != visit.AllDays.From {
		bar.From = visit.DayText(v.days.From)
	}
	for i, span := range spans {
		to := v.copyWith(func(o *view) { o.span, o.period = span.name, "" })
		if v.span == "all" {
			to.compare = compares[0]
		}
		offers := &bar.Spans
		if i >= spansAtOnce {
			offers = &bar.More
		}
		*offers = append(*offers, option{v.say("ranges." + span.name), to.link(), span.name == v.span, keys[span.name]})
		bar.Chosen = bar.Chosen || i >= spansAtOnce && span.name == v.span
	}
	if earlier, found := v.neighbor(-1); found {
		bar.Earlier = earlier.link()
	}
	if later, found := v.neighbor(1); found {
		bar.Later = later.link()
	}
	if v.span == "all" || len(v.where) > 0 { // views of all days, and views with a filter, have no comparison
		return bar
	}
	other := "none" // the keyboard shortcut X selects this comparison
	if v.compare == other {
		other = compares[0]
	}
	for i, compare := range compares {
		chosen, label := v.compare == compare, "compare."+compare
		if i == 0 && v.days.Days()%7 == 0 {
			label = "compare.days-before"
		}
		if compare == "right" && v.days.Days()%7 == 0 && !chosen {
			continue
		}
		key := ""
		if compare == other {
			key = "X"
		}
		bar.Compares = append(bar.Compares, option{v.say(label), v.copyWith(func(o *view) { o.compare = compare }).link(), chosen, key})
	}
	return bar
}

// keys maps ranges to their keyboard shortcuts, which dash.js handles.
var keys = map[string]string{"today": "D", "7d": "W", "month": "M", "30d": "T"}

func (v view) frame() frame {
	usual := v.copyWith(func(o *view) {
		o.sort, o.showsVisitors, o.after, o.fullPanel, o.skip, o.value = sorts[0], false, "", "", 0, ""
	})
	f := frame{Place: v.app.Place, Title: v.app.Name, Live: v.days.To >= v.app.Today, Home: v.app.Root + "/"}
	whole := usual.withTarget("", "").copyWith(func(o *view) { o.chart, o.period, o.sortedBy = charts[0], "", orders[0] })
	f.Crumbs = []crumb{{v.app.Name, "", whole.link()}}
	if s := v.app.Shared; s != nil {
		f.Home, f.Embed = s.Base, s.Embed
		if s.Site != "" {
			f.Crumbs = nil
		}
	}
	if v.site != "" {
		f.Title = v.nameOf(v.target()) + " · " + f.Title
		f.Crumbs = append(f.Crumbs, crumb{v.nameOf(v.site), v.site, usual.withTarget(v.site, "").link()})
	}
	if v.path != "" {
		f.Crumbs = append(f.Crumbs, crumb{v.pageName(v.target()), v.target(), usual.link()})
	}
	return f
}

func (v view) heading() heading {
	s, c, l := v.stretch(), v.counted(), v.app.words()
	h := heading{l: l, Name: v.app.Name, Range: rangeText(l, v.look().In), Zone: v.app.Zone.String(), Today: v.days.To >= v.app.Today}
	if v.site != "" {
		h.Name, h.Stored, h.Open = v.nameOf(v.target()), v.target(), v.address()
	}
	switch {
	case v.taggedSince > 0 && v.days.From < v.since && v.span != "all":
		h.Filtered = l.LongDay(v.taggedSince)
	case v.since == v.countedSince && v.days.From <= v.since && (v.span != "all" || s.In.Days() == 1) && v.since > 0:
		h.Since = v.beginning(s.In == visit.LastDays(1, v.since))
	}
	switch back := v.daysBefore(); {
	case back == 0 || s.In == none || s.In.From < c.firstComplete && h.Since != "":
	case s.changes():
		before, key := s.Over.Earlier(back), "compared.with"
		if s.Over != s.In && s.Over.Days() == 1 {
			key = "compared.first-day"
		} else if s.Over != s.In {
			key = "compared.whole-days"
		}
		compared := []any{"days", s.Over.Days(), "range", rangeText(l, before)}
		if between := (visit.Range{From: before.To, To: s.In.From}).Days() - 2; between > 0 && v.days.Days() > fewDays && v.compare != "year" {
			key, compared = key+"-between", append(compared, "between", l.Say("counts.days", "count", between))
		}
		h.Compared = l.Say(key, compared...)
	case s.Over != none:
		h.Compared = l.Say("compared.not", "range", rangeText(l, s.Over.Earlier(back)), "day", l.LongDay(c.firstComplete))
	case !v.byHour():
		h.Compared = l.Say("compared.later")
	}
	return h
}

// When returns the line below the title. It contains the range, the first day with numbers, and the number of visitors on the
// site now.
func (h heading) When() template.HTML {
	key, since := "parts.when", cmp.Or(h.Filtered, h.Since)
	if h.Filtered != "" {
		key += "-filtered"
	} else if since != "" {
		key += "-since"
	}
	if h.Here != "" {
		key += "-here"
	}
	return h.l.HTML(key, "days", h.Range, "since", since, "visitors", h.Here)
}

// beginning returns the day and time when counting started, in words. If alone is true, it returns only the time, because the
// page shows only this day. If the time is unknown, it returns only the day.
func (v view) beginning(alone bool) string {
	l := v.app.words()
	day, at := l.LongDay(v.countedSince), fmt.Sprintf("%02d:%02d", v.minute/60, v.minute%60)
	switch {
	case v.minute < 0:
		return day
	case alone:
		return at
	}
	return l.Say("days.moment", "day", day, "time", at)
}
