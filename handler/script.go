package handler

import (
	"github.com/labstack/echo/v4"

	"footfall/embed"
)

// scriptCache is the Cache-Control header for the script's name without a version. After an update of Footfall, this name may
// return another script. versionCache is the header for a name with the current version. The script never changes under such a
// name.
const (
	scriptCache  = "public, max-age=3600"
	versionCache = "public, max-age=31536000, immutable"
)

// script returns a handler that responds with a script. Pages of any site may load the script.
func script(of embed.Script, cache string) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderAccessControlAllowOrigin, "*") // required by browsers if a page specifies the script's integrity hash
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

// scriptVersion responds with the current version of the script, whichever version is requested. So pages that request an old
// version continue to count. Browsers reject the current version only if the page has an integrity hash of the old version.
func scriptVersion(c echo.Context) error {
	if c.Param("version") == embed.Version+".js" {
		return script(embed.Count, versionCache)(c)
	}
	return script(embed.Count, scriptCache)(c)
}
