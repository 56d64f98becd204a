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

// CellMark is the parameter of a URL by which a database is one of a cell, where it is on.
const CellMark = "cell"

// cell is how the sessions of a cell find its tables: the URL leads to any node of its cluster, and
// connections go to the one that has the tables. When they move, all connections end, and new ones
// lead to where they are: a move looks like a failover.
type cell struct {
	nodes *pgxpool.Config // as the URL has it
	dial  pgconn.DialFunc

	mu   sync.Mutex
	last map[asked]string // what a node has told last
}

// asked is what any node of a cluster can tell.
type asked string

const (
	tables      asked = CellPlace       // where the tables of the cell are
	coordinator asked = CellCoordinator // where they are made and changed
)

// lookForCell makes connections lead to the tables where the URL says that these are a cell's.
func (s *sessions) lookForCell() error {
	cfg := s.parsed.ConnConfig
	mark, is := cfg.RuntimeParams[CellMark]
	if !is {
		return nil
	}
	if mark != "on" {
		return fmt.Errorf("database url: %s=%s is not a setting: write %[1]s=on for a cell, or leave it out", CellMark, mark)
	}
	delete(cfg.RuntimeParams, CellMark)
	s.cell = &cell{nodes: s.parsed.Copy(), dial: cfg.DialFunc, last: map[asked]string{}}
	nodes := s.cell.nodes.ConnConfig
	nodes.DefaultQueryExecMode, nodes.ValidateConnect = pgx.QueryExecModeExec, nil
	nodes.ConnectTimeout = min(nodes.ConnectTimeout, placeWithin/3)
	s.cell.lead(cfg, tables)
	return nil
}

// lead makes connections lead to where something is, whichever host of the URL it is. So one is tried,
// whether its name is known or not, and for as long as it may take to make what a node needs to which
// the tables have come.
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

// placeError says why there is no connection to a node.
type placeError struct {
	error
	place string
}

func (e *placeError) Unwrap() error { return e.error }

// placeWithin is how long nodes may take to say where something is, each a third of it. One that
// hangs must not use up the time of the connection that is to be made.
const placeWithin = 3 * time.Second

// place is where something is, or was when a node could tell last: whether the tables still are
// there, the node there finds out.
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

// Direct is the URL that leads straight to the tables: for programs that know nothing of cells.
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

// Place is where the tables of a cell are; "": the database is no cell's.
func (d *DB) Place(ctx context.Context) string {
	if d.sessions.cell == nil {
		return ""
	}
	return d.sessions.cell.place(ctx, tables)
}

// IsCell tells whether the URL says that the database is a cell's.
func (d *DB) IsCell() bool { return d.sessions.cell != nil }

// forSteps is how connections are made that change tables: in a cell, to the coordinator, where the
// tables are in a schema of its own. Tables of a database that is no cell's concern no other node of a
// cluster, one of which may be away.
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

// stepConnector makes connections for steps of the schema, most of which are transactions.
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

// ErrNoCell says that a database is no cell's, of which the URL says that it is one.
var ErrNoCell = errors.New("database url: this database is no cell's: make one with `footfall cell add`, or leave out cell=on")

// tellNoCell is an error of CellArrive, said in words where there is nothing to arrive at.
func tellNoCell(err error) error {
	e, is := errors.AsType[*pgconn.PgError](err)
	if is && (e.Code == "3F000" || e.Code == "42883") { // no such schema, no such function
		return errors.Join(ErrNoCell, err)
	}
	return err
}

// requireCell returns an error unless the URL says what the database is.
func (d *DB) requireCell(ctx context.Context, q *Queries) error {
	is, err := q.CellIs(ctx)
	switch {
	case err != nil:
		return err
	case is && d.sessions.cell == nil:
		return errors.New("database url: this database is a cell's: write it as `footfall cell list` does, with ?cell=on")
	case !is && d.sessions.cell != nil:
		return ErrNoCell
	}
	return nil
}

// makeLayer is makeFunctions in a cell: it gives functions and views to the coordinator, and the
// first session that arrives at the tables makes them there.
func (d *DB) makeLayer(ctx context.Context, conn *pgx.Conn) (made bool, err error) {
	texts, hash := functionFiles()
	files, err := schemaFiles(ctx, New(conn))
	if err != nil {
		return false, err
	}
	if _, err = New(conn).CellPlace(ctx); err != nil && !errors.Is(err, ErrNoRows) {
		return false, err
	}
	if made = !mayStay(files[functionsKey], hash) || err != nil; made { // tables that pg_restore has made are on no node yet
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
	return made, d.untilLocked(ctx, functionsAndViews, func() error {
		worker, err := pgx.ConnectConfig(ctx, d.sessions.with(nil)) // which arrives
		if err != nil {
			return err
		}
		return worker.Close(ctx)
	})
}
