package reports

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"footfall/bench"
	"footfall/bench/tables"
	"footfall/db"
	"footfall/visit"
)

// world is what is known of the tables that reports are asked of, for questions and
// visits at random.
type world struct {
	app     string
	appID   int32
	days    []int32 // that were counted, in order
	sites   []string
	came    []tables.VisitsOfDayRow // of one day: pages as often as they are visited
	uv      map[string]int64
	ids     map[string]int64
	targets []tables.TargetsInOrderRow
}

func (r *asking) appsThatCounted(ctx context.Context) (names []string, err error) {
	err = r.asOwner(ctx, func(q owners) error {
		apps, err := q.AppsByPages(ctx)
		for _, app := range apps {
			names = append(names, app.Name)
		}
		return err
	})
	return names, err
}

// owners are the queries of who owns the tables: those that only measuring needs, and
// the service's own.
type owners struct {
	*tables.Queries
	service *db.Queries
}

// asOwner runs f on a connection of its own that sees Footfall's tables.
func (r *asking) asOwner(ctx context.Context, f func(q owners) error) error {
	conn, err := bench.Connect(ctx, r.address, nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	if err := f(owners{tables.New(conn), db.New(conn)}); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

func (r *asking) newWorld(ctx context.Context) (*world, error) {
	w := &world{app: r.made.App, uv: map[string]int64{}, ids: map[string]int64{}}
	err := r.asOwner(ctx, func(q owners) error {
		apps, err := q.AppsByPages(ctx)
		if err != nil {
			return err
		}
		w.appID = apps[0].ID
		if w.days, err = q.DaysOfApp(ctx, w.appID); err != nil {
			return err
		}
		if w.targets, err = q.TargetsInOrder(ctx, w.appID); err != nil {
			return err
		}
		visitors, err := q.VisitorsOfTargets(ctx, w.appID)
		if err != nil {
			return err
		}
		for _, v := range visitors {
			w.uv[v.Uri] = v.Uv
		}
		// Of a day that no earlier run of the benchmark added to: those count today.
		w.came, err = q.VisitsOfDay(ctx, tables.VisitsOfDayParams{AppID: w.appID, Day: w.days[max(0, len(w.days)-8)]})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(w.came) == 0 {
		return nil, fmt.Errorf("data: nobody came on day %d: choose a folder that is new, or that bench generate filled", w.days[max(0, len(w.days)-8)])
	}
	if today := visit.DayOf(time.Now(), time.UTC); today > w.days[len(w.days)-1] {
		w.days = append(w.days, today) // there will be visits when it is asked for
	}
	for _, t := range w.targets {
		w.ids[t.Uri] = t.ID
		if !strings.Contains(t.Uri, "/") {
			w.sites = append(w.sites, t.Uri)
		}
	}
	slices.SortFunc(w.came, func(a, b tables.VisitsOfDayRow) int { // as it is read depends on where it lies
		if c := strings.Compare(a.Uri, b.Uri); c != 0 {
			return c
		}
		return a.Ip.Compare(b.Ip)
	})
	return w, nil
}

// closeDays closes the days that are over, as the service does each night.
func (r *asking) closeDays(ctx context.Context) error {
	return r.asOwner(ctx, func(q owners) error {
		over, err := q.DayOver(ctx)
		if err != nil {
			return err
		}
		for i, day := range r.world.days {
			if day > over {
				break
			}
			began := time.Now()
			closed, err := q.service.DayClose(ctx, day)
			if err != nil {
				return err
			}
			if took := time.Since(began); closed {
				r.report.ClosedMs = append(r.report.ClosedMs, bench.Ms(took))
				if i%10 == 0 {
					r.Progress(fmt.Sprintf("closed day %d of %d in %v", i+1, len(r.world.days), took.Round(time.Millisecond)))
				}
			}
		}
		if err := packReturns(ctx, q); err != nil {
			return err
		}
		return q.ClosedVacuum(ctx)
	})
}

func packReturns(ctx context.Context, q owners) error {
	for p := (db.ReturnsPackParams{N: 1000}); ; {
		some, err := q.service.ReturnsPack(ctx, p)
		if err != nil || some.Packed == 0 {
			return err
		}
		p.FromPage = some.LastPage
	}
}

// randomPage is a page as often as it is visited.
func (w *world) randomPage(random *rand.Rand) string { return w.came[random.IntN(len(w.came))].Uri }

func (w *world) randomSite(random *rand.Rand) string { return w.sites[random.IntN(len(w.sites))] }

// randomDays is a range of so many days: every other time the last ones.
func (w *world) randomDays(random *rand.Rand, length int) (from, to int32) {
	length = min(length, len(w.days))
	end := len(w.days)
	if random.IntN(2) == 0 {
		end = length + random.IntN(len(w.days)-length+1)
	}
	return w.days[end-length], w.days[end-1]
}

// anyDays is a range of any length.
func (w *world) anyDays(random *rand.Rand) (from, to int32) {
	a, b := random.IntN(len(w.days)), random.IntN(len(w.days))
	return w.days[min(a, b)], w.days[max(a, b)]
}

// nextVisit is one that may come now: half of the visits are by those who know the page, a quarter
// by those who know another one, and a quarter by new visitors.
func (w *world) nextVisit(random *rand.Rand) (ip netip.Addr, uri string) {
	v := w.came[random.IntN(len(w.came))]
	switch random.IntN(4) {
	case 0:
		return w.came[random.IntN(len(w.came))].Ip, v.Uri
	case 1:
		at := random.Uint32()
		return netip.AddrFrom4([4]byte{172, byte(at >> 16), byte(at >> 8), byte(at)}), v.Uri
	}
	return v.Ip, v.Uri
}

// loadAverage is that of the machine in the last minute, as the system tells it; ""
// where it does not.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
