package report

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"footfall/report/draw"
	"footfall/visit"
)

// HistoryDay holds the numbers of a page or site on a day. Source is the other tool that counted the day, such as matomo, or
// "" if the day was counted here. A number may be Unknown. Visits (sessions)
// are recorded only for days that another tool counted.
type HistoryDay = HistoryDaysRow

// ImportedDays reads the numbers of a page or site that another tool has counted: the first l.N days in a range. It omits days on
// which the site was also counted here.
func (r *Reader) ImportedDays(ctx context.Context, l Look) ([]HistoryDay, error) {
	return runQuery(ctx, r, "history", (*Queries).HistoryDays, l)
}

// HistorySites reads at most n sites of an app that another tool has counted, but that were never counted here. Each row has
// the site's last day and the tool that counted this day.
func (r *Reader) HistorySites(ctx context.Context, app string, n int) ([]HistorySitesRow, error) {
	return runQuery(ctx, r, "sites of history", (*Queries).HistorySites, Look{App: app, N: n})
}

// HistoryPages reads the pages of a site that another tool has counted in a range, with the numbers of that tool.
func (r *Reader) HistoryPages(ctx context.Context, l Look) (Panel[PanelToldPagesRow], error) {
	return panelOf(ctx, r, "pages of history", PanelToldPages, (*Queries).PanelToldPages, l)
}

// historyList writes unknown numbers as null in JSON, like the type days.
type historyList []HistoryDay

// MarshalJSON implements json.Marshaler.
func (d historyList) MarshalJSON() ([]byte, error) {
	return json.Marshal(withoutUnknown([]HistoryDay(d)))
}

// mergeHistory merges the days in told, which another tool has counted, with the days that were counted here. If a day is in
// both lists, the result has the day in told.
func mergeHistory(counted []Day, told []HistoryDay) []HistoryDay {
	here := convert(counted, func(d Day) HistoryDay { return HistoryDay{d.Day, d.Pv, d.NewVisitors, d.Hot, Unknown, ""} })
	all := append(slices.Clone(told), here...)
	slices.SortStableFunc(all, func(a, b HistoryDay) int { return cmp.Compare(a.Day, b.Day) })
	return slices.CompactFunc(all, func(a, b HistoryDay) bool { return a.Day == b.Day })
}

// historyText describes the numbers that other tools have counted, with one line for each tool.
func historyText(told []HistoryDay) (text string) {
	for len(told) > 0 {
		source, views, visitors, to := told[0].Source, int64(0), int64(0), int32(0)
		for _, d := range told {
			if d.Source == source {
				views, visitors, to = Plus(views, d.Hot), Plus(visitors, d.Pv), d.Day
			}
		}
		text += escapedf("counted by %s %s: daily visitors %v, page views %v\n", visit.CountedBy(source), visit.Range{From: told[0].Day, To: to},
			historyNumber(visitors), historyNumber(views))
		told = slices.DeleteFunc(slices.Clone(told), func(d HistoryDay) bool { return d.Source == source })
	}
	return text
}

// Plus adds two numbers. If one of the numbers is Unknown, the sum is Unknown.
func Plus(sum, n int64) int64 {
	if sum == Unknown || n == Unknown {
		return Unknown
	}
	return sum + n
}

func historyNumber(n int64) any {
	if n == Unknown {
		return orDash(n)
	}
	return draw.Number(n)
}
