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

// The passes over the tables. Each promise belongs to one.
const (
	passTargets = "targets"
	passSites   = "sites"
	passPeople  = "people"
	passLines   = "lines"
)

// piece is what is checked in one snapshot: the one in which it was chosen.
type piece struct {
	pass   string
	weight int64 // rows, roughly
	pace   *pace // by which it was chosen
	size   float64
	proofs ProveParams
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
	p := ProveParams{
		Checks: []string{"targets"}, App: w.App, Low: w.from, High: next.High, Listed: next.Targets, FromDay: scope.FromDay,
		Seed: w.seed, Sampled: int32(min(1, visitsSketched/float64(max(w.all, 1))) * sampleParts),
		Whole: w.App == "" && w.Sample >= 100 && scope.BeingDeleted == 0, // then rows of no page are checked, too
	}
	if next.High == 0 {
		w.ended = true
		if !p.Whole {
			return nil, nil
		}
		p.High = math.MaxInt64
	}
	if p.Low == math.MinInt64 {
		p.Checks = append(p.Checks, "apps")
	}
	w.from, w.met = p.High+1, float64(next.Met)
	w.sites = append(w.sites, next.Sites...)
	if p.Whole {
		p.Listed = nil // the range contains them
	}
	return &piece{pass: passTargets, weight: next.Weight, pace: w.pace, size: float64(next.Weight), proofs: p}, nil
}

// addWaiting adds the sums by tag that batches have not added up yet to the offenders that are too low without
// them, and removes those that are right with them.
func addWaiting(ctx context.Context, q *Queries, found []ProveRow) (err error) {
	var waiting map[tagSum]int64
	for i := range found {
		f := &found[i]
		if f.Broken == 0 || !slices.Contains([]string{"hours", "hours newcomers", tagRowsMeasure}, f.Measure) {
			continue
		}
		if waiting == nil {
			if waiting, err = tagsWaiting(ctx, q); err != nil {
				return err
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
	return nil
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

// overSites walks over groups of the sites that were met among the targets, and then over the apps
// of which all sites are checked; over each day by day.
type overSites struct {
	*verifier
	groups   []ProveParams // each of some sites, or of an app
	pace     *pace         // in days, of the first group; nil: the walk has not begun
	afterDay int32         // up to which the first group has been handed out
}

const sitesAtOnce = 500

func (w *overSites) begin(ctx context.Context, q *Queries) error {
	for sites := range slices.Chunk(w.sites, sitesAtOnce) {
		w.groups = append(w.groups, ProveParams{Checks: []string{"sites", "tops"}, Listed: sites})
	}
	if w.Sample >= 100 {
		apps, err := q.VerifyApps(ctx, w.App)
		if err != nil {
			return err
		}
		for _, app := range apps {
			w.groups = append(w.groups, ProveParams{Checks: []string{"tops"}, OnlyApp: app})
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
	p := &piece{pass: passSites, pace: w.pace, size: days, proofs: w.groups[0]}
	p.proofs.AfterDay, p.proofs.UntilDay, w.afterDay = w.afterDay, until, until
	if until == 0 {
		p.proofs.UntilDay = math.MaxInt32
		// The next group may be far larger: it begins with a day, too.
		w.groups, w.pace, w.afterDay = w.groups[1:], newPace(1), 0
	}
	return p, nil
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
	p := ProveParams{Checks: []string{"people"}, App: w.App, Period: w.periods[0], AfterApp: w.after.AppID, AfterID: w.after.ID}
	until, err := q.VerifyNextPerson(ctx, VerifyNextPersonParams{Period: p.Period, AfterApp: p.AfterApp, After: p.AfterID,
		Skip: int32(size) - 1})
	if err != nil {
		return nil, err
	}
	w.after = until
	if until.AppID == 0 { // those that are left
		until.AppID, w.periods = math.MaxInt32, w.periods[1:]
	}
	p.UntilApp, p.UntilID = until.AppID, until.ID
	return &piece{pass: passPeople, pace: w.pace, size: size, proofs: p}, nil
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
	p := ProveParams{Checks: []string{"lines"}, App: w.App, AfterApp: w.after.AppID, AfterHour: w.after.Hour}
	until, err := q.VerifyNextHour(ctx, VerifyNextHourParams{AfterApp: p.AfterApp, AfterHour: p.AfterHour, Skip: int32(size) - 1})
	if err != nil {
		return nil, err
	}
	if w.after.AppID == 0 {
		p.Checks = append(p.Checks, "line days")
	}
	w.after = until
	if until.AppID == 0 { // those that are left
		until, w.ended = VerifyNextHourRow{AppID: math.MaxInt32, Hour: math.MaxInt32}, true
	}
	p.UntilApp, p.UntilHour = until.AppID, until.Hour
	return &piece{pass: passLines, pace: w.pace, size: size, proofs: p}, nil
}
