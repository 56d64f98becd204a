package cells

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"footfall/db"
)

type (
	// Look is the state of a cell.
	Look struct {
		Cell
		CellLookRow
		VisitsToday int64      // visits that the apps of the cell have counted today
		Standby     db.Standby // the state of the standby of the cell's node
		Err         error      // why the cell cannot count visits, or why its state is unknown
	}
	// NodeLook is the state of a node.
	NodeLook struct {
		Node
		Bytes int64 // size of the node's databases and WAL
		Err   error // why the node's state is unknown
	}
)

// Look checks all cells and nodes concurrently.
func (c *Cluster) Look(ctx context.Context) (looks []Look, nodes []NodeLook, err error) {
	there, _, err := c.nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	cells, err := c.Cells(ctx)
	if err != nil {
		return nil, nil, err
	}
	looks, nodes = make([]Look, len(cells)), make([]NodeLook, len(there))
	var all sync.WaitGroup
	for i, cell := range cells {
		all.Go(func() { looks[i] = c.look(ctx, cell) })
	}
	for i, node := range there {
		nodes[i].Node = node
		all.Go(func() {
			nodes[i].Err = c.withConn(ctx, node, c.home(), func(_ *pgx.Conn, q *Queries) (err error) {
				nodes[i].Bytes, err = q.NodeLook(ctx)
				return err
			})
		})
	}
	all.Wait()
	return looks, nodes, nil
}

func (c *Cluster) look(ctx context.Context, cell Cell) Look {
	look := Look{Cell: cell}
	if at, err := ParseNode(cell.Place); err == nil { // so that the error contains the node if it does not respond
		if look.Err = c.withConn(ctx, at, c.home(), func(*pgx.Conn, *Queries) error { return nil }); look.Err != nil {
			return look
		}
	}
	d, err := db.Open(ctx, cell.URL, c.options)
	if err == nil {
		defer d.Close()
		if err = d.Read(ctx, func(*db.Queries) error { return nil }); err == nil { // the node with the tables responds
			err = d.CheckSchema(ctx)
		}
		if err == nil {
			look.CellLookRow, err = LookAt(ctx, d)
		}
	}
	if err == nil {
		look.Standby, err = d.Standby(ctx)
	}
	if err == nil {
		err = d.Read(ctx, func(q *db.Queries) (err error) {
			look.VisitsToday, err = New(q.Tx()).CellToday(ctx)
			return err
		})
	}
	look.Err = err
	return look
}

// LookAt reads the state of a cell. d must be the cell's database.
func LookAt(ctx context.Context, d *db.DB) (look CellLookRow, err error) {
	return look, d.Read(ctx, func(q *db.Queries) (err error) {
		look, err = New(q.Tx()).CellLook(ctx)
		return err
	})
}
