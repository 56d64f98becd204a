package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"footfall/db"
	"footfall/report/draw"
	"footfall/visit"
)

// mostDays bounds what is read and written day by day: a century.
const mostDays = 36_525

// DayByDay is what was counted for a target on each day of a range.
type DayByDay struct {
	App         string `json:"app"`
	Target      string `json:"target"`
	visit.Range        // of days
	Days        []Day  `json:"days"` // also those on which nobody came
	PV          int64  `json:"pv"`   // of all days together, and so on
	NewVisitors int64  `json:"new_visitors"`
	Hot         int64  `json:"hot"`
	Uniques            // of the range
}

// DayByDay reads the days of a target. A range that is open, as visit.AllDays is, or longer than a
// century, begins or ends with a day that was counted.
func (r *Reader) DayByDay(ctx context.Context, app, target string, in visit.Range) (d DayByDay, err error) {
	counted, err := r.Days(ctx, app, target, in, mostDays)
	if err != nil {
		return d, err
	}
	d = DayByDay{App: app, Target: target, Range: in, Days: []Day{}}
	if len(counted) > 0 {
		if in.To == visit.AllDays.To {
			d.To = counted[len(counted)-1].Day
		}
		if in.From < visit.LastDays(mostDays, d.To).From {
			d.From = counted[0].Day
		}
	}
	if d.From != visit.AllDays.From && d.To != visit.AllDays.To {
		d.Days = filled(counted, d.Range)
	}
	for _, day := range counted {
		d.PV, d.NewVisitors, d.Hot = d.PV+day.PV, d.NewVisitors+day.NewVisitors, d.Hot+day.Hot
	}
	d.Uniques, err = r.Uniques(ctx, app, target, d.Range)
	return d, err
}

// filled puts in the days of a range on which nobody came.
func filled(counted []Day, in visit.Range) []Day {
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

func (d DayByDay) rows() ([]string, [][]any) {
	return []string{"day", "pv", "new_visitors", "hot"}, convert(d.Days, func(day Day) []any {
		return []any{day.Day, day.PV, day.NewVisitors, day.Hot}
	})
}

func (d DayByDay) text(w io.Writer, s draw.Style) error {
	if d.Hot == 0 {
		return say(w, "%s: nothing was counted for %s %s\n", d.App, d.Target, d.Range)
	}
	if err := say(w, "%s: %s, %s\n\n", d.App, d.Target, d.Range); err != nil {
		return err
	}
	err := draw.Table{
		Columns: []draw.Column{{Name: "DAY"}, {Name: "PV", Bar: true}, {Name: "NEW"}, {Name: "HOT"}},
		Rows: convert(d.Days, func(day Day) []any {
			return []any{draw.Day(day.Day), day.PV, day.NewVisitors, day.Hot}
		}),
	}.Write(w, s)
	if err != nil {
		return err
	}
	return say(w, "\nin all: pv %s, new visitors %s, hot %s; uniques %s\n",
		draw.Number(d.PV), draw.Number(d.NewVisitors), draw.Number(d.Hot), d.Uniques)
}

// WriteSVG draws the days.
func (d DayByDay) WriteSVG(w io.Writer) error {
	return draw.WriteSVG(w, draw.Chart{
		Title: fmt.Sprintf("%s, %s", d.Target, d.Range),
		Days: convert(d.Days, func(day Day) draw.ChartDay {
			return draw.ChartDay{Day: day.Day, PV: day.PV, New: day.NewVisitors, Visited: day.Hot}
		}),
	})
}

// String says how many they are, and how sure that is.
func (u Uniques) String() string {
	number := draw.Number(u.Uniques)
	if !u.Exact {
		number = fmt.Sprintf("about %s (standard error %.1f %%)", number, u.StandardError*100)
	}
	if u.Erased > 0 {
		number += fmt.Sprintf(", and %s of visitors who were erased", count(u.Erased, "day"))
	}
	return number
}

// Overview is a target at a glance.
type Overview struct {
	App    string `json:"app"`
	Target string `json:"target"`

	PV  int64 `json:"pv"` // in all, as the others
	UV  int64 `json:"uv"`
	Hot int64 `json:"hot"`

	FirstDays []FirstDay      `json:"first_days"`
	LastDays  []Day           `json:"last_days"`
	Uniques   []WindowUniques `json:"uniques"`
}

// FirstDay is one of the first days of a target.
type FirstDay struct {
	Day
	UV int64 `json:"uv"` // visitors by the end of the day: the highest rank
}

// WindowUniques is how many visitors came in the last days.
type WindowUniques struct {
	Days        int `json:"days"`
	visit.Range     // the same
	Uniques
}

const (
	overviewFirst = 3 // days
	overviewLast  = 30
)

var overviewWindows = []int{7, 30, 90}

// Overview reads a target at a glance, up to a day.
func (r *Reader) Overview(ctx context.Context, app, target string, to int32) (o Overview, err error) {
	o = Overview{App: app, Target: target, FirstDays: []FirstDay{}}
	err = r.onTarget(ctx, app, target, func(q *db.Queries, id int64) error {
		sums, err := q.TotalsGet(ctx, id)
		o.PV, o.UV, o.Hot = sums.Pv, sums.Uv, sums.Hot
		return err
	})
	if err != nil && !errors.Is(err, ErrNoTarget) && !errors.Is(err, db.ErrNoRows) {
		return o, wrap("totals", err)
	}
	days, err := r.Days(ctx, app, target, visit.AllDays, mostDays)
	if err != nil {
		return o, err
	}
	o.FirstDays = firstDays(days, o.UV)
	last := visit.LastDays(overviewLast, to)
	var recent []Day
	for _, day := range days {
		if day.Day >= last.From && day.Day <= last.To {
			recent = append(recent, day)
		}
	}
	o.LastDays = filled(recent, last)
	for _, n := range overviewWindows {
		window := WindowUniques{Days: n, Range: visit.LastDays(n, to)}
		if window.Uniques, err = r.Uniques(ctx, app, target, window.Range); err != nil {
			return o, err
		}
		o.Uniques = append(o.Uniques, window)
	}
	return o, nil
}

// firstDays are the first of all days of a target. There are none if visitors were counted before days were: then nobody can tell.
func firstDays(days []Day, uv int64) []FirstDay {
	first, so := []FirstDay{}, int64(0)
	for _, day := range days {
		so += day.NewVisitors
		if len(first) < overviewFirst {
			first = append(first, FirstDay{day, so})
		}
	}
	if so < uv {
		return []FirstDay{}
	}
	return first
}

func (o Overview) rows() ([]string, [][]any) {
	header, row := []string{"target", "pv", "uv", "hot"}, []any{o.Target, o.PV, o.UV, o.Hot}
	for _, window := range o.Uniques {
		header, row = append(header, fmt.Sprintf("uniques_%d_days", window.Days)), append(row, window.Uniques.Uniques)
	}
	return header, [][]any{row}
}

func (o Overview) text(w io.Writer, s draw.Style) error {
	if o.Hot == 0 {
		return say(w, "%s: nothing was counted for %s\n", o.App, o.Target)
	}
	if err := say(w, "%s: %s\n\nin all: pv %s, uv %s, hot %s\n", o.App, o.Target, draw.Number(o.PV), draw.Number(o.UV), draw.Number(o.Hot)); err != nil {
		return err
	}
	if len(o.FirstDays) > 0 {
		if err := say(w, "\n"); err != nil {
			return err
		}
		err := draw.Table{
			Columns: []draw.Column{{Name: "FIRST DAYS"}, {Name: "PV"}, {Name: "HOT"}, {Name: "RANKS"}},
			Rows: convert(o.FirstDays, func(day FirstDay) []any {
				return []any{draw.Day(day.Day.Day), day.PV, day.Hot, ranksOf(day)}
			}),
		}.Write(w, s)
		if err != nil {
			return err
		}
	}
	most := int64(0)
	numbers := convert(o.LastDays, func(day Day) int64 {
		most = max(most, day.PV)
		return day.PV
	})
	windows := convert(o.Uniques, func(u WindowUniques) string { return fmt.Sprintf("%s in %d days", u.Uniques, u.Days) })
	return say(w, "\npv of %s days, at most %s a day:\n%s\n\nuniques: %s, up to %s\n", draw.Number(int64(len(numbers))), draw.Number(most), s.Sparkline(numbers),
		strings.Join(windows, ", "), draw.Day(o.LastDays[len(o.LastDays)-1].Day))
}

// ranksOf are the ranks of those who came for the first time on a day.
func ranksOf(day FirstDay) string {
	switch day.NewVisitors {
	case 0:
		return "-"
	case 1:
		return draw.Number(day.UV)
	}
	return draw.Number(day.UV-day.NewVisitors+1) + " to " + draw.Number(day.UV)
}
