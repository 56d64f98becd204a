package report

import (
	"context"
	"time"

	"footfall/db"
	"footfall/report/draw"
	"footfall/visit"
)

// period is how many days are shown as one.
type period string

const (
	daily   period = "day"
	weekly  period = "week" // which begins on Monday
	monthly period = "month"
)

// A range of more days is shown in longer periods.
const (
	mostSingleDays = 100
	mostWeekDays   = 100 * 7
)

func periodOf(days int) period {
	switch {
	case days <= mostSingleDays:
		return daily
	case days <= mostWeekDays:
		return weekly
	}
	return monthly
}

// first returns the day with which the period of a day begins.
func (p period) first(day int32) int32 {
	switch p {
	case weekly:
		date := visit.DateOf(day)
		return visit.DayOf(date.AddDate(0, 0, -(int(date.Weekday())+6)%7), time.UTC)
	case monthly:
		return day - day%100 + 1
	}
	return day
}

// name returns what a period is called that begins with a day.
func (p period) name(first int32) string {
	if p == monthly {
		return draw.Day(first)[:len("2019-06")]
	}
	return draw.Day(first)
}

// group is what was counted in a week or a month, or in the part of it that is asked for.
type group struct {
	visit.Range
	PV, NewVisitors, Hot int64 // sums
	Uniques              int64 // visitors, each counted once
}

// groups returns the groups of days that follow each other, without their uniques.
func (p period) groups(days []Day) (groups []group) {
	for i, day := range days {
		if i == 0 || p.first(day.Day) != p.first(groups[len(groups)-1].From) {
			groups = append(groups, group{Range: visit.Range{From: day.Day}})
		}
		g := &groups[len(groups)-1]
		g.To = day.Day
		g.PV, g.NewVisitors, g.Hot = g.PV+day.Pv, g.NewVisitors+day.NewVisitors, g.Hot+day.Hot
	}
	return groups
}

// uniquesOf fills in the uniques of groups. They are read and not added up: who came on two days of
// a week is one visitor of the week.
func (r *Reader) uniquesOf(ctx context.Context, app, target string, groups []group) error {
	p := db.UniquesOfRangesParams{App: app, Target: target}
	for _, g := range groups {
		p.FromDays, p.ToDays = append(p.FromDays, g.From), append(p.ToDays, g.To)
	}
	rows, err := ask(ctx, r, "uniques of weeks or months", (*db.Queries).UniquesOfRanges, p)
	for i, uniques := range rows {
		groups[i].Uniques = uniques
	}
	return err
}
