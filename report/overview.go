package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"footfall/report/draw"
	"footfall/visit"
)

type overview struct {
	App    string `json:"app"`
	Target string `json:"target"`

	PV  int64 `json:"pv"` // PV, UV and Hot are all-time totals
	UV  int64 `json:"uv"`
	Hot int64 `json:"hot"`

	Offset *offset `json:"offset,omitempty"` // the part of the totals that another tool has counted, or nil

	FirstDays []firstDay      `json:"first_days"`
	LastDays  []Day           `json:"last_days"`
	Uniques   []windowUniques `json:"uniques"`
}

type offset struct {
	PV  int64 `json:"pv"`
	UV  int64 `json:"uv"`
	Hot int64 `json:"hot"`
}

type firstDay struct {
	Day
	UV int64 `json:"uv"` // number of visitors up to the end of the day, which is the highest rank so far
}

type windowUniques struct {
	Days        int `json:"days"`
	visit.Range     // the range of days in which the unique visitors are counted
	Uniques
}

const (
	overviewFirst = 3 // number of days at the start that the overview lists
	overviewLast  = 30
)

var overviewWindows = []int{7, 30, 90}

// Overview reads a summary of a page or site: all-time totals, its first days, and its last days. to is the last of these
// days.
func (r *Reader) Overview(ctx context.Context, app, target string, to int32) (Answer, error) {
	a := overview{App: app, Target: target}
	before := int64(0) // number of visitors counted by another tool
	totals, err := r.Totals(ctx, Look{App: app, Target: target})
	if err != nil {
		return nil, err
	}
	for _, t := range totals.Rows {
		a.PV, a.UV, a.Hot = t.Pv, t.Uv, t.Hot
		if t.Hot > t.CountedHot {
			a.Offset = &offset{t.Pv - t.CountedPv, t.Uv - t.CountedUv, t.Hot - t.CountedHot}
			before = a.Offset.UV
		}
	}
	days, err := r.Days(ctx, app, target, visit.AllDays, mostDays)
	if err != nil {
		return nil, err
	}
	a.FirstDays = firstDays(days, before, a.UV)
	last, _, err := r.clipToFirstDay(ctx, app, target, visit.LastDays(overviewLast, to))
	if err != nil {
		return nil, err
	}
	recent := slices.DeleteFunc(days, func(day Day) bool { return day.Day < last.From })
	a.LastDays = fillGaps(recent, last, Day{}, func(d *Day) *int32 { return &d.Day })
	for _, n := range overviewWindows {
		window := windowUniques{Days: n, Range: visit.LastDays(n, to)}
		if window.Uniques, err = r.UniquesOf(ctx, Look{App: app, Target: target, In: window.Range}); err != nil {
			return nil, err
		}
		a.Uniques = append(a.Uniques, window)
	}
	return a, nil
}

// firstDays returns the first days of a page or site, with the ranks of their new visitors. The ranks start after the visitors
// whom another tool has counted (before). If the new visitors of all days do not add up to uv, firstDays returns no days. Then
// some visitors arrived on an unknown day, perhaps before the first recorded day.
func firstDays(days []Day, before, uv int64) []firstDay {
	first, sum := []firstDay{}, before
	for _, day := range days {
		sum += day.NewVisitors
		if len(first) < overviewFirst {
			first = append(first, firstDay{day, sum})
		}
	}
	if sum < uv {
		return []firstDay{}
	}
	return first
}

func (a overview) rows() ([]string, [][]any) {
	header, row := []string{"target", "pv", "uv", "hot"}, []any{a.Target, a.PV, a.UV, a.Hot}
	for _, window := range a.Uniques {
		header, row = append(header, fmt.Sprintf("uniques_%d_days", window.Days)), append(row, window.Uniques.Uniques)
	}
	return header, [][]any{row}
}

func (a overview) text(s draw.Style) string {
	if a.Hot == 0 {
		return escapedf("%s: nothing was counted for %s\n", a.App, visit.Shown(a.Target))
	}
	text := escapedf("%s: %s\n\nin all: pv %s, uv %s, hot %s\n",
		a.App, visit.Shown(a.Target), draw.Number(a.PV), draw.Number(a.UV), draw.Number(a.Hot))
	if o := a.Offset; o != nil {
		text += escapedf("counted by another tool and included above: pv %s, uv %s, hot %s\n",
			draw.Number(o.PV), draw.Number(o.UV), draw.Number(o.Hot))
	}
	if len(a.FirstDays) > 0 {
		text += "\n" + draw.Table{
			Columns: []draw.Column{{Name: "FIRST DAYS"}, {Name: "PV"}, {Name: "HOT"}, {Name: "RANKS"}},
			Rows: convert(a.FirstDays, func(day firstDay) []any {
				return []any{draw.Day(day.Day.Day), day.Pv, day.Hot, ranksOf(day)}
			}),
		}.Text(s)
	}
	most := int64(0)
	numbers := convert(a.LastDays, func(day Day) int64 {
		most = max(most, day.Pv)
		return day.Pv
	})
	windows := convert(a.Uniques, func(u windowUniques) string { return fmt.Sprintf("%s in %d days", u.Uniques, u.Days) })
	if len(numbers) == 0 { // the target was first counted after these days
		return text
	}
	return text + escapedf("\npv of %s, at most %s a day:\n%s\n\nuniques: %s, up to %s\n",
		draw.Count(int64(len(numbers)), "day"), draw.Number(most), s.Sparkline(numbers), strings.Join(windows, ", "),
		draw.Day(a.LastDays[len(a.LastDays)-1].Day))
}

func ranksOf(day firstDay) string {
	switch day.NewVisitors {
	case 0:
		return "-"
	case 1:
		return draw.Number(day.UV)
	}
	return draw.Number(day.UV-day.NewVisitors+1) + " to " + draw.Number(day.UV)
}
