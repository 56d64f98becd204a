package handler

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/account"
	"footfall/web"
	"footfall/web/words"
)

// languageParameter is the query parameter that selects the language of a page. Links on the page keep this parameter.
const languageParameter = "lang"

// pageContext returns the context that pages need: the root path, the reader, the address, and the language. The language is that of
// the query parameter, else that of the account, else the browser's preferred language.
func (s *service) pageContext(c echo.Context) web.Place {
	r := c.Request()
	reader, _ := c.Get(asAccount).(*account.Account) // nil if signedIn was not called, or found no account
	p := web.Place{Root: s.root, Reader: readerOf(reader), At: &url.URL{Path: s.root + r.URL.Path, RawPath: s.root + r.URL.EscapedPath()}}
	if r.Method != http.MethodPost {
		p.At.RawQuery = r.URL.RawQuery
	}
	if p.Words = words.Named(c.QueryParam(languageParameter)); p.Words != nil {
		p.Kept = true
		return p
	}
	if reader != nil {
		p.Words = words.Named(reader.Language)
	}
	if p.Words == nil {
		p.Words = words.For(r.Header.Get("Accept-Language"))
	}
	return p
}

// redirect redirects to another page. It keeps the language parameter of the request.
func (s *service) redirect(c echo.Context, status int, to string) error {
	if p := s.pageContext(c); p.Kept && !strings.Contains(to, languageParameter+"=") {
		sign := "?"
		if strings.Contains(to, "?") {
			sign = "&"
		}
		to += sign + languageParameter + "=" + p.Words.Tag
	}
	return c.Redirect(status, to)
}
