package retention

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

const (
	visitorsAtOnce = 2000    // number of visitors' rows per transaction, which locks the sites of these visitors
	visitorsRead   = 200_000 // number of visitors' rows that one query reads

	// forgetPause is the pause between two transactions of forgetBatch. Each transaction makes running instances empty
	// their caches and send their batches again. The pause lets these batches succeed before the next transaction.
	forgetPause = 250 * time.Millisecond
)

// forget deletes visitors who have not visited a site for the number of days in the app's setting forget-days.
func (r *run) forget(ctx context.Context) error {
	if r.isDaily && r.forgotOn.Load() == dayNumber(r.today) {
		return nil
	}
	err := r.eachApp(func(app *appRetention) error {
		if app.ForgetDays == 0 {
			return nil
		}
		// Before is at most app.keptFrom, because visitors whose visit rows are kept must not be forgotten. Late visits may
		// have added visitors whose last day is early, but whose visit rows are kept.
		f := VisitorsForgotten{App: app.Name, Before: min(daysBefore(r.today, app.ForgetDays), app.keptFrom)}
		err := r.forgetInApp(ctx, app.ID, &f)
		if f.Visitors > 0 {
			r.done.Forgotten = append(r.done.Forgotten, f)
		}
		if err != nil {
			return fmt.Errorf("forget visitors of app %s: %w", app.Name, err)
		}
		return nil
	})
	if err == nil && !r.isDryRun {
		r.forgotOn.Store(dayNumber(r.today))
	}
	return err
}

func (r *run) forgetInApp(ctx context.Context, app int32, f *VisitorsForgotten) error {
	if r.isDryRun {
		return r.inLongTx(ctx, func(q queries) (err error) {
			f.Visitors, err = q.VisitorsUnseenCount(ctx, app, f.Before)
			return err
		})
	}
	for most := int32(visitorsRead); ; {
		var unseen []VisitorsUnseenRow
		if err := r.inLongTx(ctx, func(q queries) (err error) {
			unseen, err = q.VisitorsUnseen(ctx, VisitorsUnseenParams{AppID: app, Before: f.Before, N: most})
			return err
		}); err != nil {
			return err
		}
		last := len(unseen) < int(most)
		if !last {
			unseen = unseen[:lastWhole(unseen, len(unseen))]
			if len(unseen) == 0 {
				most *= 2
				continue
			}
		}
		if err := r.forgetBatch(ctx, app, f, unseen); err != nil || last {
			return err
		}
	}
}

// forgetBatch forgets visitors in several transactions that lock their sites briefly. A visitor is forgotten for a site and
// all its pages in the same transaction. Otherwise a forgotten visitor who returns could be new to a page but not to the site.
// Then a page could have more visitors than its site.
func (r *run) forgetBatch(ctx context.Context, app int32, f *VisitorsForgotten, unseen []VisitorsUnseenRow) error {
	for len(unseen) > 0 {
		n := len(unseen)
		if n > visitorsAtOnce {
			n = lastWhole(unseen, visitorsAtOnce+1)
		}
		for n == 0 || n < len(unseen) && sameVisitor(unseen[n-1], unseen[n]) {
			n++ // a visitor with more pages than fit gets a transaction of their own
		}
		p := VisitorsForgetParams{App: app, Before: f.Before, Pages: make([]int64, n), Ips: make([]netip.Addr, n)}
		for i, v := range unseen[:n] {
			p.Pages[i], p.Ips[i] = v.PageID, v.Ip
		}
		var some int64
		if err := r.inLongTx(ctx, func(q queries) (err error) { some, err = q.VisitorsForget(ctx, p); return err }); err != nil {
			return err
		}
		f.Visitors += some
		unseen = unseen[n:]
		if err := r.pause(ctx, forgetPause); err != nil {
			return err
		}
	}
	return nil
}

// lastWhole returns how many of the first n rows can be processed without splitting the rows of one visitor of a site. It
// leaves out the last visitor in the n rows, because more rows of this visitor may follow.
func lastWhole(rows []VisitorsUnseenRow, n int) int {
	for n--; n > 0 && sameVisitor(rows[n-1], rows[n]); n-- {
	}
	return n
}

func sameVisitor(a, b VisitorsUnseenRow) bool { return a.SiteID == b.SiteID && a.Ip == b.Ip }

// forgetLogs deletes the records of counted log lines on days that their apps no longer keep.
func (r *run) forgetLogs(ctx context.Context) error {
	if r.isDryRun {
		return nil
	}
	if err := r.inLongTx(ctx, func(q queries) error { _, err := q.LogLinesForget(ctx); return err }); err != nil {
		return fmt.Errorf("forget the lines of logs: %w", err)
	}
	return nil
}
