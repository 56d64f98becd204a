package report

import (
	"context"
	"fmt"

	"footfall/report/draw"
	"footfall/visit"
)

// Event is what some visitors of a site did: how many, each once, and of how many.
type Event = PanelEventsRow

// Events reads the first N events that visitors of a site did on days on which they were there.
func (r *Reader) Events(ctx context.Context, l Look) (Panel[Event], error) {
	return panelOf(ctx, r, "events", PanelEvents, (*Queries).PanelEvents, l)
}

func readEvents(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	events, err := from.Events(ctx, l)
	return &Rows{Look: l, Name: "events", List: events.Rows}, err
}

// OnePage is how many visitors of a site saw one page alone, each on each of their days.
type OnePage = PanelOnePageRow

// OnePage reads how many visitors of a site saw one page alone, in one row.
func (r *Reader) OnePage(ctx context.Context, l Look) (Panel[OnePage], error) {
	return panelOf(ctx, r, "visitors of one page", PanelOnePage, (*Queries).PanelOnePage, l)
}

// Share is a part of a whole in percent, as people read it: 12.3 %.
func Share(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func (a *Rows) eventsText(s draw.Style, list []Event) string {
	if len(list) == 0 {
		return say("%s: no visitor of %s did anything that is counted %s\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.In)
	}
	return say("%s: events of visitors of %s, %s\n\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.In) + draw.Table{
		Columns: []draw.Column{{Name: "EVENT", Gives: true}, {Name: "VISITORS", Bar: true}, {Name: "SHARE"}},
		Rows:    convert(list, func(e Event) []any { return []any{e.Event, e.Visitors, Share(e.Visitors, e.OfVisitors)} }),
	}.Text(s)
}
