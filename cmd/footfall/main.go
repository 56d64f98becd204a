// Command footfall counts visits to web pages, exactly, in PostgreSQL. `footfall --help` lists its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // embeds the time zones of apps, because an image without an operating system has no time zone files

	"github.com/alecthomas/kong"

	"footfall/admin"
	"footfall/db"
	"footfall/db/cells"
	"footfall/visit"
)

// Exit codes of the program.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitNothing = 3 // footfall verify had nothing to check
	exitWarned  = 4 // footfall status printed warnings
)

type commandLine struct {
	globals

	Serve serveCmd `cmd:""`
	App   struct {
		Add    appAddCmd    `cmd:""`
		Set    appSetCmd    `cmd:""`
		List   appListCmd   `cmd:""`
		Delete appDeleteCmd `cmd:""`
		Export appExportCmd `cmd:""`
		Load   appLoadCmd   `cmd:""`
		Site   struct {
			Add    siteAddCmd    `cmd:""`
			Remove siteRemoveCmd `cmd:""`
		} `cmd:""`
		Key struct {
			Add    keyAddCmd    `cmd:""`
			List   keyListCmd   `cmd:""`
			Revoke keyRevokeCmd `cmd:""`
		} `cmd:""`
		Share struct {
			Add    shareAddCmd    `cmd:""`
			List   shareListCmd   `cmd:""`
			Revoke shareRevokeCmd `cmd:""`
		} `cmd:""`
		Note struct {
			Add    noteAddCmd    `cmd:""`
			List   noteListCmd   `cmd:""`
			Remove noteRemoveCmd `cmd:""`
		} `cmd:""`
		Webhook struct {
			Add    webhookAddCmd    `cmd:""`
			List   webhookListCmd   `cmd:""`
			Remove webhookRemoveCmd `cmd:""`
		} `cmd:""`
	} `cmd:""`
	StartLink startLinkCmd `cmd:""`
	Account   struct {
		Add    accountAddCmd    `cmd:""`
		List   accountListCmd   `cmd:""`
		Set    accountSetCmd    `cmd:""`
		Remove accountRemoveCmd `cmd:""`
		Link   accountLinkCmd   `cmd:""`
	} `cmd:""`
	Visitor struct {
		Show  visitorShowCmd  `cmd:""`
		Erase visitorEraseCmd `cmd:""`
	} `cmd:""`
	People struct {
		Load peopleLoadCmd `cmd:""`
	} `cmd:""`
	Page struct {
		Delete pageDeleteCmd `cmd:""`
	} `cmd:""`
	Offset struct {
		Set    offsetSetCmd    `cmd:""`
		Import offsetImportCmd `cmd:""`
		List   offsetListCmd   `cmd:""`
		Remove offsetRemoveCmd `cmd:""`
	} `cmd:""`
	History struct {
		Import historyImportCmd `cmd:""`
		List   historyListCmd   `cmd:""`
		Remove historyRemoveCmd `cmd:""`
	} `cmd:""`
	Report struct {
		Top      reportTopCmd      `cmd:""`
		Days     reportDaysCmd     `cmd:""`
		Page     reportPageCmd     `cmd:""`
		Tags     reportTagsCmd     `cmd:""`
		Events   reportEventsCmd   `cmd:""`
		Goals    reportGoalsCmd    `cmd:""`
		Funnel   reportFunnelCmd   `cmd:""`
		Panel    reportPanelCmd    `cmd:"" default:"withargs"`
		Visitors reportVisitorsCmd `cmd:""`
		Rank     reportRankCmd     `cmd:""`
	} `cmd:""`
	Import struct {
		Files  importFilesCmd  `cmd:"" default:"withargs"`
		List   importListCmd   `cmd:""`
		Forget importForgetCmd `cmd:""`
	} `cmd:""`
	Consume struct {
		Queue consumeQueueCmd `cmd:"" default:"withargs"`
		List  consumeListCmd  `cmd:""`
	} `cmd:""`
	Standby struct {
		Require standbyRequireCmd `cmd:""`
	} `cmd:""`
	Changes changesCmd `cmd:""`
	Key     struct {
		Add    allKeyAddCmd    `cmd:""`
		List   allKeyListCmd   `cmd:""`
		Revoke allKeyRevokeCmd `cmd:""`
	} `cmd:""`
	Retain  retainCmd `cmd:""`
	Verify  verifyCmd `cmd:""`
	Status  statusCmd `cmd:""`
	Migrate struct {
		Up     migrateUpCmd     `cmd:""`
		Status migrateStatusCmd `cmd:""`
		Down   migrateDownCmd   `cmd:""`
	} `cmd:""`
	Upgrade upgradeCmd `cmd:""`
	Cell    struct {
		Add     cellAddCmd     `cmd:""`
		List    cellListCmd    `cmd:""`
		Move    cellMoveCmd    `cmd:""`
		MoveApp cellMoveAppCmd `cmd:""`
		Drop    cellDropCmd    `cmd:""`
		Node    struct {
			Add     nodeAddCmd     `cmd:""`
			Replace nodeReplaceCmd `cmd:""`
			Remove  nodeRemoveCmd  `cmd:""`
		} `cmd:""`
	} `cmd:""`
	Psql    psqlCmd    `cmd:""`
	Health  healthCmd  `cmd:""`
	Version versionCmd `cmd:""`
	Help    helpCmd    `cmd:""`

	Completion completionCmd `cmd:""`

	ShowVersion kong.VersionFlag `name:"version" short:"v"`
}

// globals are the flags that every command accepts.
type globals struct {
	Data        string `env:"FOOTFALL_DATA" default:"${data}" placeholder:"DIR"`
	DatabaseURL string `env:"FOOTFALL_DATABASE_URL" placeholder:"URL"`
	SecretFile  string `env:"FOOTFALL_SECRET_FILE" placeholder:"FILE"`
	NeedStandby bool   `name:"require-standby" env:"FOOTFALL_REQUIRE_STANDBY"`
	PostgresBin string `env:"FOOTFALL_POSTGRES_BIN" placeholder:"DIR"`
	LogLevel    string `env:"FOOTFALL_LOG_LEVEL" default:"info"`
	LogFormat   string `env:"FOOTFALL_LOG_FORMAT" default:"text"`
}

// program is passed to every command. It contains the global flags, the log and the standard streams.
type program struct {
	globals
	log    *slog.Logger
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	// makesData allows a command to create the embedded database. Only some commands set it. All others fail if the folder
	// --data contains no database. Otherwise a mistyped --data would show an empty database.
	makesData bool
}

// command is implemented by commands that need no database, or whose run method opens the database.
type command interface {
	run(ctx context.Context, p *program) error
}

// opensFirst is implemented by commands whose run method needs one of the following values. execute creates this value and
// passes it to run:
//   - *db.DB: a database with the current schema
//   - *admin.Admin: an Admin for a database with the current schema
//   - *cells.Cluster: the cluster whose coordinator --database-url names
type opensFirst[T any] interface {
	run(ctx context.Context, p *program, opened T) error
}

// flagChecker is implemented by commands that check their own flags before they run. check returns all faults. For all
// other commands, only the global flags are checked before the command runs.
type flagChecker interface {
	check(g globals) faults
}

type faults []error

func (f *faults) add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

func (f *faults) addIf(wrong bool, format string, values ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf(format, values...))
	}
}

func main() {
	ctx, stop := interruptible()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels. A second signal ends the process at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // this goroutine runs until the process exits
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	line := readLine(args, stdout, stderr)
	log, flagFaults := line.logger(stderr)
	line.faults = append(line.faults, flagFaults...)
	line.check()
	if len(line.faults) > 0 {
		line.complain(stderr, line.faults...)
		for _, warning := range line.warnings() {
			fmt.Fprintln(stderr, "footfall: "+warning)
		}
		if line.hasParseFault {
			fmt.Fprintln(stderr, "footfall: --help lists the commands and flags")
		}
		return exitUsage
	}
	for _, warning := range line.warnings() {
		log.Warn(warning)
	}
	p := &program{globals: line.globals, log: log, stdin: stdin, stdout: stdout, stderr: stderr}
	return line.reportError(p, p.execute(ctx, line.selected))
}

// execute opens the database or the cluster that the command needs, and runs the command.
func (p *program) execute(ctx context.Context, selected any) error {
	switch does := selected.(type) {
	case opensFirst[*db.DB]:
		return p.withTables(ctx, db.Options{}, (*db.DB).CheckSchema, func(d *db.DB) error { return does.run(ctx, p, d) })
	case opensFirst[*admin.Admin]:
		return p.withAdmin(ctx, func(a *admin.Admin) error { return does.run(ctx, p, a) })
	case opensFirst[*cells.Cluster]: // errors of the cluster name a node, so they do not need the name --database-url
		cluster, err := cells.OpenCluster(p.DatabaseURL, db.Options{Log: p.log})
		if err != nil {
			return err
		}
		return does.run(ctx, p, cluster)
	}
	return selected.(command).run(ctx, p)
}

// childExit is the exit code of a child process (psql) that has failed. The child process has already printed the reason.
type childExit int

func (e childExit) Error() string { return fmt.Sprintf("it exited with code %d", int(e)) }

var errNothingChecked = errors.New("verify: nothing was counted for the selected app and sites, so nothing was checked")

// reportError prints the error, and returns the exit code for it.
func (t *parsedLine) reportError(p *program, err error) int {
	var child childExit
	var verr *visit.Error
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, db.ErrInstancesBehind):
		fmt.Fprintf(p.stderr, "footfall: done, but %v: it will do so as soon as it can\n", err)
		return exitFailed // not exitDone, so that a script stops: some instances do not have the change yet
	case errors.As(err, &child):
		return int(child)
	}
	p.log.Debug("the error in full", "error", err)
	t.complain(p.stderr, err)
	switch {
	case errors.Is(err, errNothingChecked):
		return exitNothing
	case errors.As(err, &verr) && verr.Kind == visit.Invalid:
		return exitUsage
	case errors.Is(err, errWarned):
		return exitWarned
	}
	return exitFailed
}

// complain prints the faults to stderr. Each line starts with the program's name.
func (t *parsedLine) complain(stderr io.Writer, faults ...error) {
	for _, fault := range faults {
		for line := range strings.Lines(db.Sentence(fault)) {
			fmt.Fprintf(stderr, "footfall: %s\n", t.nameVariables(strings.TrimSuffix(line, "\n")))
		}
	}
}

// logger returns the logger that --log-level and --log-format select. It also returns the faults of these two flags.
func (g globals) logger(stderr io.Writer) (*slog.Logger, faults) {
	var f faults
	var level slog.Level
	err := level.UnmarshalText([]byte(g.LogLevel))
	f.addIf(err != nil, "--log-level: %q is not a level: write debug, info, warn or error", g.LogLevel)
	options := &slog.HandlerOptions{Level: level}
	switch g.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(stderr, options)), f
	case "json":
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // JSON would show a duration as a number without a unit
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(stderr, options)), f
	}
	f.add(fmt.Errorf("--log-format: %q is not a format: write text or json", g.LogFormat))
	return nil, f
}

// defaultData returns the default of --data: /var/lib/footfall for root. For other users, it is a folder in XDG_DATA_HOME
// or in the home directory, or "" if there is neither.
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

type helpCmd struct {
	Command []string `arg:"" optional:""`
	Man     bool
}

func (*helpCmd) check(globals) faults { return nil }

func (c *helpCmd) run(_ context.Context, p *program) error {
	if c.Man {
		return writeManual(p.stdout)
	}
	// If c.Command is a command of footfall, Kong prints the help of this command and exits the process. Otherwise readLine
	// returns faults.
	line := readLine(append(slices.Clone(c.Command), "--help"), p.stdout, p.stderr)
	if len(line.faults) > 0 {
		return visit.Errorf(visit.Invalid, "", "%v", line.faults[0])
	}
	return nil
}
