package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"footfall/report/draw"
	"footfall/visit"
)

// Event is an event of an app, such as a sign-up. Visitors is the number of a site's visitors who triggered the event, and
// OfVisitors the number of all visitors of the site. Each visitor counts once.
type Event struct {
	Event      string `json:"event"`
	Visitors   int64  `json:"visitors"`
	OfVisitors int64  `json:"of_visitors"`
}

// Events reads the l.N events that the most visitors of a site triggered. An event counts only if the visitor visited the site
// on the same day.
func (r *Reader) Events(ctx context.Context, l Look) (Panel[Event], error) {
	rows, err := r.filtered(ctx, l, "events")
	if l.Filtered != nil && len(rows) == 0 { // there are no events, or too many to be read together with the other parts
		l.Filtered = nil
		rows, err = r.filtered(ctx, l, "events")
	}
	return Panel[Event]{
		convert(rows, func(f FilterPanelsRow) Event { return Event{f.Value, f.Visitors, f.Pv} }),
		l.call("events_where", l.App, l.Target, l.In.From, l.In.To, l.conditions(), DeepestTop),
	}, err
}

// OnePage is the number of a site's visitors who saw only one page on a day. A visitor counts once for each day.
type OnePage = PanelOnePageRow

// OnePage reads the number of a site's visitors who saw only one page, in one row.
func (r *Reader) OnePage(ctx context.Context, l Look) (Panel[OnePage], error) {
	return panelOf(ctx, r, "visitors of one page", PanelOnePage, (*Queries).PanelOnePage, l)
}

// Here is the number of visitors on a site now.
type Here = PanelHereRow

// Here reads the number of visitors on a site within the last five minutes, in one row.
func (r *Reader) Here(ctx context.Context, l Look) (Panel[Here], error) {
	return panelOf(ctx, r, "current visitors", PanelHere, (*Queries).PanelHere, l)
}

// Share formats a part of a whole in percent: 12.3 %.
func Share(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func (a *Rows) eventsText(s draw.Style, list []Event) string {
	if len(list) == 0 {
		return escapedf("%s: no visitor of %s triggered an event %s\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.In)
	}
	return escapedf("%s: events of visitors of %s, %s\n\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.In) + draw.Table{
		Columns: []draw.Column{{Name: "EVENT", MayBeCut: true}, {Name: "VISITORS", Bar: true}, {Name: "SHARE"}},
		Rows:    convert(list, func(e Event) []any { return []any{e.Event, e.Visitors, Share(e.Visitors, e.OfVisitors)} }),
	}.Text(s)
}

// Goal is a goal of an app. Visitors is the number of a site's visitors who reached the goal, and OfVisitors the number of all
// visitors of the site. Each visitor counts once. If Value is not "", both numbers are only for this day, or for this value of
// a tag.
type Goal = PanelGoalsRow

// Goals reads how many visitors of a site reached each of the app's goals, or only l.Goal.
func (r *Reader) Goals(ctx context.Context, l Look) (Panel[Goal], error) {
	return panelOf(ctx, r, "goals", PanelGoals, (*Queries).PanelGoals, l)
}

// Step is a step of a funnel. Visitors is the number of a site's visitors who completed this step and all previous steps by
// the end of a range of days. SameDay is the number of visitors who completed them on a single day.
type Step = PanelFunnelRow

// Funnel reads the steps of a funnel for a site's visitors.
func (r *Reader) Funnel(ctx context.Context, l Look) (Panel[Step], error) {
	return panelOf(ctx, r, "a funnel", PanelFunnel, (*Queries).PanelFunnel, l)
}

func (a *Rows) goalsText(s draw.Style, list []Goal) string {
	if len(list) == 0 {
		return escapedf("%s has no goals: set some, for example with footfall app set %[1]s --goal event:signup --goal page:/thanks\n",
			a.Look.App)
	}
	goals := draw.Table{Columns: []draw.Column{{Name: "GOAL", MayBeCut: true}, {Name: "VISITORS", Bar: true}, {Name: "OF"}, {Name: "SHARE"}}}
	if a.Look.Split != "" {
		goals.Columns = slices.Insert(goals.Columns, 1, draw.Column{Name: strings.ToUpper(a.Look.Split)})
	}
	goals.Rows = convert(list, func(g Goal) []any {
		row := []any{g.Goal, g.Visitors, g.OfVisitors, Share(g.Visitors, g.OfVisitors)}
		if a.Look.Split != "" {
			row = slices.Insert(row, 1, any(g.Value))
		}
		return row
	})
	return escapedf("%s: goals of visitors of %s, %s\n\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.In) + goals.Text(s)
}

func (a *Rows) funnelText(s draw.Style, list []Step) string {
	return escapedf("%s: funnel of visitors of %s, %s\n\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.In) + draw.Table{
		Columns: []draw.Column{{Name: "STEP", MayBeCut: true}, {Name: "VISITORS", Bar: true}, {Name: "SHARE"}, {Name: "ON ONE DAY"}},
		Rows: convert(list, func(f Step) []any {
			return []any{f.Step, f.Visitors, Share(f.Visitors, list[0].Visitors), f.SameDay}
		}),
	}.Text(s) + "\nEach step is on the day of the previous one or later. The order within a day is not recorded.\n"
}
