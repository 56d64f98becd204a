package routing

import (
	"context"
	"math"
	"slices"
	"sync"

	"footfall/visit"
)

// Health is the response of /readyz: which parts of the service are unavailable.
type Health struct {
	State       string   `json:"state"`
	Away        []string `json:"away,omitempty"`        // names of cells that cannot count visits now
	NodesAway   []string `json:"nodes_away,omitempty"`  // names of cluster machines that do not respond
	Coordinator string   `json:"coordinator,omitempty"` // "away": the home database, which sign-ins and new partitions need, is down
	DaysLeft    int      `json:"days_left"`             // number of days after today for which every available cell has partitions
}

// Ready returns the health of the service, and an error if no cell can count visits now.
func (c *Cells) Ready(ctx context.Context) (h Health, err error) {
	h.State, h.DaysLeft = "ready", math.MaxInt
	t := c.table.Load()
	if t == nil || len(t.cells) == 0 {
		err = c.home.Counter.Ready(ctx)
		h.DaysLeft = c.home.Counter.DaysLeft()
		return h, err
	}
	if nodes := c.nodesAway.Load(); nodes != nil {
		h.NodesAway = *nodes
	}
	if c.home.Counter.CachedRegister() == nil {
		h.Coordinator = "away"
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for name, cell := range t.cells {
		asked.Go(func() {
			failed := error(visit.Errorf(visit.Unavailable, "", "cell %s cannot be reached", name))
			if cell != nil {
				failed = cell.Counter.Ready(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				h.Away, err = append(h.Away, name), failed
			} else {
				h.DaysLeft = min(h.DaysLeft, cell.Counter.DaysLeft())
			}
		})
	}
	asked.Wait()
	slices.Sort(h.Away)
	if len(h.Away) < len(t.cells) {
		err = nil
	}
	return h, err
}
