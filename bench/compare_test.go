package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func contenderNamed(t *testing.T, name string) contender {
	t.Helper()
	chosen, err := contendersNamed([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return chosen[0]
}

func TestCompare(t *testing.T) {
	t.Parallel()
	var told []string
	report, err := Compare(t.Context(), CompareOptions{
		DatabaseURL: dbtest.Empty(t), Contenders: []string{"naive+filter", "batched+both", "baseline"}, Workloads: []string{"burst"},
		Visits: 300, Clients: 20, Rounds: 2, Seed: 3, Progress: func(line string) { told = append(told, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 3 || len(report.Runs) != 6 || len(told) != 6 || report.Machine.PostgreSQL == "" {
		t.Fatalf("%d rows, %d runs, %d lines of progress, of %+v", len(report.Rows), len(report.Runs), len(told), report.Machine)
	}
	var order []string
	for _, r := range report.Runs {
		order = append(order, r.Contender)
	}
	if want := []string{"naive+filter", "baseline", "batched+both", "baseline", "batched+both", "naive+filter"}; !slices.Equal(order, want) {
		t.Errorf("the contenders' turns are %v, want %v", order, want)
	}
	for _, r := range report.Rows {
		if r.Visits != 600 || r.PerSecond.Median <= 0 || r.P50Ms <= 0 || r.P99Ms < r.P50Ms || r.WAL <= 0 || r.Written <= 0 || r.ToBaseline <= 0 {
			t.Errorf("a row lacks something: %+v", r)
		}
		if r.Contender != "naive+filter" && r.Errors != (Errors{}) {
			t.Errorf("%s is wrong on %s: %+v", r.Contender, r.Workload, r.Errors)
		}
		if helped := strings.HasSuffix(r.Contender, "+both"); helped && (r.Helpers <= 0 || r.Memory <= 0) {
			t.Errorf("the helpers take no memory: %+v", r)
		}
	}
	const want = "--contenders naive+filter,batched+both,baseline --workloads burst --visits 300 --clients 20 --rounds 2 --seed 3"
	if !strings.HasSuffix(report.Command, want) || strings.Contains(report.Command, "postgres://") {
		t.Errorf("to repeat it: %s", report.Command)
	}
}

// What is said to have been asked and written is what was: one client, so that there is one order of things.
func TestCompareCounts(t *testing.T) {
	t.Parallel()
	report, err := Compare(t.Context(), CompareOptions{
		DatabaseURL: dbtest.Empty(t), Contenders: []string{"naive", "naive+filter", "baseline", "batched", "batched+both"}, Workloads: []string{"burst"},
		Visits: 100, Clients: 1, Rounds: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	truth := truthOf(workloadNamed(t, "burst").sequence(1, 100))
	first := float64(truth.firsts) / 100
	for _, r := range report.Rows {
		if r.Errors != (Errors{}) {
			t.Errorf("%s is wrong with one client: %+v", r.Contender, r.Errors)
		}
		// Of the page and of the site, each has two keys where there is one visit a transaction: the visitor's and the day's.
		asked := map[string]float64{
			"naive": 4, "naive+filter": 4 * (1 - first), "baseline": 4 * (1 - first), "batched": 2, "batched+both": 0,
		}[r.Contender]
		if r.Asked != asked {
			t.Errorf("%s asks %v a visit, want %v", r.Contender, r.Asked, asked)
		}
		if least := 2 + 4*first; r.Written < least {
			t.Errorf("%s writes %v rows a visit, want %v and more", r.Contender, r.Written, least)
		}
	}
}

// Midnight must not fall into a run: the truth knows one day.
func TestServiceCountsAtNoon(t *testing.T) {
	t.Parallel()
	one := contenderNamed(t, "batched")
	read, days := one.read, []int32(nil)
	one.read = func(ctx context.Context, address string) (standing, error) {
		conn, err := connect(ctx, address)
		if err != nil {
			return standing{}, err
		}
		defer conn.Close(ctx)
		rows, _ := conn.Query(ctx, "SELECT DISTINCT day_id FROM visits")
		if days, err = pgx.CollectRows(rows, pgx.RowTo[int32]); err != nil {
			return standing{}, err
		}
		return read(ctx, address)
	}
	_, err := compare(t.Context(), CompareOptions{DatabaseURL: dbtest.Empty(t), Workloads: []string{"first"}, Visits: 10, Rounds: 1}, []contender{one})
	if want := visit.DayOf(noon(), time.UTC); err != nil || !slices.Equal(days, []int32{want}) {
		t.Errorf("the days are %v, want %d; %v", days, want, err)
	}
}

// losing is a contender that answers a visit without counting it.
type losing struct {
	counting
	left *int // visits until then; there is one client
}

func (l losing) visit(ctx context.Context, r counter.Request) (visit.Answer, error) {
	if *l.left--; *l.left == 0 {
		return visit.Answer{Site: visit.Counts{Rank: 1}, Page: visit.Counts{Rank: 1}}, nil
	}
	return l.counting.visit(ctx, r)
}

// A lost visit makes the comparison fail, but only when all has been measured.
func TestCompareFindsALostVisit(t *testing.T) {
	t.Parallel()
	honest := contenderNamed(t, "baseline")
	thief := honest
	thief.Name = "thief"
	thief.open = func(ctx context.Context, address string) (counting, error) {
		c, err := honest.open(ctx, address)
		left := 30
		return losing{c, &left}, err
	}
	report, err := compare(t.Context(), CompareOptions{
		DatabaseURL: dbtest.Empty(t), Workloads: []string{"burst"}, Visits: 60, Clients: 1, Rounds: 1,
	}, []contender{thief, honest})
	if !errors.Is(err, ErrUntrue) || !strings.Contains(err.Error(), "round 1, burst, thief: ") || strings.Contains(err.Error(), "baseline") {
		t.Errorf("the error is %v", err)
	}
	if report == nil || len(report.Runs) != 2 || report.Runs[0].Errors.Hot != 2 || report.Runs[1].Errors != (Errors{}) {
		t.Errorf("the report is %+v", report)
	}
}

// An error of a visit ends it all: what was not counted must not count as fast.
func TestCompareFailsWithAVisit(t *testing.T) {
	t.Parallel()
	broken := contenderNamed(t, "baseline")
	open := broken.open
	fault := errors.New("out of order")
	broken.open = func(ctx context.Context, address string) (counting, error) {
		c, err := open(ctx, address)
		return refusing{c, fault}, err
	}
	_, err := compare(t.Context(), CompareOptions{DatabaseURL: dbtest.Empty(t), Workloads: []string{"first"}, Visits: 10, Clients: 2, Rounds: 1}, []contender{broken})
	if !errors.Is(err, fault) {
		t.Errorf("the error is %v", err)
	}
}

type refusing struct {
	counting
	fault error
}

func (r refusing) visit(context.Context, counter.Request) (visit.Answer, error) {
	return visit.Answer{}, r.fault
}

func TestQuickCoversEverything(t *testing.T) {
	t.Parallel()
	o := CompareOptions{Quick: true, Rounds: 7}
	o.complete()
	all, err := contendersNamed(nil)
	loads, err2 := workloadsNamed(nil)
	if err := errors.Join(err, err2); err != nil || o.Rounds != 1 || o.Visits != quickVisits || len(all) != 7 || len(loads) != 4 {
		t.Errorf("%d contenders, %d workloads, %+v, %v", len(all), len(loads), o, err)
	}
	for _, c := range all {
		if want := map[bool]int{true: leastVisits, false: quickVisits}[c.alone]; o.visitsOf(c) != want {
			t.Errorf("%s gets %d visits, want %d", c.Name, o.visitsOf(c), want)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	for _, o := range []CompareOptions{
		{Contenders: []string{"naive", "fast"}}, {Workloads: []string{"rush"}}, {Visits: -1}, {Visits: MostVisits + 1}, {Clients: -1}, {Rounds: -1},
	} {
		if report, err := Compare(t.Context(), o); err == nil || report != nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// Each kind of error is found, and found to be one that a promise rules out or not.
func TestJudge(t *testing.T) {
	t.Parallel()
	const visitors = 4000
	sequence := workloadNamed(t, "first").sequence(1, visitors)
	for name, c := range map[string]struct {
		change func(told []toldRanks, s *standing)
		want   Errors
		exact  bool // would one that is exact answer and hold this
	}{
		"true":             {func([]toldRanks, *standing) {}, Errors{}, true},
		"a lost visit":     {func(_ []toldRanks, s *standing) { s.add(site, sums{0, 0, -1}) }, Errors{Hot: 1}, false},
		"a day twice":      {func(_ []toldRanks, s *standing) { s.add(site, sums{1, 0, 0}) }, Errors{PV: 1}, false},
		"a visitor twice":  {func(_ []toldRanks, s *standing) { s.add(site, sums{0, 1, 0}) }, Errors{UV: 1}, false},
		"nobody's page":    {func(_ []toldRanks, s *standing) { s.add("nobody.example", sums{1, 1, 1}) }, Errors{UV: 1, PV: 1, Hot: 1}, false},
		"another's rank":   {func(told []toldRanks, _ *standing) { told[3].site = 1 }, Errors{Ranks: 1}, false},
		"a rank not told":  {func(told []toldRanks, _ *standing) { told[3].page = 0 }, Errors{Ranks: 1}, false},
		"a rank twice":     {func(told []toldRanks, s *standing) { s.rank(told, 3, 1) }, Errors{Ranks: 1}, false},
		"a rank beyond uv": {func(told []toldRanks, s *standing) { s.rank(told, 3, visitors+1) }, Errors{Ranks: 1}, false},
		"unproven sums":    {func(_ []toldRanks, s *standing) { s.unproven = 1 }, Errors{}, false},
		"visitors lost":    {func(told []toldRanks, s *standing) { s.lose(told, 12) }, Errors{UV: 12, Ranks: 12}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, s := counted(sequence)
			c.change(told, &s)
			v := judge(sequence, told, s)
			if v.Errors != c.want {
				t.Errorf("%+v, want %+v", v.Errors, c.want)
			}
			if fault := v.brokenBy(ContenderAbout{Exact: true}); (fault == "") != c.exact {
				t.Errorf("the promise is broken: %q; it should hold: %v", fault, c.exact)
			}
			if fault := v.brokenBy(ContenderAbout{}); fault != "" {
				t.Errorf("what was not promised is broken: %q", fault)
			}
		})
	}
}

// counted is what a faultless contender answers and holds, where every visitor comes once.
func counted(sequence []arrival) ([]toldRanks, standing) {
	s := newStanding()
	var told []toldRanks
	for _, a := range sequence {
		page, visitor := pageURI(int(a.page)), addressOf(int(a.visitor))
		s.add(site, sums{1, 1, 1})
		s.add(page, sums{1, 1, 1})
		s.came(site, visitor, s.sums[site].uv)
		s.came(page, visitor, s.sums[page].uv)
		told = append(told, toldRanks{s.sums[site].uv, s.sums[page].uv})
	}
	return told, s
}

func (s *standing) add(uri string, n sums) {
	was := s.sums[uri]
	s.sums[uri] = sums{was.pv + n.pv, was.uv + n.uv, was.hot + n.hot}
}

// rank gives a visitor of the site another rank, and tells him so.
func (s *standing) rank(told []toldRanks, visitor int, rank int64) {
	told[visitor].site = rank
	s.ranks[site][addressOf(visitor)] = rank
}

// lose takes the last visitors of the site for known ones.
func (s *standing) lose(told []toldRanks, visitors int) {
	s.add(site, sums{0, -int64(visitors), 0})
	for n := len(told) - visitors; n < len(told); n++ {
		told[n].site = 0
		delete(s.ranks[site], addressOf(n))
	}
}

func TestWaitUntil(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	never := func() (bool, error) { return false, nil }
	if err := waitUntil(ended, "the end", never); !errors.Is(err, context.Canceled) || !strings.Contains(fmt.Sprint(err), "the end") {
		t.Errorf("the error is %v", err)
	}
	fault := errors.New("no")
	if err := waitUntil(t.Context(), "the end", func() (bool, error) { return false, fault }); !errors.Is(err, fault) {
		t.Errorf("the error is %v", err)
	}
	tries := 0
	if err := waitUntil(t.Context(), "the end", func() (bool, error) { tries++; return tries == 3, nil }); err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
}
