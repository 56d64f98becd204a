package routing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"footfall/counter/app"
	"footfall/pause"
	"footfall/visit"
)

// Options are the options of Open. All are required.
type Options struct {
	// Find returns the names of all cells.
	Find func(context.Context) ([]string, error)
	// Reach returns an error if the cell does not respond now. If the database with this name is not a cell, the error is ErrNoCell,
	// and later calls of Find leave out the name.
	Reach func(ctx context.Context, name string) error
	// Open opens a cell that Reach has just reached; all is the number of cells. Opening may take long, for example while
	// migrations run.
	Open func(ctx context.Context, name string, all int) (*Cell, error)
	// NodesAway returns the names of cluster machines that do not respond.
	NodesAway func(context.Context) ([]string, error)
	// LeadFor is how long an app's name continues to point to a cell that no longer has the app. Accounts keep their rights to
	// the name during this time.
	LeadFor time.Duration
	Log     *slog.Logger
}

// ErrNoCell means that a database looked like a cell but is not one.
var ErrNoCell = errors.New("it is not a cell")

const (
	lookEvery   = time.Second
	reachWithin = 3 * time.Second // time limit of Options.Reach
	openAtOnce  = 4               // maximum number of cells to open at once; opening one needs a dozen database connections
	startWithin = time.Minute     // how long Open waits for cells to open; after that, they open in the background
	namesWithin = 5 * time.Second
	nodesEvery  = 5 * time.Second
	sayEvery    = time.Minute
)

// Open starts routing apps to cells. It returns when all cells that currently respond are open, or after startWithin at the
// latest. Cells.Close stops the routing.
func Open(ctx context.Context, home *Cell, o Options) (*Cells, error) {
	c := &Cells{home: home.prepareForCells(), options: o, logLimit: pause.Seldom[string]{Every: sayEvery}, cells: map[string]*Cell{},
		opening: map[string]bool{}, staleSince: map[staleName]time.Time{}, places: make(chan struct{}, openAtOnce)}
	opens, endOpens := context.WithCancel(ctx)
	// running does not end with ctx, so that routing continues during shutdown until accepted requests are answered.
	running, endRunning := context.WithCancel(context.WithoutCancel(ctx))
	c.end = func() { endOpens(); endRunning() }
	var first sync.WaitGroup // the first attempts to open cells; separate from c.tries, which may grow during the wait below
	if err := c.seekCells(opens, &first); err != nil {
		c.end()
		return nil, err
	}
	tried := make(chan struct{})
	c.loops.Go(func() { first.Wait(); close(tried) })
	within := time.NewTimer(startWithin)
	defer within.Stop()
	select {
	case <-tried:
	case <-within.C:
	}
	c.rebuildTable()
	c.loops.Go(func() {
		for pause.For(running, lookEvery) == nil {
			c.rebuildTable()
		}
	})
	c.loops.Go(func() { // a separate loop, because it may wait for the home database
		for pause.For(running, lookEvery) == nil {
			if err := c.seekCells(opens, &c.tries); err != nil {
				c.logError(running, "cannot list the cells; retrying", err)
			}
			if err := c.storeCellsOfApps(running); err != nil {
				c.logError(running, "cannot store which cells the apps are in; retrying", err)
			}
		}
	})
	c.loops.Go(func() { // a separate loop, because it may wait for a machine that does not respond
		for ; running.Err() == nil; _ = pause.For(running, nodesEvery) {
			within, cancel := context.WithTimeout(running, namesWithin)
			if away, err := o.NodesAway(within); err == nil {
				c.nodesAway.Store(&away)
			}
			cancel()
		}
	})
	return c, nil
}

// Close stops the routing and closes all cells. Each cell first finishes the requests that it accepted. Close closes the home
// database last.
func (c *Cells) Close() {
	if c.end != nil {
		c.end()
		c.loops.Wait()
		c.tries.Wait()
	}
	for _, cell := range c.cells { // no other goroutine changes c.cells any more
		if cell != nil {
			c.closing.Go(cell.Close)
		}
	}
	c.closing.Wait()
	c.home.Close()
}

func (c *Cells) logError(ctx context.Context, what string, err error) {
	if _, speak := c.logLimit.Next(what, time.Now()); speak && ctx.Err() == nil {
		c.options.Log.Error(what, "error", err)
	}
}

// seekCells lists the cells, starts opening new cells, and closes cells that no longer exist. If the list is unavailable,
// seekCells uses the previous list.
func (c *Cells) seekCells(ctx context.Context, tries *sync.WaitGroup) error {
	within, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	names, err := c.options.Find(within)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		names = slices.Collect(maps.Keys(c.cells))
	}
	for name, cell := range c.cells {
		if !slices.Contains(names, name) {
			delete(c.cells, name)
			if cell != nil {
				c.closing.Go(cell.Close)
			}
		}
	}
	for _, name := range names {
		if cell := c.cells[name]; cell == nil && !c.opening[name] {
			c.cells[name], c.opening[name] = nil, true
			tries.Go(func() { c.open(ctx, name, len(names)) })
		}
	}
	return err
}

func (c *Cells) open(ctx context.Context, name string, all int) {
	cell, err := c.reachAndOpen(ctx, name, all)
	none := errors.Is(err, ErrNoCell)
	if err != nil && !none {
		c.logError(ctx, "cannot open the cell "+name+", so requests for its apps are refused; retrying", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.opening, name)
	if none {
		delete(c.cells, name)
	} else if _, wanted := c.cells[name]; wanted && err == nil {
		c.cells[name] = cell
	} else if err == nil {
		c.closing.Go(cell.Close)
	}
}

// reachAndOpen opens a cell. c.places limits how many cells are opened at once. reachAndOpen takes a place only after the cell
// responds, so that unreachable cells do not delay other cells.
func (c *Cells) reachAndOpen(ctx context.Context, name string, all int) (*Cell, error) {
	within, cancel := context.WithTimeout(ctx, reachWithin)
	err := c.options.Reach(within, name)
	cancel()
	if err != nil {
		return nil, err
	}
	select {
	case c.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.places }()
	cell, err := c.options.Open(ctx, name, all)
	if err != nil {
		return nil, err
	}
	return cell.prepareForCells(), nil
}

// register returns the cell's apps. If the cell is unreachable, it returns the apps that this instance read last.
func (cell *Cell) register() *app.Register {
	if held := cell.Counter.CachedRegister(); held != nil {
		cell.lastRegister.Store(held)
	}
	if known := cell.lastRegister.Load(); known != nil {
		return known
	}
	return &app.Register{}
}

// rebuildTable rebuilds the table that maps app names to cells.
func (c *Cells) rebuildTable() {
	c.mu.Lock()
	t := &table{cells: maps.Clone(c.cells), byApp: map[string]*Cell{}, faults: map[string]error{}, duplicates: map[string][]*Cell{}}
	c.mu.Unlock()
	in := map[string][]*Cell{}
	for _, cell := range append(slices.Collect(maps.Values(t.cells)), c.home) {
		if cell != nil {
			for name := range cell.register().Apps {
				t.byApp[name], in[name] = cell, append(in[name], cell)
			}
		}
	}
	for name, of := range c.home.register().Cells {
		cell, is := t.cells[of]
		if t.byApp[name] != nil && (cell != nil || !is) {
			continue
		}
		if cell != nil {
			t.byApp[name] = cell
		} else {
			delete(t.byApp, name) // the app may be in the unreachable cell, so do not use another app with this name
			t.faults[name] = visit.Errorf(visit.Unavailable, "app", "app %s is in cell %s, which cannot be reached", name, of)
		}
	}
	for name, of := range in {
		if len(of) > 1 {
			if from := slices.IndexFunc(of, func(cell *Cell) bool {
				a := cell.register().Apps[name]
				return a != nil && a.MovingTo != nil
			}); from >= 0 { // the app is moving: its new cell already has a copy, and of[from] will soon delete the original
				t.byApp[name] = of[from]
				continue
			}
			delete(t.byApp, name)
			names := make([]string, len(of))
			for i, cell := range of {
				names[i] = cmp.Or(cell.Name, "(the coordinator's)")
			}
			slices.Sort(names)
			t.duplicates[name] = of
			t.faults[name] = visit.Errorf(visit.Unavailable, "app", "app %s exists in several cells, and is not served until "+
				"only one of them has it: %s", name, strings.Join(names, ", "))
			c.logError(context.Background(), "several cells have an app with the same name", t.faults[name])
		}
	}
	c.table.Store(t)
}

// staleName is an app's name that points to a cell, although the cell does not have this app.
type staleName struct{ name, cell string }

// storeCellsOfApps stores in the home database which cell each app is in, so that every instance knows the cell even while it is
// unreachable. If a cell has not had a stored app for the time LeadFor, storeCellsOfApps deletes this app's entry.
func (c *Cells) storeCellsOfApps(ctx context.Context) error {
	home, t := c.home.Counter.CachedRegister(), c.table.Load()
	if home == nil {
		return nil // the home database is unreachable
	}
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	var errs []error
	for name, cell := range t.byApp {
		is := t.registerOf(cell.Name)
		if cell == c.home || is == nil || is.Apps[name] == nil {
			continue
		}
		began, led := is.Apps[name].CreatedAt, home.Cells[name]
		if led == "" {
			var err error
			if led, err = c.home.Admin.ClaimName(ctx, name, cell.Name); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		_, listed := t.cells[led]
		moved := led != cell.Name && (t.registerOf(led) != nil || !listed)
		if moved || led == cell.Name && !home.Began[name].Equal(began) {
			errs = append(errs, c.home.Admin.LeadName(ctx, name, led, cell.Name, &began))
		}
	}
	now := time.Now()
	since := map[staleName]time.Time{}
	for name, led := range home.Cells {
		if _, listed := t.cells[led]; listed && !t.lacks(name, led) || t.byApp[name] != t.cells[led] || t.duplicates[name] != nil {
			continue
		}
		is := staleName{name, led}
		if since[is] = c.staleSince[is]; since[is].IsZero() {
			since[is] = now
		}
		if now.Sub(since[is]) >= c.options.LeadFor {
			errs = append(errs, c.home.Admin.LetNameGo(ctx, name, led, c.options.LeadFor.Seconds()))
		}
	}
	c.staleSince = since
	return errors.Join(errs...)
}

// registerOf returns the current apps of the cell with this name, or nil if the cell is unreachable.
func (t *table) registerOf(cell string) *app.Register {
	if of := t.cells[cell]; of != nil {
		return of.Counter.CachedRegister()
	}
	return nil
}

// lacks reports whether this cell certainly has no app with this name. If the cell is unreachable, lacks returns false. If the
// cell forwards the name to another cell, lacks checks that cell, too.
func (t *table) lacks(name, cell string) bool {
	for range len(t.cells) {
		of := t.registerOf(cell)
		if of == nil || of.Apps[name] != nil {
			return false
		}
		if cell = of.Cells[name]; cell == "" {
			return true
		}
	}
	return false
}
