package main

import (
	"context"
	"fmt"
	"text/tabwriter"

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

func (*visitorArgs) check(g globals) []error { return g.checkDatabase() }

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
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "TARGET\tSTORED AS\tRANK\tFIRST DAY\tLAST DAY")
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
