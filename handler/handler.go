// Package handler is the HTTP edge of Footfall: it reads requests, asks a counter.Counter, and writes answers as JSON.
//
// There is one route table for each listener, and one place that turns errors into answers.
package handler

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"footfall/counter"
	"footfall/report"
	"footfall/visit"
)

// readyWithin bounds how long /readyz waits for the database.
const readyWithin = 2 * time.Second

// Options of New and Admin. The zero value of a field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics *prometheus.Registry // what /metrics shows, and where the public handler's own metrics go; default: an empty one
	// Stopping is closed when the service begins to stop: from then on /readyz says so.
	Stopping <-chan struct{}
	// Proxies are believed when they say for whom they ask. Default: nobody is.
	Proxies *Proxies
	// Reports reads what /api/apps/… answers. Default: there are no reports.
	Reports *report.Reader
}

// New returns the public handler.
func New(counting *counter.Counter, o Options) http.Handler {
	s := newService(counting, o)
	s.routes = append(s.routes, s.publicRoutes(o)...)
	return s.echo(newMetrics(s.registry))
}

// publicRoutes are those that the public listener alone has.
func (s *service) publicRoutes(o Options) []route {
	routes := []route{
		{"/visit", []string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions}, s.visit},
		{"/counts", []string{http.MethodGet, http.MethodHead, http.MethodOptions}, s.counts},
	}
	if o.Reports != nil {
		routes = append(append(routes, s.reportRoutes(o.Reports)...), apiRoutes()...)
	}
	return routes
}

// service is what the handlers of one listener share. It does not change once its routes are served.
type service struct {
	counter  *counter.Counter
	log      *slog.Logger
	registry *prometheus.Registry
	stopping <-chan struct{}
	proxies  *Proxies
	routes   []route
	muffler  muffler
}

// route is a path, the methods it answers, and what it does.
type route struct {
	path    string
	methods []string
	handle  echo.HandlerFunc
}

func (r route) allow() string { return strings.Join(r.methods, ", ") }

// newService has the routes that both listeners have.
func newService(counting *counter.Counter, o Options) *service {
	s := &service{counter: counting, log: o.Log, registry: o.Metrics, stopping: o.Stopping, proxies: o.Proxies}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.registry == nil {
		s.registry = prometheus.NewRegistry()
	}
	s.routes = []route{
		{"/livez", []string{http.MethodGet, http.MethodHead}, s.alive},
		{"/readyz", []string{http.MethodGet, http.MethodHead}, s.ready},
	}
	return s
}

// echo serves the route table. Nothing runs for a request but its route: no middleware, which Echo would put together
// anew for each.
func (s *service) echo(m *metrics) http.Handler {
	e := echo.New()
	for _, r := range s.routes {
		serve := s.guard(r.handle, m.of(r.path))
		refuse := s.guard(r.refuse, m.of(r.path))
		for _, method := range knownMethods {
			if slices.Contains(r.methods, method) {
				e.Add(method, r.path, serve)
			} else {
				e.Add(method, r.path, refuse)
			}
		}
	}
	// What matched no route.
	unrouted := m.of("other")
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		begin := time.Now()
		s.fail(c, err)
		unrouted.observe(c.Response().Status, begin)
	}
	return e
}

// knownMethods are those that Echo would answer in its own way where a path does not have them.
var knownMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

func (r route) refuse(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderAllow, r.allow())
	return echo.ErrMethodNotAllowed
}

// guard makes a handler answer its own errors and panics, and measures it.
func (s *service) guard(handle echo.HandlerFunc, seen *routeMetrics) echo.HandlerFunc {
	return func(c echo.Context) error {
		begin := time.Now()
		if err := s.call(handle, c); err != nil {
			s.fail(c, err)
		}
		seen.observe(c.Response().Status, begin)
		return nil
	}
}

func (s *service) call(handle echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			if value == http.ErrAbortHandler { //nolint:errorlint // the value itself is what net/http knows
				panic(value)
			}
			err = newPanicError(value)
		}
	}()
	return handle(c)
}

// visit counts a visit. HEAD and OPTIONS count none.
func (s *service) visit(c echo.Context) error {
	return s.answer(c, s.counter.Visit)
}

func (s *service) counts(c echo.Context) error {
	return s.answer(c, func(ctx context.Context, ask counter.Request) (visit.Answer, error) {
		ask.Anybody = ask.IP == "" && ask.Visitor == ""
		return s.counter.Counts(ctx, ask)
	})
}

// answer reads a request, asks, and writes the answer.
func (s *service) answer(c echo.Context, ask func(context.Context, counter.Request) (visit.Answer, error)) error {
	if c.Request().Method == http.MethodOptions {
		return s.preflight(c)
	}
	f, err := readFields(c)
	s.share(c, f.app.value)
	if err != nil {
		return err
	}
	answer, err := ask(c.Request().Context(), s.request(c, &f))
	if err != nil {
		return err
	}
	return write(c, answer)
}

func (s *service) alive(c echo.Context) error { return state(c, "alive") }

func (s *service) ready(c echo.Context) error {
	select {
	case <-s.stopping:
		return &visit.Error{Kind: visit.Unavailable, Message: "the service is shutting down"}
	default:
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyWithin)
	defer cancel()
	if err := s.counter.Ready(ctx); err != nil {
		return &visit.Error{Kind: visit.Unavailable, Message: "visits cannot be counted now", Err: err}
	}
	return state(c, "ready")
}
