package report

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"footfall/db"
	"footfall/report/draw"
	"footfall/visit"
)

// mostDays bounds what is read and written day by day: a century.
const mostDays = 36_525

// Day is what was counted for a target on a day.
type Day = db.DaysBetweenRow

// Days returns the first n days of a range with their numbers for a target. Days on which nobody
// came are left out; a target that was never counted has none.
func (r *Reader) Days(ctx context.Context, app, target string, in visit.Range, n int) ([]Day, error) {
	p := db.DaysBetweenParams{App: app, Target: target, FromDay: in.From, ToDay: in.To, N: int32(n)} //nolint:gosec // at most a century
	return ask(ctx, r, "days", (*db.Queries).DaysBetween, p)
}

// FirstDay returns the first day on which a target was counted, imports and late visits included; 0:
// it never was.
func (r *Reader) FirstDay(ctx context.Context, app, target string) (int32, error) {
	days, err := r.Days(ctx, app, target, visit.AllDays, 1)
	if len(days) == 0 {
		return 0, err
	}
	return days[0].Day, err
}

type dayByDay struct {
	App         string `json:"app"`
	Target      string `json:"target"`
	visit.Range        // of days
	Days        []Day  `json:"days"` // including those on which nobody came
	PV          int64  `json:"pv"`   // the sums over all days
	NewVisitors int64  `json:"new_visitors"`
	Hot         int64  `json:"hot"`
	Uniques            // of the range

	period period  // which text and drawings show
	groups []group // of days, where that is not one day
}

// DayByDay reads the days of a target, which is "" where an app has not counted any. A range that
// is open, as visit.AllDays is, or longer than a century, begins or ends with a day that was
// counted.
func (r *Reader) DayByDay(ctx context.Context, app, target string, in visit.Range) (Answer, error) {
	counted, err := r.Days(ctx, app, target, in, mostDays)
	if err != nil {
		return nil, err
	}
	a := dayByDay{App: app, Target: target, Range: in, Days: []Day{}}
	if len(counted) > 0 {
		if in.To == visit.AllDays.To {
			a.To = counted[len(counted)-1].Day
		}
		if in.From < visit.LastDays(mostDays, a.To).From {
			a.From = counted[0].Day
		}
	}
	if a.From != visit.AllDays.From && a.To != visit.AllDays.To {
		a.Days = fillGaps(counted, a.Range)
	}
	for _, day := range counted {
		a.PV, a.NewVisitors, a.Hot = a.PV+day.Pv, a.NewVisitors+day.NewVisitors, a.Hot+day.Hot
	}
	if a.Uniques, err = r.Uniques(ctx, app, target, a.Range); err != nil {
		return nil, err
	}
	if a.period = periodOf(len(a.Days)); a.period != daily {
		a.groups = a.period.groups(a.Days)
		err = r.uniquesOf(ctx, app, target, a.groups)
	}
	return a, err
}

// fillGaps returns every day of a range: those that were counted, and between them those on which
// nobody came.
func fillGaps(counted []Day, in visit.Range) []Day {
	days := make([]Day, 0, len(counted))
	for date := visit.DateOf(in.From); !date.After(visit.DateOf(in.To)) && len(days) < mostDays; date = date.AddDate(0, 0, 1) {
		day := Day{Day: visit.DayOf(date, time.UTC)}
		if len(counted) > 0 && counted[0].Day == day.Day {
			day, counted = counted[0], counted[1:]
		}
		days = append(days, day)
	}
	return days
}

func (a dayByDay) rows() ([]string, [][]any) { return table(a.Days) }

func (a dayByDay) text(s draw.Style) string {
	switch {
	case a.Target == "":
		return say("%s: nothing was counted %s\n", a.App, a.Range)
	case a.Hot == 0:
		return say("%s: nothing was counted for %s %s\n", a.App, visit.Shown(a.Target), a.Range)
	}
	return say("%s: %s\n\n", a.App, a.title()) + a.table().Text(s) +
		say("\nin all: pv %s, new visitors %s, hot %s; uniques %s\n",
			draw.Number(a.PV), draw.Number(a.NewVisitors), draw.Number(a.Hot), a.Uniques)
}

func (a dayByDay) title() string {
	title := fmt.Sprintf("%s, %s", cmp.Or(visit.Shown(a.Target), a.App), a.Range)
	if a.groups != nil {
		title += fmt.Sprintf(", by %s", a.period)
	}
	return title
}

func (a dayByDay) table() draw.Table {
	if a.groups == nil {
		return draw.Table{
			Columns: []draw.Column{{Name: "DAY"}, {Name: "PV", Bar: true}, {Name: "NEW"}, {Name: "HOT"}},
			Rows: convert(a.Days, func(day Day) []any {
				return []any{draw.Day(day.Day), day.Pv, day.NewVisitors, day.Hot}
			}),
		}
	}
	return draw.Table{
		Columns: []draw.Column{{Name: strings.ToUpper(string(a.period))}, {Name: "UNIQUES", Bar: true}, {Name: "NEW"}, {Name: "PV"}, {Name: "HOT"}},
		Rows: convert(a.groups, func(g group) []any {
			return []any{a.period.name(g.From), g.Uniques, g.NewVisitors, g.PV, g.Hot}
		}),
	}
}

func (a dayByDay) chart() draw.Chart {
	bars := convert(a.groups, func(g group) draw.ChartBar {
		return draw.ChartBar{Name: a.period.name(g.From), Label: g.String(), Visitors: g.Uniques, New: g.NewVisitors, Visits: g.Hot}
	})
	if a.groups == nil {
		bars = convert(a.Days, func(day Day) draw.ChartBar {
			return draw.ChartBar{Name: draw.Day(day.Day), Label: draw.Day(day.Day), Visitors: day.Pv, New: day.NewVisitors, Visits: day.Hot}
		})
	}
	return draw.Chart{Title: a.title(), Period: string(a.period), Bars: bars}
}

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
