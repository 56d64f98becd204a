package handler

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/visit"
)

const (
	headerWithin  = 5 * time.Second
	requestWithin = 10 * time.Second
	answerWithin  = time.Minute // longer than a visit may take, including the wait for its batch
	idleFor       = 2 * time.Minute
	maxHeader     = 32 << 10
)

// newServer returns a server that limits how much time and memory a client can use.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	faults := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	faults.SetOutput(addressRemover{faults.Writer()})
	return &http.Server{
		Handler:           lastIfChunked(h),
		ReadHeaderTimeout: headerWithin,
		ReadTimeout:       requestWithin,
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleFor,
		// net/http adds 4 KiB to this limit.
		MaxHeaderBytes: maxHeader,
		ErrorLog:       faults,
	}
}

// lastIfChunked closes the connection after a request with a chunked body, to prevent request smuggling. A request with a chunked
// body may also have a Content-Length. net/http then ignores the length, and would read the bytes after the last chunk as another
// request. But a proxy that uses the length treats these bytes as a part of the body. So a client could hide a second request
// with forged headers in the body, and send it through a trusted proxy.
func lastIfChunked(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// addressRemover is a writer that removes client addresses from log lines. net/http logs a client's address when a handler panics
// or a handshake fails.
type addressRemover struct{ log io.Writer }

var addressAndPort = regexp.MustCompile(`(?:\d+\.\d+\.\d+\.\d+|\[[0-9A-Fa-f:.]+(?:%[^]\s]*)?\]):\d+`)

func (n addressRemover) Write(line []byte) (int, error) {
	if _, err := n.log.Write(addressAndPort.ReplaceAll(line, []byte("(address)"))); err != nil {
		return 0, err
	}
	return len(line), nil
}

const usualReady = 2 * time.Second

func (s *service) alive(c echo.Context) error {
	return respond(c, http.StatusOK, []byte(`{"state":"alive"}`))
}

func (s *service) ready(c echo.Context) error {
	select {
	case <-s.Stopping:
		return visit.Errorf(visit.Unavailable, "", "the service is shutting down")
	default:
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.readyWithin)
	defer cancel()
	health, err := s.Cells.Ready(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(health)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, body)
}
