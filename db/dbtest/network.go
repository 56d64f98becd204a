package dbtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Network passes data between clients and a server, and can simulate failures: it hangs, it leads to another server,
// or (on Linux) it vanishes, as if a cable had been pulled.
type Network struct {
	t        testing.TB
	listener net.Listener

	mu      sync.Mutex        // guards the following fields
	server  [2]string         // network and address
	conns   map[net.Conn]bool // open connections, and whether they have vanished
	flows   chan struct{}     // closed, unless the network hangs
	wasCut  bool              // set by Cut: requests to cancel a query are lost
	onLocks func()            // if not nil: called once, when a client has sent the statement that takes a batch's locks
}

// NewNetwork returns a network that leads to the server of a database, and the URL of the database through this
// network. Clients connect to it by TCP. It connects to the server by TCP only if the database's own URL does.
func NewNetwork(t testing.TB, to string) (n *Network, through string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(to)
	require.NoError(t, err)
	n = &Network{t: t, conns: map[net.Conn]bool{}, flows: make(chan struct{})}
	close(n.flows)
	n.LeadTo(to)
	n.listener, err = (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := n.listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { n.connect(client) })
		}
	})
	t.Cleanup(func() {
		_ = n.listener.Close()
		n.Thaw()
		n.Cut()
		all.Wait()
	})
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: n.listener.Addr().String(), Path: "/" +
		cfg.Database}
	u.RawQuery = url.Values{"sslmode": {"disable"}, "application_name": {"far"}}.Encode()
	return n, u.String()
}

// LeadTo makes the network lead to another server from now on. Open connections are not affected.
func (n *Network) LeadTo(to string) {
	n.t.Helper()
	cfg, err := pgx.ParseConfig(to)
	require.NoError(n.t, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server[0], n.server[1] = pgconn.NetworkAddress(cfg.Host, cfg.Port)
}

// Cut closes every open connection at both ends. If a driver then requests to cancel the query of such a connection,
// this request is lost as well.
func (n *Network) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for conn := range n.conns {
		_ = conn.Close()
	}
	clear(n.conns)
	n.wasCut = true
}

// Freeze delays all data until Thaw, like a server that hangs: connections stay open, new connections can be made, and
// data is acknowledged, but there are no responses.
func (n *Network) Freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flows = make(chan struct{})
}

// Thaw ends Freeze, and passes on the delayed data.
func (n *Network) Thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.flows:
	default:
		close(n.flows)
	}
}

func (n *Network) isCut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wasCut
}

func (n *Network) await() {
	n.mu.Lock()
	flows := n.flows
	n.mu.Unlock()
	<-flows
}

// pass writes data to one end of a connection, unless the connection has vanished.
func (n *Network) pass(to net.Conn, some []byte) error {
	n.await()
	n.mu.Lock()
	vanished := n.conns[to]
	n.mu.Unlock()
	if vanished {
		return nil
	}
	_, err := to.Write(some)
	return err
}

func (n *Network) connect(client net.Conn) {
	n.await()
	n.mu.Lock()
	to := n.server
	n.mu.Unlock()
	server, err := (&net.Dialer{KeepAlive: -1}).Dial(to[0], to[1])
	if err != nil {
		_ = client.Close()
		return
	}
	n.mu.Lock()
	n.conns[client], n.conns[server] = false, false
	n.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { n.toClient(client, server); _ = client.Close() })
	both.Go(func() { n.toServer(server, client); _ = server.Close() })
	both.Wait()
}

func (n *Network) toClient(client, server net.Conn) {
	some := make([]byte, 64<<10)
	for {
		size, err := server.Read(some)
		if wrong := n.pass(client, some[:size]); err != nil || wrong != nil {
			return
		}
	}
}

// toServer passes on the client's messages of PostgreSQL's protocol, and calls runOnLocks when a batch has sent the
// statement that takes its locks.
func (n *Network) toServer(server, client net.Conn) {
	from := bufio.NewReader(client)
	statements := 0                 // number of statements since the last message that requires a response
	for header := 4; ; header = 5 { // the first message has no type
		message := make([]byte, header)
		if _, err := io.ReadFull(from, message); err != nil {
			n.await()
			return
		}
		length := int64(binary.BigEndian.Uint32(message[header-4:])) - 4
		rest, err := io.ReadAll(io.LimitReader(from, length))
		if header == 4 && len(rest) >= 4 && binary.BigEndian.Uint32(rest) == cancelRequest && n.isCut() {
			return
		}
		if wrong := n.pass(server, append(message, rest...)); err != nil || wrong != nil {
			return
		}
		switch {
		case header == 5 && message[0] == 'S':
			statements = 0
		case header == 5 && message[0] == 'E':
			if statements++; statements == statementsToLocks {
				n.runOnLocks()
			}
		}
	}
}

// cancelRequest is the code that a client sends on a new connection to cancel the query of another connection.
const cancelRequest = 80877102

// statementsToLocks is the number of statements from the start of a batch to CountersLock, which takes the locks of
// the batch.
const statementsToLocks = 3

func (n *Network) runOnLocks() {
	n.mu.Lock()
	do := n.onLocks
	n.onLocks = nil
	n.mu.Unlock()
	if do != nil {
		do()
	}
}
