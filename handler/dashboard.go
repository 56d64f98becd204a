package handler

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/account"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/handler/routing"
	"footfall/report"
	"footfall/visit"
	"footfall/web"
)

type dashboard struct {
	*reports
	cell  *routing.Cell // the cell whose apps this dashboard shows
	pages *web.Dashboard
}

// dashboardFor returns a dashboard for the apps of a cell.
func (r *reports) dashboardFor(cell *routing.Cell) *dashboard {
	return &dashboard{r, cell, web.NewDashboard(cell.Reports, r.panelWithin)}
}

// homeLinkKey is the context key for the address of the home link on an error page. If it is not set, the link leads to the
// dashboard's root. "" means that the page has no home link.
const homeLinkKey = "home"

func (d *dashboard) routes() []route {
	table := []route{
		{"/", getOnly, d.withReader(d.home)},
		{"/dash", getOnly, func(c echo.Context) error { return d.redirect(c, http.StatusFound, "./") }},
		{"/dash/", getOnly, func(c echo.Context) error { return d.redirect(c, http.StatusFound, "../") }},
		{"/dash/:app", getOnly, d.withErrorPage(d.look)},
		{"/dash/:app/:site", getOnly, d.withErrorPage(d.look)},
		{"/share/:token", getOnly, d.withErrorPage(d.shared)},
		{"/share/:token/:site", getOnly, d.withErrorPage(d.shared)},
		{"/embed", getOnly, d.withErrorPage(d.embed)},
		{"/proof", getOnly, d.withReader(d.proof)},
		{"/enter", getOrPost, d.withErrorPage(d.enter)},
		{"/leave", getOrPost, d.withReader(d.leave)},
		{"/start/:token", getOnly, d.withErrorPage(d.follow)},
		{"/begin", getOrPost, d.withErrorPage(d.begin)},
		{"/new", getOrPost, d.withReader(d.newSite)},
		{"/new/:app", getOrPost, d.withReader(d.waiting)},
	}
	if d.cell.Admin != nil {
		table = append(table, route{"/settings", getOrPost, d.withReader(d.settings)},
			route{"/settings/:app", getOrPost, d.withReader(d.settings)})
	}
	for path, p := range web.Files {
		table = append(table, route{path, getOnly, func(c echo.Context) error { return writePage(c, http.StatusOK, "no-cache", p) }})
	}
	return table
}

// withErrorPage returns a handler that shows the errors of handle as HTML pages.
func (d *dashboard) withErrorPage(handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := call(handle, c)
		if err == nil {
			return nil
		}
		status, told := d.statusOf(c, err)
		home := d.root + "/"
		if below, is := c.Get(homeLinkKey).(string); is {
			home = below
		}
		if c.Response().Committed {
			return err
		}
		return writePage(c, status, "no-store", web.Problem(d.pageContext(c), http.StatusText(status), told, home))
	}
}

// withReader returns a handler that passes the signed-in account, or nil, to handle. It shows errors as HTML pages.
func (d *dashboard) withReader(handle func(c echo.Context, reader *account.Account) error) echo.HandlerFunc {
	return d.withErrorPage(func(c echo.Context) error {
		reader, err := d.signedIn(c)
		if err != nil {
			return err
		}
		return handle(c, reader)
	})
}

// notFoundPage responds with an HTML page if a browser requests an unknown address, and returns true. Otherwise it returns false,
// and its caller writes a JSON error.
func (s *service) notFoundPage(c echo.Context, err error) bool {
	if !s.Dashboard || !showsPages(c.Request()) || !errors.Is(err, echo.ErrNotFound) {
		return false
	}
	_, _ = s.signedIn(c) // if signedIn fails, the page shows the reader as signed out
	p := web.Problem(s.pageContext(c), http.StatusText(http.StatusNotFound),
		visit.Errorf(visit.NotFound, "", "there is nothing at this address"), s.root+"/")
	return writePage(c, http.StatusNotFound, "no-store", p) == nil
}

func (d *dashboard) home(c echo.Context, reader *account.Account) error {
	ctx := c.Request().Context()
	here, away := d.Cells.All()
	var apps []web.App
	of := map[*routing.Cell][]string{} // names of the apps to show, by cell
	in := d
	for _, cell := range here {
		readings, err := cell.Counter.AuthorizeReadings(ctx, reader.MayLook)
		if err != nil && cell.Name == "" {
			return err
		} else if err != nil {
			away = append(away, cell.Name) // the cell became unavailable after All returned it
		}
		for _, r := range readings {
			if d.Cells.Has(cell, r.App) {
				apps = append(apps, d.appOf(c, r, reader))
				of[cell], in = append(of[cell], r.App), d.dashboardFor(cell)
			}
		}
	}
	only := ""
	if err := d.readInPlace(ctx, placesFor(c, in.cell), func(ctx context.Context) (err error) {
		if len(away) == 0 {
			only, err = in.pages.Only(ctx, apps)
		}
		return err
	}); err != nil {
		return err
	}
	switch {
	case only != "":
		return d.redirect(c, http.StatusFound, only)
	case len(apps) == 1 && len(away) == 0 && reader.MayLook(apps[0].Name) && apps[0].Name != app.Demo:
		return d.redirect(c, http.StatusFound, d.root+"/new/"+apps[0].Name)
	}
	today := make([]report.Panel[report.AppToday], len(here))
	failed, err := d.forEachCell(ctx, here, func(ctx context.Context, i int, cell *routing.Cell) error {
		if of[cell] == nil {
			return nil
		}
		return d.readInPlace(ctx, placesFor(c, cell), func(ctx context.Context) (err error) {
			today[i], err = cell.Reports.AppsToday(ctx, of[cell])
			return err
		})
	})
	if err != nil {
		return err
	}
	var rows report.Panel[report.AppToday]
	for _, some := range today {
		rows.SQL, rows.Rows = cmp.Or(some.SQL, rows.SQL), append(rows.Rows, some.Rows...)
	}
	return writePage(c, http.StatusOK, "private, no-cache",
		web.Home(d.pageContext(c), apps, rows, append(away, failed...), d.origin(c.Request())))
}

// proof handles /proof, which shows when the numbers were last verified. If there are several databases, it shows the time of the
// database that was verified least recently.
func (d *dashboard) proof(c echo.Context, _ *account.Account) error {
	here, away := d.Cells.All()
	if len(here)+len(away) > 1 {
		here = slices.DeleteFunc(here, func(cell *routing.Cell) bool {
			held := cell.Counter.CachedRegister()
			return held != nil && len(held.Apps) == 0
		})
	}
	proved := make([]time.Time, len(here))
	failed, err := d.forEachCell(c.Request().Context(), here, func(ctx context.Context, i int, cell *routing.Cell) error {
		return d.readInPlace(ctx, placesFor(c, cell), func(ctx context.Context) (err error) {
			proved[i], err = cell.Reports.LastVerified(ctx)
			return err
		})
	})
	if err != nil {
		return err
	}
	var first time.Time // stays zero, which means unknown, if a cell is unreachable
	if len(away)+len(failed) == 0 && len(here) > 0 {
		first = slices.MinFunc(proved, time.Time.Compare)
	}
	return writePage(c, http.StatusOK, "private, no-cache", web.Proof(d.pageContext(c), first))
}

func (d *dashboard) appOf(c echo.Context, r *counter.Reading, reader *account.Account) web.App {
	sites := r.Sites()
	hosts := slices.DeleteFunc(slices.Clone(sites), func(site string) bool { return strings.Contains(site, "*") })
	place := d.pageContext(c)
	if place.Reader = readerOf(reader); reader.MayChange(r.App) {
		place.Reader.Settings += "/" + r.App
	}
	return web.App{
		Place: place, Name: r.App, Today: r.Today, Hour: r.Hour, Zone: r.Zone, Closed: !r.Open, Names: r.Names,
		CountriesBy: d.CountriesBy,
		Goals:       r.Goals(), Public: r.Public(), Several: len(sites) != 1 || len(hosts) != 1, Site: append(hosts, "")[0],
	}
}

func (d *dashboard) look(c echo.Context) error {
	in, reading, app, err := d.mayLook(c, c.Param("app"))
	if reading == nil {
		return err
	}
	return in.showApp(c, reading, app, siteNamed(c))
}

func (d *dashboard) embed(c echo.Context) error {
	in, reading, app, err := d.mayLook(c, c.QueryParam("app"))
	if reading == nil {
		return err
	}
	if err := reading.CheckRate(); err != nil {
		return err
	}
	return in.show(c, func(ctx context.Context) (web.Page, error) {
		return in.pages.Embed(ctx, app, d.origin(c.Request()))
	})
}

// mayLook returns an app that the reader may see, and the dashboard of the app's cell. If the reader may not see the app, mayLook
// calls refuse, and returns a nil Reading. It does the same for an app that does not exist, so that the response does not reveal
// which apps exist.
func (d *dashboard) mayLook(c echo.Context, name string) (in *dashboard, of *counter.Reading, app web.App, err error) {
	r := c.Request()
	reader, err := d.signedIn(c)
	if err != nil {
		return nil, nil, app, err
	}
	cell, err := d.Cells.Of(name)
	if err == nil {
		of, err = cell.Counter.AuthorizeReading(r.Context(), counter.Request{App: name, MayLook: reader.MayLook, Peer: d.peer(r)})
	}
	if refused, ok := errors.AsType[*visit.Error](err); ok && refused.Kind != visit.Unavailable {
		return nil, nil, app, d.refuse(c, reader)
	}
	if err != nil {
		return nil, nil, app, err
	}
	return d.dashboardFor(cell), of, d.appOf(c, of, reader), nil
}

// refuse shows the sign-in page to a reader who is not signed in. For a signed-in reader, it returns an error.
func (d *dashboard) refuse(c echo.Context, reader *account.Account) error {
	if reader == nil {
		return d.askToSignIn(c, http.StatusForbidden, c.Request().URL.RequestURI(), "", nil)
	}
	return visit.Errorf(visit.Forbidden, "", "the account %s may not see this page, or the page does not exist: ask an owner of this "+
		"service for access", reader.Name)
}

func siteNamed(c echo.Context) string { return pathParam(c, "site") }

// pathParam returns the unescaped value of a parameter in the URL's path.
func pathParam(c echo.Context, part string) string {
	name, err := url.PathUnescape(c.Param(part))
	if err != nil || c.Request().URL.RawPath == "" {
		return c.Param(part) // the parameter is already unescaped if RawPath is empty
	}
	return name
}

func (d *dashboard) showApp(c echo.Context, reading *counter.Reading, app web.App, site string) error {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return visit.Errorf(visit.Invalid, "address", "it has a %% that is not followed by two hexadecimal digits, or a semicolon")
	}
	if err := reading.CheckRate(); err != nil {
		return err
	}
	if query.Get("panel") != "" {
		return d.showFile(c, app, site, query)
	}
	return d.show(c, func(ctx context.Context) (web.Page, error) {
		if site == "" {
			return d.pages.App(ctx, app, query)
		}
		return d.pages.Target(ctx, app, site, query)
	})
}

// show waits until it may read reports (see readInPlace), and then makes and writes a page.
func (d *dashboard) show(c echo.Context, read func(context.Context) (web.Page, error)) error {
	var p web.Page
	err := d.readInPlace(c.Request().Context(), placesFor(c, d.cell), func(ctx context.Context) (err error) {
		p, err = read(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return writePage(c, http.StatusOK, "private, no-cache", p)
}

// showFile sends a panel's rows as a file to a reader with a shared link. It redirects other readers to the API, which returns
// the same rows as a report.
func (d *dashboard) showFile(c echo.Context, app web.App, site string, query url.Values) error {
	var kind report.Report
	var look report.Look
	var link string
	if err := d.readInPlace(c.Request().Context(), placesFor(c, d.cell), func(ctx context.Context) (err error) {
		kind, look, link, err = d.pages.PanelReport(ctx, app, site, query)
		return err
	}); err != nil {
		return err
	}
	switch format := query.Get("format"); {
	case link == "":
		return visit.Errorf(visit.Invalid, "format", "%.64q is not a format: use csv or json", format)
	case app.Shared == nil:
		return c.Redirect(http.StatusFound, link)
	default:
		return d.serve(c, kind, d.cell, d.cell.Reports, look, format)
	}
}

// origin returns the configured public URL. Without one, it returns the scheme and host of the request, as scheme://host.
func (s *service) origin(r *http.Request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	if r.TLS != nil || s.Proxies.overTLS(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func describePage(c echo.Context, cache string, p web.Page) {
	h := c.Response().Header()
	for header, usual := range map[string]string{echo.HeaderContentSecurityPolicy: web.Policy, echo.HeaderReferrerPolicy: "same-origin"} {
		if h.Get(header) == "" {
			h.Set(header, usual)
		}
	}
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	h.Set(echo.HeaderCacheControl, cache)
	h.Set(echo.HeaderVary, "Cookie, Accept-Encoding")
	if p.Language != "" {
		h.Set(echo.HeaderVary, "Cookie, Accept-Encoding, Accept-Language")
		h.Set("Content-Language", p.Language)
	}
	h.Set(echo.HeaderContentType, p.Type)
}

// writePage writes a page. Unless the Cache-Control header (cache) is no-store, browsers may keep and revalidate the page.
func writePage(c echo.Context, status int, cache string, p web.Page) error {
	describePage(c, cache, p)
	if cache != "no-store" {
		return send(c, p.Type, cache, p.Body, true)
	}
	return write(c, status, p.Type, p.Body)
}

// shared shows an app or a site to anyone with the shared link. The page disables the Referer header, which would reveal the link
// to other sites. Logs and metrics contain the route, and not the link's secret token.
func (d *dashboard) shared(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderReferrerPolicy, "no-referrer")
	c.Set(homeLinkKey, "") // if the token is wrong, the error page has no home link
	r := c.Request()
	cell, err := d.Cells.OfLink(c.Param("token"))
	if err != nil {
		return err
	}
	reading, err := cell.Counter.AuthorizeLink(r.Context(), c.Param("token"), d.peer(r))
	if err != nil {
		return err
	}
	site, asked := reading.Site, siteNamed(c)
	if site != "" && asked != "" {
		return counter.ErrNoShare
	}
	in := reading.Sites()
	if site != "" {
		asked, in = site, []string{site} // a shared link to one site does not show the app's other sites
	}
	share := &web.Share{Base: d.root + "/share/" + c.Param("token"), Site: site, Embed: r.URL.Query().Has("embed")}
	c.Set(homeLinkKey, share.Base)
	if share.Embed {
		c.Set(homeLinkKey, share.Base+"?embed")
		h.Set(echo.HeaderContentSecurityPolicy, web.PolicyIn(in))
	}
	c.Set(trustedKey, true)
	app := d.appOf(c, reading, nil)
	app.Closed, app.Shared = false, share
	return d.dashboardFor(cell).showApp(c, reading, app, asked)
}
