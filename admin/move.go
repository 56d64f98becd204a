package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// AppMove moves an app from the database of From to the database of To. Cell is the name of the second database, which is a cell:
// a database that stores all data of some apps.
type AppMove struct {
	Name, Cell string
	From, To   *Admin
	PointName  func(ctx context.Context) error // makes the app's name lead to the cell, after the app has arrived there
	OnStep     func(step string)               // optional; called before each step

	Refused time.Duration // result: how long no visits were counted for the app; 0: this call did not stop counting
	began   time.Time
}

func errMoving(row *db.App) error {
	return visit.Errorf(visit.Unavailable, "app", "app %s is moving to the cell %s: if no command is moving it, run "+
		"`footfall cell move-app %[1]s --to %[2]s` again", row.Name, *row.MovingTo)
}

// requireArrived returns an error if the app has not completely moved to this database. The database from which it moves may still
// have data or waiting visits, which a deletion in this database would miss.
func (q queries) requireArrived(ctx context.Context, row *db.App) error {
	partly, err := q.MovedPartly(ctx, row.ID)
	if err == nil && partly {
		err = visit.Errorf(visit.Unavailable, "app", "app %s is not completely moved here yet: wait until `footfall cell move-app %[1]s` "+
			"has ended, and run it again if it was interrupted", row.Name)
	}
	return err
}

// errOvertaken returns an error for the user: another command is moving the same app, and has already taken a later step.
func (m *AppMove) errOvertaken() error {
	return visit.Errorf(visit.Unavailable, "app", "another command is moving app %s: wait until it has ended, and run this one again",
		m.Name)
}

// lock locks the app in From, and returns an error if the app is no longer there. If begun is true, it also returns an error
// unless the app is marked as moving.
func (m *AppMove) lock(ctx context.Context, q queries, row *db.App, begun bool) error {
	now, err := q.AppLock(ctx, m.Name)
	switch {
	case err != nil:
		return replaceNoRows(err, app.NoApp(m.Name))
	case now.DeletedAt != nil:
		return errBeingDeleted
	case now.MovingTo != nil && *now.MovingTo != m.Cell:
		return errMoving(&now)
	case now.ID != row.ID || now.Cell != nil || begun && now.MovingTo == nil:
		return m.errOvertaken()
	}
	return nil
}

// MoveApp moves an app. In the meantime, the app's visits wait in the inbox, and are counted in To after the move. Each step
// is atomic. After an error, MoveApp can be called again, and continues after the last completed step. If two commands move
// the same app, one of them fails, at the latest at a step that the other command has completed. If an error occurs before the
// app has arrived in To, the app stays in From.
func (m *AppMove) MoveApp(ctx context.Context) error {
	return wrap("move app "+m.Name, m.From.RunLong(ctx, m.Name, func(ctx context.Context, from *Admin) error {
		return m.To.RunLong(ctx, m.Name, func(ctx context.Context, to *Admin) error {
			inSlots := *m
			inSlots.From, inSlots.To = from, to
			defer func() { m.Refused = inSlots.Refused }()
			return inSlots.move(ctx)
		})
	}))
}

func (m *AppMove) move(ctx context.Context) error {
	row, err := m.row(ctx)
	if err != nil {
		return err
	}
	if row.Cell != nil && row.MovingTo == nil {
		if *row.Cell != m.Cell {
			return app.InCell(m.Name, *row.Cell)
		}
		return m.PointName(ctx)
	}
	if row.MovingTo != nil && *row.MovingTo != m.Cell {
		return errMoving(row)
	}
	if row.Cell == nil {
		if err := m.bring(ctx, row); err != nil {
			return err
		}
		m.reportStep("leave")
		err = m.From.inTx(ctx, func(q queries) error { // after this, no visits of the app are added to the inbox of From
			if err := errors.Join(q.InboxHold(ctx), m.lock(ctx, q, row, true)); err != nil {
				return err
			}
			return errors.Join(q.MoveLeave(ctx, row.ID), q.note(ctx, m.Name, "app", "", "moved to the cell "+m.Cell))
		})
		if err != nil {
			return err
		}
	}
	m.reportStep("lead")
	if err := m.PointName(ctx); err != nil {
		return err
	}
	if err := m.From.db.WaitForInstances(ctx, instancesWithin); err != nil && !IsBehind(err) {
		return err
	}
	if !m.began.IsZero() {
		m.Refused = time.Since(m.began)
	}
	for _, step := range []func(context.Context, *db.App) error{m.carryWaiting, m.clear, m.forget, m.end} {
		if err := step(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (m *AppMove) reportStep(step string) {
	if m.OnStep != nil {
		m.OnStep(step)
	}
}

// row returns the app's row in From.
func (m *AppMove) row(ctx context.Context) (*db.App, error) {
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

// identifyApp returns a text that identifies the app in From. The database of To stores this text with the app, because other apps
// may have had the same name.
func identifyApp(row *db.App) string { return fmt.Sprint(row.ID, " ", row.CreatedAt.UnixMicro()) }

// findArrived returns the app in To. It returns ErrNoRows if the app has not arrived, or if the record of its move is already
// deleted.
func (m *AppMove) findArrived(ctx context.Context, row *db.App) (at MovedHereRow, err error) {
	err = m.To.db.Read(ctx, func(q *db.Queries) (err error) {
		at, err = New(q.Tx()).MovedHere(ctx, m.Name, identifyApp(row))
		return err
	})
	return at, err
}

// bring copies the app to To, unless it is already there. After that, only the visits in the inbox of From are left to move.
func (m *AppMove) bring(ctx context.Context, row *db.App) error {
	if row.MovingTo != nil {
		if _, err := m.findArrived(ctx, row); !errors.Is(err, db.ErrNoRows) {
			return err
		}
	}
	if err := m.check(ctx, row); err != nil {
		return err
	}
	m.reportStep("hold")
	m.began = time.Now()
	err := m.From.waitForChange(ctx, "pause counting", m.From.inTx(ctx, func(q queries) error {
		// After this transaction, a batch of visits that was built earlier cannot commit (BasisRaise), and new batches contain
		// no pages of the app (AppCountsBy).
		if err := errors.Join(q.BasisRaise(ctx), m.lock(ctx, q, row, false)); err != nil {
			return err
		}
		return q.MoveBegin(ctx, &m.Cell, row.ID)
	}))
	if err == nil {
		m.reportStep("copy")
		err = m.copy(ctx, row)
	}
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	come := false
	failed := m.From.inTx(ctx, func(q queries) error {
		if _, err := q.AppLock(ctx, m.Name); err != nil { // waits for a command that is copying the app
			return replaceNoRows(err, nil)
		}
		_, unknown := m.findArrived(ctx, row)
		switch come = unknown == nil; {
		case come:
			return nil
		case !errors.Is(unknown, db.ErrNoRows):
			return fmt.Errorf("it is unknown whether the app has arrived: run the same command again: %w", unknown)
		}
		return q.MoveTakeBack(ctx, row.ID, &m.Cell)
	})
	if come {
		return nil
	}
	return errors.Join(err, m.From.waitForChange(ctx, "undo the move", failed))
}

// check returns an error if the app cannot move now, or if the cell cannot store its data.
func (m *AppMove) check(ctx context.Context, row *db.App) error {
	var numbers MoveNumbersRow
	err := m.From.db.Read(ctx, func(q *db.Queries) (err error) { numbers, err = New(q.Tx()).MoveNumbers(ctx, row.ID); return err })
	if err != nil {
		return err
	}
	if err := m.From.db.Read(ctx, func(q *db.Queries) error { return queries{Queries: New(q.Tx())}.requireArrived(ctx, row) }); err != nil {
		return err
	}
	if numbers.Importing {
		return visit.Errorf(visit.Unavailable, "", "an import of logs is running for app %s: move the app after it has ended", m.Name)
	}
	var why string
	err = m.To.db.Read(ctx, func(q *db.Queries) (err error) {
		why, err = New(q.Tx()).MoveBlocked(ctx, MoveBlockedParams{Name: m.Name, SecretID: row.SecretID, Daily: row.Visitor == app.ByDay,
			Webhooks: numbers.Webhooks})
		return err
	})
	if err == nil && why != "" {
		err = visit.Errorf(visit.Invalid, "", "the cell %s cannot take app %s: %s", m.Cell, m.Name, why)
	}
	return err
}

// copy copies all data of the app in one transaction, while nothing is counted for the app.
func (m *AppMove) copy(ctx context.Context, row *db.App) error {
	// Wait for transactions that write or erase people (linked ids of visitors) of the app. Later transactions find that the
	// app is moving.
	err := m.From.inTx(ctx, func(q queries) error { return errors.Join(q.EraseBegin(ctx), q.PeopleLock(ctx, row.ID)) })
	if err != nil {
		return err
	}
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
		if err := m.lock(ctx, locked, row, true); err != nil {
			return err
		}
		if _, err := m.findArrived(ctx, row); !errors.Is(err, db.ErrNoRows) { // nil: another command has copied the app in the meantime
			return err
		}
		if err := errors.Join(locked.QueuesHold(ctx, row.ID), locked.AppCountersTake(ctx, row.ID)); err != nil {
			return err
		}
		return snapshots.Take(ctx, func(tx db.Tx) error {
			from := queries{Queries: New(tx), shared: db.New(tx)}
			if err := errors.Join(from.MoveWaits(ctx), passTagNews(ctx, from)); err != nil {
				return err
			}
			days := &Manifest{}
			if err := days.addDays(ctx, from, row.ID); err != nil {
				return err
			}
			if err := m.To.prepareDays(ctx, days); err != nil {
				return err
			}
			return m.To.inTx(ctx, func(q queries) error { return m.put(ctx, from, q, row) })
		})
	})
}

// carryWaiting copies the app's visits from the inbox of From to the inbox of To. No more visits of the app are added to the
// inbox of From. The transaction that writes the visits to To also stores the number of the last copied row in To. If another
// command has changed this number in the meantime, carryWaiting fails, so that each row is copied only once.
func (m *AppMove) carryWaiting(ctx context.Context, row *db.App) error {
	come, err := m.findArrived(ctx, row)
	// The record of the move is deleted. If From has no data of the app, another command has completed the move. Otherwise
	// fail, so that the user tries again.
	if errors.Is(err, db.ErrNoRows) {
		counts := false
		err = m.From.db.Read(ctx, func(q *db.Queries) (err error) { counts, err = q.AppCounts(ctx, row.ID); return err })
		if err == nil && counts {
			err = m.errOvertaken()
		}
		return err
	}
	if err != nil {
		return err
	}
	m.reportStep("carry")
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
			l := loader{q: q, numbered: true, app: come.ID}
			if err := l.carry(ctx, from.Tx(), waiting[0]); err != nil {
				return err
			}
			carried, err := q.MovedUpTo(ctx, MovedUpToParams{AppID: come.ID, Part: identifyApp(row), Was: come.Next, Next: last})
			if err == nil && carried == 0 {
				err = m.errOvertaken()
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	m.reportStep("carried")
	return m.From.inTx(ctx, func(q queries) error { return q.WaitingDelete(ctx, row.ID) })
}

// clear deletes the app's data in From, except the app's row in apps.
func (m *AppMove) clear(ctx context.Context, row *db.App) error {
	m.reportStep("clear")
	ofApp := func(f func(q queries) error) error {
		return m.From.inTx(ctx, func(q queries) error {
			if err := errors.Join(q.EraseBegin(ctx), q.EraseTurn(ctx)); err != nil {
				return err
			}
			return f(q)
		})
	}
	err := ofApp(func(q queries) error { return q.AppPeopleDelete(ctx, row.ID) })
	if err == nil {
		err = ofApp(func(q queries) error { return q.AppRowsDelete(ctx, row.ID) })
	}
	if err != nil {
		return err
	}
	return ofApp(func(q queries) error { return q.AppRestDelete(ctx, row.ID) })
}

// forget deletes the record of the move in To.
func (m *AppMove) forget(ctx context.Context, row *db.App) error {
	m.reportStep("forget")
	come, err := m.findArrived(ctx, row)
	if err != nil {
		return replaceNoRows(err, nil)
	}
	return m.To.waitForChange(ctx, "move", m.To.inTx(ctx, func(q queries) error {
		return q.MovedForget(ctx, come.ID, identifyApp(row))
	}))
}

// end is the last step of a move: it clears moving_to in the app's row in From. This step is the last one, because after an
// interruption the next command for this move recognizes the database From by moving_to.
func (m *AppMove) end(ctx context.Context, row *db.App) error {
	m.reportStep("end")
	return m.From.inTx(ctx, func(q queries) error { return q.MoveEnd(ctx, row.ID) })
}
