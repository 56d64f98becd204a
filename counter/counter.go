// Package counter counts visits, and reads the numbers of pages, sites and events. It checks that the caller is allowed to
// count or read, and identifies the visitor. Package app has the apps and their settings. Package record writes the visits.
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

// Options are the settings of a Counter. The counter and its recorder use the same log, metrics and clock: those in
// record.Options.
type Options struct {
	record.Options
	Secret     app.Secret         // the key for hashing visitors; without it, apps with hashed visitors cannot count
	Countries  *country.Countries // finds the country of an address; nil: visits get no country from the address
	InboxLimit int64              // maximum number of visits in the inbox; default 10 million
}

// Request is a visit to count, or a query for numbers, as the caller sent it.
type Request struct {
	App string
	URI string

	Event         string // the event that the request is about; "": the request is about a page
	OtherPageSite string // if URI is empty, the request is about the page (other) of this site, which sums pages beyond the limit

	Key string // the caller's key; "": none

	MayLook func(app string) bool // reports whether the signed-in caller may see an app; nil: the caller is not signed in

	// Visitor identifies the visitor in apps that identify visitors by id, and IP in all other apps. If both are empty, the
	// visitor's address is Peer.
	IP, Visitor  string
	ID           string       // the caller's id of the visit, so that a visit that is sent several times counts once; "": none
	At           string       // the visit's time; "": now
	Title        string       // the page's title; "": not sent
	Referrer     string       // the page that linked to the visited page; "": none, or unknown
	Language     string       // the visitor's language, or the visitor's header Accept-Language, sent by the caller; "": not sent
	Country      string       // the visitor's country, sent by the caller; "": not sent
	Tags         tag.Set      // the app's own tags, sent by the caller
	Browser      string       // the visitor's User-Agent, sent by the caller; "": not sent
	CountLater   bool         // put the visit into the inbox, to be counted later
	HasVisitor   bool         // IP or Visitor was sent, even if it is empty or invalid
	Peer         netip.Addr   // the address of the client that sent the request
	HasNoVisitor bool         // the query is not about a visitor
	OnlyCounted  bool         // return only numbers counted by Footfall, without offsets (imported numbers)
	NeedsNumbers bool         // refuse the visit if its numbers are hidden from the caller
	Extra        ExtraNumbers // the current numbers to include in the answer

	ParseErr error // why a field above is invalid; reported only after the app and the key were checked

	Origin      string // header Origin of the page that sends the request, set by the browser; "": none
	Agent       string // the request's header User-Agent
	Hints       tag.Hints
	Languages   string // the request's header Accept-Language
	PeerCountry string // the country of Peer according to a trusted proxy; "": unknown
	Prefetch    bool   // the browser prefetches the page
	DoNotTrack  bool   // the browser asks not to be tracked
}

// asserts reports whether the request specifies a visitor or a time.
func (r *Request) asserts() bool { return r.HasVisitor || r.IP != "" || r.Visitor != "" || r.At != "" }

// isOfPage reports whether a page of the site sent the request, with a title. The header Origin must name the site, and the
// app must list it.
func (r *Request) isOfPage(a *app.App, site string) bool {
	return r.Title != "" && a.Lists(site) && app.SiteOfOrigin(r.Origin) == site
}

// target returns the page or event that the request is about.
func (r *Request) target(a *app.App) (visit.Target, error) {
	switch {
	case r.OtherPageSite != "" && r.URI == "":
		return visit.Target{Site: r.OtherPageSite, Page: r.OtherPageSite + visit.OtherPage}, nil
	case r.Event == "":
		return a.Target(r.URI)
	case r.URI != "":
		return visit.Target{}, visit.Errorf(visit.Invalid, "event", "it replaces uri: leave one of them out")
	}
	return visit.EventTarget(r.Event)
}

// addOffsets adds the app's offsets (imported numbers) to an answer about the target t, unless the caller wants only counted
// numbers.
func (r *Request) addOffsets(a *app.App, t visit.Target, answer visit.Answer) visit.Answer {
	if r.OnlyCounted {
		return answer
	}
	return a.AddOffsets(t, answer)
}

// Counter counts visits and answers queries. It is safe for concurrent use.
type Counter struct {
	db        *db.DB
	apps      *app.Directory
	days      *dayKeys
	uses      *keyUses
	rates     *rates
	bots      *bots
	refused   sync.Map // app name → RefusedVisit
	loaded    scriptLoads
	countries *country.Countries
	recorder  *record.Recorder
	inbox     *inbox.Inbox
	overflow  bool // visits that would wait too long in the recorder go to the inbox
	metrics   *metrics
	secret    app.Secret
	clock     func() time.Time
	log       *slog.Logger

	upkeep    sync.WaitGroup // runs keepUp
	endUpkeep context.CancelFunc
}

// Open starts a counter on a database whose schema is up to date. Close stops the counter, but leaves the database open.
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
		loaded: scriptLoads{lastLoads: map[string]time.Time{}},
	}
	c.inbox = inbox.Open(d, recorder, inbox.Options{Log: o.Log, Metrics: o.Metrics, Limit: o.InboxLimit})
	upkeep, end := context.WithCancel(context.WithoutCancel(ctx))
	c.endUpkeep = end
	c.upkeep.Go(func() { c.keepUp(upkeep, o.Calm) })
	return c, nil
}

// Close refuses new visits, waits until all accepted visits are answered, and stops the background work.
func (c *Counter) Close() {
	c.inbox.Close()
	c.recorder.Close()
	c.endUpkeep()
	c.upkeep.Wait()
	c.apps.Close()
}

// Ready returns an error with the reason if visits cannot be counted now.
func (c *Counter) Ready(ctx context.Context) error { return c.recorder.Ready(ctx) }

// DaysLeft returns how many consecutive days after today have partitions of the table visits. Ready and the recorder's
// upkeep update this number.
func (c *Counter) DaysLeft() int { return c.recorder.DaysLeft() }

// readInTime calls DB.Read with the time limit of one statement.
func (c *Counter) readInTime(ctx context.Context, f func(q *db.Queries) error) error {
	ctx, cancel := c.db.InTime(ctx)
	defer cancel()
	if err := c.db.Read(ctx, f); err != nil {
		return visit.Unanswered(err)
	}
	return nil
}

// Register returns the current register of apps.
func (c *Counter) Register(ctx context.Context) (*app.Register, error) { return c.apps.Current(ctx) }

// CachedRegister returns the register of apps in memory, or nil while this instance does not watch the database for changes.
func (c *Counter) CachedRegister() *app.Register { return c.apps.Register() }

// AllowsOrigin reports whether scripts in pages of an origin may read responses about an app (CORS). If name is "", they
// may read them if any app counts the origin's site.
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

// metrics are the Prometheus metrics of a counter. No label contains an address or a URI.
type metrics struct {
	skipped *prometheus.CounterVec // by reason
	limited prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	make := promauto.With(r) // a nil r registers nothing
	return &metrics{
		skipped: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_visits_skipped_total",
			Help: "Visits that were intentionally not counted, by reason: prefetch, ignored, do-not-track, bot.",
		}, []string{"reason"}),
		limited: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_limited_total",
			Help: "Requests refused with 429: too many in a minute from one address.",
		}),
	}
}
