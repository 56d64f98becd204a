package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/embed"
	"footfall/visit"
)

// busuanzi serves pages that were made for the page counter busuanzi or for similar services. Their requests name neither an app
// nor a visitor. The app is the one that counts the page's site, and the visitor is the client. All other rules are those of
// /visit without a key. Most errors have the format of /visit. The scripts of these services understand this format, because they
// only check the status, or whether the response has a success member. See writeRefusal for the exceptions.
type busuanzi struct{ *service }

func (b *busuanzi) routes() []route {
	return []route{
		{embed.BusuanziPath, getOnly, script(embed.Busuanzi, scriptCache)},
		{"/busuanzi/:version/busuanzi.min.js", getOnly, script(embed.Busuanzi, scriptCache)},
		{"/api.php", postOptions, b.busuanziCC},
		{"/busuanzi", getOnly, b.original},
		{"/busuanzi/jsonp", getOnly, func(c echo.Context) error { return b.jsonp(c, "callback") }},
		{"/busuanzi/api", append([]string{http.MethodPut}, getPostOptions...), b.soxft},
		{"/api/v2/log", getPostOptions, b.vercount},
	}
}

// numbers returns a page's numbers as JSON with busuanzi's names. If count is true, it first counts a visit. The number that
// busuanzi calls pv is the one that Footfall calls hot: it counts every visit.
func (b *busuanzi) numbers(c echo.Context, uri string, count bool) ([]byte, error) {
	a, err := b.ask(c, uri, c.QueryParam("referrer"), count, counter.ExtraNumbers{})
	if err != nil {
		return nil, err
	}
	out := []byte(`{"site_pv":`)
	out = strconv.AppendInt(out, a.Site.Hot, 10)
	out = strconv.AppendInt(append(out, `,"site_uv":`...), a.Site.UV, 10)
	out = strconv.AppendInt(append(out, `,"page_pv":`...), a.Page.Hot, 10)
	out = strconv.AppendInt(append(out, `,"page_uv":`...), a.Page.UV, 10)
	return append(out, '}'), nil
}

// ask returns the numbers of a page. If count is true, it first counts a visit to the page.
func (b *busuanzi) ask(c echo.Context, uri, referrer string, count bool, with counter.ExtraNumbers) (a visit.Answer, err error) {
	ctx := c.Request().Context()
	app, err := "", invalid("uri", "it is missing: the request does not name the page")
	if uri != "" {
		app, err = b.Cells.AppOf(ctx, uri, b.Busuanzi)
	}
	b.letRead(c, app)
	if err != nil {
		return a, err
	}
	cell, err := b.Cells.Of(app)
	if err != nil {
		return a, err
	}
	f := fields{app: field{value: app}, uri: field{value: uri}, referrer: field{value: referrer}}
	ask := b.request(c, &f)
	ask.Key = "" // some of these scripts send an Authorization header for their own service
	ask.NeedsNumbers, ask.Extra = true, with
	if count {
		a, err = cell.Counter.Visit(ctx, ask)
	}
	if counted := a.NoNumbers; !count || (counted || a.Later) && err == nil {
		ask.HasNoVisitor = true
		if a, err = cell.Counter.Counts(ctx, ask); err != nil && counted {
			err = visit.Errorf(visit.Lost, "", "the visit was counted, but its numbers could not be read").Because(err)
		}
	}
	if err == nil && a.Skipped != "" {
		c.Response().Header().Set(skippedHeader, string(a.Skipped))
	}
	return a, err
}

// busuanziCC handles the only call that the script from busuanzi.cc makes. The call counts a visit. Its body contains the page's
// address. The page must be on the site that sends the request.
func (b *busuanzi) busuanziCC(c echo.Context) error {
	r := c.Request()
	if r.Method == http.MethodOptions {
		return b.allow(c, "", http.MethodPost, echo.HeaderContentType)
	}
	body := readPage(c)
	page, err := visit.Normalize(body.URL, nil)
	if asks := origin(r.Header); err == nil && asks != "" && app.SiteOfOrigin(asks) != page.Site {
		err = visit.Errorf(visit.Forbidden, "", "url: it is not a page of the site that sends the request")
	}
	var a visit.Answer
	if err == nil {
		a, err = b.ask(c, body.URL, body.Referrer, true, counter.ExtraNumbers{Today: true})
	}
	if err != nil {
		return writeRefusal(c, err, `"success":false`)
	}
	out := fmt.Appendf(nil, `{"busuanzi_today_pv":%d,"busuanzi_today_uv":%d,`, a.Now.Site.Hot, a.Now.Site.PV)
	out = fmt.Appendf(out, `"busuanzi_site_pv":%d,"busuanzi_site_uv":%d,`, a.Site.Hot, a.Site.UV)
	return respond(c, http.StatusOK, fmt.Appendf(out, `"busuanzi_page_pv":%d,"busuanzi_page_uv":%d}`, a.Page.Hot, a.Page.UV))
}

// namedPage is the part of a request body with the address of the visited page, and of the page that linked to it.
type namedPage struct{ URL, Referrer string }

// readPage reads a page's address from a JSON body, whatever the content type. The URL is empty if the body cannot be read.
func readPage(c echo.Context) (page namedPage) {
	sent, _ := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, oneVisit.most))
	_ = json.Unmarshal(sent, &page)
	return page
}

// original handles the only call that busuanzi's script makes. The call counts a visit. Footfall's replacement for this script
// sends the page's address in the parameter url. busuanzi's original script uses JSONP.
func (b *busuanzi) original(c echo.Context) error {
	uri := c.QueryParam("url")
	if uri == "" {
		return b.jsonp(c, "jsonpCallback")
	}
	numbers, err := b.numbers(c, uri, true)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, numbers)
}

var callbackName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{0,63}$`)

// jsonp counts a visit, and responds with a script that passes the numbers to the named callback function. It reads the page's
// address from the Referer header, which the browser sets. So a page can neither read another page's numbers nor count visits to
// another page.
func (b *busuanzi) jsonp(c echo.Context, parameter string) error {
	callback := c.QueryParam(parameter)
	if !callbackName.MatchString(callback) {
		return invalid(parameter, "it is not the name of a function: write at most 64 letters, digits, _ and $")
	}
	page, isScript := scriptOf(c.Request().Header)
	if !isScript {
		return visit.Errorf(visit.Forbidden, parameter,
			"only a <script> element of a page can make this call: for fetch(), call /busuanzi?url=… instead")
	}
	if page == "" {
		return visit.Errorf(visit.Forbidden, "referer",
			"it is missing: the page hides its address (Referrer-Policy), so it cannot be counted")
	}
	numbers, err := b.numbers(c, page, true)
	if err != nil {
		return err
	}
	w := c.Response()
	header := w.Header()
	header.Set(echo.HeaderContentType, "text/javascript; charset=utf-8")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header["Cache-Control"], header["X-Content-Type-Options"] = noStore, noSniff
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, "try{"+callback+"("+string(numbers)+");}catch(e){}") // fails if the caller has left
	return nil
}

// writeRefusal writes an error of the kind Forbidden in the format that the page's script expects, unless the error is about a
// field. The response consists of the JSON member failed, such as "success":false, and the message. writeRefusal returns other
// errors, so that they are written in the format of /visit.
func writeRefusal(c echo.Context, err error, failed string) error {
	refused, is := errors.AsType[*visit.Error](err)
	if !is || refused.Kind != visit.Forbidden || refused.Field != "" {
		return err
	}
	says, _ := json.Marshal(refused.Message()) // cannot fail for a string
	return respond(c, http.StatusForbidden, fmt.Appendf(nil, `{%s,"message":%s,"error":%[2]s}`, failed, says))
}

// soxft serves the script of github.com/soxft/busuanzi: POST counts a visit and returns numbers, PUT counts a visit without
// returning numbers, and GET only returns numbers.
func (b *busuanzi) soxft(c echo.Context) error {
	r := c.Request()
	if r.Method == http.MethodOptions {
		return b.allow(c, "", pageMethods+", PUT", "x-bsz-referer, "+echo.HeaderAuthorization)
	}
	numbers, err := b.numbers(c, r.Header.Get("x-bsz-referer"), r.Method == http.MethodPost || r.Method == http.MethodPut)
	if c.Response().Header().Get(echo.HeaderAccessControlAllowOrigin) != "" {
		c.Response().Header().Add(echo.HeaderAccessControlExposeHeaders,
			"Set-Bsz-Identity") // the page's script reads this header; browsers log an error unless it is exposed
	}
	switch {
	case err != nil:
		return writeRefusal(c, err, `"success":false`)
	case r.Method == http.MethodPut:
		return c.NoContent(http.StatusNoContent)
	}
	return respond(c, http.StatusOK, []byte(`{"success":true,"message":"ok","data":`+string(numbers)+`}`))
}

// vercount serves the second version of Vercount's API: POST counts a visit and returns numbers, GET only returns numbers.
func (b *busuanzi) vercount(c echo.Context) error {
	r := c.Request()
	if r.Method == http.MethodOptions {
		return b.allow(c, "", pageMethods, echo.HeaderContentType+", X-Browser-Token")
	}
	uri := c.QueryParam("url")
	if r.Method == http.MethodPost {
		uri = readPage(c).URL
	}
	numbers, err := b.numbers(c, uri, r.Method == http.MethodPost)
	if err != nil {
		return writeRefusal(c, err, `"status":"error"`)
	}
	return respond(c, http.StatusOK, []byte(`{"status":"success","message":"ok","data":`+string(numbers)+`}`))
}
