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

	"footfall/embed"
	"footfall/visit"
)

// busuanzi answers pages that were made for busuanzi and its kin. These say neither an app nor who
// comes, so the app is the one that lists the page's site, and the visitor is who asks. Apart from
// that a visit is admitted and counted as /visit does it for a caller without a key, and errors are
// those of /visit: these clients look at the status, or find no success.
type busuanzi struct{ *service }

func (b *busuanzi) routes() []route {
	return []route{
		{embed.BusuanziPath, getOnly, script(embed.Busuanzi, scriptCache)},
		{"/busuanzi", getOnly, b.original},
		{"/busuanzi/jsonp", getOnly, func(c echo.Context) error { return b.jsonp(c, "callback") }},
		{"/busuanzi/api", append([]string{http.MethodPut}, getPostOptions...), b.soxft},
		{"/api/v2/log", getPostOptions, b.vercount},
	}
}

// numbers are those of a page by busuanzi's names, as JSON: what it calls pv is every visit. With
// count the visit counts before.
func (b *busuanzi) numbers(c echo.Context, uri string, count bool) ([]byte, error) {
	ctx := c.Request().Context()
	app, err := "", invalid("uri", "it is missing: the page does not say where it is")
	if uri != "" {
		app, err = b.Cells.AppOf(ctx, uri, b.Busuanzi)
	}
	b.letRead(c, app)
	if err != nil {
		return nil, err
	}
	cell, err := b.Cells.Of(app)
	if err != nil {
		return nil, err
	}
	f := fields{app: field{value: app}, uri: field{value: uri}, referrer: field{value: c.QueryParam("referrer")}} // which our own script sends
	ask := b.request(c, &f)
	ask.Key = "" // what some of these clients send as Authorization is none of ours
	ask.Numbers = true
	var a visit.Answer
	if count {
		a, err = cell.Counter.Visit(ctx, ask)
	}
	if counted := a.NoNumbers; !count || (counted || a.Later) && err == nil {
		ask.Anybody = true
		if a, err = cell.Counter.Counts(ctx, ask); err != nil && counted {
			err = &visit.Error{Kind: visit.Lost, Message: "counted, but its numbers are not known", Err: err}
		}
	}
	if err != nil {
		return nil, err
	}
	if a.Skipped != "" {
		c.Response().Header().Set(skippedHeader, string(a.Skipped))
	}
	out := []byte(`{"site_pv":`)
	out = strconv.AppendInt(out, a.Site.Hot, 10)
	out = strconv.AppendInt(append(out, `,"site_uv":`...), a.Site.UV, 10)
	out = strconv.AppendInt(append(out, `,"page_pv":`...), a.Page.Hot, 10)
	out = strconv.AppendInt(append(out, `,"page_uv":`...), a.Page.UV, 10)
	return append(out, '}'), nil
}

// original is the one call of busuanzi, which counts. Our own script names the page in url.
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

// jsonp counts, and answers with a script that gives the numbers to the function of the page that a
// parameter names. The page is the one that the browser says the script is for: no page can read or
// count another so.
func (b *busuanzi) jsonp(c echo.Context, parameter string) error {
	callback := c.QueryParam(parameter)
	if !callbackName.MatchString(callback) {
		return invalid(parameter, "it is no name of a function: write one of letters, digits, _ and $, 64 at most")
	}
	page, isScript := scriptOf(c.Request().Header)
	if !isScript {
		return visit.Errorf(visit.Forbidden, parameter, "this answer is for a <script> of a page: other calls answer to fetch")
	}
	if page == "" {
		return visit.Errorf(visit.Forbidden, "referer",
			"it is missing: the page hides where it is (Referrer-Policy), so that nobody can tell what to count")
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

// inForm answers a call to an app that tells no numbers as a client looks for it: a member says that
// there are none, and message why. Other errors are those of /visit.
func inForm(c echo.Context, err error, failed string) error {
	refused, is := errors.AsType[*visit.Error](err)
	if !is || refused.Kind != visit.Forbidden || refused.Field != "" {
		return err
	}
	says, _ := json.Marshal(refused.Message) // cannot fail for a text
	return respond(c, http.StatusForbidden, fmt.Appendf(nil, `{%s,"message":%s,"error":%[2]s}`, failed, says))
}

// soxft answers the client of github.com/soxft/busuanzi: POST counts, PUT does so without numbers,
// GET shows.
func (b *busuanzi) soxft(c echo.Context) error {
	r := c.Request()
	if r.Method == http.MethodOptions {
		return b.allow(c, "", pageMethods+", PUT", "x-bsz-referer, "+echo.HeaderAuthorization)
	}
	numbers, err := b.numbers(c, r.Header.Get("x-bsz-referer"), r.Method == http.MethodPost || r.Method == http.MethodPut)
	if c.Response().Header().Get(echo.HeaderAccessControlAllowOrigin) != "" {
		c.Response().Header().Add(echo.HeaderAccessControlExposeHeaders,
			"Set-Bsz-Identity") // or browsers tell of a fault when the client looks for it
	}
	switch {
	case err != nil:
		return inForm(c, err, `"success":false`)
	case r.Method == http.MethodPut:
		return c.NoContent(http.StatusNoContent)
	}
	return respond(c, http.StatusOK, []byte(`{"success":true,"message":"ok","data":`+string(numbers)+`}`))
}

// vercount answers the second version of Vercount's call: POST counts, GET shows.
func (b *busuanzi) vercount(c echo.Context) error {
	r := c.Request()
	if r.Method == http.MethodOptions {
		return b.allow(c, "", pageMethods, echo.HeaderContentType+", X-Browser-Token")
	}
	uri := c.QueryParam("url")
	if r.Method == http.MethodPost {
		var body struct{ URL string }
		sent, _ := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, oneVisit.most))
		_ = json.Unmarshal(sent, &body) // what cannot be read names no page
		uri = body.URL
	}
	numbers, err := b.numbers(c, uri, r.Method == http.MethodPost)
	if err != nil {
		return inForm(c, err, `"status":"error"`)
	}
	return respond(c, http.StatusOK, []byte(`{"status":"success","message":"ok","data":`+string(numbers)+`}`))
}
