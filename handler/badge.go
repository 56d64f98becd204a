package handler

import (
	"net/url"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/embed"
)

// errorHeader is the response header with the reason why a badge shows no number.
const errorHeader = "Footfall-Error"

// badgePolicy disables scripts in a badge that is opened as a page.
const badgePolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// badge responds with an image, or with JSON from which shields.io makes an image. After an error, the image shows no number, and
// errorHeader contains the reason. The status is still 200, because the image proxies of sites like GitHub cache error responses
// for a long time.
func (r *reports) badge(c echo.Context) error {
	request := c.Request()
	kind := path.Ext(c.Param("file"))
	if kind != ".svg" && kind != ".json" {
		return echo.ErrNotFound
	}
	query, _ := url.ParseQuery(request.URL.RawQuery) // an error is ignored: query then lacks the parameters that cannot be parsed
	b, parseErr := embed.ReadBadge(query)
	says := readBrowserHeaders(request)
	ask := counter.Request{
		App: strings.TrimSuffix(c.Param("file"), kind), URI: b.URI, Event: b.Event, OnlyCounted: b.WithoutOffsets, ParseErr: parseErr,
		Agent: says.Agent, DoNotTrack: says.DoNotTrack, Prefetch: says.Prefetch,
	}
	ask.Peer = r.peer(request)
	number, err := r.badgeNumber(c, ask, b)
	cache := "max-age=0, must-revalidate"
	if b.Count || err != nil {
		cache = "no-store"
	}
	h := c.Response().Header()
	if err != nil {
		_, told := r.statusOf(c, err)
		h.Set(errorHeader, inASCII(told.Message()))
	}
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set(echo.HeaderContentSecurityPolicy, badgePolicy)
	if kind == ".json" {
		return send(c, "application/json", cache, b.JSON(number), false)
	}
	return send(c, "image/svg+xml", cache, b.SVG(number), false)
}

// badgeNumber returns the number that the badge shows. If the badge counts visits (b.Count), badgeNumber first counts a visit.
func (r *reports) badgeNumber(c echo.Context, ask counter.Request, b embed.Badge) (*int64, error) {
	cell, err := r.Cells.Of(ask.App)
	if err != nil {
		return nil, err
	}
	shown, err := cell.Counter.Badge(c.Request().Context(), ask, b.Count)
	if err != nil {
		return nil, err
	}
	if shown.Skipped != "" {
		c.Response().Header().Set(skippedHeader, string(shown.Skipped))
	}
	n := b.NumberIn(shown)
	return &n, nil
}

// inASCII replaces characters that a header cannot contain.
func inASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}
