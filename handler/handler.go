// Package handler is the HTTP edge of Footfall: it reads requests, asks a counter.Counter or a
// report.Reader, and writes the answers.
//
// A file is named after the call that it answers: visit.go, visits.go, counts.go, badge.go, … Each
// listener has one route table (routes.go), and one place turns errors into answers (errors.go).
package handler

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/account"
	"footfall/admin"
	"footfall/counter"
	"footfall/handler/lead"
	"footfall/intake"
	"footfall/pause"
	"footfall/report"
)

// Options of Servers. The zero value of a field means its default; Reports and Accounts have none.
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
	// Cells are those that are served, beside what the counter counts in. Default: none.
	Cells *lead.Cells
	// Reports reads what /api/apps/… answers.
	Reports *report.Reader
	// Zone is the time zone that is offered for a new site where no script tells the browser's. Default: UTC.
	Zone string
	// Admin changes apps. Default: nobody does so over HTTP.
	Admin *admin.Admin
	// Help is what the shell says of its flags and arguments, by their names. Status is what footfall
	// status prints. Default: nothing.
	Help   map[string]string
	Status func(context.Context) (string, error)
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
func Servers(c *counter.Counter, o Options) (public, admin *http.Server) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return newServer(publicHandler(c, o), o.Log), newServer(adminHandler(c, o), o.Log)
}

func publicHandler(c *counter.Counter, o Options) http.Handler {
	s := newService(c, o)
	s.routes = s.publicRoutes()
	s.unlistedProxy = newUnlistedProxy(s.Log, s.Metrics)
	return s.echo(newMetrics(s.Metrics))
}

func adminHandler(c *counter.Counter, o Options) http.Handler {
	o.Dashboard = false // which is on the public listener
	s := newService(c, o)
	s.routes = s.adminRoutes()
	return s.echo(newMetrics(prometheus.NewRegistry())) // which nobody reads
}

// service is what the handlers of one listener share. It does not change once its routes are
// served.
type service struct {
	Options
	counter *counter.Counter // of the database with the accounts
	desk    *intake.Desk
	routes  []route

	ownForms      *http.CrossOriginProtection
	root          string                 // the path where people reach the service, which a proxy takes off; "": there is none
	refusals      pause.Seldom[struct{}] // in the log
	unlistedProxy *unlistedProxy         // nil on the operator's listener, where nobody is counted
}

func newService(c *counter.Counter, o Options) *service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or(o.Metrics, prometheus.NewRegistry())
	o.Zone = cmp.Or(o.Zone, "UTC")
	o.readyWithin = cmp.Or(o.readyWithin, usualReady)
	o.reportWait, o.reportWithin = cmp.Or(o.reportWait, usualWait), cmp.Or(o.reportWithin, usualWithin)
	o.panelWithin = cmp.Or(o.panelWithin, usualPanel)
	if o.Cells == nil {
		o.Cells = lead.One(&lead.Cell{Counter: c, Admin: o.Admin, Reports: o.Reports, Status: o.Status})
	}
	s := &service{Options: o, counter: c, desk: intake.NewDesk(), refusals: pause.Seldom[struct{}]{Every: time.Second}}
	s.ownForms = http.NewCrossOriginProtection()
	if at, err := url.Parse(o.PublicURL); err == nil && at.Host != "" {
		s.root = at.Path
		_ = s.ownForms.AddTrustedOrigin(at.Scheme + "://" + at.Host) // as the form of the URL was checked
	}
	return s
}
