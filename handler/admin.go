package handler

import (
	"footfall/counter"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"regexp"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Admin returns the handler of the operator's listener: metrics and profiles, which are nobody else's business.
func Admin(counting *counter.Counter, o Options) http.Handler {
	s := newService(counting, o)
	plain := func(path string, h http.Handler) {
		s.routes = append(s.routes, route{path, []string{http.MethodGet, http.MethodHead, http.MethodPost}, echo.WrapHandler(h)})
	}
	plain("/metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError)}))
	plain("/debug/pprof/cmdline", http.HandlerFunc(pprof.Cmdline))
	plain("/debug/pprof/profile", http.HandlerFunc(pprof.Profile))
	plain("/debug/pprof/symbol", http.HandlerFunc(pprof.Symbol))
	plain("/debug/pprof/trace", http.HandlerFunc(pprof.Trace))
	plain("/debug/pprof/*", http.HandlerFunc(pprof.Index))
	return s.echo(nil)
}

const (
	headerWithin  = 5 * time.Second
	requestWithin = 10 * time.Second
	answerWithin  = time.Minute // beyond what a visit may wait for its batch and the batch may take
	idleFor       = 2 * time.Minute
	maxHeader     = 32 << 10
)

// Server returns a server for a handler of this package, with bounds on what a client may hold.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	faults := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	faults.SetOutput(nameless{faults.Writer()})
	return &http.Server{
		Handler:           lastIfChunked(h),
		ReadHeaderTimeout: headerWithin,
		ReadTimeout:       requestWithin,
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleFor,
		// net/http adds 4 KiB of its own to this.
		MaxHeaderBytes: maxHeader,
		ErrorLog:       faults,
	}
}

// lastIfChunked ends the connection with a request whose body comes in chunks. A request may say a length besides, and a proxy that goes by
// it takes for a part of the body what is another request here: hidden by a client, with a header of his own making, on
// the connection of a proxy that is believed. net/http goes by the chunks, does not tell that there was a length, and would read on.
func lastIfChunked(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// nameless keeps the addresses of clients, which net/http tells with a panic or a failed handshake, out of the log.
type nameless struct{ log io.Writer }

var addressAndPort = regexp.MustCompile(`(?:\d+\.\d+\.\d+\.\d+|\[[0-9A-Fa-f:.]+(?:%[^]\s]*)?\]):\d+`)

func (n nameless) Write(line []byte) (int, error) {
	if _, err := n.log.Write(addressAndPort.ReplaceAll(line, []byte("(address)"))); err != nil {
		return 0, err
	}
	return len(line), nil
}
