// Command bench measures Footfall. It compares ways of counting, in one process or over HTTP against `footfall serve`,
// measures reports, and fills tables with generated visits. `bench --help` lists its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	_ "time/tzdata" // embeds the time zone files, because apps have time zones

	"github.com/alecthomas/kong"

	"footfall/bench"
	"footfall/bench/compare"
	"footfall/bench/generate"
	"footfall/bench/reports"
	"footfall/bench/structures"
	"footfall/db"
)

type commandLine struct {
	Compare    compareCmd    `cmd:"" default:"withargs" help:"Compare ways of counting visits, on several workloads. This is the default of bench, with the same flags."`
	Generate   generateCmd   `cmd:"" help:"Fill tables with an app of generated visits, to try reports and checks."`
	Reports    reportsCmd    `cmd:"" help:"Measure reading: how long reports and dashboards take while visits are counted, and how long these visits take."`
	Structures structuresCmd `cmd:"" help:"Compare data structures for checking whether a key was seen: hash set, Bloom filters, bitmap."`
}

// command is implemented by every command of bench. A command can also have a method Check, which returns all faults of its
// flags. In this case, run calls Check before it runs the command.
type command interface {
	run(ctx context.Context, p *program) error
}

// program contains the output streams of a command.
type program struct{ stdout, stderr io.Writer }

const exitWell, exitFailed, exitUsage = 0, 1, 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after the first signal, restore the default handling, so that a second signal kills the process
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := &program{stdout, stderr}
	parser, err := kong.New(&commandLine{}, kong.Name("bench"), kong.Description("Measures Footfall."), kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	if err != nil {
		panic(err) // only a bug in commandLine or its struct tags causes an error
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return p.complain(exitUsage, err)
	}
	var faults bench.Faults
	for _, flag := range parsed.Flags() {
		number, least, most := flag.Target, 1, math.MaxInt32
		_, _ = fmt.Sscanf(flag.Tag.Get("range"), "%d..%d", &least, &most) // without a range, least and most stay unchanged
		if number.Kind() == reflect.Int {
			n := int(number.Int())
			faults.When(n < least || n > most, "%s: %d is out of range: give %d to %d", flag.Name, n, least, most)
		}
	}
	typed := parsed.Selected().Target.Addr().Interface().(command)
	if checked, is := typed.(interface{ Check() bench.Faults }); is && len(faults) == 0 {
		faults = checked.Check()
	}
	if len(faults) > 0 {
		return p.complain(exitUsage, faults...)
	}
	if err := typed.run(ctx, p); err != nil {
		return p.complain(exitFailed, err)
	}
	return exitWell
}

func (p *program) complain(code int, faults ...error) int {
	for _, fault := range faults {
		fmt.Fprintf(p.stderr, "bench: %s\n", db.Sentence(fault))
	}
	return code
}

func (p *program) progress(line string) { fmt.Fprintln(p.stderr, line) }

// publish prints the report if it is complete: if err is nil or wraps bench.ErrUntrue. It returns err.
func (p *program) publish(report interface{ Print(io.Writer) }, err error) error {
	if err == nil || errors.Is(err, bench.ErrUntrue) {
		report.Print(p.stdout)
	}
	return err
}

type compareCmd struct{ compare.Options }

func (c *compareCmd) run(ctx context.Context, p *program) error {
	c.Progress = p.progress
	report, err := compare.Run(ctx, c.Options)
	return p.publish(report, err)
}

type reportsCmd struct{ reports.Options }

func (c *reportsCmd) run(ctx context.Context, p *program) error {
	c.Progress = p.progress
	report, err := reports.Run(ctx, c.Options)
	return p.publish(report, err)
}

type structuresCmd struct {
	Keys int `default:"10000000" range:"1000..100000000" help:"How many keys to add: ip_0, ip_1 and so on. With 10 million, the article's filter must be wrong exactly 7,017 times. Default: ${default}."`
}

func (c *structuresCmd) run(ctx context.Context, p *program) error {
	report, err := structures.Run(ctx, c.Keys, bench.Options{Progress: p.progress}.Doing)
	return p.publish(report, err)
}

type generateCmd struct {
	generate.Set
	Data        string `placeholder:"DIR" help:"Folder of an embedded PostgreSQL, created if it is missing. Either this or --database-url must be given."`
	DatabaseURL string `env:"FOOTFALL_DATABASE_URL" placeholder:"URL" help:"Fill this database. Footfall's tables are created in it if they are missing."`
	PostgresBin string `env:"FOOTFALL_POSTGRES_BIN" placeholder:"DIR" help:"Folder of PostgreSQL's programs for the embedded one. Default: it is searched for."`
	Log         string `placeholder:"FILE" help:"Write an access log of the visits to this file instead. It has 1.5 other lines for each visit: --visits 4000000 writes 10 million lines."`
}

func (c *generateCmd) Check() bench.Faults {
	f := c.Set.Check()
	f.When(c.Log == "" && c.Data == "" && c.DatabaseURL == "", "data: name the folder to fill, or a database with --database-url")
	return f
}

func (c *generateCmd) run(ctx context.Context, p *program) (err error) {
	if c.Log != "" {
		file, err := os.Create(c.Log)
		if err != nil {
			return err
		}
		return errors.Join(generate.WriteLog(file, c.Set), file.Close())
	}
	server, err := bench.OpenServer(ctx, bench.Options{DatabaseURL: c.DatabaseURL, PostgresBin: c.PostgresBin}, c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := generate.Run(ctx, bench.Options{DatabaseURL: server.URL, Progress: p.progress}, c.Set); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, c.Completed())
	return nil
}
