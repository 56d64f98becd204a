package visit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/db"
)

// Options of Open. The zero value of a field means its default.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // where the counter's metrics go; default: nowhere
	Clock   func() time.Time      // default time.Now

	// Lanes write batches side by side; the pages of one site share a lane. Default: one a processor, at most 4.
	Lanes int
	// MaxWait is how long a visit may have to wait for its batch; one that would wait longer is refused. Default 2 s.
	MaxWait time.Duration

	// Helpers that save work. They change no number, but for FilterApprox.
	Filter       FilterMode
	FilterError  float64 // how often the filter may take a new visitor for a known one; default 0.001
	FilterMemory int64   // bytes that the filter may take; default 256 MiB
	Memory       int64   // bytes for remembering recent visitors; default none
}

// Request is a visit, or a question about counts, as a caller states it.
type Request struct {
	App     string
	URI     string
	IP      string // the address that the caller asserts; "" for Peer
	Peer    string // the address that the request came from
	Anybody bool   // a question that names no visitor
	Garbled error  // what is wrong with the way IP or URI was written; it has its place in the order of checks
}

// readPatience bounds what only reads: a question waits for a connection, too.
const readPatience = 5 * time.Second

// Counter counts visits, and answers. It is safe for concurrent use.
type Counter struct {
	db       *db.DB
	apps     *directory
	know     *knowledge
	recorder *recorder
	upkeep   *upkeep
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
	if o.Lanes == 0 {
		o.Lanes = DefaultLanes()
	}
	if o.MaxWait == 0 {
		o.MaxWait = 2 * time.Second
	}
	if o.FilterError == 0 {
		o.FilterError = 0.001
	}
	if o.FilterMemory == 0 {
		o.FilterMemory = 256 << 20
	}
	c := &Counter{db: d, clock: o.Clock}
	c.upkeep = newUpkeep(d, o)
	if err := c.upkeep.makeDays(ctx); err != nil {
		return nil, fmt.Errorf("open counter: %w", err)
	}
	apps, err := newDirectory(ctx, d, o.Log)
	if err != nil {
		return nil, fmt.Errorf("open counter: %w", err)
	}
	c.apps = apps
	m := newMetrics(o.Metrics)
	c.know = newKnowledge(d, o, m)
	if _, err := c.know.get(ctx); err != nil { // so that the filter begins to read the tables now, not with the first visit
		c.know.close()
		c.apps.close()
		return nil, fmt.Errorf("open counter: %w", err)
	}
	c.recorder = newRecorder(d, c.know, o, m)
	c.upkeep.start()
	return c, nil
}

// DefaultLanes is how many lanes a Counter has unless told otherwise.
func DefaultLanes() int { return min(4, runtime.GOMAXPROCS(0)) }

// Close refuses new visits, waits until every accepted one has been answered, and stops what runs in the background.
func (c *Counter) Close() {
	c.recorder.close()
	c.know.close()
	c.upkeep.close()
	c.apps.close()
}

// Visit counts a visit and returns its numbers once they have committed.
func (c *Counter) Visit(ctx context.Context, r Request) (Answer, error) {
	e, err := c.read(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	if known := c.know.current.Load(); known != nil {
		known.recognize(&e)
	}
	return c.recorder.record(e)
}

// Counts returns the numbers of a page and its site, counting nothing.
func (c *Counter) Counts(ctx context.Context, r Request) (Answer, error) {
	e, err := c.read(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	ask := db.CountsGetParams{AppID: e.app, Uris: []string{e.target.Site, e.target.Page}}
	if !r.Anybody {
		ask.Ip = &e.visitor
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	var rows []db.CountsGetRow
	err = c.db.Read(ctx, func(q *db.Queries) (err error) {
		rows, err = q.CountsGet(ctx, ask)
		return err
	})
	if err != nil {
		return Answer{}, unavailable(err, "the database does not answer; try again")
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
	writes, err := c.db.ServerWrites(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the database does not answer: %w", err)
	case !writes:
		return errors.New("the database takes no writes: it is a standby, or read-only")
	}
	return c.upkeep.ready(ctx)
}

// read checks a request, in the order that the contract gives, and turns it into what is counted.
func (c *Counter) read(ctx context.Context, r Request) (entry, error) {
	app, err := c.apps.get(ctx, r.App)
	if err != nil {
		return entry{}, err
	}
	if r.IP != "" && !app.open {
		return entry{}, &Error{Kind: Forbidden, Message: fmt.Sprintf(
			"ip: app %s counts the address that a request comes from: leave ip out, or make the app open with `footfall app set %s --open`",
			app.name, app.name)}
	}
	if r.Garbled != nil {
		return entry{}, r.Garbled
	}
	visitor, err := app.visitor(r)
	if err != nil {
		return entry{}, err
	}
	if r.URI == "" {
		return entry{}, invalid(&InputError{Field: "uri", Problem: "it is missing: give the address of the page, http://…"})
	}
	target, err := Normalize(r.URI, app.keepQuery)
	if err != nil {
		return entry{}, invalid(err)
	}
	if !app.counts(target.Site) {
		return entry{}, &Error{Kind: Forbidden, Message: fmt.Sprintf(
			"uri: app %s does not count the site %s: list it with `footfall app set %s --site %s`", app.name, target.Site, app.name, target.Site)}
	}
	return entry{app: app.id, target: target, visitor: visitor, day: DayOf(c.clock(), app.zone)}, nil
}

// visitor is who came: whom the caller names, or else the caller.
func (a *app) visitor(r Request) (netip.Addr, error) {
	switch {
	case r.Anybody:
		return netip.Addr{}, nil
	case r.IP == "":
		return visitorOf(r.Peer, a.ipv6Prefix)
	}
	return visitorOf(r.IP, a.ipv6Prefix)
}

func visitorOf(address string, ipv6Prefix int) (netip.Addr, error) {
	visitor, err := VisitorOf(address, ipv6Prefix)
	if err != nil {
		return netip.Addr{}, invalid(err)
	}
	return visitor, nil
}

func invalid(err error) error {
	var input *InputError
	if errors.As(err, &input) {
		return &Error{Kind: Invalid, Message: input.Error()}
	}
	return &Error{Kind: Invalid, Message: "the request could not be read", Err: err}
}
