package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"footfall/db/embedded"
)

type upgradeCmd struct {
	To            string `required:"" placeholder:"DIR"`
	ToPostgresBin string `placeholder:"DIR"`
}

func (c *upgradeCmd) check(g globals) []error {
	if !g.embedded() {
		return []error{errors.New("--database-url: upgrade is for the embedded PostgreSQL: upgrade a server of your own as its documentation says")}
	}
	return g.checkDatabase()
}

func (c *upgradeCmd) run(ctx context.Context, p *program) error {
	to := embedded.Config{Dir: c.To, BinDir: c.ToPostgresBin, Log: p.log}
	if err := embedded.Upgrade(ctx, p.server(), to, secretFile); err != nil {
		return p.ofDatabase(err)
	}
	program := fmt.Sprintf("%s --data '%s'", os.Args[0], c.To)
	if c.ToPostgresBin != "" {
		program += fmt.Sprintf(" --postgres-bin '%s'", c.ToPostgresBin)
	}
	fmt.Fprintf(p.stdout, "the data is in %s now, and %s is as it was\n"+
		"what you changed in its postgresql.conf and pg_hba.conf, or by ALTER SYSTEM, is for you to carry over\n"+
		"try:  %s verify\nthen: %[3]s serve\n", c.To, p.Data, program)
	return nil
}
