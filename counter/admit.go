package counter

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// subject is what a request is about: which visitor comes where, and when.
type subject struct {
	target    visit.Target
	visitor   netip.Addr
	address   netip.Addr // of the visitor; the zero one where the caller asserts nothing but an id
	day       int32
	when      record.When
	at        time.Time // when it came
	tooOld    error     // why no visit of its day counts any more: then it is refused, unless it is repeated
	repeated  bool      // it was counted before with its id, as far as is known by now
	asserter  bool      // the caller has a key that says who came
	badge     bool      // a badge counts, for people who nobody knows
	untrusted bool      // no trusted caller vouches for the visitor: usual limits hold, and crawlers are looked for
}

// admit checks a request in a fixed order: app, key, assertion, address and URI, site, rate. need
// is the scope that the request takes.
func (c *Counter) admit(ctx context.Context, r *Request, need app.Scope) (*app.App, subject, error) {
	a, w, err := c.admitCaller(ctx, r, need)
	if err != nil {
		return nil, subject{}, err
	}
	if w.target, err = r.target(a); err != nil {
		return nil, subject{}, err
	}
	if w.tooOld != nil {
		known, err := c.knownIDs(ctx, a, r.ID)
		if err != nil {
			return nil, subject{}, err
		}
		if w.repeated = known[r.ID]; !w.repeated {
			return nil, subject{}, w.tooOld
		}
	}
	if err := checkOrigin(a, r); err != nil {
		return nil, subject{}, err
	}
	return a, w, c.checkRate(a, w)
}

// admitCaller checks all of a request that comes before its URI.
func (c *Counter) admitCaller(ctx context.Context, r *Request, need app.Scope) (*app.App, subject, error) {
	a, key, err := c.callerOf(ctx, r)
	if err != nil {
		return nil, subject{}, err
	}
	if err := checkRights(a, r, key, need); err != nil {
		return nil, subject{}, err
	}
	w := subject{untrusted: !a.IsOpen() && !r.asserts() && (key == nil || need == app.ScopeCount), asserter: key != nil && key.Opens(app.ScopeAssert)}
	var at time.Time
	if r.At != "" && r.ParseErr == nil && need == app.ScopeCount {
		at, r.ParseErr = visit.ParseTime(r.At)
	}
	err = c.identify(ctx, a, r, at, new(int32), &w)
	return a, w, err
}

// callerOf finds the app of a request, and the key that it shows; nil where it shows none.
func (c *Counter) callerOf(ctx context.Context, r *Request) (*app.App, *app.Key, error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	a, err := register.App(r.App)
	if err != nil {
		return nil, nil, err
	}
	key, err := c.keyOf(register, a, r)
	return a, key, err
}

// keyOf returns the key that a request shows; nil where it shows none, or a session that is over.
func (c *Counter) keyOf(known *app.Register, a *app.App, r *Request) (*app.Key, error) {
	if r.Session != "" {
		return c.sessionKey(known, a, r.Session), nil
	}
	if r.Key == "" {
		return nil, nil
	}
	key := known.Key(r.Key)
	if key == nil || key.App != a.ID { // one answer for both, which tells nothing about the keys of other apps
		return nil, visit.Errorf(visit.BadKey, "key", "it is not a key of app %s, or it is revoked: send another, or leave it out", a.Name)
	}
	c.uses.note(key.ID)
	return key, nil
}

// checkRights checks that the caller may do what they ask for, and assert the visitor that they
// name, or that the visit is the one of an id.
func checkRights(a *app.App, r *Request, key *app.Key, need app.Scope) error {
	asserting := need
	if need == app.ScopeCount {
		asserting = app.ScopeAssert
		if a.NeedsKey() && key == nil {
			return visit.Errorf(visit.BadKey, "key", "app %s counts nothing without a key: send one of the scope %s or %s as Authorization: Bearer …",
				a.Name, app.ScopeCount, app.ScopeAssert)
		}
		if a.NeedsKey() && !key.Opens(app.ScopeCount) {
			return visit.Errorf(visit.Forbidden, "key", "it does not count: send one of the scope %s or %s", app.ScopeCount, app.ScopeAssert)
		}
	}
	if a.IsOpen() || key != nil && key.Opens(asserting) {
		return nil
	}
	var field string
	switch {
	case r.IP != "":
		field = "ip"
	case r.Asserts || r.Visitor != "":
		field = "visitor"
	case r.At != "":
		field = "at"
	case r.Language != "":
		field = "language"
	case r.Country != "":
		field = "country"
	case r.Tags != nil:
		field = "tags"
	case r.ID != "": // a stranger who guesses the ids of others would keep their visits from counting
		field = "id"
	default:
		return nil
	}
	return visit.Errorf(visit.Forbidden, field, "app %s believes it only with a key of the scope %s: leave %s out, or send such a key as Authorization: Bearer …",
		a.Name, asserting, field)
}

// identify finds the day and the visitor of a request that is about a moment; the zero one is now.
// firstDay: see chooseDay.
func (c *Counter) identify(ctx context.Context, a *app.App, r *Request, at time.Time, firstDay *int32, w *subject) error {
	if r.ParseErr != nil {
		return r.ParseErr
	}
	if err := checkFault(a); err != nil {
		return err
	}
	if err := app.CheckVisitID(r.ID); err != nil {
		return err
	}
	if err := a.CheckTags(r.Tags); err != nil {
		return err
	}
	if err := c.chooseDay(ctx, a, at, firstDay, w); err != nil {
		return err
	}
	return c.identifyVisitor(ctx, a, r, w)
}

// checkFault checks that this instance can count for an app.
func checkFault(a *app.App) error {
	if a.Fault == nil {
		return nil
	}
	return visit.Errorf(visit.Unavailable, "", "app %s cannot be counted for by this instance; tell its operator", a.Name).Because(a.Fault)
}

// identifyVisitor finds the visitor: the one whom the caller asserts, or else the caller.
func (c *Counter) identifyVisitor(ctx context.Context, a *app.App, r *Request, w *subject) (err error) {
	switch {
	case r.Visitor != "" && a.Mode != app.ByID:
		return visit.Errorf(visit.Invalid, "visitor", "app %s tells visitors apart by their address: give ip", a.Name)
	case r.IP != "":
		if w.address, err = visit.ParseAddress(r.IP); err != nil {
			return err
		}
	case r.Visitor == "":
		w.address = r.Peer
	}
	if r.Anybody {
		return nil
	}
	if a.Mode == app.ByID {
		w.visitor, err = a.VisitorByID(c.secret, r.Visitor)
		return err
	}
	var key []byte
	if a.Mode == app.ByDay {
		key, err = c.days.of(ctx, w.day, w.when == record.Past)
		if w.when == record.Past && errors.Is(err, db.ErrNoRows) {
			w.visitor = netip.IPv6Unspecified() // nobody knows any more who that is
			if w.tooOld == nil {
				w.tooOld = keyGone(a, visit.DayOf(c.clock(), a.Zone))
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	w.visitor, err = a.VisitorByAddress(c.secret, w.address, key)
	return err
}

// checkOrigin checks that the app counts the site of the page for which a browser sends a request.
func checkOrigin(a *app.App, r *Request) error {
	if r.Origin != "" && !a.IsOpen() && !a.AllowsOrigin(r.Origin) {
		return visit.Errorf(visit.Forbidden, "origin", "app %s does not count the site of the page that asks: its operator can add it", a.Name)
	}
	return nil
}

// checkRate refuses callers who ask too often.
func (c *Counter) checkRate(a *app.App, w subject) error {
	most := a.MostRequests(w.untrusted)
	if most == 0 {
		return nil
	}
	from := w.address
	if !from.IsValid() {
		from = w.visitor
	}
	if wait := c.rates.take(sourceOf(a.ID, from), most); wait > 0 {
		return c.tooMany(wait, "too many requests to app %s from one address; try again later", a.Name)
	}
	return nil
}

// tooMany refuses a request, and says why.
func (c *Counter) tooMany(wait time.Duration, says string, values ...any) error {
	c.metrics.limited.Inc()
	refused := visit.Errorf(visit.TooMany, "", says, values...)
	refused.RetryAfter = wait
	return refused
}

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

// AppOf names the app that counts a page of which nobody says the app: preferred, if it counts the
// page's site, or else the one that lists it.
func (c *Counter) AppOf(ctx context.Context, uri, preferred string) (name string, err error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return "", err
	}
	page, err := visit.Normalize(uri, nil)
	if err != nil {
		return "", err
	}
	if a := register.Apps[preferred]; a != nil && a.Counts(page.Site) {
		return preferred, nil
	}
	for _, a := range register.Apps {
		if !a.Lists(page.Site) {
			continue
		}
		if name != "" {
			return "", visit.Errorf(visit.Forbidden, "uri", "several apps list the site %s: their operator can say which one counts", page.Site)
		}
		name = a.Name
	}
	if name == "" {
		return "", visit.Errorf(visit.Forbidden, "uri", "no app lists the site %s: its operator can add it", page.Site)
	}
	return name, nil
}
