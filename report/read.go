// Package report reads what was counted, and writes it for people and programs.
package report

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Reader reads what was counted. It is safe for concurrent use.
type Reader struct{ db *db.DB }

// NewReader reads from a database.
func NewReader(d *db.DB) *Reader { return &Reader{db: d} }

// ErrNoTarget says that an app has counted nothing for a page or site.
var ErrNoTarget = errors.New("nothing was counted for this target")

// ErrNobody says that a target has no visitor of that rank or address.
var ErrNobody = errors.New("there is no such visitor")

// Site is a site and its totals.
type Site struct {
	Site  string    `json:"site"`
	PV    int64     `json:"pv"`
	UV    int64     `json:"uv"`
	Hot   int64     `json:"hot"`
	Since time.Time `json:"since"`
}

// Page is a page and its numbers in a range of days.
type Page struct {
	URI         string `json:"uri"`
	PV          int64  `json:"pv"`
	NewVisitors int64  `json:"new_visitors"`
	Uniques     int64  `json:"uniques"`
	Hot         int64  `json:"hot"`

	id int64 // orders top pages of the same number
}

// Day is what was counted for a target on a day.
type Day struct {
	Day         int32 `json:"day"`
	PV          int64 `json:"pv"`
	NewVisitors int64 `json:"new_visitors"`
	Hot         int64 `json:"hot"`
}

// DayVisitor is somebody who came to a target on a day.
type DayVisitor struct {
	Visitor netip.Addr `json:"visitor"`
	Rank    int64      `json:"rank"`
	New     bool       `json:"new"`
}

// Ranked is a visitor of a target. Erased visitors have nothing but their rank.
type Ranked struct {
	Rank     int64      `json:"rank"`
	Visitor  netip.Addr `json:"visitor,omitzero"`
	FirstDay int32      `json:"first_day,omitzero"`
	LastDay  int32      `json:"last_day,omitzero"`
	Erased   bool       `json:"erased"`
}

// Uniques is how many visitors came in a range, each counted once.
type Uniques struct {
	Uniques       int64   `json:"uniques"`
	Exact         bool    `json:"exact"`
	StandardError float64 `json:"standard_error"` // relative, where it is not exact
	Erased        int64   `json:"erased"`         // days of erased visitors, who cannot be told apart
}

// Sites are the sites of an app in order of name, from the first after the one named.
func (r *Reader) Sites(ctx context.Context, app, after string, n int) (sites []Site, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		rows, err := q.SitesAfter(ctx, db.SitesAfterParams{App: app, After: after, N: int32(n)}) //nolint:gosec // a page of an answer
		sites = convert(rows, func(s db.SitesAfterRow) Site {
			return Site{Site: s.Site, PV: s.Pv, UV: s.Uv, Hot: s.Hot, Since: s.Since}
		})
		return err
	})
	return sites, wrap("sites", err)
}

// TopPages are the first n pages of an app, or of one of its sites, in a range by "pv", "uv" (new visitors) or "hot".
func (r *Reader) TopPages(ctx context.Context, app, site string, in visit.Range, by string, n int) (pages []Page, err error) {
	p := db.PagesTopParams{App: app, FromDay: in.From, ToDay: in.To, N: int32(n), By: by} //nolint:gosec // as above
	if site != "" {
		p.Site = &site
	}
	err = r.db.Report(ctx, func(q *db.Queries) error {
		rows, err := q.PagesTop(ctx, p)
		pages = convert(rows, func(p db.PagesTopRow) Page {
			return Page{URI: p.Uri, PV: p.Pv, NewVisitors: p.NewVisitors, Uniques: p.Uniques, Hot: p.Hot, id: p.PageID}
		})
		return err
	})
	return pages, wrap("top pages", err)
}

// PagesByURI are the pages of an app whose uri begins so, in order of uri, from the first after the one named, with their numbers in
// a range. Those of a site begin with its name and a slash.
func (r *Reader) PagesByURI(ctx context.Context, app, prefix, after string, in visit.Range, n int) (pages []Page, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		rows, err := q.PagesAfter(ctx, db.PagesAfterParams{App: app, Prefix: prefix, After: after, FromDay: in.From, ToDay: in.To, N: int32(n)}) //nolint:gosec // as above
		pages = convert(rows, func(p db.PagesAfterRow) Page {
			return Page{URI: p.Uri, PV: p.Pv, NewVisitors: p.NewVisitors, Uniques: p.Uniques, Hot: p.Hot}
		})
		return err
	})
	return pages, wrap("pages", err)
}

// Days are the numbers of a target day by day. Days on which nobody came are left out; a target that was never counted has none.
func (r *Reader) Days(ctx context.Context, app, target string, in visit.Range, n int) (days []Day, err error) {
	err = r.onTarget(ctx, app, target, func(q *db.Queries, id int64) error {
		rows, err := q.DaysBetween(ctx, db.DaysBetweenParams{PageID: id, FromDay: in.From, ToDay: in.To, N: int32(n)}) //nolint:gosec // as above
		days = convert(rows, func(d db.DaysBetweenRow) Day {
			return Day{Day: d.DayID, PV: d.Pv, NewVisitors: d.NewVisitors, Hot: d.Hot}
		})
		return err
	})
	if errors.Is(err, ErrNoTarget) {
		return nil, nil
	}
	return days, wrap("days", err)
}

// Visitors are those who came to a target on a day, in order of address, from the first after the one named (none: from the first),
// as long as the day's visits are kept.
func (r *Reader) Visitors(ctx context.Context, app, target string, day int32, after netip.Addr, n int) (visitors []DayVisitor, err error) {
	if !after.IsValid() {
		after = netip.IPv4Unspecified() // nobody's, and before all others
	}
	err = r.onTarget(ctx, app, target, func(q *db.Queries, id int64) error {
		rows, err := q.VisitorsOfDay(ctx, db.VisitorsOfDayParams{PageID: id, DayID: day, After: after, N: int32(n)}) //nolint:gosec // as above
		visitors = convert(rows, func(v db.VisitorsOfDayRow) DayVisitor {
			return DayVisitor{Visitor: v.Visitor, Rank: v.Rank, New: v.IsNew}
		})
		return err
	})
	if errors.Is(err, ErrNoTarget) {
		return nil, nil
	}
	return visitors, wrap("visitors of a day", err)
}

// ByRank is who was visitor number so and so of a target, or ErrNobody.
func (r *Reader) ByRank(ctx context.Context, app, target string, rank int64) (who Ranked, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		v, err := q.VisitorByRank(ctx, db.VisitorByRankParams{App: app, Target: target, Rank: rank})
		who = Ranked{Rank: v.Rank, FirstDay: v.FirstDay, LastDay: v.LastDay, Erased: v.Erased}
		if !v.Erased {
			who.Visitor = v.Visitor
		}
		return nobody(err)
	})
	return who, wrap("visitor by rank", err)
}

// ByAddress is which number a visitor has at a target, or ErrNobody. The address is the one that is stored.
func (r *Reader) ByAddress(ctx context.Context, app, target string, visitor netip.Addr) (who Ranked, err error) {
	err = r.onTarget(ctx, app, target, func(q *db.Queries, id int64) error {
		v, err := q.VisitorByAddress(ctx, db.VisitorByAddressParams{PageID: id, Ip: visitor})
		who = Ranked{Rank: v.Rank, Visitor: v.Visitor, FirstDay: v.FirstDay, LastDay: v.LastDay}
		return nobody(err)
	})
	if errors.Is(err, ErrNoTarget) {
		err = ErrNobody
	}
	return who, wrap("visitor by address", err)
}

// Uniques is how many visitors came to a target in a range. One that was never counted had none.
func (r *Reader) Uniques(ctx context.Context, app, target string, in visit.Range) (u Uniques, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		row, err := q.UniquesOfTarget(ctx, db.UniquesOfTargetParams{App: app, Target: target, FromDay: in.From, ToDay: in.To})
		u = Uniques{Uniques: row.Uniques, Exact: row.Exact, StandardError: row.StandardError, Erased: row.Erased}
		if errors.Is(err, db.ErrNoRows) {
			u, err = Uniques{Exact: true}, nil
		}
		return err
	})
	return u, wrap("uniques", err)
}

// UniquesOfAny is how many visitors came to any of several targets in a range.
func (r *Reader) UniquesOfAny(ctx context.Context, app string, targets []string, in visit.Range) (u Uniques, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		row, err := q.UniquesOfTargets(ctx, db.UniquesOfTargetsParams{App: app, Targets: targets, FromDay: in.From, ToDay: in.To})
		u = Uniques(row)
		return err
	})
	return u, wrap("uniques of targets", err)
}

// UniquesUnder is how many visitors came to any page whose uri begins so in a range.
func (r *Reader) UniquesUnder(ctx context.Context, app, prefix string, in visit.Range) (u Uniques, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		row, err := q.UniquesUnder(ctx, db.UniquesUnderParams{App: app, Prefix: prefix, FromDay: in.From, ToDay: in.To})
		u = Uniques(row)
		return err
	})
	return u, wrap("uniques under a prefix", err)
}

// onTarget runs f on the id of a target, or returns ErrNoTarget.
func (r *Reader) onTarget(ctx context.Context, app, target string, f func(q *db.Queries, id int64) error) error {
	return r.db.Report(ctx, func(q *db.Queries) error {
		found, err := q.TargetFind(ctx, db.TargetFindParams{App: app, Target: target})
		if errors.Is(err, db.ErrNoRows) {
			return ErrNoTarget
		}
		if err != nil {
			return err
		}
		return f(q, found.ID)
	})
}

func nobody(err error) error {
	if errors.Is(err, db.ErrNoRows) {
		return ErrNobody
	}
	return err
}

func convert[From, To any](rows []From, f func(From) To) []To {
	converted := make([]To, len(rows))
	for i, row := range rows {
		converted[i] = f(row)
	}
	return converted
}

func wrap(what string, err error) error {
	if err == nil || errors.Is(err, ErrNobody) || errors.Is(err, ErrNoTarget) {
		return err
	}
	return fmt.Errorf("read %s: %w", what, err)
}
