package web

import (
	"fmt"

	"footfall/visit"
)

type rangeBar struct {
	Spans, More    []option // ranges that are offered at once, and behind a word
	Chosen         bool     // the range is one of More, or was typed
	Compares       []option // none of all days
	Earlier, Later string   // links; "": there is none
	From, To, Max  string   // as a form takes them
	Action         string   // of the form
	Keeps          [][2]string
	Filter         *search // nil: nothing is asked of some visitors here
	Hint           []string
}

func (v view) rangeBar() rangeBar {
	bar := rangeBar{Action: usualView(v.app, v.site).link(),
		Keeps: v.keeps("range", "from", "to", "period"), To: visit.DayText(v.in.To), Max: visit.DayText(v.app.Today), Chosen: v.span == ""}
	if v.in.From != visit.AllDays.From {
		bar.From = visit.DayText(v.in.From)
	}
	for i, span := range spans {
		to := v.with(func(o *view) { o.span, o.period = span.name, "" })
		if v.span == "all" {
			to.compare = compares[0]
		}
		offers := &bar.Spans
		if i >= spansAtOnce {
			offers = &bar.More
		}
		*offers = append(*offers, option{span.label, to.link(), span.name == v.span, keys[span.name]})
		bar.Chosen = bar.Chosen || i >= spansAtOnce && span.name == v.span
	}
	if earlier, found := v.beside(-1); found {
		bar.Earlier = earlier.link()
	}
	if later, found := v.beside(1); found {
		bar.Later = later.link()
	}
	if v.span == "all" || len(v.where) > 0 { // nothing is compared
		return bar
	}
	other := "none" // than what is shown
	if v.compare == other {
		other = compares[0]
	}
	weekdays := "the same weekdays before"
	if v.in.Days()%7 == 0 {
		weekdays = "the days before"
	}
	for i, label := range []string{weekdays, "the days right before", "the year before", "nothing"} {
		chosen := v.compare == compares[i]
		if compares[i] == "right" && v.in.Days()%7 == 0 && !chosen {
			continue
		}
		key := ""
		if compares[i] == other {
			key = "X"
		}
		bar.Compares = append(bar.Compares, option{label, v.with(func(o *view) { o.compare = compares[i] }).link(), chosen, key})
	}
	return bar
}

// keys lead to ranges, where scripts run.
var keys = map[string]string{"today": "D", "7d": "W", "month": "M", "30d": "T"}

func (v view) frame() frame {
	usual := v.with(func(o *view) { o.sort, o.who, o.after, o.all, o.skip, o.value = sorts[0], false, "", "", 0, "" })
	f := frame{Root: v.app.Root, Title: v.app.Name, Reader: v.app.Reader, Live: v.in.To >= v.app.Today, Home: v.app.Root + "/"}
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
	s, c := v.stretch(), v.counted()
	h := heading{Name: v.app.Name, Range: rangeText(v.look().In), Zone: v.app.Zone.String(), Today: v.in.To >= v.app.Today}
	if v.site != "" {
		h.Name, h.Stored, h.Open = visit.Shown(v.target()), v.target(), v.address()
	}
	switch {
	case v.known > 0 && v.in.From < v.since && v.span != "all":
		h.Since = ", of which filters are known since " + longDay(v.known)
	case v.since == v.began && v.in.From <= v.since && (v.span != "all" || s.In.Days() == 1) && v.since > 0:
		h.Since = ", counted since " + v.beginning(s.In == visit.LastDays(1, v.since))
	}
	switch back := v.daysBefore(); {
	case back == 0 || s.In == none || s.In.From < c.whole && h.Since != "":
	case s.changes():
		before := s.Over.Earlier(back)
		h.Compared = "Compared with " + rangeText(before)
		if s.Over != s.In && s.Over.Days() == 1 {
			h.Compared = "The first day is compared with " + rangeText(before)
		} else if s.Over != s.In {
			h.Compared = fmt.Sprintf("The %d whole days are compared with %s", s.Over.Days(), rangeText(before))
		}
		if between := (visit.Range{From: before.To, To: s.In.From}).Days() - 2; between > 0 && v.in.Days() > fewDays && v.compare != "year" {
			h.Compared += "; " + count(int64(between), "day") + " between them left out, so that a Sunday stands beside a Sunday"
		}
	case s.Over != none:
		h.Compared = "Not compared with " + rangeText(s.Over.Earlier(back)) + ": the first whole day that was counted is " + longDay(c.whole)
	case !v.byHour():
		h.Compared = "Compared when it is over"
	}
	return h
}

// beginning is when counting began: of its day alone, the hour.
func (v view) beginning(alone bool) string {
	day, hour := longDay(v.began), fmt.Sprintf("%02d:00", v.hour)
	switch {
	case v.hour < 0:
		return day
	case alone:
		return hour
	}
	return day + ", " + hour
}
