package main

import (
	"context"
	"fmt"

	"footfall/admin"
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
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		if err := countAccepted(ctx, p, a, c.App); err != nil {
			return err
		}
		page, err := a.FindPage(ctx, c.App, c.URI)
		if err != nil {
			return err
		}
		asks, says := deleting(page)
		if err := c.ask(p, asks, "yes"); err != nil {
			return err
		}
		if err := a.DeletePage(ctx, c.App, c.URI); err != nil {
			return err
		}
		fmt.Fprintln(p.stdout, says)
		return nil
	})
}

// deleting says what will be deleted with a page, and what was.
func deleting(page admin.Page) (asks, says string) {
	name, into := visit.Shown(page.URI), visit.Shown(page.Site+visit.DeletedPage)
	if page.Counted {
		numbers := numbersOf(page.Hot, page.PV, page.UV)
		asks = fmt.Sprintf("What page %s has counted (%s) will be added to %s, and nobody can tell it from the rest there.", name, numbers, into)
		says = fmt.Sprintf("deleted %s; what it had counted (%s) is a part of %s", name, numbers, into)
	} else {
		asks = fmt.Sprintf("Nothing was counted for page %s.", name)
		says = fmt.Sprintf("deleted %s, for which nothing was counted", name)
	}
	if o := page.Offset; o != nil {
		numbers := numbersOf(o.Hot, o.PV, o.UV)
		asks += fmt.Sprintf(" Its offset (%s) will be gone.", numbers)
		says += fmt.Sprintf("; its offset (%s) is gone", numbers)
	}
	return asks, says
}
