package report

import (
	"context"
	"net/netip"
	"strings"

	"footfall/db"
	"footfall/visit"
)

// Look is what somebody looks at: a page or a site of an app, or the app, in a range of days. Some of
// these days are compared with those so many days before (0: none are); all but those of a chart
// begin with the range.
type Look struct {
	App      string
	Target   string
	In       visit.Range
	Before   int
	Compared visit.Range
	OfSite   bool // nothing is shown that was noted of all sites of the app
}

// AppToday is an app at a glance.
type AppToday struct {
	App        string  `json:"app"`
	TZ         string  `json:"tz"`
	Sites      int64   `json:"sites"`
	Today      int64   `json:"today"` // visits
	Last30Days []int64 `json:"last_30_days"`
	FirstDay   int32   `json:"first_day"` // that was counted of a site; 0: none was
}

// SiteBetween is a site in a range of days.
type SiteBetween struct {
	Site          string  `json:"site"`
	Today         int64   `json:"today"` // visitors
	Uniques       int64   `json:"uniques"`
	NewVisitors   int64   `json:"new_visitors"`
	PV            int64   `json:"pv"`
	Hot           int64   `json:"hot"`
	UniquesBefore int64   `json:"uniques_before"`
	Last30Days    []int64 `json:"last_30_days"` // visitors of each
	// Those of the days that are compared; of the range where none are.
	UniquesCompared int64 `json:"uniques_compared"`
	FirstDay        int32 `json:"first_day"` // that was counted; 0: none was
}

// Numbers are those of a target in a range of days.
type Numbers struct {
	FirstDay    int32 `json:"first_day"`
	LastDay     int32 `json:"last_day"`
	Uniques     int64 `json:"uniques"`
	NewVisitors int64 `json:"new_visitors"`
	PV          int64 `json:"pv"`
	Hot         int64 `json:"hot"`
	Exact       bool  `json:"exact"`
}

// Period is a day, a week or a month of a target.
type Period struct {
	FirstDay       int32 `json:"first_day"`
	LastDay        int32 `json:"last_day"`
	Visitors       int64 `json:"visitors"`
	NewVisitors    int64 `json:"new_visitors"`
	PV             int64 `json:"pv"`
	Hot            int64 `json:"hot"`
	VisitorsBefore int64 `json:"visitors_before"`
	Compared       bool  `json:"compared"` // it has a VisitorsBefore
	// Notes of its days, each behind its day: 2019-06-29 A new version.
	Notes []string `json:"notes"`
}

// FirstPage is one of the first pages of a site.
type FirstPage struct {
	URI           string `json:"uri"`
	Uniques       int64  `json:"uniques"`
	NewVisitors   int64  `json:"new_visitors"`
	PV            int64  `json:"pv"`
	Hot           int64  `json:"hot"`
	UniquesBefore int64  `json:"uniques_before"`
	// Those of the days that are compared; of the range where none are.
	UniquesCompared int64 `json:"uniques_compared"`
}

// Returned is how often visitors came back after so many days.
type Returned struct {
	FromDays int32 `json:"from_days"`
	ToDays   int32 `json:"to_days"` // OrMore: at least FromDays
	Visitors int64 `json:"visitors"`
}

// OrMore is ToDays where there is no end.
const OrMore = 99_999

// FirstVisit is the first visit of a visitor, of whom nothing but the rank is told.
type FirstVisit struct {
	Rank     int64 `json:"rank"`
	FirstDay int32 `json:"first_day"` // 0: the visitor was erased or forgotten
	IsRound  bool  `json:"is_round"`
}

// Came is a visitor of a target on a day.
type Came struct {
	Day         int32      `json:"day"`
	Visitor     netip.Addr `json:"visitor"`
	Rank        int64      `json:"rank"`
	FirstDay    int32      `json:"first_day"`
	PreviousDay int32      `json:"previous_day"` // the last one before; 0: none
	LastDay     int32      `json:"last_day"`
}

// AppsToday reads apps at a glance.
func (r *Reader) AppsToday(ctx context.Context, apps []string) (Panel[AppToday], error) {
	return panelOf(ctx, r, "apps", db.PanelApps, (*db.Queries).PanelApps, apps, func(a db.PanelAppsRow) AppToday {
		return AppToday{a.App, a.Tz, a.Sites, a.Today, a.Last30Days, a.FirstDay}
	})
}

// SitesBetween reads the sites of an app in a range, at most DeepestTop.
func (r *Reader) SitesBetween(ctx context.Context, l Look) (Panel[SiteBetween], error) {
	p := db.PanelSitesParams{App: l.App, FromDay: l.In.From, ToDay: l.In.To, DaysBefore: int32(l.Before), N: DeepestTop, ComparedTo: l.Compared.To} //nolint:gosec // at most a century
	return panelOf(ctx, r, "sites", db.PanelSites, (*db.Queries).PanelSites, p, func(s db.PanelSitesRow) SiteBetween {
		return SiteBetween{s.Site, s.Today, s.Uniques, s.NewVisitors, s.Pv, s.Hot, s.UniquesBefore, s.Last30Days, s.UniquesCompared, s.FirstDay}
	})
}

// Numbers reads the numbers of a target in a range; below it those of the days that are compared,
// unless they are all, and those of the days before.
func (r *Reader) Numbers(ctx context.Context, l Look) (Panel[Numbers], error) {
	p := db.PanelNumbersParams{App: l.App, Target: l.Target, FromDay: l.In.From, ToDay: l.In.To, ComparedTo: l.Compared.To, DaysBefore: int32(l.Before)} //nolint:gosec // at most a century
	return panelOf(ctx, r, "numbers", db.PanelNumbers, (*db.Queries).PanelNumbers, p, func(n db.PanelNumbersRow) Numbers {
		return Numbers{n.FirstDay, n.LastDay, n.Uniques, n.NewVisitors, n.Pv, n.Hot, n.Exact}
	})
}

// Chart reads a target by "day", "week" or "month".
func (r *Reader) Chart(ctx context.Context, l Look, by string) (Panel[Period], error) {
	p := db.PanelChartParams{App: l.App, Target: l.Target, FromDay: l.In.From, ToDay: l.In.To, Period: by, DaysBefore: int32(l.Before), ComparedFrom: l.Compared.From, ComparedTo: l.Compared.To, NotesOfAll: !l.OfSite} //nolint:gosec // at most a century
	return panelOf(ctx, r, "chart", db.PanelChart, (*db.Queries).PanelChart, p, func(c db.PanelChartRow) Period {
		return Period{c.FirstDay, c.LastDay, c.Visitors, c.NewVisitors, c.Pv, c.Hot, c.VisitorsBefore, c.Compared, c.Notes}
	})
}

// FirstPages reads the first n pages of a site by "pv", "uv" or "hot". The statement has more of
// them, DeepestTop.
func (r *Reader) FirstPages(ctx context.Context, l Look, by string, n int) (Panel[FirstPage], error) {
	p := db.PanelPagesParams{App: l.App, FromDay: l.In.From, ToDay: l.In.To, N: int32(n), By: by, Site: l.Target, DaysBefore: int32(l.Before), ComparedTo: l.Compared.To} //nolint:gosec // at most DeepestTop, and a century
	first, err := panelOf(ctx, r, "first pages", db.PanelPages, (*db.Queries).PanelPages, p, func(f db.PanelPagesRow) FirstPage {
		return FirstPage{f.Uri, f.Uniques, f.NewVisitors, f.Pv, f.Hot, f.UniquesBefore, f.UniquesCompared}
	})
	p.N = DeepestTop
	first.SQL = statementOf(db.PanelPages, p)
	return first, err
}

// PagesVisited is how many pages a site has that FirstPages has some of; most, where they are more.
func (r *Reader) PagesVisited(ctx context.Context, l Look, by string, most int) (n int64, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		n, err = q.PagesVisited(ctx, db.PagesVisitedParams{App: l.App, Site: l.Target, FromDay: l.In.From, ToDay: l.In.To, By: by, N: int32(most)}) //nolint:gosec // a few thousand
		return err
	})
	return n, wrap("how many pages were visited", err)
}

// FindPages reads the pages of a site whose path has a part, as they are in the range: at most
// DeepestTop, those that have been visited most in all.
func (r *Reader) FindPages(ctx context.Context, l Look, part string) (Panel[FirstPage], error) {
	p := db.PanelSearchParams{App: l.App, Site: l.Target, Part: visit.StoredPart(part), FromDay: l.In.From, ToDay: l.In.To, N: DeepestTop, DaysBefore: int32(l.Before), ComparedTo: l.Compared.To} //nolint:gosec // at most a century
	return panelOf(ctx, r, "pages by part of the path", db.PanelSearch, (*db.Queries).PanelSearch, p, func(f db.PanelSearchRow) FirstPage {
		return FirstPage{f.Uri, f.Uniques, f.NewVisitors, f.Pv, f.Hot, f.UniquesBefore, f.UniquesCompared}
	})
}

// PagesAfter reads the pages of a site, or those whose path has a part, in order of URI after one
// ("": from the first), DeepestTop at once, and with them those that were not visited in the range.
func (r *Reader) PagesAfter(ctx context.Context, l Look, part, after string) (pages []FirstPage, err error) {
	p := db.PagesAfterParams{App: l.App, Prefix: l.Target + "/", Part: strings.ToLower(visit.StoredPart(part)), After: after, FromDay: l.In.From, ToDay: l.In.To, N: DeepestTop}
	if l.Before > 0 {
		before := l.Compared.Earlier(l.Before)
		p.BeforeFrom, p.BeforeTo, p.ComparedTo = before.From, before.To, l.Compared.To
	}
	err = r.db.Report(ctx, func(q *db.Queries) error {
		rows, err := q.PagesAfter(ctx, p)
		pages = convert(rows, func(f db.PagesAfterRow) FirstPage {
			return FirstPage{f.Uri, f.Uniques, f.NewVisitors, f.Pv, f.Hot, f.UniquesBefore, f.UniquesCompared}
		})
		return err
	})
	return pages, wrap("pages", err)
}

// ReturnedAfter reads how often visitors of a target came back in a range, after how many days.
func (r *Reader) ReturnedAfter(ctx context.Context, l Look) (Panel[Returned], error) {
	p := db.PanelReturnsParams{App: l.App, Target: l.Target, FromDay: l.In.From, ToDay: l.In.To}
	return panelOf(ctx, r, "returns", db.PanelReturns, (*db.Queries).PanelReturns, p, func(b db.PanelReturnsRow) Returned {
		return Returned(b)
	})
}

// FirstVisits reads when the latest n visitors of a target came first, and the n latest of those
// with a round number.
func (r *Reader) FirstVisits(ctx context.Context, app, target string, n int) (Panel[FirstVisit], error) {
	p := db.PanelFirstVisitsParams{App: app, Target: target, N: int32(n)} //nolint:gosec // a few
	return panelOf(ctx, r, "first visits", db.PanelFirstVisits, (*db.Queries).PanelFirstVisits, p, func(f db.PanelFirstVisitsRow) FirstVisit {
		return FirstVisit(f)
	})
}

// WhoCame reads who came to a target on each day of a range, the last day first: n of them after
// one (the zero value: from the first). The statement begins with the first, and has DeepestTop.
func (r *Reader) WhoCame(ctx context.Context, l Look, after Came, n int) (Panel[Came], error) {
	p := db.PanelWhoCameParams{App: l.App, Target: l.Target, FromDay: l.In.From, ToDay: l.In.To, N: int32(n), AfterDay: after.Day} //nolint:gosec // a few
	if after.Visitor.IsValid() {
		p.After = after.Visitor.String()
	}
	came, err := panelOf(ctx, r, "who came", db.PanelWhoCame, (*db.Queries).PanelWhoCame, p, func(w db.PanelWhoCameRow) Came {
		visitor, _ := netip.ParseAddr(w.Visitor) // it is the text of one
		return Came{w.Day, visitor, w.Rank, w.FirstDay, w.PreviousDay, w.LastDay}
	})
	p.N, p.AfterDay, p.After = DeepestTop, 0, ""
	came.SQL = statementOf(db.PanelWhoCame, p)
	return came, err
}

// panelOf runs a generated query.
func panelOf[Argument, From, To any](ctx context.Context, r *Reader, what, text string,
	query func(*db.Queries, context.Context, Argument) ([]From, error), argument Argument, to func(From) To,
) (p Panel[To], err error) {
	p.SQL = statementOf(text, argument)
	err = r.db.Report(ctx, func(q *db.Queries) error {
		rows, err := query(q, ctx, argument)
		p.Rows = convert(rows, to)
		return err
	})
	return p, wrap(what, err)
}
