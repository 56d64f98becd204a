package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"footfall/db"
	"footfall/visit"
)

type appCmd struct {
	Add  appAddCmd  `cmd:"" help:"Add an app. Running services know it when this returns."`
	Set  appSetCmd  `cmd:"" help:"Change an app: what is not given stays. Running services know when this returns."`
	List appListCmd `cmd:"" help:"List all apps."`
}

// appFlags are the settings of an app. A flag that is not given is nil.
type appFlags struct {
	Name       string   `arg:"" help:"What callers write as app=…: a–z, 0–9, - and _."`
	Site       []string `sep:"none" placeholder:"HOST" help:"A site to count: a host, or host:port. Repeat it for each; all others are refused. With set it replaces the list."`
	TZ         *string  `name:"tz" placeholder:"ZONE" help:"IANA time zone whose natural days are counted, like Europe/Berlin. Fixed once something is counted. Default: UTC."`
	IPv6Prefix *int     `name:"ipv6-prefix" placeholder:"BITS" help:"IPv6 addresses that share this many leading bits are one visitor: 32 to 128. Default: 64, one household."`
	KeepQuery  []string `sep:"none" placeholder:"NAME" help:"A query parameter that distinguishes pages. Repeat it for each; all others are dropped. With set it replaces the list. Default: none."`
	Open       *bool    `negatable:"" help:"Count any site, and believe the ip that a caller asserts. For trying out, and for callers you trust: whoever reaches the service can then count as anybody. Default: --no-open."`
}

type appAddCmd struct{ appFlags }

type appSetCmd struct{ appFlags }

type appListCmd struct{}

func (f *appFlags) check(g globals) []error { return g.checkDatabase() }

func (*appListCmd) check(g globals) []error { return g.checkDatabase() }

// settings leaves out what was not given.
func (f *appFlags) settings() visit.Settings {
	return visit.Settings{TZ: f.TZ, IPv6Prefix: f.IPv6Prefix, Open: f.Open, Sites: f.Site, KeepQuery: f.KeepQuery}
}

func (c *appAddCmd) run(ctx context.Context, p *program) error {
	return p.withTables(ctx, func(d *db.DB) error { return visit.AddApp(ctx, d, c.Name, c.settings()) })
}

func (c *appSetCmd) run(ctx context.Context, p *program) error {
	return p.withTables(ctx, func(d *db.DB) error { return visit.SetApp(ctx, d, c.Name, c.settings()) })
}

func (*appListCmd) run(ctx context.Context, p *program) error {
	return p.withTables(ctx, func(d *db.DB) error {
		apps, err := d.AppsList(ctx)
		if err != nil {
			return fmt.Errorf("list apps: %w", err)
		}
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tOPEN\tTZ\tIPV6-PREFIX\tSITES\tKEEP-QUERY")
		for _, app := range apps {
			open := "no"
			if app.Open {
				open = "yes"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", app.Name, open, app.Tz, app.Ipv6Prefix, listed(app.Sites), listed(app.KeepQuery))
		}
		return table.Flush()
	})
}

func listed(names []string) string { return cmp.Or(strings.Join(names, ","), "-") }
