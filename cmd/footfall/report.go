package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
)

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
	Name string `arg:"" name:"panel" enum:"numbers,chart,totals,returns,first-visits,one-page,here,sites,sites-between,pages,tag-pages,uniques,who-came"`
	reportFlags
	rangeFlags
	whereFlags
	Targets      []string `arg:"" optional:"" name:"site"`
	Prefix       string   `placeholder:"URI"`
	Order        string   `placeholder:"NUMBER"`
	Find         string   `placeholder:"TEXT"`
	Tag          string   `name:"name" placeholder:"NAME"`
	Value        string   `placeholder:"VALUE"`
	Period       string   `placeholder:"day|week|month"`
	DaysBefore   string   `placeholder:"N"`
	ComparedFrom string   `placeholder:"DAY"`
	ComparedTo   string   `placeholder:"DAY"`
	Offsets      bool     `default:"true" negatable:""`
	mostFlag
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

func (c *reportTopCmd) check(g globals) faults    { return c.most(c.rangeFlags.check(g), "pages") }
func (c *reportTagsCmd) check(g globals) faults   { return c.most(c.rangeFlags.check(g), "values") }
func (c *reportEventsCmd) check(g globals) faults { return c.most(c.rangeFlags.check(g), "events") }
func (c *reportPanelCmd) check(g globals) faults  { return c.most(c.rangeFlags.check(g), "rows") }

func (c *reportDaysCmd) check(g globals) faults {
	f := c.rangeFlags.check(g)
	f.addIf(c.Target != "" && c.Site != "", "--site: a page is named, too: leave out one of them")
	f.addIf(c.SVG == standardOutput && c.format() != report.Text,
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
	f.addIf(c.N < 0, "-n: %d is less than 0: write how many visitors to list, or 0 for all", c.N)
	return f
}

func (c *reportTopCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Site, func(a appReport) (_ report.Answer, err error) {
		return a.rows(ctx, "pages", c.N, c.params(c.whereFlags, "site", c.Site, "order", c.By))
	})
}

func (c *reportDaysCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, cmp.Or(c.Site, c.Target), func(a appReport) (report.Answer, error) {
		in, err := visit.ParseRange(c.From, c.To, a.today)
		if err != nil {
			return nil, err
		}
		if in.From > a.today {
			return nil, visit.Errorf(visit.Invalid, "from", "%s is in the future: today is %s",
				visit.DayText(in.From), visit.DayText(a.today))
		}
		if in.To != visit.AllDays.To { // without --to, DayByDay ends the range on the last counted day
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
		if err := os.WriteFile(c.SVG, drawing.Bytes(), 0o644); err != nil { //nolint:gosec // numbers that any user may read
			return nil, fmt.Errorf("--svg: %w", err)
		}
		return days, nil
	})
}

// target returns the page or site that the flags name. If they name none, it returns the app's only site, or "" if the app
// has not counted any visits yet.
func (c *reportDaysCmd) target(ctx context.Context, a appReport) (string, error) {
	if c.Target != "" {
		return visit.ParseTarget(c.Target, a.app.KeepQuery)
	}
	return a.site(ctx, c.Site, "name a page, or one of them with --site")
}

func (c *reportPageCmd) run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, p, func(a appReport, target string) (report.Answer, error) {
		return a.Overview(ctx, a.app.Name, target, dayOr(c.To, a.today))
	})
}

func (c *reportTagsCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Target, func(a appReport) (report.Answer, error) {
		return a.rows(ctx, "tags", c.N, c.params(c.whereFlags, "uri", c.Target, "name", c.Name))
	})
}

func (c *reportEventsCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Site, func(a appReport) (report.Answer, error) {
		site, err := a.site(ctx, c.Site, "name one of them")
		if err != nil {
			return nil, err
		}
		return a.rows(ctx, "events", c.N, c.params(c.whereFlags, "site", site))
	})
}

func (c *reportGoalsCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Site, func(a appReport) (report.Answer, error) {
		return a.rows(ctx, "goals", 0, c.params(c.whereFlags, "site", c.Site, "goal", c.Goal, "by", c.By))
	})
}

func (c *reportFunnelCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Site, func(a appReport) (report.Answer, error) {
		given := c.params(c.whereFlags, "site", c.Site)
		given["step"] = c.Step
		return a.rows(ctx, "funnel", 0, given)
	})
}

func (c *reportPanelCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, strings.Join(c.Targets[:min(1, len(c.Targets))], ""), func(a appReport) (report.Answer, error) {
		takes := report.FindReport(c.Name).Parameters
		given := params("prefix", c.Prefix, "order", c.Order, "find", c.Find, "name", c.Tag, "value", c.Value, "period", c.Period,
			"days_before", c.DaysBefore, "compared_from", c.ComparedFrom, "compared_to", c.ComparedTo, "offsets", withOffsets(c.Offsets))
		if slices.Contains(takes, "from") { // without from, the report covers all time, so the default of --from must not be used
			maps.Copy(given, c.params(c.whereFlags))
		} else {
			given["where"] = c.Where
		}
		named := "site"
		if slices.Contains(takes, "uri") {
			named = "uri" // the uri may also be a site
		}
		given[named] = c.Targets
		return a.rows(ctx, c.Name, c.N, given)
	})
}

func (c *reportVisitorsCmd) run(ctx context.Context, p *program) error {
	return c.withApp(ctx, p, c.Target, func(a appReport) (report.Answer, error) {
		return a.rows(ctx, "visitors", c.N, params("uri", c.Target, "day", c.Day, "offsets", withOffsets(c.Offsets)))
	})
}

func (c *reportRankCmd) run(ctx context.Context, p *program) error {
	return c.withTarget(ctx, p, func(a appReport, target string) (report.Answer, error) {
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
		if errors.Is(err, report.ErrVisitorElsewhere) {
			return nil, fmt.Errorf("visitor %s of %s was counted elsewhere, so only the number is recorded (footfall offset list)",
				nobody, visit.Shown(target))
		}
		if errors.Is(err, report.ErrNoVisitor) {
			return nil, fmt.Errorf("%s has no visitor %s", visit.Shown(target), nobody)
		}
		return &report.Rows{Look: look, List: []report.Ranked{found}, One: true}, err
	})
}
