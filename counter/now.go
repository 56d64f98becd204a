package counter

import (
	"context"
	"net/netip"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// ExtraNumbers selects current numbers that an answer includes in addition to the totals.
type ExtraNumbers struct {
	Today bool // today's numbers of the site and the page
	Here  bool // the site's visitors at this moment
}

// readCurrent returns totals and current numbers of pages and their sites, in the order of the pages. If visitor is not
// nil, it also returns the visitor's ranks.
func (c *Counter) readCurrent(
	ctx context.Context, a *app.App, targets []visit.Target, visitor *netip.Addr, day int32, with ExtraNumbers,
) (answers []visit.Answer, err error) {
	ask := db.CountsOfDayParams{AppID: a.ID, DayID: day, Ip: visitor}
	sites := make([]string, len(targets))
	for i, t := range targets {
		sites[i] = t.Site
		ask.Uris = append(ask.Uris, t.Site, t.Page)
	}
	found, visitorsHere := map[string]db.CountsOfDayRow{}, map[string]int64{}
	err = c.readInTime(ctx, func(q *db.Queries) error {
		if visitor != nil {
			persons, err := findPersons(ctx, q, a, *visitor)
			if err != nil {
				return err
			}
			ask.Ip = &persons[0]
		}
		rows, err := q.CountsOfDay(ctx, ask)
		for _, row := range rows {
			found[row.Uri] = row
		}
		if err != nil || !with.Here {
			return err
		}
		visitors, err := q.HereGet(ctx, a.ID, sites)
		for _, row := range visitors {
			visitorsHere[row.Uri] = row.Visitors
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	counts := func(target string) (visit.Counts, *visit.Today) {
		row := found[target]
		n := visit.Counts{PV: row.Pv, UV: row.Uv, Rank: row.Rank, Hot: row.Hot}
		if !with.Today {
			return n, nil
		}
		return n, &visit.Today{Hot: row.TodayHot, PV: row.TodayPv}
	}
	answers = make([]visit.Answer, len(targets))
	for i, t := range targets {
		answer := &answers[i]
		answer.Site, answer.Now.Site = counts(t.Site)
		answer.Page, answer.Now.Page = counts(t.Page)
		if with.Here {
			answer.Now.Here = new(visitorsHere[t.Site])
		}
	}
	return answers, nil
}

// checkExtraNumbers returns an error if the caller requests current numbers of an event, which do not exist, or numbers
// that only callers with a key may read.
func checkExtraNumbers(a *app.App, r *Request, w *subject) error {
	switch {
	case r.Extra == (ExtraNumbers{}):
	case r.Event != "":
		return visit.Errorf(visit.Invalid, "with", "current numbers are not available for events: leave it out")
	case r.Extra.Here && w.keyless && !a.AllowsBadges(false):
		return visit.Errorf(visit.Forbidden, "with",
			"\"here\" needs a key: send one as Authorization: Bearer …, or have the operator of app %s set --public-counts %s",
			a.Name, app.PublicRead)
	}
	return nil
}
