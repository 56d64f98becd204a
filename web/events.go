package web

import (
	"context"
	"errors"
	"slices"

	"footfall/report"
	"footfall/visit"
)

// actionPanels contains the panels about visitors' actions on the site.
type actionPanels struct {
	Events *list  // nil if there are no events
	Goals  *list  // nil if the app has no goals
	Funnel string // link to the funnel, or ""
}

// newActionList returns an empty list of events or goals, with columns for the number of visitors and their share.
func (v view) newActionList(id, title string) *list {
	return &list{ID: id, Title: v.say(title), Kind: "bars tags",
		Columns: v.columnsOf(v.say("did.name"), "visitors", "numbers.visitors", "share", "did.of")}
}

// addShare adds the row r with a number of visitors and its share of whole.
func (l *list) addShare(v view, r row, visitors, whole int64) {
	r.Bar = bar("rank", visitors, whole)
	l.add(v, r, map[string]any{"visitors": visitors, "share": v.rate(visitors, whole)})
}

// events reads the most frequent events of a site's visitors.
func (d *Dashboard) events(ctx context.Context, v view, page *targetPage) (err error) {
	if v.path != "" || v.ofEvents() || v.onlySums() || v.app.ofOneSite() {
		return nil
	}
	look := v.look()
	look.N = firstEvents + 1 + len(v.app.Goals)
	var read report.Panel[report.Event]
	reason, err := d.readWithTimeout(ctx, v, func(ctx context.Context) (err error) {
		read, err = d.reader.Events(ctx, look)
		return err
	})
	if err != nil {
		return err
	}
	made, cut := v.newActionList("events", "did.events"), false
	made.From = v.source("events", read.SQL)
	for _, e := range read.Rows {
		condition := "event:" + writtenValue(e.Event)
		page.Range.Hint = append(page.Range.Hint, condition)
		if v.site != "" && slices.Contains(v.app.Goals, condition) { // the panel of goals already shows this event
			cut = true
			continue
		}
		if cut = cut || len(made.Rows) == firstEvents; len(made.Rows) == firstEvents {
			break
		}
		r := row{Name: e.Event}.choose(slices.Contains(v.where, condition))
		if v.app.Shared == nil && v.site != "" {
			r.Link = v.toggleCondition(condition).link()
		}
		made.addShare(v, r, e.Visitors, e.OfVisitors)
	}
	switch help := "did.here"; {
	case reason != "":
		made.Reason, page.Events = reason, made
	case len(made.Rows) > 0:
		if page.Events = made; v.app.Several && v.site != "" {
			help = "did.anywhere"
		}
		made.Help = v.say(help) + v.say("sentences.gap") + v.say("did.share")
		if cut {
			made.Help += v.say("sentences.gap") + v.say("did.cut")
		}
	}
	return nil
}

// onePage contains the number of visitors who saw only one page. The query reads the rows of all pages, so it runs only on
// request.
type onePage struct {
	report.OnePage
	Ask    string // link that requests the number; "" if it is already requested
	Share  string
	Reason string // why the number is unavailable; "" if it is available
	From   source
}

func (d *Dashboard) onePage(ctx context.Context, v view, page *targetPage) error {
	switch {
	case page.Pages == nil || v.ofEvents() || v.find != "" || v.value != "":
		return nil
	case !v.onePage:
		page.Pages.OnePage = &onePage{Ask: v.copyWith(func(o *view) { o.onePage = true }).link() + "#pages"}
		return nil
	}
	made := onePage{}
	reason, err := d.readWithTimeout(ctx, v, func(ctx context.Context) error {
		read, err := d.reader.OnePage(ctx, v.look())
		if made.From = v.source("one-page", read.SQL); err == nil {
			made.OnePage = read.Rows[0]
			made.Share = v.rate(made.OnePage.OnePage, made.Visits)
		}
		return err
	})
	made.Reason, page.Pages.OnePage = reason, &made
	return err
}

const firstEvents = 10

// readWithTimeout calls read, which reads an optional part of a page. If read takes longer than d.panelTimeout, or if the part
// cannot be read with the view's filter, readWithTimeout returns the reason and no error, so that the rest of the page is still
// shown.
func (d *Dashboard) readWithTimeout(ctx context.Context, v view, read func(ctx context.Context) error) (reason string, err error) {
	within, cancel := context.WithTimeout(ctx, d.panelTimeout)
	defer cancel()
	if err = read(within); err != nil && within.Err() != nil && ctx.Err() == nil {
		return v.say("did.slow"), nil
	}
	return v.reasonOf(err)
}

// reasonOf returns the text of an error about the filter, so that the page shows it instead of numbers. It returns other errors
// unchanged.
func (v view) reasonOf(err error) (string, error) {
	if fault, is := errors.AsType[*visit.Error](err); is && fault.Kind == visit.Invalid && fault.Field == "where" {
		return v.app.errorText(visit.InField("", fault)), nil
	}
	return "", err
}

// rate returns part as a percentage of whole, with one decimal.
func (v view) rate(part, whole int64) string {
	if whole == 0 {
		return v.number(report.Unknown)
	}
	return v.app.words().Percent(100*float64(part)/float64(whole), 1)
}
