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

type offsetCmd struct {
	Set    offsetSetCmd    `cmd:""`
	Import offsetImportCmd `cmd:""`
	List   offsetListCmd   `cmd:""`
	Remove offsetRemoveCmd `cmd:""`
}

type offsetSetCmd struct {
	App string `arg:""`
	URI string `arg:"" name:"uri"`
	Hot int64  `required:"" placeholder:"N"`
	UV  int64  `name:"uv" placeholder:"N"`
	PV  *int64 `name:"pv" placeholder:"N"`
}

type offsetImportCmd struct {
	App    string `arg:""`
	File   string `arg:"" name:"file"`
	DryRun bool
}

type offsetListCmd struct {
	App string `arg:""`
	CSV bool   `name:"csv"`
}

type offsetRemoveCmd struct {
	App string `arg:""`
	URI string `arg:"" name:"uri"`
}

func (c *offsetSetCmd) run(ctx context.Context, p *program) error {
	o := admin.Offset{URI: c.URI, Hot: c.Hot, UV: c.UV, PV: c.UV}
	if c.PV != nil {
		o.PV = *c.PV
	}
	return setOffsets(ctx, p, c.App, []admin.Offset{o}, false)
}

func (c *offsetImportCmd) run(ctx context.Context, p *program) error {
	list, err := c.read(p)
	if err != nil {
		return err
	}
	return setOffsets(ctx, p, c.App, list, c.DryRun)
}

// read reads the file; - is standard input.
func (c *offsetImportCmd) read(p *program) ([]admin.Offset, error) {
	from := p.stdin
	if c.File != standardOutput {
		file, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	return moves.ReadCSV(from)
}

func setOffsets(ctx context.Context, p *program, app string, list []admin.Offset, try bool) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		done, err := a.SetOffsets(ctx, app, list, try)
		if err == nil || done != (admin.OffsetsDone{}) {
			tried := ""
			if try {
				tried = "would be "
			}
			fmt.Fprintf(p.stdout, "offsets: %s%s added, %s changed; %s as they were\n",
				tried, draw.Number(done.Added), draw.Number(done.Changed), draw.Number(done.Same))
		}
		return err // they are set; perhaps an instance does not know it yet
	})
}

func (c *offsetListCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		list, err := a.Offsets(ctx, c.App)
		if err != nil {
			return err
		}
		if c.CSV {
			return writeOffsets(p.stdout, list)
		}
		table := tableOn(p.stdout, "PAGE OR SITE\tHOT\tPV\tUV")
		for _, o := range list {
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", visit.Shown(o.URI), o.Hot, o.PV, o.UV)
		}
		return table.Flush()
	})
}

// writeOffsets writes what offset import reads.
func writeOffsets(to io.Writer, list []admin.Offset) error {
	w := csv.NewWriter(to)
	_ = w.Write([]string{"uri", "hot", "uv", "pv"}) // Error tells
	for _, o := range list {
		_ = w.Write([]string{o.URI, strconv.FormatInt(o.Hot, 10), strconv.FormatInt(o.UV, 10), strconv.FormatInt(o.PV, 10)})
	}
	w.Flush()
	return w.Error()
}

func (c *offsetRemoveCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		o, err := a.RemoveOffset(ctx, c.App, c.URI)
		if err == nil || o != (admin.Offset{}) {
			fmt.Fprintf(p.stdout, "removed the offset of %s (%s)\n", visit.Shown(o.URI), numbersOf(o.Hot, o.PV, o.UV))
		}
		return err // it is removed; perhaps an instance does not know it yet
	})
}

func numbersOf(hot, pv, uv int64) string { return fmt.Sprintf("hot %d, pv %d, uv %d", hot, pv, uv) }
