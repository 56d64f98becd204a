// Package routing finds the database that has an app: the only one of a service, or one of several cells, each
// with a counter of its own.
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

// Cell is a database with apps, and what counts, changes and reads there.
type Cell struct {
	Name    string // "": the database from which a service begins
	Counter *counter.Counter
	Admin   *admin.Admin // nil: nobody changes anything over HTTP
	Reports *report.Reader
	Status  func(context.Context) (string, error)
	Close   func() // ends all that belongs to it

	// Places has room for the reports that are being made in the cell: what one waits for holds up no other
	// one. It is made when the cell is led to.
	Places chan struct{}
	// Strangers is the place for reports to callers without an account, a key or a link: a flood of theirs takes none of Places.
	Strangers chan struct{}
	// Turns has room for the calls of many visits that the cell counts at once, which are fewer than all that
	// the service does; nil where it has no other cells.
	Turns chan struct{}

	known atomic.Pointer[app.Register] // as it was seen last
}

// ReportPlaces and the place of strangers are as many as there are connections for reports.
const ReportPlaces = 2

const callTurns = 2 // of the four of intake.Desk

// ofMany is a cell of a service that has others.
func (cell *Cell) ofMany() *Cell {
	cell.makePlaces()
	cell.Turns = make(chan struct{}, callTurns)
	return cell
}

func (cell *Cell) makePlaces() {
	cell.Places, cell.Strangers = make(chan struct{}, ReportPlaces), make(chan struct{}, 1)
}

// Cells are the database from which a service begins, which has the accounts, the keys of all apps and
// the names that lead to cells; and the cells. They are safe for concurrent use.
type Cells struct {
	home    *Cell
	options Options
	table   atomic.Pointer[table] // nil: the service is for one database
	said    pause.Seldom[string]

	mu      sync.Mutex
	found   map[string]*Cell // by name; nil: it is not open yet
	opening map[string]bool
	places  chan struct{} // has room for those that are being opened

	gone map[gone]time.Time // since when

	nodesAway atomic.Pointer[[]string]

	loops, tries, done sync.WaitGroup // tries to open cells, and cells that end
	end                context.CancelFunc
}

// table is where names lead, as it was found out last.
type table struct {
	cells map[string]*Cell // by name; nil: it is not open yet
	at    map[string]*Cell // by the name of an app
	wrong map[string]error // why a name leads nowhere
	twice map[string][]*Cell
}

// One is a service for one database.
func One(home *Cell) *Cells {
	home.makePlaces()
	return &Cells{home: home}
}

// Home is the database from which the service begins.
func (c *Cells) Home() *Cell { return c.home }

// All are the databases that can be asked now; away are the cells that cannot, by name.
func (c *Cells) All() (here []*Cell, away []string) {
	t := c.table.Load()
	if t == nil {
		return []*Cell{c.home}, nil
	}
	if c.home.Counter.Held() != nil {
		here = append(here, c.home)
	}
	for _, name := range slices.Sorted(maps.Keys(t.cells)) {
		if cell := t.cells[name]; cell == nil || cell.Counter.Held() == nil {
			away = append(away, name)
		} else {
			here = append(here, cell)
		}
	}
	return here, away
}

// Of is where an app is; the database from which the service begins, where there is none.
func (c *Cells) Of(name string) (*Cell, error) {
	t := c.table.Load()
	if t == nil {
		return c.home, nil
	}
	cell, err := t.at[name], t.wrong[name]
	if only := stillThere(name, t.twice[name]); len(only) == 1 {
		cell, err = only[0], nil
	} else if cell == nil && err == nil {
		cell, err = c.seek(t, name)
	}
	for hops := 0; err == nil && hops < len(t.cells); hops++ { // an app may have moved a moment ago
		to := cell.leads(name)
		if to == "" {
			return cell, nil
		}
		if cell = t.cells[to]; cell == nil {
			return nil, app.InCell(name, to)
		}
		if held := cell.Counter.Held(); held != nil && held.Apps[name] == nil && held.Cells[name] == "" {
			return nil, app.InCell(name, to) // it is not there yet
		}
	}
	return cell, err
}

// Has reports whether a name leads to an app of this cell, rather than to one of another, or nowhere.
func (c *Cells) Has(cell *Cell, name string) bool {
	in, err := c.Of(name)
	return err == nil && in == cell
}

// stillThere are those of several cells that have an app now, as far as it can be told.
func stillThere(name string, in []*Cell) []*Cell {
	return slices.DeleteFunc(slices.Clone(in), func(cell *Cell) bool { return cell.register().Apps[name] == nil })
}

// leads is the cell that has an app in place of this one; "": none has.
func (cell *Cell) leads(name string) string {
	if held := cell.Counter.Held(); held != nil {
		return held.Cells[name]
	}
	return ""
}

// seek looks everywhere for an app that was added a moment ago, or that there is not.
func (c *Cells) seek(t *table, name string) (*Cell, error) {
	var unseen []string
	for _, of := range slices.Sorted(maps.Keys(t.cells)) {
		cell := t.cells[of]
		if cell == nil {
			unseen = append(unseen, of)
		} else if held := cell.Counter.Held(); held != nil && held.Apps[name] != nil {
			return cell, nil
		}
	}
	if held := c.home.Counter.Held(); name != "" && len(unseen) > 0 && (held == nil || held.Apps[name] == nil && held.Cells[name] == "") {
		return nil, visit.Errorf(visit.Unavailable, "app", "there is no app %.64q but in a cell that is away, if at all: %s", name,
			strings.Join(unseen, ", "))
	}
	return c.home, nil
}

// ForNew is where an app of a name is to be added: in the cell that is asked for, else in the one that
// has the fewest apps. From then on the name leads there.
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
		return nil, visit.Errorf(visit.Invalid, "cell", "there is no cell %.64q, or it is away", in)
	}
	if len(here) == 0 {
		return nil, visit.Errorf(visit.Unavailable, "", "all cells are away; try again")
	}
	for _, cell := range t.cells {
		if cell != nil && cell.register().Apps[name] != nil { // since a moment ago, maybe, and nothing leads there yet
			return cell, nil // which says that there is one
		}
	}
	apps := func(cell *Cell) int { return len(cell.register().Apps) }
	to := slices.MinFunc(here, func(a, b *Cell) int { return cmp.Compare(apps(a), apps(b)) })
	led, err := c.home.Admin.ClaimName(ctx, name, to.Name)
	switch {
	case err != nil:
		return nil, visit.Unanswered(err)
	case led == "":
		return c.home, nil // which says that there is one
	case led != to.Name && in != "":
		return nil, visit.Errorf(visit.Unavailable, "cell", "the name %s leads to the cell %s: leave the cell out, or try again when that "+
			"has had no such app for a minute", name, led)
	case led != to.Name:
		if to = t.cells[led]; to == nil {
			return nil, app.InCell(name, led)
		}
	}
	if moved := to.register().Cells[name]; moved != "" { // an app that was there before
		if !t.lacks(name, to.Name) {
			return nil, app.InCell(name, moved)
		}
		if err := to.Admin.LetNameGo(ctx, name, moved, 0); err != nil {
			return nil, visit.Unanswered(err)
		}
	}
	return to, nil
}

// AllowsOrigin reports whether a page of this origin may read the answers for an app; where name is
// "", for any app at all.
func (c *Cells) AllowsOrigin(ctx context.Context, name, origin string) bool {
	if name != "" {
		cell, err := c.Of(name)
		return err == nil && cell.Counter.AllowsOrigin(ctx, name, origin)
	}
	here, _ := c.All()
	return slices.ContainsFunc(here, func(cell *Cell) bool { return cell.Counter.AllowsOrigin(ctx, "", origin) })
}

// HasApps reports whether there is an app besides those to try out with, or it cannot be told.
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

// NoteLoaded notes the site of a page that has loaded the script, which names no app.
func (c *Cells) NoteLoaded(site string) {
	here, _ := c.All()
	for _, cell := range here {
		cell.Counter.NoteLoaded(site)
	}
}

// AppOf names the app that counts a page if the caller names none: preferred, if it counts the page's site, or else the one that
// lists it. If several do, it is the one that was added first, so that nobody takes another app's pages by listing their site.
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
	if !seen { // it may be in a cell that was not opened yet, and count the page there
		if _, err := c.Of(preferred); err != nil {
			return "", err
		}
	}
	switch {
	case first != nil:
		return first.Name, nil
	case away:
		return "", visit.Errorf(visit.Unavailable, "uri", "no app lists the site %s but in a cell that is away, if at all", page.Site)
	}
	return "", visit.Errorf(visit.Forbidden, "uri", "no app lists the site %s: its operator can add it", page.Site)
}

// ListsElsewhere reports whether an app that the caller may not change lists a site, or a part of *.host.
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
		err = visit.Errorf(visit.Unavailable, "", "a cell is away, whose apps may list the host; try again")
	}
	return false, err
}

// registers are all apps: those of a cell that is away now as they were seen last. away: of some cell none were seen yet.
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

// OfLink is where an app is that a link shows.
func (c *Cells) OfLink(token string) (*Cell, error) {
	here, away := c.All()
	for _, cell := range here {
		if held := cell.Counter.Held(); held != nil {
			if _, found := held.Share(token); found {
				return cell, nil
			}
		}
	}
	if len(away) > 0 {
		return nil, visit.Errorf(visit.Unavailable, "", "this link shows nothing but of a cell that is away, if at all: %s",
			strings.Join(away, ", "))
	}
	return c.home, nil
}
