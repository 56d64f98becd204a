package web

import (
	"context"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

const hoursOfDay = 24

// byHour reports whether the chart is of the hours of a day, which only sites have.
func (v view) byHour() bool { _, by, _ := v.charted(); return by == hourly }

// hourRows reads how many visitors of a day came first in each hour, and in those of the other day.
func (d *Dashboard) hourRows(ctx context.Context, v view) (report.Panel[report.TagValue], error) {
	look := v.look()
	look.Before, look.Compared = v.daysBefore(), look.In
	return d.reader.Tags(ctx, look, hourly, hoursOfDay)
}

// dayOfHours is a day by the hour of its visitors' first visits.
type dayOfHours struct {
	of      [hoursOfDay]report.TagValue
	over    int    // so many hours, which can be compared
	unknown int64  // visitors
	before  string // when the other day was; "": it is not compared
}

func (v view) dayOfHours(values []report.TagValue, in visit.Range) dayOfHours {
	d := dayOfHours{over: hoursOfDay}
	if in.To == v.app.Today {
		d.over = v.app.Hour
	}
	for _, value := range values {
		if hour, err := strconv.Atoi(value.Value); err == nil && hour < hoursOfDay {
			d.of[hour] = value
		} else {
			d.unknown += value.Pv
		}
		if back := v.daysBefore(); back > 0 && value.Since > 0 && value.Since <= in.Earlier(back).From {
			d.before = count(int64(back), "day") + " earlier"
		}
	}
	return d
}

// hours makes the chart of a day by hour. Of today those hours are compared that are over.
func (d *Dashboard) hours(ctx context.Context, v view, page *targetPage) error {
	read, err := d.hourRows(ctx, v)
	if err != nil {
		return err
	}
	in, _, may := v.charted()
	day := v.dayOfHours(read.Rows, in)
	c := chart{
		Title: "Visitors by the hour of their first visit that day", ByHour: true, By: v.periodOptions(may, hourly),
		Summary: day.summary(), Before: day.before, Source: v.source("hours", read.SQL),
	}
	plot := draw.Plot{Summary: c.Summary}
	for hour, value := range day.of {
		row := barRow{Label: hours(hour), Before: "–"}
		row.FirstDay, row.Visitors, row.NewVisitors, row.Compared = int32(hour), value.Pv, value.Newcomers, day.before != "" && hour < day.over //nolint:gosec // of a day
		full := fmt.Sprintf("%s: %s, %s of them new", row.Label, count(value.Pv, "visitor"), number(value.Newcomers))
		if row.Compared {
			row.Before = number(value.PvBefore)
			full += fmt.Sprintf("; %s: %s", c.Before, row.Before)
		}
		c.Bars = append(c.Bars, row)
		plot.Bars = append(plot.Bars, draw.PlotBar{
			Name: fmt.Sprintf("%02d", hour), Label: full + ".", Visitors: value.Pv, New: value.Newcomers, Compared: row.Compared, Before: value.PvBefore,
		})
	}
	var out strings.Builder
	err = draw.WritePlot(&out, plot)
	c.Drawing = template.HTML(out.String()) //nolint:gosec // draw escapes what it is given
	page.Chart = c
	return err
}

func hours(hour int) string { return fmt.Sprintf("%02d:00 – %02d:00", hour, hour+1) }

// summary says in which hour most came, and how many in those that are compared.
func (d *dayOfHours) summary() string {
	most, now, then := 0, int64(0), int64(0)
	for hour, value := range d.of {
		if value.Pv > d.of[most].Pv {
			most = hour
		}
		if hour < d.over {
			now, then = now+value.Pv, then+value.PvBefore
		}
	}
	if d.of[most].Pv == 0 {
		return "Of nobody the hour is known."
	}
	text := fmt.Sprintf("Most came first in %s: %s.", hours(most), count(d.of[most].Pv, "visitor"))
	switch {
	case d.before != "" && d.over == hoursOfDay:
		text += fmt.Sprintf(" In all %s; %s %s.", count(now, "visitor"), d.before, number(then))
	case d.before != "" && d.over > 0:
		text += fmt.Sprintf(" So far, up to %02d:00, %s; %s %s.", d.over, count(now, "visitor"), d.before, number(then))
	}
	if d.unknown > 0 {
		text += " Of " + number(d.unknown) + " more the hour is not known."
	}
	return text
}
