package handler

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/visit"
)

// usualReady is how long /readyz waits for the database.
const usualReady = 2 * time.Second

func (s *service) alive(c echo.Context) error {
	return respond(c, http.StatusOK, []byte(`{"state":"alive"}`))
}

func (s *service) ready(c echo.Context) error {
	select {
	case <-s.stopping:
		return visit.Errorf(visit.Unavailable, "", "the service is shutting down")
	default:
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.readyWithin)
	defer cancel()
	if err := s.counter.Ready(ctx); err != nil {
		return err
	}
	return respond(c, http.StatusOK, []byte(`{"state":"ready"}`))
}
