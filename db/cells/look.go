package cells

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"footfall/db"
)

type (
	// Look is how a cell is.
	Look struct {
		Cell
		CellLookRow
		Today int64      // visits that its apps have counted today
		Needs db.Standby // which of its node's standbys it must wait for
		Wrong error      // why it counts nothing, or nothing is known of it
	}
	// NodeLook is how a node is.
	NodeLook struct {
		Node
		Bytes int64 // of its databases, and of WAL
		Wrong error // why nothing is known of it
	}
)

// Look looks at all cells and nodes at once.
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
			nodes[i].Wrong = c.with(ctx, node, c.home(), func(_ *pgx.Conn, q *Queries) (err error) {
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
	if at, err := ParseNode(cell.Place); err == nil { // which is named if it does not answer
		if look.Wrong = c.with(ctx, at, c.home(), func(*pgx.Conn, *Queries) error { return nil }); look.Wrong != nil {
			return look
		}
	}
	d, err := db.Open(ctx, cell.URL, c.options)
	if err == nil {
		defer d.Close()
		if err = d.Read(ctx, func(*db.Queries) error { return nil }); err == nil { // its node answers
			err = d.CheckSchema(ctx)
		}
		if err == nil {
			look.CellLookRow, err = LookAt(ctx, d)
		}
	}
	if err == nil {
		look.Needs, err = d.Standby(ctx)
	}
	if err == nil {
		err = d.Read(ctx, func(q *db.Queries) (err error) {
			look.Today, err = New(q.Tx()).CellToday(ctx)
			return err
		})
	}
	look.Wrong = err
	return look
}

// LookAt looks at a cell, where its tables are.
func LookAt(ctx context.Context, d *db.DB) (look CellLookRow, err error) {
	return look, d.Read(ctx, func(q *db.Queries) (err error) {
		look, err = New(q.Tx()).CellLook(ctx)
		return err
	})
}
