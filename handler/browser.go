package handler

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/visit/tag"
)

// bearer is the key that a request shows. Other schemes are for others: a proxy in front of the
// service may ask for a password.
func bearer(h http.Header) string {
	const scheme = "bearer "
	value := h.Get(echo.HeaderAuthorization)
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return ""
	}
	if key := strings.TrimSpace(value[len(scheme):]); key != "" {
		return key
	}
	return value // a scheme without a key, as a script sends whose variable is not set: it is refused as a bad key
}

// hiddenOrigin is that of a page that hides its site. No site has it.
const hiddenOrigin = "null"

// origin is that of the page that asks; "" if no page does, or if the browser does not tell. A page
// can ask without naming its origin, with an image, a frame or a request whose answer it does not
// get. Then the browser tells where the page is, unless the page hides it, and over TLS whether the
// page is of Footfall's own origin, whatever the page hides.
func origin(h http.Header) string {
	if value := h.Get(echo.HeaderOrigin); value != "" {
		return value
	}
	if referer := h.Get("Referer"); referer != "" {
		return originOf(referer)
	}
	switch h.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return hiddenOrigin
	}
	return ""
}

func originOf(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return hiddenOrigin
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// ofBrowser is what a browser says with a visit.
func ofBrowser(r *http.Request) counter.Request {
	h := r.Header
	return counter.Request{
		Key: bearer(h), Origin: origin(h), Agent: h.Get("User-Agent"), Languages: h.Get("Accept-Language"), Hints: hints(h),
		Prefetch: prefetches(r), DoNotTrack: optsOut(h),
	}
}

// optsOut reports whether a browser asks not to be tracked: by Do Not Track, or Global Privacy Control.
func optsOut(h http.Header) bool { return h.Get("Dnt") == "1" || h.Get("Sec-Gpc") == "1" }

// hints are what a browser says of itself beside its User-Agent.
func hints(h http.Header) tag.Hints {
	return tag.Hints{Brands: h.Get("Sec-Ch-Ua"), Mobile: h.Get("Sec-Ch-Ua-Mobile"), Platform: h.Get("Sec-Ch-Ua-Platform")}
}

// scriptOf is the page for which a browser asks for a script; "": it does not say. isScript: it may be
// one that is asked for.
func scriptOf(h http.Header) (page string, isScript bool) {
	dest := h.Get("Sec-Fetch-Dest")
	return h.Get("Referer"), dest == "" || dest == "script"
}

// showsPages reports whether somebody asks who looks at pages, and no program.
func showsPages(r *http.Request) bool {
	return slices.Contains(getOnly, r.Method) && strings.Contains(r.Header.Get(echo.HeaderAccept), "text/html")
}

// prefetches reports whether a request is for somebody who may ask later, or asks what there is.
func prefetches(r *http.Request) bool {
	if r.Method == http.MethodHead {
		return true
	}
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} { // the standard's name, and those in use before it
		value := strings.ToLower(r.Header.Get(name))
		if strings.Contains(value, "prefetch") || strings.Contains(value, "prerender") || strings.Contains(value, "preview") {
			return true
		}
	}
	return false
}

var (
	originVaries = []string{echo.HeaderOrigin}
	exposed      = []string{"Retry-After, " + skippedHeader + ", " + repeatedHeader}
)

// letRead lets the page that asks read the answer (CORS), if the app counts its site; where no app is
// named, if any app does. The browser sends neither cookies nor passwords with such a request.
func (s *service) letRead(c echo.Context, app string) (allowed bool) {
	h := c.Response().Header()
	h[echo.HeaderVary] = originVaries
	origin := c.Request().Header.Get(echo.HeaderOrigin)
	if origin == "" || !s.Cells.AllowsOrigin(c.Request().Context(), app, origin) {
		return false
	}
	h[echo.HeaderAccessControlAllowOrigin] = []string{origin}
	h[echo.HeaderAccessControlExposeHeaders] = exposed
	return true
}

// preflight answers a browser that asks whether a page may send a request. The app may be named in
// a body that is yet to come; the request itself is checked again.
func (s *service) preflight(c echo.Context) error {
	f, _ := readQuery(c.Request().URL.RawQuery)
	return s.allow(c, f.app.value, pageMethods, echo.HeaderContentType)
}

// pageMethods are those with which a page may send a request.
const pageMethods = "GET, POST"

// allow lets a page send requests with methods and headers, if the app counts the page's site.
func (s *service) allow(c echo.Context, app, methods, headers string) error {
	h := c.Response().Header()
	if s.letRead(c, app) {
		h.Set(echo.HeaderAccessControlAllowMethods, methods)
		h.Set(echo.HeaderAccessControlAllowHeaders, headers)
		h.Set(echo.HeaderAccessControlMaxAge, "7200")
	}
	return c.NoContent(http.StatusNoContent)
}
