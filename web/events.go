package web

import (
	"context"
	"errors"
	"html/template"
	"slices"
	"strings"

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
	if v.path != "" || v.site == visit.EventSite || v.onlySums() || v.app.ofOneSite() {
		return nil
	}
	look := v.look()
	look.N = firstEvents + 1
	read, err := d.reader.Events(ctx, look)
	made := didPanel{Anywhere: v.app.Several, Cut: len(read.Rows) > firstEvents, From: v.source("events", read.SQL)}
	if made.Reason, err = v.reasonOf(err); err != nil || made.Reason == "" && len(read.Rows) == 0 {
		return err
	}
	for _, e := range read.Rows[:min(firstEvents, len(read.Rows))] {
		condition := "event:" + writtenValue(e.Event)
		row := didRow{Name: e.Event, Chosen: slices.Contains(v.where, condition), Bar: bar("rank", e.Visitors, read.Rows[0].Visitors),
			Visitors: e.Visitors, Share: v.rate(e.Visitors, e.OfVisitors)}
		if v.app.Shared == nil {
			row.Link = v.toggled(condition).link()
		}
		made.Rows = append(made.Rows, row)
		page.Range.Hint = append(page.Range.Hint, condition)
	}
	page.Events = &made
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
	case v.path != "" || v.site == visit.EventSite || v.onlySums() || v.find != "" || v.value != "":
		return nil
	case !v.onePage:
		page.OnePage = &onePage{Ask: v.with(func(o *view) { o.onePage = true }).link() + "#pages"}
		return nil
	}
	read, err := d.reader.OnePage(ctx, v.look())
	made := onePage{From: v.source("one-page", read.SQL)}
	if made.Reason, err = v.reasonOf(err); err == nil && made.Reason == "" {
		made.OnePage = read.Rows[0]
		made.Share = v.rate(made.OnePage.OnePage, made.Visits)
	}
	page.OnePage = &made
	return err
}

const firstEvents = 8

// reasonOf is what an error says of numbers that cannot be known; others stay errors.
func (v view) reasonOf(err error) (string, error) {
	if fault, is := errors.AsType[*visit.Error](err); is && fault.Kind == visit.Invalid && fault.Field == "where" {
		return v.app.fault(strings.TrimPrefix(fault.Message, "where: ")), nil
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
