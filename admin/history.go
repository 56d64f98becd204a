package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// History is an import of daily numbers from another analytics service.
type History struct {
	App, Source string
	Site        string   // site of pages that are listed without a host; "": the only site that the app lists
	Files       []string // file names
	AreParts    bool     // for lines with the same page and day, add up not only page views, but also visits and visitors
	Offsets     bool     // the imported days are also added to the offsets of their pages and sites
	DryRun      bool
}

// Unknown represents a number that the source does not contain.
const Unknown = -1

// HistoryLine is a line of an import: the numbers for a page or a site on a day, or one page view.
type HistoryLine struct {
	Host, Page                       string // Host "": the site of the import; Page: a path or a URI, or "" for the whole site
	Day                              int32
	PageViews, Visits, Visitors, New int64 // each may be Unknown
	ByVisit, ByVisitor               int64 // hashes that identify the visit and the visitor of a page view; 0: unknown
}

// HistoryResult is the result of an import.
type HistoryResult struct {
	HistoryPutRow
	First   []HistoryFirstRow
	Offsets *OffsetCounts   // how many offsets were changed; nil: no offset contains history
	Totals  []OffsetsPutRow // the first changed offsets, with their numbers
}

// HistoryTo receives the lines of an import.
type HistoryTo struct {
	q        queries
	app      *db.App
	zone     *time.Location
	site     string
	onlySite bool // reject lines about any other site than site
	today    int32
	lines    HistoryReadParams
	targets  map[[2]string]visit.Target
}

const (
	historyAtOnce = 5000  // number of lines in one query
	mostTargets   = 10000 // maximum number of pages and sites in the cache HistoryTo.targets
)

// ImportHistory imports all lines that the function read adds. If read or another step fails, it imports nothing. It replaces
// the days that a site already has from the same source. It fails if a site has any of the days from another source. If h.DryRun
// is true, it changes nothing.
func (a *Admin) ImportHistory(ctx context.Context, h History, read func(to *HistoryTo) error) (done HistoryResult, err error) {
	var totals bool
	err = a.inLongTx(ctx, h.App, func(q queries, row *db.App) error {
		done = HistoryResult{}
		to, err := newHistoryTo(ctx, q, row, h.Site)
		if err != nil {
			return err
		}
		if err := errors.Join(read(to), to.send(ctx)); err != nil {
			return err
		}
		var now *db.App
		// The app is read again, because it may have changed or moved while the files were read.
		now, totals, err = q.lockForHistory(ctx, row, h.Offsets)
		switch {
		case err == nil && now.ID != row.ID:
			err = app.NoApp(h.App)
		case err == nil && now.Tz != row.Tz:
			err = visit.Errorf(visit.Unavailable, "tz", "the time zone of app %s was changed in the meantime: try again", h.App)
		}
		if err != nil {
			return err
		}
		done.HistoryPutRow, err = q.HistoryPut(ctx, HistoryPutParams{AppID: row.ID, Source: h.Source, Files: h.Files, AreParts: h.AreParts,
			ToTotals: h.Offsets})
		if err != nil {
			return err
		}
		if done.Others > 0 {
			return visit.Errorf(visit.Invalid, "", "%s already has days of the source %s (%s to %s): a day can have only one source. "+
				"Remove that import (`footfall history list` has its number), or leave these days out of the file", visit.Shown(done.OtherSite),
				visit.CountedBy(done.Other), visit.DayText(done.OtherFirst), visit.DayText(done.OtherLast))
		}
		if done.First, err = q.HistoryFirst(ctx); err != nil {
			return err
		}
		if totals {
			done.Offsets = &OffsetCounts{}
			*done.Offsets, done.Totals, err = q.putOffsets(ctx, h.App, OffsetsPutParams{AppID: row.ID, OfHistory: true})
			if err != nil {
				return err
			}
		}
		if h.DryRun {
			return errDryRun
		}
		if done.ImportID == 0 {
			return nil
		}
		return q.note(ctx, h.App, "history", "", fmt.Sprintf("%s, %s added, %s replaced", strings.Join(h.Files, ", "), days(done.Added),
			days(done.Replaced)))
	})
	if errors.Is(err, errDryRun) {
		return done, nil
	}
	if totals {
		err = a.waitForChange(ctx, "import history of app "+h.App, err)
	}
	return done, wrap("import history of app "+h.App, err)
}

func days(n int64) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}

func newHistoryTo(ctx context.Context, q queries, row *db.App, site string) (*HistoryTo, error) {
	if row.DeletedAt != nil {
		return nil, errBeingDeleted
	}
	to := &HistoryTo{q: q, app: row, site: site, onlySite: site != "", targets: map[[2]string]visit.Target{}}
	if to.site == "" && len(row.Sites) == 1 && !strings.ContainsAny(row.Sites[0], "*") {
		to.site = row.Sites[0]
	}
	var err error
	if site != "" {
		if to.site, err = visit.ParseSite(site); err != nil {
			return nil, err
		}
		if !app.CountsSite(row, to.site) {
			return nil, notCounted(row, to.site)
		}
	}
	if to.zone, err = time.LoadLocation(row.Tz); err != nil {
		return nil, err
	}
	to.today, err = q.HistoryToday(ctx, row.ID)
	return to, err
}

func notCounted(row *db.App, site string) error {
	return visit.Errorf(visit.Invalid, "", "app %s does not count %s", row.Name, visit.Shown(site))
}

// lockForHistory locks an app whose history is about to change, and returns the app's row. wanted means that the new history
// is also added to offsets. totals is true if offsets of the app contain history now, or will contain it. If totals is true, the
// lock is AppLock, as for every change of offsets. Otherwise the weaker lock AppShare is enough.
func (q queries) lockForHistory(ctx context.Context, row *db.App, wanted bool) (now *db.App, totals bool, err error) {
	before, err := q.HistoryInTotals(ctx, row.ID)
	lock := queries.AppShare
	if totals = wanted || before; totals {
		lock = queries.AppLock
	}
	if err == nil {
		now, err = q.lockApp(ctx, row.Name, lock)
	}
	if err != nil || totals {
		return now, totals, err
	}
	since, err := q.HistoryInTotals(ctx, row.ID)
	if since {
		err = visit.Errorf(visit.Unavailable, "", "another import has just changed the offsets of app %s: try again", row.Name)
	}
	return now, totals, err
}

// Day returns the day of a moment in the app's time zone.
func (to *HistoryTo) Day(at time.Time) int32 { return visit.DayOf(at, to.zone) }

// Add adds a line to the import. It returns a *visit.Error if the line is invalid. After any other error, the import must end.
func (to *HistoryTo) Add(ctx context.Context, t *HistoryLine) error {
	const firstDay = 19910101 // before the first web page
	switch {
	case t.Day < firstDay:
		return visit.Errorf(visit.Invalid, "", "%s is before 1991", visit.DayText(t.Day))
	case t.Day > to.today:
		return visit.Errorf(visit.Invalid, "", "%s is in the future: in %s it is %s", visit.DayText(t.Day), to.zone, visit.DayText(to.today))
	}
	for _, n := range []int64{t.PageViews, t.Visits, t.Visitors, t.New} {
		if n > mostOffset/1000 {
			return visit.Errorf(visit.Invalid, "", "%d is more than %d", n, int64(mostOffset/1000))
		}
	}
	target, err := to.target(t.Host, t.Page)
	if err != nil {
		return err
	}
	l := &to.lines
	l.Sites, l.Uris, l.Days = append(l.Sites, target.Site), append(l.Uris, target.Page), append(l.Days, t.Day)
	l.PageViews, l.Visits = append(l.PageViews, t.PageViews), append(l.Visits, t.Visits)
	l.Visitors, l.NewVisitors = append(l.Visitors, t.Visitors), append(l.NewVisitors, t.New)
	l.ByVisit, l.ByVisitor = append(l.ByVisit, t.ByVisit), append(l.ByVisitor, t.ByVisitor)
	if len(l.Days) < historyAtOnce {
		return nil
	}
	return to.send(ctx)
}

func (to *HistoryTo) send(ctx context.Context) error {
	err := to.q.HistoryRead(ctx, to.lines)
	l := &to.lines
	*l = HistoryReadParams{Sites: l.Sites[:0], Uris: l.Uris[:0], Days: l.Days[:0], PageViews: l.PageViews[:0], Visits: l.Visits[:0],
		Visitors: l.Visitors[:0], NewVisitors: l.NewVisitors[:0], ByVisit: l.ByVisit[:0], ByVisitor: l.ByVisitor[:0]}
	return err
}

// target parses the host and the page of a line. page is a path on host, a URI as in reports, or "" if the line is about the
// site. If host is "", the line is about the site of the import.
func (to *HistoryTo) target(host, page string) (target visit.Target, err error) {
	key := [2]string{host, page}
	if known, is := to.targets[key]; is {
		return known, nil
	}
	switch {
	case page != "" && page[0] != '/':
		var uri string
		uri, err = visit.ParseTarget(page, to.app.KeepQuery)
		site, path, _ := strings.Cut(uri, "/")
		if site == visit.OtherSite || site == visit.EventSite || "/"+path == visit.OtherPage || "/"+path == visit.DeletedPage {
			return target, visit.Errorf(visit.Invalid, "", "it is not a page")
		}
		target = visit.Target{Site: site, Page: uri}
	case host == "" && to.site == "":
		return target, visit.Errorf(visit.Invalid, "", "the line has no host: specify the site with --site")
	case page == "":
		target.Site, err = visit.ParseSite(cmp.Or(host, to.site))
		target.Page = target.Site
	default:
		target, err = visit.Normalize("http://"+cmp.Or(host, to.site)+page, to.app.KeepQuery)
	}
	// An error about a page must not name a field, because the caller's input has no field for a page.
	if err != nil && page != "" {
		err = visit.InField("", err)
	}
	if err != nil {
		return target, err
	}
	if to.onlySite && target.Site != to.site {
		return target, visit.Errorf(visit.Invalid, "", "it belongs to another host, %s", visit.Shown(target.Site))
	}
	if !app.CountsSite(to.app, target.Site) {
		return target, notCounted(to.app, target.Site)
	}
	if len(to.targets) >= mostTargets {
		clear(to.targets)
	}
	to.targets[[2]string{strings.Clone(host), strings.Clone(page)}] = target
	return target, nil
}

// HistoryImports lists the imports of an app, the latest import first.
func (a *Admin) HistoryImports(ctx context.Context, app string) ([]HistoryListRow, error) {
	return list(ctx, a, "history", app, queries.HistoryList)
}

// checkHistory returns an error if an app has imported history. Its time zone must then stay the same, because the import has
// assigned page views to days of this time zone.
func (q queries) checkHistory(ctx context.Context, row *db.App) error {
	is, err := q.HistoryExists(ctx, row.ID)
	if err == nil && is {
		err = visit.Errorf(visit.Invalid, "tz", "app %s has history with days in the time zone %s: remove it first "+
			"(`footfall history remove`), and import it again", row.Name, row.Tz)
	}
	return err
}

// RemoveHistory removes imports by their IDs, and returns the number of days in them.
func (a *Admin) RemoveHistory(ctx context.Context, app string, numbers ...int32) (removed int64, err error) {
	done, err := a.TakeBackHistory(ctx, app, false, numbers)
	return done.Replaced, err
}

// TakeBackHistory removes imports by their IDs, also from the offsets that contain them. done.Replaced is the number of days in
// the removed imports. If try is true, it changes nothing.
func (a *Admin) TakeBackHistory(ctx context.Context, app string, try bool, numbers []int32) (done HistoryResult, err error) {
	slices.Sort(numbers)
	var totals bool
	err = a.inLongTx(ctx, app, func(q queries, row *db.App) (err error) {
		done = HistoryResult{}
		if row, totals, err = q.lockForHistory(ctx, row, false); err != nil {
			return err
		}
		for _, id := range slices.Compact(numbers) {
			had, err := q.HistoryRemove(ctx, row.ID, id)
			if err != nil {
				return replaceNoRows(err, visit.Errorf(visit.NotFound, "number",
					"app %s has no history import %d: `footfall history list` lists the imports", app, id))
			}
			done.Replaced += had.Days
			if err := q.note(ctx, app, "history", fmt.Sprintf("import %d of %s, %s", id, visit.CountedBy(had.Source), days(had.Days)),
				""); err != nil {
				return err
			}
		}
		if totals {
			done.Offsets = &OffsetCounts{}
			*done.Offsets, done.Totals, err = q.putOffsets(ctx, app, OffsetsPutParams{AppID: row.ID, OfHistory: true})
		}
		if err == nil && try {
			err = errDryRun
		}
		return err
	})
	if errors.Is(err, errDryRun) {
		return done, nil
	}
	if totals {
		err = a.waitForChange(ctx, "remove history of app "+app, err)
	}
	return done, wrap("remove history of app "+app, err)
}
