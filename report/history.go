package report

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"footfall/report/draw"
	"footfall/visit"
)

// ToldDay is a target's day, counted elsewhere by Source, or here if Source is "". Numbers may be Unknown. Only days
// counted elsewhere have Visits.
type ToldDay = HistoryDaysRow

// Told reads at most N days of a target in a range that were counted elsewhere and not here.
func (r *Reader) Told(ctx context.Context, l Look) ([]ToldDay, error) {
	return ask(ctx, r, "history", (*Queries).HistoryDays, l)
}

// ToldSites reads at most n sites of an app that were counted elsewhere and never here.
func (r *Reader) ToldSites(ctx context.Context, app string, n int) ([]HistorySitesRow, error) {
	return ask(ctx, r, "sites of history", (*Queries).HistorySites, Look{App: app, N: n})
}

// ToldPages reads the pages of a site as counted elsewhere in a range.
func (r *Reader) ToldPages(ctx context.Context, l Look) (Panel[PanelToldPagesRow], error) {
	return panelOf(ctx, r, "pages of history", PanelToldPages, (*Queries).PanelToldPages, l)
}

// toldDays omits unknown numbers in JSON, like days.
type toldDays []ToldDay

// MarshalJSON implements json.Marshaler.
func (d toldDays) MarshalJSON() ([]byte, error) { return json.Marshal(withoutUnknown([]ToldDay(d))) }

// withTold merges days counted elsewhere with days counted here. For a day that is in both, the count from elsewhere
// wins.
func withTold(counted []Day, told []ToldDay) []ToldDay {
	here := convert(counted, func(d Day) ToldDay { return ToldDay{d.Day, d.Pv, d.NewVisitors, d.Hot, Unknown, ""} })
	all := append(slices.Clone(told), here...)
	slices.SortStableFunc(all, func(a, b ToldDay) int { return cmp.Compare(a.Day, b.Day) })
	return slices.CompactFunc(all, func(a, b ToldDay) bool { return a.Day == b.Day })
}

// toldText describes the numbers counted elsewhere, with one line per source.
func toldText(told []ToldDay) (text string) {
	for len(told) > 0 {
		source, views, visitors, to := told[0].Source, int64(0), int64(0), int32(0)
		for _, d := range told {
			if d.Source == source {
				views, visitors, to = Plus(views, d.Hot), Plus(visitors, d.Pv), d.Day
			}
		}
		text += say("counted by %s %s: visitors of each day %v, page views %v\n", visit.CountedBy(source), visit.Range{From: told[0].Day, To: to},
			toldNumber(visitors), toldNumber(views))
		told = slices.DeleteFunc(slices.Clone(told), func(d ToldDay) bool { return d.Source == source })
	}
	return text
}

// Plus adds two numbers. The sum is Unknown if one of the numbers is.
func Plus(sum, n int64) int64 {
	if sum == Unknown || n == Unknown {
		return Unknown
	}
	return sum + n
}

func toldNumber(n int64) any {
	if n == Unknown {
		return told(n)
	}
	return draw.Number(n)
}
