package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"footfall/db"
	"footfall/db/embedded"
)

type (
	migrateUpCmd     struct{}
	migrateStatusCmd struct{}
	migrateDownCmd   struct{ confirmed }
)

func (*migrateUpCmd) run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, db.Options{}, func(d *db.DB) error {
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
			fmt.Fprintf(p.stderr, "footfall: the role %s does not exist, and this user may not create it: "+
				"have an administrator run CREATE ROLE %[1]s, then run this command again\n", role)
		}
		return err
	})
}

func (*migrateStatusCmd) run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, db.Options{}, func(d *db.DB) error {
		steps, err := d.MigrateStatus(ctx)
		return printRows(p.stdout, err, "MIGRATION\tAPPLIED", steps, func(step db.Migration) []any {
			if step.Applied.IsZero() {
				return []any{step.Name, "pending"}
			}
			return []any{step.Name, step.Applied.UTC().Format(time.RFC3339)}
		})
	})
}

func (c *migrateDownCmd) run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, db.Options{}, func(d *db.DB) error {
		steps, err := d.MigrateStatus(ctx)
		if err != nil {
			return err
		}
		steps = slices.DeleteFunc(steps, func(step db.Migration) bool { return step.Applied.IsZero() })
		if len(steps) > 0 {
			newest := steps[len(steps)-1].Name
			if err := c.ask(p, fmt.Sprintf("The migration %s will be rolled back, and the data that only it can store "+
				"will be deleted.", newest), "yes"); err != nil {
				return err
			}
		}
		name, err := d.MigrateDown(ctx)
		if err == nil {
			fmt.Fprintf(p.stdout, "rolled back %s, and dropped all functions and views; remaining migrations: %d\n",
				name, len(steps)-1)
		}
		return err
	})
}

type upgradeCmd struct {
	To            string `required:"" placeholder:"DIR"`
	ToPostgresBin string `placeholder:"DIR"`
}

func (c *upgradeCmd) check(g globals) faults {
	if !g.embedded() {
		return faults{errors.New("--database-url: upgrade is for the embedded PostgreSQL: upgrade your own server as its " +
			"documentation describes")}
	}
	return g.checkDatabase()
}

func (c *upgradeCmd) run(ctx context.Context, p *program) error {
	to := embedded.Config{Dir: c.To, BinDir: c.ToPostgresBin, Log: p.log}
	if err := embedded.Upgrade(ctx, p.embeddedConfig(), to, secretFile); err != nil {
		if folder, is := errors.AsType[*embedded.DirError](err); is && folder.Dir != p.Data {
			return fmt.Errorf("--to: %w", err)
		}
		return p.nameDatabaseFlag(err)
	}
	program := fmt.Sprintf("%s --data '%s'", os.Args[0], c.To)
	if c.ToPostgresBin != "" {
		program += fmt.Sprintf(" --postgres-bin '%s'", c.ToPostgresBin)
	}
	fmt.Fprintf(p.stdout, "the data is now in %s, and %s is unchanged\n"+
		"your changes to its postgresql.conf and pg_hba.conf, or by ALTER SYSTEM, were not copied: make them again\n"+
		"try:  %s verify\nthen: %[3]s serve\n", c.To, p.Data, program)
	return nil
}
