package main

import (
	"context"
	"fmt"

	"footfall/admin"
	"footfall/report/draw"
	"footfall/visit"
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

type visitorShowCmd struct{ visitorArgs }

type visitorEraseCmd struct {
	visitorArgs
	confirmed
}

const nothingStored = "nothing is stored of this visitor"

func (c *visitorShowCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		stored, err := a.ShowVisitor(ctx, c.App, c.Visitor)
		if err != nil {
			return err
		}
		if len(stored) == 0 {
			fmt.Fprintln(p.stdout, nothingStored)
			return nil
		}
		table := tableOn(p.stdout, "TARGET\tSTORED AS\tRANK\tFIRST DAY\tLAST DAY")
		for _, f := range stored {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\n", visit.Shown(f.Target), f.Visitor, f.Rank, f.FirstDay, f.LastDay)
		}
		return table.Flush()
	})
}

func (c *visitorEraseCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		if err := countAccepted(ctx, p, a, c.App); err != nil {
			return err
		}
		if !c.Yes { // looking at all that is stored takes as long as erasing it
			stored, err := a.ShowVisitor(ctx, c.App, c.Visitor)
			if err != nil {
				return err
			}
			if len(stored) == 0 {
				fmt.Fprintln(p.stdout, nothingStored)
				return nil
			}
			what := fmt.Sprintf("This visitor's address will be erased at %d pages and sites of app %s.", len(stored), c.App)
			if err := c.ask(p, what, "yes"); err != nil {
				return err
			}
		}
		erased, err := a.EraseVisitor(ctx, c.App, c.Visitor)
		switch {
		case err != nil:
			return err
		case erased == 0:
			fmt.Fprintln(p.stdout, nothingStored)
		default:
			fmt.Fprintf(p.stdout, "erased at %d pages and sites\n", erased)
		}
		return nil
	})
}

// countAccepted counts what was accepted to be counted later, before something is erased.
func countAccepted(ctx context.Context, p *program, a *admin.Admin, app string) error {
	visits, err := a.CountAccepted(ctx, app)
	if visits > 0 && err == nil {
		fmt.Fprintf(p.stdout, "counted %s that had been accepted before\n", draw.Count(visits, "visit"))
	}
	return err
}
