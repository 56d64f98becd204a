package compare

import (
	"fmt"
	"io"
	"slices"

	"footfall/bench"
)

// Report is what Run measured: every contender on every workload, several times.
type Report struct {
	Machine    string  `json:"machine"`
	HTTP       bool    `json:"http"`    // a process for each contender; else all in one
	Command    string  `json:"command"` // that repeats it
	Clients    int     `json:"clients"` // who visit at once; over HTTP: connections
	Rounds     int     `json:"rounds"`
	Seed       uint64  `json:"seed"`
	Contenders []About `json:"contenders"` // in the order of the tables
	Loads      []About `json:"workloads"`
	Rows       []Row   `json:"rows"` // a row for each workload and contender, over the rounds
	Runs       []Turn  `json:"runs"` // what the rows sum up
}

// About says what a contender or a workload is.
type About struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Exact bool   `json:"exact,omitempty"` // of a contender: any difference from the truth makes the comparison fail
}

// Figures are what is measured.
type Figures struct {
	P50Ms   float64 `json:"p50Ms"`
	P99Ms   float64 `json:"p99Ms"`
	Asked   float64 `json:"existenceQueries"`
	Written float64 `json:"rowsWritten"`
	WAL     float64 `json:"walBytes"`
	Memory  float64 `json:"memoryBytes"`
	Drained float64 `json:"drained,omitempty"`
	Errors  Errors  `json:"errors"`
	Visits  int     `json:"visits"`
}

// figure is one of them, as rounds are summed up and tables show it.
type figure struct {
	head, about string
	of          func(*Figures) *float64
	sum         func(bench.Spread) float64
	write       func(float64) string
	rare        bool // is left out where no contender has it
}

func median(s bench.Spread) float64 { return s.Median }
func most(s bench.Spread) float64   { return s.Max }

var figures = []figure{
	{"p50 ms", "half of the visits were answered within this", func(f *Figures) *float64 { return &f.P50Ms }, median, bench.Short, false},
	{"p99 ms", "99 % were", func(f *Figures) *float64 { return &f.P99Ms }, median, bench.Short, false},
	{"asked", "existence queries a visit: keys looked up to decide new or known", func(f *Figures) *float64 { return &f.Asked }, median,
		bench.Short, false},
	{"rows", "rows written a visit, inserted or updated", func(f *Figures) *float64 { return &f.Written }, median, bench.Short, false},
	{"WAL B", "bytes of PostgreSQL's log a visit", func(f *Figures) *float64 { return &f.WAL }, median, bench.Grouped, false},
	{"MB", "MB of memory, the most of any round: over HTTP of its process, else its heap after the run and its helpers",
		func(f *Figures) *float64 { return &f.Memory }, most, func(v float64) string { return bench.OrNone(v/1e6, bench.Short) }, false},
	{"later/s", "visits a second that were counted after the end, of those that waited in the inbox",
		func(f *Figures) *float64 { return &f.Drained }, median, bench.Grouped, true},
}

// Turn is one contender's turn at one workload, on a new database.
type Turn struct {
	Contender string  `json:"contender"`
	Workload  string  `json:"workload"`
	Round     int     `json:"round"`
	PerSecond float64 `json:"perSecond"`
	Figures
}

// Errors are a run's differences from the truth.
type Errors struct {
	UV  int64 `json:"uv"`  // visitors that uv misses or has too many, over all targets
	PV  int64 `json:"pv"`  // the same of visitor days
	Hot int64 `json:"hot"` // the same of visits
	// Ranks: rows with a rank outside of 1..uv or that another has; in this process also answers
	// whose rank is nobody's, somebody else's, or missing, and over HTTP ranks that nobody has.
	Ranks    int64 `json:"ranks"`
	Unproven int64 `json:"unproven"` // sums that the contender's own rows do not bear out
}

func (e Errors) String() string {
	count := func(n int64) string { return bench.Grouped(float64(n)) }
	return fmt.Sprintf("uv is off by %s, pv by %s, hot by %s; %s ranks are wrong; %s sums unproven",
		count(e.UV), count(e.PV), count(e.Hot), count(e.Ranks), count(e.Unproven))
}

// Row sums up the rounds of one contender at one workload: medians, the most memory, and all errors
// and visits.
type Row struct {
	Contender string       `json:"contender"`
	Workload  string       `json:"workload"`
	PerSecond bench.Spread `json:"perSecond"`
	Figures
	To map[string]float64 `json:"to"` // medians of visits/s compared, in this workload, by whose
}

// references are the contenders with which all others are compared.
var references = []string{naive, batched, both, old}

// spread is that of a figure, over the rounds of a contender at a workload.
func (r *Report) spread(workload, contender string, of func(Turn) float64) bench.Spread {
	var values []float64
	for _, run := range r.Runs {
		if run.Workload == workload && run.Contender == contender {
			values = append(values, of(run))
		}
	}
	return bench.SpreadOf(values)
}

// summarize makes the rows of the runs, of each workload in the order of the contenders.
func (r *Report) summarize() {
	r.Rows = nil
	perSecond := func(run Turn) float64 { return run.PerSecond }
	for _, load := range r.Loads {
		for _, about := range r.Contenders {
			row := Row{Contender: about.Name, Workload: load.Name, PerSecond: r.spread(load.Name, about.Name, perSecond), To: map[string]float64{}}
			for _, figure := range figures {
				*figure.of(&row.Figures) = figure.sum(r.spread(load.Name, about.Name, func(t Turn) float64 { return *figure.of(&t.Figures) }))
			}
			for _, run := range r.Runs {
				if e := run.Errors; run.Workload == load.Name && run.Contender == about.Name {
					row.Visits += run.Visits
					row.Errors = Errors{row.Errors.UV + e.UV, row.Errors.PV + e.PV, row.Errors.Hot + e.Hot, row.Errors.Ranks + e.Ranks,
						row.Errors.Unproven + e.Unproven}
				}
			}
			for _, reference := range references {
				if to := r.spread(load.Name, reference, perSecond).Median; to > 0 {
					row.To[reference] = row.PerSecond.Median / to
				}
			}
			r.Rows = append(r.Rows, row)
		}
	}
}

// untrue is an error that wraps bench.ErrUntrue and names every run that a promise was broken in;
// nil where there is none.
func (r *Report) untrue() error {
	var faults []string
	for _, run := range r.Runs {
		if run.Errors != (Errors{}) && r.exact(run.Contender) {
			faults = append(faults, fmt.Sprintf("round %d, %s, %s: %s", run.Round, run.Workload, run.Contender, run.Errors))
		}
	}
	return bench.Untrue(faults)
}

// exact reports whether a contender promises to be.
func (r *Report) exact(name string) bool {
	return slices.ContainsFunc(r.Contenders, func(a About) bool { return a.Name == name && a.Exact })
}

// fault says what a contender got wrong at a workload, or "".
func (r *Report) fault(row Row) string {
	if row.Errors == (Errors{}) {
		return ""
	}
	says := "does not promise to be exact, and is not"
	if r.exact(row.Contender) {
		says = "BREAKS ITS PROMISE"
	}
	return fmt.Sprintf("%s %s: in %s visits %s", row.Contender, says, bench.Grouped(float64(row.Visits)), row.Errors)
}

// column is one figure of a contender, as all tables show it.
type column struct {
	head, about string
	cell        func(Row) string
}

// columns are those of a comparison's tables, behind the contender's name.
func (r *Report) columns() []column {
	all := []column{
		{"visits/s", "visits a second, the median of the rounds", func(r Row) string { return bench.Grouped(r.PerSecond.Median) }},
		{"min..max", "the slowest and the fastest round", func(r Row) string {
			return bench.Grouped(r.PerSecond.Min) + ".." +
				bench.Grouped(r.PerSecond.Max)
		}},
	}
	for _, f := range figures {
		if !f.rare || slices.ContainsFunc(r.Rows, func(row Row) bool { return *f.of(&row.Figures) > 0 }) {
			all = append(all, column{f.head, f.about, func(row Row) string { return f.write(*f.of(&row.Figures)) }})
		}
	}
	all = append(all,
		column{"uv off", "visitors that uv misses or has too many, over all targets and rounds",
			func(r Row) string { return bench.Grouped(float64(r.Errors.UV)) }},
		column{"ranks off", "answers whose rank is not the visitor's own by the tables, over HTTP ranks that nobody or more than one visitor " +
			"has; all rounds",
			func(r Row) string { return bench.Grouped(float64(r.Errors.Ranks)) }})
	for _, reference := range references {
		if slices.ContainsFunc(r.Contenders, func(a About) bool { return a.Name == reference }) {
			all = append(all, column{"/" + reference, "visits/s divided by those of " + reference + " on the same workload",
				func(r Row) string { return bench.OrNone(r.To[reference], bench.Short) }})
		}
	}
	return all
}

// rowsOf are those of one workload.
func (r *Report) rowsOf(load About) (rows []Row) {
	for _, row := range r.Rows {
		if row.Workload == load.Name {
			rows = append(rows, row)
		}
	}
	return rows
}

// way says how the visits came, and how often each was measured.
func (r *Report) way() string {
	repeats := fmt.Sprintf("medians of %d rounds in turns", r.Rounds)
	if r.Rounds == 1 {
		repeats = "one round: there is no spread to tell a difference from noise"
	}
	how := fmt.Sprintf("all in one process, %d clients at once", r.Clients)
	if r.HTTP {
		how = fmt.Sprintf("over HTTP on the same machine, %d connections, each contender a process of its own", r.Clients)
	}
	return fmt.Sprintf("%s; %s; seed %d", how, repeats, r.Seed)
}

// Print writes the comparison for people at a terminal of 160 columns: a table for each workload,
// then what the words mean.
func (r *Report) Print(w io.Writer) {
	columns := r.columns()
	fmt.Fprintf(w, "\n%s\n%s\n", r.Machine, r.way())
	for _, load := range r.Loads {
		t, faults := bench.Table{{"contender"}}, ""
		for _, c := range columns {
			t[0] = append(t[0], c.head)
		}
		for _, row := range r.rowsOf(load) {
			cells := []string{row.Contender}
			for _, c := range columns {
				cells = append(cells, c.cell(row))
			}
			t = append(t, cells)
			if fault := r.fault(row); fault != "" {
				faults += "  ! " + fault + "\n"
			}
		}
		fmt.Fprintf(w, "\n%s: %s\n%s%s", load.Name, load.About, t, faults)
	}
	fmt.Fprintln(w)
	for _, about := range r.Contenders {
		fmt.Fprintf(w, "  %s: %s\n", about.Name, about.About)
	}
	for _, c := range columns {
		fmt.Fprintf(w, "  %s: %s\n", c.head, c.about)
	}
	fmt.Fprintf(w, "\nRepeat it: %s\n", r.Command)
}
