package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/docker/go-units"

	"footfall/admin"
	"footfall/intake/moves"
	"footfall/report/draw"
	"footfall/visit"
	"footfall/web/words"
)

type historyImportCmd struct {
	App     string   `required:"" placeholder:"NAME"`
	From    string   `required:"" placeholder:"SOURCE"`
	File    []string `arg:"" name:"file"`
	Site    string   `placeholder:"HOST"`
	Offsets bool
	Skip    bool
	DryRun  bool
}

type historyListCmd struct {
	App string `required:"" placeholder:"NAME"`
}

type historyRemoveCmd struct {
	App    string  `required:"" placeholder:"NAME"`
	Number []int32 `arg:"" name:"number"`
	DryRun bool
}

func (c *historyImportCmd) check(g globals) faults {
	f := g.checkDatabase()
	f.addIf(!slices.Contains(moves.Sources(), c.From), "--from: %q is not a supported source: "+
		"write one of %s", c.From, strings.Join(moves.Sources(), ", "))
	return f
}

// run opens all files before it opens a database, so that it reports a missing file at once.
func (c *historyImportCmd) run(ctx context.Context, p *program) error {
	h := &moves.History{Source: c.From, Skip: c.Skip}
	var done atomic.Int64
	var total int64
	for _, name := range c.File {
		file, err := p.openInput(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() //nolint:gocritic // they stay open until the end
		if about, err := file.Stat(); err == nil {
			total += about.Size()
		}
		if name = filepath.Base(name); name == standardOutput {
			name = "standard input"
		}
		h.Files = append(h.Files, moves.File{Name: name, From: file, Done: &done})
	}
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		shown := showProgress(p, func(time.Time) string {
			return fmt.Sprintf("%s of %s", units.HumanSize(float64(done.Load())), units.HumanSize(float64(total)))
		})
		imported, err := h.Import(ctx, a, admin.History{App: c.App, Site: c.Site, Offsets: c.Offsets, DryRun: c.DryRun})
		shown()
		if err != nil {
			return err
		}
		return c.print(p, h, &imported)
	})
}

// openInput opens a file, or standard input for "-". Input from standard input or a pipe may be slow, but the database
// cancels a transaction that waits for input. So openInput first copies such input to a temporary file.
func (p *program) openInput(name string) (*os.File, error) {
	from := p.stdin
	if name != standardOutput {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		if about, err := file.Stat(); err != nil || about.Mode().IsRegular() {
			return file, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	return copyToTemporary(from)
}

func (c *historyImportCmd) print(p *program, h *moves.History, done *admin.HistoryResult) error {
	for _, fault := range h.Faults {
		fmt.Fprintln(p.stdout, "left out: "+fault.Message())
	}
	said := h.Describe(done, words.English().Say)
	if c.DryRun {
		said = "without --dry-run: " + said
	}
	if c.DryRun && h.Lines > 0 {
		if err := printRows(p.stdout, nil, "DAY\tPAGE OR SITE\tPAGE VIEWS\tVISITS\tVISITORS\tNEW", done.First,
			func(r admin.HistoryFirstRow) []any {
				return []any{visit.DayText(r.DayID), visit.Shown(r.Uri), formatOrDash(r.PageViews), formatOrDash(r.Visits), formatOrDash(r.Visitors),
					formatOrDash(r.NewVisitors)}
			}); err != nil {
			return err
		}
	}
	if c.DryRun && len(done.Totals) > 0 {
		if len(done.First) > 0 {
			fmt.Fprintln(p.stdout)
		}
		if err := printTotals(p, done.Totals); err != nil {
			return err
		}
	}
	return p.printChange(nil, "%s", said)
}

// printTotals prints some of the totals that a dry run would change, with their values before and after the change.
func printTotals(p *program, first []admin.OffsetsPutRow) error {
	if len(first) == 0 {
		return nil
	}
	return printRows(p.stdout, nil, "PAGE OR SITE\tTOTALS BEFORE\tAFTER", first, func(o admin.OffsetsPutRow) []any {
		return []any{visit.Shown(o.Uri), numbersOf(o.WasHot, o.WasPv, o.WasUv), numbersOf(o.Hot, o.Pv, o.Uv)}
	})
}

// formatOrDash formats a number. It returns a dash if the number is unknown.
func formatOrDash(n int64) string {
	if n == admin.Unknown {
		return "–"
	}
	return strconv.FormatInt(n, 10)
}

func (c *historyListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	list, err := a.HistoryImports(ctx, c.App)
	return printRows(p.stdout, err, "NUMBER\tIMPORTED\tCOUNTED BY\tSITES\tDAYS\tFROM\tTO\tFILES", list, func(i admin.HistoryListRow) []any {
		return []any{i.ID, i.ImportedAt.Format(time.DateOnly), visit.CountedBy(i.Source), i.Sites, i.Days, visit.DayText(i.FirstDay),
			visit.DayText(i.LastDay),
			strings.Join(i.Files, ", ")}
	})
}

func (c *historyRemoveCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	done, err := a.TakeBackHistory(ctx, c.App, c.DryRun, c.Number)
	said := "removed %s"
	if c.DryRun && err == nil {
		said, err = "without --dry-run: "+said, printTotals(p, done.Totals)
	}
	return p.printChange(err, said, draw.Count(done.Replaced, "day"))
}
