package verify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"footfall/db"
)

// The passes over the tables. Each query that holds promises belongs to one.
const (
	passTargets = "targets"
	passSites   = "sites"
	passPeople  = "people"
	passLines   = "lines"
)

// finding is what a query returns for a measure. All queries of verify return the same columns.
type finding = VerifyTotalsRow

// check runs a query.
type check func(ctx context.Context, q *Queries) ([]finding, error)

// findings converts the rows of a query, for each of which sqlc makes a type of its own.
func findings[Row finding | VerifyDaysRow | VerifyTagsRow | VerifyTagRowsRow | VerifyRowsRow | VerifySketchesRow | VerifyVisitorsRow |
	VerifySiteVisitorsRow | VerifySiteTotalsRow | VerifySiteDaysRow | VerifySiteVisitsRow | VerifyTopsRow | VerifyPeopleRow | VerifyLinesRow |
	VerifyLineDaysRow | VerifyAheadRow | VerifyBelongingRow](
	rows []Row, err error,
) ([]finding, error) {
	found := make([]finding, len(rows))
	for i, row := range rows {
		found[i] = finding(row)
	}
	return found, err
}

// piece is what is checked in one snapshot: the one in which it was chosen.
type piece struct {
	pass   string
	weight int64 // rows, roughly
	pace   *pace // by which it was chosen
	size   float64
	checks []check
}

// walk hands out the pieces of a pass one after the other, and nil when it has come to its end. The
// caller holds v.mu.
type walk struct {
	pass string
	next func(ctx context.Context, q *Queries) (*piece, error)
}

// next returns the next piece of any pass, nil when all have been handed out.
func (v *verifier) next(ctx context.Context, q *Queries) (*piece, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.walks) > 0 {
		p, err := v.walks[0].next(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("%s: choose what comes next: %w", v.walks[0].pass, err)
		}
		if p != nil {
			v.left[p.pass]++
			return p, nil
		}
		v.passed(v.walks[0].pass)
		v.walks = v.walks[1:]
	}
	return nil, nil
}

// pace is how much is taken on in one snapshot: as much as there is time for, going by the last
// one, but no less than the first, however slow everything is.
type pace struct{ first, size float64 }

func newPace(first float64) *pace {
	first = max(1, first)
	return &pace{first, first}
}

const (
	firstRows = 20_000 // a second: few enough for any server
	// hoursAtOnce is how many hours of logs are checked in the first piece, a second: each has some blocks.
	hoursAtOnce = 2000
	steepest    = 4 // how many times as much as before is taken on at most

	// About so many visits are hashed again for sketches: of a larger database each run makes some
	// sketches anew, the next one others.
	visitsSketched = 1_000_000

	// Most targets have so many rows at least. More than fit by that are not looked at, nor more
	// than steepest times those of the last piece: the next piece begins with the others.
	rowsOfTarget = 10
)

// took learns how long a piece took.
func (p *pace) took(size float64, took, within time.Duration) {
	p.size = max(p.first, min(p.size*steepest, size*float64(within)/float64(max(took, 1))))
}

// overTargets walks over the targets asked for, in the order of their numbers.
type overTargets struct {
	*verifier
	pace  *pace
	from  int64   // the first number that has not been handed out
	met   float64 // how many targets the last piece had
	ended bool
	seed  int64 // chooses sketches, in each run others
}

func (v *verifier) overTargets() *overTargets {
	return &overTargets{verifier: v, pace: newPace(firstRows * v.Within.Seconds()), from: math.MinInt64, met: math.MaxInt32,
		seed: rand.Int64()} //nolint:gosec // it is no secret
}

// targets are a range of targets.
type targets struct {
	low, high int64
	whole     bool // everything in the range, including rows of no page
	listed    []int64
	fromDay   int32 // the first day of which any app keeps its visits
	seed      int64 // chooses the sketches that are made anew, and visitors
	sketched  int32 // how many of both, of sampleParts
}

// next returns the targets that come next, nil at the end. Each target is in one piece.
func (w *overTargets) next(ctx context.Context, q *Queries) (*piece, error) {
	if w.ended {
		return nil, nil
	}
	scope, err := q.VerifyScope(ctx)
	if err != nil {
		return nil, err
	}
	w.beingDeleted = max(w.beingDeleted, scope.BeingDeleted)
	next, err := q.VerifyNext(ctx, VerifyNextParams{
		FromID: w.from, Size: int64(w.pace.size), Many: int32(min(w.pace.size/rowsOfTarget, w.met*steepest)) + 1,
		App: w.App, Seed: w.Seed, Sampled: int32(math.Round(w.Sample / 100 * sampleParts)),
	})
	if err != nil {
		return nil, err
	}
	t := &targets{
		low: w.from, high: next.High, listed: next.Targets, fromDay: scope.FromDay,
		seed: w.seed, sketched: int32(min(1, visitsSketched/float64(max(w.all, 1))) * sampleParts),
		whole: w.App == "" && w.Sample >= 100 && scope.BeingDeleted == 0,
	}
	if next.High == 0 {
		w.ended = true
		if !t.whole {
			return nil, nil
		}
		t.high = math.MaxInt64
	}
	checks := []check{t.totals, t.days, t.tags, t.rows, t.siteVisitors, t.sketches}
	if t.low == math.MinInt64 {
		checks = append(checks, func(ctx context.Context, q *Queries) ([]finding, error) {
			return findings(q.VerifyAhead(ctx, manyAtMost, w.App))
		}, func(ctx context.Context, q *Queries) ([]finding, error) {
			return findings(q.VerifyBelonging(ctx, manyAtMost, w.App))
		})
	}
	w.from, w.met = t.high+1, float64(next.Met)
	w.sites = append(w.sites, next.Sites...)
	if t.whole {
		t.listed = nil // the range says it all
	}
	return &piece{pass: passTargets, weight: next.Weight, pace: w.pace, size: float64(next.Weight), checks: checks}, nil
}

func (t *targets) totals(ctx context.Context, q *Queries) ([]finding, error) {
	return findings(q.VerifyTotals(ctx, VerifyTotalsParams{N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed}))
}

func (t *targets) days(ctx context.Context, q *Queries) ([]finding, error) {
	return findings(q.VerifyDays(ctx, VerifyDaysParams{N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed}))
}

// tags looks at what is not added up yet only where sums are too low.
func (t *targets) tags(ctx context.Context, q *Queries) ([]finding, error) {
	found, err := findings(q.VerifyTags(ctx, VerifyTagsParams{N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed}))
	if err != nil {
		return nil, err
	}
	rows, err := findings(q.VerifyTagRows(ctx, VerifyTagRowsParams{
		N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed, FromDay: t.fromDay, Seed: t.seed, Sampled: t.sketched,
	}))
	if found = append(found, rows...); err != nil {
		return nil, err
	}
	var waiting map[tagSum]int64
	for i := range found {
		f := &found[i]
		if f.Broken == 0 || !slices.Contains([]string{"hours", "hours newcomers", tagRowsMeasure}, f.Measure) {
			continue
		}
		if waiting == nil {
			if waiting, err = tagsWaiting(ctx, q); err != nil {
				return nil, err
			}
		}
		kept := f.Offenders[:0]
		for o := range slices.Chunk(f.Offenders, offenceNumbers) {
			if o[3] += waiting[tagSum{o[0], o[1], o[2]}]; o[3] >= o[4] && o[3] <= o[5] {
				f.Broken--
				continue
			}
			kept = append(kept, o...)
		}
		f.Offenders = kept
	}
	return found, nil
}

// tagSum is a sum of a target, a day and a tag: the visitors with the tag; tag 0: in all hours; day 0 and tag 0:
// the newcomers in all hours of all days.
type tagSum struct{ target, day, tag int64 }

// tagsWaiting returns how many visitors will be added to sums.
func tagsWaiting(ctx context.Context, q *Queries) (map[tagSum]int64, error) {
	rows, err := q.VerifyTagsWaiting(ctx)
	if err != nil {
		return nil, err
	}
	news := make([]db.TagNews, len(rows))
	for i, row := range rows {
		news[i] = db.TagNews(row)
	}
	sums, _ := db.SumTags(news) // what is damaged will not be added either
	hours, err := q.VerifyHoursWaiting(ctx, VerifyHoursWaitingParams(sums))
	waiting := make(map[tagSum]int64, len(sums.Pages))
	for i, page := range sums.Pages {
		waiting[tagSum{page, int64(sums.Days[i]), int64(sums.Tags[i])}] = sums.Pvs[i]
	}
	for _, h := range hours {
		waiting[tagSum{h.PageID, int64(h.DayID), 0}] = h.Pv
		waiting[tagSum{h.PageID, 0, 0}] += h.Newcomers
	}
	return waiting, err
}

// siteVisitors looks whether sites have the visitors of their pages who came last before the days
// that are kept.
func (t *targets) siteVisitors(ctx context.Context, q *Queries) ([]finding, error) {
	return findings(q.VerifySiteVisitors(ctx, VerifySiteVisitorsParams{
		N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed, Seed: t.seed, Sampled: t.sketched,
	}))
}

// rows looks at each visitor only where the sums over all of a target are wrong.
func (t *targets) rows(ctx context.Context, q *Queries) ([]finding, error) {
	found, err := findings(q.VerifyRows(ctx, VerifyRowsParams{
		N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed, FromDay: t.fromDay,
	}))
	at := slices.IndexFunc(found, func(f finding) bool { return f.Measure == "chains" })
	if err != nil || at < 0 {
		return found, err
	}
	var unchained []int64
	for numbers := range slices.Chunk(found[at].Offenders, offenceNumbers) {
		unchained = append(unchained, numbers[0])
	}
	each, err := findings(q.VerifyVisitors(ctx, VerifyVisitorsParams{N: manyAtMost, Targets: unchained, FromDay: t.fromDay}))
	return append(slices.Delete(found, at, at+1), each...), err
}

// sketches makes some of them anew.
func (t *targets) sketches(ctx context.Context, q *Queries) ([]finding, error) {
	return findings(q.VerifySketches(ctx, VerifySketchesParams{
		N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed, FromDay: t.fromDay, Seed: t.seed, Sampled: t.sketched,
	}))
}

// overSites walks over groups of the sites that were met among the targets, and then over the apps
// of which all sites are checked; over each day by day.
type overSites struct {
	*verifier
	groups   []group
	pace     *pace // in days, of the first group; nil: the walk has not begun
	afterDay int32 // up to which the first group has been handed out
}

// group is some sites, or an app.
type group struct {
	sites []int64
	app   int32
}

const sitesAtOnce = 500

func (w *overSites) begin(ctx context.Context, q *Queries) error {
	for sites := range slices.Chunk(w.sites, sitesAtOnce) {
		w.groups = append(w.groups, group{sites: sites})
	}
	if w.Sample >= 100 {
		apps, err := q.VerifyApps(ctx, w.App)
		if err != nil {
			return err
		}
		for _, app := range apps {
			w.groups = append(w.groups, group{app: app})
		}
	}
	w.pace = newPace(1)
	return nil
}

func (w *overSites) next(ctx context.Context, q *Queries) (*piece, error) {
	if w.pace == nil {
		if err := w.begin(ctx, q); err != nil {
			return nil, err
		}
	}
	if len(w.groups) == 0 {
		return nil, nil
	}
	days := w.pace.size
	until, err := q.VerifyNextDay(ctx, w.afterDay, int32(days-1))
	if err != nil {
		return nil, err
	}
	p := &piece{pass: passSites, pace: w.pace, size: days}
	g, after := w.groups[0], w.afterDay
	w.afterDay = until
	if until == 0 {
		until = math.MaxInt32
		// The next group may be far larger: it begins with a day, too.
		w.groups, w.pace, w.afterDay = w.groups[1:], newPace(1), 0
	}
	p.checks = g.checks(after, until)
	return p, nil
}

// checks are those of a group on the days after one, up to another.
func (g group) checks(after, until int32) (checks []check) {
	if g.app == 0 && after == 0 {
		checks = append(checks, func(ctx context.Context, q *Queries) ([]finding, error) {
			return findings(q.VerifySiteTotals(ctx, manyAtMost, g.sites))
		})
	}
	if g.app == 0 {
		checks = append(checks, func(ctx context.Context, q *Queries) ([]finding, error) {
			return findings(q.VerifySiteDays(ctx, VerifySiteDaysParams{N: manyAtMost, Sites: g.sites, AfterDay: after, UntilDay: until}))
		}, func(ctx context.Context, q *Queries) ([]finding, error) {
			return findings(q.VerifySiteVisits(ctx, VerifySiteVisitsParams{N: manyAtMost, Sites: g.sites, AfterDay: after, UntilDay: until}))
		})
	}
	return append(checks, func(ctx context.Context, q *Queries) ([]finding, error) {
		return findings(q.VerifyTops(ctx, VerifyTopsParams{N: manyAtMost, App: g.app, Sites: g.sites, AfterDay: after, UntilDay: until}))
	})
}

// overPeople walks over the two tables of people in the order of their keys, where no sample of sites
// is asked for: first over that of the period before, of which rows are copied into the other one
// meanwhile.
type overPeople struct {
	*verifier
	pace    *pace
	periods []int16 // that have not been handed out; nil: the walk has not begun
	after   VerifyNextPersonRow
}

func (w *overPeople) next(ctx context.Context, q *Queries) (*piece, error) {
	if w.periods == nil && w.Sample >= 100 {
		open, err := q.PeoplePeriod(ctx)
		if err != nil {
			return nil, err
		}
		w.periods = []int16{1 - open, open}
	}
	if len(w.periods) == 0 {
		return nil, nil
	}
	size := w.pace.size
	p := VerifyPeopleParams{N: manyAtMost, App: w.App, Period: w.periods[0], AfterApp: w.after.AppID, After: w.after.ID}
	until, err := q.VerifyNextPerson(ctx, VerifyNextPersonParams{Period: p.Period, AfterApp: p.AfterApp, After: p.After,
		Skip: int32(size) - 1})
	if err != nil {
		return nil, err
	}
	w.after = until
	if until.AppID == 0 { // those that are left
		until.AppID, w.periods = math.MaxInt32, w.periods[1:]
	}
	p.UntilApp, p.Until = until.AppID, until.ID
	return &piece{pass: passPeople, pace: w.pace, size: size, checks: []check{
		func(ctx context.Context, q *Queries) ([]finding, error) { return findings(q.VerifyPeople(ctx, p)) },
	}}, nil
}

// overLines walks over the hours of access logs, in the order of their keys, unless a sample is taken.
type overLines struct {
	*verifier
	pace  *pace
	after VerifyNextHourRow
	ended bool
}

func (w *overLines) next(ctx context.Context, q *Queries) (*piece, error) {
	if w.ended || w.Sample < 100 {
		return nil, nil
	}
	size := w.pace.size
	p := VerifyLinesParams{N: manyAtMost, App: w.App, AfterApp: w.after.AppID, AfterHour: w.after.Hour}
	until, err := q.VerifyNextHour(ctx, VerifyNextHourParams{AfterApp: p.AfterApp, AfterHour: p.AfterHour, Skip: int32(size) - 1})
	if err != nil {
		return nil, err
	}
	checks := []check{func(ctx context.Context, q *Queries) ([]finding, error) { return findings(q.VerifyLines(ctx, p)) }}
	if w.after.AppID == 0 {
		checks = append(checks, func(ctx context.Context, q *Queries) ([]finding, error) {
			return findings(q.VerifyLineDays(ctx, manyAtMost, w.App))
		})
	}
	w.after = until
	if until.AppID == 0 { // those that are left
		until, w.ended = VerifyNextHourRow{AppID: math.MaxInt32, Hour: math.MaxInt32}, true
	}
	p.UntilApp, p.UntilHour = until.AppID, until.Hour
	return &piece{pass: passLines, pace: w.pace, size: size, checks: checks}, nil
}
