package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/visit"
)

var statuses = map[visit.Kind]int{
	visit.Invalid:     http.StatusBadRequest,
	visit.NotFound:    http.StatusNotFound,
	visit.BadKey:      http.StatusUnauthorized,
	visit.Forbidden:   http.StatusForbidden,
	visit.TooMany:     http.StatusTooManyRequests,
	visit.TooLarge:    http.StatusRequestEntityTooLarge,
	visit.TooSlow:     http.StatusRequestTimeout,
	visit.Mismatch:    http.StatusUnprocessableEntity,
	visit.Unavailable: http.StatusServiceUnavailable,
	visit.Lost:        http.StatusInternalServerError,
}

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

func (s *service) fail(c echo.Context, err error) {
	status, told := s.statusOf(c, err)
	if !c.Response().Committed {
		_ = respond(c, status, errorBody(told.Message()))
	}
}

var errInternal = visit.Errorf(visit.Lost, "", "internal error")

// statusOf returns the HTTP status for an error, and the error to send to the caller. It sets the response headers that belong to
// the status. If the error is the service's fault, it logs the error.
func (s *service) statusOf(c echo.Context, err error) (status int, toSend *visit.Error) {
	status, toSend = http.StatusInternalServerError, errInternal
	var verr *visit.Error
	var routed *echo.HTTPError
	switch {
	case errors.As(err, &verr) && statuses[verr.Kind] != 0:
		status, toSend = statuses[verr.Kind], verr
		switch verr.Kind {
		case visit.Unavailable, visit.TooMany:
			c.Response().Header().Set(echo.HeaderRetryAfter, retryAfter(verr.RetryAfter))
		case visit.BadKey:
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
		}
	case errors.As(err, &routed) && routed.Code < http.StatusInternalServerError:
		status, toSend = routed.Code, s.describe(c, routed)
	}
	logged := verr != nil && verr.Logged
	if status >= http.StatusInternalServerError && !logged && c.Request().Context().Err() == nil {
		s.logFault(c.Path(), status, err)
	}
	return status, toSend
}

func errorBody(message string) []byte { return memberBody("error", message) }

func memberBody(name, text string) []byte {
	body, _ := json.Marshal(map[string]string{name: text}) // cannot fail for strings
	return body
}

// appendList appends n elements to out, separated by commas. The function part appends the element with index i.
func appendList(out []byte, n int, part func(out []byte, i int) []byte) []byte {
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = part(out, i)
	}
	return out
}

func (s *service) describe(c echo.Context, e *echo.HTTPError) *visit.Error {
	switch e.Code {
	case http.StatusNotFound:
		return visit.Errorf(visit.NotFound, "", "there is nothing here: see /visit, /counts and /openapi.json")
	case http.StatusMethodNotAllowed:
		for _, r := range s.routes {
			if r.path == c.Path() {
				c.Response().Header().Set(echo.HeaderAllow, r.allow())
				return visit.Errorf(visit.Invalid, "", "use %s", r.allow())
			}
		}
	}
	return visit.Errorf(visit.Invalid, "", "%v", e.Message)
}

// retryAfter formats a duration as whole seconds, rounded up, because a caller that retries too early is rejected again.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

func (s *service) logFault(route string, status int, err error) {
	attributes := []any{slog.String("route", route), slog.Int("status", status), slog.Any("error", err)}
	if panicked, is := errors.AsType[*panicError](err); is {
		s.Log.Error("a handler panicked", append(attributes, slog.String("stack", string(panicked.stack)))...)
		return
	}
	if status != http.StatusServiceUnavailable {
		s.Log.Error("a request failed", attributes...)
		return
	}
	// While the database is down, every request fails for the same reason, so the service logs at most one failure per second.
	if more, speak := s.refusals.Next(struct{}{}, time.Now()); speak {
		s.Log.Warn("a request was refused", append(attributes, slog.Int("unlogged_before", more))...)
	}
}
