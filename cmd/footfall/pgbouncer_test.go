package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// bouncer starts PgBouncer in front of a database, and returns its URL.
func bouncer(t *testing.T, behind, mode string) string {
	t.Helper()
	binary := ""
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} { // Debian's path, which is not in every PATH
		if found, err := exec.LookPath(name); err == nil {
			binary = found
		}
	}
	if binary == "" {
		t.Skip("no pgbouncer found: scripts/install-deps pgbouncer")
	}
	server, err := url.Parse(behind)
	require.NoError(t, err)
	host, port := server.Hostname(), server.Port()
	if socket := server.Query().Get("host"); socket != "" {
		host, port = socket, server.Query().Get("port")
	}
	login := "user=" + server.User.Username()
	if password, has := server.User.Password(); has {
		login += " password='" + password + "'"
	}
	name := strings.TrimPrefix(server.Path, "/")
	address := dbtest.FreeAddress(t)
	_, listenPort, err := net.SplitHostPort(address)
	require.NoError(t, err)
	folder := newData(t)
	config := filepath.Join(folder, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "[databases]\n%s = host=%s port=%s %s\n"+
		"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 40\n",
		name, host, port, login, listenPort, mode), 0o644)) //nolint:gosec // another user reads it
	cmd := exec.Command(binary, config)
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		cmd.Args = append(cmd.Args, "-u", "postgres")
	}
	var said bytes.Buffer // valid after PgBouncer has exited
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	eventually(t, "pgbouncer listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return fmt.Sprintf("postgres://%s@%s/%s", server.User.Username(), address, name)
}

// If PgBouncer keeps one session per connection, everything works as without PgBouncer.
func TestPgBouncerInSessionMode(t *testing.T) {
	t.Parallel()
	address := bouncer(t, dbtest.New(t), "session")
	s := serve(t, "--database-url", address)
	for _, app := range []string{"shop", "blog"} { // the service knows an app as soon as the command has returned
		well(t, "app", "add", app, "--visitor=address", "--access=open", "--database-url", address)
		status, body := get(s.url + "/visit?app=" + app + "&ip=192.0.2.1&uri=http://example.com/")
		assert.Equal(t, http.StatusOK, status, body)
	}
	well(t, "verify", "--database-url", address)
	eventually(t, "retention runs beside the service's own", func() bool { return footfall(t, "retain", "--database-url", address).code == 0 })
	assert.Contains(t, well(t, "report", "top", "--app=shop", "--database-url", address), "example.com/")
	well(t, "status", "--database-url", address)
	assert.NotContains(t, s.said(), `"level":"ERROR"`)
	assert.Zero(t, s.stop())
}

// In other modes of PgBouncer, the service exits immediately with an error, before it changes anything.
func TestPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			address := bouncer(t, dbtest.Empty(t), mode)
			for _, args := range [][]string{{"serve", "--addr=127.0.0.1:0", "--admin-addr=off"},
				{"app", "add", "shop", "--visitor=address", "--access=open"}, {"migrate", "up"}} {
				r := footfall(t, append(args, "--database-url", address)...)
				assert.Equal(t, exitFailed, r.code)
				assert.Contains(t, r.stderr, "pooler")
				assert.Contains(t, r.stderr, "pool_mode = session")
			}
		})
	}
}
