package main

import (
	"context"
	"fmt"

	"footfall/counter"
	"footfall/visit"
)

type pageCmd struct {
	Delete pageDeleteCmd `cmd:""`
}

type pageDeleteCmd struct {
	App string `arg:""`
	URI string `arg:"" name:"uri"`
	confirmed
}

func (c *pageDeleteCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error {
		if err := countAccepted(ctx, p, a, c.App); err != nil {
			return err
		}
		page, err := a.FindPage(ctx, c.App, c.URI)
		if err != nil {
			return err
		}
		deleted := visit.Shown(page.Site + visit.DeletedPage)
		numbers := fmt.Sprintf("hot %d, pv %d, uv %d", page.Hot, page.PV, page.UV)
		err = c.ask(p, fmt.Sprintf("What page %s has counted (%s) will be added to %s, and nobody can tell it from the rest there.", visit.Shown(page.URI), numbers, deleted), "yes")
		if err != nil {
			return err
		}
		if err := a.DeletePage(ctx, c.App, c.URI); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "deleted %s; what it had counted (%s) is a part of %s\n", visit.Shown(page.URI), numbers, deleted)
		return nil
	})
}
