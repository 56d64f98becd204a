package main

import (
	"context"
	"fmt"

	"footfall/counter"
)

type visitorCmd struct {
	Show  visitorShowCmd  `cmd:""`
	Erase visitorEraseCmd `cmd:""`
}

// visitorArgs name a visitor.
type visitorArgs struct {
	App     string `arg:""`
	Visitor string `arg:""`
}

type (
	visitorShowCmd  struct{ visitorArgs }
	visitorEraseCmd struct{ visitorArgs }
)

func (c *visitorShowCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error {
		stored, err := a.ShowVisitor(ctx, c.App, c.Visitor)
		if err != nil {
			return err
		}
		if len(stored) == 0 {
			fmt.Fprintln(p.stdout, "nothing is stored of this visitor")
			return nil
		}
		table := tableOn(p.stdout, "TARGET\tSTORED AS\tRANK\tFIRST DAY\tLAST DAY")
		for _, f := range stored {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\n", f.Target, f.Visitor, f.Rank, f.FirstDay, f.LastDay)
		}
		return table.Flush()
	})
}

func (c *visitorEraseCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error {
		erased, err := a.EraseVisitor(ctx, c.App, c.Visitor)
		if err == nil {
			fmt.Fprintf(p.stdout, "erased at %d targets\n", erased)
		}
		return err
	})
}
