package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"footfall/admin"
	"footfall/db"
	"footfall/report"
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

// targetFlags are those of reports on a page or a site.
type targetFlags struct {
	reportFlags
	Offsets bool   `default:"true" negatable:""`
	Target  string `arg:"" name:"uri"`
}

// siteFlags are those of reports on a site.
type siteFlags struct {
	reportFlags
	rangeFlags
	whereFlags
	Site string `arg:"" optional:"" name:"site"`
}

// most checks how many rows a report has at most.
func (m mostFlag) most(f faults, of string) faults {
	f.when(m.N < 1 || m.N > report.DeepestTop, "-n: %d %s: write a number from 1 to %d", m.N, of, report.DeepestTop)
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
