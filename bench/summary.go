package bench

import (
	"fmt"
	"strings"
)

// The contenders that the others are compared with.
const (
	theNaive    = "naive"
	theBaseline = "baseline"
	theBatched  = "batched"
)

// summarize makes the rows of the runs, in the order in which they first came.
func (c *Comparison) summarize() {
	type key struct{ workload, contender string }
	groups := map[key][]Run{}
	var order []key
	for _, r := range c.Runs {
		k := key{r.Workload, r.Contender}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	median := func(k key, of func(Run) float64) spread {
		var values []float64
		for _, r := range groups[k] {
			values = append(values, of(r))
		}
		return spreadOf(values)
	}
	perSecond := func(r Run) float64 { return r.PerSecond }
	c.Rows = nil
	for _, k := range order {
		row := ComparisonRow{
			Contender: k.contender, Workload: k.workload, PerSecond: median(k, perSecond),
			P50Ms:   median(k, func(r Run) float64 { return r.P50Ms }).Median,
			P95Ms:   median(k, func(r Run) float64 { return r.P95Ms }).Median,
			P99Ms:   median(k, func(r Run) float64 { return r.P99Ms }).Median,
			Asked:   median(k, func(r Run) float64 { return r.Asked }).Median,
			Written: median(k, func(r Run) float64 { return r.Written }).Median,
			WAL:     median(k, func(r Run) float64 { return r.WAL }).Median,
		}
		against := func(contender string) float64 {
			return ratio(row.PerSecond.Median, median(key{k.workload, contender}, perSecond).Median)
		}
		row.ToBaseline, row.ToNaive, row.ToBatched, row.ToConstant = against(theBaseline), against(theNaive), against(theBatched), against(constant)
		for _, r := range groups[k] {
			row.Memory, row.Helpers = max(row.Memory, r.Memory), max(row.Helpers, r.Helpers)
			row.Visits += r.Visits
			row.Errors.UV += r.Errors.UV
			row.Errors.PV += r.Errors.PV
			row.Errors.Hot += r.Errors.Hot
			row.Errors.Ranks += r.Errors.Ranks
		}
		c.Rows = append(c.Rows, row)
	}
}

// untrue is an error that wraps ErrUntrue and tells of every run with a fault; nil where there is none.
func (c *Comparison) untrue() error {
	var faults []string
	for _, r := range c.Runs {
		if r.Fault != "" {
			faults = append(faults, fmt.Sprintf("round %d, %s, %s: %s", r.Round, r.Workload, r.Contender, r.Fault))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrUntrue, strings.Join(faults, "\n"))
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
