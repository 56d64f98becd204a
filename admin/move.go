package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// Moving is an app on its way from one database to another, which a cell is.
type Moving struct {
	Name, Cell string
	From, To   *Admin
	Lead       func(ctx context.Context) error // lets the name lead to the cell, once the app is there
	At         func(step string)               // nil, or called before each step
}

// privately are the tables with what an export leaves out for people, in the order in which they refer
// to each other.
var privately = []string{"keys", "shares", "webhooks", "page_tallies", "visit_ids", "positions", "refused", "logs", "log_samples",
	"log_lines"}

func onItsWay(row *db.App) error {
	return visit.Errorf(visit.Unavailable, "app", "app %s is on its way to the cell %s: if nobody is moving it just now, type "+
		"`footfall cell move-app %[1]s --to %[2]s` again", row.Name, *row.MovingTo)
}

// MoveApp moves an app. Visits wait in its inbox meanwhile, and are counted where it has gone. Each step
// is there as a whole or not at all, and after each one it can be called again, which goes on from there.
// What fails before the app is there leaves it where it is.
func (m *Moving) MoveApp(ctx context.Context) error {
	return wrap("move app "+m.Name, m.move(ctx))
}

func (m *Moving) move(ctx context.Context) error {
	row, err := m.row(ctx)
	if err != nil {
		return err
	}
	if row.Cell != nil && row.MovingTo == nil {
		if *row.Cell != m.Cell {
			return app.InCell(m.Name, *row.Cell)
		}
		return m.Lead(ctx)
	}
	if row.MovingTo != nil && *row.MovingTo != m.Cell {
		return onItsWay(row)
	}
	if row.Cell == nil {
		if err := m.bring(ctx, row); err != nil {
			return err
		}
		m.at("leave")
		err = m.From.inTx(ctx, func(q queries) error { // nothing comes to its inbox any more
			return errors.Join(q.InboxHold(ctx), q.MoveLeave(ctx, row.ID), q.note(ctx, m.Name, "app", "", "moved to the cell "+m.Cell))
		})
		if err != nil {
			return err
		}
	}
	m.at("lead")
	if err := m.Lead(ctx); err != nil {
		return err
	}
	if err := m.From.db.WaitForInstances(ctx, instancesWithin); err != nil && !IsBehind(err) {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context, *db.App) error
	}{{"carry", m.carryWaiting}, {"clear", m.clear}, {"forget", m.forget}} {
		m.at(step.name)
		if err := step.do(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (m *Moving) at(step string) {
	if m.At != nil {
		m.At(step)
	}
}

// row is the app where it comes from.
func (m *Moving) row(ctx context.Context) (*db.App, error) {
	apps, err := m.From.db.Apps(ctx)
	at := slices.IndexFunc(apps, func(row db.App) bool { return row.Name == m.Name })
	switch {
	case err != nil:
		return nil, err
	case at < 0:
		return nil, app.NoApp(m.Name)
	case apps[at].DeletedAt != nil:
		return nil, errBeingDeleted
	}
	return &apps[at], nil
}

// mark tells an app from others of its name that the cell may have.
func mark(row *db.App) string { return fmt.Sprint(row.ID, " ", row.CreatedAt.UnixMicro()) }

// here is the app where it goes; ErrNoRows: it has not come.
func (m *Moving) here(ctx context.Context, row *db.App) (at MovedHereRow, err error) {
	err = m.To.db.Read(ctx, func(q *db.Queries) (err error) {
		at, err = New(q.Tx()).MovedHere(ctx, m.Name, mark(row))
		return err
	})
	return at, err
}

// bring has the app be where it goes, unless it is, and in its old place only those whose visits wait.
func (m *Moving) bring(ctx context.Context, row *db.App) error {
	if row.MovingTo != nil {
		if _, err := m.here(ctx, row); !errors.Is(err, db.ErrNoRows) {
			return err
		}
	}
	if err := m.check(ctx, row); err != nil {
		return err
	}
	m.at("hold")
	err := m.From.changed(ctx, "hold", m.From.inTx(ctx, func(q queries) error {
		// No batch commits that was made before, and none is made of its pages any more (AppCountsBy).
		return errors.Join(q.BasisRaise(ctx), q.MoveBegin(ctx, &m.Cell, row.ID))
	}))
	if err == nil {
		m.at("copy")
		err = m.copy(ctx, row)
	}
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if _, unknown := m.here(ctx, row); !errors.Is(unknown, db.ErrNoRows) { // it has come, or nobody can tell
		if unknown == nil {
			return nil
		}
		return errors.Join(err, fmt.Errorf("whether it has come there cannot be told now, type the same command again: %w", unknown))
	}
	return errors.Join(err, m.From.changed(ctx, "take back", m.From.inTx(ctx, func(q queries) error { return q.MoveTakeBack(ctx, row.ID) })))
}

// check refuses what cannot go along.
func (m *Moving) check(ctx context.Context, row *db.App) error {
	var numbers MoveNumbersRow
	err := m.From.db.Read(ctx, func(q *db.Queries) (err error) { numbers, err = New(q.Tx()).MoveNumbers(ctx, row.ID); return err })
	if err != nil {
		return err
	}
	if numbers.Importing {
		return visit.Errorf(visit.Unavailable, "", "an import of logs counts for app %s: move it when that has ended", m.Name)
	}
	var why string
	err = m.To.db.Read(ctx, func(q *db.Queries) (err error) {
		why, err = New(q.Tx()).MoveBlocked(ctx, MoveBlockedParams{Name: m.Name, SecretID: row.SecretID, Daily: row.Visitor == app.ByDay,
			Webhooks: numbers.Webhooks})
		return err
	})
	if err == nil && why != "" {
		err = visit.Errorf(visit.Invalid, "", "the cell %s cannot have app %s: %s", m.Cell, m.Name, why)
	}
	return err
}

// copy copies all that the app has in one transaction, while nobody may count for it.
func (m *Moving) copy(ctx context.Context, row *db.App) error {
	snapshots, err := m.From.db.OpenSnapshots(ctx, exportMemory)
	if err != nil {
		return err
	}
	defer snapshots.Close()
	return m.From.inTx(ctx, func(locked queries) error {
		if err := errors.Join(locked.EraseBegin(ctx), locked.MoveWaits(ctx), locked.AppDaysHold(ctx, row.ID)); err != nil {
			return err
		}
		if _, err := locked.PagesTallyLock(ctx, row.ID, 0); err != nil {
			return err
		}
		if _, err := locked.AppLock(ctx, m.Name); err != nil {
			return err
		}
		if err := inTurn(ctx, row.ID, locked.QueuesHold, locked.AppCountersTake); err != nil {
			return err
		}
		return snapshots.Take(ctx, func(tx db.Tx) error {
			from := queries{Queries: New(tx), shared: db.New(tx)}
			if err := errors.Join(from.MoveWaits(ctx), tellTagNews(ctx, from)); err != nil {
				return err
			}
			days := &Manifest{}
			if err := days.tellDays(ctx, from, row.ID); err != nil {
				return err
			}
			if err := m.To.prepareDays(ctx, days); err != nil {
				return err
			}
			return m.To.inTx(ctx, func(q queries) error { return m.put(ctx, from, q, row) })
		})
	})
}

// put copies what a transaction reads to what another one writes.
func (m *Moving) put(ctx context.Context, from, q queries, row *db.App) error {
	if err := errors.Join(q.EraseBegin(ctx), q.MoveWaits(ctx), q.LoadBegin(ctx)); err != nil {
		return err
	}
	parts, err := from.TakeoutParts(ctx, row.ID)
	l := loading{q: q}
	for i := 0; i < len(parts) && err == nil; i++ {
		err = l.across(ctx, from.Tx(), parts[i])
	}
	if err != nil {
		return err
	}
	if err := q.EraseTurn(ctx); err != nil { // before the epoch of apps, as AppLoad does
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
	if err := l.private(ctx, from, row.ID); err != nil {
		return err
	}
	if row.Visitor == app.ByDay {
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
			return q.MoveNoted(ctx, MoveNotedParams{ID: come.ID, Part: mark(row), LogKey: row.LogKey})
		},
		func() error { return q.MoveStubRights(ctx, come.ID, stub) },
		func() error { return q.MoveStubDelete(ctx, stub) },
		func() error { return q.note(ctx, m.Name, "app", "", "moved here") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	m.at("commit")
	return nil
}

// private copies what an export leaves out.
func (l *loading) private(ctx context.Context, from queries, id int32) error {
	had, err := from.MoveNumbers(ctx, id)
	if err != nil {
		return err
	}
	l.logs.old = had.Logs
	if l.logs.is, err = l.q.LogNumbers(ctx, int32(len(had.Logs))); err != nil { //nolint:gosec // of files
		return err
	}
	tables, err := from.MoveTables(ctx, id, privately)
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

// carry copies what a table has of the app.
func (l *loading) carry(ctx context.Context, from db.Tx, t MoveTablesRow) error {
	part := TakeoutPartsRow{Name: t.Name, Columns: t.Columns, Reading: t.Reading}
	if !t.Numbered {
		return l.across(ctx, from, part)
	}
	if err := l.q.CarryBegin(ctx, t.Name, t.Columns); err != nil {
		return err
	}
	if err := l.across(ctx, from, part); err != nil {
		return err
	}
	return l.q.CarryEnd(ctx, t.Name, t.Columns)
}

// across copies from one database to the other.
func (l *loading) across(ctx context.Context, from db.Tx, part TakeoutPartsRow) error {
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
	if err := errors.Join(err, <-read); err != nil {
		return fmt.Errorf("copy %s: %w", part.Name, err)
	}
	return nil
}

// carryWaiting takes the visits along that wait in the inbox, to which no more come. Each row goes once:
// the number of the last one is kept beside them.
func (m *Moving) carryWaiting(ctx context.Context, row *db.App) error {
	come, err := m.here(ctx, row)
	if err != nil {
		return err
	}
	err = m.From.inTx(ctx, func(from queries) error {
		if err := errors.Join(from.EraseBegin(ctx), from.MoveWaits(ctx)); err != nil {
			return err
		}
		last, err := from.WaitingLast(ctx, row.ID)
		if err != nil || last <= come.Next {
			return err
		}
		waiting, err := from.MoveTables(ctx, row.ID, []string{"inbox"})
		if err != nil {
			return err
		}
		return m.To.inTx(ctx, func(q queries) error {
			if err := errors.Join(q.EraseBegin(ctx), q.MoveWaits(ctx)); err != nil {
				return err
			}
			l := loading{q: q, numbered: true, app: come.ID}
			if err := l.carry(ctx, from.Tx(), waiting[0]); err != nil {
				return err
			}
			return q.MovedUpTo(ctx, MovedUpToParams{AppID: come.ID, Part: mark(row), Next: last})
		})
	})
	if err != nil {
		return err
	}
	m.at("carried")
	return m.From.inTx(ctx, func(q queries) error { return q.WaitingDelete(ctx, row.ID) })
}

// clear deletes what is left of the app in its old place, but its name.
func (m *Moving) clear(ctx context.Context, row *db.App) error {
	ofApp := func(f func(q queries) error) error {
		return m.From.inTx(ctx, func(q queries) error {
			if err := errors.Join(q.EraseBegin(ctx), q.EraseTurn(ctx)); err != nil {
				return err
			}
			return f(q)
		})
	}
	err := ofApp(func(q queries) error { return inTurn(ctx, row.ID, q.PeopleLock, q.AppPeopleDelete) })
	if err == nil {
		err = ofApp(func(q queries) error { return inTurn(ctx, row.ID, q.AppDaysHold, q.AppRowsDelete) })
	}
	if err != nil {
		return err
	}
	return ofApp(func(q queries) error { return deleteAll(ctx, q, row, q.MoveEnd) })
}

// forget lets go of what was noted of the move.
func (m *Moving) forget(ctx context.Context, row *db.App) error {
	come, err := m.here(ctx, row)
	if err != nil {
		return err
	}
	return m.To.changed(ctx, "move", m.To.inTx(ctx, func(q queries) error {
		return q.MovedForget(ctx, come.ID, mark(row))
	}))
}
