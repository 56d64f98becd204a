package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/admin"
	"footfall/db"
	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

// reportFlags are those of every report.
type reportFlags struct {
	App   string `placeholder:"NAME"`
	JSON  bool   `name:"json" xor:"format"`
	CSV   bool   `name:"csv" xor:"format"`
	ASCII bool   `name:"ascii"`
}

// format is how the answer is written.
func (c *reportFlags) format() report.Format {
	switch {
	case c.JSON:
		return report.JSON
	case c.CSV:
		return report.CSV
	}
	return report.Text
}

// rangeFlags are the days of a report.
type rangeFlags struct {
	From string `default:"30d" placeholder:"DAY"`
	To   string `placeholder:"DAY"`
}

var allDays = rangeFlags{From: "all"}

// check tells what is wrong with the days, as far as that does not depend on today.
func (f *rangeFlags) check(g globals) faults {
	all := g.checkDatabase()
	all.day("--to", f.To, visit.AllDays.To)
	_, err := visit.ParseRange(f.From, "", visit.AllDays.To)
	all.add(err)
	return all
}

// whereFlags are those of reports on some of the visitors of a site.
type whereFlags struct {
	Where []string `sep:"none" placeholder:"CONDITION"`
}

// mostFlag is that of reports that list the first of many.
type mostFlag struct {
	N int `short:"n" default:"10" placeholder:"N"`
}

type reportTopCmd struct {
	reportFlags
	rangeFlags
	whereFlags
	Site string `placeholder:"HOST"`
	By   string `default:"pv" enum:"pv,uv,hot" placeholder:"NUMBER"`
	mostFlag
}

type reportDaysCmd struct {
	reportFlags
	rangeFlags
	whereFlags
	Target  string `arg:"" optional:"" name:"uri"`
	Site    string `placeholder:"HOST"`
	History bool
	SVG     string `name:"svg" placeholder:"FILE"`
}

// targetFlags are those of reports on a page or a site.
type targetFlags struct {
	reportFlags
	Offsets bool   `default:"true" negatable:""`
	Target  string `arg:"" name:"uri"`
}

type reportPageCmd struct {
	targetFlags
	To string `placeholder:"DAY"`
}

type reportTagsCmd struct {
	reportFlags
	rangeFlags
	whereFlags
	Target string `arg:"" name:"uri"`
	Name   string `default:"source" placeholder:"NAME"`
	mostFlag
}

// siteFlags are those of reports on a site.
type siteFlags struct {
	reportFlags
	rangeFlags
	whereFlags
	Site string `arg:"" optional:"" name:"site"`
}

type reportEventsCmd struct {
	siteFlags
	mostFlag
}

type reportGoalsCmd struct {
	siteFlags
	Goal string `placeholder:"CONDITION"`
	By   string `placeholder:"NAME"`
}

type reportFunnelCmd struct {
	siteFlags
	Step []string `required:"" sep:"none" placeholder:"CONDITION"`
}

type reportPanelCmd struct {
	Name string `arg:"" name:"panel" enum:"numbers,chart,totals,returns,first-visits,one-page,here"`
	siteFlags
}

type reportVisitorsCmd struct {
	targetFlags
	Day string `placeholder:"DAY"`
	N   int    `short:"n" default:"100" placeholder:"N"`
}

type reportRankCmd struct {
	targetFlags
	Visitor string `arg:"" name:"n|address"`
}

// most checks how many rows a report has at most.
func (m mostFlag) most(f faults, of string) faults {
	f.when(m.N < 1 || m.N > report.DeepestTop, "-n: %d %s: write a number from 1 to %d", m.N, of, report.DeepestTop)
	return f
}

func (c *reportTopCmd) check(g globals) faults    { return c.most(c.rangeFlags.check(g), "pages") }
func (c *reportTagsCmd) check(g globals) faults   { return c.most(c.rangeFlags.check(g), "values") }
func (c *reportEventsCmd) check(g globals) faults { return c.most(c.rangeFlags.check(g), "events") }

func (c *reportDaysCmd) check(g globals) faults {
	f := c.rangeFlags.check(g)
	f.when(c.Target != "" && c.Site != "", "--site: a page is named as well: leave one of them out")
	f.when(c.SVG == standardOutput && c.format() != report.Text,
		"--svg: - is standard output, where --json and --csv write, too: name a file, or leave them out")
	return f
}

func (c *reportPageCmd) check(g globals) faults {
	f := g.checkDatabase()
	f.day("--to", c.To, visit.AllDays.To)
	return f
}

func (c *reportVisitorsCmd) check(g globals) faults {
	f := g.checkDatabase()
	f.day("--day", c.Day, visit.AllDays.To)
	f.when(c.N < 0, "-n: %d visitors: write how many at most, or 0 for all", c.N)
	return f
}

// asked is what a report is about, and where it is read.
type asked struct {
	*report.Reader
	admin *admin.Admin
	app   db.App
	today int32 // in the app's time zone
}

// withApp runs f on the app of a report, which is about the page or site that somebody has typed
// ("": about none), and writes the answer, unless that is nil.
func (c *reportFlags) withApp(ctx context.Context, p *program, about string, f func(a asked) (report.Answer, error)) error {
	return p.withTables(ctx, db.Options{}, (*db.DB).CheckReports, func(d *db.DB) error { // which footfall_report may read
		secret, err := p.secret()
		if err != nil {
			return err
		}
		if err := d.MeasureClock(ctx); err != nil {
			return err
		}
		admin := admin.NewAdmin(d, secret)
		app, err := admin.App(ctx, c.App, siteIn(about))
		if err != nil {
			return err
		}
		zone, err := time.LoadLocation(app.Tz)
		if err != nil {
			return fmt.Errorf("time zone of app %s: %w", app.Name, err)
		}
		answer, err := f(asked{report.NewReader(d), admin, app, visit.DayOf(d.Now(), zone)})
		if err != nil || answer == nil {
			return err
		}
		return report.Print(p.stdout, answer, c.format(), styleOf(p.stdout, c.ASCII, os.Getenv))
	})
}

// withTarget is withApp for a report on a page or site. It asks a reader that adds offsets, if they
// are to be added.
func (c *targetFlags) withTarget(ctx context.Context, p *program, f func(a asked, target string) (report.Answer, error)) error {
	return c.withApp(ctx, p, c.Target, func(a asked) (report.Answer, error) {
		target, err := visit.ParseTarget(c.Target, a.app.KeepQuery)
		if err != nil {
			return nil, err
		}
		if !c.Offsets {
			a.Reader = a.Counted()
		}
		return f(a, target)
	})
}

// rows reads a report of the app in a range of days.
func (a asked) rows(ctx context.Context, name string, days rangeFlags, look report.Look) (report.Answer, error) {
	var err error
	if look.In, err = visit.ParseRange(days.From, days.To, a.today); err != nil {
		return nil, err
	}
	look.App, look.Today = a.app.Name, a.today
	if err := look.CheckWhere(); err != nil {
		return nil, err
	}
	return report.Named(name).Read(ctx, a.Reader, look)
}

func (c *reportTopCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Site, func(a asked) (_ report.Answer, err error) {
		of := ""
		if c.Site != "" {
			if of, err = visit.ParseSite(c.Site); err != nil {
				return nil, err
			}
		}
		return a.rows(ctx, "pages", c.rangeFlags, report.Look{Target: of, By: c.By, N: c.N, Where: c.Where})
	})
}

func (c *reportDaysCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, cmp.Or(c.Site, c.Target), func(a asked) (report.Answer, error) {
		in, err := visit.ParseRange(c.From, c.To, a.today)
		if err != nil {
			return nil, err
		}
		if in.From > a.today {
			return nil, visit.Errorf(visit.Invalid, "from", "%s is yet to come: today is %s",
				visit.DayText(in.From), visit.DayText(a.today))
		}
		if in.To != visit.AllDays.To { // which ends with the last day that was counted
			in.To = min(in.To, a.today)
		}
		target, err := c.target(ctx, a)
		if err != nil {
			return nil, err
		}
		days, err := a.DayByDay(ctx, report.Look{App: a.app.Name, Target: target, In: in, Where: c.Where, History: c.History})
		if err != nil {
			return nil, err
		}
		if c.SVG == "" {
			return days, nil
		}
		var drawing bytes.Buffer
		if err := report.Print(&drawing, days, report.SVG, draw.Style{}); err != nil {
			return nil, err
		}
		if c.SVG == standardOutput {
			_, err = p.stdout.Write(drawing.Bytes())
			return nil, err
		}
		if err := os.WriteFile(c.SVG, drawing.Bytes(), 0o644); err != nil { //nolint:gosec // figures, for everybody
			return nil, fmt.Errorf("--svg: %w", err)
		}
		return days, nil
	})
}

// target is the page or site whose days are shown; "" where nothing was counted yet.
func (c *reportDaysCmd) target(ctx context.Context, a asked) (string, error) {
	if c.Target != "" {
		return visit.ParseTarget(c.Target, a.app.KeepQuery)
	}
	return a.site(ctx, c.Site, "name a page, or one of them with --site")
}

// site is the one that is named, or else the only one of the app; "" where nothing was counted yet. Of
// several it says what to do.
func (a asked) site(ctx context.Context, named, do string) (string, error) {
	if named != "" {
		return visit.ParseSite(named)
	}
	const most = 10
	sites, err := a.Sites(ctx, a.app.Name, "", most+2)
	if err != nil {
		return "", err
	}
	sites = slices.DeleteFunc(sites, func(s report.Site) bool { return s.Site == visit.EventSite })
	switch len(sites) {
	case 0:
		return "", nil
	case 1:
		return sites[0].Site, nil
	}
	var names []string
	for _, site := range sites[:min(len(sites), most)] {
		names = append(names, site.Shown)
	}
	if len(sites) > most {
		names = append(names, "…")
	}
	return "", visit.Errorf(visit.Invalid, "uri", "app %s has several sites: %s: %s",
		a.app.Name, do, strings.Join(names, ", "))
}

func (c *reportPageCmd) run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, p, func(a asked, target string) (report.Answer, error) {
		return a.Overview(ctx, a.app.Name, target, dayOr(c.To, a.today))
	})
}

func (c *reportTagsCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Target, func(a asked) (report.Answer, error) {
		target, err := visit.ParseTarget(c.Target, a.app.KeepQuery)
		if err != nil {
			return nil, err
		}
		return a.rows(ctx, "tags", c.rangeFlags, report.Look{Target: target, Name: c.Name, N: c.N, Where: c.Where})
	})
}

// print reads a report of a site, and writes it.
func (c *siteFlags) print(ctx context.Context, p *program, name string, look report.Look) error {
	return c.withApp(ctx, p, c.Site, func(a asked) (_ report.Answer, err error) {
		if look.Target, err = a.site(ctx, c.Site, "name one of them"); err != nil {
			return nil, err
		}
		look.Where = c.Where
		return a.rows(ctx, name, c.rangeFlags, look)
	})
}

func (c *reportEventsCmd) run(ctx context.Context, p *program) error {
	return c.print(ctx, p, "events", report.Look{N: c.N})
}

func (c *reportGoalsCmd) run(ctx context.Context, p *program) error {
	return c.print(ctx, p, "goals", report.Look{Goal: c.Goal, Split: c.By})
}

func (c *reportFunnelCmd) run(ctx context.Context, p *program) error {
	return c.print(ctx, p, "funnel", report.Look{Steps: c.Step})
}

func (c *reportPanelCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Site, func(a asked) (_ report.Answer, err error) {
		kind, look := report.Named(c.Name), report.Look{Period: "day", Where: c.Where}
		switch takes := func(name string) bool { return slices.Contains(kind.Takes, name) }; {
		case len(c.Where) > 0 && !takes("where"):
			return nil, visit.Errorf(visit.Invalid, "where", "%s is told of all visitors alone", c.Name)
		case c.Site != "" && takes("uri"):
			look.Target, err = visit.ParseTarget(c.Site, a.app.KeepQuery)
		case c.Site != "" || !kind.OfApp:
			look.Target, err = a.site(ctx, c.Site, "name one of them")
		}
		if err != nil {
			return nil, err
		}
		return a.rows(ctx, c.Name, c.rangeFlags, look)
	})
}

func (c *reportVisitorsCmd) run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, p, func(a asked, target string) (report.Answer, error) {
		return a.rows(ctx, "visitors", allDays, report.Look{Target: target, Day: dayOr(c.Day, a.today), N: c.N})
	})
}

func (c *reportRankCmd) run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, p, func(a asked, target string) (report.Answer, error) {
		look := report.Look{Target: target}
		nobody := ""
		if rank, err := strconv.ParseInt(c.Visitor, 10, 64); err == nil {
			look.Rank, nobody = rank, fmt.Sprintf("number %d", rank)
		} else if look.Stored, err = a.admin.StoredAs(ctx, &a.app, c.Visitor); err != nil {
			if verr := (*visit.Error)(nil); errors.As(err, &verr) && (verr.Field == "ip" || verr.Field == "visitor") {
				return nil, visit.Errorf(visit.Invalid, "n|address", "%q is neither a number nor a visitor: %s", c.Visitor, verr.Text)
			}
			return nil, err
		} else {
			nobody = fmt.Sprintf("%q that is still kept", c.Visitor)
		}
		look.App = a.app.Name
		found, err := a.Ranked(ctx, look)
		if errors.Is(err, report.ErrElsewhere) {
			return nil, fmt.Errorf("visitor %s of %s came before, elsewhere, and is known by the number alone (footfall offset list)",
				nobody, visit.Shown(target))
		}
		if errors.Is(err, report.ErrNobody) {
			return nil, fmt.Errorf("%s has no visitor %s", visit.Shown(target), nobody)
		}
		return &report.Rows{Look: look, List: []report.Ranked{found}, One: true}, err
	})
}

// dayOr is the day that was checked to be one, or today if none is given.
func dayOr(text string, today int32) int32 {
	if day, err := visit.ParseDay(text, today); err == nil {
		return day
	}
	return today
}

// siteIn is the site of a page or site that somebody has typed; "" for what is neither, which is
// told where it is read.
func siteIn(typed string) string {
	target, _ := visit.ParseTarget(typed, nil)
	site, _, _ := strings.Cut(target, "/")
	return site
}
