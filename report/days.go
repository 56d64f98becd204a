package report

import (
	"context"
	"fmt"
	"time"

	"footfall/db"
	"footfall/report/draw"
	"footfall/visit"
)

// mostDays bounds what is read and written day by day: a century.
const mostDays = 36_525

// Day is what was counted for a target on a day.
type Day struct {
	Day         int32 `json:"day"`
	PV          int64 `json:"pv"`
	NewVisitors int64 `json:"new_visitors"`
	Hot         int64 `json:"hot"`
}

// Days returns the first n days of a range with their numbers for a target. Days on which nobody
// came are left out; a target that was never counted has none.
func (r *Reader) Days(ctx context.Context, app, target string, in visit.Range, n int) (days []Day, err error) {
	err = r.onTarget(ctx, app, target, func(q *db.Queries, id int64) error {
		rows, err := q.DaysBetween(ctx, db.DaysBetweenParams{PageID: id, FromDay: in.From, ToDay: in.To, N: int32(n)}) //nolint:gosec // at most a century
		days = convert(rows, func(d db.DaysBetweenRow) Day {
			return Day{Day: d.DayID, PV: d.Pv, NewVisitors: d.NewVisitors, Hot: d.Hot}
		})
		return err
	})
	return days, wrap("days", err)
}

// dayByDay is what was counted for a target on each day of a range.
type dayByDay struct {
	App         string `json:"app"`
	Target      string `json:"target"`
	visit.Range        // of days
	Days        []Day  `json:"days"` // including those on which nobody came
	PV          int64  `json:"pv"`   // the sums over all days
	NewVisitors int64  `json:"new_visitors"`
	Hot         int64  `json:"hot"`
	Uniques            // of the range
}

// DayByDay reads the days of a target. A range that is open, as visit.AllDays is, or longer than a
// century, begins or ends with a day that was counted.
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
		a.PV, a.NewVisitors, a.Hot = a.PV+day.PV, a.NewVisitors+day.NewVisitors, a.Hot+day.Hot
	}
	a.Uniques, err = r.Uniques(ctx, app, target, a.Range)
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
	if a.Hot == 0 {
		return say("%s: nothing was counted for %s %s\n", a.App, a.Target, a.Range)
	}
	days := draw.Table{
		Columns: []draw.Column{{Name: "DAY"}, {Name: "PV", Bar: true}, {Name: "NEW"}, {Name: "HOT"}},
		Rows: convert(a.Days, func(day Day) []any {
			return []any{draw.Day(day.Day), day.PV, day.NewVisitors, day.Hot}
		}),
	}
	return say("%s: %s, %s\n\n", a.App, a.Target, a.Range) + days.Text(s) +
		say("\nin all: pv %s, new visitors %s, hot %s; uniques %s\n",
			draw.Number(a.PV), draw.Number(a.NewVisitors), draw.Number(a.Hot), a.Uniques)
}

func (a dayByDay) chart() draw.Chart {
	return draw.Chart{
		Title: fmt.Sprintf("%s, %s", a.Target, a.Range),
		Days: convert(a.Days, func(day Day) draw.ChartDay {
			return draw.ChartDay{Day: day.Day, PV: day.PV, New: day.NewVisitors, Hot: day.Hot}
		}),
	}
}
