package handler

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"footfall/embed"
	"footfall/report"
	"footfall/visit"
)

type route struct {
	path    string
	methods []string
	handle  echo.HandlerFunc
}

var (
	getOnly        = []string{http.MethodGet, http.MethodHead}
	postOnly       = []string{http.MethodPost}
	getOrPut       = []string{http.MethodGet, http.MethodHead, http.MethodPut}
	getOrPost      = []string{http.MethodGet, http.MethodHead, http.MethodPost}
	postOptions    = []string{http.MethodPost, http.MethodOptions}
	getPostOptions = []string{http.MethodGet, http.MethodPost, http.MethodHead,
		http.MethodOptions} // for CORS preflights
)

func (s *service) publicRoutes() []route {
	table := []route{
		{"/visit", getPostOptions, s.visit},
		{"/visits", postOnly, s.visits},
		{"/counts", getPostOptions, s.counts},
		{"/top", getOnly, s.top},
		{"/people", getOrPut, s.people},
		{"/people/lookup", postOnly, s.lookUpPeople},
		{embed.ScriptPath, getOnly, s.noteLoaded(script(embed.Count, scriptCache))},
		{"/count.:version", getOnly, s.noteLoaded(scriptVersion)},
		{"/livez", getOnly, s.alive},
		{"/readyz", getOnly, s.ready}, {"/healthz", getOnly, s.ready}, // /healthz is another common path for /readyz
	}
	table = append(append(table, (&busuanzi{s}).routes()...), (&leancloud{s}).routes()...)
	r := &reports{s}
	table = append(table, route{"/badge/:file", getOnly, r.badge})
	for _, k := range report.Reports {
		table = append(table, route{"/api/apps/:app/" + k.Name, getOnly, func(c echo.Context) error { return r.answer(c, k) }})
	}
	if s.Cells.Home().Admin != nil {
		table = append(table, (&adminAPI{s}).routes()...)
	}
	if s.Dashboard {
		table = append(table, r.dashboardFor(s.Cells.Home()).routes()...)
	}
	return append(table, route{"/openapi.json", getOnly, describe})
}

// adminRoutes returns the routes of the operator's listener, which serves metrics and profiles.
func (s *service) adminRoutes() []route {
	metrics := promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelError)})
	// own checks the Host header to prevent DNS rebinding: a page in an operator's browser could point its own host name to the
	// address of this listener, and read the responses.
	own := func(h http.Handler, isOwn func(host string) bool) echo.HandlerFunc {
		return func(c echo.Context) error {
			if !isOwn(c.Request().Host) {
				return visit.Errorf(visit.Forbidden, "Host",
					"this is shown only under this machine's own name or address: request http://127.0.0.1… or http://localhost…")
			}
			h.ServeHTTP(c.Response(), c.Request())
			return nil
		}
	}
	profile := func(h http.HandlerFunc) echo.HandlerFunc { return own(h, namesThisMachine) }
	return []route{
		{"/livez", getOnly, s.alive},
		{"/readyz", getOnly, s.ready},
		{"/metrics", getOrPost, own(metrics, s.namesThisService)},
		{"/debug/pprof/cmdline", getOrPost, profile(pprof.Cmdline)},
		{"/debug/pprof/profile", getOrPost, profile(pprof.Profile)},
		{"/debug/pprof/symbol", getOrPost, profile(pprof.Symbol)},
		{"/debug/pprof/trace", getOrPost, profile(pprof.Trace)},
		{"/debug/pprof/*", getOrPost, profile(pprof.Index)},
	}
}

// hostName returns a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// namesThisService reports whether a Host header contains a name of this machine, or the host in --public-url. It also accepts
// names that cannot exist on the internet, such as the service names of containers and clusters.
func (s *service) namesThisService(host string) bool {
	name, own := strings.ToLower(hostName(host)), ""
	if at, err := url.Parse(s.PublicURL); err == nil {
		own = strings.ToLower(at.Hostname())
	}
	return namesThisMachine(host) || name != "" && (name == own || !strings.Contains(name, ".")) ||
		slices.ContainsFunc([]string{".local", ".internal", ".svc"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// namesThisMachine reports whether a Host header contains any IP address, localhost, or the name of this machine. An attacker's
// page cannot use these names for DNS rebinding.
func namesThisMachine(host string) bool {
	host = hostName(host)
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	own, err := os.Hostname()
	return strings.EqualFold(host, "localhost") || err == nil && strings.EqualFold(host, own)
}

// echo returns a handler that serves s.routes. It uses no middleware, because Echo rebuilds the chain for each request.
func (s *service) echo(m *metrics) http.Handler {
	e := echo.New()
	for _, r := range s.routes {
		e.Match(knownMethods, r.path, s.guard(func(c echo.Context) error {
			if !slices.Contains(r.methods, c.Request().Method) {
				return echo.ErrMethodNotAllowed
			}
			return r.handle(c)
		}, m.forRoute(r.path)))
	}
	unrouted := m.forRoute("other")
	e.HTTPErrorHandler = func(err error, c echo.Context) { // only for requests that match no route
		begin := time.Now()
		if !s.notFoundPage(c, err) {
			s.fail(c, err)
		}
		unrouted.observe(c.Response().Status, begin)
	}
	return e
}

// knownMethods are the methods that are registered in Echo for every route. So Footfall itself, and not Echo, writes the error
// for a method that a route does not support.
var knownMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

func (r route) allow() string { return strings.Join(r.methods, ", ") }

// guard returns a handler that calls handle, writes an error response if handle fails or panics, and records metrics.
func (s *service) guard(handle echo.HandlerFunc, seen *routeMetrics) echo.HandlerFunc {
	return func(c echo.Context) error {
		begin := time.Now()
		if err := call(handle, c); err != nil {
			s.fail(c, err)
		}
		seen.observe(c.Response().Status, begin)
		return nil
	}
}

func call(handle echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			if value == http.ErrAbortHandler { //nolint:errorlint // net/http compares this value
				panic(value)
			}
			err = &panicError{value, debug.Stack()}
		}
	}()
	return handle(c)
}
