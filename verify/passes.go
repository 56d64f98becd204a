package verify

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"footfall/db"
)

// The passes over the tables. Each query that holds promises belongs to one.
const (
	passTargets = "targets"
	passSites   = "sites"
	passInbox   = "inbox"
)

// finding is what a query returns for a measure. All queries of verify return the same columns.
type finding = db.VerifyTotalsRow

// check runs a query.
type check func(ctx context.Context, q *db.Queries) ([]finding, error)

// findings converts the rows of a query, for each of which sqlc makes a type of its own.
func findings[Row finding | db.VerifyDaysRow | db.VerifyRowsRow | db.VerifySketchesRow | db.VerifyVisitorsRow | db.VerifySiteTotalsRow | db.VerifySiteDaysRow | db.VerifyTopsRow | db.VerifyInboxRow](
	rows []Row, err error,
) ([]finding, error) {
	found := make([]finding, len(rows))
	for i, row := range rows {
		found[i] = finding(row)
	}
	return found, err
}

// inbox is the last pass, where no app is asked for: a turn has visits of all of them.
func (v *verifier) inbox(ctx context.Context, s *db.Snapshots) error {
	began := time.Now()
	var found []finding
	if v.App == "" {
		err := s.TakeOfInbox(ctx, func(q *db.Queries) (err error) {
			found, err = findings(q.VerifyInbox(ctx, manyAtMost))
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", passInbox, err)
		}
	}
	v.add(&piece{pass: passInbox, pace: newPace(1), size: 1}, found, time.Since(began))
	return nil
}

func (t *targets) totals(ctx context.Context, q *db.Queries) ([]finding, error) {
	return findings(q.VerifyTotals(ctx, db.VerifyTotalsParams{N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed}))
}

func (t *targets) days(ctx context.Context, q *db.Queries) ([]finding, error) {
	return findings(q.VerifyDays(ctx, db.VerifyDaysParams{N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed}))
}

// rows looks at each visitor only where the sums over all of a target are wrong.
func (t *targets) rows(ctx context.Context, q *db.Queries) ([]finding, error) {
	found, err := findings(q.VerifyRows(ctx, db.VerifyRowsParams{
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
	each, err := findings(q.VerifyVisitors(ctx, db.VerifyVisitorsParams{N: manyAtMost, Targets: unchained, FromDay: t.fromDay}))
	return append(slices.Delete(found, at, at+1), each...), err
}

// sketches makes some of them anew.
func (t *targets) sketches(ctx context.Context, q *db.Queries) ([]finding, error) {
	return findings(q.VerifySketches(ctx, db.VerifySketchesParams{
		N: manyAtMost, Low: t.low, High: t.high, Whole: t.whole, Targets: t.listed, FromDay: t.fromDay, Seed: t.seed, Sampled: t.sketched,
	}))
}

// overSites walks over groups of the sites that were met among the targets, and then over the apps
// of which all sites are checked; over each day by day.
type overSites struct {
	*verifier
	begun    bool
	groups   []group
	pace     *pace // in days, of the first group
	afterDay int32 // up to which the first group has been handed out
}

// group is some sites, or an app.
type group struct {
	sites []int64
	app   int32
}

const sitesAtOnce = 500

func (w *overSites) begin(ctx context.Context, q *db.Queries) error {
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
	w.begun, w.pace = true, newPace(1)
	return nil
}

func (w *overSites) next(ctx context.Context, q *db.Queries) (*piece, error) {
	if !w.begun {
		if err := w.begin(ctx, q); err != nil {
			return nil, err
		}
	}
	if len(w.groups) == 0 {
		return nil, nil
	}
	days := w.pace.size
	until, err := q.VerifyNextDay(ctx, db.VerifyNextDayParams{After: w.afterDay, Skip: int32(days - 1)})
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
		checks = append(checks, func(ctx context.Context, q *db.Queries) ([]finding, error) {
			return findings(q.VerifySiteTotals(ctx, db.VerifySiteTotalsParams{N: manyAtMost, Sites: g.sites}))
		})
	}
	if g.app == 0 {
		checks = append(checks, func(ctx context.Context, q *db.Queries) ([]finding, error) {
			return findings(q.VerifySiteDays(ctx, db.VerifySiteDaysParams{N: manyAtMost, Sites: g.sites, AfterDay: after, UntilDay: until}))
		})
	}
	return append(checks, func(ctx context.Context, q *db.Queries) ([]finding, error) {
		return findings(q.VerifyTops(ctx, db.VerifyTopsParams{N: manyAtMost, App: g.app, Sites: g.sites, AfterDay: after, UntilDay: until}))
	})
}
