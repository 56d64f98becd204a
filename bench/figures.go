package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// untold stands where there is no figure: nothing to compare with, or nothing known.
const untold = "-"

// column is one figure of a contender, as all tables show it.
type column struct {
	Head  string
	About string
	Wide  bool // too much for a terminal
	cell  func(ComparisonRow) string
}

// columns are those of a comparison's tables, behind the contender's name.
func (c *Comparison) columns() []column {
	memory := "MB of memory that it holds: its heap after the run and its helpers, the most of any round"
	ranks := "answers whose rank is not the visitor's own by the tables, all rounds"
	if c.Through == throughHTTP {
		memory = "MB of memory of its process at the most"
		ranks = "ranks from 1 to uv that no visitor has, all rounds"
	}
	all := []column{
		{"visits/s", "visits a second, the median of the rounds", false, func(r ComparisonRow) string { return grouped(r.PerSecond.Median) }},
		{"min..max", "the slowest and the fastest round", false, func(r ComparisonRow) string {
			return grouped(r.PerSecond.Min) + ".." + grouped(r.PerSecond.Max)
		}},
		{"p50 ms", "half of the visits were answered within this", false, func(r ComparisonRow) string { return millis(r.P50Ms) }},
		{"p95 ms", "95 % were", false, func(r ComparisonRow) string { return millis(r.P95Ms) }},
		{"p99 ms", "99 % were", false, func(r ComparisonRow) string { return millis(r.P99Ms) }},
		{"asked", "existence queries a visit: keys looked up to decide new or known", false, func(r ComparisonRow) string { return upTo(r.Asked, 3) }},
		{"rows", "rows written a visit, inserted or updated", false, func(r ComparisonRow) string { return upTo(r.Written, 2) }},
		{"WAL B", "bytes of PostgreSQL's log a visit", false, func(r ComparisonRow) string { return grouped(r.WAL) }},
		{"MB", memory, false, func(r ComparisonRow) string { return megabytes(r.Memory) }},
		{"helpers MB", "of that, the filter and the memory", true, func(r ComparisonRow) string { return megabytes(r.Helpers) }},
		{"uv off", "visitors that uv misses or has too many, over all targets and rounds", false, func(r ComparisonRow) string { return errorCount(r.Errors.UV) }},
		{"pv off", "the same of pv", true, func(r ComparisonRow) string { return errorCount(r.Errors.PV) }},
		{"hot off", "the same of hot", true, func(r ComparisonRow) string { return errorCount(r.Errors.Hot) }},
		{"ranks off", ranks, false, func(r ComparisonRow) string { return errorCount(r.Errors.Ranks) }},
		{"/baseline", "visits/s divided by those of baseline, here and below on the same workload", false, func(r ComparisonRow) string { return times(r.ToBaseline) }},
		{"/naive", "by those of naive", false, func(r ComparisonRow) string { return times(r.ToNaive) }},
		{"/batched", "by those of batched", false, func(r ComparisonRow) string { return times(r.ToBatched) }},
	}
	if c.Through == throughHTTP {
		all = append(all, column{"/constant", "by those of a handler that counts nothing", false, func(r ComparisonRow) string { return times(r.ToConstant) }})
	}
	return all
}

// narrow drops the columns for which a terminal has no room.
func narrow(all []column) []column {
	return slices.DeleteFunc(all, func(c column) bool { return c.Wide })
}

// rowsOf are a workload's rows in the order of the contenders.
func (c *Comparison) rowsOf(workload string) []ComparisonRow {
	place := map[string]int{}
	for i, contender := range c.Contenders {
		place[contender.Name] = i - len(c.Contenders) // who is not described comes last
	}
	rows := slices.DeleteFunc(slices.Clone(c.Rows), func(r ComparisonRow) bool { return r.Workload != workload })
	slices.SortStableFunc(rows, func(a, b ComparisonRow) int { return cmp.Compare(place[a.Contender], place[b.Contender]) })
	return rows
}

func (c *Comparison) contender(name string) ContenderAbout {
	for _, about := range c.Contenders {
		if about.Name == name {
			return about
		}
	}
	return ContenderAbout{Name: name}
}

// fault is what a contender got wrong at a workload.
type fault struct {
	Contender string
	Broken    bool // more than it says of itself
	Text      string
}

func (c *Comparison) faultsOf(rows []ComparisonRow) (faults []fault) {
	for _, row := range rows {
		broken := c.brokenPromise(row)
		e := row.Errors
		if e == (Errors{}) && broken == "" {
			continue
		}
		text := fmt.Sprintf("in %s visits uv is off by %s, pv by %s, hot by %s; %s ranks are wrong", grouped(float64(row.Visits)),
			errorCount(e.UV), errorCount(e.PV), errorCount(e.Hot), errorCount(e.Ranks))
		if broken != "" {
			text = "BREAKS ITS PROMISE: " + text + " (" + broken + ")"
		} else {
			text = "does not promise to be exact, and is not: " + text
		}
		faults = append(faults, fault{row.Contender, broken != "", text})
	}
	return faults
}

func (c *Comparison) wrong(row ComparisonRow) bool { return len(c.faultsOf([]ComparisonRow{row})) > 0 }

// brokenPromise is the first fault of a row's runs, or "".
func (c *Comparison) brokenPromise(row ComparisonRow) string {
	for _, run := range c.Runs {
		if run.Contender == row.Contender && run.Workload == row.Workload && run.Fault != "" {
			return fmt.Sprintf("round %d: %s", run.Round, run.Fault)
		}
	}
	return ""
}

// way says how the visits came.
func (c *Comparison) way() string {
	if c.Through == throughHTTP {
		return fmt.Sprintf("wrk on the same machine, %d connections, each contender a process of its own", c.Clients)
	}
	return fmt.Sprintf("all in one process, %d clients at once", c.Clients)
}

// repeats says how often each was measured.
func (c *Comparison) repeats() string {
	if c.Rounds == 1 {
		return "one round: there is no spread to tell a difference from noise"
	}
	return fmt.Sprintf("medians of %d rounds in turns", c.Rounds)
}

// grouped writes a number without decimals, its digits in threes.
func grouped(v float64) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 && text != "0" {
		b.WriteByte('-')
	}
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// millis keeps three digits.
func millis(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return grouped(v)
}

// upTo writes at most so many decimals.
func upTo(v float64, decimals int) string {
	power := math.Pow10(decimals)
	return strconv.FormatFloat(math.Round(v*power)/power, 'f', -1, 64)
}

func megabytes(bytes int64) string {
	switch mb := float64(bytes) / 1e6; {
	case bytes == 0:
		return untold
	case mb < 10:
		return fmt.Sprintf("%.1f", mb)
	default:
		return grouped(mb)
	}
}

func errorCount(n int64) string { return grouped(float64(n)) }

// times writes a ratio.
func times(v float64) string {
	switch {
	case v == 0:
		return untold
	case v < 10:
		return fmt.Sprintf("×%.2f", v)
	}
	return "×" + upTo(v, 1)
}
