package counter

import (
	"context"
	"errors"
	"net/netip"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// Counts returns the numbers of a page and its site, and how many visits of the app wait in the inbox. It counts no visit.
func (c *Counter) Counts(ctx context.Context, r Request) (visit.Answer, error) {
	a, w, err := c.admit(ctx, &r, app.ScopeRead)
	if err != nil {
		return visit.Answer{}, err
	}
	if w.numbersHidden {
		return visit.Answer{}, errNumbersNeedKey(a, r.Event != "")
	}
	if err := checkExtraNumbers(a, &r, &w); err != nil {
		return visit.Answer{}, err
	}
	backlog, err := c.readBacklog(ctx, a)
	if err != nil {
		return visit.Answer{}, err
	}
	var answer visit.Answer
	if r.Extra == (ExtraNumbers{}) {
		answer, err = c.read(ctx, a, w.target, r.queriedVisitor(&w))
	} else if answers, failed := c.readCurrent(ctx, a, []visit.Target{w.target}, r.queriedVisitor(&w), w.day, r.Extra); failed == nil {
		answer = answers[0]
	} else {
		err = failed
	}
	answer.Behind, answer.PageOnly = backlog, w.keyless && r.Event != ""
	return r.addOffsets(a, w.target, answer), err
}

// errNumbersNeedKey returns the error for a caller without a key if the numbers are not public.
func errNumbersNeedKey(a *app.App, event bool) error {
	if event {
		return visit.Errorf(visit.Forbidden, "event",
			"the numbers of this event need a key: send one as Authorization: Bearer …, or have the operator of app %s add it "+
				"to --public-events", a.Name)
	}
	return visit.Errorf(visit.Forbidden, "",
		"app %s shows no numbers without a key: send one as Authorization: Bearer …, or have its operator make them public", a.Name)
}

// readVisibleNumbers reads the current numbers, unless the caller may not see them.
func (c *Counter) readVisibleNumbers(ctx context.Context, a *app.App, w *subject) (visit.Answer, error) {
	if w.numbersHidden {
		return visit.Answer{}, nil
	}
	return c.read(ctx, a, w.target, &w.visitor)
}

// readBacklog returns how many visits of an app wait in the inbox. Call it before reading the numbers. A visit that is
// counted between the two reads is then in both results, instead of in neither.
func (c *Counter) readBacklog(ctx context.Context, a *app.App) (visits int64, err error) {
	if visits, err = c.inbox.Behind(ctx, a.ID); err != nil {
		return 0, visit.Unanswered(err)
	}
	return visits, nil
}

// PageResult is one result of CountsForPages.
type PageResult struct {
	visit.Answer
	Fault string // why the URI is invalid, as a sentence; if set, there are no numbers
}

// pagesPerRequest is the number of pages for which CountsForPages uses up one more request of the rate limit.
const pagesPerRequest = 25

// CountsForPages returns the numbers of many pages, as Counts does for one. behind is the number of the app's visits that
// wait in the inbox.
func (c *Counter) CountsForPages(ctx context.Context, r Request, uris []string) (counted []PageResult, behind int64, err error) {
	a, w, err := c.admitCaller(ctx, &r, app.ScopeRead)
	if err != nil {
		return nil, 0, err
	}
	if err := checkOrigin(a, &r); err != nil {
		return nil, 0, err
	}
	if err := c.checkRateOf(a, w, 1+len(uris)/pagesPerRequest); err != nil {
		return nil, 0, err
	}
	if w.numbersHidden {
		return nil, 0, errNumbersNeedKey(a, false)
	}
	if err := checkExtraNumbers(a, &r, &w); err != nil {
		return nil, 0, err
	}
	if behind, err = c.readBacklog(ctx, a); err != nil {
		return nil, 0, err
	}
	counted = make([]PageResult, len(uris))
	targets := make([]visit.Target, len(uris))
	queried := make([]string, 0, 2*len(uris))
	var valid []int // indexes of the valid URIs
	for i, uri := range uris {
		t, err := a.Target(uri)
		if fault, wrong := errors.AsType[*visit.Error](err); wrong {
			counted[i].Fault = fault.Message()
			continue
		}
		targets[i] = t
		queried, valid = append(queried, t.Site, t.Page), append(valid, i)
	}
	if r.Extra != (ExtraNumbers{}) {
		return c.fillCurrentNumbers(ctx, a, &r, &w, counted, targets, valid, behind)
	}
	numbers, err := c.readAll(ctx, a, queried, r.queriedVisitor(&w))
	if err != nil {
		return nil, 0, err
	}
	for i, t := range targets {
		if counted[i].Fault != "" {
			continue
		}
		counted[i].Site, counted[i].Page = numbers[t.Site], numbers[t.Page]
		counted[i].Answer = r.addOffsets(a, t, counted[i].Answer)
	}
	return counted, behind, nil
}

// fillCurrentNumbers reads totals and current numbers of the valid pages into counted, the results of CountsForPages.
// places are the indexes of the valid pages in targets.
func (c *Counter) fillCurrentNumbers(
	ctx context.Context, a *app.App, r *Request, w *subject, counted []PageResult, targets []visit.Target, places []int, backlog int64,
) ([]PageResult, int64, error) {
	good := make([]visit.Target, len(places))
	for i, place := range places {
		good[i] = targets[place]
	}
	answers, err := c.readCurrent(ctx, a, good, r.queriedVisitor(w), w.day, r.Extra)
	if err != nil {
		return nil, 0, err
	}
	for i, place := range places {
		counted[place].Answer = r.addOffsets(a, good[i], answers[i])
	}
	return counted, backlog, nil
}

// queriedVisitor returns the visitor that a query is about, or nil if it is about no visitor.
func (r *Request) queriedVisitor(w *subject) *netip.Addr {
	if r.HasNoVisitor {
		return nil
	}
	return &w.visitor
}

// read returns the numbers of a page and its site. If visitor is not nil, it also returns the visitor's ranks.
func (c *Counter) read(ctx context.Context, a *app.App, t visit.Target, visitor *netip.Addr) (visit.Answer, error) {
	numbers, err := c.readAll(ctx, a, []string{t.Site, t.Page}, visitor)
	return visit.Answer{Site: numbers[t.Site], Page: numbers[t.Page]}, err
}

// readAll returns the numbers of targets, by URI. If visitor is not nil, it also returns the visitor's ranks. The result
// has no entry for a target that was never counted.
func (c *Counter) readAll(ctx context.Context, a *app.App, uris []string, visitor *netip.Addr) (map[string]visit.Counts, error) {
	ask := db.CountsGetParams{AppID: a.ID, Uris: uris, Ip: visitor}
	var rows []db.CountsGetRow
	if err := c.readInTime(ctx, func(q *db.Queries) error {
		if visitor != nil {
			persons, err := findPersons(ctx, q, a, *visitor)
			if err != nil {
				return err
			}
			ask.Ip = &persons[0]
		}
		var err error
		rows, err = q.CountsGet(ctx, ask)
		return err
	}); err != nil {
		return nil, err
	}
	numbers := make(map[string]visit.Counts, len(rows))
	for _, row := range rows {
		numbers[row.Uri] = visit.Counts{PV: row.Pv, UV: row.Uv, Rank: row.Rank, Hot: row.Hot}
	}
	return numbers, nil
}

// findPersons returns the persons to whom visitors of an app are linked, because a linked visitor is counted as its person.
// A visitor without a link is returned unchanged.
func findPersons(ctx context.Context, q *db.Queries, a *app.App, visitors ...netip.Addr) ([]netip.Addr, error) {
	if a.Mode != app.ByID {
		return visitors, nil
	}
	return q.Persons(ctx, a.ID, visitors)
}
