package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// HTTPReport is what HTTP measured.
type HTTPReport struct {
	Machine   Machine  `json:"machine"`
	Rows      []Row    `json:"rows"`
	Samples   []Sample `json:"samples"`
	Checks    []string `json:"checks"`    // of the service's tables; one that fails ends the run
	RanksLost int64    `json:"ranksLost"` // by the per-request baseline, in all rounds
	DaysTwice int64    `json:"daysTwice"` // counted twice by it
}

// Row is what one contender did with one number of connections, over the rounds.
type Row struct {
	Contender    string  `json:"contender"`
	Connections  int     `json:"connections"`
	PerSecond    spread  `json:"perSecond"`
	P50Ms        float64 `json:"p50Ms"`
	P99Ms        float64 `json:"p99Ms"`
	ToPerRequest float64 `json:"toPerRequest"` // medians of visits/s compared
	ToConstant   float64 `json:"toConstant"`
	PeakBytes    int64   `json:"peakBytes"` // the most of any round
}

// summarize makes the rows of the samples.
func (r *HTTPReport) summarize() {
	type key struct {
		contender   string
		connections int
	}
	groups := map[key][]Sample{}
	var order []key
	for _, s := range r.Samples {
		k := key{s.Contender, s.Connections}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], s)
	}
	slices.SortStableFunc(order, func(a, b key) int { return a.connections - b.connections })
	median := func(k key, of func(Sample) float64) spread {
		var values []float64
		for _, s := range groups[k] {
			values = append(values, of(s))
		}
		return spreadOf(values)
	}
	perSecond := func(s Sample) float64 { return s.PerSecond }
	r.Rows = nil
	for _, k := range order {
		row := Row{
			Contender: k.contender, Connections: k.connections, PerSecond: median(k, perSecond),
			P50Ms: median(k, func(s Sample) float64 { return s.P50Ms }).Median,
			P99Ms: median(k, func(s Sample) float64 { return s.P99Ms }).Median,
		}
		row.ToPerRequest = ratio(row.PerSecond.Median, median(key{PerRequest, k.connections}, perSecond).Median)
		row.ToConstant = ratio(row.PerSecond.Median, median(key{Constant, k.connections}, perSecond).Median)
		for _, s := range groups[k] {
			row.PeakBytes = max(row.PeakBytes, s.PeakBytes)
		}
		r.Rows = append(r.Rows, row)
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Print writes the report for people.
func (r *HTTPReport) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s; wrk on the same machine, %d visitors, %d pages, one site\n", r.Machine, visitors, pages)
	fmt.Fprintf(w, "Each contender begins a round with a new database and keeps it over the numbers of connections.\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "contender\tconnections\tvisits/s\t(min..max)\tp50 ms\tp99 ms\tto per-request\tto constant\tpeak MB\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t(%.0f..%.0f)\t%.1f\t%.1f\t×%.2f\t×%.2f\t%.0f\t\n",
			row.Contender, row.Connections, row.PerSecond.Median, row.PerSecond.Min, row.PerSecond.Max, row.P50Ms, row.P99Ms,
			row.ToPerRequest, row.ToConstant, float64(row.PeakBytes)/1e6)
	}
	_ = t.Flush() // w is a person's
	fmt.Fprintln(w, "\nThe service's tables after its rounds:")
	for _, check := range r.Checks {
		fmt.Fprintf(w, "  %s\n", check)
	}
	fmt.Fprintf(w, "The per-request baseline gave %d ranks to nobody and counted %d days twice.\n", r.RanksLost, r.DaysTwice)
}
