package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/visit"
	"footfall/webhook"
)

// The commands that add, list and remove the objects of an app: sites, keys, links, notes and webhooks.
type (
	siteAddCmd    struct{ siteArg }
	siteRemoveCmd struct{ siteArg }

	keyAddCmd struct {
		appArg
		publicURL
		Scope []app.Scope `required:"" sep:"none" placeholder:"SCOPE"`
	}
	keyListCmd   struct{ appArg }
	keyRevokeCmd struct {
		appArg
		Key string `arg:""`
	}

	shareAddCmd struct {
		appArg
		Site  string `placeholder:"HOST"`
		Until string `placeholder:"DAY"`
		publicURL
	}
	shareListCmd   struct{ appArg }
	shareRevokeCmd struct {
		appArg
		Link string `arg:""`
	}

	noteAddCmd struct {
		appArg
		Day  string `arg:""`
		Text string `arg:""`
		Site string `placeholder:"HOST"`
	}
	noteListCmd   struct{ appArg }
	noteRemoveCmd struct {
		appArg
		Number int32 `arg:""`
	}

	webhookAddCmd struct {
		appArg
		URL     string `arg:"" name:"url"`
		Site    string `placeholder:"HOST"`
		URI     string `name:"uri" placeholder:"URI"`
		Private bool
	}
	webhookListCmd   struct{ appArg }
	webhookRemoveCmd struct {
		appArg
		Number int32 `arg:""`
	}

	allKeyAddCmd struct {
		Scope []app.Scope `required:"" sep:"none" placeholder:"SCOPE"`
	}
	allKeyListCmd   struct{}
	allKeyRevokeCmd struct {
		Key string `arg:""`
	}
)

// siteArg contains the arguments of commands that add sites to an app or remove them.
type siteArg struct {
	appArg
	Host []string `arg:""`
}

func (c *siteAddCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	sites, err := a.AddSites(ctx, c.App, c.Host)
	return p.printChange(err, "app %s counts %s", c.App, joinNames(admin.ShownSites(sites)))
}

func (c *siteRemoveCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	sites, err := a.RemoveSites(ctx, c.App, c.Host)
	return p.printChange(err, "app %s counts %s", c.App, joinNames(admin.ShownSites(sites)))
}

func (c *keyAddCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	key, err := a.AddKey(ctx, c.App, c.Scope)
	if isDone(err) {
		fmt.Fprintf(p.stderr, "Programs send the key as a header, Authorization: Bearer KEY, never in a URL. Keep it: "+
			"it is shown only once.\n")
		if wrong := c.find(ctx, a); wrong == nil && slices.Contains(c.Scope, app.ScopeRead) {
			fmt.Fprintf(p.stderr, "With it, programs can read reports, like %s/api/apps/%s/days. "+
				"People sign in with accounts: %s\n", c.PublicURL, c.App,
				p.commandToType("account add NAME --look "+c.App))
		}
	}
	return p.printChange(err, "%s", key)
}

func (c *keyListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	keys, err := a.Keys(ctx, c.App)
	return printRows(p.stdout, err, "KEY\tSCOPES\tCREATED\tLAST USED\tREVOKED", keys, func(k admin.KeysListRow) []any {
		return []any{k.Name + "_…", strings.Join(k.Scopes, ","), moment(&k.CreatedAt), moment(k.UsedAt), moment(k.RevokedAt)}
	})
}

func (c *keyRevokeCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	return p.printChange(a.RevokeKey(ctx, c.App, c.Key), "revoked the key of app %s", c.App)
}

func (c *allKeyAddCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	return (&keyAddCmd{Scope: c.Scope}).run(ctx, p, a)
}

func (*allKeyListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	return (&keyListCmd{}).run(ctx, p, a)
}

func (c *allKeyRevokeCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	return p.printChange(a.RevokeKey(ctx, "", c.Key), "revoked the key for all apps")
}

func (c *shareAddCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	token, lastDay, err := a.AddShare(ctx, c.App, c.Site, c.Until)
	if isDone(err) {
		fmt.Fprintf(p.stderr, "Anyone with the link can see numbers, but no visitor's address, up to %s. Keep it: "+
			"it is shown only once.\n",
			visit.DayText(lastDay))
		err = cmp.Or(c.find(ctx, a), err)
	}
	return p.printChange(err, "%s/share/%s", c.PublicURL, token)
}

func (c *shareListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	shares, err := a.Shares(ctx, c.App)
	return printRows(p.stdout, err, "LINK\tSHOWS\tCREATED\tUNTIL\tREVOKED", shares, func(s admin.SharesListRow) []any {
		return []any{s.Name + "_…", admin.SitesOf(s.Site), moment(&s.CreatedAt), visit.DayText(s.LastDay), moment(s.RevokedAt)}
	})
}

func (c *shareRevokeCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	return p.printChange(a.RevokeShare(ctx, c.App, c.Link), "revoked the link to app %s", c.App)
}

func (c *noteAddCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	n, err := a.AddNote(ctx, c.App, c.Day, c.Text, c.Site)
	return p.printChange(err, "added a note for %s, %s: %s (number %d)", visit.DayText(n.DayID), admin.SitesOf(n.Site), n.Text, n.ID)
}

func (c *noteListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	notes, err := a.Notes(ctx, c.App)
	return printRows(p.stdout, err, "NUMBER\tDAY\tSITE\tNOTE", notes, func(n admin.NotesListRow) []any {
		return []any{n.ID, visit.DayText(n.DayID), admin.SitesOf(n.Site), n.Text}
	})
}

func (c *noteRemoveCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	n, err := a.RemoveNote(ctx, c.App, c.Number)
	return p.printChange(err, "removed the note for %s, %s: %s", visit.DayText(n.DayID), admin.SitesOf(n.Site), n.Text)
}

func (c *webhookAddCmd) check(g globals) faults {
	f := g.checkDatabase()
	f.add(webhook.CheckURL(c.URL, c.Private))
	return f
}

func (c *webhookAddCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	id, target, key, err := a.AddWebhook(ctx, c.App, c.Site, c.URI, c.URL, c.Private)
	if err == nil {
		fmt.Fprintf(p.stderr, "Added webhook %d for %s. The receiver needs this key to check the signature of each call. "+
			"It is shown only once.\n", id, visit.Shown(target))
	}
	return p.printChange(err, "%s", webhook.KeyText(key))
}

func (c *webhookListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	webhooks, err := a.Webhooks(ctx, c.App)
	return printRows(p.stdout, err, "NUMBER\tPAGE OR SITE\tURL\tWAITING\tSINCE\tNEXT TRY", webhooks, func(w admin.WebhooksListRow) []any {
		if w.Waiting == 0 {
			return []any{w.ID, visit.Shown(w.Uri), w.Url, 0, "-", "-"}
		}
		return []any{w.ID, visit.Shown(w.Uri), w.Url, w.Waiting, moment(&w.Since), moment(&w.TryAt)}
	})
}

func (c *webhookRemoveCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	target, err := a.RemoveWebhook(ctx, c.App, c.Number)
	return p.printChange(err, "removed webhook %d for %s", c.Number, visit.Shown(target))
}
