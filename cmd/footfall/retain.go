package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"footfall/db"
	"footfall/retention"
)

type retainCmd struct {
	DryRun bool
}

func (c *retainCmd) run(ctx context.Context, p *program) error {
	return p.withTables(ctx, func(d *db.DB) error {
		if err := d.MeasureClock(ctx); err != nil {
			return err
		}
		retainer := retention.New(d, retention.Options{Log: p.log})
		run := retainer.Run
		if c.DryRun {
			run = retainer.Plan
		}
		done, err := run(ctx)
		if done != nil {
			if err := printRetention(p.stdout, done, c.DryRun); err != nil {
				return err
			}
		}
		return err
	})
}

// printRetention prints as tables what was deleted and forgotten, or would be (dry).
func printRetention(w io.Writer, r *retention.Done, dry bool) error {
	would := ""
	if dry {
		would = "would be "
	}
	if n := len(r.Closed); n > 0 {
		fmt.Fprintf(w, "days that are over, %ssummed up for good: %d (%d to %d)\n", would, n, r.Closed[0], r.Closed[n-1])
	}
	if len(r.Visits)+len(r.Dropped)+len(r.Forgotten) == 0 {
		fmt.Fprintln(w, "there is nothing to delete or forget")
		return nil
	}
	if len(r.Visits)+len(r.Dropped) > 0 {
		table := tableOn(w, fmt.Sprintf("visits that %sdeleted:\nDAY\tAPP\tVISITS\tFREED", cmp.Or(would, "were ")))
		for _, line := range retentionLines(r) {
			fmt.Fprintln(table, line)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(r.Forgotten) > 0 {
		table := tableOn(w, fmt.Sprintf("visitors that %sforgotten, one for each page or site:\nAPP\tVISITORS\tNOT SEEN SINCE", cmp.Or(would, "were ")))
		for _, f := range r.Forgotten {
			fmt.Fprintf(table, "%s\t%d\t%d\n", f.App, f.Visitors, f.Before)
		}
		return table.Flush()
	}
	return nil
}

// retentionLines are the lines of the table of visits. What a dropped day frees stands in a line of
// its own.
func retentionLines(r *retention.Done) (lines []string) {
	dropped := map[int32]bool{}
	for _, d := range r.Dropped {
		dropped[d.Day] = true
		lines = append(lines, fmt.Sprintf("%d\t(the whole day)\t-\t%s", d.Day, size(d.Bytes)))
	}
	for _, v := range r.Visits {
		how := "other apps keep the day"
		if dropped[v.Day] {
			how = "with it"
		}
		lines = append(lines, fmt.Sprintf("%d\t%s\t%d\t%s", v.Day, v.App, v.Visits, how))
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		const day = len("20190629") // with which a line begins
		return strings.Compare(a[:day], b[:day])
	})
	return lines
}

// startRetention deletes and forgets once a day what no app keeps. The function that it returns
// ends that, and waits until it has ended.
func startRetention(p *program, d *db.DB) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { retention.New(d, retention.Options{Log: p.log}).Daily(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}
