package dbtest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Redis starts a Redis for the length of the test, and returns its URL. It skips the test where
// there is none to start.
func Redis(t testing.TB) (url string) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("there is no redis-server: scripts/install-deps redis")
	}
	for {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, port, _ := net.SplitHostPort(free.Addr().String())
		require.NoError(t, free.Close())
		password := "secret-of-" + port // tells it from one of others that has taken the port meanwhile
		ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
		server := exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--requirepass", password)
		require.NoError(t, server.Start())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = server.Wait() }() // killed at the end
		if listens(free.Addr().String(), password, ended) {
			t.Cleanup(func() { end(); <-ended })
			return fmt.Sprintf("redis://default:%s@127.0.0.1:%s/3", password, port)
		}
		end()
	}
}

// listens waits until a Redis takes its password, or has ended.
func listens(address, password string, ended <-chan struct{}) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return false
		case <-tick.C:
			if takes(address, password) {
				return true
			}
		}
	}
}

func takes(address, password string) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	said := make([]byte, len("+OK"))
	_, err = fmt.Fprintf(conn, "AUTH %s\r\n", password)
	if err == nil {
		_, err = conn.Read(said)
	}
	return err == nil && string(said) == "+OK"
}
