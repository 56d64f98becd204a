// Package handler is the HTTP edge of Footfall: it reads requests, asks a counter.Counter or a
// report.Reader, and writes the answers.
//
// A file is named after the call or the page that it answers: visit.go, visits.go, counts.go, badge.go,
// adminapi.go (/api/apps, /api/keys, /api/accounts), settings.go, … Each listener has one route table
// (routes.go), and one place turns errors into answers (errors.go).
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

// Options of Servers. The zero value of a field means its default; Cells and Accounts have none.
type Options struct {
	Log     *slog.Logger         // default: nothing is logged
	Metrics *prometheus.Registry // what /metrics shows, with the metrics of the public server; default: an empty one
	// Stopping is closed when the service begins to stop: from then on /readyz says so.
	Stopping <-chan struct{}
	// Proxies are believed when they name the client. Default: nobody is.
	Proxies *Proxies
	// CountryHeader is where these proxies name the country of the client. Default: nowhere.
	CountryHeader string
	// Accounts are those of people who sign in.
	Accounts *account.Accounts
	// SignInHeader is where trusted proxies say who has signed in with them. Default: nowhere.
	SignInHeader string
	// Cells have the apps that are served. Nobody changes apps over HTTP where the first of them has no Admin.
	Cells *routing.Cells
	// Zone is the time zone that is offered for a new site where no script tells the browser's. Default: UTC.
	Zone string
	// Help is what the shell says of its flags and arguments, by their names. Default: nothing.
	Help map[string]string
	// Dashboard tells whether the public server has pages for people.
	Dashboard bool
	// CountriesBy says who has made the file of countries, and under which licence, for the pages that
	// show countries. Default: there is no file.
	CountriesBy func() string
	// PublicURL is where people reach it, as https://count.example or, below a path that a proxy
	// takes off, https://blog.example/numbers. Default: as they ask.
	PublicURL string
	// Busuanzi is the app for which pages made for busuanzi count where several list their site, or
	// it counts every one. Default: none.
	Busuanzi string

	reportWait, reportWithin time.Duration // for a place for a report, and for its answer; default usualWait and usualWithin
	panelWithin              time.Duration // for a panel of a page that reads rows of visits; default usualPanel
	readyWithin              time.Duration // how long /readyz waits for the database; default usualReady
}

// Servers returns the public server, and that of the operator.
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
	o.Dashboard = false // which is on the public listener
	s := newService(o)
	s.routes = s.adminRoutes()
	return s.echo(newMetrics(prometheus.NewRegistry())) // which nobody reads
}

// service is what the handlers of one listener share. It does not change once its routes are
// served.
type service struct {
	Options
	desk   *intake.Desk
	tops   tops
	routes []route

	hasAccounts   atomic.Bool // there is an account. An owner stays, so this is never false again
	ownForms      *http.CrossOriginProtection
	root          string                 // the path where people reach the service, which a proxy takes off; "": there is none
	refusals      pause.Seldom[struct{}] // in the log
	unlistedProxy *unlistedProxy         // nil on the operator's listener, where nobody is counted
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
		_ = s.ownForms.AddTrustedOrigin(at.Scheme + "://" + at.Host) // as the form of the URL was checked
	}
	return s
}
