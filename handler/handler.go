// Package handler serves HTTP. It parses requests, calls a counter.Counter, a report.Reader or an admin.Admin, and writes the
// responses.
//
// A file is named after the call or the page that it serves: visit.go, visits.go, counts.go, badge.go, adminapi.go
// (/api/apps, /api/keys, /api/accounts), settings.go and so on. Each listener has one route table (routes.go). errors.go maps
// errors to statuses and messages.
package handler

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/account"
	"footfall/handler/routing"
	"footfall/intake"
	"footfall/pause"
)

// Options are the options of Servers. The zero value of a field selects its default. Cells and Accounts are required.
type Options struct {
	Log     *slog.Logger         // default: discards everything
	Metrics *prometheus.Registry // shown at /metrics; the public server adds its own metrics to it; default: an empty registry
	// Stopping is closed when the service starts to shut down. From then on /readyz reports the shutdown.
	Stopping <-chan struct{}
	// Proxies are the trusted proxies, which send the client's address in a header. Default: none.
	Proxies *Proxies
	// CountryHeader is the header in which trusted proxies send the client's country. Default: none.
	CountryHeader string
	// Accounts manages the accounts that can sign in to the dashboard.
	Accounts *account.Accounts
	// SignInHeader is the header in which trusted proxies send the signed-in user. Default: none.
	SignInHeader string
	// Cells are the databases with the apps. If the home database has no Admin, apps cannot be changed over HTTP.
	Cells *routing.Cells
	// Zone is the time zone suggested on the page /new if the page's script cannot detect the browser's time zone. Default: UTC.
	Zone string
	// Help has the command line's help texts for flags and arguments, by name. Default: empty.
	Help map[string]string
	// Dashboard enables the HTML pages on the public server.
	Dashboard bool
	// CountriesBy returns the author and licence of the country database, for pages that show countries. Default: no country
	// database.
	CountriesBy func() string
	// PublicURL is the public address, such as https://count.example, or https://blog.example/numbers if a proxy removes a path.
	// Default: derived from each request.
	PublicURL string
	// Busuanzi is the preferred app for pages made for the page counter busuanzi. This app counts these pages on all sites that it
	// may count. On other sites, the app that lists the site counts the pages. Default: none.
	Busuanzi string

	reportWait, reportWithin time.Duration // limits of a report's wait and of its duration; default usualWait and usualWithin
	panelWithin              time.Duration // time limit for a page's panel that reads rows of visits; default usualPanel
	readyWithin              time.Duration // time limit for the database check of /readyz; default usualReady
}

// Servers returns the public server and the operator's server, which serves metrics and profiles.
func Servers(o Options) (public, admin *http.Server) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return newServer(publicHandler(o), o.Log), newServer(adminHandler(o), o.Log)
}

func publicHandler(o Options) http.Handler {
	s := newService(o)
	s.routes = s.publicRoutes()
	s.unlistedProxy = newUnlistedProxy(s.Log, s.Metrics)
	return s.echo(newMetrics(s.Metrics))
}

func adminHandler(o Options) http.Handler {
	o.Dashboard = false // the dashboard is only on the public listener
	s := newService(o)
	s.routes = s.adminRoutes()
	return s.echo(newMetrics(prometheus.NewRegistry())) // a separate registry: /metrics does not show this listener's metrics
}

// service is shared by all handlers of one listener. Once the listener serves requests, only those fields change that are safe
// for concurrent use.
type service struct {
	Options
	desk   *intake.Desk
	tops   tops
	routes []route

	hasAccounts   atomic.Bool // whether an account exists; never becomes false again, because the only owner cannot be removed
	ownForms      *http.CrossOriginProtection
	root          string                 // path of the public URL, which a proxy removes from requests; "": none
	refusals      pause.Seldom[struct{}] // limits how often requests that fail with status 503 are logged
	unlistedProxy *unlistedProxy         // nil on the operator's listener, which counts no visits
}

func newService(o Options) *service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or(o.Metrics, prometheus.NewRegistry())
	o.Zone = cmp.Or(o.Zone, "UTC")
	o.readyWithin = cmp.Or(o.readyWithin, usualReady)
	o.reportWait, o.reportWithin = cmp.Or(o.reportWait, usualWait), cmp.Or(o.reportWithin, usualWithin)
	o.panelWithin = cmp.Or(o.panelWithin, usualPanel)
	s := &service{Options: o, desk: intake.NewDesk(), refusals: pause.Seldom[struct{}]{Every: time.Second}}
	s.ownForms = http.NewCrossOriginProtection()
	if at, err := url.Parse(o.PublicURL); err == nil && at.Host != "" {
		s.root = at.Path
		_ = s.ownForms.AddTrustedOrigin(at.Scheme + "://" + at.Host) // returns no error, because the URL was checked at the start
	}
	return s
}
