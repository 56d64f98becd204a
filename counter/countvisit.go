package counter

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"footfall/counter/app"
	"footfall/record"
	"footfall/visit"
	"footfall/visit/tag"
)

// count counts an admitted visit, unless it is skipped or was counted before.
func (c *Counter) count(ctx context.Context, a *app.App, r *Request, w *subject) (visit.Answer, error) {
	if w.repeated {
		return c.answerRepeated(ctx, a, w), nil
	}
	botSubject := *w
	if r.Browser != "" {
		botSubject.trustAgent(r)
	}
	if why := c.skips(a, r, botSubject); why != "" {
		answer, err := c.readVisibleNumbers(ctx, a, w)
		answer.Skipped = why
		return answer, err
	}
	v := c.newVisit(a, w, r.ID)
	if v.Vouched = w.asserter; a.Titles && r.Event == "" && (v.Vouched || r.isOfPage(a, w.target.Site)) {
		v.Title, v.SeenFrom = visit.Title(r.Title), netip.AddrFrom16(rateKeyOf(a.ID, w.address).from)
	}
	if r.asserts() { // the request's headers describe the caller, not the visitor
		r.Agent, r.Hints, r.Languages, r.PeerCountry = r.Browser, tag.Hints{}, "", ""
	}
	v.Tags = c.tags(a, r, w)
	if r.CountLater {
		return c.accept(v)
	}
	answer, err := c.recorder.Record(v)
	if c.overflow && errors.Is(err, record.ErrOverloaded) {
		return c.accept(v)
	}
	switch {
	case errors.Is(err, record.ErrRepeated):
		return c.answerRepeated(ctx, a, w), nil
	case errors.Is(err, record.ErrNumbersLost):
		return visit.Answer{NoNumbers: true}, nil
	}
	return answer, err
}

// trustAgent makes the check for bots use r.Browser, the visitor's User-Agent that the caller sent. The request's own
// header User-Agent belongs to the caller.
func (w *subject) trustAgent(r *Request) {
	w.untrusted, w.asserter = true, true
	r.Agent, r.Hints = r.Browser, tag.Hints{}
}

// answerRepeated returns the answer to a visit that was counted before: the current numbers, if these can be
// read.
func (c *Counter) answerRepeated(ctx context.Context, a *app.App, w *subject) visit.Answer {
	answer, err := c.readVisibleNumbers(ctx, a, w)
	answer.Repeated, answer.NoNumbers = true, err != nil
	return answer
}

// accept puts a visit into the inbox, to be counted later.
func (c *Counter) accept(v record.Visit) (visit.Answer, error) {
	err := c.inbox.Put(v)
	if err == nil {
		c.recorder.Accepted(v)
	}
	return visit.Answer{Later: true}, err
}

// newVisit builds the visit for a request. id is "" if the visit has no id.
func (c *Counter) newVisit(a *app.App, w *subject, id string) record.Visit {
	v := record.Visit{
		App: a.ID, CountsBy: a.CountsBy, Target: w.target, Visitor: w.visitor, Day: w.day, When: w.when,
		NewPages: a.MostNewPages(w.untrusted), ID: id,
	}
	if a.Mode == app.ByDay && w.when != record.Past && !w.fromBadge {
		address := w.address
		v.VisitorOn = func(ctx context.Context, day int32) (netip.Addr, error) {
			key, err := c.days.get(ctx, a.ID, day, false)
			if err != nil {
				return netip.Addr{}, err
			}
			return a.VisitorByAddress(c.secret, address, tag.Agent{}, key)
		}
	}
	return v
}

// tags returns a function that reads the visit's tags. This function leaves out tags that the app does not count.
func (c *Counter) tags(a *app.App, r *Request, w *subject) func() tag.Set {
	t := tag.Request{URI: r.URI, Site: w.target.Site, Referrer: r.Referrer, Languages: cmp.Or(r.Language, r.Languages),
		Country: cmp.Or(tag.CountryOf(r.Country), tag.CountryOf(r.PeerCountry)), At: w.visitTime, Zone: a.Zone, Own: r.Tags}
	agent, hints, address := r.Agent, r.Hints, w.address
	return func() tag.Set {
		if len(a.Tags) == 1 {
			return tag.Set{{Name: tag.Hour, Value: tag.HourOf(t.At, t.Zone)}}
		}
		if agent != "" {
			t.Agent = c.bots.lookUp(agent).agent.With(hints)
		}
		if t.Country == "" {
			t.Country = c.countries.Of(address)
		}
		return slices.DeleteFunc(tag.Read(t), func(brought tag.Tag) bool { return !slices.Contains(a.Tags, brought.Name) })
	}
}
