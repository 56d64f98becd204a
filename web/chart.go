package web

import (
	"context"
	"html/template"
	"slices"
	"strings"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

type chart struct {
	Summary string
	Title   string
	Drawing template.HTML
	Views   bool // the bars are page views, not visitors
	ByHour  bool // each bar is an hour of one day; page views by hour are not available
	NoHours bool // the range is one day with imported numbers, which have no hours
	Shows   []option
	By      []option
	Before  string // name of the earlier days with which bars are compared; "" if no bar is compared
	Legend  []option
	Bars    []barRow
	Notes   []note
	Source  source

	Told      []string // one sentence for each source of imported days: it names the source and its last day
	ToldViews string   // link to the chart of page views if imported days lack visitor numbers, or else ""
}

type barRow struct {
	Label string
	Link  string // link to the numbers of the bar's days, or of the visitors in its hour; or ""
	report.Period
	Before string // number of visitors on the earlier days with which the bar is compared
	Noted  string
}

// chartLook returns the parameters of the report with the chart's bars. The report compares only complete days with earlier days,
// and only if the earlier days are complete, too.
func (v view) chartLook() report.Look {
	look := v.look()
	in, by, _ := v.charted()
	look.Period = by
	look.In, look.Before, look.Compared = in, 0, v.counted().clip(in, v.daysBefore()).Compared
	if look.Compared != none && v.site != "" {
		look.Before = v.daysBefore()
	} else {
		look.Compared = none
	}
	return look
}

func (d *Dashboard) chart(ctx context.Context, v view, page *targetPage) (err error) {
	_, by, may := v.charted()
	c := &page.Chart
	for _, period := range may {
		c.By = append(c.By, option{v.say("chart.by-" + period), v.copyWith(func(o *view) { o.period = period }).link(), period == by, ""})
	}
	if c.ByHour = by == hourly; c.ByHour {
		err = d.hours(ctx, v, page)
	} else {
		err = d.days(ctx, v, c)
	}
	if err != nil {
		return err
	}
	if c.ByHour && v.period == "" && c.Bars == nil { // show the chart by day, because the hours of these visits are not recorded
		*c = chart{}
		return d.chart(ctx, v.copyWith(func(o *view) { o.period = periods[0] }), page)
	}
	l := v.app.words()
	plot := draw.Plot{Number: l.Number}
	for _, b := range c.Bars {
		notes := notesOf(b.Period) // bars by hour have no notes
		c.Notes = append(c.Notes, notes...)
		full := l.Say("chart.bar", "days", b.Label, "visitors", visitorsIn(l, b.Visitors), "new", v.number(b.NewVisitors))
		none := b.Pv == report.Unknown && b.Hot == report.Unknown
		if none {
			full = l.Say("history.bar-none", "days", b.Label)
		} else if !c.ByHour && b.Hot >= 0 && !v.ofEvents() {
			full += l.Say("chart.bar-views", "views", l.Say("counts.page-views", "count", b.Hot))
		}
		if b.Compared {
			full += l.Say("chart.bar-before", "when", c.Before, "visitors", b.Before)
		}
		for _, n := range notes {
			full += v.say("sentences.semicolon") + n.Text
		}
		bar := draw.PlotBar{
			Name: barName(l, b.Period, by), Label: full, Link: b.Link, Visitors: max(b.Visitors, 0), New: max(b.NewVisitors, 0),
			Compared: b.Compared, Before: b.VisitorsBefore, OutOfRange: !c.ByHour && b.FirstDay < v.stretch().In.From, Noted: len(notes) > 0,
			None: none,
		}
		if c.Views {
			bar.Visitors, bar.New, bar.Compared, bar.Before = max(b.Hot, 0), max(b.Hot, 0), false, 0
		}
		plot.Bars = append(plot.Bars, bar)
	}
	c.addImported(v, plot.Bars)
	c.Legend = c.legend(v, plot.Bars, by)
	plot.Summary = strings.TrimSpace(c.Summary + v.say("sentences.gap") + strings.Join(c.Told, v.say("sentences.gap")))
	c.Drawing = template.HTML(plot.HTML()) //nolint:gosec // draw escapes its input
	return nil
}

// days reads the bars of a chart by day, week or month.
func (d *Dashboard) days(ctx context.Context, v view, c *chart) error {
	rows, err := d.reader.Chart(ctx, v.chartLook())
	in, by, _ := v.charted()
	l := v.app.words()
	asked := slices.DeleteFunc(slices.Clone(rows.Rows), func(p report.Period) bool { return p.LastDay < v.stretch().In.From })
	c.Summary, c.Title, c.Source = chartSummary(l, asked, by, v.counted()), "chart.visitors-by-"+by, v.source("chart", rows.SQL)
	if c.Views = v.chart == charts[1] && !v.ofEvents(); c.Views {
		c.Summary, c.Title = viewsSummary(l, asked, by), "chart.views-by-"+by
	}
	for i, label := range []string{"chart.visitors", "chart.views"} {
		if len(v.where) > 0 || v.ofEvents() {
			break
		}
		c.Shows = append(c.Shows, option{v.say(label), v.copyWith(func(o *view) { o.chart = charts[i] }).link(), v.chart == charts[i], ""})
	}
	if c.Title = v.say(c.Title); in != v.stretch().In {
		c.Title = v.say("chart.and-before", "title", c.Title)
	}
	for _, b := range rows.Rows {
		if b.Compared {
			c.Before = v.earlier()
		}
		row := barRow{Label: periodText(l, b, by), Period: b, Before: v.counted().formatEarlier(l, b),
			Noted: strings.Join(b.Notes, v.say("sentences.semicolon"))}
		if days := (visit.Range{From: b.FirstDay, To: b.LastDay}); days != v.days && !v.uncounted(days) {
			row.Link = v.copyWith(func(o *view) { o.span, o.days, o.period = "", days, "" }).link()
		}
		c.Bars = append(c.Bars, row)
	}
	return err
}
