package cells

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/db"
	"footfall/pause"
)

// forEachDatabase runs f on the coordinator: first for each cell's database, and finally for home, the database with
// the cluster's own list of nodes. f also gets the database's list of nodes. home comes last, so that an
// interrupted command can be repeated. Nodes other than the coordinator may be down.
func (c *Cluster) forEachDatabase(ctx context.Context, f func(database string, there []ClusterNodesRow, q *Queries) error) error {
	databases, err := c.databases(ctx)
	if err != nil {
		return err
	}
	for _, database := range append(databases, c.home()) {
		if err := c.make(ctx, c.coordinator(), database); err != nil { // adds settings that a restored dump lacks
			return err
		}
		err := c.withConn(ctx, c.coordinator(), database, func(conn *pgx.Conn, q *Queries) error {
			if err := settle(ctx, conn); err != nil {
				return err
			}
			there, err := q.ClusterNodes(ctx)
			if err != nil {
				return err
			}
			return f(database, there, q)
		})
		if err != nil {
			return fmt.Errorf("in the database %s: %w", database, err)
		}
	}
	return nil
}

func (r ClusterNodesRow) node() Node { return Node{r.Nodename, r.Nodeport} }

// findNode returns the index of a node's row in a list of nodes, or -1.
func findNode(there []ClusterNodesRow, node Node) int {
	return slices.IndexFunc(there, func(row ClusterNodesRow) bool { return row.node() == node })
}

// ReplaceNode replaces a node with another server, which must be a promoted standby of this node. Services continue on
// the new server. After a failure, ReplaceNode can be called again.
func (c *Cluster) ReplaceNode(ctx context.Context, old, replacement Node) error {
	nodes, _, err := c.nodes(ctx)
	switch {
	case err != nil:
	case slices.Contains(nodes, old) && slices.Contains(nodes, replacement):
		err = fmt.Errorf("%v is already a node of the cluster: move the cells of %v to it with `footfall cell move`, or give "+
			"the address of the promoted standby", replacement, old)
	case slices.Contains(nodes, old):
		err = c.mayReplace(ctx, old, replacement)
	case !slices.Contains(nodes, replacement):
		err = unknownNode(old, nodes)
	}
	if err == nil {
		err = c.forEachDatabase(ctx, func(_ string, there []ClusterNodesRow, q *Queries) error {
			if at := findNode(there, old); at >= 0 {
				return q.NodeReplace(ctx, NodeReplaceParams{ID: there[at].Nodeid, Host: replacement.Host, Port: replacement.Port})
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return c.awaitNodes(ctx)
}

// ParseNode parses HOST:PORT. If there is no port, it uses PostgreSQL's default port.
func ParseNode(text string) (Node, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, ""
	}
	number, err := strconv.ParseUint(cmp.Or(port, "5432"), 10, 16)
	if err != nil || host == "" || number == 0 {
		return Node{}, fmt.Errorf("%q is not the address of a server: write it as HOST:PORT", text)
	}
	return Node{host, int32(number)}, nil //nolint:gosec // 16 bits
}

// mayReplace returns an error if a node cannot be replaced with this server. The error contains all reasons.
func (c *Cluster) mayReplace(ctx context.Context, old, replacement Node) error {
	wrong := c.withConn(ctx, old, c.home(), func(_ *pgx.Conn, q *Queries) error {
		now, err := q.NodeItself(ctx)
		if err == nil && !now.IsStandby {
			err = fmt.Errorf("%v is still running, and visits that it still counts would be lost: stop it first", old)
		}
		return err
	})
	if db.IsConnect(wrong) {
		wrong = nil
	}
	var nodes []ClusterNodesRow
	err := c.withConn(ctx, c.coordinator(), c.home(), func(_ *pgx.Conn, q *Queries) (err error) {
		nodes, err = q.ClusterNodes(ctx)
		return err
	})
	if err != nil {
		return err
	}
	at := findNode(nodes, old)
	if at < 0 { // another command has removed or replaced it in the meantime
		return errors.Join(wrong, fmt.Errorf("%v is no longer a node of the cluster", old))
	}
	return errors.Join(wrong, c.withConn(ctx, replacement, c.home(), func(_ *pgx.Conn, q *Queries) error {
		now, err := q.NodeItself(ctx)
		if err != nil {
			return err
		}
		copied, err := q.ClusterNodes(ctx)
		place := nodes[at].Nodeid
		switch {
		case err != nil:
		case !slices.ContainsFunc(copied, func(row ClusterNodesRow) bool { return row.Nodeid == place && row.IsHere }):
			err = fmt.Errorf("%v is not a copy of %v", replacement, old)
		case now.IsStandby:
			err = fmt.Errorf("%v is still a standby: promote it first, with pg_ctl promote or SELECT pg_promote()", replacement)
		case !now.Connects:
			err = selfConnectError(replacement, now)
		}
		return err
	}))
}

func selfConnectError(node Node, now NodeItselfRow) error {
	return fmt.Errorf("%v cannot connect to itself at %v, the address that Citus uses: run there, as a superuser, "+
		"ALTER SYSTEM SET citus.local_hostname = '%s'; SELECT pg_reload_conf();", node, Node{now.Host, now.Port}, node.Host)
}

// checkNodes returns an error if some of the nodes cannot be used. The error lists these nodes and the reasons.
func (c *Cluster) checkNodes(ctx context.Context, nodes []Node) error {
	var wrong []error
	for _, node := range nodes {
		err := c.withConn(ctx, node, c.home(), func(conn *pgx.Conn, q *Queries) error {
			now, err := q.NodeItself(ctx)
			if err == nil && !now.Connects {
				if err = db.NodePassword(db.TakeWarning(conn)); err == nil {
					err = selfConnectError(node, now)
				}
			}
			return err
		})
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return c.withConn(ctx, c.coordinator(), c.home(), func(_ *pgx.Conn, q *Queries) error {
		unreached, err := q.ClusterUnreached(ctx)
		for _, row := range unreached {
			wrong = append(wrong, fmt.Errorf("%[1]v cannot connect to %[2]v: allow the connection in pg_hba.conf of %[2]v, and write the "+
				"password into ~/.pgpass of the user that runs the server of %[1]v", Node{row.FromHost, row.FromPort}, Node{row.ToHost, row.ToPort}))
		}
		return errors.Join(append(wrong, err)...)
	})
}

// mayJoin returns an error if a server may not become a node of the cluster, because it has outdated tables of one of
// the cells.
func (c *Cluster) mayJoin(ctx context.Context, node Node) (err error) {
	var has []string
	err = c.withConn(ctx, node, "postgres", func(_ *pgx.Conn, q *Queries) (err error) {
		has, err = q.DatabasesLike(ctx, databasePrefix)
		return err
	})
	if err != nil {
		return err
	}
	return c.forEachDatabase(ctx, func(database string, there []ClusterNodesRow, _ *Queries) error {
		if !slices.Contains(has, database) || findNode(there, node) >= 0 {
			return nil
		}
		return c.withConn(ctx, node, database, func(conn *pgx.Conn, _ *Queries) error {
			is, err := db.New(conn).CellIs(ctx)
			if is {
				err = fmt.Errorf("%v has old tables of this database, because it was replaced, or removed while it was down: make it a "+
					"standby of its replacement, or create it again with initdb", node)
			}
			return err
		})
	})
}

// awaitNodes waits until all nodes have received the present list of nodes. Until then, partitions cannot be created
// and cells cannot move.
func (c *Cluster) awaitNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nodesWithin)
	defer cancel()
	for {
		var behind []ClusterBehindRow
		err := c.forEachDatabase(ctx, func(_ string, _ []ClusterNodesRow, q *Queries) error {
			rows, err := q.ClusterBehind(ctx)
			behind = append(behind, rows...)
			return err
		})
		if err != nil || len(behind) == 0 {
			return err
		}
		if pause.For(ctx, nodesLook) != nil {
			return fmt.Errorf("the change is done, but the node %v has not received it yet: until this node responds, no partitions are "+
				"created, and no cell can move", Node(behind[0]))
		}
	}
}

const (
	nodesWithin = 20 * time.Second // Citus informs the nodes every 5 s
	nodesLook   = 200 * time.Millisecond
)

// RemoveNode removes a node from the cluster. Before that, it moves the node's cells to the node `to`. If `to` is the
// zero Node and there are such cells, RemoveNode fails. After a failure, RemoveNode can be called again.
func (c *Cluster) RemoveNode(ctx context.Context, node, to Node) error {
	nodes, _, err := c.nodes(ctx)
	switch {
	case err != nil:
		return err
	case !slices.Contains(nodes, node):
		return unknownNode(node, nodes)
	case node == nodes[0]:
		return fmt.Errorf("%v is the coordinator, which cells need to be created and moved: replace it by its standby instead", node)
	case node == to:
		return fmt.Errorf("%v is the node to remove: move its cells to another node", node)
	case to != (Node{}) && !slices.Contains(nodes, to):
		return unknownNode(to, nodes)
	}
	cells, err := c.Cells(ctx)
	if err != nil {
		return err
	}
	cells = slices.DeleteFunc(cells, func(cell Cell) bool { return cell.Place != node.String() })
	if len(cells) > 0 && to == (Node{}) {
		var names []string
		for _, cell := range cells {
			names = append(names, cell.Name)
		}
		return fmt.Errorf("%v has cells: %s: move them with `footfall cell move`, or all to one node with --to", node, strings.Join(names, ", "))
	}
	for _, cell := range cells {
		if _, err := c.MoveCell(ctx, cell.Name, to); err != nil {
			return fmt.Errorf("move the cell %s: %w", cell.Name, err)
		}
	}
	var left []string // databases that the node no longer needs
	return c.forEachDatabase(ctx, func(database string, there []ClusterNodesRow, q *Queries) error {
		if database != c.home() {
			left = append(left, database)
		} else if err := c.dropAt(ctx, node, left); err != nil && !db.IsConnect(err) { // the machine may be gone for good
			return err
		}
		at := findNode(there, node)
		if at < 0 {
			return nil
		}
		if err := q.NodeForget(ctx, there[at].Nodeid); err != nil {
			return err
		}
		return q.NodeRemove(ctx, there[at].Nodeid)
	})
}

// dropAt drops databases on a node, even if clients are connected to them.
func (c *Cluster) dropAt(ctx context.Context, node Node, databases []string) error {
	return c.withConn(ctx, node, "postgres", func(conn *pgx.Conn, _ *Queries) error {
		for _, database := range databases {
			if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{database}.Sanitize()+" WITH (FORCE)"); err != nil {
				return fmt.Errorf("drop the database %s at %v: %w", database, node, err)
			}
		}
		return nil
	})
}

// isPart returns an error unless the database of the connection belongs to a cell.
func isPart(conn *pgx.Conn, _ *Queries) error {
	is, err := db.New(conn).CellIs(context.Background())
	if err == nil && !is {
		err = db.ErrNoCell
	}
	return err
}

// releaseWithin is how long DropCell waits until services that serve several cells have disconnected from the cell. These
// services check every second whether a cell is being dropped. They first finish the visits that they have accepted.
const releaseWithin = 15 * time.Second

// DropCell drops a cell with all of its numbers, on all nodes that respond. Before that, it makes services that serve
// several cells disconnect from this cell. If a service that serves only this cell is running, DropCell fails. After a
// failure, DropCell can be called again.
func (c *Cluster) DropCell(ctx context.Context, name string) error {
	nodes, _, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	d, err := c.open(ctx, name, nodes)
	if err != nil {
		return err
	}
	defer d.Close()
	return c.withConn(ctx, nodes[0], c.home(), func(_ *pgx.Conn, q *Queries) error {
		if err := q.CellRelease(ctx, databasePrefix+name); err != nil {
			return err
		}
		if conn, err := d.Connect(ctx); err == nil { // if not, the node is down, or the tables were dropped before
			err = db.RefuseWhileInstancesRun(ctx, conn, releaseWithin)
			_ = conn.Close(ctx)
			if err != nil {
				return err
			}
		}
		slices.Reverse(nodes) // the coordinator last, because its databases are the list of cells
		for _, node := range nodes {
			err := c.dropAt(ctx, node, []string{databasePrefix + name})
			if db.IsConnect(err) {
				c.options.Log.Warn("a node does not respond, so the cell's database on this node was not dropped: drop it when the node responds",
					"node", node, "database", databasePrefix+name)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}
