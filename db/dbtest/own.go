package dbtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/embedded"
	"footfall/db/embedded/tempdir"
)

// Own starts a server for one test, for faults that would break other tests, or for settings that the shared server
// lacks. dir must be a folder from OwnDir. If listen is not empty, the server also listens on this address. The server
// stops when the test ends. The test is skipped if PostgreSQL is not installed.
func Own(t testing.TB, dir, listen string) *embedded.Server {
	t.Helper()
	bin := os.Getenv("FOOTFALL_TEST_POSTGRES_BIN")
	if _, err := embedded.Find(bin); err != nil {
		t.Skip("no PostgreSQL found to start a server: ", err)
	}
	server, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, BinDir: bin, Wait: patience, Settings: map[string]string{
		"listen_addresses": listen, "fsync": "off", "full_page_writes": "off", "max_connections": "200",
	}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop(context.Background())) })
	return server
}

// OwnDir returns a folder that PostgreSQL's user can enter. It is removed when the test ends.
func OwnDir(t testing.TB) string {
	t.Helper()
	dir, err := tempdir.Make()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// FreeAddress returns an unused address of this machine, for a server that opens its listener itself. The port is
// outside the range from which the system chooses ports for other connections and listeners.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))) //nolint:gosec // any
		if err == nil {
			require.NoError(t, listener.Close())
			return listener.Addr().String()
		}
	}
	t.Fatal("dbtest: no port is free")
	return ""
}

// ownHost returns a random address of this machine that most likely no other server uses.
func ownHost() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)) //nolint:gosec // any
}

// OwnFar is like Own. In addition, the server listens on an address from ownHost, and far is the URL with this address.
func OwnFar(t testing.TB, dir string) (server *embedded.Server, far string) {
	t.Helper()
	address := ownHost()
	server = Own(t, dir, address)
	conn, err := pgx.Connect(context.Background(), server.URL())
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), `ALTER ROLE footfall PASSWORD 'secret'`)
	require.NoError(t, err)
	return server, "postgres://footfall:secret@" + net.JoinHostPort(address, strconv.Itoa(embedded.Port)) + "/footfall"
}
