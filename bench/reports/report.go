package reports

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"footfall/bench"
)

// Report is what Run measured; what was not asked for is nil.
type Report struct {
	Machine    bench.Machine     `json:"machine"`
	Command    string            `json:"command"` // that repeats it
	Load       string            `json:"load"`    // of the machine before and after: what else it was busy with, too
	LoadAfter  string            `json:"loadAfter"`
	Rate       int               `json:"rate"` // visits a second that were counted meanwhile
	Seed       uint64            `json:"seed"`
	ClosedMs   []float64         `json:"closedMs,omitempty"` // how long each day took that had to be closed
	Uniques    *UniquesFigures   `json:"uniques,omitempty"`
	Answers    *AnswerFigures    `json:"answers,omitempty"`
	Dashboards *DashboardFigures `json:"dashboards,omitempty"`
	Embedded   []EmbeddedRow     `json:"embedded,omitempty"`
	Proving    *ProvingFigures   `json:"proving,omitempty"`
	Imports    *ImportFigures    `json:"imports,omitempty"`
}

// untrue is an error that wraps bench.ErrUntrue where exact uniques were not; else nil.
func (r *Report) untrue() error {
	if r.Uniques == nil || len(r.Uniques.Different) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", bench.ErrUntrue, strings.Join(r.Uniques.Different[:min(10, len(r.Uniques.Different))], "\n"))
}

// Print writes the report for people at a terminal.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\nload of the machine %s before and %s after; seed %d\n", r.Machine, r.Load, r.LoadAfter, r.Seed)
	if len(r.ClosedMs) > 0 {
		closed := bench.SpreadOf(r.ClosedMs)
		fmt.Fprintf(w, "%d days were closed, each in %.0f ms (%.0f..%.0f)\n", len(r.ClosedMs), closed.Median, closed.Min, closed.Max)
	}
	if f := r.Uniques; f != nil {
		f.print(w)
	}
	if f := r.Answers; f != nil {
		f.print(w, r.Rate)
	}
	if f := r.Dashboards; f != nil {
		f.print(w)
	}
	if r.Embedded != nil {
		printEmbedded(w, r.Embedded)
	}
	if f := r.Proving; f != nil {
		f.print(w, r.Rate)
	}
	if f := r.Imports; f != nil {
		f.print(w, r.Rate)
	}
	fmt.Fprintf(w, "\nRepeat it: %s\n", r.Command)
}

func (f *UniquesFigures) print(w io.Writer) {
	fmt.Fprintf(w, "\nuniques of one target: %d ranges at random (%d of a site), compared with count(DISTINCT ip): %d differ\n  p50 %s ms, p99 %s ms; counted: p99 %s ms\n",
		f.Ranges, f.Sites, len(f.Different), bench.Millis(f.P50Ms), bench.Millis(f.P99Ms), bench.Millis(f.CountedMs))
	for _, line := range f.Different[:min(10, len(f.Different))] {
		fmt.Fprintf(w, "  ! %s\n", line)
	}
}

func (f *AnswerFigures) print(w io.Writer, rate int) {
	fmt.Fprintf(w, "\nreports while %s visits/s are counted over HTTP (asked for: %s): these took p50 %s ms, p99 %s ms, at most %s ms\n",
		bench.Grouped(f.Visits.PerSecond), bench.Grouped(float64(rate)), bench.Millis(f.Visits.P50Ms), bench.Millis(f.Visits.P99Ms), bench.Millis(f.Visits.MaxMs))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  report\truns\tp50 ms\tp99 ms\tmax ms\n")
	for _, row := range f.Reports {
		fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\n", row.Report, row.Runs, bench.Millis(row.P50Ms), bench.Millis(row.P99Ms), bench.Millis(row.MaxMs))
	}
	_ = t.Flush() // w is a person's
}
