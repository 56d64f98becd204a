package cells

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"footfall/db"
)

// FillCell copies all that a plain database has into a cell that has nothing, in one transaction of
// each. Nobody may count in either meanwhile.
func (c *Cluster) FillCell(ctx context.Context, name, from string) error {
	source, err := db.Open(ctx, from, c.options)
	if err != nil {
		return fmt.Errorf("what is to be copied: %w", err)
	}
	defer source.Close()
	nodes, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	target, err := c.open(ctx, name, nodes)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := source.CheckSchema(ctx); err != nil {
		return fmt.Errorf("what is to be copied: %w", err)
	}
	if err := target.CheckSchema(ctx); err != nil {
		return err
	}
	return onConnection(ctx, source, func(out *pgx.Conn) error {
		return onConnection(ctx, target, func(in *pgx.Conn) error { return fill(ctx, out, in) })
	})
}

// onConnection runs f on a connection of its own, whose statements may take as long as they take.
func onConnection(ctx context.Context, d *db.DB, f func(conn *pgx.Conn) error) error {
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := db.RefuseBesideInstances(ctx, conn); err != nil {
		return err
	}
	return f(conn)
}

func fill(ctx context.Context, out, in *pgx.Conn) error {
	read, err := out.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = read.Rollback(context.WithoutCancel(ctx)) }()
	if err := New(read).FillHold(ctx); err != nil { // before anything takes the snapshot
		return err
	}
	apps, err := db.New(in).AppsList(ctx)
	if err != nil {
		return err
	}
	if len(apps) > 0 {
		return errors.New("the cell has apps: fill one that has nothing, as `footfall cell add` makes it")
	}
	days, err := db.New(read).VisitsDays(ctx, db.VisitsDaysParams{LastDay: lastDayOfAll})
	if err != nil {
		return err
	}
	for _, day := range days {
		if _, err := db.New(in).VisitsDayMake(ctx, day); err != nil {
			return fmt.Errorf("make partition of day %d: %w", day, err)
		}
	}
	return pgx.BeginFunc(ctx, in, func(write pgx.Tx) error {
		q := New(write)
		tables, err := q.FillTables(ctx)
		if err == nil {
			_, err = q.FillBegin(ctx)
		}
		for _, table := range tables {
			if err == nil {
				err = copyTable(ctx, read.Conn(), write.Conn(), table)
			}
		}
		if err != nil {
			return err
		}
		return q.FillEnd(ctx)
	})
}

const lastDayOfAll = 99991231

// copyTable copies the rows of a table.
func copyTable(ctx context.Context, out, in *pgx.Conn, table FillTablesRow) error {
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := out.PgConn().CopyTo(ctx, w, table.Reading)
		_ = w.CloseWithError(err)
		read <- err
	}()
	_, err := in.PgConn().CopyFrom(ctx, r, table.Writing)
	_ = r.CloseWithError(err)
	if err := errors.Join(err, <-read); err != nil {
		return fmt.Errorf("copy the table %s: %w", table.Name, err)
	}
	return nil
}
