package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"footfall/bench"
	"footfall/bench/compare"
	"footfall/bench/generate"
	"footfall/bench/reports"
	"footfall/bench/structures"
)

// benchCmd measures. All but generate leave the data of a service alone.
type benchCmd struct {
	Compare    benchCompareCmd    `cmd:"" default:"withargs" help:"Compare ways of counting visits, on several workloads. It is what bench does unless told otherwise, with the same flags: bench compare --help lists them."`
	Generate   benchGenerateCmd   `cmd:"" help:"Fill tables with an app of made-up visits, as many as reports and checks are to be tried on."`
	Reports    benchReportsCmd    `cmd:"" help:"Measure reading: whether uniques are true, and how long reports take while visits are counted. Counts made-up visits in --data, if that is given, and refuses a folder where others have counted."`
	Structures benchStructuresCmd `cmd:"" help:"Compare structures that tell whether a key was seen: hash set, Bloom filters, bitmap, HyperLogLog. Needs no database."`
	Contender  benchContenderCmd  `cmd:"" hidden:"" help:"Serve what the service is compared with."`
}

// benchServer is where a benchmark keeps its tables.
type benchServer struct {
	Dir   string `placeholder:"DIR" help:"Folder in which the benchmark's own PostgreSQL keeps its data, which is removed at the end; choose one on the disk to be measured. With --database-url databases are made on that server instead, and dropped at the end. Default: the system's folder for temporary files."`
	JSON  string `name:"json" placeholder:"FILE" help:"Write the figures to this file, too."`
	Seed  uint64 `placeholder:"N" help:"Of all that is drawn: the same seed makes the same visits. Default: 1."`
	Quick bool   `help:"Once, and little of everything: shows that all is counted right, measures little."`
}

// options are those that the flags of all benchmarks give.
func (b benchServer) options(p *program) bench.Options {
	return bench.Options{DatabaseURL: p.DatabaseURL, Dir: b.Dir, BinDir: p.PostgresBin, Seed: b.Seed, Quick: b.Quick, Progress: p.progress}
}

// benchReport is what every benchmark ends in.
type benchReport interface{ Print(w io.Writer) }

// publish shows a report that is complete, and fails as the benchmark did: where it was that what was counted is not true, after that.
func publish[T benchReport](p *program, file string, report T, err error) error {
	if err != nil && !errors.Is(err, bench.ErrUntrue) {
		return err
	}
	report.Print(p.stdout)
	return errors.Join(writeJSON(file, report), err)
}

func writeJSON(file string, report any) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // figures, for everybody
}

// writeDrawn writes what draws itself.
func writeDrawn(file string, draw func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	var drawing bytes.Buffer
	if err := draw(&drawing); err != nil {
		return err
	}
	return os.WriteFile(file, drawing.Bytes(), 0o644) //nolint:gosec // figures, for everybody
}

func (p *program) progress(line string) { fmt.Fprintln(p.stderr, line) }

type benchCompareCmd struct {
	benchServer
	HTML        string        `name:"html" placeholder:"FILE" help:"Write the figures to this file as a page with plots, too. It needs nothing else to be looked at."`
	Contenders  []string      `placeholder:"NAME,…" help:"Which ways of counting: naive, naive+filter, believed, baseline, batched, batched+filter, batched+memory, batched+both; with --http guarded, stranger and constant, too, and with --old old. Default: all."`
	Workloads   []string      `placeholder:"NAME,…" help:"Which workloads: first, mixed, returning, burst. Default: all."`
	Preload     []int         `placeholder:"ROWS,…" help:"Rows in visitors before, to see what growing tables cost. Several numbers are measured in turns: 0,5000000. Then only those are compared who count in Footfall's tables. Default: 0."`
	Rounds      int           `placeholder:"N" help:"How often each has its turn at each workload, on a new database every time; medians are shown. Default: 5."`
	Visits      int           `placeholder:"N" help:"Visits of each run. Those who count one visit a transaction get the first tenth of them, at least 1500. Not with --http. Default: 100000."`
	Clients     int           `placeholder:"N" help:"Who visit at once; 2000 fill the batches. Not with --http. Default: 2000."`
	HTTP        bool          `name:"http" help:"Compare processes that serve HTTP, the service among them, loaded by wrk, which must be there."`
	Old         string        `placeholder:"FILE" help:"The program of another version, which has its turn beside this one's, on tables of its own; with --http."`
	Connections int           `placeholder:"N" help:"Of wrk, with --http; an even number. Default: 256."`
	Duration    time.Duration `placeholder:"TIME" help:"Of each run of wrk, with --http; whole seconds. Default: 10s."`
}

func (b *benchCompareCmd) given(o bench.Options) bench.Options {
	o.Contenders, o.Workloads, o.Preload, o.Rounds, o.Visits, o.Clients = b.Contenders, b.Workloads, b.Preload, b.Rounds, b.Visits, b.Clients
	o.HTTP, o.Old, o.Connections, o.Duration = b.HTTP, b.Old, b.Connections, b.Duration
	return o
}

func (b *benchCompareCmd) check(globals) []error { return compare.Check(b.given(bench.Options{})) }

func (b *benchCompareCmd) run(ctx context.Context, p *program) error {
	report, err := compare.Run(ctx, b.given(b.options(p)))
	if err = publish(p, b.JSON, report, err); report == nil {
		return err
	}
	if b.JSON == "" && b.HTML == "" {
		p.progress("With --json FILE the figures are written to a file, with --html FILE as a page with plots.")
	}
	return errors.Join(writeDrawn(b.HTML, report.WriteHTML), err)
}

type benchContenderCmd struct {
	Name string `arg:"" help:"Which."`
	Addr string `required:"" help:"host:port."`
}

func (b *benchContenderCmd) check(globals) []error { return nil }

func (b *benchContenderCmd) run(ctx context.Context, p *program) error {
	return compare.Serve(ctx, b.Name, b.Addr, p.DatabaseURL)
}

type benchReportsCmd struct {
	benchServer
	Parts   []string `placeholder:"NAME,…" help:"What to measure: uniques (of targets, compared with a plain count), answers (how long reports take while visits are counted). Default: both."`
	Visits  int      `placeholder:"N" help:"Visits that are generated where there are none: see bench generate. Default: 10000000."`
	Rate    int      `placeholder:"N" help:"Visits a second that are counted meanwhile. Default: 2000."`
	Runs    int      `placeholder:"N" help:"How often each report is asked for. Default: 200."`
	Samples int      `placeholder:"N" help:"Ranges of days at random whose uniques are compared. Default: 1000."`
}

func (b *benchReportsCmd) given(o bench.Options) bench.Options {
	o.Parts, o.Rate, o.Runs, o.Samples = b.Parts, b.Rate, b.Runs, b.Samples
	return o
}

func (b *benchReportsCmd) check(globals) []error {
	return append(reports.Check(b.given(bench.Options{})), generate.Set{Visits: b.Visits}.Check()...)
}

// run keeps what it generates where a folder is named with --data; that of the service is never used unasked.
func (b *benchReportsCmd) run(ctx context.Context, p *program) error {
	o := b.given(b.options(p))
	if p.embedded() && p.Data != defaultData() {
		o.Data = p.Data
	}
	report, err := reports.Run(ctx, o, generate.Set{Visits: b.Visits})
	return publish(p, b.JSON, report, err)
}

type benchStructuresCmd struct {
	Keys int    `default:"10000000" help:"Keys to add, from ip_0 on; 1000 to 100000000. At 10 million the article's filter must be wrong exactly 7,017 times. Default: 10000000."`
	JSON string `name:"json" placeholder:"FILE" help:"Write the figures to this file, too."`
	SVG  string `name:"svg" placeholder:"FILE" help:"Draw the figures into this file."`
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
	if err = publish(p, b.JSON, report, err); report == nil {
		return err
	}
	return errors.Join(writeDrawn(b.SVG, report.WriteSVG), err)
}
