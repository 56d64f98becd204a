package report

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/netip"

	"footfall/db"
	"footfall/report/draw"
	"footfall/visit"
)

// DayVisitor is a visitor of a page or site on a day.
type DayVisitor struct {
	Visitor netip.Addr `json:"visitor"`
	Rank    int64      `json:"rank"`
	New     bool       `json:"new"`
}

// Ranked is a visitor of a page or site with the visitor's rank. For an erased visitor, only the rank is set.
type Ranked struct {
	Rank     int64      `json:"rank"`
	Visitor  netip.Addr `json:"visitor,omitzero"`
	FirstDay int32      `json:"first_day,omitzero"`
	LastDay  int32      `json:"last_day,omitzero"`
	Erased   bool       `json:"erased"`
}

// Visitors returns the visitors of a page or site on a day in order of address, starting after l.After. It returns up to l.N +
// 1 visitors, so that the caller can see whether more follow. If l.N is 0, it returns all visitors. If the day's rows of
// visits are deleted, it returns no visitor.
func (r *Reader) Visitors(ctx context.Context, l Look) ([]DayVisitor, error) {
	before := int64(0) // number of visitors counted by another tool, which is subtracted from the ranks
	if r.counted {
		var err error
		if before, err = NewReader(r.db).ranksBefore(ctx, l); err != nil {
			return nil, err
		}
	}
	l.In, l.After.Day = visit.Range{From: l.Day, To: l.Day}, l.Day
	if !l.After.Visitor.IsValid() {
		l.After.Visitor = netip.IPv4Unspecified() // sorts before all other addresses, and belongs to no visitor
	}
	most := cmp.Or(l.N, math.MaxInt-1) + 1
	visitors := []DayVisitor{}
	for {
		n := min(visitorsAtOnce, most-len(visitors))
		l.N = n
		came, err := r.WhoCame(ctx, l)
		if err != nil {
			return nil, err
		}
		for _, v := range came.Rows {
			visitors = append(visitors, DayVisitor{v.Visitor, max(v.Rank-before, 0), v.FirstDay == v.Day})
		}
		if len(came.Rows) < n || len(visitors) == most {
			return visitors, nil
		}
		l.After.Visitor = visitors[len(visitors)-1].Visitor
	}
}

// visitorsAtOnce is the number of visitors that one query reads.
const visitorsAtOnce = DeepestTop

// Ranked returns the visitor of a page or site with the rank l.Rank. If l.Stored is set, it instead returns the visitor who is
// stored under the first matching address in l.Stored. If there is no such visitor, it returns ErrNoVisitor or
// ErrVisitorElsewhere.
func (r *Reader) Ranked(ctx context.Context, l Look) (found Ranked, err error) {
	before, err := r.ranksBefore(ctx, l)
	if err != nil {
		return found, err
	}
	if l.Stored == nil && l.Rank > 0 && l.Rank <= before {
		return found, ErrVisitorElsewhere
	}
	l.Rank -= before
	v, err := runQuery(ctx, r, "visitor", (*Queries).VisitorOf, l)
	if errors.Is(err, db.ErrNoRows) {
		return found, ErrNoVisitor
	}
	found = Ranked(v)
	found.Rank += before
	if v.Erased {
		found.Visitor = netip.Addr{}
	}
	return found, err
}

// VisitorCount is the number of visitors of a page or site on a day. This number is stored for longer than the visitors' identities.
type VisitorCount struct {
	Day  int32 `json:"day"`
	PV   int64 `json:"pv"`
	Kept bool  `json:"kept"` // the rows that identify the visitors still exist, except those of erased visitors
}

// CountVisitors returns the number of visitors of a page or site on a day, and whether the method Visitors can list them.
func (r *Reader) CountVisitors(ctx context.Context, app, target string, day int32) (VisitorCount, error) {
	days, err := r.Days(ctx, app, target, visit.Range{From: day, To: day}, 1)
	if err != nil || len(days) == 0 {
		return VisitorCount{Day: day, Kept: true}, err
	}
	kept, err := runQuery(ctx, r, "whether visitors are kept", (*Queries).VisitorsAreKept, Look{App: app, Target: target, Day: day})
	return VisitorCount{Day: day, PV: days[0].Pv, Kept: kept}, err
}

func (a *Rows) visitorsText(s draw.Style, list []DayVisitor) string {
	came := a.Of.(VisitorCount)
	visitors, of, day := draw.Count(came.PV, "visitor"), visit.Shown(a.Look.Target), draw.Day(came.Day)
	switch {
	case came.PV == 0:
		return escapedf("%s: %s had no visitors on %s\n", a.Look.App, of, day)
	case len(list) == 0:
		return escapedf("%s: %s came to %s on %s; the list of visitors is no longer kept\n", a.Look.App, visitors, of, day)
	}
	text := escapedf("%s: %s of %s on %s\n\n", a.Look.App, visitors, of, day) + draw.Table{
		Columns: []draw.Column{{Name: "VISITOR"}, {Name: "RANK"}, {Name: "NEW"}},
		Rows: convert(list, func(v DayVisitor) []any {
			return []any{v.Visitor, v.Rank, map[bool]string{true: "new"}[v.New]}
		}),
	}.Text(s)
	if missing := came.PV - int64(len(list)); missing > 0 {
		text += escapedf("\nnot listed: %s, erased or later in the order of addresses (-n shows more)\n", draw.Count(missing, "visitor"))
	}
	return text
}

func (a *Rows) rankText(found Ranked) string {
	of := visit.Shown(a.Look.Target)
	if found.Erased {
		return escapedf("%s: visitor %s of %s was erased or forgotten: only the rank is still stored\n",
			a.Look.App, draw.Number(found.Rank), of)
	}
	return escapedf("%s: visitor %s of %s is %s, whose first day was %s and last day %s\n",
		a.Look.App, draw.Number(found.Rank), of, found.Visitor, draw.Day(found.FirstDay), draw.Day(found.LastDay))
}
