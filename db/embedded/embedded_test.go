package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRestartKeepsDataAndItsOperatorsSettings(t *testing.T) {
	t.Parallel()
	cfg := testConfig(filepath.Join(openDir(t), "made", "by Footfall, too"))
	first := start(t, cfg)
	check := keep(t, first.URL())
	execute(t, first.URL(), "ALTER SYSTEM SET max_connections = 41")
	assert.Equal(t, "UTF8", query[string](t, first.URL(), "SHOW server_encoding"))
	assert.Equal(t, "C", query[string](t, first.URL(), "SELECT datcollate FROM pg_database WHERE datname = 'footfall'"))
	assert.Equal(t, "on", query[string](t, first.URL(), "SHOW data_checksums"))
	assert.Equal(t, "on", query[string](t, first.URL(), "SHOW synchronous_commit"))
	assert.Equal(t, "4GB", query[string](t, first.URL(), "SHOW max_wal_size"))
	assert.Empty(t, query[string](t, first.URL(), "SHOW listen_addresses"))
	info, err := os.Stat(first.socket)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeDir|0o700, info.Mode(), "out of reach of others")
	session, err := syscall.Getpgid(first.process.Pid)
	require.NoError(t, err)
	assert.Equal(t, first.process.Pid, session, "Ctrl-C at our terminal must not reach the server")
	require.NoError(t, first.Stop(t.Context()))
	<-first.Done()

	second := start(t, cfg)
	assert.Equal(t, first.URL(), second.URL(), "pools made before the restart must work after it")
	check(second.URL())
	assert.Equal(t, "41", query[string](t, second.URL(), "SHOW max_connections"))
	assert.Equal(t, "16MB", query[string](t, second.URL(), "SHOW shared_buffers"), "Config.Settings win over the files")
}

func TestStartAfterPostgresWasKilled(t *testing.T) {
	t.Parallel()
	cfg := testConfig(usedDir(t))
	server := start(t, cfg)
	check := keep(t, server.URL())
	conn := connect(t, server.URL())
	backend := int(conn.PgConn().PID())
	require.NoError(t, syscall.Kill(backend, syscall.SIGSTOP)) // a backend that does not notice for a while
	require.NoError(t, server.process.Kill())
	<-server.Done()
	require.ErrorContains(t, server.Err(), "signal: killed")
	require.NoError(t, server.Stop(t.Context()))

	impatient := cfg
	impatient.Wait = 50 * time.Millisecond
	_, err := Start(t.Context(), impatient)
	require.ErrorContains(t, err, "processes of the earlier PostgreSQL server still run")

	waiting := make(chan struct{})
	cfg.Log = logTo(func(message string) {
		if strings.HasPrefix(message, "waiting until the PostgreSQL server") {
			close(waiting)
		}
	})
	go func() {
		<-waiting
		_ = syscall.Kill(backend, syscall.SIGCONT)
	}()
	check(start(t, cfg).URL())
}

func TestServerStopsWithItsParent(t *testing.T) {
	t.Parallel()
	cfg := testConfig(filepath.Join(openDir(t), "made", "by the helper"))
	parent, _, output := startHelper(t, cfg.Dir, nil)
	url := readURL(t, output)
	check := keep(t, url)
	_, err := Start(t.Context(), cfg)
	require.ErrorContains(t, err, "already serves")
	require.ErrorContains(t, err, fmt.Sprintf("process %d", parent.Process.Pid))

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(clusterIn(cfg.Dir), "postmaster.pid"))
		return errors.Is(err, fs.ErrNotExist)
	}, "a clean stop removes postmaster.pid")
	check(start(t, cfg).URL())
}

// waitUntilFree waits until no process of a server is left.
func waitUntilFree(t *testing.T, dir string) {
	t.Helper()
	l, err := waitLock(t.Context(), time.Minute, filepath.Join(dir, "lock", "postgres"))
	require.NoError(t, err)
	l.release()
}

func TestOneOfManyStartsServes(t *testing.T) {
	t.Parallel()
	cfg := testConfig(openDir(t))
	const starts = 4
	type result struct {
		server *Server
		err    error
	}
	results := make(chan result, starts)
	for range starts {
		go func() {
			server, err := Start(t.Context(), cfg)
			results <- result{server, err}
		}()
	}
	var running []*Server
	for range starts {
		if r := <-results; r.err == nil {
			running = append(running, r.server)
		} else {
			assert.ErrorContains(t, r.err, cfg.Dir+": footfall already serves from there")
		}
	}
	require.Len(t, running, 1)
	require.NoError(t, running[0].Stop(t.Context()))
	assert.NoError(t, start(t, cfg).Stop(t.Context()))
}

func TestStartWaitsForOneThatStops(t *testing.T) {
	t.Parallel()
	cfg := testConfig(usedDir(t))
	old := start(t, cfg)
	require.NoError(t, old.process.Signal(syscall.SIGSTOP)) // makes its stop last
	stopped := make(chan error)
	go func() { stopped <- old.Stop(context.Background()) }()
	serve := filepath.Join(cfg.Dir, "lock", "serve")
	eventually(t, func() bool {
		l, err := tryLock(serve, exclusive)
		if l != nil {
			l.release()
		}
		return err == nil && l != nil
	}, "the one that stops no longer counts as serving")
	impatient := cfg
	impatient.Wait = 50 * time.Millisecond
	_, err := Start(t.Context(), impatient)
	assert.ErrorContains(t, err, "still in use")

	require.NoError(t, old.process.Signal(syscall.SIGCONT))
	start(t, cfg)
	require.NoError(t, <-stopped)
}

func TestShortCommands(t *testing.T) {
	t.Parallel()
	cfg := testConfig(usedDir(t))
	_, ok, err := Attach(cfg.Dir)
	require.NoError(t, err)
	require.False(t, ok, "nothing runs yet")

	waiting := make(chan struct{})
	cfg.Log = logTo(func(message string) {
		if strings.HasPrefix(message, "waiting for other commands") {
			close(waiting)
		}
	})
	owned, releaseOwner, err := Use(t.Context(), cfg)
	require.NoError(t, err)
	attached, release, err := Use(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, owned, attached)
	impatient := cfg
	impatient.Wait = 50 * time.Millisecond
	_, err = Start(t.Context(), impatient)
	require.ErrorContains(t, err, fmt.Sprintf("still in use (by a short command, process %d)", os.Getpid()))

	ended := make(chan error, 1)
	go func() { ended <- releaseOwner() }()
	select {
	case <-waiting:
	case <-ended:
		t.Fatal("the server was stopped under a command that had attached to it")
	}
	assert.Equal(t, 1, query[int](t, attached, "SELECT 1"))
	// A server that begins to serve waits for both.
	serving := make(chan *Server)
	go func() {
		server, err := Start(t.Context(), cfg)
		assert.NoError(t, err)
		serving <- server
	}()
	require.NoError(t, release())
	require.NoError(t, <-ended)
	server := <-serving
	require.NotNil(t, server)
	t.Cleanup(func() { _ = server.Stop(context.Background()) })

	url, release, err := Use(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, server.URL(), url)
	require.NoError(t, release())
	select {
	case <-server.Done():
		t.Fatal("a command that attached stopped the server")
	default:
	}
	require.NoError(t, server.Stop(t.Context()))
	_, ok, err = Attach(cfg.Dir)
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestCutOffStopLosesNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(usedDir(t))
	server := start(t, cfg)
	check := keep(t, server.URL())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_ = server.Stop(over) // an error, unless the server was fast
	<-server.Done()
	check(start(t, cfg).URL())
}
