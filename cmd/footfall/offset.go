package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strconv"

	"footfall/admin"
	"footfall/intake/moves"
	"footfall/report/draw"
	"footfall/visit"
)

type offsetSetCmd struct {
	appArg
	URI string `arg:"" name:"uri"`
	Hot int64  `required:"" placeholder:"N"`
	UV  int64  `name:"uv" placeholder:"N"`
	PV  *int64 `name:"pv" placeholder:"N"`
}

type offsetImportCmd struct {
	appArg
	File   string `arg:"" name:"file"`
	DryRun bool
}

type offsetListCmd struct {
	appArg
	CSV bool `name:"csv"`
}

type offsetRemoveCmd struct {
	appArg
	URI string `arg:"" name:"uri"`
}

func (c *offsetSetCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	o := admin.Offset{URI: c.URI, Hot: c.Hot, UV: c.UV, PV: c.UV}
	if c.PV != nil {
		o.PV = *c.PV
	}
	return setOffsets(ctx, p, a, c.App, []admin.Offset{o}, false)
}

// run reads the whole file, or standard input for "-", before it opens a database.
func (c *offsetImportCmd) run(ctx context.Context, p *program) error {
	from := p.stdin
	if c.File != standardOutput {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	list, err := moves.ReadCSV(from)
	if err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin.Admin) error { return setOffsets(ctx, p, a, c.App, list, c.DryRun) })
}

func setOffsets(ctx context.Context, p *program, a *admin.Admin, app string, list []admin.Offset, try bool) error {
	done, first, err := a.PutOffsets(ctx, app, list, try)
	tried := ""
	if try && err == nil {
		tried, err = "would be ", printTotals(p, first)
	}
	return p.printChange(err, "offsets: %s%s added, %s changed, %s unchanged",
		tried, draw.Number(done.Added), draw.Number(done.Changed), draw.Number(done.Same))
}

func (c *offsetListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	list, err := a.Offsets(ctx, c.App)
	if err == nil && c.CSV {
		return writeOffsets(p.stdout, list)
	}
	return printRows(p.stdout, err, "PAGE OR SITE\tHOT\tPV\tUV\tHOT FROM HISTORY", list, func(o admin.Offset) []any {
		return []any{visit.Shown(o.URI), o.Hot, o.PV, o.UV, o.History[0]}
	})
}

// writeOffsets writes the offsets that were set by hand, as CSV that `footfall offset import` can read. It leaves out
// offsets that come from imported history.
func writeOffsets(to io.Writer, list []admin.Offset) error {
	w := csv.NewWriter(to)
	_ = w.Write([]string{"uri", "hot", "uv", "pv"}) // ignore the error, because w.Error reports it
	for _, o := range list {
		if hand := o.ByHand(); hand.Hot > 0 || o.Hot == 0 {
			o = hand
		} else {
			continue
		}
		_ = w.Write([]string{o.URI, strconv.FormatInt(o.Hot, 10), strconv.FormatInt(o.UV, 10), strconv.FormatInt(o.PV, 10)})
	}
	w.Flush()
	return w.Error()
}

func (c *offsetRemoveCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	o, err := a.RemoveOffset(ctx, c.App, c.URI)
	return p.printChange(err, "removed the offset of %s (%s)", visit.Shown(o.URI), numbersOf(o.Hot, o.PV, o.UV))
}

func numbersOf(hot, pv, uv int64) string { return fmt.Sprintf("hot %d, pv %d, uv %d", hot, pv, uv) }
