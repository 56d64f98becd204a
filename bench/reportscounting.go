package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"footfall/bench/tables"
)

const (
	reportEvery   = 100 * time.Millisecond // ten reports a second
	goalSlower    = 0.05                   // by how much counting may slow down
	goalDropMs    = 250                    // how long a visit may wait for a drop
	dropAttempts  = 50
	dropAgain     = 200 * time.Millisecond
	copiedDayFrom = 20000101 // days on which nobody counts any more
)

// CountingFigures are how many visits a second are counted with and without reports.
type CountingFigures struct {
	Alone   spread `json:"alone"`   // visits a second
	Reading spread `json:"reading"` // the same while reports are asked for
	Ratio   spread `json:"ratio"`   // of the latter to the former in the same round
	Reports int    `json:"reports"` // that were answered, in all rounds
	Missing string `json:"missing,omitempty"`
}

// measureCounting lets wrk visit as often as it can, with and without somebody who asks ten reports a second, in turns.
func (r *reportsRun) measureCounting(ctx context.Context) (err error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		r.report.Counting = &CountingFigures{Missing: "wrk is missing: install it with scripts/install-deps wrk, or the system's package manager"}
		return nil
	}
	s, err := newScript()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	ofApp := bytes.Replace(visitsLua, []byte("app="+app), []byte("app="+r.world.app), 1)
	if err := os.WriteFile(s.lua(), ofApp, 0o600); err != nil {
		return fmt.Errorf("wrk: %w", err)
	}
	var alone, reading, ratios []float64
	figures := &CountingFigures{}
	for round := 1; round <= r.Rounds; round++ {
		rate := map[bool]float64{}
		for turn, reports := range []bool{round%2 == 0, round%2 == 1} { // another begins in each round
			perSecond, asked, err := r.countMost(ctx, s, uint64(2*round+turn), reports) //nolint:gosec // not negative
			if err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			rate[reports] = perSecond
			figures.Reports += asked
			r.Progress(fmt.Sprintf("round %d of %d: %.0f visits/s beside %d reports", round, r.Rounds, perSecond, asked))
		}
		alone, reading, ratios = append(alone, rate[false]), append(reading, rate[true]), append(ratios, rate[true]/rate[false])
	}
	figures.Alone, figures.Reading, figures.Ratio = spreadOf(alone), spreadOf(reading), spreadOf(ratios)
	r.report.Counting = figures
	return nil
}

// countMost is one turn, on a service that is started for it, with visits of its own: none finds what another left behind, be it in the
// service's memory or in the tables, where visitors who come again cost less.
func (r *reportsRun) countMost(ctx context.Context, s script, turn uint64, reports bool) (perSecond float64, asked int, err error) {
	const name = "reports"
	random := rand.New(rand.NewPCG(r.Seed, turn)) //nolint:gosec // to be repeated, not to be secret
	line := func(to io.Writer, _ arrival) {
		ip, uri := r.world.nextVisit(random)
		fmt.Fprintf(to, "ip=%s&uri=http://%s\n", ip, uri)
	}
	if err := s.writeLines(name, make([]arrival, distinctVisits), line); err != nil {
		return 0, 0, err
	}
	err = r.serving(ctx, func(p *process) error {
		stop := func() (int, error) { return 0, nil }
		if reports {
			if stop, err = r.keepAsking(ctx, p, turn); err != nil {
				return err
			}
		}
		m, err := s.run(ctx, load{url: p.url, workload: name, again: true, connections: r.Connections, duration: r.Duration})
		perSecond = m.perSecond
		var askErr error
		asked, askErr = stop()
		return errors.Join(err, askErr)
	})
	return perSecond, asked, err
}

// keepAsking asks one report of all after the other, each when its time has come, until stop is called, which tells how many.
func (r *reportsRun) keepAsking(ctx context.Context, p *process, seed uint64) (stop func() (int, error), err error) {
	all, _, err := r.questions(ctx, p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	asked, ended := 0, make(chan error, 1) // the result of the goroutine, which ends with ctx; asked is its own until then
	go func() {
		ended <- r.askAs(ctx, seed, func(a *asker) error {
			tick := time.NewTicker(reportEvery)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return nil
				}
				if err := all[a.random.IntN(len(all))].ask(ctx, a); err != nil {
					return err
				}
				asked++
			}
		})
	}()
	return func() (int, error) {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return asked, err
		}
		return asked, nil
	}, nil
}

// DropRow is what the drop of one day did to the visits that came meanwhile.
type DropRow struct {
	Rows     int64   `json:"rows"`     // of the day
	Attempts int     `json:"attempts"` // until its locks were free
	TookMs   float64 `json:"tookMs"`   // the attempt that did it
	Before   float64 `json:"beforeMs"` // the longest wait of a visit in as much time without a drop
	Longest  float64 `json:"longestMs"`
}

// measureDrops drops a day while visits are counted, once in each round. The days are copies of real ones, so that the tables stay true.
func (r *reportsRun) measureDrops(ctx context.Context) error {
	return r.serving(ctx, func(p *process) error {
		for round := range r.Rounds {
			row, err := r.dropOne(ctx, p, round)
			if err != nil {
				return fmt.Errorf("round %d: %w", round+1, err)
			}
			r.report.Drops = append(r.report.Drops, row)
			r.Progress(fmt.Sprintf("round %d of %d: dropped %d rows in %.1f ms, longest wait %.1f ms", round+1, r.Rounds, row.Rows, row.TookMs, row.Longest))
		}
		return nil
	})
}

func (r *reportsRun) dropOne(ctx context.Context, p *process, round int) (row DropRow, err error) {
	day := int32(copiedDayFrom + round%28) //nolint:gosec // a day of January
	err = r.asOwner(ctx, func(q owners) error {
		if _, err = q.service.VisitsDayMake(ctx, day); err != nil {
			return err
		}
		row.Rows, err = q.VisitsCopyDay(ctx, tables.VisitsCopyDayParams{Another: day, Day: r.world.days[round%len(r.world.days)]})
		return err
	})
	if err != nil {
		return row, err
	}
	quiet, err := r.whileCounting(ctx, p, func() error { return pause(ctx, r.Duration/2) })
	if err != nil {
		return row, err
	}
	waits, err := r.whileCounting(ctx, p, func() error {
		if err := pause(ctx, r.Duration/4); err != nil {
			return err
		}
		if err := r.drop(ctx, day, &row); err != nil {
			return err
		}
		return pause(ctx, r.Duration/4)
	})
	row.Before, row.Longest = quiet.MaxMs, waits.MaxMs
	return row, err
}

// drop tries until nobody is using the partition, as the service does.
func (r *reportsRun) drop(ctx context.Context, day int32, row *DropRow) error {
	return r.asOwner(ctx, func(q owners) error {
		for {
			row.Attempts++
			began := time.Now()
			_, err := q.service.VisitsDayDrop(ctx, day)
			if err == nil {
				row.TookMs = ms(time.Since(began))
				return nil
			}
			if row.Attempts == dropAttempts || ctx.Err() != nil {
				return err
			}
			if err := pause(ctx, dropAgain); err != nil {
				return err
			}
		}
	})
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if !rest(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}
