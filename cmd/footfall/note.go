package main

import (
	"cmp"
	"context"
	"fmt"

	"footfall/admin"
	"footfall/visit"
)

type noteCmd struct {
	Add    noteAddCmd    `cmd:""`
	List   noteListCmd   `cmd:""`
	Remove noteRemoveCmd `cmd:""`
}

type noteAddCmd struct {
	App  string `arg:""`
	Day  string `arg:""`
	Text string `arg:""`
	Site string `placeholder:"HOST"`
}

type noteListCmd struct {
	App string `arg:""`
}

type noteRemoveCmd struct {
	App    string `arg:""`
	Number int32  `arg:""`
}

func (c *noteAddCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		n, err := a.AddNote(ctx, c.App, c.Day, c.Text, c.Site)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "noted of %s, %s: %s (number %d)\n", visit.DayText(n.Day), sitesOf(n), n.Text, n.ID)
		return nil
	})
}

func (c *noteListCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		notes, err := a.Notes(ctx, c.App)
		if err != nil {
			return err
		}
		table := tableOn(p.stdout, "NUMBER\tDAY\tSITE\tNOTE")
		for _, n := range notes {
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", n.ID, visit.DayText(n.Day), sitesOf(n), n.Text)
		}
		return table.Flush()
	})
}

func (c *noteRemoveCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		n, err := a.RemoveNote(ctx, c.App, c.Number)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "removed the note of %s, %s: %s\n", visit.DayText(n.Day), sitesOf(n), n.Text)
		return nil
	})
}

// sitesOf says of which sites of the app something was noted.
func sitesOf(n admin.Note) string { return cmp.Or(visit.Shown(n.Site), "all sites") }
