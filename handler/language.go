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

// languageParameter is the query parameter that selects the language of a page, and of the pages that it links to.
const languageParameter = "lang"

// place returns the reader's page context: the root path and the language. The language is the query parameter's, else the
// account's, else the one that the browser prefers.
func (s *service) place(c echo.Context) web.Place {
	r := c.Request()
	reader, _ := c.Get(asAccount).(*account.Account) // if the request was checked for an account
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

// lead redirects to another page and keeps the language parameter.
func (s *service) lead(c echo.Context, status int, to string) error {
	if p := s.place(c); p.Kept && !strings.Contains(to, languageParameter+"=") {
		sign := "?"
		if strings.Contains(to, "?") {
			sign = "&"
		}
		to += sign + languageParameter + "=" + p.Words.Tag
	}
	return c.Redirect(status, to)
}
