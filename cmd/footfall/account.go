package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"footfall/account"
	"footfall/admin"
	"footfall/db"
	"footfall/visit"
)

type (
	startLinkCmd struct{ publicURL }

	accountAddCmd struct {
		ofAccount
		publicURL
		rights
	}
	accountSetCmd struct {
		ofAccount
		rights
	}
	accountListCmd   struct{}
	accountRemoveCmd struct{ ofAccount }
	accountLinkCmd   struct {
		ofAccount
		publicURL
	}
)

// ofAccount is the account that a command is about.
type ofAccount struct {
	Account string `arg:""`
}

// rights are what an account may do.
type rights struct {
	Owner  *bool    `negatable:""`
	Look   []string `placeholder:"APP"`
	Change []string `placeholder:"APP"`
	Hide   []string `placeholder:"APP"`
}

func (r rights) rights() account.Rights {
	given := account.Rights{Owner: r.Owner, Apps: map[string]account.Right{}}
	for _, app := range r.Look {
		given.Apps[app] = account.Look
	}
	for _, app := range r.Change { // and look
		given.Apps[app] = account.Change
	}
	for _, app := range r.Hide {
		given.Apps[app] = account.None
	}
	return given
}

// startLink is the address at which the first account is made.
func startLink(publicURL, token string) string { return publicURL + "/start/" + token }

// withAccounts runs f on the accounts of a database whose schema is up to date, and finds out before where people reach
// the service, where that is asked for.
func (p *program) withAccounts(ctx context.Context, at *publicURL, f func(all *account.Accounts) error) error {
	return p.withTables(ctx, func(d *db.DB) error {
		if at != nil {
			if err := at.find(ctx, admin.NewAdmin(d, nil)); err != nil {
				return err
			}
		}
		return f(account.Open(d))
	})
}

// of runs f on an account.
func (c *ofAccount) of(ctx context.Context, p *program, at *publicURL, f func(all *account.Accounts, one account.Entry) error) error {
	return p.withAccounts(ctx, at, func(all *account.Accounts) error {
		one, err := all.Find(ctx, c.Account)
		if err != nil {
			return err
		}
		return f(all, one)
	})
}

func (c *startLinkCmd) run(ctx context.Context, p *program) error {
	return p.withAccounts(ctx, &c.publicURL, func(all *account.Accounts) error {
		token, err := all.NewStart(ctx)
		if err == nil && token == "" {
			return visit.Errorf(visit.Invalid, "", "there is an account already: sign in at %s/enter; account link makes a link for one who has "+
				"forgotten the password", c.PublicURL)
		}
		return p.done(err, "%s", startLink(c.PublicURL, token))
	})
}

func (c *accountAddCmd) run(ctx context.Context, p *program) error {
	return p.withAccounts(ctx, &c.publicURL, func(all *account.Accounts) error {
		_, token, err := all.Add(ctx, c.Account, c.rights.rights())
		c.sayLink(p, err)
		return p.done(err, "%s", startLink(c.PublicURL, token))
	})
}

func (c *accountLinkCmd) run(ctx context.Context, p *program) error {
	return c.of(ctx, p, &c.publicURL, func(all *account.Accounts, one account.Entry) error {
		token, err := all.NewLink(ctx, one.ID)
		c.sayLink(p, err)
		return p.done(err, "%s", startLink(c.PublicURL, token))
	})
}

// sayLink says what a link is for.
func (c *ofAccount) sayLink(p *program, err error) {
	if err == nil {
		fmt.Fprintf(p.stderr, "Whoever opens this first, up to %s, chooses the password of %s. Keep it: it is shown this once.\n",
			time.Now().Add(account.LinkFor).UTC().Format(time.DateOnly), c.Account)
	}
}

func (c *accountSetCmd) run(ctx context.Context, p *program) error {
	return c.of(ctx, p, nil, func(all *account.Accounts, one account.Entry) error {
		return p.done(all.Set(ctx, one.ID, c.rights.rights()), "account %s is set", c.Account)
	})
}

func (c *accountRemoveCmd) run(ctx context.Context, p *program) error {
	return c.of(ctx, p, nil, func(all *account.Accounts, one account.Entry) error {
		return p.done(all.Remove(ctx, one.ID), "removed account %s, whose sessions have ended", c.Account)
	})
}

func (*accountListCmd) run(ctx context.Context, p *program) error {
	return p.withAccounts(ctx, nil, func(all *account.Accounts) error {
		entries, err := all.List(ctx)
		return printRows(p.stdout, err, "NUMBER\tNAME\tMAY LOOK AT\tMAY CHANGE\tSIGNS IN BY\tLAST USED\tLINK UNTIL", entries,
			func(e account.Entry) []any {
				by := "-"
				switch {
				case e.Password:
					by = "password"
				case e.Name != "" && e.LinkUntil == nil:
					by = "proxy"
				}
				return []any{e.ID, cmp.Or(e.Name, "-"), may(e, account.Look, account.Change), may(e, account.Change), by, moment(e.Used),
					moment(e.LinkUntil)}
			})
	})
}

// may names the apps of which an account has one of some rights.
func may(e account.Entry, one ...account.Right) string {
	if e.Owner {
		return "everything"
	}
	return listed(e.With(one...))
}
