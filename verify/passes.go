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

// A verification reads the tables in these passes. Each promise (a rule for the stored numbers) is checked in one of the
// passes.
const (
	passTargets = "targets"
	passSites   = "sites"
	passPeople  = "people"
	passLines   = "lines"
)

// piece is a part of a pass. The same snapshot is used to choose and to check a piece.
type piece struct {
	pass   string
	weight int64 // approximate number of rows, for the progress; 0 unless pass is passTargets
	pace   *pace // the pace that has chosen the size of this piece
	size   float64
	proofs ProveParams
}

// walk divides a pass over the tables into pieces. next returns the next piece, and nil after the last piece. Callers of next
// hold verifier.mu.
type walk struct {
	pass string
	next func(ctx context.Context, q *Queries) (*piece, error)
}

// next returns the next piece of any pass, or nil if all pieces have been returned.
func (v *verifier) next(ctx context.Context, q *Queries) (*piece, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.walks) > 0 {
		p, err := v.walks[0].next(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("%s: choose the next part: %w", v.walks[0].pass, err)
		}
		if p != nil {
			v.remaining[p.pass]++
			return p, nil
		}
		v.finishPart(v.walks[0].pass)
		v.walks = v.walks[1:]
	}
	return nil, nil
}

// pace chooses the size of the next piece so that checking it takes about Options.Within. It uses the time that the
// last piece took. The size is never below the first size, even if the server is slow.
type pace struct{ first, size float64 }

func newPace(first float64) *pace {
	first = max(1, first)
	return &pace{first, first}
}

const (
	// Rows are checked in pieces. The first piece has this number of rows for each second in Options.Within: few enough for any
	// server.
	firstRows = 20_000
	// The first piece of lineWalk has this number of hours for each second in Options.Within. This number is lower than
	// firstRows, because each hour has several blocks of lines.
	hoursAtOnce = 2000
	steepest    = 4 // maximum growth from one piece to the next

	// To check sketches (which estimate unique visitors), each run recomputes them for about this many visits. If the database
	// has more visits, each run chooses a different sample of sketches.
	visitsSketched = 1_000_000

	// Most targets (pages and sites) have at least this many rows. A piece has at most pace.size/rowsOfTarget targets, and at
	// most steepest times as many targets as the last piece.
	rowsOfTarget = 10
)

// took adapts the size of the next piece to the time that a piece of this size took.
func (p *pace) took(size float64, took, within time.Duration) {
	p.size = max(p.first, min(p.size*steepest, size*float64(within)/float64(max(took, 1))))
}

// targetWalk walks over the selected targets (pages and sites) in order of id.
type targetWalk struct {
	*verifier
	pace  *pace
	from  int64   // the next id to check
	met   float64 // number of targets in the last piece
	ended bool
	seed  int64 // selects the sketches to check; different in each run
}

func (v *verifier) targetWalk() *targetWalk {
	return &targetWalk{verifier: v, pace: newPace(firstRows * v.Within.Seconds()), from: math.MinInt64, met: math.MaxInt32,
		seed: rand.Int64()} //nolint:gosec // not a secret
}

// next returns the next piece of targets, or nil at the end. Each target is in exactly one piece.
func (w *targetWalk) next(ctx context.Context, q *Queries) (*piece, error) {
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
		Whole: w.App == "" && w.Sample >= 100 && scope.BeingDeleted == 0, // check the whole range of ids, which also finds rows without a page
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
		p.Listed = nil // not needed, because the whole range of ids is checked
	}
	return &piece{pass: passTargets, weight: next.Weight, pace: w.pace, size: float64(next.Weight), proofs: p}, nil
}

// addWaiting corrects the results of checks that found sums by tag to be too low. A sum may seem too low only because some
// tags are still in the table tag_news, and are not yet added to tag_days. addWaiting adds them to the sum. If the sum is then
// correct, it is no longer an offender (a number that breaks a promise).
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

// tagSum identifies a sum: the number of visitors of a page or site who have a tag on a day. The hour of a visit is also a
// tag. Tag 0 means the sum over all hours. Day 0 with tag 0 means the new visitors in all hours of all days.
type tagSum struct{ target, day, tag int64 }

// tagsWaiting returns the sums of the tags in tag_news, which are not yet added to tag_days.
func tagsWaiting(ctx context.Context, q *Queries) (map[tagSum]int64, error) {
	rows, err := q.VerifyTagsWaiting(ctx)
	if err != nil {
		return nil, err
	}
	news := make([]db.TagNews, len(rows))
	for i, row := range rows {
		news[i] = db.TagNews(row)
	}
	sums, _ := db.SumTags(news) // ignore the error: unreadable parts of damaged rows are never added
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

// siteWalk walks over the sites that targetWalk has found. It divides them into groups. If all sites are checked, each app is
// an additional group. A piece is a range of closed days of one group.
type siteWalk struct {
	*verifier
	groups   []ProveParams // the groups that are left to check; each consists of some sites, or is an app
	pace     *pace         // number of days in the next piece of the first group; nil if the walk has not started
	afterDay int32         // last day of the first group's previous piece
}

const sitesAtOnce = 500

func (w *siteWalk) begin(ctx context.Context, q *Queries) error {
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

func (w *siteWalk) next(ctx context.Context, q *Queries) (*piece, error) {
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
		// The next group may be far larger, so it also starts with one day.
		w.groups, w.pace, w.afterDay = w.groups[1:], newPace(1), 0
	}
	return p, nil
}

// personWalk walks over the table people (linked ids of visitors), in order of key. The table has a partition for the present
// period of time, and one for the previous period. The walk starts with the previous period, because instances may copy its rows
// to the present period during the walk. If only a sample of sites is checked, personWalk returns no pieces.
type personWalk struct {
	*verifier
	pace    *pace
	periods []int16 // periods that are left to check; nil if the walk has not started
	after   VerifyNextPersonRow
}

func (w *personWalk) next(ctx context.Context, q *Queries) (*piece, error) {
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
	if until.AppID == 0 { // the piece contains all remaining rows of this period
		until.AppID, w.periods = math.MaxInt32, w.periods[1:]
	}
	p.UntilApp, p.UntilID = until.AppID, until.ID
	return &piece{pass: passPeople, pace: w.pace, size: size, proofs: p}, nil
}

// lineWalk walks over the rows of log_hours (counted lines of logs, by hour) in order of key. If only a sample of sites is
// checked, it returns no pieces.
type lineWalk struct {
	*verifier
	pace  *pace
	after VerifyNextHourRow
	ended bool
}

func (w *lineWalk) next(ctx context.Context, q *Queries) (*piece, error) {
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
	if until.AppID == 0 { // the piece contains all remaining hours
		until, w.ended = VerifyNextHourRow{AppID: math.MaxInt32, Hour: math.MaxInt32}, true
	}
	p.UntilApp, p.UntilHour = until.AppID, until.Hour
	return &piece{pass: passLines, pace: w.pace, size: size, proofs: p}, nil
}
