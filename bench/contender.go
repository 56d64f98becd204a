package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/bench/perrequest"
	"footfall/visit"
)

// The contenders beside Footfall's own service.
const (
	PerRequest = "perrequest" // one visit a transaction
	Constant   = "constant"   // no counting: what Echo and the network cost by themselves
)

// ServeContender serves one of the contenders until ctx ends, at the same URLs as the service and with the same answers.
func ServeContender(ctx context.Context, name, addr, databaseURL string) error {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	switch name {
	case PerRequest:
		store, err := perrequest.Open(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer store.Close()
		e.GET("/visit", func(c echo.Context) error { return visitOnce(c, store) })
	case Constant:
		answer := []byte(`{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}` + "\n")
		e.GET("/visit", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, answer) })
	default:
		return fmt.Errorf("contender: there is no %q: it is %s or %s", name, PerRequest, Constant)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("contender: %w", err)
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1) // takes the one result of the goroutine, which Shutdown or Close ends
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("contender: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = server.Shutdown(stopping)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// visitOnce reads a visit as the service does, and counts it at once.
func visitOnce(c echo.Context, store *perrequest.Store) error {
	visitor, err := visit.VisitorOf(c.QueryParam("ip"), 64)
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, err.Error())
	}
	target, err := visit.Normalize(c.QueryParam("uri"), nil)
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, err.Error())
	}
	answer, err := store.Visit(c.Request().Context(), target, visitor, visit.DayOf(time.Now(), time.UTC))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}
