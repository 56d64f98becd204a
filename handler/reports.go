package handler

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/report"
	"footfall/visit"
	"footfall/visit/tag"
)

const (
	reportPlaces = 2 // as many as there are connections for reports
	usualWait    = 2 * time.Second
	usualWithin  = 4 * time.Second // less than the database lets a statement run, so that a timeout is noticed here
	reportPause  = 5 * time.Second // before a report that took too long is asked for again
)

type reports struct {
	*service
	places chan struct{} // has room for the reports that are being made
}

type kind struct {
	name    string
	takes   []string // parameters, besides the format
	repeats []string // those of them that may be given several times
	// prepare reads the parameters, and returns what makes the report. A fault in them stays in the
	// question.
	prepare func(q *question) makeReport
}

type makeReport func(ctx context.Context, from *report.Reader) (*result, error)

var kinds = []kind{
	{"sites", []string{"after", "limit", "offsets"}, nil, sitesReport},
	{"pages", []string{"site", "from", "to", "order", "after", "limit"}, nil, pagesReport},
	{"days", []string{"uri", "site", "from", "to", "after", "limit"}, nil, daysReport},
	{"tags", []string{"uri", "site", "name", "from", "to", "limit"}, nil, tagsReport},
	{"visitors", []string{"uri", "site", "day", "after", "limit", "offsets"}, nil, visitorsReport},
	{"ranks", []string{"uri", "site", "rank", "ip", "visitor", "offsets"}, nil, ranksReport},
	{"uniques", []string{"uri", "site", "prefix", "from", "to"}, []string{"uri", "site"}, uniquesReport},
}

// answer checks the caller and the question, in the order that all calls have, makes the report and
// writes it.
func (r *reports) answer(c echo.Context, k kind) error {
	ctx, request := c.Request().Context(), c.Request()
	params, parseErr := readParams(request.URL.RawQuery, append([]string{"format"}, k.takes...), k.repeats)
	ask := counter.Request{App: c.Param("app"), Key: bearer(request.Header), ParseErr: parseErr}
	ask.Peer, _ = r.Proxies.client(request) // callers whose address is unknown share one limit
	reading, err := r.counter.AuthorizeReading(ctx, ask)
	if err != nil {
		return err
	}
	q := &question{ctx: ctx, reading: reading, params: params}
	format := q.format(request.Header)
	reader := q.reader(r.Reports)
	prepared := k.prepare(q)
	if q.err != nil {
		return q.err
	}
	if err := reading.CheckRate(); err != nil {
		return err
	}
	var made *result
	err = r.within(ctx, func(ctx context.Context) (err error) {
		made, err = prepared(ctx, reader)
		return err
	})
	if err != nil {
		return err
	}
	return writeReport(c, reading.App+"-"+k.name, format, made)
}

// within reads when there is a place for it, as long as there is time.
func (r *reports) within(ctx context.Context, read func(context.Context) error) error {
	wait := time.NewTimer(r.reportWait)
	defer wait.Stop()
	select {
	case r.places <- struct{}{}:
		defer func() { <-r.places }()
	case <-wait.C:
		return later(r.reportWait, "too many reports are being made; try again")
	case <-ctx.Done():
		return ctx.Err()
	}
	within, cancel := context.WithTimeout(ctx, r.reportWithin)
	defer cancel()
	err := read(within)
	var verr *visit.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &verr):
		return err
	case errors.Is(within.Err(), context.DeadlineExceeded):
		return later(reportPause, "the report takes too long: ask for fewer days, for fewer pages, or for one site").Because(err)
	}
	return visit.Unanswered(err)
}

func later(pause time.Duration, problem string) *visit.Error {
	e := visit.Errorf(visit.Unavailable, "", "%s", problem)
	e.RetryAfter = pause
	return e
}

func sitesReport(q *question) makeReport {
	after, n := q.value("after"), q.limit()
	return func(ctx context.Context, from *report.Reader) (*result, error) {
		sites, err := from.Sites(ctx, q.reading.App, after, n+1)
		return listing("sites", sites, n, func(s report.Site) string { return s.Site }), err
	}
}

// orders are the numbers by which pages may be ordered; they may also be ordered by uri.
var orders = []string{"pv", "uv", "hot"}

func pagesReport(q *question) makeReport {
	app, site, in, n := q.reading.App, q.site(), q.days(), q.limit()
	order := q.value("order")
	switch {
	case order == "":
		order = orders[0]
	case order == "uri":
		after, prefix := q.value("after"), ""
		if site != "" {
			prefix = site + "/"
		}
		return func(ctx context.Context, from *report.Reader) (*result, error) {
			pages, err := from.PagesByURI(ctx, app, prefix, after, in, n+1)
			return listing("pages", pages, n, func(p report.Page) string { return p.URI }), err
		}
	case !slices.Contains(orders, order):
		q.wrong("order", "%.64q is not an order of pages: use pv, uv, hot or uri", order)
	}
	after := q.place(order)
	return func(ctx context.Context, from *report.Reader) (*result, error) {
		pages, next, err := from.TopPagesAfter(ctx, app, site, in, order, after, n)
		made := listing("pages", pages, n, nil)
		if next != nil {
			made.next = cursor(order, *next)
		}
		return made, err
	}
}

func daysReport(q *question) makeReport {
	target, in, n := q.target(), q.days(), q.limit()
	asked := daysOf{From: in.From, To: in.To}
	if in.To == visit.AllDays.To {
		asked.To = 0
	}
	if after := q.day("after", 0); after > 0 {
		in.From = max(in.From, after+1)
	}
	return func(ctx context.Context, from *report.Reader) (*result, error) {
		days, err := from.Days(ctx, q.reading.App, target, in, n+1)
		made := listing("days", days, n, func(d report.Day) string { return strconv.Itoa(int(d.Day)) })
		made.of = asked
		return made, err
	}
}

type daysOf struct {
	From int32 `json:"from,omitempty"`
	To   int32 `json:"to,omitempty"`
}

func tagsReport(q *question) makeReport {
	target, name, in, n := q.target(), cmp.Or(q.value("name"), tag.Names[0]), q.days(), q.limit()
	return func(ctx context.Context, from *report.Reader) (*result, error) {
		tags, err := from.ByTag(ctx, q.reading.App, target, name, in, n)
		made := listing("tags", tags.Tags, n, nil)
		made.of = tagsOf{tags.Name, tags.Since}
		return made, err
	}
}

type tagsOf struct {
	Name  string `json:"name"`
	Since int32  `json:"since,omitempty"`
}

func visitorsReport(q *question) makeReport {
	target, n := q.target(), q.limit()
	day, after := q.lastVisitor()
	return func(ctx context.Context, from *report.Reader) (*result, error) {
		came, err := from.CameOn(ctx, q.reading.App, target, day)
		if err != nil {
			return nil, err
		}
		visitors, err := from.Visitors(ctx, q.reading.App, target, day, after, n+1)
		made := listing("visitors", visitors, n, func(v report.DayVisitor) string { return afterVisitor(day, v.Visitor) })
		made.of = came
		return made, err
	}
}

func ranksReport(q *question) makeReport {
	app, target, rank := q.reading.App, q.target(), q.rank()
	var visitor netip.Addr
	if rank == 0 {
		visitor = q.visitor()
	}
	return func(ctx context.Context, from *report.Reader) (*result, error) {
		var found report.Ranked
		var err error
		if rank > 0 {
			found, err = from.ByRank(ctx, app, target, rank)
		} else {
			found, err = from.ByAddress(ctx, app, target, visitor)
		}
		if errors.Is(err, report.ErrNobody) {
			return listing("ranks", []report.Ranked{}, 0, nil), nil
		}
		return listing("ranks", []report.Ranked{found}, 1, nil), err
	}
}

func uniquesReport(q *question) makeReport {
	app, in, prefix, targets := q.reading.App, q.days(), q.prefix(), q.targets()
	switch {
	case prefix != "" && len(targets) > 0:
		q.wrong("prefix", "it is given together with uri or site: use one of them")
	case prefix == "" && len(targets) == 0:
		q.wrong("uri", "it is missing: give uri, site or prefix")
	}
	return func(ctx context.Context, from *report.Reader) (made *result, err error) {
		var u report.Uniques
		switch {
		case prefix != "":
			u, err = from.UniquesUnder(ctx, app, prefix, in)
		case len(targets) == 1: // which is exact for ever; a group is not
			u, err = from.Uniques(ctx, app, targets[0], in)
		default:
			u, err = from.UniquesOfAny(ctx, app, targets, in)
		}
		return single(u), err
	}
}
