package handler

import (
	_ "embed" // for the file below

	"github.com/labstack/echo/v4"
)

// openAPI is the description of all calls.
//
//go:embed openapi.json
var openAPI []byte

func describe(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	return send(c, "application/json", "no-cache", openAPI, false)
}
