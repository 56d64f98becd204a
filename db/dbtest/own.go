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

// Own starts a server for one test, for what nobody else on the server could bear, or what the
// server of all lacks. It serves from a folder as OwnDir makes one, on an address of this machine,
// too, unless that is empty, and stops with the test. The test is skipped where there is no
// PostgreSQL to start one of.
func Own(t testing.TB, dir, listen string) *embedded.Server {
	t.Helper()
	bin := os.Getenv("FOOTFALL_TEST_POSTGRES_BIN")
	if _, err := embedded.Find(bin); err != nil {
		t.Skip("there is no PostgreSQL here to start a server of: ", err)
	}
	server, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, BinDir: bin, Wait: patience, Settings: map[string]string{
		"listen_addresses": listen, "fsync": "off", "full_page_writes": "off", "max_connections": "200",
	}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop(context.Background())) })
	return server
}

// OwnDir is a folder that PostgreSQL's user can enter. It is removed when the test ends.
func OwnDir(t testing.TB) string {
	t.Helper()
	dir, err := tempdir.Make()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// FreeAddress is one of this machine on which nobody listens, for a server that takes no listener.
// Connections and other listeners are not given ports like this one.
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

// ownHost is an address of this machine that nobody else has.
func ownHost() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)) //nolint:gosec // any
}

// OwnFar is Own on an address of this machine that nobody else has, and the URL that leads there.
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
