package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sessions makes connections with common settings.
type sessions struct {
	parsed   *pgxpool.Config
	settings map[string]string
	writers  *atomic.Pointer[string] // the address of the server to which the pool writers connected last
	cell     *cell                   // nil unless the URL has cell=on
}

func newSessions(url string, o Options) (sessions, error) {
	parsed, err := pgxpool.ParseConfig(url)
	if err != nil {
		return sessions{}, fmt.Errorf("database url: %w; it should look like postgres://user:password@host:5432/database",
			err) // pgx leaves out the password
	}
	cfg := parsed.ConnConfig
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return sessions{}, errors.New("database url: default_query_exec_mode=simple_protocol is not supported: " +
			"it writes values into the text of a statement; leave the setting out")
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = o.Name
	}
	several := slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port })
	if several && cfg.ValidateConnect == nil && !strings.Contains(url, "target_session_attrs") {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // among a primary and its standbys, choose the primary
	}
	dial, dead := time.Duration(0), o.DeadAfter
	if several {
		dead = min(dead, leaveAfter)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
		if several { // a new connection may wait this long for each host that hangs or does not exist
			cfg.ConnectTimeout, dial = 2*time.Second, time.Second
		}
	}
	settings := map[string]string{
		"search_path": Schema,
		"jit":         "off", // statements are short: compiling them would take longer than running them

		"client_min_messages": "warning", // if a COMMIT did not wait for the standby, the server sends a warning (standby.go)
	}
	keepAlive(settings, o.DeadAfter)
	cfg.DialFunc = newDialer(dial, dead).DialContext
	s := sessions{parsed: parsed, settings: settings, writers: new(atomic.Pointer[string])}
	err = s.lookForCell()
	return s, err
}

const connectTimeout = 5 * time.Second

// pool makes a pool whose connections have additional settings.
func (s sessions) pool(ctx context.Context, size int, settings map[string]string, use ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	cfg := s.parsed.Copy()
	cfg.ConnConfig = s.connConfig(settings)
	hearWarnings(cfg)
	for _, change := range use {
		change(cfg)
	}
	cfg.MaxConns = int32(size) //nolint:gosec // a number of connections
	return pgxpool.NewWithConfig(ctx, cfg)
}

// connConfig returns the configuration of a connection with additional settings. The settings are not in the startup
// message, because a pooler would pass on only a few of them and refuse the others. SessionSet sets them after connecting.
func (s sessions) connConfig(more map[string]string) *pgx.ConnConfig {
	settings := maps.Clone(s.settings)
	maps.Copy(settings, more)
	var names, values []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		names, values = append(names, name), append(values, settings[name])
	}
	cfg := s.parsed.ConnConfig.Copy()
	cfg.ValidateConnect = s.followWriters
	cfg.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		names, errNames := textArray(names)
		values, errValues := textArray(values)
		if err := errors.Join(errNames, errValues); err != nil {
			return err
		}
		if s.cell != nil { // runs before SessionSet, whose statement_timeout would end a slow CellArrive in every session
			if err := conn.ExecParams(ctx, CellArrive, nil, nil, nil, nil).Read().Err; err != nil {
				return explainMissingCell(err)
			}
		}
		return conn.ExecParams(ctx, SessionSet, [][]byte{names, values}, nil, nil, nil).Read().Err
	}
	return cfg
}

func textArray(texts []string) ([]byte, error) {
	return pgtype.NewMap().Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, texts, nil)
}

// sessionProbes is the number of sessions that CheckSessions opens in addition to its first one.
const sessionProbes = 4

// ErrSharedSessions is returned if the connection leads to a pooler that does not give each connection its own
// session.
var ErrSharedSessions = errors.New("the database is behind a pooler that gives each transaction another session " +
	"(PgBouncer's pool_mode transaction or statement), but footfall needs settings, locks, prepared statements and LISTEN, " +
	"which last for a session: " +
	"let the pooler give each connection its own session (pool_mode = session), or connect directly to PostgreSQL")

// CheckSessions returns an error unless each connection has its own server session.
func (d *DB) CheckSessions(ctx context.Context) error {
	cfg := d.sessions.connConfig(nil)
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // without prepared statements, which need a session
	var conns []*pgx.Conn
	defer func() {
		for _, conn := range conns {
			conn.Close(context.WithoutCancel(ctx))
		}
	}()
	own, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("check the sessions: %w", err)
	}
	conns = append(conns, own)
	first, err := New(own).SessionProcess(ctx)
	if err != nil || first == int64(own.PgConn().PID()) { // the connection is direct: a pooler would report another process id
		return err
	}
	// The connection own has no open transaction. So a pooler that shares sessions gives the session of own to the next
	// connection that needs one.
	for range sessionProbes {
		other, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return fmt.Errorf("check the sessions: %w", err)
		}
		conns = append(conns, other)
		tx, err := other.Begin(ctx) // an open transaction keeps the session
		if err != nil {
			return ErrSharedSessions
		}
		theirs, err := New(tx).SessionProcess(ctx)
		if err != nil {
			return fmt.Errorf("check the sessions: %w", err)
		}
		now, err := New(own).SessionProcess(ctx)
		if err != nil {
			return fmt.Errorf("check the sessions: %w", err)
		}
		if theirs == first || now != first {
			return ErrSharedSessions
		}
	}
	return nil
}

const defaultDeadAfter = 10 * time.Second

// aliveProbes is the number of unanswered keepalives after which a system without TCP_USER_TIMEOUT closes a
// connection.
const aliveProbes = 3

// leaveAfter is how long a server may be silent before the client tries another server of the URL. It is long enough
// for a few packets to be lost and sent again, for example while a network switch restarts. It is short compared to a
// failover.
const leaveAfter = 3 * time.Second

// keepAlives returns the settings for TCP keepalives that detect when the other end of a connection has been silent
// for the time dead. Both results are at least a second, because TCP measures them in seconds.
func keepAlives(dead time.Duration) (idle, interval time.Duration) {
	idle = max(dead/2, time.Second)
	return idle, max((dead-idle)/aliveProbes, time.Second)
}

// keepAlive adds settings that make the server close a connection if the client has been silent for the time dead.
// Otherwise the session of a vanished client could hold locks. Keepalives are not enough: TCP sends none while data
// waits to be acknowledged, and resends this data for a quarter of an hour. tcp_user_timeout bounds that time. The
// settings do not affect a Unix socket, which cannot lose its other end.
func keepAlive(settings map[string]string, dead time.Duration) {
	idle, interval := keepAlives(dead)
	settings["tcp_keepalives_idle"] = fmt.Sprint(int(idle.Seconds()))
	settings["tcp_keepalives_interval"] = fmt.Sprint(int(interval.Seconds()))
	settings["tcp_keepalives_count"] = fmt.Sprint(aliveProbes)
	settings["tcp_user_timeout"] = milliseconds(dead)
}

// dialer makes connections that the client closes when the server is silent for too long.
type dialer struct {
	net.Dialer
	now    func() time.Time
	silent sync.Map // the time when each host last failed to respond, by address
}

func newDialer(within, dead time.Duration) *dialer {
	idle, interval := keepAlives(dead)
	return &dialer{now: time.Now, Dialer: net.Dialer{
		Timeout:         within,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: aliveProbes},
		Control:         userTimeout(dead),
	}}
}

// skipSilentFor is how long a host that did not respond is skipped. Otherwise each new connection would wait for this
// host again, once with TLS and once without.
const skipSilentFor = 2 * time.Second

// DialContext connects to address, unless that host has just failed to respond.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if at, was := d.silent.Load(address); was && d.now().Sub(at.(time.Time)) < skipSilentFor {
		return nil, fmt.Errorf("dial %s: it did not answer a moment ago: %w", address, context.DeadlineExceeded)
	}
	conn, err := d.Dialer.DialContext(ctx, network, address)
	if d.Timeout > 0 && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		d.silent.Store(address, d.now())
	}
	return conn, err
}
