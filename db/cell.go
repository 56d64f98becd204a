package db

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
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
	last string // where the tables were when a node could tell
}

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
	s.cell = &cell{nodes: s.parsed.Copy(), dial: cfg.DialFunc}
	s.cell.nodes.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if place := s.cell.place(ctx); place != "" {
			network, address = "tcp", place
		}
		return s.cell.dial(ctx, network, address)
	}
	return nil
}

// placeWithin is how long a node may take to say where the tables are. One that hangs must not use
// up the time of the connection that is to be made.
const placeWithin = 2 * time.Second

// place is where the tables are, or were when a node could tell last: whether they still are there,
// the node there finds out.
func (c *cell) place(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, placeWithin)
	defer cancel()
	var at CellPlaceRow
	conn, err := pgx.ConnectConfig(ctx, c.nodes.ConnConfig)
	if err == nil {
		at, err = New(conn).CellPlace(ctx)
		_ = conn.Close(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.last = net.JoinHostPort(at.Nodename, strconv.Itoa(int(at.Nodeport)))
	}
	return c.last
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
	u.Host = cmp.Or(s.cell.place(ctx), u.Host)
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
	return d.sessions.cell.place(ctx)
}

// IsCell tells whether the URL says that the database is a cell's.
func (d *DB) IsCell() bool { return d.sessions.cell != nil }

// forSteps is how connections are made that change tables: in a cell, to the coordinator, where the
// tables are in a schema of its own.
func (s sessions) forSteps() sessions {
	if s.cell == nil {
		return s
	}
	return sessions{s.cell.nodes, map[string]string{
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

// requireCell returns an error unless the URL says what the database is.
func (d *DB) requireCell(ctx context.Context, q *Queries) error {
	is, err := q.CellIs(ctx)
	switch {
	case err != nil:
		return err
	case is && d.sessions.cell == nil:
		return errors.New("database url: this database is a cell's: write it as `footfall cell list` does, with ?cell=on")
	case !is && d.sessions.cell != nil:
		return errors.New("database url: this database is no cell's: make one with `footfall cell add`, or leave out cell=on")
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
				if _, err := tx.Exec(ctx, migrations.Cell, pgx.QueryExecModeSimpleProtocol); err != nil {
					return err
				}
				if err := q.CellLayerPut(ctx, texts); err != nil {
					return err
				}
				return q.StepNote(ctx, StepNoteParams{Name: functionsKey, Hash: hash})
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
