package retention

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"footfall/db"
)

const (
	visitorsAtOnce = 2000    // that one transaction forgets, while it holds their sites
	visitorsRead   = 200_000 // that are looked for at once

	// Between two of these transactions. Each makes running instances forget what they remember and send their batches again, which have to
	// come through before the next.
	letThrough = 250 * time.Millisecond
)

// forget forgets visitors who have not come for long.
func (r *retaining) forget(ctx context.Context) error {
	for _, app := range r.apps {
		if app.ForgetDays == 0 {
			continue
		}
		f := VisitorsForgotten{App: app.Name, Before: daysBefore(r.today(), app.ForgetDays)}
		err := r.forgetOf(ctx, app.ID, &f)
		if f.Visitors > 0 {
			r.done.Forgotten = append(r.done.Forgotten, f)
		}
		if err != nil {
			return fmt.Errorf("forget visitors of app %s: %w", app.Name, err)
		}
	}
	return nil
}

func (r *retaining) forgetOf(ctx context.Context, app int32, f *VisitorsForgotten) error {
	if r.dry {
		return r.long(ctx, func(q *db.Queries) (err error) {
			f.Visitors, err = q.VisitorsUnseenCount(ctx, db.VisitorsUnseenCountParams{AppID: app, Before: f.Before})
			return err
		})
	}
	for most := int32(visitorsRead); ; {
		var unseen []db.VisitorsUnseenRow
		if err := r.long(ctx, func(q *db.Queries) (err error) {
			unseen, err = q.VisitorsUnseen(ctx, db.VisitorsUnseenParams{AppID: app, Before: f.Before, N: most})
			return err
		}); err != nil {
			return err
		}
		last := len(unseen) < int(most)
		if !last {
			if unseen = unseen[:lastWhole(unseen, len(unseen))]; len(unseen) == 0 {
				most *= 2
				continue
			}
		}
		if err := r.forgetThese(ctx, app, f, unseen); err != nil || last {
			return err
		}
	}
}

// forgetThese forgets visitors in transactions that hold their sites for a moment each. A visitor goes from a whole site at once: were he
// forgotten at a page alone and came again, uv of the page might exceed that of the site.
func (r *retaining) forgetThese(ctx context.Context, app int32, f *VisitorsForgotten, unseen []db.VisitorsUnseenRow) error {
	for len(unseen) > 0 {
		n := len(unseen)
		if n > visitorsAtOnce {
			if n = lastWhole(unseen, visitorsAtOnce+1); n == 0 { // who came to so many pages goes by himself
				n = wholeFrom(unseen)
			}
		}
		p := db.VisitorsForgetParams{App: app, Before: f.Before, Pages: make([]int64, n), Ips: make([]netip.Addr, n)}
		for i, v := range unseen[:n] {
			p.Pages[i], p.Ips[i] = v.PageID, v.Ip
		}
		var some int64
		if err := r.long(ctx, func(q *db.Queries) (err error) { some, err = q.VisitorsForget(ctx, p); return err }); err != nil {
			return err
		}
		f.Visitors += some
		unseen = unseen[n:]
		if err := r.pause(ctx, letThrough); err != nil {
			return err
		}
	}
	return nil
}

// lastWhole is how many of the first n rows are of visitors of whom, at the site, none is beyond: row n-1 may have more after it.
func lastWhole(rows []db.VisitorsUnseenRow, n int) int {
	for n--; n > 0 && sameVisitor(rows[n-1], rows[n]); n-- {
	}
	return n
}

// wholeFrom is how many rows the first visitor has.
func wholeFrom(rows []db.VisitorsUnseenRow) int {
	n := 1
	for n < len(rows) && sameVisitor(rows[n-1], rows[n]) {
		n++
	}
	return n
}

func sameVisitor(a, b db.VisitorsUnseenRow) bool { return a.SiteID == b.SiteID && a.Ip == b.Ip }
