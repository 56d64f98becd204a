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

// Item is one of many visits, as the caller sent it.
type Item struct {
	URI, Event, IP, Visitor, Agent, ID string

	Referrer, Language, Country string  // of the visitor; "": not sent
	Tags                        tag.Set // the app's own tags

	At time.Time // the visit's time; zero: now

	Bots bool // count the visit even if Agent belongs to a bot
}

// Counting is the permission to count visits of an app for any visitors. Only one goroutine at a time may call Visit.
type Counting struct {
	counter     *Counter
	app         *app.App
	callSource  string // the source (db.Position.Source) of calls with the caller's key, or callsOfAnybody
	onlyCounted bool   // return only counted numbers, without offsets
	keyless     bool   // the caller has no key and sees only public numbers

	firstDay int32 // first day for which the app accepts visits; 0: not read yet
}

// callsOfAnybody is the source (db.Position.Source) of all calls without a key.
const callsOfAnybody = "calls"

// Visit validates an item. It returns the visit to count, or the reason to skip it. An error of the kind visit.Unavailable
// is not caused by this item, and affects other items, too. If the only problem is that the item's day is no longer kept,
// Visit returns both the visit and the error. The caller can then check whether the visit was counted before.
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
		return c.newVisit(a, &w, item.ID), "", w.tooOld
	}
	botSubject := w
	botSubject.trustAgent(&r)
	if item.Bots {
		r.Agent = ""
	}
	if why := c.skips(a, &r, botSubject); why != "" {
		return record.Visit{}, why, nil
	}
	r.Agent = item.Agent
	v := c.newVisit(a, &w, item.ID)
	v.Tags = c.tags(a, &r, &w)
	return v, "", nil
}

// FindCounted returns which of the ids belong to visits that were counted before.
func (g *Counting) FindCounted(ctx context.Context, ids []string) (map[string]bool, error) {
	return g.counter.findCountedIDs(ctx, g.app, ids...)
}

// AdaptAnswer adapts the recorder's answer to a visit for the caller. It marks numbers that the caller may not see. It adds the
// app's offsets (imported numbers), unless the caller requested only counted numbers.
func (g *Counting) AdaptAnswer(v *record.Visit, answer visit.Answer) visit.Answer {
	answer.Untold = g.keyless && (!g.app.HasPublicCounts() || v.Target.Site == visit.EventSite)
	if g.onlyCounted {
		return answer
	}
	return g.app.AddOffsets(v.Target, answer)
}

// OpenCall returns the position up to which the visits of a call have been counted. name is the call's Idempotency-Key, and
// content is the hash of its body. If a call without a name is sent again, its visits are counted again. For callers
// without a key, the same name with another body means another call. Otherwise a stranger could send another caller's name
// first, and so block that caller's visits.
func (g *Counting) OpenCall(ctx context.Context, name string, content [32]byte, items int) (*record.Position, error) {
	if name == "" {
		return record.NewCallPosition(items), nil
	}
	if g.callSource == callsOfAnybody {
		name += " " + hex.EncodeToString(content[:])
	}
	return g.counter.recorder.OpenCall(ctx, db.Position{App: g.app.ID, Source: g.callSource, Part: name}, content, items)
}

// Numbers returns the current numbers of the targets of visits, and the ranks of the visitors, in the order of the visits.
func (g *Counting) Numbers(ctx context.Context, visits []record.Visit) ([]visit.Answer, error) {
	ask := db.CountsOfVisitsParams{AppID: g.app.ID, Uris: make([]string, 0, 2*len(visits)), Ips: make([]netip.Addr, 0, 2*len(visits))}
	for i := range visits {
		v := &visits[i]
		ask.Uris = append(ask.Uris, v.Target.Site, v.Target.Page)
		ask.Ips = append(ask.Ips, v.Visitor, v.Visitor)
	}
	var rows []db.CountsOfVisitsRow
	if err := g.counter.readInTime(ctx, func(q *db.Queries) (err error) {
		if ask.Ips, err = findPersons(ctx, q, g.app, ask.Ips...); err != nil {
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
		answers[i] = g.AdaptAnswer(&visits[i], answers[i])
	}
	return answers, nil
}

// App returns the app whose visits are counted.
func (g *Counting) App() *app.App { return g.app }

// DB returns the database that stores the visits.
func (g *Counting) DB() *db.DB { return g.counter.db }

// Recorder returns the recorder that counts the visits from Visit.
func (g *Counting) Recorder() *record.Recorder { return g.counter.recorder }

// OpenQueue returns the position up to which a partition of a queue has been counted. It is first if the partition was
// never read.
func (g *Counting) OpenQueue(ctx context.Context, source, part string, first int64) (*record.Position, error) {
	return g.counter.recorder.OpenQueue(ctx, db.Position{App: g.app.ID, Source: source, Part: part}, first)
}

// LogKey returns the key for hashing the app's log lines. It returns nil if visitors are or were stored as addresses,
// because then the database stores a random key for logs. daily is true if hashes of visitors and of log lines change every
// day.
func (g *Counting) LogKey(ctx context.Context) (key []byte, daily bool, err error) {
	if g.app.Mode == app.ByAddress || g.app.LogKey != nil {
		return nil, false, nil
	}
	if daily = g.app.Mode == app.ByDay; daily {
		_, err = g.counter.days.get(ctx, g.app.ID, visit.DayOf(g.counter.clock(), g.app.Zone), false) // creates the day's key if it is missing
	}
	return g.counter.secret.LogKey(g.app.HashedFor()), daily, err
}
