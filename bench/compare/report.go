package compare

import (
	"fmt"
	"strings"

	"footfall/bench"
)

// Report is what Run measured: every contender on every workload, several times.
type Report struct {
	Machine    bench.Machine `json:"machine"`
	HTTP       bool          `json:"http"`    // wrk against a process for each contender; else in one process
	Command    string        `json:"command"` // that repeats it
	Clients    int           `json:"clients"` // who visit at once; over HTTP: connections
	Rounds     int           `json:"rounds"`
	Seed       uint64        `json:"seed"`
	Contenders []About       `json:"contenders"` // in the order of the tables
	Loads      []Load        `json:"workloads"`
	Rows       []Row         `json:"rows"` // a row for each workload and contender, over the rounds
	Runs       []Turn        `json:"runs"` // what the rows sum up
}

// About says what a contender is.
type About struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Exact bool   `json:"exact"` // any difference from the truth makes the comparison fail
}

// Load says what a workload is.
type Load struct {
	Name  string  `json:"name"`
	About string  `json:"about"`
	First float64 `json:"first"` // share of the visits that are the first of a visitor to a page
}

// Figures are what is measured.
type Figures struct {
	P50Ms   float64 `json:"p50Ms"`
	P99Ms   float64 `json:"p99Ms"`
	Asked   float64 `json:"existenceQueries"`  // for each visit: keys looked up to decide new or known
	Written float64 `json:"rowsWritten"`       // for each visit: rows inserted and updated
	WAL     float64 `json:"walBytes"`          // for each visit
	Memory  int64   `json:"memoryBytes"`       // held by the service or contender: heap after the run; over HTTP the peak of its process
	Drained float64 `json:"drained,omitempty"` // visits that were counted a second after the end, of those that waited in the inbox
	// Of visits that were offered at twice the rate that is sustained.
	Sustained float64 `json:"sustained,omitempty"`  // visits a second that both counted just before
	WorstMs   float64 `json:"worstMs,omitempty"`    // p99 of the worst second
	Early     int64   `json:"earlyBytes,omitempty"` // the most memory of the process until a fifth had come
	Helpers   int64   `json:"helperBytes"`          // of that, the filter's and the memory's own
	Errors    Errors  `json:"errors"`
	Visits    int     `json:"visits"`
}

// Turn is one contender's turn at one workload, on a new database.
type Turn struct {
	Contender string  `json:"contender"`
	Workload  string  `json:"workload"`
	Round     int     `json:"round"`
	PerSecond float64 `json:"perSecond"`
	Figures
	Fault string `json:"fault,omitempty"` // errors that the contender promises not to make, in words
}

// Errors are a run's differences from the truth.
type Errors struct {
	UV  int64 `json:"uv"`  // visitors that uv misses or has too many, over all targets
	PV  int64 `json:"pv"`  // the same of visitor days
	Hot int64 `json:"hot"` // the same of visits
	// Ranks: answers whose rank is nobody's, somebody else's, or not told, and rows with a rank
	// outside of 1..uv or held twice; over HTTP ranks that the tables miss.
	Ranks int64 `json:"ranks"`
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
var references = []string{naive, batched, both, old, constant}

// summarize makes the rows of the runs, in the order in which they first came.
func (r *Report) summarize() {
	type key struct{ workload, contender string }
	groups := map[key][]Turn{}
	var order []key
	for _, run := range r.Runs {
		k := key{run.Workload, run.Contender}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], run)
	}
	spread := func(k key, of func(Turn) float64) bench.Spread {
		var values []float64
		for _, run := range groups[k] {
			values = append(values, of(run))
		}
		return bench.SpreadOf(values)
	}
	perSecond := func(run Turn) float64 { return run.PerSecond }
	r.Rows = nil
	for _, k := range order {
		row := Row{Contender: k.contender, Workload: k.workload, PerSecond: spread(k, perSecond), To: map[string]float64{}}
		row.P50Ms = spread(k, func(run Turn) float64 { return run.P50Ms }).Median
		row.P99Ms = spread(k, func(run Turn) float64 { return run.P99Ms }).Median
		row.Asked = spread(k, func(run Turn) float64 { return run.Asked }).Median
		row.Written = spread(k, func(run Turn) float64 { return run.Written }).Median
		row.WAL = spread(k, func(run Turn) float64 { return run.WAL }).Median
		row.Drained = spread(k, func(run Turn) float64 { return run.Drained }).Median
		row.Sustained = spread(k, func(run Turn) float64 { return run.Sustained }).Median
		row.WorstMs = spread(k, func(run Turn) float64 { return run.WorstMs }).Max
		for _, reference := range references {
			if to := (key{k.workload, reference}); groups[to] != nil {
				row.To[reference] = bench.Ratio(row.PerSecond.Median, spread(to, perSecond).Median)
			}
		}
		for _, run := range groups[k] {
			row.Early = max(row.Early, run.Early)
			row.Memory, row.Helpers = max(row.Memory, run.Memory), max(row.Helpers, run.Helpers)
			row.Visits += run.Visits
			row.Errors.UV += run.Errors.UV
			row.Errors.PV += run.Errors.PV
			row.Errors.Hot += run.Errors.Hot
			row.Errors.Ranks += run.Errors.Ranks
		}
		r.Rows = append(r.Rows, row)
	}
}

// untrue is an error that wraps bench.ErrUntrue and tells of every run with a fault; nil where
// there is none.
func (r *Report) untrue() error {
	var faults []string
	for _, run := range r.Runs {
		if run.Fault != "" {
			faults = append(faults, fmt.Sprintf("round %d, %s, %s: %s", run.Round, run.Workload, run.Contender, run.Fault))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", bench.ErrUntrue, strings.Join(faults, "\n"))
}
