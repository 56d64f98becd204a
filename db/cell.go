package db

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"footfall/migrations"
)

// CellMark is the URL parameter that marks the database of a cell: cell=on.
const CellMark = "cell"

// cell makes connections to a cell. A cell is a database of a Citus cluster that has all of its tables on one node.
// The URL can name any node of the cluster, but connections go to the node with the tables. When the tables move, all
// connections end, and new connections go to the new node, as after a failover.
type cell struct {
	nodes *pgxpool.Config // configuration for connections to the nodes in the URL
	dial  pgconn.DialFunc

	mu            sync.Mutex
	lastAddresses map[placeQuery]string // the last address that each query has returned
}

// placeQuery is an SQL query for the address of a node. Every node of the cluster can run the query.
type placeQuery string

const (
	tablesQuery      placeQuery = CellPlace       // the node with the cell's tables
	coordinatorQuery placeQuery = CellCoordinator // the node on which tables are created and changed
)

// lookForCell checks whether the URL has cell=on. If so, it makes the connections of s go to the node with the cell's
// tables.
func (s *sessions) lookForCell() error {
	cfg := s.parsed.ConnConfig
	mark, is := cfg.RuntimeParams[CellMark]
	if !is {
		return nil
	}
	if mark != "on" {
		return fmt.Errorf("database url: %s=%s is not valid: write %[1]s=on for a cell, or leave it out", CellMark, mark)
	}
	delete(cfg.RuntimeParams, CellMark)
	s.cell = &cell{nodes: s.parsed.Copy(), dial: cfg.DialFunc, lastAddresses: map[placeQuery]string{}}
	nodes := s.cell.nodes.ConnConfig
	nodes.DefaultQueryExecMode, nodes.ValidateConnect = pgx.QueryExecModeExec, nil
	nodes.ConnectTimeout = min(nodes.ConnectTimeout, placeTimeout/3)
	s.cell.dialPlace(cfg, tablesQuery)
	return nil
}

// dialPlace makes the connections of cfg go to the node whose address the query `to` returns. The hosts in the URL no
// longer matter, so cfg keeps only one of them, and the driver does not resolve its name. After the tables have moved
// to a node, the first connection also creates the functions there. The connect timeout is long enough for that.
func (c *cell) dialPlace(cfg *pgx.ConnConfig, to placeQuery) {
	cfg.Fallbacks = slices.DeleteFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port })
	cfg.ConnectTimeout = max(cfg.ConnectTimeout, connectTimeout)
	cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		place := c.place(ctx, to)
		if place == "" {
			return c.dial(ctx, network, address)
		}
		conn, err := c.dial(ctx, "tcp", place)
		if err != nil {
			err = &placeError{err, place}
		}
		return conn, err
	}
}

// placeError adds the address of the node to a connection error.
type placeError struct {
	error
	place string
}

func (e *placeError) Unwrap() error { return e.error }

// placeTimeout bounds the time of cell.place, which is part of the time for making a connection. Each node gets a
// third of placeTimeout, so that a hanging node does not use up all of it.
const placeTimeout = 3 * time.Second

// place runs the query on any node of the cluster, and returns the address that the query returns. If no node
// responds, place returns the last result of the query. An outdated result does no harm, because CellArrive makes each
// new session fail on a node without the tables.
func (c *cell) place(ctx context.Context, query placeQuery) string {
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	var at CellPlaceRow
	conn, err := pgx.ConnectConfig(ctx, c.nodes.ConnConfig)
	if err == nil {
		err = conn.QueryRow(ctx, string(query)).Scan(&at.Nodename, &at.Nodeport)
		_ = conn.Close(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.lastAddresses[query] = net.JoinHostPort(at.Nodename, strconv.Itoa(int(at.Nodeport)))
	}
	return c.lastAddresses[query]
}

// Direct returns the URL of the node with the tables, without cell=on, for programs that do not support cells. If
// text has no cell=on, Direct returns text.
func Direct(ctx context.Context, text string) (string, error) {
	s, err := newSessions(text, Options{}.withDefaults())
	if err != nil || s.cell == nil {
		return text, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	u.Host = cmp.Or(s.cell.place(ctx, tablesQuery), u.Host)
	query := u.Query()
	query.Del(CellMark)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Place returns the address of the node with a cell's tables, or "" if the database does not belong to a cell.
func (d *DB) Place(ctx context.Context) string {
	if d.sessions.cell == nil {
		return ""
	}
	return d.sessions.cell.place(ctx, tablesQuery)
}

// IsCell reports whether the URL has cell=on.
func (d *DB) IsCell() bool { return d.sessions.cell != nil }

// forSteps returns the sessions for migration steps. In a cell, these sessions connect to the coordinator, where
// the tables are in the schema cell. A database that is not a cell may also be on a node of a Citus cluster. In this
// case the sessions keep Citus from sending the changes to the other nodes, because a node may be down.
func (s sessions) forSteps() sessions {
	if s.cell == nil {
		s.settings = maps.Clone(s.settings)
		s.settings["citus.enable_ddl_propagation"] = "off"
		return s
	}
	nodes := s.cell.nodes.Copy()
	s.cell.dialPlace(nodes.ConnConfig, coordinatorQuery)
	return sessions{nodes, map[string]string{
		"search_path": "cell", "check_function_bodies": "off", "citus.propagate_set_commands": "local",
	}, new(atomic.Pointer[string]), nil}
}

// stepConnector makes connections for migration steps. Most steps are transactions. Each transaction starts with
// StepGivesWay, which limits how long it waits for a lock.
type stepConnector struct{ driver.Connector }

type stepConn struct{ *stdlib.Conn }

func (s stepConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return stepConn{conn.(*stdlib.Conn)}, nil
}

func (s stepConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := s.Conn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := New(s.Conn.Conn()).StepGivesWay(ctx); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// ErrNoCell is returned if the URL has cell=on, but the database does not belong to a cell.
var ErrNoCell = errors.New("database url: this database does not belong to a cell: create a cell with `footfall cell add`, " +
	"or leave out cell=on")

// explainMissingCell adds ErrNoCell to err if the database lacks the SQL function cell.arrive or its schema. err must be
// an error of CellArrive, which calls this function.
func explainMissingCell(err error) error {
	e, is := errors.AsType[*pgconn.PgError](err)
	if is && (e.Code == "3F000" || e.Code == "42883") { // no such schema, no such function
		return errors.Join(ErrNoCell, err)
	}
	return err
}

// requireCell returns an error if the URL has cell=on and the database is not a cell, or the other way round.
func (d *DB) requireCell(ctx context.Context, q *Queries) error {
	is, err := q.CellIs(ctx)
	switch {
	case err != nil:
		return err
	case is && d.sessions.cell == nil:
		return errors.New("database url: this database belongs to a cell: use its URL from `footfall cell list`, with ?cell=on")
	case !is && d.sessions.cell != nil:
		return ErrNoCell
	}
	return nil
}

// makeLayer replaces makeFunctions in a cell. It stores the texts of functions and views on the coordinator. Then it
// opens a session on the node with the tables, which creates the functions and views there.
func (d *DB) makeLayer(ctx context.Context, conn *pgx.Conn) (made bool, err error) {
	texts, hash := functionFiles()
	files, err := schemaFiles(ctx, New(conn))
	if err != nil {
		return false, err
	}
	if _, err = New(conn).CellPlace(ctx); err != nil && !errors.Is(err, ErrNoRows) {
		return false, err
	}
	if made = !mayStay(files[functionsKey], hash) || err != nil; made { // err: no node has the tables (after a pg_restore)
		err := d.untilLocked(ctx, functionsAndViews, func() error {
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				q := New(tx)
				if err := q.StepGivesWay(ctx); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, migrations.CellNodes+migrations.Cell, pgx.QueryExecModeSimpleProtocol); err != nil {
					return err
				}
				if err := q.CellLayerPut(ctx, texts); err != nil {
					return err
				}
				return q.StepNote(ctx, functionsKey, hash)
			})
		})
		if err != nil {
			return false, err
		}
	}
	// Set the comments before a new session runs CellArrive. If the coordinator had the tables before, CellArrive may
	// end the session of conn.
	if err := d.setComments(ctx, conn); err != nil {
		return false, err
	}
	return made, d.untilLocked(ctx, functionsAndViews, func() error {
		worker, err := pgx.ConnectConfig(ctx, d.sessions.connConfig(nil)) // every new session runs CellArrive
		if err != nil {
			return err
		}
		return worker.Close(ctx)
	})
}
