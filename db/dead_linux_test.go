package db_test

import (
	"context"
	"io"
	"net"
	neturl "net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"footfall/db"
)

// blackHole is a network between a client and the server that can vanish: from then on no packet
// comes through, neither data nor acknowledgements nor the end of a connection. What connects
// afterwards is not affected.
type blackHole struct {
	net.Listener
	server string

	mu    sync.Mutex
	conns []*net.TCPConn
}

// newBlackHole returns a network to the server of url, which is one on TCP, and the URL that leads
// through it.
func newBlackHole(t *testing.T, url string) (*blackHole, string) {
	t.Helper()
	u, err := neturl.Parse(url)
	require.NoError(t, err)
	silent := net.ListenConfig{KeepAlive: -1}
	h := &blackHole{server: u.Host}
	h.Listener, err = silent.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := h.Accept()
			if err != nil {
				return
			}
			all.Go(func() { h.serve(client.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		_ = h.Close()
		h.each(func(conn *net.TCPConn) { _ = conn.Close() })
		all.Wait()
	})
	u.Host = h.Addr().String()
	return h, u.String()
}

func (h *blackHole) serve(client *net.TCPConn) {
	silent := net.Dialer{KeepAlive: -1}
	conn, err := silent.Dial("tcp", h.server)
	if err != nil {
		_ = client.Close()
		return
	}
	server := conn.(*net.TCPConn)
	h.mu.Lock()
	h.conns = append(h.conns, client, server)
	h.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
	both.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
	both.Wait()
}

func (h *blackHole) each(f func(*net.TCPConn)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, conn := range h.conns {
		f(conn)
	}
}

// vanish makes the kernel drop each packet that arrives here, before TCP sees it.
func (h *blackHole) vanish(t *testing.T) {
	t.Helper()
	dropAll := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	h.each(func(conn *net.TCPConn) {
		raw, err := conn.SyscallConn()
		if err != nil {
			return // it has been closed
		}
		_ = raw.Control(func(socket uintptr) {
			err = unix.SetsockoptSockFprog(int(socket), syscall.SOL_SOCKET, unix.SO_ATTACH_FILTER,
				&unix.SockFprog{Len: 1, Filter: &dropAll[0]})
		})
		assert.NoError(t, err)
	})
}

// deadSoon is patience with a silent network, as short as TCP can count.
var deadSoon = db.Options{DeadAfter: 2 * time.Second}

// found is the patience with both ends, which must find out by themselves. Without a limit of ours
// it takes a quarter of an hour where something was sent, and two hours where nothing was.
const found = 20 * time.Second

// farServer is a server with the schema that is reached over TCP, and the way to it that can vanish.
func farServer(t *testing.T) (near string, h *blackHole, far string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	near, admin := ownServer(t, address)
	exec(t, admin, `ALTER ROLE footfall PASSWORD 'secret'`)
	_, err = open(t, near, db.Options{}).MigrateUp(t.Context())
	require.NoError(t, err)
	h, far = newBlackHole(t, "postgres://footfall:secret@"+address+"/footfall?sslmode=disable&application_name=far")
	return near, h, far
}

// sessions are what the server takes for clients behind the network that can vanish.
const sessions = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'far'`

// A client that has vanished holds no lock for long, whichever connection it was: the server finds
// out, whether it has something to send or not.
func TestServerFindsOutThatAClientHasVanished(t *testing.T) {
	t.Parallel()
	near, hole, far := farServer(t)
	d, conn := open(t, near, db.Options{}), connect(t, near)
	o := deadSoon
	o.Readers, o.Writers = 1, 1
	client := open(t, far, o)
	require.NoError(t, client.Ping(t.Context()))
	_, err := client.Basis(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Report(t.Context(), func(q *db.Queries) error { _, err := q.AppsList(t.Context()); return err }))

	ctx, end := context.WithCancel(t.Context())
	began := make(chan struct{}, 2)
	ended := async(t, func() error {
		return client.InSnapshot(ctx, 1, "1MB", func(ctx context.Context, _ []*db.Queries) error {
			began <- struct{}{}
			<-ctx.Done()
			return nil
		})
	})
	watched := async(t, func() error {
		return client.WatchApps(ctx, func(*db.Access) {
			select {
			case began <- struct{}{}:
			default:
			}
		})
	})
	defer func() { end(); <-ended; <-watched }()
	<-began
	<-began
	require.NoError(t, db.New(conn).MigrateLock(t.Context()))
	migrated := async(t, func() error { _, err := client.MigrateUp(ctx); return err })
	defer func() { end(); <-migrated }()
	awaitBlocked(t, conn, 1)
	require.Equal(t, int64(6), query[int64](t, conn, sessions), "pools, snapshot, watcher, and a migration that waits for its turn")

	hole.vanish(t)
	addApp(t, d, "shop") // which the server tells the watcher: it waits for an acknowledgement
	exec(t, conn, `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, d.WaitForInstances(t.Context(), found))
	assert.Eventually(t, func() bool { return query[int64](t, conn, sessions) == 0 }, found, 10*time.Millisecond, "sessions of the vanished client")
}

// A server that has vanished keeps nobody waiting for long, and the next try finds another way.
func TestClientFindsOutThatTheServerHasVanished(t *testing.T) {
	t.Parallel()
	_, hole, far := farServer(t)
	d := open(t, far, deadSoon)
	ping := func() error { return d.Ping(t.Context()) }
	basis := func() error { _, err := d.Basis(t.Context()); return err }
	report := func() error {
		return d.Report(t.Context(), func(q *db.Queries) error { _, err := q.AppsList(t.Context()); return err })
	}
	status := func() error { _, err := d.MigrateStatus(t.Context()); return err }
	snapshot := func() error {
		return d.InSnapshot(t.Context(), 1, "1MB", func(ctx context.Context, q []*db.Queries) error {
			hole.vanish(t)
			_, err := q[0].AppsList(ctx)
			return err
		})
	}
	for _, use := range []func() error{ping, basis, report, status} {
		require.NoError(t, use())
	}
	hole.vanish(t)
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
