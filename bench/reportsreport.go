package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ReportsReport is what Reports measured; what was not asked for is nil.
type ReportsReport struct {
	Machine   Machine          `json:"machine"`
	Command   string           `json:"command"` // that repeats it
	Load      string           `json:"load"`    // of the machine before and after: what else it was busy with, too
	LoadAfter string           `json:"loadAfter"`
	Rate      int              `json:"rate"` // visits a second that were counted meanwhile
	Seed      uint64           `json:"seed"`
	ClosedMs  []float64        `json:"closedMs,omitempty"` // how long each day took that had to be closed
	Uniques   *UniquesFigures  `json:"uniques,omitempty"`
	Sketches  *SketchFigures   `json:"sketches,omitempty"`
	Answers   *AnswerFigures   `json:"answers,omitempty"`
	Counting  *CountingFigures `json:"counting,omitempty"`
	Drops     []DropRow        `json:"drops,omitempty"`
}

// untrue is an error that wraps ErrUntrue where exact uniques were not; else nil.
func (r *ReportsReport) untrue() error {
	if r.Uniques == nil || len(r.Uniques.Different) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrUntrue, strings.Join(r.Uniques.Different[:min(10, len(r.Uniques.Different))], "\n"))
}

// Print writes the report for people at a terminal.
func (r *ReportsReport) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\nload of the machine %s before and %s after; seed %d\n", r.Machine, r.Load, r.LoadAfter, r.Seed)
	if len(r.ClosedMs) > 0 {
		closed := spreadOf(r.ClosedMs)
		fmt.Fprintf(w, "%d days were closed, each in %.0f ms (%.0f..%.0f)\n", len(r.ClosedMs), closed.Median, closed.Min, closed.Max)
	}
	if f := r.Uniques; f != nil {
		f.print(w)
	}
	if f := r.Sketches; f != nil {
		f.print(w)
	}
	if f := r.Answers; f != nil {
		f.print(w, r.Rate)
	}
	if f := r.Counting; f != nil {
		f.print(w)
	}
	if len(r.Drops) > 0 {
		printDrops(w, r.Drops, r.Rate)
	}
	fmt.Fprintf(w, "\nRepeat it: %s\n", r.Command)
}

// heldOrMissed says whether what was asked for is so.
func heldOrMissed(held bool) string {
	if held {
		return "held"
	}
	return "MISSED"
}

func (f *UniquesFigures) print(w io.Writer) {
	fmt.Fprintf(w, "\nuniques of one target: %d ranges at random (%d of a site), compared with count(DISTINCT ip): %d differ\n  p50 %s ms, p99 %s ms; counted: p99 %s ms\n",
		f.Ranges, f.Sites, len(f.Different), millis(f.P50Ms), millis(f.P99Ms), millis(f.CountedMs))
	for _, line := range f.Different[:min(10, len(f.Different))] {
		fmt.Fprintf(w, "  ! %s\n", line)
	}
}

func (f *SketchFigures) print(w io.Writer) {
	fmt.Fprintf(w, "\nsketches: %s of a (target, day), %s of them of fewer than ten registers: %.0f bytes each, at most %s, in all %s MB with their index; the %s visits that they stand for: %s MB\n",
		grouped(float64(f.Sketches)), grouped(float64(f.Small)), f.Average, grouped(float64(f.Most)), megabytes(f.Bytes), grouped(float64(f.Visits)), megabytes(f.VisitsBytes))
	fmt.Fprintf(w, "uniques of groups from sketches: %d groups and ranges at random; error %.2f %% on average, %.2f %% root mean square (told: %.3f %%), bias %+.2f %%, worst %+.2f %% (%s)\n",
		f.Ranges, 100*f.Mean, 100*f.RMS, 100*standardError, 100*f.Bias, 100*f.Worst, f.About)
	fmt.Fprintf(w, "  within 1, 2, 3 standard errors: %d, %d, %d\n  p50 %s ms, p99 %s ms; counted: p50 %s ms, p99 %s ms\n",
		f.Within[0], f.Within[1], f.Within[2], millis(f.P50Ms), millis(f.P99Ms), millis(f.CountedP50Ms), millis(f.CountedP99Ms))
}

func (f *AnswerFigures) print(w io.Writer, rate int) {
	fmt.Fprintf(w, "\nreports while %s visits/s are counted over HTTP (asked for: %s): these took p50 %s ms, p99 %s ms, at most %s ms\n",
		grouped(f.Visits.PerSecond), grouped(float64(rate)), millis(f.Visits.P50Ms), millis(f.Visits.P99Ms), millis(f.Visits.MaxMs))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  report\truns\tp50 ms\tp99 ms\tmax ms\tp99 at most 50 ms\n")
	for _, row := range f.Reports {
		verdict := heldOrMissed(row.P99Ms <= goalMs)
		if row.Report == readsAll {
			verdict = "reads every page of the site: not asked for"
		}
		fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\t%s\n", row.Report, row.Runs, millis(row.P50Ms), millis(row.P99Ms), millis(row.MaxMs), verdict)
	}
	_ = t.Flush() // w is a person's
	if !f.REST {
		fmt.Fprintln(w, "  this service answers no reports over HTTP")
	}
}

func (f *CountingFigures) print(w io.Writer) {
	if f.Missing != "" {
		fmt.Fprintf(w, "\ncounting beside reports was not measured: %s\n", f.Missing)
		return
	}
	fmt.Fprintf(w, "\ncounting over HTTP as fast as it goes, in turns: %s visits/s (%s..%s) alone, %s (%s..%s) beside 10 reports/s (%d in all)\n",
		grouped(f.Alone.Median), grouped(f.Alone.Min), grouped(f.Alone.Max), grouped(f.Reading.Median), grouped(f.Reading.Min), grouped(f.Reading.Max), f.Reports)
	fmt.Fprintf(w, "  ratio in the same round: %.3f (%s), asked for: at least %.2f: %s\n", f.Ratio.Median, rangeOf(f.Ratio), 1-goalSlower, heldOrMissed(f.Ratio.Median >= 1-goalSlower))
}

func printDrops(w io.Writer, drops []DropRow, rate int) {
	fmt.Fprintf(w, "\ndrop of a day while %s visits/s are counted\n", grouped(float64(rate)))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "  rows\tattempts\ttook ms\tlongest wait of a visit ms\twithout a drop\tat most 250 ms\t\n")
	for _, d := range drops {
		fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\t%s\t\n", grouped(float64(d.Rows)), d.Attempts, millis(d.TookMs), millis(d.Longest), millis(d.Before), heldOrMissed(d.Longest <= goalDropMs))
	}
	_ = t.Flush() // w is a person's
}
