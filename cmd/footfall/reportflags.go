package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"footfall/admin"
	"footfall/db"
	"footfall/report"
	"footfall/visit"
)

// reportFlags are the flags of every report.
type reportFlags struct {
	App   string `placeholder:"NAME"`
	JSON  bool   `name:"json" xor:"format"`
	CSV   bool   `name:"csv" xor:"format"`
	ASCII bool   `name:"ascii"`
}

func (c *reportFlags) format() report.Format {
	switch {
	case c.JSON:
		return report.JSON
	case c.CSV:
		return report.CSV
	}
	return report.Text
}

// rangeFlags select the days of a report.
type rangeFlags struct {
	From string `default:"30d" placeholder:"DAY"`
	To   string `placeholder:"DAY"`
}

// check returns those faults of --from and --to that can be found without the app's time zone. The app is not loaded yet.
func (f *rangeFlags) check(g globals) faults {
	all := g.checkDatabase()
	all.day("--to", f.To, visit.AllDays.To)
	_, err := visit.ParseRange(f.From, "", visit.AllDays.To)
	all.add(err)
	return all
}

// whereFlags contains the flag --where. It limits a report to visitors who meet the given conditions.
type whereFlags struct {
	Where []string `sep:"none" placeholder:"CONDITION"`
}

// mostFlag is the flag -n: the maximum number of rows in a report.
type mostFlag struct {
	N int `short:"n" default:"10" placeholder:"N"`
}

// targetFlags are the flags and the argument of reports on a page or a site.
type targetFlags struct {
	reportFlags
	Offsets bool   `default:"true" negatable:""`
	Target  string `arg:"" name:"uri"`
}

// siteFlags are the flags and the argument of reports on a site.
type siteFlags struct {
	reportFlags
	rangeFlags
	whereFlags
	Site string `arg:"" optional:"" name:"site"`
}

// most adds a fault to f if -n is out of range, and returns f. of is the word for the rows in the fault's text, like
// "pages".
func (m mostFlag) most(f faults, of string) faults {
	f.addIf(m.N < 1 || m.N > report.DeepestTop, "-n: %d %s cannot be listed: write a number from 1 to %d", m.N, of, report.DeepestTop)
	return f
}

// appReport contains the app of a report, and gives access to the database of the app.
type appReport struct {
	*report.Reader
	admin *admin.Admin
	app   db.App
	today int32 // the current day in the app's time zone
}

// withApp calls f with the app of a report. If f returns an answer, withApp prints it. about is the page or site that the
// user typed, or "". If --app is missing, withApp uses the app that counts this page or site.
func (c *reportFlags) withApp(ctx context.Context, p *program, about string, f func(a appReport) (report.Answer, error)) error {
	return p.withTables(ctx, db.Options{}, (*db.DB).CheckReports, func(d *db.DB) error { // CheckReports, because reports only read
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
		answer, err := f(appReport{report.NewReader(d), admin, app, visit.DayOf(d.Now(), zone)})
		if err != nil || answer == nil {
			return err
		}
		return report.Print(p.stdout, answer, c.format(), styleOf(p.stdout, c.ASCII, os.Getenv))
	})
}

// withTarget calls withApp for a report on one page or site. With --no-offsets, the Reader that f gets leaves out offsets,
// which are numbers from before Footfall.
func (c *targetFlags) withTarget(ctx context.Context, p *program, f func(a appReport, target string) (report.Answer, error)) error {
	return c.withApp(ctx, p, c.Target, func(a appReport) (report.Answer, error) {
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

// params returns the parameters of a report. pairs contains the name and the value of each parameter in turn. Parameters
// with an empty value are left out.
func params(pairs ...string) url.Values {
	given := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			given.Set(pair[0], pair[1])
		}
	}
	return given
}

// params returns the parameters of a report: the range, the conditions, and the ones in pairs.
func (f rangeFlags) params(conditions whereFlags, pairs ...string) url.Values {
	given := params(append(pairs, "from", f.From, "to", f.To)...)
	given["where"] = conditions.Where
	return given
}

func withOffsets(wanted bool) string {
	if wanted {
		return ""
	}
	return report.WithoutOffsets
}

// rows reads the report with this name. n is the maximum number of rows, for reports that have one; 0: all rows.
func (a appReport) rows(ctx context.Context, name string, n int, given url.Values) (report.Answer, error) {
	k := report.FindReport(name)
	for _, param := range slices.Sorted(maps.Keys(given)) {
		if len(given[param]) > 0 && !slices.Contains(k.Parameters, param) {
			return nil, visit.Errorf(visit.Invalid, strings.ReplaceAll(param, "_", "-"), "the report %s does not take it", name)
		}
	}
	given, err := k.ParseQuery(given.Encode())
	if err != nil {
		return nil, err
	}
	look, err := k.Look(ctx, report.Subject{
		App: a.app.Name, Today: a.today,
		Target:      func(text string) (string, error) { return visit.ParseTarget(text, a.app.KeepQuery) },
		DefaultSite: func(ctx context.Context) (string, error) { return a.site(ctx, "", "name one of them") },
	}, given)
	if verr, is := errors.AsType[*visit.Error](err); is { // flags have the names of the parameters, with dashes
		err = verr.Rename(func(field string) string { return strings.ReplaceAll(field, "_", "-") })
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains(k.Parameters, "limit") {
		look.N = n
	}
	if look.Counted {
		a.Reader = a.Counted()
	}
	return k.Read(ctx, a.Reader, look)
}

// site parses named, the site that the user typed. If named is empty, site returns the app's only site, or "" if the app
// has not counted any visits yet. If the app has several sites, site returns an error, whose text suggests the remedy do.
func (a appReport) site(ctx context.Context, named, do string) (string, error) {
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

// dayOr parses a day that the method check has already validated. For an empty text, it returns today.
func dayOr(text string, today int32) int32 {
	if day, err := visit.ParseDay(text, today); err == nil {
		return day
	}
	return today
}

// siteIn returns the site of a page or site that the user typed. For an invalid text, it returns "", because the report
// parses the text again and returns the error.
func siteIn(typed string) string {
	target, _ := visit.ParseTarget(typed, nil)
	site, _, _ := strings.Cut(target, "/")
	return site
}
