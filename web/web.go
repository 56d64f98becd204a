// Package web makes the dashboard's pages from reports. Package handler handles the requests and checks who may see a page.
//
// The address of a page contains the page's whole state (view.go), so that every view has a link and works without scripts. Every
// page is a template. There is one style sheet (style.css) and one script (dash.js). Package report/draw draws the charts.
package web

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"footfall/report"
	"footfall/visit"
	"footfall/web/words"
)

var (
	//go:embed templates
	files embed.FS
	//go:embed style.css
	style []byte
	//go:embed icon.svg
	icon []byte
	//go:embed dash.js
	script []byte
)

// Policy is the Content-Security-Policy of pages that other sites may not show in frames. With this policy, browsers load files
// only from the service itself, and ignore inline scripts and styles.
const Policy = rules + "'none'"

const rules = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors "

// PolicyIn returns the Content-Security-Policy of a page that the given sites may show in frames. A site *.host means all
// subdomains of host.
func PolicyIn(sites []string) string {
	named := slices.DeleteFunc(slices.Clone(sites), func(site string) bool { return !namesSource.MatchString(site) })
	if len(named) == 0 {
		return Policy
	}
	return rules + strings.Join(named, " ")
}

// namesSource matches the sites that PolicyIn can write into a policy. It excludes other host names, because they may contain
// characters that end a rule of the policy.
var namesSource = regexp.MustCompile(`^(\*\.)?[a-z0-9._-]+(:[0-9]+)?$`)

// Page is a page, or a file that pages use.
type Page struct {
	Type     string // Content-Type
	Body     []byte
	Language string // language of the page; "" for files
}

// Files contains robots.txt and the files that pages load. The keys are their paths.
var Files = map[string]Page{
	"/dash/style.css": {Type: "text/css; charset=utf-8", Body: style},
	"/dash/dash.js":   {Type: "text/javascript; charset=utf-8", Body: script}, // optional: pages also work without scripts
	"/dash/icon.svg":  {Type: "image/svg+xml", Body: icon},
	"/favicon.ico":    {Type: "image/svg+xml", Body: icon},
	"/robots.txt":     {Type: "text/plain; charset=utf-8", Body: []byte("User-agent: *\nDisallow: /\n")},
}

// Dashboard makes pages from reports.
type Dashboard struct {
	reader       *report.Reader
	panelTimeout time.Duration // time limit for each panel that reads rows of visits
}

// NewDashboard returns a Dashboard that reads from r. If reading a panel takes longer than within, the page shows a note instead
// of the panel's rows.
func NewDashboard(r *report.Reader, within time.Duration) *Dashboard { return &Dashboard{r, within} }

// pageNames are the names of the page templates, without .html.
var pageNames = []string{
	"home", "app", "target", "who", "reached", "embed", "enter", "leave", "begin", "new", "waiting", "settings", "proof", "problem",
}

// functions returns the functions that templates call. The functions return texts and numbers in the language l.
func functions(l *words.Language) template.FuncMap {
	return template.FuncMap{
		"t": l.Say, "th": l.HTML, "of": l.Translate, "gap": func() string { return l.Say("sentences.gap") },
		"day": l.Day, "dated": l.Dated, "date": visit.DayText, "bar": bar, "mix": mix, "dict": dict,
		"number":     func(n int64) string { return number(l, n) },
		"count":      func(things string, n int64) string { return l.Say("counts."+things, "count", n) },
		"share":      func(part, whole int64) string { return share(l, part, whole) },
		"spanOfDays": func(r report.Returned) string { return spanOfDays(l, r) },
		"sum":        func(a, b int64) int64 { return a + b },
		"sum1":       func(i int) int { return i + 1 },
		"bold":       func(n int64) words.Bold { return words.Bold(n) },
		"bdi":        isolated,
		"region":     func(name string) string { return regionOf(l, name) },
		"sentence":   func() string { return siteSentence(l) },
		"views":      func() string { return viewsSentence(l) },
	}
}

// isolated wraps a name from a visit or a user in <bdi>, so that a name written from right to left does not reorder the text
// around it.
func isolated(name string) template.HTML {
	return template.HTML("<bdi>" + template.HTMLEscapeString(name) + "</bdi>") //nolint:gosec // escaped
}

type frame struct {
	Place
	Title  string
	Crumbs []crumb
	Home   string // link to the start page; "" if the page has no such link
	Live   bool   // new visits change the page, so dash.js reloads it
	Embed  bool   // the page is shown in a frame on another site

	entering bool // this is the sign-in page
}

// SignIn reports whether the page links to the sign-in page.
func (f frame) SignIn() bool {
	return f.Reader.Name == "" && f.Home == f.Root+"/" && !f.entering
}

type crumb struct{ Name, Stored, Link string }

// render fills the template with this name. It panics if the template does not fit the data, so that tests find such a template.
func render(name string, data interface{ place() Place }) Page {
	var out bytes.Buffer
	p := data.place()
	if err := loadTemplates(p.words())[name].Execute(&out, data); err != nil {
		panic(err)
	}
	return Page{Type: "text/html; charset=utf-8", Body: p.keepLanguage(out.Bytes()), Language: p.words().Tag}
}

// loadTemplates returns the page templates in a language. It parses them when the first page is made, so that commands without
// pages start faster. It panics if a template does not parse, so that tests find such a template.
func loadTemplates(l *words.Language) map[string]*template.Template {
	if made, is := translated.Load(l); is {
		return made.(map[string]*template.Template)
	}
	pages := map[string]*template.Template{}
	for _, name := range pageNames {
		page := template.New("layout.html").Funcs(functions(l))
		for _, file := range []string{"layout", "parts", "list", name} {
			text, err := files.ReadFile("templates/" + file + ".html")
			if err != nil {
				panic(err)
			}
			part := page
			if file != "layout" {
				part = page.New(file + ".html")
			}
			template.Must(part.Parse(fixedText.ReplaceAllStringFunc(string(text), func(call string) string {
				if key := fixedText.FindStringSubmatch(call); key[1] == "t" {
					return template.HTMLEscapeString(l.Say(key[2]))
				}
				return string(l.HTML(fixedText.FindStringSubmatch(call)[2]))
			})))
		}
		pages[name] = page
	}
	translated.Store(l, pages)
	return pages
}

// fixedText matches the calls in a template that insert a text without placeholders. loadTemplates replaces these calls with the
// texts before it parses the template.
var fixedText = regexp.MustCompile(`\{\{(th?) "([a-z0-9.-]+)"\}\}`)

var translated sync.Map // results of loadTemplates, by language

type plainPage struct {
	frame
	Problem string
}

type proofPage struct {
	frame
	Proved *time.Time // when all numbers were last verified; nil if unknown
	Last   template.HTML
}

// Proof makes the page about verifying the numbers, which recomputes all of them. at is the time of the last verification, or
// zero if unknown.
func Proof(p Place, at time.Time) Page {
	page := proofPage{frame: frame{Place: p, Title: p.say("layout.recomputed"), Home: p.Root + "/"}}
	if !at.IsZero() {
		text := p.say("days.moment", "day", p.words().LongDay(visit.DayOf(at, time.UTC)), "time", at.UTC().Format("15:04"))
		page.Proved = &at
		moment := at.UTC().Format("2006-01-02T15:04:05Z")
		page.Last = template.HTML(`<time datetime="` + moment + `">` + text + `</time>`) //nolint:gosec // numbers only
	}
	return render("proof", page)
}

// Problem makes the page that shows an error. home is the link to the start page; if home is "", the page has no such link.
func Problem(p Place, title string, err *visit.Error, home string) Page {
	p.At = nil // no links to other languages, because they would repeat the failed request
	f := frame{Place: p, Title: p.words().Translate(title), Home: home}
	return render("problem", plainPage{frame: f, Problem: p.errorText(err)})
}

// PanelReport returns the report that reads a panel's rows (kind), and its parameters (look). The caller uses them to write the
// rows to a file. q names the panel and the file format. link is the address of the file: in the API, or below a shared link.
// link is "" if the format is unknown.
func (d *Dashboard) PanelReport(
	ctx context.Context, app App, site string, q url.Values,
) (kind report.Report, look report.Look, link string, err error) {
	v, err := d.readView(ctx, app, site, q)
	if err != nil {
		return kind, look, "", err
	}
	if err = d.readFiltered(ctx, &v); err == nil && site == "" {
		_, err = d.readSites(ctx, &v)
	}
	if err != nil {
		return kind, look, "", err
	}
	if fault := v.outside(); fault != "" {
		return kind, look, "", visit.Errorf(visit.Invalid, "range", "%s", fault)
	}
	name, look := v.panelReport(q.Get("panel"))
	if name == "" {
		return kind, look, "", visit.Errorf(visit.Invalid, "panel", "%.64q is not a panel of this page", q.Get("panel"))
	}
	from := v.source(q.Get("panel"), "")
	return report.FindReport(name), look, map[string]string{"csv": from.CSV, "json": from.JSON}[q.Get("format")], nil
}

// readView returns the state of the page whose address has this site and query. For a site, it also reads the first counted day
// and the imported numbers.
func (d *Dashboard) readView(ctx context.Context, app App, site string, q url.Values) (v view, err error) {
	if site == "" {
		if err := d.readTags(ctx, &app); err != nil {
			return v, err
		}
		return newView(app, "", q)
	}
	if site, err = visit.ParseSite(site); err != nil {
		return v, err
	}
	if err := d.readTags(ctx, &app); err != nil {
		return v, err
	}
	if v, err = newView(app, site, q); err != nil {
		return v, err
	}
	if v.since, err = d.reader.FirstDay(ctx, app.Name, site); err != nil {
		return v, err
	}
	if v.countedSince = v.since; v.countedSince > 0 && v.days.From <= v.countedSince && v.countedSince <= v.days.To {
		if v.minute, err = d.reader.FirstMinute(ctx, app.Name, site, v.countedSince); err != nil {
			return v, err
		}
	}
	err = d.readImported(ctx, &v)
	return v, err
}

// Target makes the page of a site, or of a page of the site. With some parameters in q, it makes another page about the site: its
// visitors, a goal or a funnel.
func (d *Dashboard) Target(ctx context.Context, app App, site string, q url.Values) (Page, error) {
	v, err := d.readView(ctx, app, site, q)
	if err != nil {
		return Page{}, err
	}
	switch {
	case v.showsVisitors:
		return d.visitorPage(ctx, v)
	case v.goal != "" || v.funnel:
		return d.makeReachedPage(ctx, v)
	}
	if err := d.readFiltered(ctx, &v, v.partsOf()...); err != nil {
		return Page{}, err
	}
	page, err := d.targetPage(ctx, v)
	if err != nil {
		return Page{}, err
	}
	page.arrange()
	return render("target", page), nil
}

// App makes the page of an app with all of its sites.
func (d *Dashboard) App(ctx context.Context, app App, q url.Values) (Page, error) {
	v, err := d.readView(ctx, app, "", q)
	if err != nil {
		return Page{}, err
	}
	page, err := d.appPage(ctx, v)
	if err != nil {
		return Page{}, err
	}
	if page.One != nil {
		page.One.arrange()
	}
	return render("app", page), nil
}
