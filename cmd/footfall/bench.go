package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"footfall/bench"
	"footfall/bench/compare"
	"footfall/bench/generate"
	"footfall/bench/reports"
	"footfall/bench/structures"
)

// benchCmd measures. All but generate leave the data of a service alone.
type benchCmd struct {
	Compare    benchCompareCmd    `cmd:"" default:"withargs"`
	Generate   benchGenerateCmd   `cmd:""`
	Reports    benchReportsCmd    `cmd:""`
	Structures benchStructuresCmd `cmd:""`
	Contender  benchContenderCmd  `cmd:"" hidden:""`
}

// benchServer is where a benchmark keeps its tables.
type benchServer struct {
	Dir   string `placeholder:"DIR"`
	JSON  string `name:"json" placeholder:"FILE"`
	Seed  uint64 `placeholder:"N"`
	Quick bool
}

// options are those that the flags of all benchmarks give.
func (b benchServer) options(p *program) bench.Options {
	return bench.Options{DatabaseURL: p.DatabaseURL, Dir: b.Dir, BinDir: p.PostgresBin, Seed: b.Seed, Quick: b.Quick, Progress: p.progress}
}

// publish shows a report that is complete, unless one of the files that are asked for is standard
// output, and fails as the benchmark did: where it was that what was counted is not true, after
// that.
func publish(p *program, file string, report interface{ Print(io.Writer) }, err error, others ...string) error {
	if err != nil && !errors.Is(err, bench.ErrUntrue) {
		return err
	}
	if file != standardOutput && !slices.Contains(others, standardOutput) {
		report.Print(p.stdout)
	}
	return errors.Join(p.saveFile(file, func(w io.Writer) error { return writeJSON(w, report) }), err)
}

// standardOutput is written where a file is named.
const standardOutput = "-"

// saveFile writes a file, if one is named, once all that belongs into it is there.
func (p *program) saveFile(file string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if file == standardOutput {
		_, err := p.stdout.Write(text.Bytes())
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644) //nolint:gosec // figures, for everybody
}

func (p *program) progress(line string) { fmt.Fprintln(p.stderr, line) }

type benchCompareCmd struct {
	benchServer
	HTML        string        `name:"html" placeholder:"FILE"`
	Contenders  []string      `placeholder:"NAME,…"`
	Workloads   []string      `placeholder:"NAME,…"`
	Preload     []int         `placeholder:"ROWS,…"`
	Rounds      int           `placeholder:"N"`
	Visits      int           `placeholder:"N"`
	Clients     int           `placeholder:"N"`
	HTTP        bool          `name:"http"`
	Old         string        `placeholder:"FILE"`
	Connections int           `placeholder:"N"`
	Duration    time.Duration `placeholder:"TIME"`
}

func (b *benchCompareCmd) given(o bench.Options) bench.Options {
	o.Contenders, o.Workloads, o.Preload, o.Rounds, o.Visits, o.Clients = b.Contenders, b.Workloads, b.Preload, b.Rounds, b.Visits, b.Clients
	o.HTTP, o.Old, o.Connections, o.Duration = b.HTTP, b.Old, b.Connections, b.Duration
	return o
}

func (b *benchCompareCmd) check(globals) []error { return compare.Check(b.given(bench.Options{})) }

func (b *benchCompareCmd) run(ctx context.Context, p *program) error {
	report, err := compare.Run(ctx, b.given(b.options(p)))
	if err = publish(p, b.JSON, report, err, b.HTML); report == nil {
		return err
	}
	if b.JSON == "" && b.HTML == "" {
		p.progress("With --json FILE the figures are written to a file, with --html FILE as a page with plots.")
	}
	return errors.Join(p.saveFile(b.HTML, report.WriteHTML), err)
}

type benchContenderCmd struct {
	Name string `arg:""`
	Addr string `required:""`
}

func (b *benchContenderCmd) check(globals) []error { return nil }

func (b *benchContenderCmd) run(ctx context.Context, p *program) error {
	return compare.Serve(ctx, b.Name, b.Addr, p.DatabaseURL)
}

type benchReportsCmd struct {
	benchServer
	Parts   []string `placeholder:"NAME,…"`
	Visits  int      `placeholder:"N"`
	Rate    int      `placeholder:"N"`
	Runs    int      `placeholder:"N"`
	Samples int      `placeholder:"N"`
	Log     int      `name:"log-visits" placeholder:"N"`
}

func (b *benchReportsCmd) given(o bench.Options) bench.Options {
	o.Parts, o.Rate, o.Runs, o.Samples, o.Log = b.Parts, b.Rate, b.Runs, b.Samples, b.Log
	return o
}

func (b *benchReportsCmd) check(globals) []error {
	return append(reports.Check(b.given(bench.Options{})), generate.Set{Visits: b.Visits}.Check()...)
}

// run keeps what it generates where a folder is named with --data; that of the service is never
// used unasked.
func (b *benchReportsCmd) run(ctx context.Context, p *program) error {
	o := b.given(b.options(p))
	if p.embedded() && p.Data != defaultData() {
		o.Data = p.Data
	}
	report, err := reports.Run(ctx, o, generate.Set{Visits: b.Visits})
	return publish(p, b.JSON, report, err)
}

type benchStructuresCmd struct {
	Keys int    `default:"10000000"`
	JSON string `name:"json" placeholder:"FILE"`
	SVG  string `name:"svg" placeholder:"FILE"`
}

func (b *benchStructuresCmd) check(globals) []error {
	if b.Keys < structures.MinKeys || b.Keys > structures.MaxKeys {
		return []error{fmt.Errorf("keys: %d will not do: give %d to %d", b.Keys, structures.MinKeys, structures.MaxKeys)}
	}
	return nil
}

// run fails when an exact check of the comparison does, after it has shown the figures.
func (b *benchStructuresCmd) run(ctx context.Context, p *program) error {
	report, err := structures.Run(ctx, b.Keys, p.progress)
	if err = publish(p, b.JSON, report, err, b.SVG); report == nil {
		return err
	}
	return errors.Join(p.saveFile(b.SVG, report.WriteSVG), err)
}
