package web

import (
	"context"
	"fmt"
	"strconv"

	"footfall/report"
)

const hoursOfDay = 24

// byHour reports whether the chart is of the hours of a day, which only sites have.
func (v view) byHour() bool { _, by, _ := v.charted(); return by == hourly }

// hours reads the bars of the chart of a day by hour. Of today those hours are compared that are over.
func (d *Dashboard) hours(ctx context.Context, v view, c *chart) error {
	_, look := v.asks("hours")
	look.N = hoursOfDay
	read, err := d.reader.Tags(ctx, look)
	in, _, _ := v.charted()
	over, unknown := hoursOfDay, int64(0)
	if in.To == v.app.Today {
		over = v.app.Hour
	}
	var day [hoursOfDay]report.TagValue
	for _, value := range read.Rows {
		if hour, err := strconv.Atoi(value.Value); err == nil && hour < hoursOfDay {
			day[hour] = value
		} else {
			unknown += value.Pv
		}
		if back := v.daysBefore(); back > 0 && value.Since > 0 && value.Since <= in.Earlier(back).From {
			c.Before = count(int64(back), "day") + " earlier"
		}
	}
	for hour, value := range day {
		row := barRow{Label: hours(hour), Before: "–", Period: report.Period{
			FirstDay: int32(hour), Visitors: value.Pv, NewVisitors: value.Newcomers, //nolint:gosec // of a day
			Compared: c.Before != "" && hour < over, VisitorsBefore: value.PvBefore,
		}}
		if row.Compared {
			row.Before = number(value.PvBefore)
		}
		c.Bars = append(c.Bars, row)
	}
	c.Title, c.Summary = "Visitors by the hour of their first visit that day", hoursSummary(c, over, unknown)
	c.Source = v.source("hours", read.SQL)
	return err
}

func hours(hour int) string { return fmt.Sprintf("%02d:00 – %02d:00", hour, hour+1) }

// hoursSummary says in which hour most came, and how many in those that are over.
func hoursSummary(c *chart, over int, unknown int64) string {
	most, now, then := 0, int64(0), int64(0)
	for hour, b := range c.Bars {
		if b.Visitors > c.Bars[most].Visitors {
			most = hour
		}
		if hour < over {
			now, then = now+b.Visitors, then+b.VisitorsBefore
		}
	}
	if c.Bars[most].Visitors == 0 {
		return "Of nobody the hour is known."
	}
	text := fmt.Sprintf("Most came first in %s: %s.", hours(most), count(c.Bars[most].Visitors, "visitor"))
	switch {
	case c.Before != "" && over == hoursOfDay:
		text += fmt.Sprintf(" In all %s; %s %s.", count(now, "visitor"), c.Before, number(then))
	case c.Before != "" && over > 0:
		text += fmt.Sprintf(" So far, up to %02d:00, %s; %s %s.", over, count(now, "visitor"), c.Before, number(then))
	}
	if unknown > 0 {
		text += " Of " + number(unknown) + " more the hour is not known."
	}
	return text
}
