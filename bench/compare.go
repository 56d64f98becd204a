package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CompareOptions of a comparison in this process. A zero field means its default.
type CompareOptions struct {
	DatabaseURL string       // a server on which databases may be made; default: an embedded one
	Dir         string       // where the embedded one keeps its data; default: the system's folder for temporary files
	BinDir      string       // PostgreSQL's programs for the embedded one; default: looked for
	Contenders  []string     // default: all
	Workloads   []string     // default: all
	Visits      int          // of a run; default 100,000. Those who count one visit a transaction take the first tenth, and no less than 1,500
	Clients     int          // who visit at once; default 2,000, which fills batches
	Rounds      int          // default 5
	Seed        uint64       // of the workloads; default 1
	Quick       bool         // one round of 10,000 visits
	Progress    func(string) // told what is being done; may be nil
}

const (
	quickVisits = 10_000
	// Those who count one visit a transaction are slower by a factor of ten and more.
	fewerVisits = 10
	leastVisits = 1500
)

func (o *CompareOptions) complete() {
	if o.Visits == 0 {
		o.Visits = 100_000
	}
	if o.Clients == 0 {
		o.Clients = 2000
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Quick {
		o.Visits, o.Rounds = quickVisits, 1
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// MostVisits bounds CompareOptions.Visits: each visit may be by a visitor of its own.
const MostVisits = addresses

// visitsOf is how many visits of a workload a contender gets.
func (o *CompareOptions) visitsOf(c contender) int {
	if c.alone {
		return max(o.Visits/fewerVisits, min(o.Visits, leastVisits))
	}
	return o.Visits
}

// command is the command line that repeats the comparison.
func (o *CompareOptions) command() string {
	return commandLine("footfall bench", o.DatabaseURL, o.Dir, o.Contenders, o.Workloads,
		"--visits", strconv.Itoa(o.Visits), "--clients", strconv.Itoa(o.Clients),
		"--rounds", strconv.Itoa(o.Rounds), "--seed", strconv.FormatUint(o.Seed, 10))
}

// commandLine is a command with what was given of the flags that both comparisons have, and with its own.
func commandLine(command, databaseURL, dir string, contenders, workloads []string, own ...string) string {
	words := []string{command}
	if databaseURL != "" {
		words = append(words, "--database-url …") // it may hold a password
	}
	if dir != "" {
		words = append(words, "--dir", dir)
	}
	if len(contenders) > 0 {
		words = append(words, "--contenders", strings.Join(contenders, ","))
	}
	if len(workloads) > 0 {
		words = append(words, "--workloads", strings.Join(workloads, ","))
	}
	return strings.Join(append(words, own...), " ")
}

// throughRecorder is what Comparison.Through says of Compare.
const throughRecorder = "recorder"

// ErrUntrue comes with a complete comparison in which a contender made errors that it promises not to make.
var ErrUntrue = errors.New("what was counted is not true")

// Compare lets every contender count every workload once in each round, on a new database each time, and checks the tables and
// all answers afterwards. Only when all has been measured does an error of an exact contender make it fail, with ErrUntrue.
func Compare(ctx context.Context, o CompareOptions) (*Comparison, error) {
	chosen, err := contendersNamed(o.Contenders)
	if err != nil {
		return nil, err
	}
	return compare(ctx, o, chosen)
}

func compare(ctx context.Context, o CompareOptions, chosen []contender) (_ *Comparison, err error) {
	o.complete()
	loads, err := workloadsNamed(o.Workloads)
	if err != nil {
		return nil, err
	}
	if o.Visits < 1 || o.Visits > MostVisits || o.Clients < 1 || o.Rounds < 1 {
		return nil, fmt.Errorf("bench: %d visits, %d clients, %d rounds will not do: give 1 or more, and at most %d visits",
			o.Visits, o.Clients, o.Rounds, MostVisits)
	}
	s, err := openServer(ctx, o.DatabaseURL, o.Dir, o.BinDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	report := &Comparison{Through: throughRecorder, Command: o.command(), Clients: o.Clients, Rounds: o.Rounds, Seed: o.Seed}
	if report.Machine, err = s.machine(ctx); err != nil {
		return nil, err
	}
	sequences := map[string][]arrival{}
	for _, w := range loads {
		sequence := w.sequence(o.Seed, o.Visits)
		sequences[w.name] = sequence
		report.Workloads = append(report.Workloads, WorkloadAbout{w.name, w.about, o.Visits, firstShare(sequence)})
	}
	for _, c := range chosen {
		if visits := o.visitsOf(c); visits < o.Visits {
			c.About += fmt.Sprintf("; takes the first %d visits", visits)
		}
		report.Contenders = append(report.Contenders, c.ContenderAbout)
	}
	// Rounds outermost, so that what else the machine does meets all alike; another contender begins in each.
	for round := 1; round <= o.Rounds; round++ {
		for _, w := range loads {
			for i := range chosen {
				c := chosen[(i+round-1)%len(chosen)]
				run, err := s.play(ctx, turn{c, w, sequences[w.name][:o.visitsOf(c)], o.Clients, round})
				if err != nil {
					return nil, fmt.Errorf("round %d, %s, %s: %w", round, w.name, c.Name, err)
				}
				report.Runs = append(report.Runs, run)
				o.Progress(fmt.Sprintf("round %d of %d, %s: %s %.0f visits/s, p99 %.1f ms", round, o.Rounds, w.name, c.Name, run.PerSecond, run.P99Ms))
			}
		}
	}
	report.summarize()
	err = report.untrue()
	return report, err
}

// ContenderNames are the names that CompareOptions.Contenders may hold.
func ContenderNames() []string { return namesOf(contenders, contender.title) }

// HTTPContenderNames are the names that HTTPOptions.Contenders may hold.
func HTTPContenderNames() []string { return namesOf(overHTTP, contender.title) }

// WorkloadNames are the names that CompareOptions.Workloads and HTTPOptions.Workloads may hold.
func WorkloadNames() []string { return namesOf(workloads, workload.title) }

func contendersNamed(names []string) ([]contender, error) {
	return named("contender", contenders, contender.title, names)
}

func workloadsNamed(names []string) ([]workload, error) {
	return named("workload", workloads, workload.title, names)
}

func (c contender) title() string { return c.Name }
func (w workload) title() string  { return w.name }

func namesOf[T any](all []T, name func(T) string) (names []string) {
	for _, one := range all {
		names = append(names, name(one))
	}
	return names
}

// named picks those with the names, in the order of all; all where none is named.
func named[T any](what string, all []T, name func(T) string, names []string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	known := namesOf(all, name)
	for _, asked := range names {
		if !slices.Contains(known, asked) {
			return nil, fmt.Errorf("%ss: there is no %q: choose from %s", what, asked, strings.Join(known, ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !slices.Contains(names, name(one)) }), nil
}
