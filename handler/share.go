package handler

import (
	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/web"
)

// shared shows what a link shows: an app, or a site, to whoever has the link. No other site learns
// of it by a Referer, and it is told of nowhere: routes are named without it.
func (d *dashboard) shared(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderReferrerPolicy, "no-referrer")
	c.Set(homeOfPages, "") // of a link that shows nothing
	r := c.Request()
	peer, _ := d.proxies.client(r) // callers whose address is unknown share one limit
	reading, err := d.counter.AuthorizeLink(r.Context(), c.Param("token"), peer)
	if err != nil {
		return err
	}
	site, asked := reading.Site, siteNamed(c)
	if site != "" && asked != "" {
		return counter.ErrNoShare
	}
	in := reading.Sites()
	if site != "" {
		asked, in = site, []string{site} // of the app's other sites the link tells nothing
	}
	share := &web.Share{Base: d.root + "/share/" + c.Param("token"), Site: site, Embed: r.URL.Query().Has("embed")}
	c.Set(homeOfPages, share.Base)
	if share.Embed {
		c.Set(homeOfPages, share.Base+"?embed")
		h.Set(echo.HeaderContentSecurityPolicy, web.PolicyIn(in))
	}
	app := d.appOf(reading)
	app.Closed, app.Shared = false, share
	return d.showApp(c, reading, app, asked)
}
