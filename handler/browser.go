package handler

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/visit/tag"
)

// header returns the first value of a header, or "". The name must be in canonical form. Header.Get converts each name to this
// form, which takes longer than the lookup itself, and a visit needs fifteen lookups.
func header(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// bearer returns the request's API key. It ignores authorization schemes other than Bearer, because they are not for Footfall.
// For example, a proxy in front of the service may require a password.
func bearer(h http.Header) string {
	const scheme = "bearer "
	value := header(h, echo.HeaderAuthorization)
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return ""
	}
	if key := strings.TrimSpace(value[len(scheme):]); key != "" {
		return key
	}
	return value // the word Bearer alone, for example because a script's variable is empty; rejected as a bad key
}

// hiddenOrigin is the result of the function origin if a page hides its address. No site has this origin.
const hiddenOrigin = "null"

// origin returns the origin of the requesting page, or "" if no page sent the request or the browser does not send the origin.
// Images, frames and no-cors requests have no Origin header. For these, the browser sends a Referer, unless the page hides its
// address. Over TLS the browser also sends Sec-Fetch-Site. If this header shows that the page has another origin than Footfall,
// origin returns hiddenOrigin.
func origin(h http.Header) string {
	if value := header(h, echo.HeaderOrigin); value != "" {
		return value
	}
	if referer := header(h, "Referer"); referer != "" {
		return originOf(referer)
	}
	switch header(h, "Sec-Fetch-Site") {
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

// readBrowserHeaders returns a counter.Request with the data from the browser's headers.
func readBrowserHeaders(r *http.Request) counter.Request {
	h := r.Header
	return counter.Request{
		Key: bearer(h), Origin: origin(h), Agent: header(h, "User-Agent"), Languages: header(h, "Accept-Language"), Hints: hints(h),
		Prefetch: prefetches(r), DoNotTrack: optsOut(h),
	}
}

// optsOut reports whether the browser asks not to be tracked, by Do Not Track or Global Privacy Control.
func optsOut(h http.Header) bool { return header(h, "Dnt") == "1" || header(h, "Sec-Gpc") == "1" }

// hints returns the client hints: headers with details that the User-Agent lacks.
func hints(h http.Header) tag.Hints {
	return tag.Hints{Brands: header(h, "Sec-Ch-Ua"), Mobile: header(h, "Sec-Ch-Ua-Mobile"), Platform: header(h, "Sec-Ch-Ua-Platform")}
}

// scriptOf returns the address of the page that loads a script, or "" if the browser sends no Referer. isScript is false if the
// request is certainly not from a <script> element.
func scriptOf(h http.Header) (page string, isScript bool) {
	dest := header(h, "Sec-Fetch-Dest")
	return header(h, "Referer"), dest == "" || dest == "script"
}

// showsPages reports whether the client is probably a browser that displays the response as a page, rather than a program.
func showsPages(r *http.Request) bool {
	return slices.Contains(getOnly, r.Method) && strings.Contains(header(r.Header, echo.HeaderAccept), "text/html")
}

// prefetches reports whether a request must not count as a visit, because it is a prefetch for a later visit, or a HEAD request.
func prefetches(r *http.Request) bool {
	if r.Method == http.MethodHead {
		return true
	}
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} { // the standard header, and its older variants
		value := strings.ToLower(header(r.Header, name))
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

// letRead permits the requesting page to read the response (CORS), if the app counts the page's site. If app is "", it is enough
// that some app counts the site. letRead does not allow credentials, so a page cannot read responses to requests with cookies
// or passwords.
func (s *service) letRead(c echo.Context, app string) (allowed bool) {
	h := c.Response().Header()
	h[echo.HeaderVary] = originVaries
	origin := header(c.Request().Header, echo.HeaderOrigin)
	if origin == "" || !s.Cells.AllowsOrigin(c.Request().Context(), app, origin) {
		return false
	}
	h[echo.HeaderAccessControlAllowOrigin] = []string{origin}
	h[echo.HeaderAccessControlExposeHeaders] = exposed
	return true
}

// preflight handles CORS preflights. A preflight has no body, but some requests name the app only in the body. So the handler of
// the actual request calls letRead again, for the app in the body.
func (s *service) preflight(c echo.Context) error {
	f, _ := readQuery(c.Request().URL.RawQuery)
	return s.allow(c, f.app.value, pageMethods, echo.HeaderContentType)
}

// pageMethods are the methods that pages on other origins may use (CORS).
const pageMethods = "GET, POST"

// allow responds to a CORS preflight. It permits the methods and headers if the app counts the page's site.
func (s *service) allow(c echo.Context, app, methods, headers string) error {
	h := c.Response().Header()
	if s.letRead(c, app) {
		h.Set(echo.HeaderAccessControlAllowMethods, methods)
		h.Set(echo.HeaderAccessControlAllowHeaders, headers)
		h.Set(echo.HeaderAccessControlMaxAge, "7200")
	}
	return c.NoContent(http.StatusNoContent)
}
