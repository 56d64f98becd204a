package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"footfall/counter"
	"footfall/db"
)

type appCmd struct {
	Add    appAddCmd    `cmd:"" help:"Add an app. Running services know it when this returns."`
	Set    appSetCmd    `cmd:"" help:"Change an app: what is not given stays. Running services know when this returns."`
	List   appListCmd   `cmd:"" help:"List all apps."`
	Delete appDeleteCmd `cmd:"" help:"Delete an app and all that was counted for it. Asks first."`
	Key    keyCmd       `cmd:"" help:"Say who may count, and ask, with a key: add, list and revoke keys."`
}

// appFlags are the settings of an app. A flag that is not given is nil.
type appFlags struct {
	Name       string   `arg:"" help:"What callers write as app=…: a–z, 0–9, - and _."`
	Access     *string  `placeholder:"WHO" help:"Who may count. open: anybody, as whatever ip or visitor they assert, for any site, or those listed: for trying out, and for callers you trust. sites: anybody, as the address they come from, for the sites listed; whoever asserts another needs a key of the scope assert. key: as sites, and each visit needs a key of the scope count or assert. Default: sites."`
	Site       []string `sep:"none" placeholder:"HOST" help:"A site to count: a host, host:port, or *.host for all its subdomains. Repeat it for each; all others are refused. With set it replaces the list; an empty one empties it, where --access is open: then any site counts."`
	TZ         *string  `name:"tz" placeholder:"ZONE" help:"IANA time zone whose natural days are counted, like Europe/Berlin. Fixed once something is counted. Default: UTC."`
	IPv6Prefix *int     `name:"ipv6-prefix" placeholder:"BITS" help:"IPv6 addresses that share this many leading bits are one visitor: 32 to 128. Fixed once something is counted. Default: 64, one household."`
	KeepQuery  []string `sep:"none" placeholder:"NAME" help:"A query parameter that distinguishes pages. Repeat it for each; all others are dropped. With set it replaces the list, an empty one empties it. Default: none."`
	Visitor    *string  `placeholder:"HOW" help:"What tells visitors apart. address: their address. id: what the caller says with visitor=. hashed: a keyed hash of the address; all numbers stay exact and no address is stored. daily: one whose key turns each day, so that uv counts daily visitors and nobody can be followed. All but address need the secret (--secret-file). Fixed once something is counted. Default: address."`
	Bots       *string  `placeholder:"WHAT" help:"skip or count crawlers and other programs, by their User-Agent. default: skip them where a visit is of the caller's own address and --access is not open. Default: default."`
	RespectDNT *bool    `name:"respect-dnt" negatable:"" help:"Do not count visitors whose browser asks not to be tracked (DNT: 1, Sec-GPC: 1). Default: --no-respect-dnt."`
	Ignore     []string `sep:"none" placeholder:"WHO" help:"Do not count an address, a network like 192.0.2.0/24, or a visitor's id (id:… if it looks like an address): your own visits, black lists. Repeat it for each. With set it replaces the list, an empty one empties it. Default: none."`

	RetainDays *int `placeholder:"N" help:"Days for which it is kept who came to what on a day. 0: for ever. Older rows go once a day; all sums, ranks and daily numbers stay, and uniques of a page or site stay exact, those of groups of pages become estimates. Default: 35."`
	ForgetDays *int `placeholder:"N" help:"Forget visitors who have not come to a site for so many days (each visit renews that); at least as many as --retain-days. uv and the ranks of others stay; a forgotten visitor who comes back is a new one: uv counts him again, and his old rank stays taken. 0: never. Default: 0."`

	MaxRequests *string `placeholder:"N" help:"Requests a minute from one address (IPv6: from its /64); more get 429. 0: any number. default: 600 where a request is of the caller's own address and --access is not open, else any number. Default: default."`
	MaxNewPages *string `placeholder:"N" help:"New pages and sites a day; visits to more of them count for the page (other) of their site. 0: any number. default: 2000, where as above: at worst 10 GB a year. Default: default."`
}

type appAddCmd struct{ appFlags }

type appSetCmd struct{ appFlags }

type appListCmd struct{}

func (f *appFlags) check(g globals) []error { return g.checkDatabase() }

func (*appListCmd) check(g globals) []error { return g.checkDatabase() }

// settings leaves out what was not given.
func (f *appFlags) settings() counter.Settings {
	return counter.Settings{
		TZ: f.TZ, IPv6Prefix: f.IPv6Prefix, Access: f.Access, Sites: list(f.Site), KeepQuery: list(f.KeepQuery),
		Visitor: f.Visitor, RespectDNT: f.RespectDNT, Bots: f.Bots, Ignore: list(f.Ignore),
		RetainDays: f.RetainDays, ForgetDays: f.ForgetDays,
		MaxRequests: f.MaxRequests, MaxNewPages: f.MaxNewPages,
	}
}

// list is what a flag names that may be repeated; a single empty value empties it.
func list(given []string) []string {
	if len(given) == 1 && given[0] == "" {
		return []string{}
	}
	return given
}

func (c *appAddCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error { return a.AddApp(ctx, c.Name, c.settings()) })
}

func (c *appSetCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error { return a.SetApp(ctx, c.Name, c.settings()) })
}

func (*appListCmd) run(ctx context.Context, p *program) error {
	return p.withTables(ctx, func(d *db.DB) error {
		apps, err := d.Apps(ctx)
		if err != nil {
			return fmt.Errorf("list apps: %w", err)
		}
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tACCESS\tVISITOR\tTZ\tIPV6-PREFIX\tSITES\tKEEP-QUERY\tBESIDES")
		for _, app := range apps {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
				app.Name, app.Access, app.Visitor, app.Tz, app.Ipv6Prefix, listed(app.Sites), listed(app.KeepQuery), besides(app))
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
	if app.RetainDays != keptByDefault {
		set = append(set, fmt.Sprintf("retain-days=%d", app.RetainDays))
	}
	if app.ForgetDays > 0 {
		set = append(set, fmt.Sprintf("forget-days=%d", app.ForgetDays))
	}
	set = chosen(set, "max-requests", app.MaxRequests)
	return listed(chosen(set, "max-new-pages", app.MaxNewPages))
}

// chosen adds a setting that an app has not left to the service.
func chosen[T any](set []string, name string, setting *T) []string {
	if setting == nil {
		return set
	}
	return append(set, fmt.Sprintf("%s=%v", name, *setting))
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ","), "-") }
