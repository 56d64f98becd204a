package compare

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"footfall/bench"
)

// sample is a comparison that nobody measured, with the longest figures that a table must have room
// for.
func sample(http bool) *Report {
	r := &Report{
		Machine: "2 CPUs, go1.26.8, PostgreSQL 15.18, fsync on, synchronous_commit on, begun 2019-06-29T12:00:00Z",
		HTTP:    http, Clients: 256, Rounds: 2, Seed: 7,
		Workloads: []About{
			{Name: "first", About: "every visit is a new visitor's"},
			{Name: "returning", About: "19 of 20 visits repeat an earlier one"},
		},
	}
	names := []string{"naive", "naive+filter", "baseline", "batched", "batched+filter", "batched+memory", "batched+both"}
	if http {
		names = append(names, "old")
	}
	for i, name := range names {
		r.Contenders = append(r.Contenders, About{name, "About " + name + " & <others>", name != "naive"})
		for _, load := range r.Workloads {
			for round := 1; round <= r.Rounds; round++ {
				run := Turn{
					Contender: name, Workload: load.Name, Round: round, PerSecond: 1655 * float64(1+i*i) * (0.4 + 0.4*float64(round)),
					P50Ms: 97 / float64(i+1), P99Ms: 2345 / float64(i+1), Asked: 4 / float64(1+i), Visits: 250_000,
				}
				if name == "naive" {
					run.Errors = Errors{UV: 617, PV: 618, Hot: 7, Ranks: 12321}
				}
				r.Runs = append(r.Runs, run)
			}
		}
	}
	r.summarize()
	return r
}

func printed(r *Report) string {
	var b strings.Builder
	r.Print(&b)
	return b.String()
}

// Medians are those of the rounds, and each is compared with those who were there.
func TestSummarize(t *testing.T) {
	t.Parallel()
	row := sample(true).Rows[3]
	assert.Equal(t, "batched", row.Contender)
	assert.InDelta(t, 16550, row.PerSecond.Median, 1e-6)
	assert.InDelta(t, 19860, row.PerSecond.Max, 1e-6)
	assert.Equal(t, 500_000, row.Visits)
	assert.InDelta(t, 10, row.To[naive], 1e-9)
	assert.InDelta(t, 0.2, row.To[old], 1e-9)
	assert.NotContains(t, sample(false).Rows[3].To, old)
	assert.EqualValues(t, 24642, sample(true).Rows[0].Errors.Ranks, "of all rounds")
}

func TestPrintShowsEveryFigure(t *testing.T) {
	t.Parallel()
	text := printed(sample(true))
	var row []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); row == nil && len(fields) > 0 && fields[0] == "batched" {
			row = fields
		}
	}
	assert.Equal(t, []string{
		"batched", "16,550", "13,240..19,860", "24.2", "586", "1.00", "0", "0", "10.0", "2.00", "1.00", "0.27", "0.20",
	}, row)
	for _, part := range []string{"2 CPUs", "256 connections", "medians of 2 rounds in turns; seed 7",
		"first: every visit is a new visitor's\n", "returning:", "About baseline", "divided by those of that contender"} {
		assert.Contains(t, text, part)
	}
	assert.NotContains(t, printed(sample(false)), "/old", "nobody was compared with it")
	for line := range strings.Lines(text) {
		assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 160, line)
	}
}

// A contender that breaks its promise must not look like one that made none.
func TestErrorsAreMarked(t *testing.T) {
	t.Parallel()
	r := sample(false)
	naive := "naive does not promise to be exact, and is not: in 500,000 visits uv is off by 1,234, pv by 1,236, hot by 14; 24,642 ranks " +
		"are wrong; 0 sums unproven"
	text := printed(r)
	assert.Equal(t, 2, strings.Count(text, naive), text)
	assert.NotContains(t, text, "BREAKS")
	for i, run := range r.Runs {
		if run.Contender == "batched+both" && run.Workload == "first" {
			r.Runs[i].Errors.Unproven = 3
		}
	}
	r.summarize()
	broken := "batched+both BREAKS ITS PROMISE: in 500,000 visits uv is off by 0, pv by 0, hot by 0; 0 ranks are wrong; 6 sums unproven"
	assert.Equal(t, 1, strings.Count(printed(r), broken))
	assert.ErrorIs(t, r.untrue(), bench.ErrUntrue)
}

// What was stopped early, or measured with one contender, is shown as far as it goes.
func TestLittleToShow(t *testing.T) {
	t.Parallel()
	bare, empty := sample(false), sample(true)
	bare.Rows, bare.Runs = nil, nil
	for i, row := range empty.Rows {
		empty.Rows[i] = Row{Contender: row.Contender, Workload: row.Workload}
	}
	for name, r := range map[string]*Report{"nothing": {}, "no rows": bare, "rows of nothing": empty} {
		text := printed(r)
		assert.NotContains(t, text, "NaN", name)
		assert.NotContains(t, text, "Inf", name)
	}
}
