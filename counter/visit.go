package counter

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/record"
	"footfall/visit"
	"footfall/visit/tag"
)

// Visit counts a visit, and returns the numbers of its page and site after the commit. If the visit is skipped, for example
// because a bot sent it, Visit returns the current numbers, as Counts does.
func (c *Counter) Visit(ctx context.Context, r Request) (visit.Answer, error) {
	a, w, err := c.admit(ctx, &r, app.ScopeCount)
	if err != nil {
		c.noteRefused(&r, err, "")
		return visit.Answer{}, err
	}
	if w.numbersHidden && r.NeedsNumbers {
		return visit.Answer{}, errNumbersNeedKey(a, r.Event != "")
	}
	answer, err := c.count(ctx, a, &r, &w)
	answer.Untold = w.numbersHidden
	answer.PageOnly = w.keyless && r.Event != ""
	if answer.Skipped != "" {
		c.noteRefused(&r, nil, answer.Skipped)
	}
	if r.Extra.Today && err == nil && !answer.Later && !answer.NoNumbers {
		now, failed := c.readCurrent(ctx, a, []visit.Target{cmp.Or(answer.Other, w.target)}, nil, w.day, r.Extra)
		if failed != nil {
			return visit.Answer{NoNumbers: true, Skipped: answer.Skipped, Repeated: answer.Repeated}, nil //nolint:nilerr // the visit was handled
		}
		answer.Now = now[0].Now
	}
	return r.addOffsets(a, w.target, answer), err
}

// subject contains the target, the visitor and the time of a request, and the rights of its caller.
type subject struct {
	target        visit.Target
	visitor       netip.Addr
	address       netip.Addr // the visitor's address; zero if the caller sent only an id
	day           int32
	when          record.When
	visitTime     time.Time // the visit's time
	tooOld        error     // why visits of this day are no longer accepted, or nil; a repeated visit still gets an answer
	repeated      bool      // the visit's id was counted before; checked only if tooOld is set
	asserter      bool      // the caller's key allows counting visits of any visitor
	fromBadge     bool      // counted by a badge, so the visitor is unknown
	keyless       bool      // the caller has no key
	numbersHidden bool      // the caller may not see numbers
	untrusted     bool      // no trusted caller vouches for the visitor: default limits apply, and crawlers are skipped
}

// admit checks a request in a fixed order: app, key, permission to name the visitor, address and URI, site, rate. need is
// the scope that the request requires: to count or to read.
func (c *Counter) admit(ctx context.Context, r *Request, need app.Scope) (*app.App, subject, error) {
	a, w, err := c.admitCaller(ctx, r, need)
	if err != nil {
		return nil, subject{}, err
	}
	if w.target, err = r.target(a); err != nil {
		return nil, subject{}, err
	}
	if r.Event != "" && w.keyless { // a stranger must not find out which visitors sent an event
		w.numbersHidden = r.asserts() || !a.HasPublicEvent(w.target)
	}
	if w.tooOld != nil {
		counted, err := c.findCountedIDs(ctx, a, r.ID)
		if err != nil {
			return nil, subject{}, err
		}
		if w.repeated = counted[r.ID]; !w.repeated {
			return nil, subject{}, w.tooOld
		}
	}
	if err := checkOrigin(a, r); err != nil {
		return nil, subject{}, err
	}
	return a, w, c.checkRate(a, w)
}

// admitCaller runs the checks of a request that precede the check of its URI.
func (c *Counter) admitCaller(ctx context.Context, r *Request, need app.Scope) (*app.App, subject, error) {
	a, key, err := c.findCaller(ctx, r)
	if err != nil {
		return nil, subject{}, err
	}
	if err := checkRights(a, r, key, need); err != nil {
		return nil, subject{}, err
	}
	w := subject{untrusted: !a.IsOpen() && !r.asserts() && (key == nil || need == app.ScopeCount), asserter: key != nil &&
		key.Opens(app.ScopeAssert), keyless: key == nil, numbersHidden: key == nil && !a.HasPublicCounts()}
	var at time.Time
	if r.At != "" && r.ParseErr == nil && need == app.ScopeCount {
		at, r.ParseErr = visit.ParseTime(r.At)
	}
	if err = c.identify(ctx, a, r, at, new(int32), &w); err == nil && need == app.ScopeCount {
		if err = c.checkHeld(a); r.CountLater && a.MovingTo != nil {
			err = nil // the visit goes to the inbox, and the new cell counts it after the move
		}
	}
	return a, w, err
}

// findCaller returns the app of a request, and the caller's key or nil.
func (c *Counter) findCaller(ctx context.Context, r *Request) (*app.App, *app.Key, error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	a, err := register.App(r.App)
	if err != nil {
		return nil, nil, err
	}
	key, err := c.findKey(register, a, r)
	return a, key, err
}

// findKey returns the key of a request, or nil if it has none.
func (c *Counter) findKey(register *app.Register, a *app.App, r *Request) (*app.Key, error) {
	if r.Key == "" {
		return nil, nil
	}
	key := register.Key(r.Key)
	if key == nil || key.App != a.ID { // the same error in both cases, to reveal nothing about keys of other apps
		return nil, visit.Errorf(visit.BadKey, "key", "it is not a key of app %s, or it is revoked: send another, or leave it out", a.Name)
	}
	c.uses.note(key.ID)
	return key, nil
}

// checkRights checks that the caller may do the requested action. It also refuses fields that only trusted callers may
// send, such as a visitor or the id of a visit.
func checkRights(a *app.App, r *Request, key *app.Key, need app.Scope) error {
	asserting := need
	if need == app.ScopeCount {
		asserting = app.ScopeAssert
		if a.NeedsKey() && key == nil {
			return visit.Errorf(visit.BadKey, "key",
				"app %s counts nothing without a key: send one of the scope %s or %s as Authorization: Bearer …",
				a.Name, app.ScopeCount, app.ScopeAssert)
		}
		if a.NeedsKey() && !key.Opens(app.ScopeCount) {
			return visit.Errorf(visit.Forbidden, "key",
				"it does not permit counting: send one of the scope %s or %s", app.ScopeCount, app.ScopeAssert)
		}
	}
	if a.NeedsKey() && key == nil {
		return visit.Errorf(visit.BadKey, "key", "app %s shows nothing without a key: send one as Authorization: Bearer …", a.Name)
	}
	if a.IsOpen() || key != nil && key.Opens(asserting) {
		return nil
	}
	var field string
	switch {
	case r.IP != "":
		field = "ip"
	case r.HasVisitor || r.Visitor != "":
		field = "visitor"
	case r.Browser != "":
		field = "agent"
	case r.At != "":
		field = "at"
	case r.Language != "":
		field = "language"
	case r.Country != "":
		field = "country"
	case r.Tags != nil:
		field = "tags"
	case r.ID != "": // a stranger who guesses the id of another visit could use it first, so that the other visit is not counted
		field = "id"
	default:
		return nil
	}
	return visit.Errorf(visit.Forbidden, field,
		"app %s accepts it only with a key of the scope %s: leave %s out, or send such a key as Authorization: Bearer …",
		a.Name, asserting, field)
}

// identify sets the day and the visitor in w. at is the visit's time; zero means now. firstDay caches the first day for
// which the app accepts visits, as described at chooseDay.
func (c *Counter) identify(ctx context.Context, a *app.App, r *Request, at time.Time, firstDay *int32, w *subject) error {
	if r.ParseErr != nil {
		return r.ParseErr
	}
	if err := c.checkFault(a); err != nil {
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

// checkHeld returns an error while counting for an app is paused.
func (c *Counter) checkHeld(a *app.App) error {
	if a.MovingTo != nil {
		moving := visit.Errorf(visit.Unavailable, "",
			"app %s is moving to the cell %s: send the request again in a moment", a.Name, *a.MovingTo)
		moving.RetryAfter = time.Second
		return moving
	}
	if a.HeldUntil != nil {
		if wait := a.HeldUntil.Sub(c.db.Now()); wait > 0 {
			held := visit.Errorf(visit.Unavailable, "",
				"the addresses of visitors of app %s are being hashed: send the request again in a moment", a.Name)
			held.RetryAfter = min(wait, time.Minute)
			return held
		}
	}
	return nil
}

// checkFault returns an error if this instance cannot identify the app's visitors.
func (c *Counter) checkFault(a *app.App) error {
	if a.Fault == nil {
		return nil
	}
	return visit.Errorf(visit.Unavailable, "",
		"this instance cannot count visits of app %s; report this to its operator", a.Name).Because(a.Fault)
}

// identifyVisitor sets the visitor: the visitor that the request names, or else the client that sent the request.
func (c *Counter) identifyVisitor(ctx context.Context, a *app.App, r *Request, w *subject) (err error) {
	switch {
	case r.Visitor != "" && a.Mode != app.ByID:
		return visit.Errorf(visit.Invalid, "visitor", "app %s distinguishes visitors by address: give ip instead", a.Name)
	case r.IP != "":
		if w.address, err = visit.ParseAddress(r.IP); err != nil {
			return err
		}
	case r.Visitor == "":
		w.address = r.Peer
	}
	if r.HasNoVisitor {
		return nil
	}
	if a.Mode == app.ByID {
		w.visitor, err = a.VisitorByID(c.secret, r.Visitor)
		return err
	}
	agent, err := c.findAgent(a, r)
	if err != nil {
		return err
	}
	var key []byte
	if a.Mode == app.ByDay {
		key, err = c.days.get(ctx, a.ID, w.day, w.when == record.Past)
		if w.when == record.Past && errors.Is(err, db.ErrNoRows) {
			w.visitor = netip.IPv6Unspecified() // the key of that day is deleted, so the visitor is unknown
			if w.tooOld == nil {
				w.tooOld = errDayKeyDeleted(a, visit.DayOf(c.clock(), a.Zone))
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	w.visitor, err = a.VisitorByAddress(c.secret, w.address, agent, key)
	return err
}

// findAgent returns the visitor's browser if the app distinguishes visitors by browser.
func (c *Counter) findAgent(a *app.App, r *Request) (tag.Agent, error) {
	switch {
	case a.Mode != app.ByBrowser:
		return tag.Agent{}, nil
	case r.Browser != "":
		return c.bots.lookUp(r.Browser).agent, nil
	case r.HasVisitor || r.IP != "":
		return tag.Agent{}, visit.Errorf(visit.Invalid, "agent",
			"it is missing: app %s distinguishes visitors by address and browser, so give the visitor's User-Agent", a.Name)
	}
	return c.bots.lookUp(r.Agent).agent.With(r.Hints), nil
}

// checkOrigin checks that the app counts the site of the page that sends the request.
func checkOrigin(a *app.App, r *Request) error {
	if r.Origin != "" && !a.IsOpen() && !a.AllowsOrigin(r.Origin) {
		return visit.Errorf(visit.Forbidden, "origin",
			"app %s does not count the site of the page that sent this request: its operator can add it", a.Name)
	}
	return nil
}

// checkRate refuses callers that send too many requests.
func (c *Counter) checkRate(a *app.App, w subject) error { return c.checkRateOf(a, w, 1) }

// checkRateOf is checkRate for a call that costs as much as several requests.
func (c *Counter) checkRateOf(a *app.App, w subject, requests int) error {
	most := a.MostRequests(w.untrusted)
	if most == 0 {
		return nil
	}
	from := w.address
	if !from.IsValid() {
		from = w.visitor
	}
	if wait := c.rates.take(rateKeyOf(a.ID, from), most, requests); wait > 0 {
		return c.refuseRate(wait, "too many requests to app %s from one address; try again later", a.Name)
	}
	return nil
}

// refuseRate returns the error for too many requests. format and values make up its text. wait is the time until the caller
// may try again.
func (c *Counter) refuseRate(wait time.Duration, format string, values ...any) error {
	c.metrics.limited.Inc()
	refused := visit.Errorf(visit.TooMany, "", format, values...)
	refused.RetryAfter = wait
	return refused
}
