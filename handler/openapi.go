package handler

import (
	_ "embed" // for the files below

	"github.com/labstack/echo/v4"
)

// The description of all calls for programs, and a page on which people try them.
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

// tryPolicy lets the page use what this service serves and nothing else, and lets no text become a
// script.
const tryPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// file answers with a file that is part of the program.
func file(kind string, body []byte) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderContentSecurityPolicy, tryPolicy)
		h.Set(echo.HeaderReferrerPolicy, "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		return writeTagged(c, kind, "no-cache", body)
	}
}
