// Package counter decides who may count or read, and as which visitor: it admits visits and
// questions to the apps of package app.
package counter

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"footfall/counter/app"
	"footfall/db"
	"footfall/inbox"
	"footfall/record"
	"footfall/visit"
	"footfall/visit/country"
	"footfall/visit/tag"
)

// Options are those of Open. The counter shares the log, the metrics and the clock of its recorder.
type Options struct {
	record.Options
	Secret     app.Secret         // hashes visitors; default: none, and apps whose visitors are hashed cannot count here
	Countries  *country.Countries // where countries of addresses are found; default: nowhere
	InboxLimit int64              // how many visits the inbox may hold; default 10 million
}

// Request is a visit, or a question about counts, as a caller states it.
type Request struct {
	App string
	URI string

	Event   string // what is counted in place of a URI; "": a page
	OtherOf string // the site whose page (other) is counted if there is no URI

	Key string // the key that the caller shows; "": none

	MayLook func(app string) bool // what the caller is signed in for, in place of a key; nil: for nothing

	// The visitor that the caller asserts: an address, or an id where the app tells visitors apart
	// by ids. With neither, the visitor is Peer.
	IP, Visitor string
	ID          string     // makes a visit repeatable; "": none
	At          string     // when the visit was; "": now
	Title       string     // what the page calls itself; "": it is not told
	Referrer    string     // the page that the visitor comes from; "": none, or it is not known
	Language    string     // of the visitor, as the caller asserts, or the visitor's header Accept-Language; "": not given
	Country     string     // of the visitor, as the caller asserts; "": not given
	Tags        tag.Set    // of names of the app's own, as the caller asserts
	Browser     string     // the visitor's User-Agent, as the caller asserts; "": not given
	Later       bool       // it is enough that the visit is counted a moment later
	Asserts     bool       // IP or Visitor was given, even if it is empty or cannot be read
	Peer        netip.Addr // the address that the request came from
	Anybody     bool       // a question that names no visitor
	Counted     bool       // only what was counted is to be answered, without offsets
	Numbers     bool       // a visit that is sent for its numbers: without them it does not count
	With        With       // which numbers of the moment the answer includes

	ParseErr error // what is wrong with how the fields above were written; reported when the order of checks comes to it

	Origin     string // of the page that sends the request, as a browser tells it; "": none
	Agent      string // User-Agent
	Hints      tag.Hints
	Languages  string // Accept-Language
	Located    string // the country of Peer, as a trusted proxy says; "": it does not
	Prefetch   bool   // a browser fetches the page in case somebody asks for it
	DoNotTrack bool   // the visitor asks not to be tracked
}

// asserts reports whether the request names a visitor.
func (r *Request) asserts() bool { return r.Asserts || r.IP != "" || r.Visitor != "" || r.At != "" }

// isOfPage reports whether a page of a site sends the request, as a browser tells it, and the app lists that.
func (r *Request) isOfPage(a *app.App, site string) bool {
	return r.Title != "" && a.Lists(site) && app.SiteOfOrigin(r.Origin) == site
}

// target is what a request is about: the page of its URI, or its event.
func (r *Request) target(a *app.App) (visit.Target, error) {
	switch {
	case r.OtherOf != "" && r.URI == "":
		return visit.Target{Site: r.OtherOf, Page: r.OtherOf + visit.OtherPage}, nil
	case r.Event == "":
		return a.Target(r.URI)
	case r.URI != "":
		return visit.Target{}, visit.Errorf(visit.Invalid, "event", "it stands in place of uri: leave one of them out")
	}
	return visit.EventTarget(r.Event)
}

// shown is an answer as the caller is to see it: with the offsets of the app, unless only what was
// counted is asked for.
func (r *Request) shown(a *app.App, t visit.Target, answer visit.Answer) visit.Answer {
	if r.Counted {
		return answer
	}
	return a.Shown(t, answer)
}

// Counter counts visits, and answers. It is safe for concurrent use.
type Counter struct {
	db        *db.DB
	apps      *app.Directory
	days      *dayKeys
	uses      *keyUses
	rates     *rates
	bots      *bots
	refused   sync.Map // string → Refused: by the name of the app
	loaded    loads
	countries *country.Countries
	recorder  *record.Recorder
	inbox     *inbox.Inbox
	overflow  bool // visits that would wait for too long go there
	metrics   *metrics
	secret    app.Secret
	clock     func() time.Time
	log       *slog.Logger

	upkeep    sync.WaitGroup // keepUp
	endUpkeep context.CancelFunc
}

// Open starts a counter on a migrated database. Close ends it; the database stays open.
func Open(ctx context.Context, d *db.DB, o Options) (*Counter, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	rates := newRates(o.Clock)
	if o.Clock == nil {
		o.Clock = d.Now
	}
	recorder, err := record.Open(ctx, d, o.Options)
	if err != nil {
		return nil, fmt.Errorf("open counter: %w", err)
	}
	apps, err := app.Open(ctx, d, o.Log, o.Secret)
	if err != nil {
		recorder.Close()
		return nil, fmt.Errorf("open counter: %w", err)
	}
	c := &Counter{
		db: d, apps: apps, recorder: recorder, overflow: o.Overflow, secret: o.Secret, clock: o.Clock, log: o.Log, metrics: newMetrics(o.Metrics),
		days: newDayKeys(d, recorder), uses: &keyUses{}, rates: rates, bots: newBots(), countries: o.Countries,
		loaded: loads{at: map[string]time.Time{}},
	}
	c.inbox = inbox.Open(d, recorder, inbox.Options{Log: o.Log, Metrics: o.Metrics, Limit: o.InboxLimit})
	upkeep, end := context.WithCancel(context.WithoutCancel(ctx))
	c.endUpkeep = end
	c.upkeep.Go(func() { c.keepUp(upkeep, o.Calm) })
	return c, nil
}

// Close refuses new visits, waits until every accepted one has been answered, and stops what runs
// in the background.
func (c *Counter) Close() {
	c.inbox.Close()
	c.recorder.Close()
	c.endUpkeep()
	c.upkeep.Wait()
	c.apps.Close()
}

// Ready returns an error, which says why, unless visits can be counted now.
func (c *Counter) Ready(ctx context.Context) error { return c.recorder.Ready(ctx) }

// DaysLeft is for how many days after today visits can be counted, unless days are made, as Ready saw it last.
func (c *Counter) DaysLeft() int { return c.recorder.DaysLeft() }

// readInTime is DB.Read for a caller, who waits no longer than one statement may take.
func (c *Counter) readInTime(ctx context.Context, f func(q *db.Queries) error) error {
	ctx, cancel := c.db.InTime(ctx)
	defer cancel()
	if err := c.db.Read(ctx, f); err != nil {
		return visit.Unanswered(err)
	}
	return nil
}

// Register is all apps as they stand.
func (c *Counter) Register(ctx context.Context) (*app.Register, error) { return c.apps.Current(ctx) }

// Held is what Register returns, if that is in memory; nil: it is not, since the database is away, or was
// until now.
func (c *Counter) Held() *app.Register { return c.apps.Held() }

// AllowsOrigin reports whether a page of this origin may read the answers for an app; where name is
// "", for any app at all.
func (c *Counter) AllowsOrigin(ctx context.Context, name, origin string) bool {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return false
	}
	if name != "" {
		a := register.Apps[name]
		return a != nil && a.AllowsOrigin(origin)
	}
	site := app.SiteOfOrigin(origin)
	for _, a := range register.Apps {
		if site != "" && a.Counts(site) {
			return true
		}
	}
	return false
}

// metrics of a counter. No label bears an address or a URI.
type metrics struct {
	skipped *prometheus.CounterVec // by reason
	limited prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	make := promauto.With(r) // registers nowhere where r is nil
	return &metrics{
		skipped: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_visits_skipped_total",
			Help: "Visits that were not counted on purpose, by reason: prefetch, ignored, do-not-track, bot.",
		}, []string{"reason"}),
		limited: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_limited_total",
			Help: "Requests refused with 429: too many in a minute from one address.",
		}),
	}
}
