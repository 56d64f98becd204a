package handler

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/admin"
)

// runLong calls f through run. run is Admin.RunLong or Admin.RunErasing, which limit how many long operations run at once, so f
// may have to wait. Only f reads the request body, so that the service does not buffer bodies during the wait.
func runLong(c echo.Context, run func(context.Context, string, func(context.Context, *admin.Admin) error) error, app string,
	f func(ctx context.Context, a *admin.Admin) error) error {
	begun, w := false, c.Response()
	readUntil := http.NewResponseController(w).SetReadDeadline
	err := run(extendDeadline(c), app, func(ctx context.Context, a *admin.Admin) error {
		begun = true
		_ = readUntil(time.Now().Add(requestWithin))                         // the time limit for the body starts after the wait
		defer context.AfterFunc(ctx, func() { _ = readUntil(time.Now()) })() // stops reading when the service stops
		return f(ctx, a)
	})
	if !begun { // read the whole body, because browsers show the response only after they have sent the body
		_ = readUntil(time.Now().Add(requestWithin))
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, c.Request().Body, mostUploaded))
	}
	return err
}
