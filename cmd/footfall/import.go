package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/docker/go-units"

	"footfall/admin"
	"footfall/counter"
	"footfall/db"
	"footfall/intake/imports"
	"footfall/intake/logs"
	"footfall/record"
	"footfall/report/draw"
	"footfall/visit"
)

type importFilesCmd struct {
	File   []string `arg:"" name:"file"`
	App    string   `required:"" placeholder:"NAME"`
	Format string   `placeholder:"NAME"`
	Site   string   `placeholder:"HOST"`
	From   string   `placeholder:"DAY"`
	To     string   `placeholder:"DAY"`
	Method []string `placeholder:"NAME"`
	Status []int    `placeholder:"CODE"`
	Host   []string `placeholder:"HOST"`
	Static bool
	Bots   bool
	DryRun bool
	Follow bool

	Server  string `placeholder:"NAME"`
	After   string `placeholder:"TIME"`
	Another bool
	countriesFlag

	rules imports.Rules // rules and after are set by check
	after time.Time
}

// afterCounted is a value of --after that has no effect. Versions up to 0.2 needed it for files that contain only the last
// lines of a log.
const afterCounted = "counted"

const (
	progressStep = 500 * time.Millisecond
	clearLine    = "\r\x1b[K"
)

func (c *importFilesCmd) check(g globals) faults {
	f := g.checkDatabase()
	c.rules = imports.Rules{
		Format: logs.Format(c.Format), Site: c.Site, Methods: c.Method, Statuses: c.Status, Hosts: c.Host, Static: c.Static, Bots: c.Bots,
	}
	err := logs.Check(c.rules.Format)
	f.addIf(err != nil, "--format: %w", err)
	if len(c.Method) == 0 {
		c.rules.Methods = imports.DefaultMethods
	}
	if len(c.Status) == 0 {
		c.rules.Statuses = imports.DefaultStatuses
	}
	if c.Site != "" {
		_, err := visit.ParseSite(c.Site)
		f.addIf(err != nil, "--site: %q is not a site: write a host like example.com, or a host and a port", c.Site)
	}
	today := visit.DayOf(time.Now(), time.UTC)
	c.rules.From, c.rules.To = f.day("--from", c.From, today), f.day("--to", c.To, today)
	f.addIf(c.rules.To != 0 && c.rules.From > c.rules.To, "--from: it is after --to: no day lies between them")
	if c.After != "" && c.After != afterCounted {
		at, err := time.Parse(time.RFC3339, c.After)
		f.addIf(err != nil, "--after: %q is not a time: write one like 2026-11-27T10:15:03Z, or %s", c.After, afterCounted)
		c.after = at.Truncate(time.Second)
	}
	f.addIf(c.After != "" && c.Another, "--another: it counts all lines, and --after leaves some out: leave out one of them")
	f.addIf(len(c.Server) > longestServer || strings.ContainsFunc(c.Server, unicode.IsControl),
		"--server: %q is not a name: write one of at most %d bytes, without control characters", c.Server, longestServer)
	f.addIf(c.DryRun && c.Follow, "--follow: with --dry-run there is nothing to follow: leave out one of them")
	return f
}

// longestServer is the maximum length of the name in --server, in bytes. Host names have the same limit.
const longestServer = 255

// day parses text, the value of a flag, as a day. If the text is empty, it returns 0. If the text is not a day, it adds a
// fault.
func (f *faults) day(flag, text string, today int32) int32 {
	if text == "" {
		return 0
	}
	day, err := visit.ParseDay(text, today)
	f.addIf(err != nil, "%s: %w", flag, err)
	return day
}

// importMemory is the memory limit of Go's runtime during an import, in bytes. Above this limit, Go collects garbage more
// often. An import of ten million lines of one hour stays below it.
const importMemory = 192 << 20

// importGarbage is the value of GOGC during an import. Because it is large, Go seldom collects garbage while an import uses
// less than importMemory.
const importGarbage = 400

func (c *importFilesCmd) run(ctx context.Context, p *program) error {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // the operator has not set GOMEMLIMIT
		debug.SetMemoryLimit(importMemory)
		debug.SetGCPercent(importGarbage)
	}
	log := p.log
	if quiet := p.globals; strings.EqualFold(quiet.LogLevel, "info") { // do not show the counter's messages about its filter
		quiet.LogLevel = "warn"
		log, _ = quiet.logger(p.stderr) // returns no faults, because run has already created p.log from the same flags
	}
	return p.withCounter(ctx, c.countriesFlag, record.Options{Log: log},
		func(counting *counter.Counter) error { return c.runOn(ctx, p, counting) })
}

func (c *importFilesCmd) runOn(ctx context.Context, p *program, counting *counter.Counter) error {
	progress := &imports.Progress{}
	var begun time.Time
	shown := showProgress(p, func(now time.Time) string {
		if begun.IsZero() {
			begun = now
		}
		return progressLine(progress, now.Sub(begun))
	})
	summary, err := imports.Run(ctx, counting, imports.Options{
		App: c.App, Files: c.File, Stdin: p.stdin, Rules: c.rules, DryRun: c.DryRun, Follow: c.Follow,
		Server: c.Server, After: c.after, Another: c.Another,
		Notice: func(text string, cause error) {
			if cause == nil {
				p.log.Warn("import: " + text)
			} else {
				p.log.Warn("import: "+text, "error", db.Sentence(cause))
			}
		},
	}, progress)
	shown()
	interrupted := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err != nil && !interrupted && summary.Lines == 0 && len(summary.Problems) == 0 {
		return err
	}
	if printed := printImport(p, summary, c.DryRun); printed != nil {
		return printed
	}
	switch {
	case interrupted && c.Follow:
		return nil
	case interrupted:
		return errors.New("import: interrupted: the same command continues where it stopped")
	case err == nil && len(summary.Problems) > 0:
		return errors.New("import: not everything could be counted: see above")
	case err == nil && summary.Lines > 0 && summary.Unreadable == summary.Lines:
		return errors.New("import: no line could be read: is it an access log, in one of the formats that import --help lists?")
	}
	return err
}

// showProgress repeatedly calls line and prints the returned text, if standard error is a terminal. The caller must call
// end to stop this.
func showProgress(p *program, line func(now time.Time) string) (end func()) {
	if !isTerminal(p.stderr) {
		return func() {}
	}
	ticker, stop, stopped := time.NewTicker(progressStep), make(chan struct{}), make(chan struct{})
	go func() { // this goroutine runs until end is called
		defer close(stopped)
		for {
			select {
			case now := <-ticker.C:
				fmt.Fprint(p.stderr, clearLine+line(now))
			case <-stop:
				fmt.Fprint(p.stderr, clearLine)
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(stop); <-stopped }
}

func progressLine(progress *imports.Progress, took time.Duration) string {
	total, done := progress.Total.Load(), progress.Done.Load()
	line := fmt.Sprintf("%s of %s, %s, %s", units.HumanSize(float64(done)), units.HumanSize(float64(max(total, done))),
		draw.Count(progress.Lines.Load(), "line"), draw.Count(progress.Counted.Load(), "visit"))
	if seconds := took.Seconds(); seconds >= 1 && done > 0 && done <= total {
		left := time.Duration(float64(total-done) / float64(done) * float64(took))
		line += fmt.Sprintf(", %s/s, %v left", draw.Number(int64(float64(progress.Counted.Load())/seconds)), left.Round(time.Second))
	}
	return line
}

// printImport prints how many lines were counted, left out (for each reason), counted before, or unreadable.
func printImport(p *program, s *imports.Summary, dry bool) error {
	counted := "visits counted"
	if dry {
		counted = "visits that would be counted"
	}
	rows := [][]any{{"lines read", draw.Number(s.Lines)}, {counted, draw.Number(s.Counted)}}
	add := func(what string, lines int64) {
		if lines > 0 {
			rows = append(rows, []any{what, draw.Number(lines)})
		}
	}
	for _, reason := range imports.Reasons {
		add("left out: "+string(reason), s.Left[reason])
	}
	add("counted before", s.Before)
	add("in two files of this run", s.Twice)
	add("not readable", s.Unreadable)
	add("files unchanged, not read", s.Unchanged)
	add("lines unchanged, not read", s.Skipped)
	for _, format := range slices.Sorted(maps.Keys(s.Formats)) {
		add("format "+string(format), s.Formats[format])
	}
	if s.From != 0 {
		rows = append(rows, []any{"days", draw.Day(s.From) + " to " + draw.Day(s.To)})
	}
	if err := printTable(p.stdout, rows...); err != nil {
		return err
	}
	if dry {
		printSites(p, s)
	}
	for _, u := range s.Unread {
		fmt.Fprintf(p.stdout, "%s, line %d: %s\n", draw.Text(u.File), u.Line, u.Why)
	}
	if more := s.Unreadable - int64(len(s.Unread)); more > 0 {
		fmt.Fprintf(p.stdout, "and %s that could not be read\n", draw.Count(more, "more line"))
	}
	for _, words := range s.Notes {
		fmt.Fprintln(p.stdout, draw.Text(words))
	}
	for _, words := range s.Problems {
		fmt.Fprintln(p.stderr, "footfall: "+draw.Text(words))
	}
	return nil
}

// shownSites is the number of sites that a dry run lists.
const shownSites = 20

func printSites(p *program, s *imports.Summary) {
	sites := slices.SortedFunc(maps.Keys(s.Sites), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Sites[b], s.Sites[a]),
			cmp.Compare(a, b))
	})
	for _, site := range sites[:min(len(sites), shownSites)] {
		fmt.Fprintf(p.stdout, "site %s: %s\n", visit.Shown(site), draw.Number(s.Sites[site]))
	}
	if more := len(sites) - shownSites; more > 0 {
		fmt.Fprintf(p.stdout, "and %s\n", draw.Count(int64(more), "more site"))
	}
}

type importListCmd struct {
	App string `placeholder:"NAME"`
}

func (c *importListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	list, err := a.Lines(ctx, c.App)
	return printRows(p.stdout, err, "APP\tSERVER\tDAY\tLINES\tLAST LINE", list,
		func(of admin.OfApp[admin.LinesListRow]) []any {
			l := of.Row
			return []any{of.App, cmp.Or(l.Server, "-"), l.Day, l.Lines, moment(&l.Latest)}
		})
}

type importForgetCmd struct {
	App    string  `arg:""`
	Server *string `placeholder:"NAME"`
	From   string  `required:"" placeholder:"DAY"`
	To     string  `required:"" placeholder:"DAY"`

	from, to int32
}

func (c *importForgetCmd) check(g globals) faults {
	f := g.checkDatabase()
	today := visit.DayOf(time.Now(), time.UTC)
	c.from, c.to = f.day("--from", c.From, today), f.day("--to", c.To, today)
	f.addIf(c.from > c.to, "--from: it is after --to: no day lies between them")
	return f
}

func (c *importForgetCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	lines, err := a.ForgetLines(ctx, c.App, c.Server, c.from, c.to)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "forgot "+draw.Count(lines, "line")+", which another import can count again")
	return err
}
