package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"footfall/bench"
	"footfall/bench/structures"
)

// benchCmd measures. All but generate leave the data of a service alone.
type benchCmd struct {
	Compare    benchCompareCmd    `cmd:"" default:"withargs" help:"Compare ways of counting visits, on several workloads. It is what bench does unless told otherwise, with the same flags: bench compare --help lists them."`
	Generate   benchGenerateCmd   `cmd:"" help:"Fill tables with an app of made-up visits, as many as reports and checks are to be tried on."`
	Reports    benchReportsCmd    `cmd:"" help:"Measure reading: how long reports take while visits are counted, and whether their uniques are true. Counts made-up visits in --data, if that is given, and refuses a folder where others have counted."`
	Structures benchStructuresCmd `cmd:"" help:"Compare structures that tell whether a key was seen: hash set, Bloom filters, bitmap, HyperLogLog. Needs no database."`
	Contender  benchContenderCmd  `cmd:"" hidden:"" help:"Serve what the service is compared with."`
}

// benchServer is where a benchmark keeps its tables. With --database-url it makes databases of its own on that server.
type benchServer struct {
	Dir  string `placeholder:"DIR" help:"Folder in which the benchmark's own PostgreSQL keeps its data, which is removed at the end; choose one on the disk to be measured. With --database-url databases are made on that server instead, and dropped at the end. Default: the system's folder for temporary files."`
	JSON string `name:"json" placeholder:"FILE" help:"Write the figures to this file, too."`
}

func (b benchServer) write(report any) error {
	if b.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return os.WriteFile(b.JSON, append(text, '\n'), 0o644) //nolint:gosec // figures, for everybody
}

// benchReport is what every benchmark ends in.
type benchReport interface{ Print(w io.Writer) }

func (b benchServer) publish(report benchReport, p *program) error {
	report.Print(p.stdout)
	return b.write(report)
}

func (p *program) progress(line string) { fmt.Fprintln(p.stderr, line) }

type benchStructuresCmd struct {
	Keys int    `default:"10000000" help:"Keys to add, from ip_0 on; 1000 to 100000000. At 10 million the article's filter must be wrong exactly 7,017 times. Default: 10000000."`
	JSON string `name:"json" placeholder:"FILE" help:"Write the figures to this file, too."`
	SVG  string `name:"svg" placeholder:"FILE" help:"Draw the figures into this file."`
}

func (b *benchStructuresCmd) check(globals) []error {
	if b.Keys < 1000 || b.Keys > 100_000_000 {
		return []error{fmt.Errorf("keys: %d will not do: give 1000 to 100000000", b.Keys)}
	}
	return nil
}

// run fails when an exact check of the comparison does, after it has shown the figures.
func (b *benchStructuresCmd) run(ctx context.Context, p *program) error {
	report, err := structures.Run(ctx, structures.Options{Keys: b.Keys, Progress: p.progress})
	if err != nil && !errors.Is(err, structures.ErrPromiseBroken) {
		return err
	}
	shown := []error{err, report.WriteText(p.stdout), benchServer{JSON: b.JSON}.write(report)}
	if b.SVG != "" {
		var drawing bytes.Buffer
		shown = append(shown, report.WriteSVG(&drawing), os.WriteFile(b.SVG, drawing.Bytes(), 0o644)) //nolint:gosec // figures, for everybody
	}
	return errors.Join(shown...)
}

type benchContenderCmd struct {
	Name string `arg:"" help:"Which."`
	Addr string `required:"" help:"host:port."`
}

func (b *benchContenderCmd) check(globals) []error { return nil }

func (b *benchContenderCmd) run(ctx context.Context, p *program) error {
	return bench.ServeContender(ctx, b.Name, b.Addr, p.DatabaseURL)
}

// positive is the fault of a flag that is not at least one, or nil.
func positive(flag string, n int) error {
	if n < 1 {
		return fmt.Errorf("%s: %d will not do: give 1 or more", flag, n)
	}
	return nil
}

// present drops the nils.
func present(faults []error) []error {
	if joined, ok := errors.Join(faults...).(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}
