package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"footfall/visit"
)

// EdgeOptions of a measurement of the edge. A zero field means its default.
type EdgeOptions struct {
	DatabaseURL string        // a server on which databases may be made; default: an embedded one
	Dir         string        // where the embedded one keeps its data; default: the system's folder for temporary files
	BinDir      string        // PostgreSQL's programs for the embedded one; default: looked for
	Parts       []string      // default: all of EdgeParts
	Connections int           // of wrk, an even number; default 256
	Slow        int           // clients that are slow; default 2,000
	Rate        int           // visits a second of those beside the slow ones; default 2,000
	Rounds      int           // default 5
	Duration    time.Duration // of each turn, whole seconds; default 10 s
	Seed        uint64        // of the workloads; default 1
	Quick       bool          // one round of a second each, and not of all scenes
	Progress    func(string)  // told what is being done; may be nil
}

func (o *EdgeOptions) complete() {
	if o.Quick {
		o.Rounds, o.Duration = 1, time.Second
	}
	if o.Connections == 0 {
		o.Connections = 256
	}
	if o.Slow == 0 {
		o.Slow = 2000
	}
	if o.Rate == 0 {
		o.Rate = 2000
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// command is the command line that repeats the measurement.
func (o *EdgeOptions) command() string {
	var own []string
	if len(o.Parts) > 0 {
		own = append(own, "--parts", strings.Join(o.Parts, ","))
	}
	own = append(own, "--connections", strconv.Itoa(o.Connections), "--slow", strconv.Itoa(o.Slow), "--rate", strconv.Itoa(o.Rate),
		"--seed", strconv.FormatUint(o.Seed, 10))
	if o.Quick {
		own = append(own, "--quick") // which leaves something out
	} else {
		own = append(own, "--rounds", strconv.Itoa(o.Rounds), "--duration", o.Duration.String())
	}
	return commandLine("footfall bench edge", o.DatabaseURL, o.Dir, nil, nil, own...)
}

// edge is a run of Edge. One goroutine uses it.
type edge struct {
	EdgeOptions
	server    *server
	script    script
	sequences map[string][]arrival // by workload, as they are written for wrk
	report    *EdgeReport
}

// Edge measures what keys and limits cost, and what slow clients cost the others: in each round every way has its turn against
// the real server, a process of its own on a new database. After each turn the tables are checked. An error that wraps ErrUntrue
// comes with a report.
func Edge(ctx context.Context, o EdgeOptions) (_ *EdgeReport, err error) {
	o.complete()
	if o.Connections < wrkThreads || o.Connections%wrkThreads != 0 || o.Slow < 1 || o.Rate < 1 || o.Rounds < 1 ||
		o.Duration < time.Second || o.Duration%time.Second != 0 {
		return nil, fmt.Errorf("bench: %d connections, %d slow ones, %d visits a second, %d rounds of %v will not do: give an even number, 1 or more, whole seconds",
			o.Connections, o.Slow, o.Rate, o.Rounds, o.Duration)
	}
	scenes, err := scenesOf(o.Parts, o.Quick)
	if err != nil {
		return nil, err
	}
	if err := o.checkFiles(); err != nil {
		return nil, err
	}
	e := &edge{EdgeOptions: o, sequences: map[string][]arrival{}, report: &EdgeReport{
		Command: o.command(), Connections: o.Connections, Slow: o.Slow, Rate: o.Rate, Rounds: o.Rounds, Seconds: int(o.Duration.Seconds()), Seed: o.Seed,
	}}
	if e.script, err = newScript(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.script.remove()) }()
	if e.server, err = openServer(ctx, o.DatabaseURL, o.Dir, o.BinDir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.server.close()) }()
	if e.report.Machine, err = e.server.machine(ctx); err != nil {
		return nil, err
	}
	if err := e.prepare(scenes); err != nil {
		return nil, err
	}
	for round := 1; round <= o.Rounds; round++ {
		for _, scene := range scenes {
			for i := range scene.ways { // another begins in each round
				if err := e.turn(ctx, scene, scene.ways[(i+round-1)%len(scene.ways)], round); err != nil {
					return nil, err
				}
			}
		}
	}
	e.report.summarize(scenes)
	return e.report, e.report.untrue()
}

// filesBeside are those that a process has open beside its connections.
const filesBeside = 200

// checkFiles tells before anything is measured that there are too few files for as many connections. Go has raised the limit as far as
// it may, and the server raises its own.
func (o *EdgeOptions) checkFiles() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if need := uint64(o.Slow + o.Connections + steadyConnections + filesBeside); need > limit.Cur { //nolint:gosec // none is negative
		return fmt.Errorf("slow: so many clients need %d open files, and this process may have %d: raise the hard limit (ulimit -Hn), or choose fewer", need, limit.Cur)
	}
	return nil
}

// prepare writes the workloads down for wrk.
func (e *edge) prepare(scenes []scene) error {
	for _, scene := range scenes {
		if scene.steady || e.sequences[scene.workload] != nil {
			continue
		}
		chosen, err := workloadsNamed([]string{scene.workload})
		if err != nil {
			return err
		}
		visits := mostPerSecond * e.report.Machine.CPUs * int(e.Duration.Seconds())
		e.Progress(fmt.Sprintf("preparing %d visits of %s", visits, scene.workload))
		sequence := chosen[0].sequence(e.Seed, visits)
		e.sequences[scene.workload] = sequence
		if err := e.script.write(scene.workload, sequence); err != nil {
			return err
		}
		if err := e.script.writeLines(scene.workload+forwarded, sequence, forwardedLine); err != nil {
			return err
		}
	}
	return nil
}

// turn is one way's run of a scene. All visits must be of one day, else the truth is another: if midnight comes in between, the
// run is repeated.
func (e *edge) turn(ctx context.Context, in scene, way way, round int) error {
	for {
		day := visit.DayOf(time.Now(), time.UTC)
		run, err := e.run(ctx, in, way)
		if err != nil {
			return fmt.Errorf("round %d, %s, %s: %w", round, in.name, way.name, err)
		}
		if visit.DayOf(time.Now(), time.UTC) != day {
			e.Progress("midnight came in between: once more")
			continue
		}
		run.Round = round
		e.report.Runs = append(e.report.Runs, run)
		e.Progress(fmt.Sprintf("round %d of %d, %s: %s", round, e.Rounds, in.name, run))
		return nil
	}
}
