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
		accountArg
		publicURL
		rights
	}
	accountSetCmd struct {
		accountArg
		rights
	}
	accountListCmd   struct{}
	accountRemoveCmd struct{ accountArg }
	accountLinkCmd   struct {
		accountArg
		publicURL
	}
)

// accountArg is the account argument, for commands that act on one account.
type accountArg struct {
	Account string `arg:""`
}

// rights contains the flags that grant an account rights to apps.
type rights struct {
	Owner  *bool    `negatable:""`
	Look   []string `placeholder:"APP"`
	Change []string `placeholder:"APP"`
	Hide   []string `placeholder:"APP"`
}

func (r rights) toAccount() account.Rights {
	given := account.Rights{Owner: r.Owner, Apps: map[string]account.Right{}}
	for _, app := range r.Look {
		given.Apps[app] = account.Look
	}
	for _, app := range r.Change { // replaces account.Look, because the right to change an app includes the right to look at it
		given.Apps[app] = account.Change
	}
	for _, app := range r.Hide {
		given.Apps[app] = account.None
	}
	return given
}

// passwordLink returns the address of a page. The page creates the first account, or sets the password of an account. The
// service finds out from the token which of these pages to show.
func passwordLink(publicURL, token string) string { return publicURL + "/start/" + token }

// one finds the account in d whose name or number is c.Account. all gives access to all accounts in d.
func (c *accountArg) one(ctx context.Context, d *db.DB) (all *account.Accounts, one account.Entry, err error) {
	all = account.Open(d)
	one, err = all.Find(ctx, c.Account)
	return all, one, err
}

func (c *startLinkCmd) run(ctx context.Context, p *program, d *db.DB) error {
	if err := c.find(ctx, admin.NewAdmin(d, nil)); err != nil {
		return err
	}
	if d.IsCell() {
		fmt.Fprintln(p.stderr, "footfall: this link is for a service of this cell only. Accounts of `serve --cells` are in the "+
			"coordinator's database: for a link to their service, name that database")
	}
	token, err := account.Open(d).NewStart(ctx)
	if err == nil && token == "" {
		return visit.Errorf(visit.Invalid, "", "there is already an account: sign in at %s/enter, or use "+
			"`footfall account link` if its password is forgotten", c.PublicURL)
	}
	return p.printChange(err, "%s", passwordLink(c.PublicURL, token))
}

func (c *accountAddCmd) run(ctx context.Context, p *program, d *db.DB) error {
	if err := c.find(ctx, admin.NewAdmin(d, nil)); err != nil {
		return err
	}
	_, token, err := account.Open(d).Add(ctx, c.Account, c.toAccount())
	return c.printLink(p, c.PublicURL, token, err)
}

func (c *accountLinkCmd) run(ctx context.Context, p *program, d *db.DB) error {
	if err := c.find(ctx, admin.NewAdmin(d, nil)); err != nil {
		return err
	}
	all, one, err := c.one(ctx, d)
	if err != nil {
		return err
	}
	token, err := all.NewLink(ctx, one.ID)
	return c.printLink(p, c.PublicURL, token, err)
}

// printLink prints a link with which a person chooses the account's password. It prints the link to standard output, and an
// explanation to standard error.
func (c *accountArg) printLink(p *program, publicURL, token string, err error) error {
	if err == nil {
		fmt.Fprintf(p.stderr, "The first person who opens this link, up to %s, chooses the password of %s. Keep it: "+
			"it is shown only once.\n",
			time.Now().Add(account.LinkLifetime).UTC().Format(time.DateOnly), c.Account)
	}
	return p.printChange(err, "%s", passwordLink(publicURL, token))
}

func (c *accountSetCmd) run(ctx context.Context, p *program, d *db.DB) error {
	all, one, err := c.one(ctx, d)
	if err != nil {
		return err
	}
	return p.printChange(all.Set(ctx, one.ID, c.toAccount()), "updated account %s", c.Account)
}

func (c *accountRemoveCmd) run(ctx context.Context, p *program, d *db.DB) error {
	all, one, err := c.one(ctx, d)
	if err != nil {
		return err
	}
	return p.printChange(all.Remove(ctx, one.ID), "removed account %s, whose sessions have ended", c.Account)
}

func (*accountListCmd) run(ctx context.Context, p *program, d *db.DB) error {
	entries, err := account.Open(d).List(ctx)
	return printRows(p.stdout, err, "NUMBER\tNAME\tMAY VIEW\tMAY CHANGE\tSIGNS IN BY\tLAST USED\tLINK UNTIL", entries,
		func(e account.Entry) []any {
			by := "-"
			switch {
			case e.Password:
				by = "password"
			case e.Name != "" && e.LinkUntil == nil:
				by = "proxy"
			}
			return []any{e.ID, cmp.Or(e.Name, "-"), appsWithRight(e, account.Look, account.Change), appsWithRight(e, account.Change), by,
				moment(e.Used),
				moment(e.LinkUntil)}
		})
}

// appsWithRight returns the names of the apps for which account e has at least one of the given rights. For an owner, who
// has all rights to all apps, it returns "everything".
func appsWithRight(e account.Entry, one ...account.Right) string {
	if e.Owner {
		return "everything"
	}
	return joinNames(e.AppsWith(one...))
}
