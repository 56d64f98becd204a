// Package routing finds the database that an app is in. A service has either a single database, or a home database and several
// cells. A cell is a database that contains some of the apps, and has its own counter.
package routing

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/pause"
	"footfall/report"
	"footfall/visit"
)

// Cell is a database that stores apps, with the objects that count visits, change settings and read reports in this database.
type Cell struct {
	Name    string // "" for the home database
	Counter *counter.Counter
	Admin   *admin.Admin // nil: apps cannot be changed over HTTP
	Reports *report.Reader
	Status  func(context.Context) (string, error)
	Close   func() // closes the database and everything that uses it

	// Places limits the reports that run in this cell at once, so that a slow cell does not delay reports of other cells. The
	// functions NewSingle and prepareForCells create Places.
	Places chan struct{}
	// Strangers is the separate limit for reports to callers without an account, a key or a link. So a flood of such reports does
	// not use up Places.
	Strangers chan struct{}
	// Turns limits the concurrent API calls with many visits or ids for apps of this cell. This limit is lower than the limit of
	// the whole service, so that one cell leaves capacity to the other cells. Turns is nil in a service without cells.
	Turns chan struct{}

	lastRegister atomic.Pointer[app.Register] // the cell's apps as this instance last read them
}

// ReportPlaces is the capacity of Cell.Places. A database has ReportPlaces connections for reports, and one more for
// Cell.Strangers.
const ReportPlaces = 2

const callTurns = 2 // capacity of Cell.Turns; intake.Desk permits four calls for all cells together

// prepareForCells prepares a cell for a service that has several cells.
func (cell *Cell) prepareForCells() *Cell {
	cell.makePlaces()
	cell.Turns = make(chan struct{}, callTurns)
	return cell
}

func (cell *Cell) makePlaces() {
	cell.Places, cell.Strangers = make(chan struct{}, ReportPlaces), make(chan struct{}, 1)
}

// Cells are the home database and the cells. The home database has the accounts and the keys for all apps, and records which app
// is in which cell. Cells is safe for concurrent use.
type Cells struct {
	home     *Cell
	options  Options
	table    atomic.Pointer[table] // nil: the service has a single database
	logLimit pause.Seldom[string]

	mu      sync.Mutex
	cells   map[string]*Cell // by name; nil: not open yet
	opening map[string]bool
	places  chan struct{} // limits how many cells are opened at once

	staleSince map[staleName]time.Time // since when an app's name has pointed to a cell that does not have the app

	nodesAway atomic.Pointer[[]string]

	loops, tries, closing sync.WaitGroup // background loops, attempts to open cells, and cells that are closing
	end                   context.CancelFunc
}

// table maps app names to cells. The function rebuildTable replaces it every second.
type table struct {
	cells      map[string]*Cell // by name; nil: not open yet
	byApp      map[string]*Cell // by app name: the app's cell
	faults     map[string]error // by app name: why requests for the app are refused
	duplicates map[string][]*Cell
}

// NewSingle returns the Cells of a service with a single database.
func NewSingle(home *Cell) *Cells {
	home.makePlaces()
	return &Cells{home: home}
}

// Home returns the home database.
func (c *Cells) Home() *Cell { return c.home }

// All returns the databases that are available now, including the home database, and the names of the unavailable cells.
func (c *Cells) All() (here []*Cell, away []string) {
	t := c.table.Load()
	if t == nil {
		return []*Cell{c.home}, nil
	}
	if c.home.Counter.CachedRegister() != nil {
		here = append(here, c.home)
	}
	for _, name := range slices.Sorted(maps.Keys(t.cells)) {
		if cell := t.cells[name]; cell == nil || cell.Counter.CachedRegister() == nil {
			away = append(away, name)
		} else {
			here = append(here, cell)
		}
	}
	return here, away
}

// Of returns the cell with the app of this name. If no app has this name, Of returns the home database. If the
// app may be in an unreachable cell, Of returns an error.
func (c *Cells) Of(name string) (*Cell, error) {
	t := c.table.Load()
	if t == nil {
		return c.home, nil
	}
	cell, err := t.byApp[name], t.faults[name]
	if only := stillThere(name, t.duplicates[name]); len(only) == 1 {
		cell, err = only[0], nil
	} else if cell == nil && err == nil {
		cell, err = c.seek(t, name)
	}
	for hops := 0; err == nil && hops < len(t.cells); hops++ { // if the app has just moved, follow the forwarding of its former cell
		to := cell.forwardsTo(name)
		if to == "" {
			return cell, nil
		}
		if cell = t.cells[to]; cell == nil {
			return nil, app.InCell(name, to)
		}
		if held := cell.Counter.CachedRegister(); held != nil && held.Apps[name] == nil && held.Cells[name] == "" {
			return nil, app.InCell(name, to) // this instance has not read the moved app from its new cell yet
		}
	}
	return cell, err
}

// Has reports whether requests for an app with this name go to this cell.
func (c *Cells) Has(cell *Cell, name string) bool {
	in, err := c.Of(name)
	return err == nil && in == cell
}

// stillThere returns the cells that still have the app, as far as this instance can see.
func stillThere(name string, in []*Cell) []*Cell {
	return slices.DeleteFunc(slices.Clone(in), func(cell *Cell) bool { return cell.register().Apps[name] == nil })
}

// forwardsTo returns the name of the cell to which this cell forwards requests for an app that has moved, or "".
func (cell *Cell) forwardsTo(name string) string {
	if held := cell.Counter.CachedRegister(); held != nil {
		return held.Cells[name]
	}
	return ""
}

// seek searches all cells for an app that is not in the table: the app may be new, or may not exist. If no cell has it,
// seek returns the home database, or an error if the app may be in a cell that is not open.
func (c *Cells) seek(t *table, name string) (*Cell, error) {
	var unseen []string
	for _, of := range slices.Sorted(maps.Keys(t.cells)) {
		cell := t.cells[of]
		if cell == nil {
			unseen = append(unseen, of)
		} else if held := cell.Counter.CachedRegister(); held != nil && held.Apps[name] != nil {
			return cell, nil
		}
	}
	if held := c.home.Counter.CachedRegister(); name != "" && len(unseen) > 0 &&
		(held == nil || held.Apps[name] == nil && held.Cells[name] == "") {
		return nil, visit.Errorf(visit.Unavailable, "app", "there is no app %.64q, unless it is in a cell that cannot be reached: %s", name,
			strings.Join(unseen, ", "))
	}
	return c.home, nil
}

// ForNew returns the cell for a new app: the requested cell (in) or, if in is "", the cell with the fewest apps. If the service
// has cells, it stores that the app's name points to this cell. If the name already points to a cell and in is "", ForNew returns
// that cell.
func (c *Cells) ForNew(ctx context.Context, name, in string) (*Cell, error) {
	t := c.table.Load()
	if t == nil && in == "" || t != nil && len(t.cells) == 0 && in == "" {
		return c.home, nil
	}
	if err := app.CheckName(name); err != nil {
		return nil, err
	}
	here, _ := c.All()
	here = slices.DeleteFunc(here, func(cell *Cell) bool { return cell == c.home || in != "" && cell.Name != in })
	if len(here) == 0 && in != "" {
		return nil, visit.Errorf(visit.Invalid, "cell", "there is no cell %.64q, or it cannot be reached", in)
	}
	if len(here) == 0 {
		return nil, visit.Errorf(visit.Unavailable, "", "no cell can be reached: try again")
	}
	for _, cell := range t.cells {
		if cell != nil && cell.register().Apps[name] != nil { // not t.byApp, which may not contain a new app yet
			return cell, nil // adding the app there fails because the name is taken
		}
	}
	apps := func(cell *Cell) int { return len(cell.register().Apps) }
	to := slices.MinFunc(here, func(a, b *Cell) int { return cmp.Compare(apps(a), apps(b)) })
	led, err := c.home.Admin.ClaimName(ctx, name, to.Name)
	switch {
	case err != nil:
		return nil, visit.Unanswered(err)
	case led == "":
		return c.home, nil // adding the app there fails because the name is taken
	case led != to.Name && in != "":
		return nil, visit.Errorf(visit.Unavailable, "cell", "the name %s still leads to the cell %s: leave out the field cell, or "+
			"try again one minute after the app was removed from that cell", name, led)
	case led != to.Name:
		if to = t.cells[led]; to == nil {
			return nil, app.InCell(name, led)
		}
	}
	if moved := to.register().Cells[name]; moved != "" { // an earlier app of this name was moved to another cell
		if !t.lacks(name, to.Name) {
			return nil, app.InCell(name, moved)
		}
		if err := to.Admin.LetNameGo(ctx, name, moved, 0); err != nil {
			return nil, visit.Unanswered(err)
		}
	}
	return to, nil
}

// AllowsOrigin reports whether a page of this origin may read responses for an app, or for any app if name is "".
func (c *Cells) AllowsOrigin(ctx context.Context, name, origin string) bool {
	if name != "" {
		cell, err := c.Of(name)
		return err == nil && cell.Counter.AllowsOrigin(ctx, name, origin)
	}
	here, _ := c.All()
	return slices.ContainsFunc(here, func(cell *Cell) bool { return cell.Counter.AllowsOrigin(ctx, "", origin) })
}

// HasApps reports whether there is an app other than the demo app. If a database is unavailable, HasApps returns true.
func (c *Cells) HasApps(ctx context.Context) bool {
	here, away := c.All()
	for _, cell := range here {
		register, err := cell.Counter.Register(ctx)
		if err != nil {
			return true
		}
		for _, a := range register.Apps {
			if !app.IsDemo(&a.App) {
				return true
			}
		}
	}
	return len(away) > 0
}

// NoteLoaded records that a page of this site has loaded the counting script. The request for the script names no app, so the
// counter of every database records the site.
func (c *Cells) NoteLoaded(site string) {
	here, _ := c.All()
	for _, cell := range here {
		cell.Counter.NoteLoaded(site)
	}
}

// AppOf returns the name of the app that counts a page if the caller names no app. This is the preferred app if it counts the
// page's site, and otherwise the app that lists the site. If several apps list the site, AppOf returns the app with the lowest
// ID. Within a database this is the oldest app, so that a newer app cannot take over its pages by listing their site.
func (c *Cells) AppOf(ctx context.Context, uri, preferred string) (name string, err error) {
	page, err := visit.Normalize(uri, nil)
	if err != nil {
		return "", err
	}
	registers, away, err := c.registers(ctx)
	if err != nil {
		return "", err
	}
	seen := preferred == "" || c.table.Load() == nil
	var first *app.App
	for _, register := range registers {
		if a := register.Apps[preferred]; a != nil && a.Counts(page.Site) {
			return preferred, nil
		} else if a != nil {
			seen = true
		}
		for _, a := range register.Apps {
			if a.Lists(page.Site) && (first == nil || cmp.Or(cmp.Compare(a.ID, first.ID), cmp.Compare(a.Name, first.Name)) < 0) {
				first = a
			}
		}
	}
	if !seen { // the preferred app may be in a cell that is not open yet, and may count the page
		if _, err := c.Of(preferred); err != nil {
			return "", err
		}
	}
	switch {
	case first != nil:
		return first.Name, nil
	case away:
		return "", visit.Errorf(visit.Unavailable, "uri", "no app lists the site %s, unless it is in a cell that cannot be reached", page.Site)
	}
	return "", visit.Errorf(visit.Forbidden, "uri", "no app lists the site %s: the operator of an app can add the site to it", page.Site)
}

// ListsElsewhere reports whether another app already lists a site, or a pattern like *.host that overlaps with the site. It
// ignores apps that the caller may change.
func (c *Cells) ListsElsewhere(ctx context.Context, site string, mayChange func(app string) bool) (bool, error) {
	registers, away, err := c.registers(ctx)
	for _, register := range registers {
		for _, a := range register.Apps {
			if !mayChange(a.Name) && slices.ContainsFunc(a.Sites, func(listed string) bool { return visit.Overlap(listed, site) }) {
				return true, err
			}
		}
	}
	if err == nil && away {
		err = visit.Errorf(visit.Unavailable, "", "a cell cannot be reached, and one of its apps may list this host: try again")
	}
	return false, err
}

// registers returns the apps of all databases. For an unreachable cell, it returns the apps that this instance read last. away is
// true if this instance has never read the apps of some cell.
func (c *Cells) registers(ctx context.Context) (all []*app.Register, away bool, err error) {
	t := c.table.Load()
	if t == nil {
		register, err := c.home.Counter.Register(ctx)
		return []*app.Register{register}, false, err
	}
	all = append(all, c.home.register())
	for _, cell := range t.cells {
		if cell == nil {
			away = true
		} else {
			all = append(all, cell.register())
		}
	}
	return all, away, nil
}

// OfLink returns the cell of the app that a shared link shows, or the home database if no cell has this link.
func (c *Cells) OfLink(token string) (*Cell, error) {
	here, away := c.All()
	for _, cell := range here {
		if held := cell.Counter.CachedRegister(); held != nil {
			if _, found := held.Share(token); found {
				return cell, nil
			}
		}
	}
	if len(away) > 0 {
		return nil, visit.Errorf(visit.Unavailable, "",
			"this link is not valid, unless it belongs to a cell that cannot be reached: %s",
			strings.Join(away, ", "))
	}
	return c.home, nil
}
