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

// DayVisitor is a visitor of a target on a day.
type DayVisitor = VisitorsOfDayRow

// Ranked is a visitor of a target. Of an erased visitor nothing but the rank is left.
type Ranked struct {
	Rank     int64      `json:"rank"`
	Visitor  netip.Addr `json:"visitor,omitzero"`
	FirstDay int32      `json:"first_day,omitzero"`
	LastDay  int32      `json:"last_day,omitzero"`
	Erased   bool       `json:"erased"`
}

// Visitors returns the first n visitors of a target on a day in order of address, after the one
// named (none: from the first). There are none once the day's rows of visits are deleted.
func (r *Reader) Visitors(ctx context.Context, app, target string, day int32, after netip.Addr, n int) ([]DayVisitor, error) {
	if !after.IsValid() {
		after = netip.IPv4Unspecified() // comes before all others, and is nobody's
	}
	before, err := r.ranksBefore(ctx, app, target)
	if err != nil {
		return nil, err
	}
	p := VisitorsOfDayParams{App: app, Target: target, DayID: day, After: after, N: int32(n)} //nolint:gosec // a page of an answer
	visitors, err := ask(ctx, r, "visitors of a day", (*Queries).VisitorsOfDay, p)
	for i := range visitors {
		if visitors[i].Rank > 0 {
			visitors[i].Rank += before
		}
	}
	return visitors, err
}

// ByRank returns the visitor of a target who has a rank, or ErrNobody or ErrElsewhere.
func (r *Reader) ByRank(ctx context.Context, app, target string, rank int64) (found Ranked, err error) {
	before, err := r.ranksBefore(ctx, app, target)
	if err != nil {
		return found, err
	}
	if rank > 0 && rank <= before {
		return found, ErrElsewhere
	}
	v, err := ask(ctx, r, "visitor by rank", (*Queries).VisitorByRank, VisitorByRankParams{App: app, Target: target, Rank: rank - before})
	if errors.Is(err, db.ErrNoRows) {
		return found, ErrNobody
	}
	found = Ranked(v)
	found.Rank += before
	if v.Erased {
		found.Visitor = netip.Addr{}
	}
	return found, err
}

// ByAddress returns the visitor of a target who is stored under one of some addresses, the first of
// them that is known, or ErrNobody.
func (r *Reader) ByAddress(ctx context.Context, app, target string, stored ...netip.Addr) (found Ranked, err error) {
	before, err := r.ranksBefore(ctx, app, target)
	if err != nil {
		return found, err
	}
	v, err := ask(ctx, r, "visitor by address", (*Queries).VisitorByAddress, VisitorByAddressParams{App: app, Target: target, Stored: stored})
	if errors.Is(err, db.ErrNoRows) {
		return found, ErrNobody
	}
	found = Ranked(v)
	found.Rank += before
	return found, err
}

// CameOn is how many visitors came to a target on a day, which is known for longer than who they
// were.
type CameOn struct {
	Day  int32 `json:"day"`
	PV   int64 `json:"pv"`
	Kept bool  `json:"kept"` // the rows that name them are kept, but for erased visitors
}

// CameOn returns how many visitors came to a target on a day, and whether Visitors names them.
func (r *Reader) CameOn(ctx context.Context, app, target string, day int32) (CameOn, error) {
	days, err := r.Days(ctx, app, target, visit.Range{From: day, To: day}, 1)
	if err != nil || len(days) == 0 {
		return CameOn{Day: day, Kept: true}, err
	}
	kept, err := ask(ctx, r, "whether visitors are kept", (*Queries).VisitorsAreKept, VisitorsAreKeptParams{App: app, Target: target, DayID: day})
	return CameOn{Day: day, PV: days[0].Pv, Kept: kept}, err
}

type visitorsOfDay struct {
	App    string `json:"app"`
	Target string `json:"target"`
	CameOn
	Visitors []DayVisitor `json:"visitors"`
}

// visitorsAtOnce is how many visitors of a day one query reads.
const visitorsAtOnce = 10_000

// VisitorsOfDay reads the first visitors of a target on a day in order of address, at most so many
// (0: all).
func (r *Reader) VisitorsOfDay(ctx context.Context, app, target string, day int32, most int) (Answer, error) {
	came, err := r.CameOn(ctx, app, target, day)
	a := visitorsOfDay{App: app, Target: target, CameOn: came, Visitors: []DayVisitor{}}
	if err != nil || came.PV == 0 {
		return a, err
	}
	a.Visitors, err = readInParts(most, visitorsAtOnce, func(after netip.Addr, n int) ([]DayVisitor, error) {
		return r.Visitors(ctx, app, target, day, after, n)
	})
	return a, err
}

// readInParts reads the first visitors of a day, at most so many (0: all), some at a time.
func readInParts(most, atOnce int, read func(after netip.Addr, n int) ([]DayVisitor, error)) ([]DayVisitor, error) {
	most = cmp.Or(most, math.MaxInt)
	visitors, after := []DayVisitor{}, netip.Addr{}
	for len(visitors) < most {
		n := min(atOnce, most-len(visitors))
		more, err := read(after, n)
		if err != nil {
			return nil, err
		}
		visitors = append(visitors, more...)
		if len(more) < n {
			break
		}
		after = more[len(more)-1].Visitor
	}
	return visitors, nil
}

func (a visitorsOfDay) rows() ([]string, [][]any) { return table(a.Visitors) }

func (a visitorsOfDay) text(s draw.Style) string {
	switch {
	case a.PV == 0:
		return say("%s: nobody came to %s on %s\n", a.App, visit.Shown(a.Target), draw.Day(a.Day))
	case len(a.Visitors) == 0:
		return say("%s: %s came to %s on %s; who they were is not kept any more\n", a.App, draw.Count(a.PV, "visitor"), visit.Shown(a.Target), draw.Day(a.Day))
	}
	text := say("%s: %s of %s on %s\n\n", a.App, draw.Count(a.PV, "visitor"), visit.Shown(a.Target), draw.Day(a.Day)) + draw.Table{
		Columns: []draw.Column{{Name: "VISITOR"}, {Name: "RANK"}, {Name: "NEW"}},
		Rows: convert(a.Visitors, func(v DayVisitor) []any {
			newcomer := ""
			if v.New {
				newcomer = "new"
			}
			return []any{v.Visitor, v.Rank, newcomer}
		}),
	}.Text(s)
	if missing := a.PV - int64(len(a.Visitors)); missing > 0 {
		text += say("\n%s more: erased, or behind these in order of address (-n shows more)\n", draw.Number(missing))
	}
	return text
}

type rankOf struct {
	App    string `json:"app"`
	Target string `json:"target"`
	Ranked
}

// Of makes an answer of a visitor of a target.
func (v Ranked) Of(app, target string) Answer { return rankOf{app, target, v} }

func (a rankOf) rows() ([]string, [][]any) { return table([]Ranked{a.Ranked}) }

func (a rankOf) text(draw.Style) string {
	if a.Erased {
		return say("%s: visitor %s of %s was erased, or has not come for long: nothing but the number is kept\n", a.App, draw.Number(a.Rank), visit.Shown(a.Target))
	}
	return say("%s: visitor %s of %s is %s, who came first on %s and last on %s\n",
		a.App, draw.Number(a.Rank), visit.Shown(a.Target), a.Visitor, draw.Day(a.FirstDay), draw.Day(a.LastDay))
}
