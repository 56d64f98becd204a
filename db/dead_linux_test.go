package db_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"footfall/db"
	"footfall/db/dbtest"
)

// deadSoon has the shortest limit that TCP supports for detecting a silent network.
var deadSoon = db.Options{DeadAfter: 2 * time.Second}

// found is the time limit for both ends to notice, on a very slow machine. Without Footfall's own limits, noticing
// would take a quarter of an hour after data was sent, and otherwise two hours.
const found = 2 * time.Minute

// far is a server that is reached over TCP.
type far struct{ near, url string }

// database makes a database with the schema, and returns two URLs: near leads straight to the server, and through
// leads through a network that can vanish.
func (f far) database(t *testing.T, name string) (near string, h *dbtest.Network, through string) {
	t.Helper()
	exec(t, dbtest.Connect(t, f.near), `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'UTF8'`)
	near = inDatabase(t, f.near, name)
	_, err := dbtest.Open(t, near, db.Options{}).MigrateUp(t.Context())
	require.NoError(t, err)
	h, through = dbtest.NewNetwork(t, inDatabase(t, f.url, name))
	return near, h, through
}

// If the network vanishes, both ends notice by themselves.
func TestNetworkVanishes(t *testing.T) {
	t.Parallel()
	server, url := dbtest.OwnFar(t, dbtest.OwnDir(t))
	f := far{server.URL(), url}
	t.Run("client", f.testClientVanishes)
	t.Run("server", f.testServerVanishes)
	t.Run("patience", f.testPatience)
}

// sessions counts the server's sessions for clients behind the network.
const sessions = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'far' AND datname = current_database()`

// A vanished client does not hold locks for long, on any connection: the server notices, whether or not it has
// something to send.
func (f far) testClientVanishes(t *testing.T) {
	t.Parallel()
	near, hole, far := f.database(t, "client")
	d, conn := dbtest.Open(t, near, db.Options{}), dbtest.Connect(t, near)
	o := deadSoon
	o.Readers, o.Writers = 1, 1
	client := dbtest.Open(t, far, o)
	require.NoError(t, client.Ping(t.Context()))
	_, err := client.Basis(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Report(t.Context(), func(tx db.Tx) error { _, err := db.New(tx).AppsList(t.Context()); return err }))

	ctx, end := context.WithCancel(t.Context())
	began, vanished := make(chan struct{}, 2), make(chan struct{})
	snapshots, err := client.OpenSnapshots(ctx, "1MB")
	require.NoError(t, err)
	defer snapshots.Close()
	ended := async(t, func() error {
		return snapshots.Take(t.Context(), func(db.Tx) error {
			began <- struct{}{}
			<-ctx.Done()
			return nil
		})
	})
	watched := async(t, func() (err error) {
		for range 1000 { // on a slow machine the connection may be given up earlier
			err = client.WatchApps(ctx, "", func(access *db.Access) {
				if access != nil {
					select {
					case began <- struct{}{}:
					default:
					}
				}
			})
			select {
			case <-vanished:
				return err
			default:
			}
		}
		return err
	})
	defer func() { end(); <-ended; <-watched }()
	<-began
	<-began
	require.NoError(t, db.New(conn).MigrateLock(t.Context()))
	migrated := async(t, func() error { _, err := client.MigrateUp(ctx); return err })
	defer func() { end(); <-migrated }()
	dbtest.AwaitWaiting(t, conn, 1)
	eventually(t, func() bool { return query[int64](t, conn, sessions) == 6 },
		"pools, snapshot, watcher, and a migration that waits for its turn")

	close(vanished)
	hole.Vanish()
	addApp(t, d, "shop") // the server notifies the watcher, and waits for an acknowledgement
	exec(t, conn, `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, d.WaitForInstances(t.Context(), found))
	eventually(t, func() bool { return query[int64](t, conn, sessions) == 0 }, "the end of the vanished client's sessions")
}

// Other tests have other limits than the service. This test has the service's limits: connections pass them to the
// server, and turn off JIT even if the server uses it for others. (The server shows the limits only on TCP.)
func (f far) testPatience(t *testing.T) {
	d, err := db.Open(t.Context(), f.url+"?sslmode=disable&options=-c%20jit%3Don", db.Options{})
	require.NoError(t, err)
	defer d.Close()
	for name, pool := range d.Pools() {
		var got []string
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT ARRAY[current_setting('statement_timeout'),
			current_setting('tcp_user_timeout'), current_setting('tcp_keepalives_idle'), current_setting('jit')]`).Scan(&got))
		assert.Equal(t, []string{"5s", "10000", "5", "off"}, got, name)
	}
	assert.Equal(t, 10_000, givenUp(t, f.url+"?sslmode=disable"))
	several, err := url.Parse(f.url)
	require.NoError(t, err)
	several.Host += "," + several.Hostname() + ":1"
	assert.Equal(t, 3000, givenUp(t, several.String()+"?sslmode=disable"), "there is another to go to")
}

// givenUp returns the milliseconds after which this end gives up a server that acknowledges nothing.
func givenUp(t *testing.T, url string) (after int) {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.Options{})
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.Writers().AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		raw, err := conn.Conn().PgConn().Conn().(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		return raw.Control(func(socket uintptr) {
			after, err = unix.GetsockoptInt(int(socket), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
			assert.NoError(t, err)
		})
	}))
	return after
}

// If one of several hosts does not respond in time, it is skipped for a moment, and then tried again.
func TestSilentHostIsPassedBy(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	now := time.Unix(1e9, 0)
	d := db.NewDialer(time.Nanosecond, func() time.Time { return now }) // too short for any response
	dial := func() string {
		conn, err := d.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			err = conn.Close()
		}
		return fmt.Sprint(err)
	}
	const passedBy = "it did not answer a moment ago"
	assert.NotContains(t, dial(), passedBy)
	assert.Contains(t, dial(), passedBy)
	d.Timeout = time.Minute
	assert.Contains(t, dial(), passedBy)
	now = now.Add(2 * time.Second)
	assert.Equal(t, "<nil>", dial())
}

// A vanished server does not delay callers for long, and the next attempt uses another host.
func (f far) testServerVanishes(t *testing.T) {
	t.Parallel()
	_, hole, far := f.database(t, "server")
	d := dbtest.Open(t, far, deadSoon)
	ping := func() error { return d.Ping(t.Context()) }
	basis := func() error { _, err := d.Basis(t.Context()); return err }
	report := func() error {
		return d.Report(t.Context(), func(tx db.Tx) error { _, err := db.New(tx).AppsList(t.Context()); return err })
	}
	status := func() error { _, err := d.MigrateStatus(t.Context()); return err }
	snapshots, err := d.OpenSnapshots(t.Context(), "1MB")
	require.NoError(t, err)
	defer snapshots.Close()
	snapshot := func() error {
		return snapshots.Take(t.Context(), func(tx db.Tx) error {
			_, err := db.New(tx).AppsList(t.Context())
			return err
		})
	}
	for _, use := range []func() error{ping, basis, report, status} {
		require.NoError(t, use())
	}
	hole.Vanish()
	outcome := map[string]<-chan error{}
	for name, use := range map[string]func() error{"reader": ping, "writer": basis, "report": report, "snapshot": snapshot} {
		outcome[name] = async(t, use)
	}
	deadline := time.After(found)
	for name, done := range outcome {
		select {
		case err := <-done:
			if name == "snapshot" {
				require.Equal(t, db.FaultUnknown, db.FaultOf(err), "snapshot: %v", err)
			}
		case <-deadline:
			require.Fail(t, "still waits: "+name)
		}
	}
	for _, use := range []func() error{ping, basis, report, status} {
		require.NoError(t, use(), "over new connections")
	}
}
