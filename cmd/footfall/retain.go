package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"footfall/db"
	"footfall/retention"
)

type retainCmd struct {
	DryRun bool
}

func (c *retainCmd) run(ctx context.Context, p *program, d *db.DB) error {
	if err := d.MeasureClock(ctx); err != nil {
		return err
	}
	retainer := retention.NewRetainer(d, retention.Options{Log: p.log})
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
}

// printRetention prints tables of the deleted data or, if dry is true, of the data that would be deleted.
func printRetention(w io.Writer, r *retention.Result, dry bool) error {
	would := ""
	if dry {
		would = "would be "
	}
	if n := len(r.Closed); n > 0 {
		fmt.Fprintf(w, "past days, %sclosed: %d (%d to %d)\n", would, n, r.Closed[0], r.Closed[n-1])
	}
	if len(r.Visits)+len(r.Dropped)+len(r.Forgotten) == 0 {
		fmt.Fprintln(w, "there is nothing to delete or forget")
		return nil
	}
	if lines := retentionLines(r); len(lines) > 0 {
		fmt.Fprintf(w, "visits that %sdeleted:\n", cmp.Or(would, "were "))
		if err := printRows(w, nil, "DAY\tAPP\tVISITS\tFREED", lines, func(line []any) []any { return line }); err != nil {
			return err
		}
	}
	if len(r.Forgotten) == 0 {
		return nil
	}
	fmt.Fprintf(w, "visitors that %sforgotten, each counted once for every page and site:\n", cmp.Or(would, "were "))
	return printRows(w, nil, "APP\tVISITORS\tNOT SEEN SINCE", r.Forgotten, func(f retention.VisitorsForgotten) []any {
		return []any{f.App, f.Visitors, f.Before}
	})
}

// retentionLines returns the rows of the table of deleted visits, sorted by day. If the visits of a day were deleted for
// all apps, an additional row shows the freed space.
func retentionLines(r *retention.Result) (lines [][]any) {
	dropped := map[int32]bool{}
	for _, d := range r.Dropped {
		dropped[d.Day] = true
		lines = append(lines, []any{d.Day, "(the whole day)", "-", size(d.Bytes)})
	}
	for _, v := range r.Visits {
		how := "other apps keep the day"
		if dropped[v.Day] {
			how = "with the day"
		}
		lines = append(lines, []any{v.Day, v.App, v.Visits, how})
	}
	slices.SortStableFunc(lines, func(a, b []any) int { return cmp.Compare(a[0].(int32), b[0].(int32)) })
	return lines
}
