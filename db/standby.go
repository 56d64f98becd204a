package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Where the server has a synchronous standby, COMMIT returns once that has the transaction on its
// disk, too. It also returns, with success, when somebody ends its wait: by cancelling it, which
// PostgreSQL tells in a warning, or by emptying synchronous_standby_names, of which it says nothing.
// What such a transaction wrote may then be on one machine, which may be lost. (Sessions set
// synchronous_commit and client_min_messages themselves, so that no reload ends the wait or hides the
// warning.)

// ErrAlone says that something was committed, but perhaps on this server alone.
var ErrAlone = errors.New("it was committed, but its wait for the synchronous standby was ended, which may not have it")

// warning is what the custom data of a connection has of the last warning that came over it.
const warning = "footfall.warning"

// keepWarning keeps the last warning that came over a connection.
func keepWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" { // its text and its SQLSTATE tell no more: one is translated, one is that of all warnings
		conn.CustomData()[warning] = n.Message
	}
}

// hearWarnings makes the connections of a pool keep the last warning since they were acquired.
func hearWarnings(cfg *pgxpool.Config) {
	cfg.ConnConfig.OnNotice = keepWarning
	cfg.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		_ = TakeWarning(conn) // it came before
		return true, nil
	}
}

// TakeWarning returns the last warning that came over a connection, once; nil: there was none.
func TakeWarning(conn *pgx.Conn) error {
	data := conn.PgConn().CustomData()
	said, warned := data[warning]
	if !warned {
		return nil
	}
	delete(data, warning)
	return fmt.Errorf("the server warned: %v", said)
}

// SayStandby says whether a synchronous standby is required, by all that write here from now on. That
// it is can be said where COMMIT waits for one; or in any case, by a service that is to refuse visits
// until it does.
func (d *DB) SayStandby(ctx context.Context, required, inAnyCase bool) error {
	say := func(q *Queries) error { return q.StandbySay(ctx, required) }
	if inAnyCase {
		return d.Read(ctx, say)
	}
	return d.InTx(ctx, say)
}

// Standby is whether a synchronous standby is required, and what becomes of COMMIT.
type Standby struct {
	Required bool
	Lacking  bool // it is required, and COMMIT waits for none
	InVain   bool // COMMIT waits for one that is away, or does not answer
}

// waitsInVain is for how long a session waits at least for a standby that does not answer.
const waitsInVain = 1500 * time.Millisecond

// Standby looks how it is with the synchronous standby.
func (d *DB) Standby(ctx context.Context) (s Standby, err error) {
	return s, d.Read(ctx, func(q *Queries) (err error) {
		s.Required, err = q.StandbyRequire(ctx, d.options.RequireStandby)
		// raised by require_standby
		if s.Lacking = answerOf(err).Code == "FF009"; s.Lacking {
			s.Required, err = true, nil
		}
		if err == nil {
			s.InVain, err = q.CommitsWait(ctx, waitsInVain.Seconds())
		}
		return err
	})
}

// AwaitsStandby returns an error where COMMIT waits for a standby in vain, whatever it is that waits.
func (d *DB) AwaitsStandby(ctx context.Context) error {
	return d.Read(ctx, func(q *Queries) error {
		waits, err := q.CommitsWait(ctx, waitsInVain.Seconds())
		if waits {
			return errAwaitsStandby
		}
		return err
	})
}

// CommitsAlone is how many commits returned before the synchronous standby had them, as far as is
// known.
func (d *DB) CommitsAlone() int64 { return d.commitsAlone.Load() }

// errUnconfirmed says that nothing is known of the wait of a commit.
var errUnconfirmed = errors.New("it was committed, but whether the synchronous standby has it is not known")

// unconfirmed returns the error of a commit after which the standby could not be checked. The server
// proves with FF009 that COMMIT does not wait. A lost connection or an ended context proves nothing.
func (d *DB) unconfirmed(why error) error {
	if answerOf(why).Code == "FF009" {
		return d.alone(why)
	}
	return fmt.Errorf("%w: %w", errUnconfirmed, why)
}

// alone notes a commit that returned too early.
func (d *DB) alone(why error) error {
	d.commitsAlone.Add(1)
	d.options.Log.Warn("a commit did not wait for the synchronous standby: leave sessions that wait for it alone, and "+
		"synchronous_standby_names as it is", "error", why)
	return fmt.Errorf("%w: %w", ErrAlone, why)
}

// write runs f on a connection, which commits by itself, and returns when that is confirmed.
func (d *DB) write(ctx context.Context, pool *pgxpool.Pool, f func(conn *pgxpool.Conn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return &notSentError{err}
	}
	defer conn.Release()
	required, err := d.requireStandby(ctx, conn)
	if err != nil {
		return err
	}
	if err := f(conn); err != nil {
		return err
	}
	if required {
		if _, err := d.requireStandby(ctx, conn); err != nil {
			return d.unconfirmed(err)
		}
	}
	return d.confirm(ctx, conn)
}

// inTx runs f in a transaction, and returns when that is confirmed.
func (d *DB) inTx(ctx context.Context, pool *pgxpool.Pool, f func(q *Queries) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return &notSentError{err}
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err == nil {
		err = f(New(tx))
	}
	if err != nil {
		return failed(conn, err)
	}
	return d.commitAsked(ctx, conn, new(pgx.Batch), true)
}

// requireStandby fails where COMMIT waits for no standby, though it should.
func (d *DB) requireStandby(ctx context.Context, conn *pgxpool.Conn) (required bool, err error) {
	return New(conn).StandbyRequire(ctx, d.options.RequireStandby)
}

// confirm returns when what the session committed last is on the standby, too: so it is as soon as
// what commits behind it is.
func (d *DB) confirm(ctx context.Context, conn *pgxpool.Conn) error {
	warned := TakeWarning(conn.Conn())
	if warned == nil {
		return nil
	}
	alone := d.alone(warned)
	err := New(conn).SessionCommit(ctx)
	if err == nil {
		_, err = d.requireStandby(ctx, conn)
	}
	if err == nil {
		err = TakeWarning(conn.Conn())
	}
	if err != nil {
		return errors.Join(alone, err)
	}
	return nil
}

// errCommitsNothing says of a server that it takes connections, and nothing else.
var errCommitsNothing = errors.New("commits nothing in time: it waits for its synchronous standby, or for its disk")

// mustCommit has the connections of writers pass by a server on which nothing can be committed, as
// on a primary that was replaced and still runs: the next host of the URL is tried. Where they come
// to another server than before, so do all others.
func (d *DB) mustCommit(cfg *pgxpool.Config) {
	prepare := cfg.ConnConfig.AfterConnect
	cfg.ConnConfig.AfterConnect = nil
	cfg.ConnConfig.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := d.sessions.validate(ctx, conn); err != nil {
			return err
		}
		if err := prepare(ctx, conn); err != nil {
			return err
		}
		err := conn.ExecParams(ctx, SessionCommit, nil, nil, nil, nil).Read().Err
		if pgconn.Timeout(err) {
			return errCommitsNothing
		}
		if err != nil {
			return err
		}
		now := addressOf(conn)
		if before := d.sessions.writers.Swap(&now); before != nil && *before != now {
			d.readers.Reset()
			d.reports.Reset()
		}
		return nil
	}
}

func addressOf(conn *pgconn.PgConn) string { return conn.Conn().RemoteAddr().String() }

// left reports whether a connection leads to another server than those of writers.
func (s sessions) left(conn *pgconn.PgConn) bool {
	writers := s.writers.Load()
	return writers != nil && *writers != addressOf(conn)
}

// followWriters has a connection try other hosts first where it leads to another server than those
// of writers. It stays there if it has to: reading does not end with a standby.
func (s sessions) followWriters(ctx context.Context, conn *pgconn.PgConn) error {
	err := s.validate(ctx, conn)
	if err == nil && s.left(conn) {
		return pgconn.ValidateConnectTargetSessionAttrsPreferStandby(ctx, conn) // the one way to have the driver do so
	}
	return err
}

// validate checks a connection as the URL asks for.
func (s sessions) validate(ctx context.Context, conn *pgconn.PgConn) error {
	if check := s.parsed.ConnConfig.ValidateConnect; check != nil {
		return check(ctx, conn)
	}
	return nil
}

// errAwaitsStandby says why commits take too long.
var errAwaitsStandby = errors.New("commits wait for the synchronous standby, which does not answer")

// explain adds to an error of too much time that the server waits for its standby, if it does.
func (d *DB) explain(err error) error {
	if !pgconn.Timeout(err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errCommitsNothing) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), explainWithin)
	defer cancel()
	if waits, failed := d.queries.CommitsWait(ctx, 0); failed != nil || !waits {
		return err
	}
	return fmt.Errorf("%w: %w", errAwaitsStandby, err)
}

// explainWithin is short: the answer itself is there already.
const explainWithin = 250 * time.Millisecond
