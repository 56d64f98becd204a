package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/visit"
)

const cellClients = 12 // of each cell

// TestCellsMove moves cells of two instances each while visits are counted, and kills nodes in the
// midst of every third move: where the cell is, where it goes, the coordinator. The tables are held
// against what the clients were answered; nothing that anybody reads is older than what was answered
// before they asked. FOOTFALL_CELLS and FOOTFALL_MOVES make it longer.
func TestCellsMove(t *testing.T) {
	t.Parallel()
	cells, moves := dbtest.FromEnv(t, "FOOTFALL_CELLS", dbtest.LongOrShort(3, 1)), dbtest.FromEnv(t, "FOOTFALL_MOVES", dbtest.LongOrShort(10, 2))
	c := &movingCells{t: t, cluster: dbtest.NewCluster(t, 1+max(2, cells))}
	c.home = "--database-url=" + c.cluster.Home()
	for n := range max(2, cells) {
		well(t, "cell", "node", "add", c.cluster.Node(1+n), c.home)
	}
	for n := range cells {
		c.add(n)
	}
	var clients sync.WaitGroup
	ctx, end := context.WithTimeout(context.Background(), crashPatience)
	defer end()
	for _, cell := range c.cells {
		cell.ctx, cell.visits = ctx, 1<<40
		for range cellClients {
			clients.Go(cell.client)
		}
		clients.Go(cell.reader)
	}
	for n := range moves {
		for _, cell := range c.cells {
			cell.awaitAnswers(cell.answered.Load() + 100)
		}
		c.move(n)
	}
	for _, cell := range c.cells {
		cell.awaitAnswers(cell.answered.Load() + 100)
	}
	require.NoError(t, ctx.Err(), "it took too long")
	end()
	clients.Wait()
	for _, cell := range c.cells {
		cell.ctx = context.Background()
		compared := cell.compare()
		assert.Positive(t, cell.reads.Load())
		assert.Contains(t, well(t, "verify", "--database-url="+cell.address), "0 violations")
		t.Logf("cell %s: %d visits answered by %d clients, %d failed %v: %s; %d reads", cell.name, cell.answered.Load(), cellClients, cell.failed.Load(),
			cell.statuses, compared, cell.reads.Load())
	}
}

// movingCells is a cluster under test.
type movingCells struct {
	t       *testing.T
	cluster *dbtest.Cluster
	home    string
	cells   []*movingCell
	killed  int
}

// movingCell is a cell under test, and what its clients were told.
type movingCell struct {
	*crash
	name, address string
	node          int
	reads         atomic.Int64
}

// add makes a cell with two instances.
func (c *movingCells) add(n int) {
	t := c.t
	t.Helper()
	cell := &movingCell{
		crash: &crash{t: t, ctx: t.Context(), targets: make(map[string]*told), statuses: make(map[int]int64)}, name: fmt.Sprintf("c%d", n), node: 1 + n,
	}
	cell.address = strings.TrimSpace(well(t, "cell", "add", cell.name, "--on", c.cluster.Node(cell.node), c.home))
	cell.connect = func() (*pgx.Conn, bool) { return c.cluster.Connect(cell.address), true }
	flag := "--database-url=" + cell.address
	well(t, "app", "add", "demo", "--access=open", "--visitor=address", flag)
	services := []*running{start(t, flag), start(t, flag)}
	for _, s := range services {
		s.awaitReady()
	}
	cell.url.Store(&services[0].url)
	cell.others = []string{services[1].url}
	c.cells = append(c.cells, cell)
}

// reader asks for the numbers of a site, which must not be behind what was answered before.
func (cell *movingCell) reader() {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for cell.ctx.Err() == nil {
		cell.mu.Lock()
		var told int64
		for hot := range cell.target("site0.example").hots {
			told = max(told, hot)
		}
		cell.mu.Unlock()
		response, err := client.Get(cell.base() + "/counts?app=demo&uri=http://site0.example/0")
		if err != nil {
			continue
		}
		var answer visit.Answer
		if err := json.NewDecoder(response.Body).Decode(&answer); err == nil && response.StatusCode == http.StatusOK {
			cell.reads.Add(1)
			assert.GreaterOrEqual(cell.t, answer.Site.Hot, told, "a read that is stale")
		}
		_ = response.Body.Close()
	}
}

// move moves a cell to the next node. In every third one a node is killed, and the cell moved again.
func (c *movingCells) move(n int) {
	c.t.Helper()
	cell := c.cells[n%len(c.cells)]
	from, to := cell.node, 1+cell.node%max(2, len(c.cells))
	args := []string{"cell", "move", cell.name, "--to", c.cluster.Node(to), c.home}
	if n%3 != 1 {
		well(c.t, args...)
	} else {
		moved := make(chan result, 1)
		go func() { moved <- footfall(c.t, args...) }()
		source := dbtest.Connect(c.t, c.cluster.URL(from, "postgres"))
		eventually(c.t, "the move is under way", func() bool {
			return len(moved) > 0 || slices.Contains(dbtest.Column[bool](c.t, source, `SELECT true FROM pg_replication_slots`), true)
		})
		_ = source.Close(c.t.Context())
		victim := []int{from, to, 0}[c.killed%3]
		c.killed++
		c.cluster.Kill(victim)
		c.cluster.Start(victim)
		c.t.Logf("node %d was killed; the move ended so: %s", victim, (<-moved).stderr)
		eventually(c.t, "the cell moves after all", func() bool { return footfall(c.t, args...).code == exitWell })
	}
	cell.node = to
}
