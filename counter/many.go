package counter

import (
	"context"
	"encoding/hex"
	"net/netip"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
	"footfall/visit/tag"
)

// Item is one visit of many, as a caller states it.
type Item struct {
	URI, Event, IP, Visitor, Agent, ID string

	Referrer, Language, Country string  // of the visitor; "": not given
	Tags                        tag.Set // of names of the app's own

	At time.Time // when it was; zero: now

	Bots bool // it counts, whatever its agent is
}

// Counting is the permission to count visits of an app by whomever the caller names. Its Visit is for
// one goroutine.
type Counting struct {
	counter *Counter
	app     *app.App
	calls   string // the source of calls with the caller's key, or callsOfAnybody
	counted bool   // only what was counted is to be answered
	keyless bool   // the caller shows no key, and is told what the app tells anybody

	firstDay int32 // of which the app takes visits, as it was read; 0: not yet
}

// callsOfAnybody is the source of calls without a key.
const callsOfAnybody = "calls"

// Visit reads an item: what is to be counted, or why it is not. An error of the kind Unavailable
// concerns more than the item. Where nothing is wrong but that its day is kept no longer, the visit
// comes beside the error: it may be one that was counted before.
func (g *Counting) Visit(ctx context.Context, item Item) (record.Visit, visit.Skipped, error) {
	c, a := g.counter, g.app
	r := Request{URI: item.URI, Event: item.Event, IP: item.IP, Visitor: item.Visitor, Browser: item.Agent, ID: item.ID,
		Referrer: item.Referrer, Language: item.Language, Country: item.Country, Tags: item.Tags}
	if !r.asserts() && a.Mode != app.ByID {
		return record.Visit{}, "", visit.Errorf(visit.Invalid, "ip", "it is missing: give the address of the visitor")
	}
	var w subject
	if err := c.identify(ctx, a, &r, item.At, &g.firstDay, &w); err != nil {
		return record.Visit{}, "", err
	}
	err := c.checkHeld(a)
	if err != nil {
		return record.Visit{}, "", err
	}
	if w.target, err = r.target(a); err != nil {
		return record.Visit{}, "", err
	}
	if w.tooOld != nil {
		return c.visitOf(a, &w, item.ID), "", w.tooOld
	}
	looked := w
	looked.byAgent(&r)
	if item.Bots {
		r.Agent = ""
	}
	if why := c.skips(a, &r, looked); why != "" {
		return record.Visit{}, why, nil
	}
	r.Agent = item.Agent
	v := c.visitOf(a, &w, item.ID)
	v.Tags = c.tags(a, &r, &w)
	return v, "", nil
}

// Known are those of some ids with which visits were counted before.
func (g *Counting) Known(ctx context.Context, ids []string) (map[string]bool, error) {
	return g.counter.countedIDs(ctx, g.app, ids...)
}

// Shown is the answer to a visit that the recorder has counted, as the caller is to see it.
func (g *Counting) Shown(v *record.Visit, answer visit.Answer) visit.Answer {
	answer.Untold = g.keyless && (!g.app.Tells() || v.Target.Site == visit.EventSite)
	if g.counted {
		return answer
	}
	return g.app.Shown(v.Target, answer)
}

// OpenCall returns how far the call with an Idempotency-Key (name) has been counted, whose body has
// this hash and so many items. Where callers show no key of an app, another body with the same name
// is another call, so that strangers cannot keep each other's visits from counting. "": the call has
// no name, and cannot come again.
func (g *Counting) OpenCall(ctx context.Context, name string, content [32]byte, items int) (*record.Position, error) {
	if name == "" {
		return record.OfItems(items), nil
	}
	if g.calls == callsOfAnybody {
		name += " " + hex.EncodeToString(content[:])
	}
	return g.counter.recorder.OpenCall(ctx, db.Position{App: g.app.ID, Source: g.calls, Part: name}, content, items)
}

// Numbers returns the present numbers of visits, as Counts does.
func (g *Counting) Numbers(ctx context.Context, visits []record.Visit) ([]visit.Answer, error) {
	ask := db.CountsOfVisitsParams{AppID: g.app.ID, Uris: make([]string, 0, 2*len(visits)), Ips: make([]netip.Addr, 0, 2*len(visits))}
	for i := range visits {
		v := &visits[i]
		ask.Uris = append(ask.Uris, v.Target.Site, v.Target.Page)
		ask.Ips = append(ask.Ips, v.Visitor, v.Visitor)
	}
	var rows []db.CountsOfVisitsRow
	if err := g.counter.readInTime(ctx, func(q *db.Queries) (err error) {
		if ask.Ips, err = personsOf(ctx, q, g.app, ask.Ips...); err != nil {
			return err
		}
		rows, err = q.CountsOfVisits(ctx, ask)
		return err
	}); err != nil {
		return nil, err
	}
	answers := make([]visit.Answer, len(visits))
	for _, row := range rows {
		numbers := visit.Counts{PV: row.Pv, UV: row.Uv, Rank: row.Rank, Hot: row.Hot}
		if place := row.Place - 1; place%2 == 0 {
			answers[place/2].Site = numbers
		} else {
			answers[place/2].Page = numbers
		}
	}
	for i := range answers {
		answers[i] = g.Shown(&visits[i], answers[i])
	}
	return answers, nil
}

// App is the app whose visits are counted.
func (g *Counting) App() *app.App { return g.app }

// DB is where they are counted.
func (g *Counting) DB() *db.DB { return g.counter.db }

// Recorder counts what Visit has read.
func (g *Counting) Recorder() *record.Recorder { return g.counter.recorder }

// OpenQueue returns how far a part of a queue was counted; up to its first message, if nobody has
// read it before.
func (g *Counting) OpenQueue(ctx context.Context, source, part string, first int64) (*record.Position, error) {
	return g.counter.recorder.OpenQueue(ctx, db.Position{App: g.app.ID, Source: source, Part: part}, first)
}

// LogKey is the key by which the logs of the app are known again; nil: its visitors are addresses, or
// were, and the tables have one. daily: hashes of visitors change each day, and so do those of lines.
func (g *Counting) LogKey(ctx context.Context) (key []byte, daily bool, err error) {
	if g.app.Mode == app.ByAddress || g.app.LogKey != nil {
		return nil, false, nil
	}
	if daily = g.app.Mode == app.ByDay; daily {
		_, err = g.counter.days.of(ctx, g.app.ID, visit.DayOf(g.counter.clock(), g.app.Zone), false) // made, if it was not
	}
	return g.counter.secret.LogKey(g.app.HashedFor()), daily, err
}
