package handler

import (
	"github.com/labstack/echo/v4"

	"footfall/embed"
)

// How long browsers keep the script: under its plain name it may be another tomorrow.
const (
	scriptCache  = "public, max-age=3600"
	versionCache = "public, max-age=31536000, immutable"
)

// script answers with what pages load. It is no secret, and any page may load it.
func script(of embed.Script, cache string) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderAccessControlAllowOrigin, "*") // a page that names its hash asks so
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
		body := of.Plain
		if readsGzip(c) {
			h.Set(echo.HeaderContentEncoding, "gzip")
			body = of.Gzipped
		}
		return send(c, "text/javascript; charset=utf-8", cache, body, false)
	}
}

// scriptVersion answers with a version of the script. There is one; pages that ask for an older one
// get it, too, so that they go on counting unless they name the old one's hash.
func scriptVersion(c echo.Context) error {
	if c.Param("version") == embed.Version+".js" {
		return script(embed.Count, versionCache)(c)
	}
	return script(embed.Count, scriptCache)(c)
}
