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

// languageParameter is what an address has that says in which language its page is, and those to which
// that leads.
const languageParameter = "lang"

// place is where the pages are for a reader, and in which language: that of the address, else that of the
// account, else the one that the browser likes best.
func (s *service) place(c echo.Context) web.Place {
	r := c.Request()
	reader, _ := c.Get(asAccount).(*account.Account) // if that was asked
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

// lead leads to another page, in the language that the address says.
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
