package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"footfall/counter"
	"strings"
	"text/tabwriter"
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
		prints, err := a.ShowVisitor(ctx, c.App, c.Visitor)
		if err != nil {
			return err
		}
		if len(prints) == 0 {
			fmt.Fprintln(p.stdout, "nothing is stored of this visitor")
			return nil
		}
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "TARGET\tSTORED AS\tRANK\tFIRST DAY\tLAST DAY")
		for _, f := range prints {
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

type pageCmd struct {
	Delete pageDeleteCmd `cmd:""`
}

type pageDeleteCmd struct {
	App string `arg:""`
	URI string `arg:"" name:"uri"`
}

func (*pageDeleteCmd) check(g globals) []error { return g.checkDatabase() }

func (c *pageDeleteCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error { return a.DeletePage(ctx, c.App, c.URI) })
}

type appDeleteCmd struct {
	Name string `arg:""`
	Yes  bool
}

func (*appDeleteCmd) check(g globals) []error { return g.checkDatabase() }

// run deletes an app once somebody has typed its name.
func (c *appDeleteCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error {
		if !c.Yes {
			fmt.Fprintf(p.stderr, "All that was counted for app %s, and its keys, will be gone. Type its name to delete it: ", c.Name)
			typed, err := bufio.NewReader(p.stdin).ReadString('\n')
			if strings.TrimSpace(typed) != c.Name {
				if err != nil {
					fmt.Fprintln(p.stderr)
				}
				return errors.New("nothing was deleted: that is not its name (--yes deletes without asking)")
			}
		}
		return a.DeleteApp(ctx, c.Name)
	})
}
