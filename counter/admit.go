package counter

import (
	"context"
	"fmt"
	"footfall/visit"
	"net/netip"
)

// who is what a request was found to be: who came where, and when.
type who struct {
	target   visit.Target
	visitor  netip.Addr
	address  netip.Addr // that came, or was asserted; the zero one where only an id was
	day      int32
	stranger bool // nobody who is believed says who came: limits hold, and crawlers are looked for
}

// admit checks a request in the order that the contract gives: app, key, assertion, address and URI, host, rate. need is the scope that
// opens what is asked for.
func (c *Counter) admit(ctx context.Context, r *Request, need Scope) (*app, who, error) {
	now, err := c.apps.now(ctx)
	if err != nil {
		return nil, who{}, err
	}
	a, err := now.app(r.App)
	if err != nil {
		return nil, who{}, err
	}
	key, err := c.keyOf(now, a, r)
	if err != nil {
		return nil, who{}, err
	}
	if err := a.permit(r, key, need); err != nil {
		return nil, who{}, err
	}
	w := who{stranger: !a.isOpen() && !r.asserts() && (key == nil || need == ScopeCount)}
	if err := c.identify(ctx, a, r, &w); err != nil {
		return nil, who{}, err
	}
	if err := a.welcome(r, w.target.Site); err != nil {
		return nil, who{}, err
	}
	return a, w, c.restrain(a, w)
}

// keyOf returns the key that is shown; nil where none is.
func (c *Counter) keyOf(now *register, a *app, r *Request) (*openKey, error) {
	if r.Key == "" {
		return nil, nil
	}
	key := now.key(r.Key)
	if key == nil || key.app != a.id { // which of both is nobody's business
		return nil, visit.Errorf(visit.BadKey, "key", "it is none of app %s, or it is revoked: send another, or leave it out", a.name)
	}
	c.uses.note(key.id)
	return key, nil
}

// permit checks that the caller may do what they ask for, and say who came.
func (a *app) permit(r *Request, key *openKey, need Scope) error {
	asserting := need
	if need == ScopeCount {
		asserting = ScopeAssert
		if a.access == accessKey && key == nil {
			return visit.Errorf(visit.BadKey, "key", "app %s counts nothing without one: send one of the scope %s or %s as Authorization: Bearer …",
				a.name, ScopeCount, ScopeAssert)
		}
		if a.access == accessKey && !key.opens(ScopeCount) {
			return visit.Errorf(visit.Forbidden, "key", "it does not count: send one of the scope %s or %s", ScopeCount, ScopeAssert)
		}
	}
	if !r.asserts() || a.isOpen() || key != nil && key.opens(asserting) {
		return nil
	}
	field := "ip"
	if r.IP == "" {
		field = "visitor"
	}
	return visit.Errorf(visit.Forbidden, field, "app %s believes it with a key of the scope %s alone: leave %s out, or send such a key as Authorization: Bearer …",
		a.name, asserting, field)
}

// identify reads the fields of a request.
func (c *Counter) identify(ctx context.Context, a *app, r *Request, w *who) error {
	if r.Garbled != nil {
		return r.Garbled
	}
	if a.fault != nil {
		return visit.Errorf(visit.Unavailable, "", "app %s cannot be counted for by this instance; tell its operator", a.name).Because(a.fault)
	}
	w.day = visit.DayOf(c.clock(), a.zone)
	if err := c.identifyVisitor(ctx, a, r, w); err != nil {
		return err
	}
	if r.URI == "" {
		return visit.Errorf(visit.Invalid, "uri", "it is missing: give the address of the page, http://…")
	}
	var err error
	if w.target, err = visit.Normalize(r.URI, a.keepQuery); err != nil {
		return err
	}
	return nil
}

// identifyVisitor finds out who came: whom the caller names, or else the caller.
func (c *Counter) identifyVisitor(ctx context.Context, a *app, r *Request, w *who) (err error) {
	switch {
	case r.Visitor != "" && a.mode != byID:
		return visit.Errorf(visit.Invalid, "visitor", "app %s tells visitors apart by their address: give ip", a.name)
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
	if a.mode == byID {
		w.visitor, err = a.visitorByID(c.secret, r.Visitor)
		return err
	}
	var dayKey []byte
	if a.mode == byDay {
		if dayKey, err = c.days.of(ctx, w.day); err != nil {
			return err
		}
	}
	w.visitor, err = a.visitorByAddress(c.secret, w.address, dayKey)
	return err
}

// welcome checks that the app counts the site, and that the page which asks is of one that it counts.
func (a *app) welcome(r *Request, site string) error {
	if !a.counts(site) {
		return visit.Errorf(visit.Forbidden, "uri", "app %s does not count the site %s: its operator can add it to those that it counts", a.name, site)
	}
	if r.Origin != "" && !a.isOpen() && !a.allowsOrigin(r.Origin) {
		return visit.Errorf(visit.Forbidden, "origin", "the page that asks is of no site that app %s counts: its operator can add that site", a.name)
	}
	return nil
}

// restrain refuses who asks too often.
func (c *Counter) restrain(a *app, w who) error {
	most := a.limits.requests.of(w.stranger)
	if most == 0 {
		return nil
	}
	from := w.address
	if !from.IsValid() {
		from = w.visitor
	}
	wait := c.rates.take(sourceOf(a.id, from), most)
	if wait <= 0 {
		return nil
	}
	c.metrics.limited.Inc()
	return &visit.Error{Kind: visit.TooMany, RetryAfter: wait, Message: fmt.Sprintf("too many requests to app %s from one address; try again later", a.name)}
}

// AllowsOrigin reports whether a page of this origin may read the answers for an app; for "", for any of the apps.
func (c *Counter) AllowsOrigin(ctx context.Context, name, origin string) bool {
	now, err := c.apps.now(ctx)
	if err != nil {
		return false
	}
	if name != "" {
		a := now.apps[name]
		return a != nil && a.allowsOrigin(origin)
	}
	site := siteOfOrigin(origin)
	for _, a := range now.apps {
		if site != "" && a.counts(site) {
			return true
		}
	}
	return false
}

func (a *app) allowsOrigin(origin string) bool {
	site := siteOfOrigin(origin)
	return site != "" && a.counts(site)
}
