package dbtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/embedded"
)

// EnvCitus is the environment variable that contains the path of a folder with the programs of a PostgreSQL with Citus.
const EnvCitus = "FOOTFALL_TEST_CITUS"

// Cluster is a number of servers with Citus for one test. At first they are separate: the test makes them nodes of a cluster.
type Cluster struct {
	t     testing.TB
	nodes []*node
}

// NewCluster starts size servers. The test is skipped unless FOOTFALL_TEST_CITUS is set.
func NewCluster(t testing.TB, size int) *Cluster {
	t.Helper()
	bin := os.Getenv(EnvCitus)
	if bin == "" {
		t.Skip("no Citus found: " + EnvCitus + " names the folder of the programs of a PostgreSQL with Citus")
	}
	c := &Cluster{t: t}
	for range size {
		c.Start(c.add())
	}
	t.Cleanup(func() { stopAll(t, c.nodes) })
	return c
}

func (c *Cluster) add() int {
	c.nodes = append(c.nodes, &node{dir: OwnDir(c.t), host: ownHost()})
	return len(c.nodes) - 1
}

// Follow starts a synchronous standby of server i, and returns the standby's number. From now on, the commits of server
// i wait for the standby.
func (c *Cluster) Follow(i int) (standby int) {
	c.t.Helper()
	standby = c.add()
	c.nodes[standby].copyOf(c.t, os.Getenv(EnvCitus), c.nodes[i])
	c.start(standby, map[string]string{"primary_conninfo": c.nodes[i].source(c.t)})
	c.nodes[i].followed = true
	conn := Connect(c.t, c.URL(i, "postgres"))
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		_, err := conn.Exec(context.Background(), sql)
		require.NoError(c.t, err)
	}
	require.Eventually(c.t, func() bool {
		return len(Column[int32](c.t, conn, `SELECT pid FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'`)) > 0
	}, Patience, Tick)
	return standby
}

// Promote makes a standby a primary.
func (c *Cluster) Promote(i int) {
	c.t.Helper()
	require.Equal(c.t, []bool{true}, Column[bool](c.t, Connect(c.t, c.URL(i, "postgres")), `SELECT pg_promote(true, 240)`))
}

// Start starts a server that was killed or has never run. The server's commits do not wait for a standby.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	var alone map[string]string
	if c.nodes[i].followed {
		alone = map[string]string{"synchronous_standby_names": ""}
	}
	c.start(i, alone)
}

func (c *Cluster) start(i int, more map[string]string) {
	c.t.Helper()
	n := c.nodes[i]
	trust := filepath.Join(n.dir, "trust") // nodes connect to each other without passwords
	require.NoError(c.t, os.WriteFile(trust, []byte("local all all trust\nlocal replication all trust\nhost all all 127.0.0.0/8 trust\n"),
		0o644)) //nolint:gosec // the server's user reads it
	n.start(c.t, os.Getenv(EnvCitus), map[string]string{
		"hba_file": trust, "shared_preload_libraries": "citus", "wal_level": "logical", "max_prepared_transactions": "100",
		"max_worker_processes": "32", "max_wal_senders": "16", "max_replication_slots": "16", "max_connections": "150",
		"shared_buffers": "64MB", "citus.enable_statistics_collection": "off", "citus.node_conninfo": "sslmode=prefer",
		"citus.local_hostname": n.host,
	}, more)
}

// Kill kills a server with all of its processes, and returns when they have exited.
func (c *Cluster) Kill(i int) { c.t.Helper(); c.nodes[i].kill(c.t) }

// Freeze pauses a server, with all of its processes, until thaw is called.
func (c *Cluster) Freeze(i int) (thaw func()) { c.t.Helper(); return c.nodes[i].freeze(c.t) }

// Node returns the address of a server. The first server is the coordinator.
func (c *Cluster) Node(i int) string { return fmt.Sprintf("%s:%d", c.nodes[i].host, embedded.Port) }

// URL returns the URL of a database on a server.
func (c *Cluster) URL(i int, database string) string {
	return fmt.Sprintf("postgres://footfall@%s/%s?sslmode=disable", c.Node(i), database)
}

// Home returns the URL of a database on the coordinator that belongs to no cell.
func (c *Cluster) Home() string { return c.URL(0, "postgres") }

// Connect opens a connection to the node with the tables of a cell, for the test itself. cell is the URL of the cell.
func (c *Cluster) Connect(cell string) *pgx.Conn {
	c.t.Helper()
	direct, err := db.Direct(context.Background(), cell)
	require.NoError(c.t, err)
	return Connect(c.t, direct)
}
