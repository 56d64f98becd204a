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

// With a synchronous standby, COMMIT returns once the standby also has the transaction on disk. But COMMIT also
// succeeds if its wait ends early. This happens in two ways:
//   - The wait is canceled. PostgreSQL reports this as a warning.
//   - synchronous_standby_names is emptied. PostgreSQL does not report this.
//
// The transaction may then exist on only one machine, and be lost with that machine. Sessions set
// synchronous_commit and client_min_messages themselves, so that no configuration reload ends the wait or hides the
// warning.

// ErrUnreplicated is returned for a commit that may exist only on this server.
var ErrUnreplicated = errors.New("the change was committed without waiting for the synchronous standby, which may not have it")

// warning is the key under which the CustomData of a connection contains the server's last warning.
const warning = "footfall.warning"

// keepWarning stores the server's last warning in the CustomData of a connection.
func keepWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" { // any warning: its text may be translated, and all have the same SQLSTATE
		conn.CustomData()[warning] = n.Message
	}
}

// hearWarnings makes each connection of a pool store the last warning since the connection was acquired.
func hearWarnings(cfg *pgxpool.Config) {
	cfg.ConnConfig.OnNotice = keepWarning
	cfg.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		_ = TakeWarning(conn) // forget a warning from an earlier use of the connection
		return true, nil
	}
}

// TakeWarning returns and removes the last warning of a connection, or nil if there was none.
func TakeWarning(conn *pgx.Conn) error {
	data := conn.PgConn().CustomData()
	said, warned := data[warning]
	if !warned {
		return nil
	}
	delete(data, warning)
	return fmt.Errorf("the server warned: %v", said)
}

// SayStandby stores whether all writers require a synchronous standby from now on. If required is set, SayStandby
// fails unless COMMIT waits for a standby. inAnyCase skips this check. If COMMIT then waits for no standby, services
// refuse visits until it does.
func (d *DB) SayStandby(ctx context.Context, required, inAnyCase bool) error {
	say := func(q *Queries) error { return q.StandbyStore(ctx, required) }
	if inAnyCase {
		return d.Read(ctx, say)
	}
	return d.InTx(ctx, say)
}

// Standby is the state of the synchronous standby.
type Standby struct {
	Required  bool
	IsMissing bool // a standby is required, but COMMIT waits for no standby
	IsHanging bool // a COMMIT waits for a standby that is down or does not respond
}

// waitsInVain is how long a COMMIT must have waited for a standby before the standby counts as not responding.
const waitsInVain = 1500 * time.Millisecond

// Standby checks the state of the synchronous standby.
func (d *DB) Standby(ctx context.Context) (s Standby, err error) {
	return s, d.Read(ctx, func(q *Queries) (err error) {
		s.Required, err = q.StandbyRequire(ctx, d.options.RequireStandby)
		// FF009 is raised by the SQL function require_standby.
		if s.IsMissing = serverError(err).Code == "FF009"; s.IsMissing {
			s.Required, err = true, nil
		}
		if err == nil {
			s.IsHanging, err = q.CommitsWait(ctx, waitsInVain.Seconds())
		}
		return err
	})
}

// AwaitsStandby returns an error if any COMMIT waits for a standby that does not respond.
func (d *DB) AwaitsStandby(ctx context.Context) error {
	return d.Read(ctx, func(q *Queries) error {
		waits, err := q.CommitsWait(ctx, waitsInVain.Seconds())
		if waits {
			return errAwaitsStandby
		}
		return err
	})
}

// UnreplicatedCommits returns the number of commits of this instance that did not wait for the synchronous standby.
func (d *DB) UnreplicatedCommits() int64 { return d.commitsAlone.Load() }

// errUnconfirmed is returned if the standby could not be checked after a commit.
var errUnconfirmed = errors.New("the change was committed, but it is unknown whether the synchronous standby has it")

// unconfirmedError returns the error for a commit after which the check of the standby failed. If the check failed
// with FF009, COMMIT did not wait for the standby. After any other error, such as a lost connection or an
// ended context, it is unknown whether the standby has the commit.
func (d *DB) unconfirmedError(why error) error {
	if serverError(why).Code == "FF009" {
		return d.countUnreplicated(why)
	}
	return fmt.Errorf("%w: %w", errUnconfirmed, why)
}

// countUnreplicated counts and logs a commit that did not wait for the standby, and returns ErrUnreplicated with the reason.
func (d *DB) countUnreplicated(why error) error {
	d.commitsAlone.Add(1)
	d.options.Log.Warn("a commit did not wait for the synchronous standby: do not cancel sessions that wait for it, "+
		"and do not change synchronous_standby_names", "error", why)
	return fmt.Errorf("%w: %w", ErrUnreplicated, why)
}

// write runs f on a connection of the pool, and returns when the commit of f is confirmed. If a synchronous standby
// is required but COMMIT waits for no standby, write fails before it runs f.
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
			return d.unconfirmedError(err)
		}
	}
	return d.confirm(ctx, conn)
}

// inTx runs f in a transaction, and returns when the commit is confirmed.
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
		return rollbackAfter(conn, err)
	}
	return d.commitChecked(ctx, conn, new(pgx.Batch), true)
}

// requireStandby returns whether a synchronous standby is required. It fails if a standby is required but COMMIT
// waits for no standby.
func (d *DB) requireStandby(ctx context.Context, conn *pgxpool.Conn) (required bool, err error) {
	return New(conn).StandbyRequire(ctx, d.options.RequireStandby)
}

// confirm returns when the session's last commit is also on the synchronous standby. If the server warned that the
// commit did not wait, confirm commits again: when the second commit is on the standby, all earlier commits are.
func (d *DB) confirm(ctx context.Context, conn *pgxpool.Conn) error {
	warned := TakeWarning(conn.Conn())
	if warned == nil {
		return nil
	}
	alone := d.countUnreplicated(warned)
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

// errCommitsNothing is returned for a server that accepts connections but does not commit.
var errCommitsNothing = errors.New("does not commit in time: it waits for its synchronous standby, or for its disk")

// mustCommit configures the pool writers: new connections skip a server that cannot commit, such as a replaced primary
// that still runs, and try the next host of the URL. If this pool reaches another server than before, the pools
// readers and reports make new connections, too, so that they use the same server.
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

// leadsElsewhere reports whether a connection leads to another server than the last connection of the pool writers.
func (s sessions) leadsElsewhere(conn *pgconn.PgConn) bool {
	writers := s.writers.Load()
	return writers != nil && *writers != addressOf(conn)
}

// followWriters makes a new connection prefer the server of the pool writers. If no other host responds, the connection
// uses the server that it has reached, so that reads continue during a failover.
func (s sessions) followWriters(ctx context.Context, conn *pgconn.PgConn) error {
	err := s.validate(ctx, conn)
	if err == nil && s.leadsElsewhere(conn) {
		// Only the error of this function makes the driver try the next host.
		return pgconn.ValidateConnectTargetSessionAttrsPreferStandby(ctx, conn)
	}
	return err
}

// validate runs the check that the URL requires for new connections (target_session_attrs), if any.
func (s sessions) validate(ctx context.Context, conn *pgconn.PgConn) error {
	if check := s.parsed.ConnConfig.ValidateConnect; check != nil {
		return check(ctx, conn)
	}
	return nil
}

// errAwaitsStandby is returned if commits take too long because of the standby.
var errAwaitsStandby = errors.New("commits wait for the synchronous standby, which does not answer")

// explain adds errAwaitsStandby to a timeout error if commits wait for the synchronous standby.
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

// explainWithin bounds the query of explain. It is short, because the caller already has an error to return.
const explainWithin = 250 * time.Millisecond
