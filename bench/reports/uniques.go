package reports

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"footfall/bench"
	"footfall/bench/tables"
)

// UniquesFigures compare the uniques of targets with a plain count of visitors.
type UniquesFigures struct {
	Ranges    int      `json:"ranges"`
	Sites     int      `json:"sites"` // of them, ranges of a site
	Different []string `json:"different,omitempty"`
	P50Ms     float64  `json:"p50Ms"` // of report.uniques
	P99Ms     float64  `json:"p99Ms"`
	CountedMs float64  `json:"countedP99Ms"` // of the plain count
}

// compareUniques asks for the uniques of targets in ranges of days at random, and counts them in
// the plainest way.
func (r *asking) compareUniques(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 2)) //nolint:gosec // to be repeated, not to be secret
	figures := &UniquesFigures{Ranges: r.Samples}
	var asked, counted []time.Duration
	err := r.asOwner(ctx, func(q owners) error {
		for n := range r.Samples {
			target := r.world.randomPage(random)
			switch {
			case n%25 == 0:
				target = r.world.randomSite(random)
				figures.Sites++
			case n%2 == 0: // as many that are hardly ever visited
				target = r.world.targets[random.IntN(len(r.world.targets))].Uri
			}
			from, to := r.world.anyDays(random)
			began := time.Now()
			told, err := q.ReportUniques(ctx, tables.ReportUniquesParams{App: r.world.app, Target: target, FromDay: from, ToDay: to})
			if err != nil {
				return err
			}
			asked = append(asked, time.Since(began))
			began = time.Now()
			truth, err := q.UniquesCounted(ctx, tables.UniquesCountedParams{PageID: r.world.ids[target], FromDay: from, ToDay: to})
			if err != nil {
				return err
			}
			counted = append(counted, time.Since(began))
			if told.Uniques != truth || !told.Exact {
				figures.Different = append(figures.Different, fmt.Sprintf("%s from %d to %d: %d (exact: %t), and there were %d", target, from, to, told.Uniques, told.Exact, truth))
			}
		}
		return nil
	})
	asked, counted = slices.Sorted(slices.Values(asked)), slices.Sorted(slices.Values(counted))
	figures.P50Ms, figures.P99Ms, figures.CountedMs = bench.Ms(bench.Percentile(asked, 50)), bench.Ms(bench.Percentile(asked, 99)), bench.Ms(bench.Percentile(counted, 99))
	r.report.Uniques = figures
	return err
}
