package handler

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/visit"
)

// visit counts a visit. HEAD and OPTIONS count nothing.
func (s *service) visit(c echo.Context) error {
	return s.answer(c, (*counter.Counter).Visit, false)
}

// answer parses a request, calls ask, and writes the response. If now is true, the request may select current numbers with the
// field "with".
func (s *service) answer(
	c echo.Context, ask func(*counter.Counter, context.Context, counter.Request) (visit.Answer, error), now bool,
) error {
	if c.Request().Method == http.MethodOptions {
		return s.preflight(c)
	}
	f, err := readFields(c)
	s.letRead(c, f.app.value)
	if err != nil {
		return err
	}
	cell, err := s.Cells.Of(f.app.value)
	if err != nil {
		return err
	}
	var with counter.ExtraNumbers
	if now {
		with = f.readWith()
	}
	request := s.request(c, &f)
	request.Extra = with
	answer, err := ask(cell.Counter, c.Request().Context(), request)
	if err != nil {
		return err
	}
	return writeNumbers(c, answer)
}

// request returns the counter.Request for the fields and the headers of an HTTP request.
func (s *service) request(c echo.Context, f *fields) counter.Request {
	r := c.Request()
	ask := readBrowserHeaders(r)
	ask.App, ask.URI, ask.Event, ask.ID, ask.At = f.app.value, f.uri.value, f.event.value, f.id.value, f.at.value
	ask.IP, ask.Visitor, ask.HasVisitor = f.ip.value, f.visitor.value, f.ip.isSet || f.visitor.isSet
	ask.Title = f.title.value
	ask.Referrer, ask.Language, ask.Country, ask.Tags = f.referrer.value, f.language.value, f.country.value, f.tags
	ask.Browser = f.agent.value
	ask.CountLater, ask.OnlyCounted, ask.ParseErr = f.answer.isSet, f.offsets.isSet, f.parseErr
	var err error
	if ask.Peer, err = s.Proxies.client(r); err != nil && !ask.HasVisitor && ask.ParseErr == nil {
		ask.ParseErr = err // without a visitor in the request, the client's address is needed
	}
	ask.PeerCountry = s.Proxies.country(r, s.CountryHeader)
	if !ask.HasVisitor && s.Proxies.isUnlisted(r, ask.Peer) {
		s.unlistedProxy.warn()
	}
	return ask
}

// These header values are shared by all responses and must not be modified. Assigning a shared value allocates no memory.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noSniff  = []string{"nosniff"}
)

// respond writes JSON that must not be cached.
func respond(c echo.Context, status int, body []byte) error {
	w := c.Response()
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = jsonType, noStore, noSniff
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the caller has left
	return nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// skippedHeader is the response header with the reason why a visit was intentionally not counted.
const skippedHeader = "Footfall-Skipped"

// repeatedHeader is the response header that is set if a visit with the same id was already counted.
const repeatedHeader = "Footfall-Repeated"

// writeNumbers responds with 200 and the numbers, or with 202 for a visit that will be counted in a moment.
func writeNumbers(c echo.Context, a visit.Answer) error {
	if a.Repeated {
		c.Response().Header().Set(repeatedHeader, "id")
	}
	if a.Skipped != "" {
		c.Response().Header().Set(skippedHeader, string(a.Skipped))
	}
	status := http.StatusOK
	if a.Later {
		status = http.StatusAccepted
	}
	buffer := buffers.Get().(*[]byte)
	*buffer = appendAnswer((*buffer)[:0], a)
	defer buffers.Put(buffer)
	return respond(c, status, *buffer)
}

// appendAnswer appends an answer as JSON. The text is the same as that of encoding/json, which needs ten times as long.
func appendAnswer(out []byte, a visit.Answer) []byte {
	switch {
	case a.Untold:
		return append(out, "{}"...)
	case a.NoNumbers:
		return append(out, `{"numbers":"unknown"}`...)
	case a.Later:
		return append(out, `{"later":true}`...)
	}
	out = append(out, '{')
	if !a.PageOnly {
		out = append(appendTarget(append(out, `"site":`...), a.Site, a.Now.Site, a.Now.Here), ',')
	}
	out = appendTarget(append(out, `"page":`...), a.Page, a.Now.Page, nil)
	return append(appendBehind(out, a.Behind), '}')
}

// appendTarget appends the numbers of a site or a page, and the current numbers that the request has selected.
func appendTarget(out []byte, n visit.Counts, today *visit.Today, here *int64) []byte {
	out = appendCounts(out, n)
	if today == nil && here == nil {
		return out
	}
	out = out[:len(out)-1] // removes the closing brace; it is appended again below
	if today != nil {
		out = strconv.AppendInt(append(out, `,"today":{"hot":`...), today.Hot, 10)
		out = append(strconv.AppendInt(append(out, `,"pv":`...), today.PV, 10), '}')
	}
	if here != nil {
		out = strconv.AppendInt(append(out, `,"here":`...), *here, 10)
	}
	return append(out, '}')
}

func appendBehind(out []byte, visits int64) []byte {
	if visits == 0 {
		return out
	}
	return strconv.AppendInt(append(out, `,"behind":`...), visits, 10)
}

func appendCounts(out []byte, n visit.Counts) []byte {
	out = strconv.AppendInt(append(out, `{"pv":`...), n.PV, 10)
	out = strconv.AppendInt(append(out, `,"uv":`...), n.UV, 10)
	out = strconv.AppendInt(append(out, `,"rank":`...), n.Rank, 10)
	out = strconv.AppendInt(append(out, `,"hot":`...), n.Hot, 10)
	return append(out, '}')
}
