package handler

import (
	"context"
	"net/url"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/embed"
	"footfall/report"
	"footfall/visit"
)

// errorHeader says why a badge shows no number.
const errorHeader = "Footfall-Error"

// badgePolicy lets a badge that is opened as a page do nothing.
const badgePolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// badge answers with an image, or with what shields.io makes one of. Whatever is wrong, it is an
// image that says so: the proxies of code hosts keep the status of an error for long.
func (r *reports) badge(c echo.Context) error {
	request := c.Request()
	kind := path.Ext(c.Param("file"))
	if kind != ".svg" && kind != ".json" {
		return echo.ErrNotFound
	}
	query, _ := url.ParseQuery(request.URL.RawQuery) // what cannot be read is missing
	b, parseErr := embed.ReadBadge(query)
	says := ofBrowser(request)
	ask := counter.Request{
		App: strings.TrimSuffix(c.Param("file"), kind), URI: b.URI, Event: b.Event, Counted: b.Counted, ParseErr: parseErr,
		Agent: says.Agent, DoNotTrack: says.DoNotTrack, Prefetch: says.Prefetch,
	}
	ask.Peer = r.peer(request)
	number, line, err := r.forBadge(c, ask, b)
	cache := "max-age=0, must-revalidate"
	if b.Count || err != nil {
		cache = "no-store"
	}
	h := c.Response().Header()
	if err != nil {
		_, told := r.statusOf(c, err)
		h.Set(errorHeader, inASCII(told.Message()))
	}
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set(echo.HeaderContentSecurityPolicy, badgePolicy)
	if kind == ".json" {
		return send(c, "application/json", cache, b.JSON(number), false)
	}
	return send(c, "image/svg+xml", cache, b.SVG(number, line), false)
}

// forBadge counts, if that is asked for, and reads what the badge shows. A line that is not there
// is no reason to show no number.
func (r *reports) forBadge(c echo.Context, ask counter.Request, b embed.Badge) (number *int64, line []int64, err error) {
	ctx := c.Request().Context()
	cell, err := r.Cells.Of(ask.App)
	if err != nil {
		return nil, nil, err
	}
	shown, err := cell.Counter.Badge(ctx, ask, b.Count)
	if err != nil {
		return nil, nil, err
	}
	if shown.Skipped != "" {
		c.Response().Header().Set(skippedHeader, string(shown.Skipped))
	}
	n := b.Of(shown.Answer)
	if b.Days > 0 {
		target := shown.Target.Page
		if b.Site {
			target = shown.Target.Site
		}
		err = r.within(ctx, cell.Strangers, func(ctx context.Context) error {
			line, err = lastDays(ctx, cell.Reports, ask.App, target, visit.LastDays(b.Days, shown.Today), b.Number)
			return err
		})
	}
	return &n, line, err
}

func lastDays(ctx context.Context, from *report.Reader, app, target string, in visit.Range, number string) ([]int64, error) {
	numbers := make([]int64, in.Days())
	days, err := from.Days(ctx, app, target, in, len(numbers))
	for _, day := range days {
		i := visit.Range{From: in.From, To: day.Day}.Days() - 1
		numbers[i] = map[string]int64{"hot": day.Hot, "pv": day.Pv, "uv": day.NewVisitors}[number]
	}
	return numbers, err
}

// inASCII is a text as a header can have it.
func inASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}
