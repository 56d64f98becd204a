package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"footfall/db/embedded/tempdir"
)

// helperDir makes the test binary act as a small Footfall: it serves from this directory until its input is closed.
const helperDir = "FOOTFALL_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		helperMain(dir)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(usedOnce.dir)
		os.Exit(code)
	}))
}

// usedOnce is a data directory with a complete, stopped cluster, which is copied, because creating one takes most of
// a test's time.
var usedOnce struct {
	sync.Once
	dir string
}

// usedDir returns a data directory with a cluster, for tests that are not about creating it.
func usedDir(t *testing.T) string {
	t.Helper()
	usedOnce.Do(func() {
		var err error
		usedOnce.dir, err = tempdir.Make()
		require.NoError(t, err)
		require.NoError(t, start(t, testConfig(usedOnce.dir)).Stop(t.Context()))
	})
	dir := openDir(t)
	require.NoError(t, exec.Command("cp", "-a", usedOnce.dir+"/.", dir).Run())
	return dir
}

// keep stores a value, and the returned function checks that it is still there.
func keep(t *testing.T, url string) (check func(url string)) {
	t.Helper()
	execute(t, url, "DROP TABLE IF EXISTS kept")
	execute(t, url, "CREATE TABLE kept AS SELECT gen_random_uuid()::text AS secret")
	secret := query[string](t, url, "SELECT secret FROM kept")
	return func(url string) {
		t.Helper()
		assert.Equal(t, secret, query[string](t, url, "SELECT secret FROM kept"))
	}
}

func helperMain(dir string) {
	server, err := Start(context.Background(), testConfig(dir))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := server.Stop(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// startHelper starts a helper process, as the given user if there is one, and returns it with its
// input and its output.
func startHelper(t *testing.T, dir string, as *account) (cmd *exec.Cmd, stdin io.Closer, output *bufio.Reader) {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	if as != nil { // this user cannot enter the folder of the test's binary
		ours := binary
		binary = filepath.Join(openDir(t), "helper")
		// This process does not write the copy itself: a child forked by another test at this moment would inherit
		// the file, open for writing, and such a file cannot be executed.
		require.NoError(t, exec.Command("install", "-m", "755", ours, binary).Run())
	}
	cmd = exec.Command("sh", "-c", `umask 077; exec "$0"`, binary) // a umask that careful administrators set
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, in, bufio.NewReader(out)
}

// readURL reads the first line of a helper that has started.
func readURL(t *testing.T, output *bufio.Reader) string {
	t.Helper()
	line, err := output.ReadString('\n')
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(line, "postgres://"), line)
	return strings.TrimSpace(line)
}

func testConfig(dir string) Config {
	return Config{
		Dir:      dir,
		BinDir:   os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"),
		Settings: map[string]string{"fsync": "off", "shared_buffers": "16MB"},
		Wait:     time.Minute,
	}
}

// openDir returns a temporary folder that other users may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := tempdir.Make()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	server, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	return server
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

func query[T any](t *testing.T, url, sql string) (value T) {
	t.Helper()
	conn := connect(t, url)
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&value))
	require.NoError(t, conn.Close(t.Context()))
	return value
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
}

// eventually waits for a condition on another process, for which there is no channel.
func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, 4*time.Minute, 20*time.Millisecond, what)
}

// logTo passes the messages of a log to a function.
func logTo(f func(string)) *slog.Logger { return slog.New(messages(f)) }

type messages func(string)

func (messages) Enabled(context.Context, slog.Level) bool { return true }

func (f messages) Handle(_ context.Context, record slog.Record) error { f(record.Message); return nil }

func (f messages) WithAttrs([]slog.Attr) slog.Handler { return f }

func (f messages) WithGroup(string) slog.Handler { return f }
