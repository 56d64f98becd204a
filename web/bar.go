package web

import (
	"fmt"

	"footfall/visit"
)

type rangeBar struct {
	Spans          []option
	Compares       []option // none of all days
	Earlier, Later string   // links; "": there is none
	From, To, Max  string   // as a form takes them
	Action         string   // of the form
	Keeps          [][2]string
}

func (v view) rangeBar() rangeBar {
	bar := rangeBar{Action: v.with(func(o *view) {
		*o = view{app: v.app, site: v.site, span: usualSpan, compare: compares[0], chart: charts[0], by: orders[0], sort: sorts[0]}
	}).link(),
		Keeps: v.keeps("range", "from", "to", "period"), To: visit.DayText(v.in.To), Max: visit.DayText(v.app.Today)}
	if v.in.From != visit.AllDays.From {
		bar.From = visit.DayText(v.in.From)
	}
	for _, span := range spans {
		to := v.with(func(o *view) { o.span, o.period = span.name, "" })
		if v.span == "all" {
			to.compare = compares[0]
		}
		bar.Spans = append(bar.Spans, option{span.label, to.link(), span.name == v.span, keys[span.name]})
	}
	if earlier, found := v.beside(-1); found {
		bar.Earlier = earlier.link()
	}
	if later, found := v.beside(1); found {
		bar.Later = later.link()
	}
	if v.span == "all" {
		return bar
	}
	other := "none" // than what is shown
	if v.compare == other {
		other = compares[0]
	}
	if len(v.where) > 0 { // nothing is compared
		return bar
	}
	for i, label := range []string{"the days before", "the year before", "nothing"} {
		key := ""
		if compares[i] == other {
			key = "X"
		}
		link := v.with(func(o *view) { o.compare = compares[i] }).link()
		bar.Compares = append(bar.Compares, option{label, link, v.compare == compares[i], key})
	}
	return bar
}

// keys lead to ranges, where scripts run.
var keys = map[string]string{"today": "D", "7d": "W", "month": "M", "30d": "T"}

func (v view) frame() frame {
	usual := v.with(func(o *view) { o.sort, o.who, o.after, o.all, o.skip, o.value = sorts[0], false, "", "", 0, "" })
	f := frame{Root: v.app.Root, Title: v.app.Name, Leave: v.app.Closed, Live: v.in.To >= v.app.Today, Home: v.app.Root + "/"}
	f.Crumbs = []crumb{{v.app.Name, "", usual.of("", "").with(func(o *view) { o.chart, o.period, o.by = charts[0], "", orders[0] }).link()}}
	if s := v.app.Shared; s != nil {
		f.Home, f.Embed = s.Base, s.Embed
		if s.Site != "" {
			f.Crumbs = nil
		}
	}
	if v.site != "" {
		f.Title = visit.Shown(v.target()) + " · " + f.Title
		f.Crumbs = append(f.Crumbs, crumb{visit.Shown(v.site), v.site, usual.of(v.site, "").link()})
	}
	if v.path != "" {
		f.Crumbs = append(f.Crumbs, crumb{visit.Shown(v.target())[len(visit.Shown(v.site)):], v.target(), usual.link()})
	}
	return f
}

func (v view) heading() heading {
	s := v.stretch()
	h := heading{Name: v.app.Name, Range: rangeText(v.look().In), Zone: v.app.Zone.String(), Today: v.in.To >= v.app.Today}
	if v.site != "" {
		h.Name, h.Stored, h.Open = visit.Shown(v.target()), v.target(), v.address()
	}
	if v.in.From < v.since && v.span != "all" {
		h.Since = ", counted since " + longDay(v.since)
	}
	if v.known > 0 && h.Since != "" {
		h.Since = ", of which filters are known since " + longDay(v.known)
	}
	switch back := v.daysBefore(); {
	case back == 0 || s.In == none:
	case s.changes() && s.Over == s.In:
		h.Before = ", compared with " + rangeText(s.Over.Earlier(back))
	case s.changes() && s.Over.Days() == 1:
		h.Before = "; its first day is compared with " + rangeText(s.Over.Earlier(back))
	case s.changes():
		h.Before = fmt.Sprintf("; its %d whole days are compared with %s", s.Over.Days(), rangeText(s.Over.Earlier(back)))
	case s.Over == none && h.Since == "":
		h.Before = "; it is compared when it is over"
	case h.Since == "":
		h.Before = "; no change is shown: the days before were counted from " + longDay(v.since) + " on"
	}
	return h
}
