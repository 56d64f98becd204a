package handler

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"footfall/visit"
)

// Admin returns the handler of the operator's listener: metrics and profiles, which are nobody else's business.
func Admin(counter *visit.Counter, o Options) http.Handler {
	s := newService(counter, o)
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
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerWithin,
		ReadTimeout:       requestWithin,
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleFor,
		// net/http adds 4 KiB of its own to this.
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
