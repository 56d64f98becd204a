// Package cells creates, moves and drops cells. A cell is a database of a Citus cluster that has all of its tables on
// one of the nodes. Package db connects to cells.
package cells

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"footfall/db"
	"footfall/migrations"
)

// Cluster is a cluster of PostgreSQL servers with Citus: a coordinator and its workers. Each cell has a database on all
// of these nodes.
type Cluster struct {
	at      *url.URL // URL of the coordinator's database that contains the list of nodes and belongs to no cell
	options db.Options
}

// Cell is a cell of a cluster. Place is the address of the node with the cell's tables.
type Cell struct {
	Name, URL, Place string
}

// databasePrefix is the start of the name of each cell's database.
const databasePrefix = "footfall_"

// OpenCluster returns the cluster whose coordinator has the URL text. It does not connect.
func OpenCluster(text string, o db.Options) (*Cluster, error) {
	d, err := db.Open(context.Background(), text, o)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Scheme != "postgres" && at.Scheme != "postgresql" || at.Port() == "" || strings.Contains(at.Host, ","):
		return nil, errors.New("database url: write the address at which other nodes reach the coordinator, " +
			"as postgres://user:password@HOST:PORT/postgres")
	case d.IsCell() || strings.HasPrefix(at.Path, "/"+databasePrefix):
		return nil, errors.New("database url: this database belongs to a cell: name a database of the coordinator that belongs to no cell, " +
			"like postgres")
	}
	return &Cluster{at, o}, nil
}

func (c *Cluster) url(at Node, database string) string {
	u := *c.at
	u.Host, u.Path = at.String(), "/"+database
	return u.String()
}

// cellURL returns the URL with which a service connects to a cell. The URL contains the addresses of all nodes, the
// coordinator's first, because a service can find the tables through any node.
func (c *Cluster) cellURL(name string, nodes []Node) string {
	u := *c.at
	hosts := make([]string, len(nodes))
	for i, node := range nodes {
		hosts[i] = node.String()
	}
	u.Host, u.Path = strings.Join(hosts, ","), "/"+databasePrefix+name
	query := u.Query()
	query.Set(db.CellMark, "on")
	u.RawQuery = query.Encode()
	return u.String()
}

func (c *Cluster) coordinator() Node {
	node, _ := ParseNode(c.at.Host) // OpenCluster has checked that the URL has a port
	return node
}

func (c *Cluster) home() string { return strings.TrimPrefix(c.at.Path, "/") }

// withConn runs f on a connection to a database on a node. It fails if the user of the connection is not a superuser.
func (c *Cluster) withConn(ctx context.Context, at Node, database string, f func(conn *pgx.Conn, q *Queries) error) error {
	d, err := db.Open(ctx, c.url(at, database), c.options)
	if err != nil {
		return err
	}
	defer d.Close()
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if conn.PgConn().ParameterStatus("is_superuser") != "on" {
		return fmt.Errorf("database url: only a superuser can create and move cells, and %s is not one at %v", conn.Config().User, at)
	}
	return f(conn, New(conn))
}

// make creates a database on a node, unless the database exists, and prepares it for Citus.
func (c *Cluster) make(ctx context.Context, at Node, database string) error {
	err := c.withConn(ctx, at, "postgres", func(conn *pgx.Conn, q *Queries) error {
		there, err := q.DatabasesLike(ctx, database)
		if err == nil && !slices.Contains(there, database) {
			_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()+" ENCODING 'UTF8' TEMPLATE template0")
		}
		return err
	})
	if err == nil {
		err = c.withConn(ctx, at, database, func(conn *pgx.Conn, _ *Queries) error {
			_, err := conn.Exec(ctx, migrations.CellDatabase, pgx.QueryExecModeSimpleProtocol)
			return err
		})
	}
	if err != nil && !db.IsConnect(err) {
		return fmt.Errorf("create the database %s at %v: %w", database, at, err)
	}
	return err
}

// settle updates the list of nodes in the connection's database: it disables the nodes that do not respond to the
// coordinator, and enables disabled nodes that respond again.
func settle(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, migrations.SettleNodes(), pgx.QueryExecModeSimpleProtocol)
	return err
}

// nodes returns the cluster's nodes, the coordinator first, or only the coordinator if there is no cluster
// yet. The second result contains only the nodes that respond.
func (c *Cluster) nodes(ctx context.Context) (nodes, activeNodes []Node, err error) {
	if err := c.make(ctx, c.coordinator(), c.home()); err != nil {
		return nil, nil, err
	}
	err = c.withConn(ctx, c.coordinator(), c.home(), func(conn *pgx.Conn, q *Queries) error {
		if err := settle(ctx, conn); err != nil {
			return err
		}
		rows, err := q.ClusterNodes(ctx)
		for _, row := range rows {
			nodes = append(nodes, row.node())
			if row.Isactive {
				activeNodes = append(activeNodes, row.node())
			}
		}
		if len(rows) > 0 && !rows[0].IsHere {
			err = fmt.Errorf("database url: %v is not the coordinator of its cluster: connect to %v", c.coordinator(), nodes[0])
		}
		return err
	})
	if len(nodes) == 0 {
		nodes = []Node{c.coordinator()}
		activeNodes = nodes
	}
	return nodes, activeNodes, err
}

// join adds nodes to the list of nodes in one of the coordinator's databases. It also creates this database on the
// nodes that are new in the list. All of these nodes must respond. The first one is the coordinator. If it is the only
// one, join allows the coordinator to have the tables.
func (c *Cluster) join(ctx context.Context, database string, nodes []Node) error {
	return c.withConn(ctx, c.coordinator(), database, func(conn *pgx.Conn, q *Queries) error {
		if err := settle(ctx, conn); err != nil {
			return err
		}
		there, err := q.ClusterNodes(ctx)
		if err != nil {
			return err
		}
		for i, node := range nodes {
			switch {
			case findNode(there, node) >= 0:
			case i == 0:
				err = q.ClusterBegin(ctx, node.Host, node.Port)
			default:
				if c.withConn(ctx, node, database, isPart) == nil { // the node was down when a cell of this name was dropped
					err = c.dropAt(ctx, node, []string{database})
				}
				if err == nil {
					err = c.make(ctx, node, database)
				}
				if err == nil {
					err = q.ClusterJoin(ctx, node.Host, node.Port)
				}
			}
			if err == nil && len(nodes) == 1 {
				err = q.ClusterAlone(ctx, node.Host, node.Port)
			}
			if err != nil {
				return fmt.Errorf("add the node %v to the database %s: %w", node, database, err)
			}
		}
		return nil
	})
}

// FindURLs returns the URLs of the cells, by the cells' names. It needs only the right to read from the coordinator.
func (c *Cluster) FindURLs(ctx context.Context, coordinator *db.DB) (urls map[string]string, err error) {
	err = coordinator.Read(ctx, func(shared *db.Queries) error {
		q := New(shared.Tx())
		databases, err := q.CellsServed(ctx, databasePrefix)
		if urls = map[string]string{}; err != nil || len(databases) == 0 {
			return err
		}
		rows, err := q.ClusterNodes(ctx)
		nodes := make([]Node, len(rows))
		for i, row := range rows {
			nodes[i] = Node{row.Nodename, row.Nodeport}
		}
		for _, database := range databases {
			name := strings.TrimPrefix(database, databasePrefix)
			urls[name] = c.cellURL(name, nodes)
		}
		return err
	})
	return urls, err
}

// IsCell reports whether a database that FindURLs has returned really is a cell. Another database may have a similar
// name, and a cell under construction is not a cell yet.
func (c *Cluster) IsCell(ctx context.Context, name string) (is bool, err error) {
	d, err := db.Open(ctx, c.url(c.coordinator(), databasePrefix+name), c.options)
	if err != nil {
		return false, err
	}
	defer d.Close()
	err = d.Read(ctx, func(q *db.Queries) (err error) { is, err = q.CellIs(ctx); return err })
	return is, err
}

// databases returns the names of the cells' databases.
func (c *Cluster) databases(ctx context.Context) (names []string, err error) {
	err = c.withConn(ctx, c.coordinator(), c.home(), func(_ *pgx.Conn, q *Queries) (err error) {
		names, err = q.DatabasesLike(ctx, databasePrefix)
		return err
	})
	return names, err
}

// open opens the cell with this name, if there is one.
func (c *Cluster) open(ctx context.Context, name string, nodes []Node) (*db.DB, error) {
	databases, err := c.databases(ctx)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(databases, databasePrefix+name):
		return nil, fmt.Errorf("there is no cell %s: `footfall cell list` shows all cells", name)
	}
	return db.Open(ctx, c.cellURL(name, nodes), c.options)
}

// AddNode adds a server to the cluster as a node. After a failure, AddNode can be called again.
func (c *Cluster) AddNode(ctx context.Context, node Node) error {
	_, nodes, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	databases, err := c.databases(ctx)
	if err != nil {
		return err
	}
	if err := c.mayJoin(ctx, node); err != nil {
		return err
	}
	if !slices.Contains(nodes, node) {
		nodes = append(nodes, node)
	}
	for _, database := range append(databases, c.home()) { // home is last, because its list of nodes makes the node a member
		if err := c.join(ctx, database, nodes); err != nil {
			return err
		}
	}
	return c.checkNodes(ctx, nodes)
}

// AddCell creates a cell with its tables on the given node, or on any node if no node is given. The cell's database is
// created on all nodes. On a node that is down, it is created when the cell moves. After a failure, AddCell can be
// called again.
func (c *Cluster) AddCell(ctx context.Context, name string, on Node) (cell Cell, err error) {
	all, nodes, err := c.nodes(ctx)
	if err == nil && on != (Node{}) {
		err = c.mayHost(ctx, on, all)
	}
	if err != nil {
		return cell, err
	}
	if err := c.join(ctx, c.home(), nodes); err != nil {
		return cell, err
	}
	if err := c.checkNodes(ctx, nodes); err != nil {
		return cell, err
	}
	database := databasePrefix + name
	if err := c.make(ctx, nodes[0], database); err != nil {
		return cell, err
	}
	if err := c.join(ctx, database, nodes); err != nil {
		return cell, err
	}
	if err := c.withConn(ctx, c.coordinator(), database, func(_ *pgx.Conn, q *Queries) error { return q.CellMake(ctx) }); err != nil {
		return cell, err
	}
	d, err := db.Open(ctx, c.cellURL(name, all), c.options)
	if err != nil {
		return cell, err
	}
	defer d.Close()
	if _, err := d.MigrateUp(ctx); err != nil {
		return cell, err
	}
	if on != (Node{}) {
		return c.MoveCell(ctx, name, on)
	}
	return Cell{name, c.cellURL(name, all), d.Place(ctx)}, nil
}

// mayHost returns an error unless the node is one of the cluster's nodes and responds.
func (c *Cluster) mayHost(ctx context.Context, node Node, nodes []Node) error {
	if !slices.Contains(nodes, node) {
		return unknownNode(node, nodes)
	}
	return c.withConn(ctx, node, "postgres", func(*pgx.Conn, *Queries) error { return nil })
}

func unknownNode(node Node, nodes []Node) error {
	return fmt.Errorf("%v is not a node of this cluster, which has %v: add it with `footfall cell node add`", node, nodes)
}

// Cells lists the cells of the cluster.
func (c *Cluster) Cells(ctx context.Context) (cells []Cell, err error) {
	nodes, _, err := c.nodes(ctx)
	if err != nil {
		return nil, err
	}
	databases, err := c.databases(ctx)
	for _, database := range databases {
		name := strings.TrimPrefix(database, databasePrefix)
		d, err := db.Open(ctx, c.cellURL(name, nodes), c.options)
		if err != nil {
			return nil, err
		}
		cells = append(cells, Cell{name, c.cellURL(name, nodes), d.Place(ctx)})
		d.Close()
	}
	return cells, err
}

// MoveCell moves the tables of a cell to a node. The services of the cell continue on that node.
func (c *Cluster) MoveCell(ctx context.Context, name string, to Node) (cell Cell, err error) {
	nodes, activeNodes, err := c.nodes(ctx)
	if err == nil {
		err = c.mayHost(ctx, to, nodes)
	}
	if err != nil {
		return cell, err
	}
	d, err := c.open(ctx, name, nodes)
	if err != nil {
		return cell, err
	}
	defer d.Close()
	if d.Place(ctx) != to.String() {
		if err := c.join(ctx, databasePrefix+name, activeNodes); err != nil { // adds nodes that were down when the cell was added
			return cell, err
		}
		err = c.withConn(ctx, c.coordinator(), databasePrefix+name, func(_ *pgx.Conn, q *Queries) error {
			if to == nodes[0] {
				if err := q.ClusterAlone(ctx, to.Host, to.Port); err != nil {
					return err
				}
			}
			return q.CellMove(ctx, to.Host, to.Port)
		})
	}
	if err == nil {
		err = d.Ping(ctx) // makes a session, which creates the functions on the new node, so that services need not wait for them
	}
	return Cell{name, c.cellURL(name, nodes), d.Place(ctx)}, err
}

// Node is the address at which a server of a cluster listens.
type Node struct {
	Host string
	Port int32
}

func (n Node) String() string { return net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) }
