// Command footfall counts visits to web pages, exactly, in PostgreSQL. `footfall --help` lists what
// it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	_ "time/tzdata" // apps have time zones, and an image without an operating system has none

	"github.com/alecthomas/kong"

	"footfall/db"
	"footfall/visit"
)

// version is set by the linker.
var version = "dev"

// Exit codes.
const (
	exitWell   = 0
	exitFailed = 1
	exitUsage  = 2
)

// commandLine is all that can be typed.
type commandLine struct {
	globals

	Serve   serveCmd   `cmd:""`
	App     appCmd     `cmd:""`
	Visitor visitorCmd `cmd:""`
	Page    pageCmd    `cmd:""`
	Report  reportCmd  `cmd:""`
	Retain  retainCmd  `cmd:""`
	Verify  verifyCmd  `cmd:""`
	Migrate migrateCmd `cmd:""`
	Psql    psqlCmd    `cmd:""`
	Health  healthCmd  `cmd:""`
	Bench   benchCmd   `cmd:""`
	Version versionCmd `cmd:""`
}

// globals are the flags of every command.
type globals struct {
	Data        string `env:"FOOTFALL_DATA" default:"${data}" placeholder:"DIR"`
	DatabaseURL string `env:"FOOTFALL_DATABASE_URL" placeholder:"URL"`
	SecretFile  string `env:"FOOTFALL_SECRET_FILE" placeholder:"FILE"`
	PostgresBin string `env:"FOOTFALL_POSTGRES_BIN" placeholder:"DIR"`
	LogLevel    string `env:"FOOTFALL_LOG_LEVEL" default:"info"`
	LogFormat   string `env:"FOOTFALL_LOG_FORMAT" default:"text"`
}

// program is what a command runs with.
type program struct {
	globals
	log    *slog.Logger
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// command is what kong finds in the command line.
type command interface {
	run(ctx context.Context, p *program) error
}

// checked is a command with a check of its own, which tells all that is wrong with the flags before
// anything is done. Any other command works on the tables, and only the global flags can be wrong.
type checked interface {
	check(g globals) []error
}

func main() {
	ctx, stop := interruptible()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible returns a context that the first SIGINT or SIGTERM ends. The second ends the
// process at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // as long as the process
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// run does what the arguments say and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	parser, err := kong.New(&line,
		kong.Name("footfall"),
		kong.Description("Footfall counts visits to web pages, exactly, in PostgreSQL.\n\n"+
			"Every flag that shows a $$FOOTFALL_… can be given in the environment by that name."),
		kong.Vars{"data": defaultData()},
		kong.PostBuild(func(k *kong.Kong) error {
			explain(readHelp(helpText), k.Model.Node, "")
			return nil
		}),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
	if err != nil {
		panic(err) // commandLine, or a tag in it, is wrong
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		complain(stderr, err)
		fmt.Fprintln(stderr, "footfall: --help tells what can be typed")
		return exitUsage
	}
	chosen := parsed.Selected().Target.Addr().Interface().(command)
	log, faults := line.logger(stderr)
	check := globals.checkDatabase
	if own, is := chosen.(checked); is {
		check = own.check
	}
	if faults = append(faults, check(line.globals)...); len(faults) > 0 {
		complain(stderr, faults...)
		return exitUsage
	}
	err = chosen.run(ctx, &program{line.globals, log, stdin, stdout, stderr})
	return exitCode(stderr, err)
}

func exitCode(stderr io.Writer, err error) int {
	var child *exec.ExitError
	var told *visit.Error
	switch {
	case err == nil:
		return exitWell
	case errors.Is(err, db.ErrInstancesBehind):
		fmt.Fprintf(stderr, "footfall: done, but %v: it will as soon as it can\n", err)
		return exitFailed // a script that goes on must not rely on it
	case errors.As(err, &child) && child.ExitCode() > 0:
		return child.ExitCode() // psql has said why itself
	case errors.As(err, &told) && told.Kind == visit.Invalid:
		complain(stderr, err)
		return exitUsage
	}
	complain(stderr, err)
	return exitFailed
}

// complain writes a line for each fault.
func complain(stderr io.Writer, faults ...error) {
	for _, fault := range faults {
		for line := range strings.Lines(fault.Error()) {
			fmt.Fprintf(stderr, "footfall: %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
}

// logger returns the logger that the flags ask for, and all that is wrong with them.
func (g globals) logger(stderr io.Writer) (*slog.Logger, []error) {
	var faults []error
	options := &slog.HandlerOptions{}
	var level slog.Level
	if err := level.UnmarshalText([]byte(g.LogLevel)); err != nil {
		faults = append(faults, fmt.Errorf("--log-level: %q is not a level: write debug, info, warn or error", g.LogLevel))
	}
	options.Level = level
	switch g.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(stderr, options)), faults
	case "json":
		return slog.New(slog.NewJSONHandler(stderr, options)), faults
	}
	return nil, append(faults, fmt.Errorf("--log-format: %q is not a format: write text or json", g.LogFormat))
}

// defaultData is where a service of the system keeps its data if root runs it, or else where a
// user's programs do. It is empty for a user who has no home.
func defaultData() string {
	if os.Geteuid() == 0 {
		return "/var/lib/footfall"
	}
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "footfall")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "footfall")
	}
	return ""
}

type versionCmd struct{}

func (*versionCmd) check(globals) []error { return nil }

func (*versionCmd) run(_ context.Context, p *program) error {
	commit := "commit unknown"
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range built.Settings {
			if setting.Key == "vcs.revision" {
				commit = "commit " + setting.Value
			}
		}
	}
	fmt.Fprintf(p.stdout, "footfall %s (%s, %s)\n", version, commit, runtime.Version())
	return nil
}
