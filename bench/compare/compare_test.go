package compare

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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

// completed sets the options that are not given to their defaults.
func completed(t *testing.T, o Options) Options {
	t.Helper()
	require.NoError(t, kong.ApplyDefaults(&o))
	return o
}

func contenderNamed(t *testing.T, name string) contender {
	t.Helper()
	all, err := chooseContenders(completed(t, Options{Contenders: []string{name}}))
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

// The reported number of look-ups is correct. There is only one client, so the order of visits is
// fixed.
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
		// The page and the site each have two keys if each transaction has one visit: the visitor's and the day's.
		asked := map[string]float64{"naive": 4, "naive+filter": 4 * (1 - first), "baseline": 4 * (1 - first), "batched": 2}[r.Contender]
		assert.InDelta(t, asked, r.Asked, 1e-9, r.Contender)
	}
}

// No run may contain midnight: the expected numbers are for one day.
func TestServiceCountsAtNoon(t *testing.T) {
	t.Parallel()
	one := contenderNamed(t, "batched")
	read, days := one.read, []int32(nil)
	one.read = func(ctx context.Context, address string) (storedNumbers, error) {
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

// losing is a contender that answers one visit without counting it.
type losing struct {
	counting
	left *int // number of visits until the lost one; there is only one client
}

func (l losing) Visit(ctx context.Context, r counter.Request) (visit.Answer, error) {
	if *l.left--; *l.left == 0 {
		return visit.Answer{Site: visit.Counts{Rank: 1}, Page: visit.Counts{Rank: 1}}, nil
	}
	return l.counting.Visit(ctx, r)
}

// A lost visit makes the comparison fail, but only after all measurements.
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

// An error in a visit stops the run: a visit that was not counted must not seem fast.
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
		all, err := chooseContenders(completed(t, o))
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
		`contenders: "fast" is not one of them: choose from naive,`: {Contenders: []string{"naive", "fast"}},
		`contenders: "naive" is not one of them: choose from batc`:  {Options: bench.Options{Footfall: os.Args[0]}, HTTP: true, Contenders: []string{"naive"}},
		"visits: 16777217 visitors need more":                       {Visits: 1<<24 + 1},
		"duration: -1s is not positive":                             {Duration: -time.Second},
		"old: it has no effect without --http":                      {Old: "/x"},
	} {
		faults := completed(t, o).Check()
		require.NotEmpty(t, faults, want)
		assert.ErrorContains(t, errors.Join(faults...), want)
		assert.Len(t, faults, 1, want)
	}
}

// sentVisits returns visits of three visitors. The first one returns.
func sentVisits() []load.Arrival {
	return []load.Arrival{{Page: 0, Visitor: 0}, {Page: 1, Visitor: 1}, {Page: 0, Visitor: 0}, {Page: 1, Visitor: 2}}
}

// faultless returns the correct content of the tables after sentVisits.
func faultless() storedNumbers {
	s := newStoredNumbers()
	s.sums = map[string]load.Sums{load.Site: {PV: 3, UV: 3, Hot: 4}, load.PageURI(0): {PV: 1, UV: 1, Hot: 2},
		load.PageURI(1): {PV: 2, UV: 2, Hot: 2}}
	for rank, visitor := range []netip.Addr{load.Address(0), load.Address(1), load.Address(2)} {
		s.addVisitor(load.Site, visitor, int64(rank+1))
	}
	s.addVisitor(load.PageURI(0), load.Address(0), 1)
	s.addVisitor(load.PageURI(1), load.Address(1), 1)
	s.addVisitor(load.PageURI(1), load.Address(2), 2)
	return s
}

// Each kind of error is found.
func TestJudge(t *testing.T) {
	t.Parallel()
	site, page := load.Site, load.PageURI(1)
	missing := func(s *storedNumbers) {
		s.sums[site], s.sums[page] = load.Sums{PV: 2, UV: 2, Hot: 3}, load.Sums{PV: 1, UV: 1, Hot: 1}
		delete(s.ranks[site], load.Address(2))
		delete(s.ranks[page], load.Address(2))
	}
	for name, c := range map[string]struct {
		change func(*storedNumbers)
		want   Errors
	}{
		"all is well":     {func(*storedNumbers) {}, Errors{}},
		"one is lost":     {missing, Errors{UV: 2, PV: 2, Hot: 2}},
		"a visitor twice": {func(s *storedNumbers) { s.sums[site] = load.Sums{PV: 4, UV: 4, Hot: 4} }, Errors{UV: 1, PV: 1, Ranks: 1}},
		"a visitor not seen": {func(s *storedNumbers) {
			s.sums[page] = load.Sums{PV: 2, UV: 1, Hot: 2}
			delete(s.ranks[page], load.Address(2))
		}, Errors{UV: 1}},
		"a day not counted":    {func(s *storedNumbers) { s.sums[site] = load.Sums{PV: 2, UV: 3, Hot: 4} }, Errors{PV: 1}},
		"a visit at nobody's":  {func(s *storedNumbers) { s.sums[load.PageURI(7)] = load.Sums{Hot: 1} }, Errors{Hot: 1}},
		"two with one rank":    {func(s *storedNumbers) { s.addVisitor(site, load.Address(2), 1) }, Errors{Ranks: 1}},
		"a rank that none has": {func(s *storedNumbers) { s.addVisitor(site, load.Address(2), 9) }, Errors{Ranks: 1}},
		"unproven sums":        {func(s *storedNumbers) { s.unproven = 1 }, Errors{Unproven: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := faultless()
			c.change(&s)
			assert.Equal(t, c.want, judge(sentVisits(), s))
		})
	}
}

// sample is a made-up comparison, with the longest numbers that a table must have room for.
func sample(http bool) *Report {
	r := &Report{
		Machine: "2 CPUs, go1.26.8, PostgreSQL 15.18, fsync on, synchronous_commit on, started 2019-06-29T12:00:00Z",
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

// Medians are over the rounds, and each contender is compared with the others of its round.
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

// A contender that promises exact numbers and breaks this promise must not look like a contender
// without the promise.
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

// A comparison that was stopped early, or has one contender, is shown as far as possible.
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
