package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"footfall/db"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:""`
	Status migrateStatusCmd `cmd:""`
	Down   migrateDownCmd   `cmd:""`
}

type (
	migrateUpCmd     struct{}
	migrateStatusCmd struct{}
	migrateDownCmd   struct{ confirmed }
)

func (*migrateUpCmd) run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(d *db.DB) error {
		names, err := d.MigrateUp(ctx)
		for _, name := range names {
			fmt.Fprintln(p.stdout, "applied", name)
		}
		if err != nil {
			return err
		}
		if len(names) == 0 {
			fmt.Fprintln(p.stdout, "nothing to do: the schema is up to date")
		}
		missing, err := d.GrantRoles(ctx)
		for _, role := range missing {
			fmt.Fprintf(p.stderr, "footfall: there is no role %s, and this user may not make it: let an administrator type CREATE ROLE %[1]s, then type this again\n", role)
		}
		return err
	})
}

func (*migrateStatusCmd) run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(d *db.DB) error {
		steps, err := d.MigrateStatus(ctx)
		if err != nil {
			return err
		}
		table := tableOn(p.stdout, "MIGRATION\tAPPLIED")
		for _, step := range steps {
			applied := "pending"
			if !step.Applied.IsZero() {
				applied = step.Applied.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%s\t%s\n", step.Name, applied)
		}
		return table.Flush()
	})
}

func (c *migrateDownCmd) run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, func(d *db.DB) error {
		steps, err := d.MigrateStatus(ctx)
		if err != nil {
			return err
		}
		steps = slices.DeleteFunc(steps, func(step db.Migration) bool { return step.Applied.IsZero() })
		if len(steps) > 0 {
			newest := steps[len(steps)-1].Name
			if err := c.ask(p, fmt.Sprintf("Step %s will be taken back, with the data that only it has room for.", newest), "yes"); err != nil {
				return err
			}
		}
		name, err := d.MigrateDown(ctx)
		if err == nil {
			fmt.Fprintf(p.stdout, "taken back %s, and all functions and views; steps that are left: %d\n", name, len(steps)-1)
		}
		return err
	})
}
