package visit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
)

// Options of Open. The zero value of a field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // where the counter's metrics go; default: nowhere
	Clock   func() time.Time      // default time.Now
	Secret  Secret                // keys the visitors of apps that hash them; default: none, and these apps cannot count here

	// MaxWait is how long a visit may have to wait for its batch; one that would wait longer is refused. Default 2 s.
	MaxWait time.Duration

	// Helpers that save look-ups. They change no number.
	Filter       bool  // a filter of all visitors tells who is surely new
	FilterMemory int64 // bytes that the filter may take; default 256 MiB
	Memory       int64 // bytes for remembering recent visitors; default none
}

// Request is a visit, or a question about counts, as a caller states it.
type Request struct {
	App string
	URI string
	Key string // the key that the caller shows; "": none

	// Whom the caller asserts to have come: an address, and where the app knows visitors by ids, an id. With neither it is Peer.
	IP, Visitor string
	Asserts     bool       // one of them is named, be it empty or garbled
	Peer        netip.Addr // the address that the request came from
	Anybody     bool       // a question that names no visitor

	Garbled error // what is wrong with the way the fields above were written; it has its place in the order of checks

	Origin     string // of the page that asks, as a browser says; "": none said
	Agent      string // what the caller calls itself
	Prefetch   bool   // nobody has come yet
	DoNotTrack bool   // the visitor asks not to be tracked
}

// asserts reports whether the request says who came.
func (r *Request) asserts() bool { return r.Asserts || r.IP != "" || r.Visitor != "" }

// readPatience bounds what only reads: a question waits for a connection, too.
const readPatience = 5 * time.Second

// Counter counts visits, and answers. It is safe for concurrent use.
type Counter struct {
	db       *db.DB
	apps     *directory
	days     *dayKeys
	uses     *keyUses
	rates    *rates
	bots     *bots
	caches   *caches
	recorder *recorder
	upkeep   *upkeep
	metrics  *metrics
	secret   Secret
	clock    func() time.Time
}

// Open starts a counter on a migrated database. Close ends it; the database stays open.
func Open(ctx context.Context, d *db.DB, o Options) (*Counter, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.MaxWait == 0 {
		o.MaxWait = 2 * time.Second
	}
	if o.FilterMemory == 0 {
		o.FilterMemory = 256 << 20
	}
	c := &Counter{db: d, secret: o.Secret, clock: o.Clock, uses: &keyUses{}, rates: newRates(o.Clock), bots: newBots()}
	c.metrics = newMetrics(o.Metrics)
	c.caches = newCaches(d, o, c.metrics)
	c.days = newDayKeys(d, c.caches)
	c.upkeep = newUpkeep(d, o, c.days, c.uses)
	if err := c.upkeep.makeDays(ctx); err != nil {
		return nil, fmt.Errorf("open counter: %w", err)
	}
	apps, err := newDirectory(ctx, d, o)
	if err != nil {
		return nil, fmt.Errorf("open counter: %w", err)
	}
	c.apps = apps
	if _, err := c.caches.get(ctx); err != nil { // so that the filter begins to read the tables now, not with the first visit
		c.caches.close()
		c.apps.close()
		return nil, fmt.Errorf("open counter: %w", err)
	}
	c.recorder = newRecorder(d, c.caches, o, c.metrics)
	c.upkeep.start()
	return c, nil
}

// Close refuses new visits, waits until every accepted one has been answered, and stops what runs in the background.
func (c *Counter) Close() {
	c.recorder.close()
	c.caches.close()
	c.upkeep.close()
	c.apps.close()
}

// Visit counts a visit and returns its numbers once they have committed. One that is not counted on purpose gets the answer of Counts.
func (c *Counter) Visit(ctx context.Context, r Request) (Answer, error) {
	a, w, err := c.admit(ctx, &r, ScopeCount)
	if err != nil {
		return Answer{}, err
	}
	e := entry{app: a.id, countsBy: a.countsBy, target: w.target, visitor: w.visitor, day: w.day, newPages: a.limits.newPages.of(w.stranger)}
	if why := c.skips(a, &r, w); why != "" {
		c.metrics.uncounted.WithLabelValues(string(why)).Inc()
		answer, err := c.read(ctx, &e, true)
		answer.Skipped = why
		return answer, err
	}
	if now := c.caches.current.Load(); now != nil {
		now.lookUp(&e)
	}
	return c.recorder.record(e)
}

// Counts returns the numbers of a page and its site, counting nothing.
func (c *Counter) Counts(ctx context.Context, r Request) (Answer, error) {
	a, w, err := c.admit(ctx, &r, ScopeRead)
	if err != nil {
		return Answer{}, err
	}
	return c.read(ctx, &entry{app: a.id, target: w.target, visitor: w.visitor}, !r.Anybody)
}

// read reads the numbers of an entry's targets, with the visitor's ranks if they are asked for.
func (c *Counter) read(ctx context.Context, e *entry, ranks bool) (Answer, error) {
	ask := db.CountsGetParams{AppID: e.app, Uris: []string{e.target.Site, e.target.Page}}
	if ranks {
		ask.Ip = &e.visitor
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	var rows []db.CountsGetRow
	err := c.db.Read(ctx, func(q *db.Queries) (err error) {
		rows, err = q.CountsGet(ctx, ask)
		return err
	})
	if err != nil {
		return Answer{}, Errorf(Unavailable, "", "the database does not answer; try again").Because(err)
	}
	var a Answer
	for _, row := range rows {
		counts := Counts{PV: row.Pv, UV: row.Uv, Rank: row.Rank, Hot: row.Hot}
		if row.Uri == e.target.Site {
			a.Site = counts
		} else {
			a.Page = counts
		}
	}
	return a, nil
}

// Ready reports whether visits can be counted now.
func (c *Counter) Ready(ctx context.Context) error {
	var writes bool
	err := c.db.Read(ctx, func(q *db.Queries) (err error) { writes, err = q.ServerWrites(ctx); return err })
	switch {
	case err != nil:
		return fmt.Errorf("the database does not answer: %w", err)
	case !writes:
		return errors.New("the database takes no writes: it is a standby, or read-only")
	}
	return c.upkeep.ready(ctx)
}
