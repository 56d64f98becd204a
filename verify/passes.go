package verify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"footfall/db"
)

// finding is what a query returns for a measure. All queries of verify return the same columns.
type finding = db.VerifyTotalsRow

// piece is a piece of work, which one connection does in one go.
type piece struct {
	pass   int
	weight int64 // rows, roughly
	work   func(ctx context.Context, q *db.Queries) ([]finding, error)
}

// plan cuts the work into pieces, the largest first, so that all connections are done at about the
// same time.
func (v *verifier) plan(ctx context.Context, q *db.Queries) (pieces []piece, err error) {
	scope, err := q.VerifyScope(ctx)
	if err != nil {
		return nil, err
	}
	v.fromDay, v.beingDeleted = scope.FromDay, scope.BeingDeleted
	v.whole = v.App == "" && v.Sample >= 100 && v.beingDeleted == 0
	ranges, err := q.VerifyRanges(ctx, db.VerifyRangesParams{
		App: v.App, Seed: v.Seed, Sampled: int32(math.Round(v.Sample / 100 * sampleParts)), Size: rangeRows,
	})
	if err != nil {
		return nil, fmt.Errorf("cut into ranges: %w", err)
	}
	if v.whole {
		ranges = boundless(ranges)
	}
	var sites []int64
	var weight int64 // of all ranges
	for _, r := range ranges {
		pieces = append(pieces, v.rangePieces(r)...)
		sites = append(sites, r.Sites...)
		weight += r.Weight
	}
	var apps []int32
	if v.Sample >= 100 {
		if apps, err = q.VerifyApps(ctx, v.App); err != nil {
			return nil, fmt.Errorf("list apps: %w", err)
		}
	}
	pieces = append(pieces, v.sitePieces(sites, apps, weight)...)
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(b.weight, a.weight) })
	v.left = map[int]int{}
	for _, p := range pieces {
		v.left[p.pass]++
		v.all += p.weight
	}
	return pieces, nil
}

// boundless stretches ranges until every number lies in one of them, so that rows of no page are
// found, too.
func boundless(ranges []db.VerifyRangesRow) []db.VerifyRangesRow {
	if len(ranges) == 0 {
		ranges = []db.VerifyRangesRow{{}}
	}
	next := int64(math.MinInt64)
	for i := range ranges {
		ranges[i].Low, next = next, ranges[i].High+1
	}
	ranges[len(ranges)-1].High = math.MaxInt64
	return ranges
}

// rangePieces returns the passes over a range of targets.
func (v *verifier) rangePieces(r db.VerifyRangesRow) []piece {
	var targets []int64 // none where everything is checked
	if !v.whole {
		targets = r.Targets
	}
	return []piece{
		{passTotals, r.Weight / 4, func(ctx context.Context, q *db.Queries) ([]finding, error) {
			rows, err := q.VerifyTotals(ctx, db.VerifyTotalsParams{
				N: manyAtMost, Low: r.Low, High: r.High, Whole: v.whole, Targets: targets,
			})
			return findings("totals", rows, err)
		}},
		{passDays, r.Weight / 4, func(ctx context.Context, q *db.Queries) ([]finding, error) {
			rows, err := q.VerifyDays(ctx, db.VerifyDaysParams{
				N: manyAtMost, Low: r.Low, High: r.High, Whole: v.whole, Targets: targets,
			})
			return findings("days", rows, err)
		}},
		{passRows, r.Weight, func(ctx context.Context, q *db.Queries) ([]finding, error) {
			rows, err := q.VerifyRows(ctx, db.VerifyRowsParams{
				N: manyAtMost, Low: r.Low, High: r.High, Whole: v.whole, Targets: targets, FromDay: v.fromDay,
			})
			return findings("rows", rows, err)
		}},
	}
}

// sitePieces returns the passes over sites, and over apps where all of their sites are checked.
func (v *verifier) sitePieces(sites []int64, apps []int32, weight int64) []piece {
	pieces := []piece{
		{passSiteTotals, weight / 100, func(ctx context.Context, q *db.Queries) ([]finding, error) {
			rows, err := q.VerifySiteTotals(ctx, db.VerifySiteTotalsParams{N: manyAtMost, Whole: v.whole, Sites: sites})
			return findings("sites", rows, err)
		}},
		{passSiteDays, weight / 10, func(ctx context.Context, q *db.Queries) ([]finding, error) {
			rows, err := q.VerifySiteDays(ctx, db.VerifySiteDaysParams{N: manyAtMost, Whole: v.whole, Sites: sites})
			return findings("days of sites", rows, err)
		}},
	}
	const sitesAtOnce = 500
	for some := range slices.Chunk(sites, sitesAtOnce) {
		pieces = append(pieces, topsPiece(weight/10*int64(len(some))/int64(len(sites)), db.VerifyTopsParams{N: manyAtMost, Sites: some}))
	}
	for _, app := range apps {
		pieces = append(pieces, topsPiece(weight/10/int64(len(apps)), db.VerifyTopsParams{N: manyAtMost, App: app}))
	}
	return pieces
}

func topsPiece(weight int64, of db.VerifyTopsParams) piece {
	return piece{passTops, weight, func(ctx context.Context, q *db.Queries) ([]finding, error) {
		rows, err := q.VerifyTops(ctx, of)
		return findings("tops", rows, err)
	}}
}

// findings converts the rows of a query, for each of which sqlc makes a type of its own, and adds
// to an error what was being checked.
func findings[Row finding | db.VerifyDaysRow | db.VerifyRowsRow | db.VerifySiteTotalsRow | db.VerifySiteDaysRow | db.VerifyTopsRow](
	what string, rows []Row, err error,
) ([]finding, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	found := make([]finding, len(rows))
	for i, row := range rows {
		found[i] = finding(row)
	}
	return found, nil
}
