package compare

import (
	"fmt"
	"io"
	"slices"

	"footfall/bench"
)

// Report contains the results of a comparison, for every contender and workload.
type Report struct {
	Machine    string
	HTTP       bool // each contender is measured over HTTP, in its own process; false: all are measured in this process
	Clients    int  // number of concurrent clients or, over HTTP, of connections
	Rounds     int
	Seed       uint64
	Contenders []About // in the order in which they are shown
	Workloads  []About
	Runs       []Turn
	Rows       []Row // summary of all rounds, for each workload and contender
}

// About describes a contender or a workload.
type About struct {
	Name, About string
	Exact       bool // for contenders: promises exact numbers, so that any error makes the comparison fail
}

// Turn is the result of measuring one contender once with one workload, in a new database.
type Turn struct {
	Contender, Workload            string
	Round, Visits                  int
	PerSecond, P50Ms, P99Ms, Asked float64 // Asked: number of existence queries per visit
	Errors                         Errors
}

// Errors contains the differences between the stored and the expected numbers.
type Errors struct {
	UV       int64 // differences of uv, added up over all targets
	PV       int64 // differences of pv (visitor days), added up
	Hot      int64 // differences of hot (visits), added up
	Ranks    int64 // number of ranks that are outside 1..uv, belong to several visitors, or belong to no visitor
	Unproven int64 // how much the numbers contradict other rows in the contender's tables; 0: not at all
}

func (e Errors) String() string {
	count := func(n int64) string { return bench.Grouped(float64(n)) }
	return fmt.Sprintf("uv is off by %s, pv by %s, hot by %s; %s ranks are wrong; %s sums unproven",
		count(e.UV), count(e.PV), count(e.Hot), count(e.Ranks), count(e.Unproven))
}

// Row summarizes all rounds of one contender with one workload. Times and rates are medians. Visits and errors are totals.
type Row struct {
	Contender, Workload string
	Visits              int
	PerSecond           bench.Spread
	P50Ms, P99Ms, Asked float64
	Errors              Errors
	To                  map[string]float64 // reference contender → this contender's median visits/s divided by the reference's
}

// references are the names of the contenders with which the others are compared.
var references = []string{naive, baseline, batched, both, old}

// summarize computes r.Rows from r.Runs, in the order of workloads and contenders.
func (r *Report) summarize() {
	r.Rows = nil
	for _, workload := range r.Workloads {
		from := len(r.Rows)
		for _, contender := range r.Contenders {
			row := Row{Contender: contender.Name, Workload: workload.Name, To: map[string]float64{}}
			var perSecond, p50, p99, asked []float64
			for _, run := range r.Runs {
				if run.Workload != workload.Name || run.Contender != contender.Name {
					continue
				}
				perSecond, asked = append(perSecond, run.PerSecond), append(asked, run.Asked)
				p50, p99 = append(p50, run.P50Ms), append(p99, run.P99Ms)
				e := run.Errors
				row.Visits += run.Visits
				row.Errors = Errors{row.Errors.UV + e.UV, row.Errors.PV + e.PV, row.Errors.Hot + e.Hot, row.Errors.Ranks + e.Ranks,
					row.Errors.Unproven + e.Unproven}
			}
			row.PerSecond, row.Asked = bench.SpreadOf(perSecond), bench.SpreadOf(asked).Median
			row.P50Ms, row.P99Ms = bench.SpreadOf(p50).Median, bench.SpreadOf(p99).Median
			r.Rows = append(r.Rows, row)
		}
		for _, row := range r.Rows[from:] {
			for _, to := range r.Rows[from:] {
				if slices.Contains(references, to.Contender) && to.PerSecond.Median > 0 {
					row.To[to.Contender] = row.PerSecond.Median / to.PerSecond.Median
				}
			}
		}
	}
}

// untrue returns an error that wraps bench.ErrUntrue if a contender that promises exact numbers was wrong. Otherwise it
// returns nil.
func (r *Report) untrue() error {
	var faults []string
	for _, run := range r.Runs {
		if run.Errors != (Errors{}) && r.exact(run.Contender) {
			faults = append(faults, fmt.Sprintf("round %d, %s, %s: %s", run.Round, run.Workload, run.Contender, run.Errors))
		}
	}
	return bench.Untrue(faults)
}

// exact reports whether the contender with this name promises exact numbers.
func (r *Report) exact(name string) bool {
	return slices.ContainsFunc(r.Contenders, func(a About) bool { return a.Name == name && a.Exact })
}

// Print writes the report as text with up to 160 columns: a table and the errors for each workload, and then a legend.
func (r *Report) Print(w io.Writer) {
	how := "all in one process, %d clients at once"
	if r.HTTP {
		how = "over HTTP on the same machine, %d connections, each contender in its own process"
	}
	fmt.Fprintf(w, "\n%s\n"+how+"; medians of %d rounds in turns; seed %d\n", r.Machine, r.Clients, r.Rounds, r.Seed)
	there := slices.DeleteFunc(slices.Clone(references), func(name string) bool {
		return !slices.ContainsFunc(r.Contenders, func(a About) bool { return a.Name == name })
	})
	for _, workload := range r.Workloads {
		t, faults := bench.Table{{"contender", "visits/s", "min..max", "p50 ms", "p99 ms", "asked", "uv off", "ranks off"}}, ""
		for _, reference := range there {
			t[0] = append(t[0], "/"+reference)
		}
		for _, row := range r.Rows {
			if row.Workload != workload.Name {
				continue
			}
			line := []string{
				row.Contender, bench.Grouped(row.PerSecond.Median), bench.Grouped(row.PerSecond.Min) + ".." + bench.Grouped(row.PerSecond.Max),
				bench.Short(row.P50Ms), bench.Short(row.P99Ms), bench.Short(row.Asked), bench.Grouped(float64(row.Errors.UV)),
				bench.Grouped(float64(row.Errors.Ranks)),
			}
			for _, reference := range there {
				line = append(line, bench.FormatOrDash(row.To[reference], bench.Short))
			}
			t = append(t, line)
			if row.Errors != (Errors{}) {
				says := "does not promise to be exact, and is not"
				if r.exact(row.Contender) {
					says = "BREAKS ITS PROMISE"
				}
				faults += fmt.Sprintf("  ! %s %s: in %s visits %s\n", row.Contender, says, bench.Grouped(float64(row.Visits)), row.Errors)
			}
		}
		fmt.Fprintf(w, "\n%s: %s\n%s%s", workload.Name, workload.About, t, faults)
	}
	fmt.Fprintln(w)
	for _, about := range r.Contenders {
		fmt.Fprintf(w, "  %s: %s\n", about.Name, about.About)
	}
	fmt.Fprint(w, `  asked: existence queries per visit: keys looked up to decide whether they are new
  uv off: visitors that uv misses or counts too often, over all targets and rounds
  ranks off: ranks that belong to no visitor, or to more than one, over all targets and rounds
  /…: visits/s divided by those of that contender on the same workload
`)
}
