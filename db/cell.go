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

// cell finds the node that holds the tables of a cell. The URL can name any node of the cluster, and
// connections go to the node with the tables. When the tables move, all connections end, and new
// connections go to the new node, as after a failover.
type cell struct {
	nodes *pgxpool.Config // as given in the URL
	dial  pgconn.DialFunc

	mu   sync.Mutex
	last map[asked]string // the last place that a node returned for each query
}

// asked is a query that any node of a cluster can answer.
type asked string

const (
	tables      asked = CellPlace       // the node with the cell's tables
	coordinator asked = CellCoordinator // the node that creates and changes the tables
)

// lookForCell makes connections go to the tables if the URL has cell=on.
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
	s.cell = &cell{nodes: s.parsed.Copy(), dial: cfg.DialFunc, last: map[asked]string{}}
	nodes := s.cell.nodes.ConnConfig
	nodes.DefaultQueryExecMode, nodes.ValidateConnect = pgx.QueryExecModeExec, nil
	nodes.ConnectTimeout = min(nodes.ConnectTimeout, placeWithin/3)
	s.cell.lead(cfg, tables)
	return nil
}

// lead makes connections go to the given place, whichever host the URL names. So the driver tries only one host of
// the URL, and does not resolve its name. The time limit also leaves time for creating functions: a node does that
// on the first connection after the tables have moved to it.
func (c *cell) lead(cfg *pgx.ConnConfig, to asked) {
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

// placeWithin bounds the time for locating a place. Each node gets a third of it, so that a hanging
// node does not use up the time of the connection itself.
const placeWithin = 3 * time.Second

// place returns the address of a place, or its last known address if no node responds. The node at that address
// checks whether the tables are still there.
func (c *cell) place(ctx context.Context, of asked) string {
	ctx, cancel := context.WithTimeout(ctx, placeWithin)
	defer cancel()
	var at CellPlaceRow
	conn, err := pgx.ConnectConfig(ctx, c.nodes.ConnConfig)
	if err == nil {
		err = conn.QueryRow(ctx, string(of)).Scan(&at.Nodename, &at.Nodeport)
		_ = conn.Close(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.last[of] = net.JoinHostPort(at.Nodename, strconv.Itoa(int(at.Nodeport)))
	}
	return c.last[of]
}

// Direct returns a URL that leads straight to the tables, for programs that do not support cells.
func Direct(ctx context.Context, text string) (string, error) {
	s, err := newSessions(text, Options{}.withDefaults())
	if err != nil || s.cell == nil {
		return text, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	u.Host = cmp.Or(s.cell.place(ctx, tables), u.Host)
	query := u.Query()
	query.Del(CellMark)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Place returns the address of a cell's tables, or "" if the database does not belong to a cell.
func (d *DB) Place(ctx context.Context) string {
	if d.sessions.cell == nil {
		return ""
	}
	return d.sessions.cell.place(ctx, tables)
}

// IsCell reports whether the URL has cell=on.
func (d *DB) IsCell() bool { return d.sessions.cell != nil }

// forSteps returns the sessions for changing tables. In a cell they connect to the coordinator, where
// the tables have their own schema. Outside of a cell, changes are not propagated to other nodes of a
// cluster, because a node may be down.
func (s sessions) forSteps() sessions {
	if s.cell == nil {
		s.settings = maps.Clone(s.settings)
		s.settings["citus.enable_ddl_propagation"] = "off"
		return s
	}
	nodes := s.cell.nodes.Copy()
	s.cell.lead(nodes.ConnConfig, coordinator)
	return sessions{nodes, map[string]string{
		"search_path": "cell", "check_function_bodies": "off", "citus.propagate_set_commands": "local",
	}, new(atomic.Pointer[string]), nil}
}

// stepConnector makes connections for steps of the schema. Most steps are transactions, which begin with
// StepGivesWay.
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

// tellNoCell adds ErrNoCell to an error of CellArrive if the database lacks the schema or the function
// of a cell.
func tellNoCell(err error) error {
	e, is := errors.AsType[*pgconn.PgError](err)
	if is && (e.Code == "3F000" || e.Code == "42883") { // no such schema, no such function
		return errors.Join(ErrNoCell, err)
	}
	return err
}

// requireCell returns an error unless the URL's cell parameter matches the database.
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

// makeLayer is makeFunctions for a cell: it stores functions and views on the coordinator, and the
// first session on the node with the tables creates them there.
func (d *DB) makeLayer(ctx context.Context, conn *pgx.Conn) (made bool, err error) {
	texts, hash := functionFiles()
	files, err := schemaFiles(ctx, New(conn))
	if err != nil {
		return false, err
	}
	if _, err = New(conn).CellPlace(ctx); err != nil && !errors.Is(err, ErrNoRows) {
		return false, err
	}
	if made = !mayStay(files[functionsKey], hash) || err != nil; made { // err: no node has the tables from a pg_restore yet
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
	// The comments come first: if the tables once were on the coordinator, CellArrive may end this session.
	if err := d.setComments(ctx, conn); err != nil {
		return false, err
	}
	return made, d.untilLocked(ctx, functionsAndViews, func() error {
		worker, err := pgx.ConnectConfig(ctx, d.sessions.with(nil)) // its session runs CellArrive
		if err != nil {
			return err
		}
		return worker.Close(ctx)
	})
}
