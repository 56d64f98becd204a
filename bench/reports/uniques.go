package reports

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"footfall/bench/tables"
)

// UniquesFigures compare the uniques of targets with a plain count of visitors.
type UniquesFigures struct {
	Ranges    int      `json:"ranges"`
	Sites     int      `json:"sites"` // of them, ranges of a site
	Different []string `json:"different,omitempty"`
	Asked     Waits    `json:"asked"`   // of report.uniques
	Counted   Waits    `json:"counted"` // of the plain count
}

// compareUniques asks for the uniques of targets in ranges of days at random, and counts them in
// the plainest way.
func (r *asking) compareUniques(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 2)) //nolint:gosec // to be repeated, not to be secret
	figures := &UniquesFigures{Ranges: r.Samples}
	var asked, counted []time.Duration
	err := r.asOwner(ctx, func(q *tables.Queries) error {
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
			got, err := q.ReportUniques(ctx, tables.ReportUniquesParams{App: r.world.app, Target: target, FromDay: from, ToDay: to})
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
			if got.Uniques != truth || !got.Exact {
				figures.Different = append(figures.Different, fmt.Sprintf("%s from %d to %d: %d (exact: %t), and there were %d", target, from, to, got.Uniques, got.Exact, truth))
			}
		}
		return nil
	})
	figures.Asked, figures.Counted = waitsOf(asked), waitsOf(counted)
	r.report.Uniques = figures
	return err
}
