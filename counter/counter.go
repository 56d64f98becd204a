// Package counter decides who may count or read, and as which visitor: it admits visits and
// questions to the apps of package app.
package counter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
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

	Event string // what is counted in place of a URI; "": a page

	Key string // the key that the caller shows; "": none

	Session string // what a browser shows in place of a key: SignIn gives it; "": none

	// The visitor that the caller asserts: an address, or an id where the app tells visitors apart
	// by ids. With neither, the visitor is Peer.
	IP, Visitor string
	ID          string     // makes a visit repeatable; "": none
	At          string     // when the visit was; "": now
	Referrer    string     // the page that the visitor comes from; "": none, or it is not known
	Language    string     // of the visitor, as the caller asserts, or the visitor's header Accept-Language; "": not given
	Country     string     // of the visitor, as the caller asserts; "": not given
	Tags        tag.Set    // of names of the app's own, as the caller asserts
	Later       bool       // it is enough that the visit is counted a moment later
	Asserts     bool       // IP or Visitor was given, even if it is empty or cannot be read
	Peer        netip.Addr // the address that the request came from
	Anybody     bool       // a question that names no visitor
	Counted     bool       // only what was counted is to be answered, without offsets

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

// target is what a request is about: the page of its URI, or its event.
func (r *Request) target(a *app.App) (visit.Target, error) {
	switch {
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
	}
	c.inbox = inbox.Open(d, recorder, inbox.Options{Log: o.Log, Metrics: o.Metrics, Limit: o.InboxLimit})
	upkeep, end := context.WithCancel(context.WithoutCancel(ctx))
	c.endUpkeep = end
	c.upkeep.Go(func() { c.keepUp(upkeep) })
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

// Visit counts a visit and returns its numbers once they have committed. A visit that is not
// counted on purpose gets the answer of Counts.
func (c *Counter) Visit(ctx context.Context, r Request) (visit.Answer, error) {
	a, w, err := c.admit(ctx, &r, app.ScopeCount)
	if err != nil {
		return visit.Answer{}, err
	}
	answer, err := c.count(ctx, a, &r, &w)
	return r.shown(a, w.target, answer), err
}

// count counts a visit that is admitted, unless it is to be skipped, or was counted before.
func (c *Counter) count(ctx context.Context, a *app.App, r *Request, w *subject) (visit.Answer, error) {
	if w.repeated {
		return c.answerRepeated(ctx, a, w), nil
	}
	if why := c.skips(a, r, *w); why != "" {
		answer, err := c.read(ctx, a, w.target, &w.visitor)
		answer.Skipped = why
		return answer, err
	}
	v := c.visitOf(a, w, r.ID)
	if r.asserts() { // headers say nothing of whom the caller names
		r.Agent, r.Hints, r.Languages, r.Located = "", tag.Hints{}, "", ""
	}
	v.Tags = c.tags(a, r, w)
	if r.Later {
		return c.later(v)
	}
	answer, err := c.recorder.Record(v)
	if c.overflow && errors.Is(err, record.ErrOverloaded) {
		return c.later(v)
	}
	switch {
	case errors.Is(err, record.ErrRepeated):
		return c.answerRepeated(ctx, a, w), nil
	case errors.Is(err, record.ErrNumbersLost):
		return visit.Answer{NoNumbers: true}, nil
	}
	return answer, err
}

// answerRepeated answers a visit that was counted before with the numbers of now, if these can be
// read.
func (c *Counter) answerRepeated(ctx context.Context, a *app.App, w *subject) visit.Answer {
	answer, err := c.read(ctx, a, w.target, &w.visitor)
	answer.Repeated, answer.NoNumbers = true, err != nil
	return answer
}

// later has a visit counted later, and returns when it is accepted.
func (c *Counter) later(v record.Visit) (visit.Answer, error) {
	if err := c.inbox.Put(v); err != nil {
		return visit.Answer{}, err
	}
	answer, known := c.recorder.LastNumbers(v)
	answer.Later, answer.Known = true, known
	return answer, nil
}

// visitOf is the visit that a request is about. id: "" if it has none.
func (c *Counter) visitOf(a *app.App, w *subject, id string) record.Visit {
	v := record.Visit{
		App: a.ID, CountsBy: a.CountsBy, Target: w.target, Visitor: w.visitor, Day: w.day, When: w.when,
		NewPages: a.MostNewPages(w.untrusted), ID: id,
	}
	if a.Mode == app.ByDay && w.when != record.Past && !w.badge {
		address := w.address
		v.VisitorOn = func(ctx context.Context, day int32) (netip.Addr, error) {
			key, err := c.days.of(ctx, day, false)
			if err != nil {
				return netip.Addr{}, err
			}
			return a.VisitorByAddress(c.secret, address, key)
		}
	}
	return v
}

// tags reads what else a visit brings, as far as the app counts it.
func (c *Counter) tags(a *app.App, r *Request, w *subject) func() tag.Set {
	t := tag.Request{URI: r.URI, Site: w.target.Site, Referrer: r.Referrer, Languages: cmp.Or(r.Language, r.Languages), Country: cmp.Or(tag.CountryOf(r.Country), tag.CountryOf(r.Located)), At: w.at, Zone: a.Zone, Own: r.Tags}
	agent, hints, address := r.Agent, r.Hints, w.address
	return func() tag.Set {
		if len(a.Tags) == 1 {
			return tag.Set{{Name: tag.Hour, Value: tag.HourOf(t.At, t.Zone)}}
		}
		if agent != "" {
			t.Agent = c.bots.of(agent).agent.With(hints)
		}
		if t.Country == "" {
			t.Country = c.countries.Of(address)
		}
		return slices.DeleteFunc(tag.Read(t), func(brought tag.Tag) bool { return !slices.Contains(a.Tags, brought.Name) })
	}
}

// Ready returns an error, which says why, unless visits can be counted now.
func (c *Counter) Ready(ctx context.Context) error { return c.recorder.Ready(ctx) }

// readInTime is DB.Read for a caller, who waits no longer than one statement may take.
func (c *Counter) readInTime(ctx context.Context, f func(q *db.Queries) error) error {
	ctx, cancel := c.db.InTime(ctx)
	defer cancel()
	if err := c.db.Read(ctx, f); err != nil {
		return visit.Unanswered(err)
	}
	return nil
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
