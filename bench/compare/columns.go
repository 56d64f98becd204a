package compare

import (
	"fmt"
	"slices"

	"footfall/bench"
)

// column is one figure of a contender, as all tables show it.
type column struct {
	Head  string
	About string
	cell  func(Row) string
}

// columns are those of a comparison's tables, behind the contender's name.
func (r *Report) columns() []column {
	memory := "MB of memory that it holds: its heap after the run and its helpers, the most of any round"
	ranks := "answers whose rank is not the visitor's own by the tables, all rounds"
	if r.HTTP {
		memory = "MB of memory of its process at the most"
		ranks = "ranks from 1 to uv that no visitor has, all rounds"
	}
	count := func(n int64) string { return bench.Grouped(float64(n)) }
	all := []column{
		{"visits/s", "visits a second, the median of the rounds", func(r Row) string { return bench.Grouped(r.PerSecond.Median) }},
		{"min..max", "the slowest and the fastest round", func(r Row) string {
			return bench.Grouped(r.PerSecond.Min) + ".." + bench.Grouped(r.PerSecond.Max)
		}},
		{"p50 ms", "half of the visits were answered within this", func(r Row) string { return bench.Millis(r.P50Ms) }},
		{"p99 ms", "99 % were", func(r Row) string { return bench.Millis(r.P99Ms) }},
		{"asked", "existence queries a visit: keys looked up to decide new or known", func(r Row) string { return bench.UpTo(r.Asked, 3) }},
		{"rows", "rows written a visit, inserted or updated", func(r Row) string { return bench.UpTo(r.Written, 2) }},
		{"WAL B", "bytes of PostgreSQL's log a visit", func(r Row) string { return bench.Grouped(r.WAL) }},
		{"MB", memory, func(r Row) string { return bench.Megabytes(r.Memory) }},
		{"uv off", "visitors that uv misses or has too many, over all targets and rounds", func(r Row) string { return count(r.Errors.UV) }},
		{"ranks off", ranks, func(r Row) string { return count(r.Errors.Ranks) }},
	}
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Drained > 0 }) {
		all = append(all, column{"drained/s", "visits a second at which the inbox was counted to its end, once no more came",
			func(r Row) string { return bench.Grouped(r.Drained) }})
	}
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Sustained > 0 }) {
		all = append(all,
			column{"sustained", "visits a second that both counted just before: twice as many were offered", func(r Row) string { return bench.Grouped(r.Sustained) }},
			column{"worst p99", "99 % were answered within so many ms in the worst second of any round", func(r Row) string { return bench.Millis(r.WorstMs) }},
			column{"MB early", "MB of memory at the most until a fifth had come", func(r Row) string { return bench.Megabytes(r.Early) }})
	}
	for _, reference := range references {
		if slices.ContainsFunc(r.Contenders, func(a About) bool { return a.Name == reference }) {
			all = append(all, column{"/" + reference, "visits/s divided by those of " + reference + " on the same workload",
				func(r Row) string { return bench.Times(r.To[reference]) }})
		}
	}
	return all
}

// rowsOf are a workload's rows in the order of the contenders.
func (r *Report) rowsOf(workload string) (rows []Row) {
	for _, about := range r.Contenders {
		for _, row := range r.Rows {
			if row.Workload == workload && row.Contender == about.Name {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// faultOf says what a contender got wrong at a workload, or "".
func (r *Report) faultOf(row Row) string {
	broken := ""
	for _, run := range r.Runs {
		if run.Contender == row.Contender && run.Workload == row.Workload && run.Fault != "" && broken == "" {
			broken = fmt.Sprintf("round %d: %s", run.Round, run.Fault)
		}
	}
	e := row.Errors
	if e == (Errors{}) && broken == "" {
		return ""
	}
	text := fmt.Sprintf("in %s visits uv is off by %s, pv by %s, hot by %s; %s ranks are wrong", bench.Grouped(float64(row.Visits)),
		bench.Grouped(float64(e.UV)), bench.Grouped(float64(e.PV)), bench.Grouped(float64(e.Hot)), bench.Grouped(float64(e.Ranks)))
	if broken != "" {
		return fmt.Sprintf("%s BREAKS ITS PROMISE: %s (%s)", row.Contender, text, broken)
	}
	return row.Contender + " does not promise to be exact, and is not: " + text
}

// way says how the visits came, and how often each was measured.
func (r *Report) way() string {
	repeats := fmt.Sprintf("medians of %d rounds in turns", r.Rounds)
	if r.Rounds == 1 {
		repeats = "one round: there is no spread to tell a difference from noise"
	}
	how := fmt.Sprintf("all in one process, %d clients at once", r.Clients)
	if r.HTTP {
		how = fmt.Sprintf("wrk on the same machine, %d connections, each contender a process of its own", r.Clients)
	}
	return fmt.Sprintf("%s; %s; seed %d", how, repeats, r.Seed)
}
