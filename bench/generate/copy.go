package generate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/bench"
	"footfall/bench/tables"
	"footfall/db"
	"footfall/visit"
)

// write fills the tables, over two connections.
func (g *generation) write(ctx context.Context, appID int32) error {
	defer g.tellProgress()()
	if err := g.connected(ctx, func(ctx context.Context, conn *pgx.Conn) error { return g.makeTargets(ctx, conn, appID) }); err != nil {
		return err
	}
	return together(ctx,
		func(ctx context.Context) error { return g.connected(ctx, g.copyVisitors) },
		func(ctx context.Context) error {
			return g.connected(ctx, func(ctx context.Context, conn *pgx.Conn) error {
				if err := g.copyVisits(ctx, conn); err != nil {
					return err
				}
				return g.copyNumbers(ctx, conn)
			})
		})
}

func (g *generation) connected(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	conn, err := bench.Connect(ctx, g.url, map[string]string{"synchronous_commit": "off"}) // it need not wait for the disk
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return f(ctx, conn)
}

// together runs some at once, and ends all when the first fails.
func together(ctx context.Context, fs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, f := range fs {
		all.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// tellProgress tells every few seconds how far it is, until the function that it returns is called.
func (g *generation) tellProgress() (stop func()) {
	began := time.Now()
	tick := time.NewTicker(5 * time.Second)
	end := make(chan struct{}) // ends the goroutine
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				done := g.done.Load()
				left := time.Duration(float64(time.Since(began)) * float64(g.total-done) / float64(max(done, 1)))
				g.progress(fmt.Sprintf("%s of %s rows, %d %%, %s left", bench.Grouped(float64(done)), bench.Grouped(float64(g.total)),
					100*done/g.total, left.Round(time.Second)))
			}
		}
	})
	return func() { tick.Stop(); close(end); ended.Wait() }
}

// copyRows writes rows of one table.
func (g *generation) copyRows(ctx context.Context, conn *pgx.Conn, table string, columns []string, from pgx.CopyFromSource) error {
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, from); err != nil {
		return fmt.Errorf("bench: fill %s: %w", table, err)
	}
	return nil
}

// makeTargets makes the sites, and then the pages, and finds out their ids.
func (g *generation) makeTargets(ctx context.Context, conn *pgx.Conn, appID int32) error {
	q := tables.New(conn)
	firsts := g.drawn.firstVisits()
	err := g.copyRows(ctx, conn, "pages", []string{"app_id", "created_at", "uri"}, pgx.CopyFromSlice(g.Sites, func(site int) ([]any, error) {
		g.done.Add(1)
		return []any{appID, g.drawn.moment(firsts[site]), siteName(site)}, nil
	}))
	if err != nil {
		return err
	}
	sites, err := q.TargetsInOrder(ctx, appID)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	err = g.copyRows(ctx, conn, "pages", []string{"app_id", "site_id", "created_at", "uri"}, pgx.CopyFromSlice(g.Pages, func(page int) ([]any, error) {
		g.done.Add(1)
		return []any{appID, sites[g.drawn.siteOf[page]].ID, g.drawn.moment(firsts[g.Sites+page]), g.drawn.uri(page)}, nil
	}))
	if err != nil {
		return err
	}
	all, err := q.TargetsInOrder(ctx, appID)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	lastDay, today := g.dayID(g.Days-1), int64(0)
	for i, target := range all {
		uri := siteName(i)
		if i >= g.Sites {
			uri = g.drawn.uri(i - g.Sites)
		}
		if target.Uri != uri {
			return fmt.Errorf("bench: target %d is %s and should be %s", i, target.Uri, uri)
		}
		if g.drawn.dayOf(firsts[i]) == g.Days-1 {
			today++
		}
		g.ids = append(g.ids, target.ID)
	}
	return q.TallyPut(ctx, tables.TallyPutParams{AppID: appID, DayID: lastDay, Today: today})
}

// dayID is a day as the tables write it.
func (g *generation) dayID(day int) int32 { return visit.DayOf(g.drawn.days[day], time.UTC) }

// copyDays writes the rows of one table day by day. Columns stand with commas between them.
func copyDays[T any](ctx context.Context, g *generation, conn *pgx.Conn, table, columns string, rows func(dayOfRows) []targetRow[T], values func(page int64, row targetRow[T], day int32) []any) error {
	for i, day := range g.days {
		all, id := rows(day), g.dayID(i)
		err := g.copyRows(ctx, conn, table, strings.Split(columns, ","), pgx.CopyFromSlice(len(all), func(n int) ([]any, error) {
			g.done.Add(1)
			return values(g.ids[all[n].target], all[n], id), nil
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *generation) copyVisitors(ctx context.Context, conn *pgx.Conn) error {
	return copyDays(ctx, g, conn, "visitors", "page_id,rank,first_day,last_day,ip", func(d dayOfRows) []targetRow[visitorRow] { return d.visitors },
		func(page int64, v targetRow[visitorRow], day int32) []any {
			return []any{page, int64(v.row.rank), day, g.dayID(int(v.row.last)), g.drawn.address(v.row.visitor)}
		})
}

func (g *generation) copyVisits(ctx context.Context, conn *pgx.Conn) error {
	for day := range g.days {
		if _, err := db.New(conn).VisitsDayMake(ctx, g.dayID(day)); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return copyDays(ctx, g, conn, "visits", "page_id,day_id,previous_day,ip", func(d dayOfRows) []targetRow[cameRow] { return d.came },
		func(page int64, c targetRow[cameRow], day int32) []any {
			previous := int32(0)
			if c.row.previous >= 0 {
				previous = g.dayID(int(c.row.previous))
			}
			return []any{page, day, previous, g.drawn.address(c.row.visitor)}
		})
}

// copyNumbers fills the daily numbers and the sums.
func (g *generation) copyNumbers(ctx context.Context, conn *pgx.Conn) error {
	err := copyDays(ctx, g, conn, "days", "page_id,site_id,day_id,hot,pv,new_visitors", func(d dayOfRows) []targetRow[dayRow] { return d.days },
		func(page int64, d targetRow[dayRow], day int32) []any {
			return []any{page, g.siteID(d.target), day, int64(d.row.hot), int64(d.row.pv), int64(d.row.uv)}
		})
	if err != nil {
		return err
	}
	err = copyDays(ctx, g, conn, "open_returns", "page_id,day_id,previous_day,visitors", func(d dayOfRows) []targetRow[returnRow] { return d.returns },
		func(page int64, r targetRow[returnRow], day int32) []any {
			return []any{page, day, g.dayID(int(r.row.previous)), int64(r.row.visitors)}
		})
	if err != nil {
		return err
	}
	return g.copyRows(ctx, conn, "counters", []string{"page_id", "hot", "pv", "uv"}, pgx.CopyFromSlice(len(g.sums), func(n int) ([]any, error) {
		g.done.Add(1)
		return []any{g.ids[n], int64(g.sums[n].hot), int64(g.sums[n].pv), int64(g.sums[n].uv)}, nil
	}))
}

// siteID is the id of a page's site; nil for a site.
func (g *generation) siteID(target int32) *int64 {
	if int(target) < g.Sites {
		return nil
	}
	return &g.ids[g.drawn.siteOf[int(target)-g.Sites]]
}

// settle lets the planner know the tables, completes the days among the generated ones that were
// closed before, and tells how large the tables are.
func (g *generation) settle(ctx context.Context, appID int32) (sizes []TableSize, err error) {
	g.progress("vacuuming")
	err = g.connected(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := tables.New(conn).TablesVacuum(ctx); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		closed := tables.ClosedDaysCompleteParams{AppID: appID, FromDay: g.dayID(0), ToDay: g.dayID(g.Days - 1)}
		if err := tables.New(conn).ClosedDaysComplete(ctx, closed); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		sizes, err = tableSizes(ctx, conn)
		return err
	})
	return sizes, err
}
