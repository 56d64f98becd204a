package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// unexportedTables lists the tables with data that exports leave out. Each table follows the tables to which its rows refer.
var unexportedTables = []string{"keys", "shares", "webhooks", "page_tallies", "visit_ids", "positions", "refused", "logs", "log_samples",
	"log_lines", "log_hours", "counted_lines", "read_logs"}

// put copies the app's data. It reads in the transaction of from, and writes in the transaction of q.
func (m *AppMove) put(ctx context.Context, from, q queries, row *db.App) error {
	if err := errors.Join(q.EraseBegin(ctx), q.MoveWaits(ctx), q.LoadBegin(ctx)); err != nil {
		return err
	}
	parts, err := from.TakeoutParts(ctx, row.ID)
	l := loader{q: q}
	for i := 0; i < len(parts) && err == nil; i++ {
		err = l.copyRows(ctx, from.Tx(), parts[i])
	}
	if err != nil {
		return err
	}
	// Take this lock before MoveStub raises the epoch (version number) of apps, because all transactions that erase take the two
	// locks in this order.
	if err := q.EraseTurn(ctx); err != nil {
		return err
	}
	stub, err := q.MoveStub(ctx, m.Name)
	if err != nil {
		return err
	}
	if err := q.AppLoad(ctx, m.Name); err != nil {
		return err
	}
	come, err := q.AppLock(ctx, m.Name)
	if err != nil {
		return err
	}
	l.app = come.ID
	if err := l.copyUnexported(ctx, from, row.ID); err != nil {
		return err
	}
	if row.Visitor == app.ByDay {
		// Check again that no other app in To uses daily keys, because an app may have been added there since m.check ran.
		// From now on, new apps with --visitor daily wait for this transaction.
		beside, err := q.MoveDailyBeside(ctx, come.ID)
		if err != nil {
			return err
		}
		if beside {
			return visit.Errorf(visit.Invalid, "", "the cell %s cannot take app %s: an app with --visitor daily has just been added there",
				m.Cell, m.Name)
		}
		keys, err := from.DayKeysList(ctx)
		for i := 0; i < len(keys) && err == nil; i++ {
			err = q.DayKeyPut(ctx, keys[i].DayID, keys[i].Key)
		}
		if err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		func() error {
			return q.MoveNoted(ctx, MoveNotedParams{ID: come.ID, Part: identifyApp(row), LogKey: row.LogKey})
		},
		func() error { return q.MoveStubRights(ctx, come.ID, stub) },
		func() error { return q.MoveStubDelete(ctx, stub) },
		func() error { return q.note(ctx, m.Name, "app", "", "moved here") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	m.reportStep("commit")
	return nil
}

// copyUnexported copies the app's rows in the tables that exports leave out.
func (l *loader) copyUnexported(ctx context.Context, from queries, id int32) error {
	had, err := from.MoveNumbers(ctx, id)
	if err != nil {
		return err
	}
	l.logs.old = had.Logs
	if l.logs.newIDs, err = l.q.LogNumbers(ctx, int32(len(had.Logs))); err != nil { //nolint:gosec // number of files
		return err
	}
	tables, err := from.MoveTables(ctx, id, unexportedTables)
	for i := 0; i < len(tables) && err == nil; i++ {
		err = l.carry(ctx, from.Tx(), tables[i])
	}
	if err == nil {
		err = l.q.MoveCalls(ctx, l.app)
	}
	if err == nil && len(had.Webhooks) > 0 {
		err = l.q.WebhooksGoOn(ctx)
	}
	return err
}

// carry copies the app's rows of a table. If t.Numbered is true, the rows get new ids.
func (l *loader) carry(ctx context.Context, from db.Tx, t MoveTablesRow) error {
	part := TakeoutPartsRow{Name: t.Name, Columns: t.Columns, Reading: t.Reading}
	if !t.Numbered {
		return l.copyRows(ctx, from, part)
	}
	if err := l.q.CarryBegin(ctx, t.Name, t.Columns); err != nil {
		return err
	}
	if err := l.copyRows(ctx, from, part); err != nil {
		return err
	}
	return l.q.CarryEnd(ctx, t.Name, t.Columns)
}

// copyRows copies the rows of a table from one database to the other.
func (l *loader) copyRows(ctx context.Context, from db.Tx, part TakeoutPartsRow) error {
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() {
		buffered := bufio.NewWriterSize(w, 1<<16)
		_, err := db.CopyOut(ctx, from, part.Reading, buffered)
		if err == nil {
			err = buffered.Flush()
		}
		_ = w.CloseWithError(err)
		read <- err
	}()
	_, err := l.part(ctx, part, r)
	_ = r.CloseWithError(io.ErrClosedPipe)
	if cut := <-read; cut != nil && !errors.Is(cut, io.ErrClosedPipe) { // then l.part has failed for this reason, too
		return fmt.Errorf("%s could not be read completely, and was not copied: run the same command again: %w", part.Name, cut)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", part.Name, err)
	}
	return nil
}
