package web

import (
	"context"
	"errors"
	"html/template"
	"slices"

	"footfall/report"
	"footfall/visit"
)

// done is what a page tells of what visitors did, besides coming.
type done struct {
	Events  *didPanel // nil: there are none
	Goals   *didPanel // nil: the app has none
	Funnel  string    // link to how far they got; "": there is none
	OnePage *onePage  // nil: it is not for here
}

// didPanel shows what visitors of a site did.
type didPanel struct {
	Rows     []didRow
	Side     string // where the panel is: left or right
	Reason   string // why it is not known; "": it is
	Anywhere bool   // the app has sites besides, where it may have been done
	Cut      bool   // there are more
	From     source
}

type didRow struct {
	Name   string
	Link   string // to those alone who did it, or if it is chosen, back; "": it leads nowhere
	Chosen bool
	Bar    template.HTML

	Visitors int64
	Share    string // of the visitors
}

// events reads the first events that visitors of a site did.
func (d *Dashboard) events(ctx context.Context, v view, page *targetPage) (err error) {
	if v.path != "" || v.ofEvents() || v.onlySums() || v.app.ofOneSite() {
		return nil
	}
	look := v.look()
	look.N = firstEvents + 1 + len(v.app.Goals)
	var read report.Panel[report.Event]
	reason, err := d.inTime(ctx, v, func(ctx context.Context) (err error) {
		read, err = d.reader.Events(ctx, look)
		return err
	})
	made := didPanel{Reason: reason, Anywhere: v.app.Several && v.site != "", From: v.source("events", read.SQL)}
	if err != nil {
		return err
	}
	for _, e := range read.Rows {
		condition := "event:" + writtenValue(e.Event)
		page.Range.Hint = append(page.Range.Hint, condition)
		if v.site != "" && slices.Contains(v.app.Goals, condition) { // which is among the goals of this page
			made.Cut = true
			continue
		}
		row := didRow{Name: e.Event, Chosen: slices.Contains(v.where, condition), Bar: bar("rank", e.Visitors, e.OfVisitors),
			Visitors: e.Visitors, Share: v.rate(e.Visitors, e.OfVisitors)}
		if v.app.Shared == nil && v.site != "" {
			row.Link = v.toggled(condition).link()
		}
		if made.Rows = append(made.Rows, row); len(made.Rows) > firstEvents {
			made.Rows, made.Cut = made.Rows[:firstEvents], true
			break
		}
	}
	if made.Reason != "" || len(made.Rows) > 0 {
		page.Events = &made
	}
	return nil
}

// onePage is how many visitors saw one page alone, which takes the rows of all pages: it is told to those who ask.
type onePage struct {
	report.OnePage
	Ask    string // the link that asks; "": it was
	Share  string
	Reason string // why it is not known; "": it is
	From   source
}

func (d *Dashboard) onePage(ctx context.Context, v view, page *targetPage) error {
	switch {
	case v.path != "" || v.ofEvents() || v.onlySums() || v.find != "" || v.value != "":
		return nil
	case !v.onePage:
		page.OnePage = &onePage{Ask: v.with(func(o *view) { o.onePage = true }).link() + "#pages"}
		return nil
	}
	made := onePage{}
	reason, err := d.inTime(ctx, v, func(ctx context.Context) error {
		read, err := d.reader.OnePage(ctx, v.look())
		if made.From = v.source("one-page", read.SQL); err == nil {
			made.OnePage = read.Rows[0]
			made.Share = v.rate(made.OnePage.OnePage, made.Visits)
		}
		return err
	})
	made.Reason, page.OnePage = reason, &made
	return err
}

const firstEvents = 10

// inTime reads what a page can do without, and says why it is not known, where it takes too long or cannot be:
// that is no fault of the page.
func (d *Dashboard) inTime(ctx context.Context, v view, read func(ctx context.Context) error) (reason string, err error) {
	within, cancel := context.WithTimeout(ctx, d.within)
	defer cancel()
	if err = read(within); err != nil && within.Err() != nil && ctx.Err() == nil {
		return v.say("did.slow"), nil
	}
	return v.reasonOf(err)
}

// reasonOf is what an error says of numbers that cannot be known; others stay errors.
func (v view) reasonOf(err error) (string, error) {
	if fault, is := errors.AsType[*visit.Error](err); is && fault.Kind == visit.Invalid && fault.Field == "where" {
		return v.app.fault(visit.InField("", fault)), nil
	}
	return "", err
}

// rate is a part of a whole in percent, with a tenth.
func (v view) rate(part, whole int64) string {
	if whole == 0 {
		return v.number(report.Unknown)
	}
	return v.app.words().Percent(100*float64(part)/float64(whole), 1)
}
