package web

import (
	"context"
	"fmt"
	"strconv"

	"footfall/report"
	"footfall/web/words"
)

const hoursOfDay = 24

// byHour reports whether the chart has a bar for each hour of a day. Only sites have such a chart.
func (v view) byHour() bool { _, by, _ := v.charted(); return by == hourly }

// hours reads the bars of a chart of one day, one for each hour. On the current day, only hours that have ended are compared with
// the earlier day.
func (d *Dashboard) hours(ctx context.Context, v view, page *targetPage) error {
	c := &page.Chart
	_, look := v.panelReport("hours")
	look.N = hoursOfDay
	read, err := d.reader.Tags(ctx, look)
	in, _, _ := v.charted()
	over, known, unknown := hoursOfDay, int64(0), int64(0)
	if in.To == v.app.Today {
		over = v.app.Hour
	}
	var day [hoursOfDay]report.TagValue
	for _, value := range read.Rows {
		if hour, err := strconv.Atoi(value.Value); err == nil && hour < hoursOfDay {
			day[hour], known = value, known+value.Pv
		} else {
			unknown += value.Pv
		}
		earlier := in.Earlier(v.daysBefore()).From
		if earlier < in.From && value.Since > 0 && value.Since <= earlier &&
			v.counted().firstComplete <= earlier && in.From >= v.counted().firstComplete {
			c.Before = v.earlier()
		}
	}
	if known == 0 && unknown > 0 && v.period == "" {
		return err
	}
	for hour, value := range day {
		row := barRow{Label: formatHours(hour), Before: "–", Period: report.Period{
			FirstDay: int32(hour), Visitors: value.Pv, NewVisitors: value.Newcomers, //nolint:gosec // an hour of the day
			Compared: c.Before != "" && hour < over, VisitorsBefore: value.PvBefore,
		}}
		if row.Compared {
			row.Before = v.number(value.PvBefore)
		}
		if row.Visitors > 0 {
			row.Link = v.toggleCondition(conditionOf(hourly, value.Value)).link()
		}
		c.Bars = append(c.Bars, row)
	}
	if len(v.where) == 0 { // the report by day is read only for the day's notes
		look := v.look()
		look.Period, look.Before, look.Compared = periods[0], 0, none
		day, err := d.reader.Chart(ctx, look)
		for _, p := range day.Rows {
			c.Notes = notesOf(p)
		}
		if err != nil {
			return err
		}
	}
	c.Title, c.Source = v.say("chart.visitors-by-hour"), v.source("hours", read.SQL)
	c.Summary = page.hoursSummary(v.app.words(), over, unknown)
	return err
}

// earlier returns the name of the earlier days with which bars are compared, such as "7 days earlier".
func (v view) earlier() string { return v.say("chart.earlier", "count", v.daysBefore()) }

func formatHours(hour int) string { return fmt.Sprintf("%02d:00 – %02d:00", hour, hour+1) }

// hoursSummary describes in words the visitors of the hours that have ended, and the busiest hour. On the current day, it also
// sets the change in the first tile: the visitors so far, compared with the same hours of the earlier day.
func (page *targetPage) hoursSummary(l *words.Language, over int, unknown int64) (text string) {
	c := &page.Chart
	most, now, then := 0, int64(0), int64(0)
	for hour, b := range c.Bars {
		if b.Visitors > c.Bars[most].Visitors {
			most = hour
		}
		if hour < over {
			now, then = now+b.Visitors, then+b.VisitorsBefore
		}
	}
	up, key := fmt.Sprintf("%02d:00", over), ""
	switch {
	case c.Bars[most].Visitors == 0 && unknown > 0:
		return l.Say("hours.unknown")
	case c.Bars[most].Visitors == 0 && over < hoursOfDay:
		return l.Say("hours.nobody-so-far")
	case c.Bars[most].Visitors == 0:
		return l.Say("chart.nobody")
	case over == 0, over < hoursOfDay && now == 0 && then == 0:
	case over < hoursOfDay:
		key = "hours.so-far"
	case c.Before != "":
		key = "hours.in-all"
	}
	if c.Before != "" && key != "" {
		key += "-before"
		if first := &page.Tiles[0]; over < hoursOfDay && then > 0 {
			first.Change, first.Before = changeOf(l, now, then, true), l.Say("hours.by", "hour", up)
			first.Full = l.Say("numbers.from-to", "was", number(l, then), "is", number(l, now))
		}
	}
	if key != "" {
		text = l.Say(key, "hour", up, "visitors", visitorsIn(l, now), "earlier", c.Before, "before", number(l, then)) + l.Say("sentences.gap")
	}
	text += l.Say("hours.most", "hours", formatHours(most), "visitors", visitorsIn(l, c.Bars[most].Visitors))
	if unknown > 0 {
		text += l.Say("sentences.gap") + l.Say("hours.unknown-of", "count", unknown)
	}
	return text
}
