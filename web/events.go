package web

import (
	"context"
	"errors"
	"slices"

	"footfall/report"
	"footfall/visit"
)

// done is what a page tells of what visitors did, besides coming.
type done struct {
	Events *list  // nil: there are none
	Goals  *list  // nil: the app has none
	Funnel string // link to how far they got; "": there is none
}

// did makes a list of what visitors did, which is above the share of them.
func (v view) did(id, title string) *list {
	return &list{ID: id, Title: v.say(title), Kind: "bars tags",
		Columns: v.columnsOf(v.say("did.name"), "visitors", "numbers.visitors", "share", "did.of")}
}

// addShare adds a row of so many visitors of a whole.
func (l *list) addShare(v view, r row, visitors, whole int64) {
	r.Bar = bar("rank", visitors, whole)
	l.add(v, r, map[string]any{"visitors": visitors, "share": v.rate(visitors, whole)})
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
	if err != nil {
		return err
	}
	made, cut := v.did("events", "did.events"), false
	made.From = v.source("events", read.SQL)
	for _, e := range read.Rows {
		condition := "event:" + writtenValue(e.Event)
		page.Range.Hint = append(page.Range.Hint, condition)
		if v.site != "" && slices.Contains(v.app.Goals, condition) { // which is among the goals of this page
			cut = true
			continue
		}
		if cut = cut || len(made.Rows) == firstEvents; len(made.Rows) == firstEvents {
			break
		}
		r := row{Name: e.Event}.choose(slices.Contains(v.where, condition))
		if v.app.Shared == nil && v.site != "" {
			r.Link = v.toggled(condition).link()
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
	case page.Pages == nil || v.ofEvents() || v.find != "" || v.value != "":
		return nil
	case !v.onePage:
		page.Pages.OnePage = &onePage{Ask: v.with(func(o *view) { o.onePage = true }).link() + "#pages"}
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
	made.Reason, page.Pages.OnePage = reason, &made
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
