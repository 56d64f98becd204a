package handler

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/admin"
)

// runLong calls f through run, which is Admin.RunLong or Admin.RunErasing and waits for a slot. f reads the request body, so that
// the service buffers no bodies of callers that wait.
func runLong(c echo.Context, run func(context.Context, string, func(context.Context, *admin.Admin) error) error, app string,
	f func(ctx context.Context, a *admin.Admin) error) error {
	begun, w := false, c.Response()
	readUntil := http.NewResponseController(w).SetReadDeadline
	err := run(atLength(c), app, func(ctx context.Context, a *admin.Admin) error {
		begun = true
		_ = readUntil(time.Now().Add(requestWithin))                         // the time for reading the body starts after the wait
		defer context.AfterFunc(ctx, func() { _ = readUntil(time.Now()) })() // stops reading when the service stops
		return f(ctx, a)
	})
	if !begun { // browsers show a response only after they have sent the whole body
		_ = readUntil(time.Now().Add(requestWithin))
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, c.Request().Body, mostUploaded))
	}
	return err
}
