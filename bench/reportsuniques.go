package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

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

// compareUniques asks for the uniques of targets in ranges of days at random, and counts them in the plainest way.
func (r *reportsRun) compareUniques(ctx context.Context) error {
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
	asked, counted = sortedWaits(asked), sortedWaits(counted)
	figures.P50Ms, figures.P99Ms, figures.CountedMs = ms(percentile(asked, 50)), ms(percentile(asked, 99)), ms(percentile(counted, 99))
	r.report.Uniques = figures
	return err
}

// standardError is what group_uniques() tells.
const standardError = 0.01625

// SketchFigures are how large sketches are, and how far from the truth.
type SketchFigures struct {
	Sketches    int64   `json:"sketches"`
	Small       int64   `json:"small"` // of fewer than ten registers
	Average     float64 `json:"averageBytes"`
	Most        int64   `json:"mostBytes"`
	Bytes       int64   `json:"bytes"` // with their index
	Visits      int64   `json:"visits"`
	VisitsBytes int64   `json:"visitsBytes"`

	Ranges int     `json:"ranges"`
	Mean   float64 `json:"meanError"` // relative
	Bias   float64 `json:"bias"`      // the same with signs
	RMS    float64 `json:"rmsError"`
	Worst  float64 `json:"worstError"`
	About  string  `json:"worst"`
	Within [3]int  `json:"within"` // so many standard errors
	P50Ms  float64 `json:"p50Ms"`
	P99Ms  float64 `json:"p99Ms"`
	// Of the exact counts of the same groups.
	CountedP50Ms float64 `json:"countedP50Ms"`
	CountedP99Ms float64 `json:"countedP99Ms"`
}

// group is some targets and a range of days.
type group struct {
	about    string
	pages    []int64
	from, to int32
}

// measureSketches compares what sketches tell of groups with the visits, which are still there.
func (r *reportsRun) measureSketches(ctx context.Context) error {
	figures := &SketchFigures{Ranges: r.Samples}
	groups := r.groups()
	told, counted := make([]int64, len(groups)), make([]int64, len(groups))
	var countedMs []time.Duration
	err := together(ctx,
		func(ctx context.Context) error {
			askedMs, err := r.estimate(ctx, groups, told)
			figures.P50Ms, figures.P99Ms = ms(percentile(askedMs, 50)), ms(percentile(askedMs, 99))
			return err
		},
		func(ctx context.Context) error {
			return r.asOwner(ctx, func(q owners) (err error) {
				for i, g := range groups {
					began := time.Now()
					if counted[i], err = q.GroupCounted(ctx, tables.GroupCountedParams{Pages: g.pages, FromDay: g.from, ToDay: g.to}); err != nil {
						return err
					}
					countedMs = append(countedMs, time.Since(began))
				}
				return nil
			})
		})
	if err != nil {
		return err
	}
	countedMs = sortedWaits(countedMs)
	figures.CountedP50Ms, figures.CountedP99Ms = ms(percentile(countedMs, 50)), ms(percentile(countedMs, 99))
	figures.compare(groups, told, counted)
	r.report.Sketches = figures
	return r.asOwner(ctx, func(q owners) error {
		size, err := q.SketchSizes(ctx)
		figures.Sketches, figures.Small, figures.Average, figures.Most = size.Sketches, size.SmallOnes, size.Average, size.Most
		figures.Bytes, figures.Visits, figures.VisitsBytes = size.Bytes, size.Visits, size.VisitsBytes
		return err
	})
}

// estimate asks the sketches, in a transaction in which the visits count as gone.
func (r *reportsRun) estimate(ctx context.Context, groups []group, told []int64) (took []time.Duration, err error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.Background())) }()
	q := tables.New(tx)
	if err := q.VisitsUnkept(ctx, r.world.appID); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	for i, g := range groups {
		began := time.Now()
		estimated, err := q.GroupEstimated(ctx, tables.GroupEstimatedParams{AppID: r.world.appID, Pages: g.pages, FromDay: g.from, ToDay: g.to})
		if err != nil {
			return nil, fmt.Errorf("bench: %s: %w", g.about, err)
		}
		if estimated.Exact {
			return nil, fmt.Errorf("bench: %s: it was counted and not estimated", g.about)
		}
		took = append(took, time.Since(began))
		if told[i] = estimated.Uniques; i%200 == 0 {
			r.Progress(fmt.Sprintf("estimated %d of %d groups", i, len(groups)))
		}
	}
	return sortedWaits(took), nil
}

// groups are of three kinds: some pages, those under a path, and some sites.
func (r *reportsRun) groups() (groups []group) {
	random := rand.New(rand.NewPCG(r.Seed, 3)) //nolint:gosec // to be repeated, not to be secret
	for n := range r.Samples {
		var g group
		switch {
		case n%20 == 0:
			sites := r.world.sites
			for _, at := range random.Perm(len(sites))[:min(len(sites), 2+random.IntN(3))] {
				g.pages = append(g.pages, r.world.ids[sites[at]])
			}
			g.about = fmt.Sprintf("%d sites", len(g.pages))
		case n%5 == 0:
			prefix := r.world.randomSite(random) + "/" + sections[random.IntN(len(sections))] + "/"
			for _, t := range r.world.targets {
				if strings.HasPrefix(t.Uri, prefix) {
					g.pages = append(g.pages, t.ID)
				}
			}
			g.about = prefix
		default:
			for range 2 + random.IntN(49) {
				if id := r.world.ids[r.world.randomPage(random)]; !slices.Contains(g.pages, id) {
					g.pages = append(g.pages, id)
				}
			}
			g.about = fmt.Sprintf("%d pages", len(g.pages))
		}
		g.from, g.to = r.world.anyDays(random)
		groups = append(groups, g)
	}
	return groups
}

// compare sums up the errors. Where nobody came there is none to be made.
func (f *SketchFigures) compare(groups []group, told, counted []int64) {
	sum, signed, squares := 0.0, 0.0, 0.0
	for i, g := range groups {
		if counted[i] == 0 && told[i] == 0 {
			f.Within[0], f.Within[1], f.Within[2] = f.Within[0]+1, f.Within[1]+1, f.Within[2]+1
			continue
		}
		off := float64(told[i]-counted[i]) / float64(max(counted[i], 1))
		if math.Abs(off) >= math.Abs(f.Worst) {
			f.Worst = off
			f.About = fmt.Sprintf("%s from %d to %d: %d, and there were %d", g.about, g.from, g.to, told[i], counted[i])
		}
		for errors := range f.Within {
			if math.Abs(off) <= standardError*float64(errors+1) {
				f.Within[errors]++
			}
		}
		sum, signed, squares = sum+math.Abs(off), signed+off, squares+off*off
	}
	n := float64(max(len(groups), 1))
	f.Mean, f.Bias, f.RMS = sum/n, signed/n, math.Sqrt(squares/n)
}
