package compare

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// completed has the defaults of what is not given.
func completed(t *testing.T, o Options) Options {
	t.Helper()
	require.NoError(t, kong.ApplyDefaults(&o))
	return o
}

func contenderNamed(t *testing.T, name string) contender {
	t.Helper()
	all, err := chosen(completed(t, Options{Contenders: []string{name}}))
	require.NoError(t, err)
	return all[0]
}

func TestRun(t *testing.T) {
	t.Parallel()
	var told []string
	report, err := Run(t.Context(), completed(t, Options{
		Options:    bench.Options{DatabaseURL: dbtest.Empty(t), Seed: 3, Progress: func(line string) { told = append(told, line) }},
		Contenders: []string{"naive+filter", "batched+both", "baseline"}, Workloads: []string{"burst"},
		Visits: 300, Clients: 20, Rounds: 2,
	}))
	require.NoError(t, err)
	assert.Len(t, report.Rows, 3)
	assert.Len(t, told, 6)
	assert.Contains(t, report.Machine, "PostgreSQL 1")
	var order []string
	for _, r := range report.Runs {
		order = append(order, r.Contender)
	}
	assert.Equal(t, []string{"naive+filter", "baseline", "batched+both", "baseline", "batched+both", "naive+filter"}, order, "turns")
	for _, r := range report.Rows {
		assert.Equal(t, 600, r.Visits)
		for figure, value := range map[string]float64{
			"visits/s": r.PerSecond.Median, "p50": r.P50Ms, "p99": r.P99Ms, "to both": r.To[both],
		} {
			assert.Positive(t, value, "%s of %s", figure, r.Contender)
		}
		if r.Contender != "naive+filter" {
			assert.Equal(t, Errors{}, r.Errors, r.Contender)
		}
	}
}

// What is said to have been asked is what was: one client, so that there is one order
// of things.
func TestRunCounts(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), completed(t, Options{
		Options: bench.Options{
			DatabaseURL: dbtest.Empty(t),
		}, Contenders: []string{"naive", "naive+filter", "baseline", "batched", "batched+both"}, Workloads: []string{"burst"},
		Visits: 100, Clients: 1, Rounds: 1,
	}))
	require.NoError(t, err)
	firsts, burst := map[load.Arrival]bool{}, load.Workloads[2].Sequence(0, 100)
	for _, a := range burst {
		firsts[a] = true
	}
	first := float64(len(firsts)) / float64(len(burst))
	for _, r := range report.Rows {
		assert.Equal(t, Errors{}, r.Errors, "%s with one client", r.Contender)
		// Of the page and of the site, each has two keys where there is one visit a transaction:
		// the visitor's and the day's.
		asked := map[string]float64{"naive": 4, "naive+filter": 4 * (1 - first), "baseline": 4 * (1 - first), "batched": 2}[r.Contender]
		assert.InDelta(t, asked, r.Asked, 1e-9, r.Contender)
	}
}

// Midnight must not fall into a run: the truth knows one day.
func TestServiceCountsAtNoon(t *testing.T) {
	t.Parallel()
	one := contenderNamed(t, "batched")
	read, days := one.read, []int32(nil)
	one.read = func(ctx context.Context, address string) (standing, error) {
		days = dbtest.Column[int32](t, dbtest.Connect(t, address), "SELECT DISTINCT day_id FROM visits")
		return read(ctx, address)
	}
	_, err := run(
		t.Context(),
		completed(t, Options{Options: bench.Options{DatabaseURL: dbtest.Empty(t)}, Workloads: []string{"first"}, Visits: 10, Rounds: 1}),
		[]contender{one},
	)
	require.NoError(t, err)
	assert.Equal(t, []int32{visit.DayOf(noon(), time.UTC)}, days)
}

// losing is a contender that answers a visit without counting it.
type losing struct {
	counting
	left *int // visits until then; there is one client
}

func (l losing) Visit(ctx context.Context, r counter.Request) (visit.Answer, error) {
	if *l.left--; *l.left == 0 {
		return visit.Answer{Site: visit.Counts{Rank: 1}, Page: visit.Counts{Rank: 1}}, nil
	}
	return l.counting.Visit(ctx, r)
}

// A lost visit makes the comparison fail, but only when all has been measured.
func TestRunFindsALostVisit(t *testing.T) {
	t.Parallel()
	honest := contenderNamed(t, "baseline")
	thief := honest
	thief.Name = "thief"
	thief.open = func(ctx context.Context, address string) (counting, error) {
		c, err := honest.open(ctx, address)
		left := 30
		return losing{c, &left}, err
	}
	report, err := run(t.Context(), completed(t, Options{
		Options: bench.Options{DatabaseURL: dbtest.Empty(t)}, Workloads: []string{"burst"}, Visits: 60, Clients: 1, Rounds: 1,
	}), []contender{thief, honest})
	require.ErrorIs(t, err, bench.ErrUntrue)
	require.ErrorContains(t, err, "round 1, burst, thief: ")
	assert.NotContains(t, err.Error(), "baseline")
	require.Len(t, report.Runs, 2)
	assert.EqualValues(t, 2, report.Runs[0].Errors.Hot)
	assert.Equal(t, Errors{}, report.Runs[1].Errors)
}

// An error of a visit ends it all: what was not counted must not count as fast.
func TestRunFailsWithAVisit(t *testing.T) {
	t.Parallel()
	broken := contenderNamed(t, "baseline")
	open := broken.open
	fault := errors.New("out of order")
	broken.open = func(ctx context.Context, address string) (counting, error) {
		c, err := open(ctx, address)
		return refusing{c, fault}, err
	}
	_, err := run(
		t.Context(),
		completed(
			t,
			Options{Options: bench.Options{DatabaseURL: dbtest.Empty(t)}, Workloads: []string{"first"}, Visits: 10, Clients: 2, Rounds: 1},
		),
		[]contender{broken},
	)
	require.ErrorIs(t, err, fault)
}

type refusing struct {
	counting
	fault error
}

func (r refusing) Visit(context.Context, counter.Request) (visit.Answer, error) {
	return visit.Answer{}, r.fault
}

func TestChosen(t *testing.T) {
	t.Parallel()
	names := func(o Options) (names []string) {
		all, err := chosen(completed(t, o))
		require.NoError(t, err)
		for _, c := range all {
			names = append(names, c.Name)
		}
		return names
	}
	here := []string{"naive", "naive+filter", "baseline", "batched", "batched+filter", "batched+memory", "batched+both"}
	assert.Equal(t, here, names(Options{}))
	assert.Equal(t, here[3:], names(Options{HTTP: true}))
	assert.Equal(t, []string{"batched+both", "old"}, names(Options{HTTP: true, Old: "/x", Contenders: []string{"old", "batched+both"}}))
	assert.Len(t, ends(), 240)
	assert.Regexp(t, `^&referrer=https://source-[0-9]+\.example/$`, ends()[8].Query)
	assert.Regexp(t, `^User-Agent: Mozilla/5\.0 \(.*\r\nAccept-Language: [a-z].*\r\n$`, ends()[7].Headers)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	assert.Empty(t, completed(t, Options{}).Check())
	assert.Empty(
		t,
		completed(
			t,
			Options{Options: bench.Options{Footfall: os.Args[0]}, HTTP: true, Rounds: 2, Old: "/x", Connections: 4, Duration: 2 * time.Second},
		).Check(),
	)
	for want, o := range map[string]Options{
		`contenders: there is no "fast" here: choose from naive,`: {Contenders: []string{"naive", "fast"}},
		`contenders: there is no "naive" here: choose from batc`:  {Options: bench.Options{Footfall: os.Args[0]}, HTTP: true, Contenders: []string{"naive"}},
		"visits: 16777217 visitors are more":                      {Visits: 1<<24 + 1},
		"duration: -1s will not do":                               {Duration: -time.Second},
		"old: it means nothing without --http":                    {Old: "/x"},
	} {
		faults := completed(t, o).Check()
		require.NotEmpty(t, faults, want)
		assert.ErrorContains(t, errors.Join(faults...), want)
		assert.Len(t, faults, 1, want)
	}
}
