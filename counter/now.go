package counter

import (
	"context"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// With selects numbers of the moment, which an answer includes in addition to the totals.
type With struct {
	Today bool // of the site and the page
	Here  bool // of the site
}

// readNow reads the selected numbers of a page and its site. They are 0 for targets that were never counted.
func (c *Counter) readNow(ctx context.Context, a *app.App, t visit.Target, w *subject, with With) (now visit.Now, err error) {
	all, err := c.readNowOf(ctx, a, []visit.Target{t}, w, with)
	if err != nil {
		return visit.Now{}, err
	}
	return all[0], nil
}

// readNowOf is readNow for several pages. The result is in their order.
func (c *Counter) readNowOf(ctx context.Context, a *app.App, of []visit.Target, w *subject, with With) ([]visit.Now, error) {
	sites, targets := make([]string, len(of)), make([]string, 0, 2*len(of))
	for i, t := range of {
		sites[i] = t.Site
		targets = append(targets, t.Site, t.Page)
	}
	today, here := map[string]visit.Today{}, map[string]int64{}
	err := c.readInTime(ctx, func(q *db.Queries) error {
		if with.Today {
			rows, err := q.DayGet(ctx, db.DayGetParams{AppID: a.ID, DayID: w.day, Uris: targets})
			if err != nil {
				return err
			}
			for _, row := range rows {
				today[row.Uri] = visit.Today{Hot: row.Hot, PV: row.Pv}
			}
		}
		if with.Here {
			rows, err := q.HereGet(ctx, a.ID, sites)
			if err != nil {
				return err
			}
			for _, row := range rows {
				here[row.Uri] = row.Visitors
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]visit.Now, len(of))
	for i, t := range of {
		if with.Today {
			all[i].Site, all[i].Page = new(today[t.Site]), new(today[t.Page])
		}
		if with.Here {
			all[i].Here = new(here[t.Site])
		}
	}
	return all, nil
}
