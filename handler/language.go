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

// languageParameter is the query parameter that selects the language of a page. If the address of a page has this parameter, the
// page's links have it, too.
const languageParameter = "lang"

// pageContext returns the data that every page needs: the root path, the reader, the page's address, and the language. The
// language is selected by the query parameter, else by the account, else by the browser's Accept-Language header.
func (s *service) pageContext(c echo.Context) web.Place {
	r := c.Request()
	reader, _ := c.Get(asAccount).(*account.Account) // nil if signedIn was not called, or found no account
	p := web.Place{Root: s.root, Reader: readerOf(reader), At: &url.URL{Path: s.root + r.URL.Path, RawPath: s.root + r.URL.EscapedPath()}}
	if r.Method != http.MethodPost {
		p.At.RawQuery = r.URL.RawQuery
	}
	if p.Words = words.FindLanguage(c.QueryParam(languageParameter)); p.Words != nil {
		p.SelectsLanguage = true
		return p
	}
	if reader != nil {
		p.Words = words.FindLanguage(reader.Language)
	}
	if p.Words == nil {
		p.Words = words.MatchLanguage(r.Header.Get("Accept-Language"))
	}
	return p
}

// redirect redirects to another page. If the request has a language parameter, redirect adds it to the new address.
func (s *service) redirect(c echo.Context, status int, to string) error {
	if p := s.pageContext(c); p.SelectsLanguage && !strings.Contains(to, languageParameter+"=") {
		sign := "?"
		if strings.Contains(to, "?") {
			sign = "&"
		}
		to += sign + languageParameter + "=" + p.Words.Tag
	}
	return c.Redirect(status, to)
}
