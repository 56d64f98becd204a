package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"footfall/report/draw"
	"footfall/visit"
)

// mostDays is the maximum number of days in a report by day: a century.
const mostDays = 36_525

// Day holds the numbers of a page or site on a day.
type Day = DaysBetweenRow

// Days returns the numbers of a page or site on the first n days of a range that have visits. If target was never counted,
// Days returns no days.
func (r *Reader) Days(ctx context.Context, app, target string, in visit.Range, n int) ([]Day, error) {
	return runQuery(ctx, r, "days", (*Queries).DaysBetween, Look{App: app, Target: target, In: in, N: n})
}

// DaysWhere is like Days, but supports a filter (l.Where). It reads up to l.N + 1 days, so that the caller can see whether
// more days follow.
func (r *Reader) DaysWhere(ctx context.Context, l Look) ([]Day, error) {
	if l.N++; len(l.Where) == 0 {
		return r.Days(ctx, l.App, l.Target, l.In, l.N)
	}
	l.Period = string(daily)
	rows, err := r.filtered(ctx, l, "days")
	return convert(rows[:min(l.N, len(rows))], func(f FilterPanelsRow) Day { return Day{f.Day, f.Pv, f.NewVisitors, Unknown} }), err
}

// FirstDay returns the first day on which a page or site was counted, including imported logs and late visits, or 0 if it was
// never counted.
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
	visit.Range        // the reported days
	Days        days   `json:"days"` // includes days without visits
	PV          int64  `json:"pv"`   // sum of the daily visitors
	NewVisitors int64  `json:"new_visitors"`
	Hot         *int64 `json:"hot"` // page views; nil: unknown
	Uniques            // number of unique visitors in the range

	Told historyList `json:"history,omitempty"` // days that another tool has counted

	all []HistoryDay // days counted here or by another tool; on days between them, the numbers are Unknown

	period  period   // the length of the periods in text and drawings
	periods []Period // the numbers by week or month, unless period is daily
}

// DayByDay reads the numbers of a page or site by day. l.Target is "" if the app has not counted any page yet. If the range is
// longer than a century, the report starts on the first day with numbers. If the range has no end, like visit.AllDays, the
// report ends on the last day with numbers.
func (r *Reader) DayByDay(ctx context.Context, l Look) (Answer, error) {
	app, target, in := l.App, l.Target, l.In
	l.N = mostDays - 1
	counted, err := r.DaysWhere(ctx, l)
	if err != nil {
		return nil, err
	}
	a := dayByDay{App: app, Target: target, Range: in, Days: days{}}
	if l.History {
		if a.Told, err = r.ImportedDays(ctx, l); err != nil {
			return nil, err
		}
	}
	known := mergeHistory(counted, a.Told)
	if len(known) > 0 {
		if in.To == visit.AllDays.To {
			a.To = known[len(known)-1].Day
		}
		if in.From < visit.LastDays(mostDays, a.To).From {
			a.From = known[0].Day
		}
	}
	if a.From != visit.AllDays.From && a.To != visit.AllDays.To {
		days, first, err := r.clipToFirstDay(ctx, app, target, a.Range)
		if err != nil {
			return nil, err
		}
		if first > 0 || len(a.Told) == 0 {
			a.Days = fillGaps(counted, days, Day{}, func(d *Day) *int32 { return &d.Day })
		}
	}
	if a.all = mergeHistory(a.Days, a.Told); len(a.Told) > 0 {
		a.all = fillGaps(a.all, visit.Range{From: a.all[0].Day, To: a.To}, HistoryDay{0, Unknown, Unknown, Unknown, Unknown, ""},
			func(d *HistoryDay) *int32 { return &d.Day })
	}
	hot := int64(0)
	for _, day := range counted {
		a.PV, a.NewVisitors, hot = a.PV+day.Pv, a.NewVisitors+day.NewVisitors, hot+day.Hot
	}
	if a.Hot = &hot; len(l.Where) > 0 {
		a.Hot = nil
	}
	if a.Uniques, err = r.UniquesOf(ctx, Look{App: app, Target: target, In: a.Range, Where: l.Where}); err != nil {
		return nil, err
	}
	if a.period = periodOf(len(a.Days)); len(a.Told) > 0 {
		a.period = daily
	}
	if a.period != daily {
		whole := visit.Range{From: a.Days[0].Day, To: a.Days[len(a.Days)-1].Day}
		look := Look{App: app, Target: target, In: whole, Period: string(a.period), Where: l.Where}
		var read Panel[Period]
		read, err = r.Chart(ctx, look)
		a.periods = read.Rows
	}
	return a, err
}

// clipToFirstDay removes the days of a range before the first day on which the site of target was counted. It also returns
// this first day, or 0 if the site was never counted.
func (r *Reader) clipToFirstDay(ctx context.Context, app, target string, in visit.Range) (_ visit.Range, first int32, err error) {
	site, _, _ := strings.Cut(target, "/")
	first, err = r.FirstDay(ctx, app, site)
	in.From = max(in.From, first)
	return in, first, err
}

// fillGaps returns a row for each day of a range. A day without a row in known gets a copy of gap.
func fillGaps[D any](known []D, in visit.Range, gap D, day func(*D) *int32) []D {
	days := make([]D, 0, len(known))
	for date := visit.DateOf(in.From); !date.After(visit.DateOf(in.To)) && len(days) < mostDays; date = date.AddDate(0, 0, 1) {
		*day(&gap) = visit.DayOf(date, time.UTC)
		days = append(days, gap)
		if len(known) > 0 && *day(&known[0]) == *day(&gap) {
			days[len(days)-1], known = known[0], known[1:]
		}
	}
	return days
}

func (a dayByDay) rows() ([]string, [][]any) {
	if len(a.Told) > 0 {
		return table(withoutUnknown(a.all))
	}
	return table(withoutUnknown([]Day(a.Days)))
}

func (a dayByDay) text(s draw.Style) string { return a.counted(s) + historyText(a.Told) }

func (a dayByDay) counted(s draw.Style) string {
	switch {
	case a.Target == "":
		return escapedf("%s: nothing was counted %s\n", a.App, a.Range)
	case a.PV == 0 && len(a.Told) == 0:
		return escapedf("%s: nothing was counted for %s %s\n", a.App, visit.Shown(a.Target), a.Range)
	}
	sum, text := "in all", escapedf("%s: %s\n\n", a.App, a.title())+a.table().Text(s)+"\n"
	switch {
	case a.PV == 0:
		return text
	case len(a.Told) > 0:
		sum = "counted here"
	}
	return text + escapedf("%s: pv %s, new visitors %s, hot %s; uniques %s\n", sum,
		draw.Number(a.PV), draw.Number(a.NewVisitors), a.hot(), a.Uniques)
}

// days writes unknown numbers as null in JSON.
type days []Day

// MarshalJSON implements json.Marshaler.
func (d days) MarshalJSON() ([]byte, error) { return json.Marshal(withoutUnknown([]Day(d))) }

func (a dayByDay) hot() any {
	if a.Hot == nil {
		return orDash(Unknown)
	}
	return draw.Number(*a.Hot)
}

// orDash returns n for a table, or a dash if n is Unknown.
func orDash(n int64) any {
	if n == Unknown {
		return "–"
	}
	return n
}

func (a dayByDay) title() string {
	title := fmt.Sprintf("%s, %s", cmp.Or(visit.Shown(a.Target), a.App), a.Range)
	if a.period != daily {
		title += fmt.Sprintf(", by %s", a.period)
	}
	return title
}

func (a dayByDay) table() draw.Table {
	if a.period == daily {
		columns := []draw.Column{{Name: "DAY"}, {Name: "PV", Bar: true}, {Name: "NEW"}, {Name: "HOT"}, {Name: "VISITS"}, {Name: "COUNTED BY"}}
		if len(a.Told) == 0 {
			columns = columns[:4]
		}
		return draw.Table{Columns: columns, Rows: convert(a.all, func(d HistoryDay) []any {
			by := "–"
			if d.Source != "" {
				by = visit.CountedBy(d.Source)
			} else if d.Pv != Unknown {
				by = "Footfall"
			}
			return []any{draw.Day(d.Day), orDash(d.Pv), orDash(d.NewVisitors), orDash(d.Hot), orDash(d.Visits), by}[:len(columns)]
		})}
	}
	return draw.Table{
		Columns: []draw.Column{
			{Name: strings.ToUpper(string(a.period))}, {Name: "UNIQUES", Bar: true}, {Name: "NEW"}, {Name: "PV"}, {Name: "HOT"},
		},
		Rows: convert(a.periods, func(p Period) []any {
			return []any{a.period.name(p.FirstDay), p.Visitors, p.NewVisitors, p.Pv, orDash(p.Hot)}
		}),
	}
}

func (a dayByDay) plot() (p draw.Plot) {
	put := func(name, days string, visitors, fresh, hot int64) {
		label := fmt.Sprintf("%s: %s, %s of them new", days, draw.Count(visitors, "visitor"), draw.Number(fresh))
		if hot != Unknown {
			label += "; " + draw.Count(hot, "visit")
		}
		p.Bars = append(p.Bars, draw.PlotBar{Name: name, Label: label, Visitors: visitors, New: fresh})
	}
	for _, of := range a.periods {
		put(a.period.name(of.FirstDay), visit.Range{From: of.FirstDay, To: of.LastDay}.String(), of.Visitors, of.NewVisitors, of.Hot)
	}
	for _, d := range a.all {
		name := draw.Day(d.Day)
		switch {
		case a.period != daily:
		case d.Source != "":
			label := fmt.Sprintf("%s: counted by %s: visitors %v, page views %v", name, visit.CountedBy(d.Source), historyNumber(d.Pv),
				historyNumber(d.Hot))
			p.Bars = append(p.Bars, draw.PlotBar{Name: name, Label: label, Imported: max(d.Pv, 0)})
		case d.Pv == Unknown:
			p.Bars = append(p.Bars, draw.PlotBar{Name: name, Label: name + ": no count", None: true})
		default:
			put(name, name, d.Pv, d.NewVisitors, d.Hot)
		}
	}
	p.Summary = fmt.Sprintf("Visitors of each %s: new visitors, and returning visitors (hatched).", a.period)
	return p
}

// period is the time that one row or bar covers.
type period string

const (
	daily   period = "day"
	weekly  period = "week" // starts on Monday
	monthly period = "month"
)

// Reports show up to mostSingleDays days by day, up to mostWeekDays days by week, and longer ranges by month.
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

// name returns the label of the period that starts on a day.
func (p period) name(first int32) string {
	if p == monthly {
		return draw.Day(first)[:len("2019-06")]
	}
	return draw.Day(first)
}
