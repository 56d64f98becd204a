package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/handler/routing"
	"footfall/report"
	"footfall/visit"
)

const (
	mostTop    = 50 // maximum number of pages in a list
	usualTop   = "10"
	usualDays  = "30"
	topFor     = time.Minute // lifetime of a cached list
	mostTops   = 1000        // maximum number of cached lists
	topAtFirst = 64          // number of pages that readTopPages reads first; enough unless many pages have the same pv
)

var topDays = []int{1, 7, 30, 90, 365}

// topPage is a page in a public list.
type topPage struct {
	URI      string `json:"uri"`
	Shown    string `json:"shown"` // the URI in readable form
	Title    string `json:"title"` // "" if no title is recorded
	Hot      int64  `json:"hot"`
	PV       int64  `json:"pv"`
	Visitors *int64 `json:"visitors"` // unique visitors in the range; null: not available
}

// tops caches lists of the most visited pages, each for topFor. It is safe for concurrent use.
type tops struct {
	mu   sync.Mutex
	kept map[topKey]cachedTop
}

type topKey struct {
	app, site string
	days      int
}

type cachedTop struct {
	pages []topPage
	until time.Time
}

func (t *tops) get(key topKey, now time.Time) ([]topPage, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, found := t.kept[key]
	return kept.pages, found && now.Before(kept.until)
}

func (t *tops) put(key topKey, pages []topPage, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		t.kept = map[topKey]cachedTop{}
	}
	for other, kept := range t.kept {
		if len(t.kept) >= mostTops || !now.Before(kept.until) {
			delete(t.kept, other)
		}
	}
	t.kept[key] = cachedTop{pages, now.Add(topFor)}
}

// top returns the most visited pages of a site, if the app's list is public.
func (s *service) top(c echo.Context) error {
	q, ctx := c.QueryParams(), c.Request().Context()
	name := q.Get("app")
	s.letRead(c, name)
	cell, err := s.Cells.Of(name)
	if err != nil {
		return err
	}
	ask := s.request(c, &fields{app: field{value: name}})
	site, n, days, parseErr := readTop(q.Get("site"), cmp.Or(q.Get("n"), usualTop), cmp.Or(q.Get("days"), usualDays))
	ask.ParseErr = cmp.Or(ask.ParseErr, parseErr)
	today, err := cell.Counter.AuthorizeTop(ctx, ask, site)
	if err != nil {
		return err
	}
	key, now := topKey{name, site, days}, time.Now()
	pages, found := s.tops.get(key, now)
	if !found {
		if err := s.readInPlace(ctx, cell.Strangers, func(ctx context.Context) error {
			pages, err = readTopPages(ctx, cell, name, site, visit.LastDays(days, today))
			return err
		}); err != nil {
			return err
		}
		s.tops.put(key, pages, now)
	}
	body, err := json.Marshal(map[string]any{"pages": pages[:min(n, len(pages))]})
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, body)
}

func readTop(typed, most, last string) (site string, n, days int, err error) {
	if site, err = visit.ParseSite(typed); err != nil {
		return "", 0, 0, err
	}
	if n, err = strconv.Atoi(most); err != nil || n < 1 || n > mostTop {
		return "", 0, 0, invalid("n", "%.64q is not a number of pages: write 1 to %d", most, mostTop)
	}
	if days, err = strconv.Atoi(last); err != nil || !slices.Contains(topDays, days) {
		return "", 0, 0, invalid("days", "%.64q is not possible: write 1, 7, 30, 90 or 365", last)
	}
	return site, n, days, nil
}

// readTopPages reads the mostTop most visited pages of a site, sorted by pv and then by URI. The report itself does not sort
// pages with the same pv by URI. So readTopPages reads more pages until it has all pages with the same pv as the last page of the
// list.
func readTopPages(ctx context.Context, in *routing.Cell, app, site string, days visit.Range) ([]topPage, error) {
	look := report.Look{App: app, Target: site, In: days, By: "pv", N: topAtFirst}
	for ; ; look.N = min(4*look.N, report.DeepestTop) {
		found, err := in.Reports.TopPages(ctx, look)
		if err != nil {
			return nil, err
		}
		pages := []topPage{}
		for _, p := range found.Rows {
			if path := strings.TrimPrefix(p.URI, site); path == visit.OtherPage || strings.HasPrefix(path, visit.DeletedPage) {
				continue
			}
			page := topPage{p.URI, p.Shown, p.Title, p.Hot, p.PV, nil}
			if p.Uniques >= 0 {
				page.Visitors = &p.Uniques
			}
			pages = append(pages, page)
		}
		all := len(found.Rows) < look.N || look.N == report.DeepestTop
		if !all && (len(pages) <= mostTop || pages[len(pages)-1].PV == pages[mostTop-1].PV) {
			continue
		}
		slices.SortFunc(pages, func(a, b topPage) int { return cmp.Or(cmp.Compare(b.PV, a.PV), cmp.Compare(a.URI, b.URI)) })
		return pages[:min(mostTop, len(pages))], nil
	}
}
