package handler

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/admin"
)

// runLong calls f through run, which is admin.RunLong or RunErasing. f reads the request body, so that no body is buffered
// for callers that wait for a slot.
func runLong(c echo.Context, run func(context.Context, string, func(context.Context, *admin.Admin) error) error, app string,
	f func(ctx context.Context, a *admin.Admin) error) error {
	begun, w := false, c.Response()
	readUntil := http.NewResponseController(w).SetReadDeadline
	err := run(atLength(c), app, func(ctx context.Context, a *admin.Admin) error {
		begun = true
		_ = readUntil(time.Now().Add(requestWithin))                         // restarts after the wait
		defer context.AfterFunc(ctx, func() { _ = readUntil(time.Now()) })() // the service is stopping
		return f(ctx, a)
	})
	if !begun { // browsers show the response only after they have sent their files
		_ = readUntil(time.Now().Add(requestWithin))
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, c.Request().Body, mostUploaded))
	}
	return err
}
