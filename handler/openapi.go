package handler

import (
	_ "embed" // for the files below
	"net/http"

	"github.com/labstack/echo/v4"
)

// What a program reads to know all calls, and a page on which a person tries them.
var (
	//go:embed openapi.json
	openAPI []byte
	//go:embed try.html
	tryPage []byte
	//go:embed try.js
	tryScript []byte
	//go:embed try.css
	tryStyle []byte
)

// tryPolicy lets the page use what this service serves and nothing else, and lets no text become a script.
const tryPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func apiRoutes() []route {
	file := func(path, kind string, body []byte) route {
		return route{path, []string{http.MethodGet, http.MethodHead}, func(c echo.Context) error {
			h := c.Response().Header()
			h.Set(echo.HeaderContentSecurityPolicy, tryPolicy)
			h.Set(echo.HeaderReferrerPolicy, "no-referrer")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			return writeTagged(c, kind, "no-cache", body)
		}}
	}
	return []route{
		file("/openapi.json", "application/json", openAPI),
		file("/api", "text/html; charset=utf-8", tryPage),
		file("/api/try.js", "text/javascript; charset=utf-8", tryScript),
		file("/api/try.css", "text/css; charset=utf-8", tryStyle),
	}
}
