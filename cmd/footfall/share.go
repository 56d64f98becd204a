package main

import (
	"cmp"
	"context"
	"fmt"

	"footfall/admin"
	"footfall/visit"
)

type shareCmd struct {
	Add    shareAddCmd    `cmd:""`
	List   shareListCmd   `cmd:""`
	Revoke shareRevokeCmd `cmd:""`
}

type shareAddCmd struct {
	App       string `arg:""`
	Site      string `placeholder:"HOST"`
	Until     string `placeholder:"DAY"`
	PublicURL string `name:"public-url" env:"FOOTFALL_PUBLIC_URL" default:"http://127.0.0.1:8080" placeholder:"URL"`
}

type shareListCmd struct {
	App string `arg:""`
}

type shareRevokeCmd struct {
	App  string `arg:""`
	Link string `arg:""`
}

func (c *shareAddCmd) check(g globals) []error {
	faults := g.checkDatabase()
	if err := checkPublicURL(c.PublicURL); err != nil {
		faults = append(faults, err)
	}
	return faults
}

func (c *shareAddCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		token, lastDay, err := a.AddShare(ctx, c.App, c.Site, c.Until)
		if token == "" {
			return err
		}
		fmt.Fprintf(p.stderr, "Whoever has the link sees numbers, and no visitor's address, up to %s. Keep it: it is shown this once.\n",
			visit.DayText(lastDay))
		fmt.Fprintf(p.stdout, "%s/share/%s\n", c.PublicURL, token)
		return err // the link is made; perhaps an instance does not know it yet
	})
}

func (c *shareListCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		shares, err := a.Shares(ctx, c.App)
		if err != nil {
			return err
		}
		table := tableOn(p.stdout, "LINK\tSHOWS\tMADE\tUNTIL\tREVOKED")
		for _, s := range shares {
			fmt.Fprintf(table, "%s_…\t%s\t%s\t%s\t%s\n", s.Name, cmp.Or(visit.Shown(s.Site), "all sites"),
				moment(&s.Made), visit.DayText(s.LastDay), moment(s.Revoked))
		}
		return table.Flush()
	})
}

func (c *shareRevokeCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		if err := a.RevokeShare(ctx, c.App, c.Link); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "revoked the link to app %s\n", c.App)
		return nil
	})
}
