package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db"
	"footfall/embed"
	"footfall/visit"
)

type appCmd struct {
	Add    appAddCmd    `cmd:""`
	Set    appSetCmd    `cmd:""`
	List   appListCmd   `cmd:""`
	Delete appDeleteCmd `cmd:""`
	Key    keyCmd       `cmd:""`
	Share  shareCmd     `cmd:""`
	Note   noteCmd      `cmd:""`
}

// appFlags are the settings of an app. A flag that is not given is nil.
type appFlags struct {
	Name       string   `arg:""`
	Access     *string  `placeholder:"WHO"`
	Site       []string `sep:"none" placeholder:"HOST"`
	TZ         *string  `name:"tz" placeholder:"ZONE"`
	IPv6Prefix *int     `name:"ipv6-prefix" placeholder:"BITS"`
	KeepQuery  []string `sep:"none" placeholder:"NAME"`
	Visitor    *string  `placeholder:"HOW"`
	Bots       *string  `placeholder:"WHAT"`
	RespectDNT *bool    `name:"respect-dnt" negatable:""`
	Ignore     []string `sep:"none" placeholder:"WHO"`

	PublicCounts *string `placeholder:"WHAT"`

	RetainDays *int `placeholder:"N"`
	ForgetDays *int `placeholder:"N"`

	MaxRequests *string `placeholder:"N"`
	MaxNewPages *string `placeholder:"N"`
}

type appAddCmd struct {
	appFlags
	PublicURL string `name:"public-url" env:"FOOTFALL_PUBLIC_URL" default:"http://127.0.0.1:8080" placeholder:"URL"`
}

type appSetCmd struct{ appFlags }

type appListCmd struct{}

// settings leaves out what was not given.
func (f *appFlags) settings() app.Settings {
	return app.Settings{
		TZ: f.TZ, IPv6Prefix: f.IPv6Prefix, Access: f.Access, Sites: list(f.Site), KeepQuery: list(f.KeepQuery),
		Visitor: f.Visitor, RespectDNT: f.RespectDNT, Bots: f.Bots, Ignore: list(f.Ignore),
		PublicCounts: f.PublicCounts, RetainDays: f.RetainDays, ForgetDays: f.ForgetDays,
		MaxRequests: f.MaxRequests, MaxNewPages: f.MaxNewPages,
	}
}

// list is what a flag that may be repeated names; a single empty value empties the list.
func list(given []string) []string {
	if len(given) == 1 && given[0] == "" {
		return []string{}
	}
	return given
}

func (c *appAddCmd) check(g globals) []error {
	faults := g.checkDatabase()
	if err := app.CheckNew(c.Name, c.settings()); err != nil { // before a cluster is made for it
		faults = append(faults, err)
	}
	if err := checkPublicURL(c.PublicURL); err != nil {
		faults = append(faults, err)
	}
	if c.Visitor == nil && g.SecretFile == "" && !g.embedded() {
		faults = append(faults, fmt.Errorf(`--visitor: an app keeps no addresses, but keyed hashes of them, and there is no secret to key these with. Make one, and name it to every instance and command:

  openssl rand -hex 32 >secret
  %[1]s app add %[2]s … --secret-file secret

or have addresses kept as they are:

  %[1]s app add %[2]s … --visitor address`, os.Args[0], c.Name))
	}
	return faults
}

// keeps says in a sentence what an app keeps of its visitors.
var keeps = map[string]string{
	"address": "It keeps the addresses of its visitors as they are.",
	"id":      "It keeps no ids of its visitors, but hashes of them, keyed with the secret.",
	"hashed":  "It keeps no addresses, but hashes of them, keyed with the secret.",
	"daily":   "It keeps no addresses, but hashes of them, keyed with the secret and with a key that changes each day.",
}

// run adds the app, and says what it keeps, what its pages need, and how one looks at it.
func (c *appAddCmd) run(ctx context.Context, p *program) error {
	settings := c.settings()
	if settings.Visitor == nil {
		hashed := "hashed"
		settings.Visitor = &hashed
	}
	if err := p.makingData().withAdmin(ctx, func(a *admin.Admin) error { return a.AddApp(ctx, c.Name, settings) }); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "added app %s. %s\n", c.Name, keeps[*settings.Visitor])
	if c.Access == nil || *c.Access != "key" { // for which no page counts
		c.printLines(p)
	}
	if c.Access != nil && *c.Access == "open" {
		fmt.Fprintf(p.stdout, "\nEverybody can look at it: %s/dash/%s\n", c.PublicURL, c.Name)
		return nil
	}
	fmt.Fprintf(p.stdout, "\nLook at it at %s/dash/%s, with a key that this makes:\n\n  %s\n", c.PublicURL, c.Name, p.typed("app key add "+c.Name+" --scope read"))
	return nil
}

// printLines says what the pages of the app need.
func (c *appAddCmd) printLines(p *program) {
	fmt.Fprintf(p.stdout, `
This line in the head of a page counts it:

  %s

and this one runs the present version of the script and no other:

  %s

Readers must reach the service at %s: set FOOTFALL_PUBLIC_URL, if it is elsewhere.
Numbers for your pages: %[3]s/embed?app=%[4]s
`, embed.Line(c.PublicURL, c.Name), embed.PinnedLine(c.PublicURL, c.Name), c.PublicURL, c.Name)
}

func (c *appSetCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		if err := a.SetApp(ctx, c.Name, c.settings()); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "app %s is set\n", c.Name)
		return nil
	})
}

func (*appListCmd) run(ctx context.Context, p *program) error {
	return p.withTables(ctx, func(d *db.DB) error {
		apps, err := d.Apps(ctx)
		if err != nil {
			return fmt.Errorf("list apps: %w", err)
		}
		table := tableOn(p.stdout, "NAME\tACCESS\tVISITOR\tTZ\tIPV6-PREFIX\tSITES\tKEEP-QUERY\tBESIDES")
		for _, app := range apps {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
				app.Name, app.Access, app.Visitor, app.Tz, app.Ipv6Prefix, listed(shown(app.Sites)), listed(app.KeepQuery), besides(app))
		}
		return table.Flush()
	})
}

// keptByDefault is for how many days the visits of a new app are kept.
const keptByDefault = 35

// besides names the settings of an app that are not the defaults, as the flags do.
func besides(app db.App) string {
	var set []string
	if app.DeletedAt != nil {
		set = append(set, "being deleted")
	}
	if app.RespectDnt {
		set = append(set, "respect-dnt")
	}
	set = chosen(set, "bots", app.Bots)
	for _, who := range app.Ignore {
		set = append(set, "ignore="+who)
	}
	if app.PublicCounts != "off" {
		set = append(set, "public-counts="+app.PublicCounts)
	}
	if app.RetainDays != keptByDefault {
		set = append(set, fmt.Sprintf("retain-days=%d", app.RetainDays))
	}
	if app.ForgetDays > 0 {
		set = append(set, fmt.Sprintf("forget-days=%d", app.ForgetDays))
	}
	set = chosen(set, "max-requests", app.MaxRequests)
	return listed(chosen(set, "max-new-pages", app.MaxNewPages))
}

// chosen adds a setting, unless the app leaves it to the service (nil).
func chosen[T any](set []string, name string, setting *T) []string {
	if setting == nil {
		return set
	}
	return append(set, fmt.Sprintf("%s=%v", name, *setting))
}

// shown are sites as people read them.
func shown(sites []string) []string {
	names := slices.Clone(sites)
	for i, site := range sites {
		names[i] = visit.Shown(site)
	}
	return names
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ","), "-") }

type appDeleteCmd struct {
	Name string `arg:""`
	confirmed
}

// run deletes an app once somebody has typed its name.
func (c *appDeleteCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		if err := c.ask(p, fmt.Sprintf("All that was counted for app %s, and its keys, will be deleted.", c.Name), c.Name); err != nil {
			return err
		}
		if err := a.DeleteApp(ctx, c.Name); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "deleted app %s\n", c.Name)
		return nil
	})
}
