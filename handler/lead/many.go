package lead

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"footfall/counter/app"
	"footfall/pause"
	"footfall/visit"
)

// Options of Open. All are needed.
type Options struct {
	// Find names the cells that there are.
	Find func(context.Context) ([]string, error)
	// Open opens one, of so many.
	Open func(ctx context.Context, name string, all int) (*Cell, error)
	Log  *slog.Logger
}

const (
	lookEvery   = time.Second
	openWithin  = 15 * time.Second // for one try
	openAtOnce  = 4                // cells, each of which takes a dozen sessions of its server for a moment
	startWithin = time.Minute      // for all that can be opened; a service that begins waits no longer for others
	namesWithin = 5 * time.Second
	sayEvery    = time.Minute
	settleAfter = 60 // seconds after which a name that was claimed leads nowhere any more where there is no app
)

// Open begins to lead names to cells: those that answer now are open when it returns. Close ends it.
func Open(ctx context.Context, home *Cell, o Options) (*Cells, error) {
	c := &Cells{home: home, options: o, said: pause.Seldom[string]{Every: sayEvery}, found: map[string]*Cell{}, opening: map[string]bool{},
		places: make(chan struct{}, openAtOnce)}
	if err := c.seekCells(ctx); err != nil {
		return nil, err
	}
	tried := make(chan struct{})
	c.done.Go(func() { c.tries.Wait(); close(tried) })
	within := time.NewTimer(startWithin)
	defer within.Stop()
	select {
	case <-tried:
	case <-within.C:
	}
	c.lookAgain()
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	c.done.Go(func() {
		for pause.For(running, lookEvery) == nil {
			if err := c.seekCells(running); err != nil {
				c.say(running, "cells cannot be looked for; it is tried again", err)
			}
			c.lookAgain()
			if err := c.settle(running); err != nil {
				c.say(running, "names of apps cannot be kept; it is tried again", err)
			}
		}
	})
	return c, nil
}

// Close ends all cells, which answer what they have accepted, and what the service began from.
func (c *Cells) Close() {
	if c.end != nil {
		c.end()
		c.tries.Wait()
	}
	for _, cell := range c.found {
		if cell != nil {
			c.done.Go(cell.Close)
		}
	}
	c.done.Wait()
	c.home.Close()
}

func (c *Cells) say(ctx context.Context, what string, err error) {
	if _, speak := c.said.Next(what, time.Now()); speak && ctx.Err() == nil {
		c.options.Log.Error(what, "error", err)
	}
}

// seekCells finds the cells, tries to open those that are not, and ends those that are gone.
func (c *Cells) seekCells(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	names, err := c.options.Find(within)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, cell := range c.found {
		if !slices.Contains(names, name) {
			delete(c.found, name)
			if cell != nil {
				c.done.Go(cell.Close)
			}
		}
	}
	for _, name := range names {
		if cell := c.found[name]; cell == nil && !c.opening[name] {
			c.found[name], c.opening[name] = nil, true
			c.tries.Go(func() { c.open(ctx, name, len(names)) })
		}
	}
	return nil
}

func (c *Cells) open(ctx context.Context, name string, all int) {
	c.places <- struct{}{}
	defer func() { <-c.places }()
	within, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	cell, err := c.options.Open(within, name, all)
	if err != nil {
		c.say(ctx, "the cell "+name+" cannot be opened, and its apps are refused; it is tried again", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.opening, name)
	if _, wanted := c.found[name]; wanted && err == nil {
		c.found[name] = cell
	} else if err == nil {
		c.done.Go(cell.Close)
	}
}

// register is all apps of a cell as they stand, or as they were seen last.
func (cell *Cell) register() *app.Register {
	if held := cell.Counter.Held(); held != nil {
		cell.known.Store(held)
	}
	if known := cell.known.Load(); known != nil {
		return known
	}
	return &app.Register{}
}

// lookAgain finds out where names lead.
func (c *Cells) lookAgain() {
	c.mu.Lock()
	t := &table{cells: maps.Clone(c.found), at: map[string]*Cell{}, wrong: map[string]error{}, twice: map[string][]*Cell{}}
	c.mu.Unlock()
	in := map[string][]*Cell{}
	for _, cell := range append(slices.Collect(maps.Values(t.cells)), c.home) {
		if cell != nil {
			for name := range cell.register().Apps {
				t.at[name], in[name] = cell, append(in[name], cell)
			}
		}
	}
	for name, of := range c.home.register().Cells {
		if t.at[name] != nil {
			continue
		}
		if cell := t.cells[of]; cell != nil {
			t.at[name] = cell
		} else {
			t.wrong[name] = visit.Errorf(visit.Unavailable, "app", "app %s is in the cell %s, which is away", name, of)
		}
	}
	for name, of := range in {
		if len(of) > 1 {
			if from := slices.IndexFunc(of, func(cell *Cell) bool {
				a := cell.register().Apps[name]
				return a != nil && a.MovingTo != nil
			}); from >= 0 { // it has come to the other one, and is about to leave this one
				t.at[name] = of[from]
				continue
			}
			delete(t.at, name)
			names := make([]string, len(of))
			for i, cell := range of {
				names[i] = cmp.Or(cell.Name, "(the coordinator's)")
			}
			slices.Sort(names)
			t.twice[name] = of
			t.wrong[name] = visit.Errorf(visit.Unavailable, "app", "there are apps %s in several cells, and neither is served until "+
				"there is one: %s", name, strings.Join(names, ", "))
			c.say(context.Background(), "two apps have one name", t.wrong[name])
		}
	}
	c.table.Store(t)
}

// settle writes down where names lead, so that they are known while their cell is away.
func (c *Cells) settle(ctx context.Context) error {
	home, t := c.home.Counter.Held(), c.table.Load()
	if home == nil {
		return nil // it is away
	}
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	held := func(name string) *app.Register {
		if cell := t.cells[name]; cell != nil {
			return cell.Counter.Held()
		}
		return nil
	}
	for name, cell := range t.at {
		led := home.Cells[name]
		switch is := held(cell.Name); {
		case cell == c.home || is == nil || is.Apps[name] == nil:
		case led == "":
			if _, err := c.home.Admin.ClaimName(ctx, name, cell.Name); err != nil {
				return err
			}
		case led != cell.Name && (held(led) != nil || t.cells[led] == nil):
			if err := c.home.Admin.LeadName(ctx, name, led, cell.Name); err != nil {
				return err
			}
		}
	}
	for name, led := range home.Cells {
		_, is := t.cells[led]
		of := held(led)
		if !is && t.at[name] == nil || of != nil && of.Apps[name] == nil && of.Cells[name] == "" && t.at[name] == t.cells[led] {
			if err := c.home.Admin.LetNameGo(ctx, name, led, settleAfter); err != nil {
				return err
			}
		}
	}
	return nil
}
