package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"footfall/admin"
	"footfall/report/draw"
	"footfall/visit"
)

// visitorArgs contains the arguments of commands that act on one visitor of an app.
type visitorArgs struct {
	appArg
	Visitor string `arg:""`
}

type visitorShowCmd struct{ visitorArgs }

type visitorEraseCmd struct {
	visitorArgs
	confirmed
}

type pageDeleteCmd struct {
	appArg
	URI string `arg:"" name:"uri"`
	confirmed
}

const nothingStored = "nothing is stored about this visitor"

func (c *visitorShowCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	stored, err := a.ShowVisitor(ctx, c.App, c.Visitor)
	if err == nil && stored.Person.IsValid() {
		fmt.Fprintf(p.stdout, "person %s: %s, tags: %s\n", stored.Person, draw.Count(int64(len(stored.StoredAs)), "id"),
			cmp.Or(strings.Join(stored.Tags, ", "), "none"))
	}
	if err == nil && len(stored.Targets) == 0 && !stored.Person.IsValid() {
		return p.printChange(nil, nothingStored)
	}
	return printRows(p.stdout, err, "TARGET\tSTORED AS\tRANK\tFIRST DAY\tLAST DAY", stored.Targets, func(f admin.VisitorTargetsRow) []any {
		return []any{visit.Shown(f.Uri), f.Ip, f.Rank, f.FirstDay, f.LastDay}
	})
}

func (c *visitorEraseCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	if err := countAccepted(ctx, p, a, c.App); err != nil {
		return err
	}
	if !c.Yes { // ShowVisitor is only needed for the question, and takes as long as erasing the visitor
		stored, err := a.ShowVisitor(ctx, c.App, c.Visitor)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("This visitor's address will be erased from %d pages and sites of app %s.", len(stored.Targets), c.App)
		switch {
		case stored.Person.IsValid():
			what += fmt.Sprintf(" All ids of the person (%d), and their tags, will be deleted, too.", len(stored.StoredAs))
		case len(stored.Targets) == 0:
			return p.printChange(nil, nothingStored)
		}
		if err := c.ask(p, what, "yes"); err != nil {
			return err
		}
	}
	erased, err := a.EraseVisitor(ctx, c.App, c.Visitor)
	if erased.IDs > 0 {
		return p.printChange(err, "erased from %d pages and sites, with %s of the person",
			erased.Targets, draw.Count(int64(erased.IDs), "id"))
	}
	if erased.Targets == 0 {
		return p.printChange(err, nothingStored)
	}
	return p.printChange(err, "erased from %d pages and sites", erased.Targets)
}

func (c *pageDeleteCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	if err := countAccepted(ctx, p, a, c.App); err != nil {
		return err
	}
	page, err := a.FindPage(ctx, c.App, c.URI)
	if err != nil {
		return err
	}
	asks, says := describeDeletion(page)
	if err := c.ask(p, asks, "yes"); err != nil {
		return err
	}
	return p.printChange(a.DeletePage(ctx, c.App, c.URI), "%s", says)
}

// describeDeletion returns two texts about the deletion of a page. asks is shown before the user confirms the deletion, and
// says is printed after the deletion.
func describeDeletion(page admin.Page) (asks, says string) {
	name, into := visit.Shown(page.URI), visit.Shown(page.Site+visit.DeletedPage)
	if page.Counted {
		numbers := numbersOf(page.Hot, page.PV, page.UV)
		asks = fmt.Sprintf("The numbers of page %s (%s) will be added to %s, and cannot be separated again.", name, numbers, into)
		says = fmt.Sprintf("deleted %s; its numbers (%s) are now part of %s", name, numbers, into)
	} else {
		asks = fmt.Sprintf("Nothing was counted for page %s.", name)
		says = fmt.Sprintf("deleted %s, for which nothing was counted", name)
	}
	if o := page.Offset; o != nil {
		numbers := numbersOf(o.Hot, o.PV, o.UV)
		asks += fmt.Sprintf(" Its offset (%s) will be deleted.", numbers)
		says += fmt.Sprintf("; its offset (%s) is deleted", numbers)
	}
	if page.History > 0 {
		days := draw.Count(page.History, "day")
		asks += fmt.Sprintf(" Its numbers from elsewhere, for %s, will be deleted.", days)
		says += fmt.Sprintf("; its numbers from elsewhere, for %s, are deleted", days)
	}
	return asks, says
}

// countAccepted counts the app's visits that still wait in the inbox. Commands call it before they delete data. Otherwise,
// such a visit would be counted after the deletion, and would store the deleted data again.
func countAccepted(ctx context.Context, p *program, a *admin.Admin, app string) error {
	visits, err := a.CountAccepted(ctx, app)
	if visits > 0 && err == nil {
		fmt.Fprintf(p.stdout, "counted %s that had been waiting in the inbox\n", draw.Count(visits, "visit"))
	}
	return err
}
