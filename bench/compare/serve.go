package compare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/bench"
	"footfall/counter"
)

// Serve serves a contender that is not Footfall's service until ctx ends, at the same URLs and with
// the same answers.
func Serve(ctx context.Context, name, addr, databaseURL string) (err error) {
	at := slices.IndexFunc(contenders, func(c contender) bool { return c.Name == name && c.alone })
	if at < 0 {
		return fmt.Errorf("contender: %q is not served here", name)
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Server.ReadHeaderTimeout = 10 * time.Second
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	if name == constant {
		answer := []byte(`{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}` + "\n")
		e.GET("/visit", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, answer) })
	} else {
		one := served{}
		if one.counting, err = contenders[at].open(ctx, databaseURL); err != nil {
			return err
		}
		defer one.close()
		e.GET("/visit", one.visitOnce)
		e.GET("/metrics", one.metrics)
	}
	// Nothing is under way any more when a contender is stopped: its tables are to be read.
	context.AfterFunc(ctx, func() { _ = e.Close() })
	if err := e.Start(addr); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("contender: %w", err)
	}
	return nil
}

// served is how a contender answers.
type served struct {
	counting
	waiting atomic.Int64 // visits under way
}

// visitOnce counts a visit as soon as it comes.
func (s *served) visitOnce(c echo.Context) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	// The visit outlives its request, as it does in the service: wrk hangs up on the last ones.
	answer, err := s.visit(context.WithoutCancel(c.Request().Context()), counter.Request{
		App: c.QueryParam("app"), IP: c.QueryParam("ip"), URI: c.QueryParam("uri"),
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// metrics answers by the names of the service's metrics.
func (s *served) metrics(c echo.Context) error {
	figures, err := s.figures()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s %d\n", bench.MetricWaiting, s.waiting.Load())
	for name, value := range figures {
		text += fmt.Sprintf("%s %v\n", name, value)
	}
	return c.String(http.StatusOK, text)
}
