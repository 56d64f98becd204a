package reports

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"footfall/bench/tables"
	"footfall/visit"
)

// world is what the tables hold of which reports are asked for, for questions and visits at random.
type world struct {
	days    []int32                 // that were counted, in order
	came    []tables.VisitsOfDayRow // of one day: pages as often as they are visited
	sites   []tables.TargetsInOrderRow
	targets []tables.TargetsInOrderRow
}

func newWorld(ctx context.Context, q *tables.Queries, app string) (w *world, err error) {
	w = &world{}
	id, err := q.AppID(ctx, app)
	if err != nil {
		return nil, err
	}
	if w.days, err = q.DaysOfApp(ctx, id); err != nil {
		return nil, err
	}
	if w.targets, err = q.TargetsInOrder(ctx, id); err != nil {
		return nil, err
	}
	// Of a day that no earlier run of the benchmark added to: those count today.
	day := w.days[max(0, len(w.days)-8)]
	if w.came, err = q.VisitsOfDay(ctx, tables.VisitsOfDayParams{AppID: id, Day: day}); err != nil {
		return nil, err
	}
	if len(w.came) == 0 {
		return nil, fmt.Errorf("data: nobody came on day %d: choose a folder that is new, or that bench generate filled", day)
	}
	if today := visit.DayOf(time.Now(), time.UTC); today > w.days[len(w.days)-1] {
		w.days = append(w.days, today) // there will be visits when it is asked for
	}
	for _, t := range w.targets {
		if !strings.Contains(t.Uri, "/") {
			w.sites = append(w.sites, t)
		}
	}
	return w, nil
}

// randomPage is a page as often as it is visited.
func (w *world) randomPage(random *rand.Rand) tables.TargetsInOrderRow {
	v := w.came[random.IntN(len(w.came))]
	return tables.TargetsInOrderRow{ID: v.ID, Uri: v.Uri}
}

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

// questions are paths of reports, in the API and on the dashboard, with what is drawn at random in
// braces: a page as often as it is visited, any site, a visitor of a page, or so many days.
var questions = []string{
	"/api/apps/{app}/sites",
	"/api/apps/{app}/pages?order=pv&limit=20&{30 days}",
	"/api/apps/{app}/pages?site={any}&order=hot&limit=20&{30 days}",
	"/api/apps/{app}/pages?site={any}&order=uri&limit=100&{30 days}",
	"/api/apps/{app}/pages?order=pv&limit=1000",
	"/api/apps/{app}/days?uri=http://{page}&{60 days}",
	"/api/apps/{app}/visitors?uri=http://{page}&{day}",
	"/api/apps/{app}/ranks?uri=http://{page}&ip={visitor}",
	"/api/apps/{app}/uniques?uri=http://{page}&{days}",
	"/api/apps/{app}/uniques?site={any}&{days}",
	"/api/apps/{app}/uniques?prefix={site}/&{days}",
	"/api/apps/{app}/tags?site={any}&name=source&{60 days}",
	"/dash/{app}/{any}?range=all&value=google",
	"/",
}

func init() {
	for _, span := range []string{"today", "7d", "30d", "90d", "all"} {
		questions = append(questions, "/dash/{app}?range="+span, "/dash/{app}/{any}?range="+span, "/dash/{app}/{site}?page=/{path}&range="+span)
	}
}

// drawn puts what is drawn into a question.
func (r *asking) drawn(random *rand.Rand, question string) string {
	w := r.world
	came := w.came[random.IntN(len(w.came))]
	site, path, _ := strings.Cut(came.Uri, "/")
	between := func(from, to int32) string { return fmt.Sprintf("from=%d&to=%d", from, to) }
	day, _ := w.randomDays(random, 1)
	return strings.NewReplacer(
		"{app}", r.made.App, "{any}", w.sites[random.IntN(len(w.sites))].Uri, "{page}", came.Uri, "{site}", site, "{path}", path, "{visitor}", came.Ip.String(),
		"{30 days}", between(w.randomDays(random, 30)), "{60 days}", between(w.randomDays(random, 60)), "{days}", between(w.anyDays(random)),
		"{day}", fmt.Sprintf("day=%d", day),
	).Replace(question)
}
