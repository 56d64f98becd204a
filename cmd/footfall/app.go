package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db"
	"footfall/embed"
	"footfall/report/draw"
	"footfall/visit/tag"
)

type (
	appAddCmd struct {
		appSetCmd
		publicURL
	}
	appSetCmd struct {
		Name string `arg:""`
		app.Settings
	}
	appListCmd   struct{}
	appDeleteCmd struct {
		Name string `arg:""`
		confirmed
	}

	changesCmd struct {
		App string `arg:"" optional:""`
		N   int32  `default:"50" placeholder:"N"`
	}
)

// appArg is the app argument, for commands that act on one app.
type appArg struct {
	App string `arg:""`
}

// publicURL is the flag --public-url: the address at which visitors reach the service.
type publicURL struct {
	PublicURL string `name:"public-url" env:"FOOTFALL_PUBLIC_URL" placeholder:"URL"`
}

func (u *publicURL) check(g globals) faults {
	f := g.checkDatabase()
	if u.PublicURL != "" {
		f.add(checkPublicURL(u.PublicURL))
	}
	return f
}

// find sets PublicURL if the flag is missing. It uses the address of the service that was started last on this machine. If
// no service runs on this machine, it uses the default address of `footfall serve`.
func (u *publicURL) find(ctx context.Context, a *admin.Admin) error {
	if u.PublicURL != "" {
		return nil
	}
	instances, err := a.Instances(ctx)
	u.PublicURL = servedAt("127.0.0.1:8080")
	host, _ := os.Hostname() // without a host name here, the instance names of this machine contain no host name either
	for _, i := range instances {
		if at := addressOf(i.Name, host); at != "" {
			u.PublicURL = servedAt(at)
		}
	}
	return err
}

// settings returns the settings from the flags. If the only value of a list flag is empty, as in --site "", the list in the
// settings is empty, too. Tags and events may also be separated by commas.
func (c *appSetCmd) settings() app.Settings {
	s := c.Settings
	for _, list := range []*[]string{&s.Sites, &s.KeepQuery, &s.Ignore, &s.Goals} {
		if len(*list) == 1 && (*list)[0] == "" {
			*list = []string{}
		}
	}
	for _, list := range []*[]string{&s.Tags, &s.PublicEvents} {
		if *list != nil {
			*list = append([]string{}, strings.FieldsFunc(strings.Join(*list, ","), func(r rune) bool { return r == ',' })...)
		}
	}
	return s
}

func (c *appAddCmd) check(g globals) faults {
	f := c.publicURL.check(g)
	if _, err := os.Stat(filepath.Join(g.Data, "postgres")); g.embedded() && err != nil {
		f.add(app.CheckNew(c.Name, c.settings())) // report these faults now, before an embedded database is created for the app
	}
	f.addIf(c.Visitor == nil && g.SecretFile == "" && !g.embedded(),
		`--visitor: by default an app stores keyed hashes of addresses, and there is no secret to key them with. `+
			`Create one, and give it to all instances and commands:

  openssl rand -hex 32 >secret
  %[1]s app add %[2]s … --secret-file secret

or store the addresses themselves:

  %[1]s app add %[2]s … --visitor address`, os.Args[0], c.Name)
	return f
}

// run adds the app. It prints the app's time zone, which data the app stores about visitors, the lines that load the
// counting script, and the dashboard's address.
func (c *appAddCmd) run(ctx context.Context, p *program) error {
	if c.Visitor == nil {
		hashed := app.ByHash
		c.Visitor = &hashed
	}
	zoneNote := ""
	if c.TZ == nil {
		zone := machineZone(localtime)
		c.TZ, zoneNote = &zone, ", the time zone of this machine"
		if zone == utc {
			zoneNote = ", because this machine has no other time zone set"
		}
	}
	var added db.App
	p.makesData = true
	if err := p.withAdmin(ctx, func(a *admin.Admin) (err error) {
		if err := a.AddApp(ctx, c.Name, c.settings()); err != nil {
			return err
		}
		if added, err = a.AppNamed(ctx, c.Name); err != nil {
			return err
		}
		return c.find(ctx, a)
	}); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "added app %s, which counts days in %s%s. The first visit fixes the time zone; until then, "+
		"this changes it:\n\n  %s\n\n%s\n",
		c.Name, added.Tz, zoneNote, p.commandToType("app set "+c.Name+" --tz ZONE"), visitorTexts[added.Visitor])
	access, public := added.Access, added.PublicCounts
	fmt.Fprintf(p.stdout, "%s This command changes it:\n\n  %s\n", publicCountsTexts[public],
		p.commandToType("app set "+c.Name+" --public-counts WHAT"))
	if access != "key" { // if counting needs a key, pages cannot count, because they must not contain the key
		c.printLines(p)
	}
	if access == app.AccessOpen && public != app.PublicOff && public != app.PublicAnswers {
		fmt.Fprintf(p.stdout, "\nEveryone can view it at %s/dash/%s\n", c.PublicURL, c.Name)
		return nil
	}
	fmt.Fprintf(p.stdout, "\nView it at %s/dash/%s\n", c.PublicURL, c.Name)
	return nil
}

// printLines prints the HTML lines that load the counting script in a page.
func (c *appAddCmd) printLines(p *program) {
	fmt.Fprintf(p.stdout, `
This line in the head of a page counts its visits:

  %s

and this one does so with the current version of the script only:

  %s

Readers must be able to reach the service at %s. If its address is another one, set FOOTFALL_PUBLIC_URL.
How to show numbers in your pages: %[3]s/embed?app=%[4]s
`, embed.Line(c.PublicURL, c.Name), embed.PinnedLine(c.PublicURL, c.Name), c.PublicURL, c.Name)
}

func (c *appSetCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	err := p.printChange(a.SetApp(ctx, c.Name, c.settings()), "updated app %s", c.Name)
	if err == nil && orZero(c.Visitor) == app.ByBrowser {
		fmt.Fprintln(p.stdout, browsersWarning)
	}
	return err
}

func (*appListCmd) run(ctx context.Context, p *program, d *db.DB) error {
	apps, err := d.Apps(ctx)
	if err != nil {
		return fmt.Errorf("list apps: %w", err)
	}
	const names = "NAME\tACCESS\tVISITOR\tTZ\tIPV6-PREFIX\tSITES\tKEEP-QUERY\tOTHER SETTINGS"
	return printRows(p.stdout, nil, names, apps, func(app db.App) []any {
		sites := joinNames(admin.ShownSites(app.Sites))
		return []any{app.Name, app.Access, app.Visitor, app.Tz, app.Ipv6Prefix, sites, joinNames(app.KeepQuery), joinNames(nonDefaults(app))}
	})
}

// keptByDefault is the default of --retain-days for a new app: its visits are deleted after this number of days.
const keptByDefault = 35

// nonDefaults returns the settings of an app that differ from the defaults. Each of them is a text like "retain-days=90".
func nonDefaults(row db.App) (set []string) {
	add := func(is bool, format string, values ...any) {
		if is {
			set = append(set, fmt.Sprintf(format, values...))
		}
	}
	add(row.DeletedAt != nil, "being deleted")
	add(row.Cell != nil, "in cell %s", orZero(row.Cell))
	add(row.MovingTo != nil, "moving to cell %s", orZero(row.MovingTo))
	add(row.RespectDnt, "respect-dnt")
	add(row.Bots != nil, "bots=%s", orZero(row.Bots))
	hosts := 0
	for _, who := range row.Ignore {
		from := strings.HasPrefix(who, app.FromPrefix)
		add(!from, "ignore=%s", who)
		if from {
			hosts++
		}
	}
	add(hosts > 0, "ignore=from:… (%s)", draw.Count(int64(hosts), "host"))
	add(row.PublicCounts != "off", "public-counts=%s", row.PublicCounts)
	add(row.PublicTop, "public-top=on")
	add(len(row.PublicEvents) > 0, "public-events=%s", strings.Join(row.PublicEvents, ","))
	add(row.RetainDays != keptByDefault, "retain-days=%d", row.RetainDays)
	add(row.ForgetDays > 0, "forget-days=%d", row.ForgetDays)
	add(row.MaxRequests != nil, "max-requests=%d", orZero(row.MaxRequests))
	add(row.MaxNewPages != nil, "max-new-pages=%d", orZero(row.MaxNewPages))
	tags, usual := strings.Join(row.Tags, ","), strings.Join(tag.Names, ",")
	add(tags != usual, "tags=%s", strings.Replace(tags, usual, "default", 1))
	add(!row.Filters, "filters=off")
	add(!row.Titles, "titles=off")
	for _, goal := range row.Goals {
		add(true, "goal=%s", goal)
	}
	return set
}

// orZero returns the value to which p points, or the zero value if p is nil.
func orZero[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

func joinNames(names []string) string { return cmp.Or(strings.Join(names, ","), "-") }

// run deletes an app. Without --yes, the user must type the app's name first.
func (c *appDeleteCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	if err := c.ask(p, fmt.Sprintf("All numbers of app %s, and its keys, will be deleted.", c.Name), c.Name); err != nil {
		return err
	}
	return p.printChange(a.DeleteApp(ctx, c.Name), "deleted app %s", c.Name)
}

// moment formats a time in UTC. It returns "-" for nil.
func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

func (c *changesCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	changes, err := a.Changes(ctx, c.App, c.N)
	return printRows(p.stdout, err, "WHEN\tWHO\tAPP\tWHAT\tWAS\tIS", changes, func(ch admin.ChangesListRow) []any {
		return []any{moment(&ch.At), ch.Who, cmp.Or(orZero(ch.App), "-"), ch.What, cmp.Or(ch.Was, "-"), cmp.Or(ch.IsNow, "-")}
	})
}

// browsersWarning is printed for an app that counts two browsers with the same address as two visitors.
const browsersWarning = "From now on, instances of 0.1.0 count nothing in this database and answer 503, because they cannot " +
	"distinguish browsers of one address."

// visitorTexts maps each value of --visitor to a text about the data that the app stores about visitors.
var visitorTexts = map[string]string{
	"address": "It stores its visitors' addresses.",
	"id":      "It stores no ids of its visitors, only hashes of them, keyed with the secret.",
	"hashed":  "It stores no addresses, only hashes of them, keyed with the secret.",
	app.ByBrowser: "It stores no addresses, only hashes of them and of the names of browser and system, keyed with the secret. " +
		browsersWarning,
	"daily": "It stores no addresses, only hashes of them, keyed with the secret and with a key that changes each day.",
}

// publicCountsTexts maps each value of --public-counts to a text about the numbers that callers without a key can read.
var publicCountsTexts = map[string]string{
	app.PublicOff: "Nobody can read its numbers without a key. With the value answers, its pages can show " +
		"them. With read, badges can show them, too.",
	app.PublicAnswers: "Its pages can show their numbers, and anyone can request them. With off, nobody can read them " +
		"without a key.",
	app.PublicRead: "Anyone can read the numbers of its pages, also in badges. With off, nobody can read them without a key.",
	"count": "Anyone can read the numbers of its pages, and badges count visits. With off, nobody can read them " +
		"without a key.",
}
