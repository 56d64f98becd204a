package embedded

import (
	"bytes"
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
	require.NoError(t, syscall.Kill(backend, syscall.SIGSTOP)) // a backend that does not react for a while
	require.NoError(t, server.process.Kill())
	<-server.Done()
	require.ErrorContains(t, server.Err(), "signal: killed")
	require.NoError(t, server.Stop(t.Context()))

	impatient := cfg
	impatient.Wait = 50 * time.Millisecond
	_, err := Start(t.Context(), impatient)
	require.ErrorContains(t, err, "processes of the earlier PostgreSQL server are still running")

	waiting := make(chan struct{})
	cfg.Log = logTo(func(message string) {
		if strings.HasPrefix(message, "waiting for the PostgreSQL server") {
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
			assert.ErrorContains(t, r.err, cfg.Dir+": footfall already serves from this folder")
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
	require.NoError(t, old.process.Signal(syscall.SIGSTOP)) // delays the stop of the server
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
	require.ErrorContains(t, err, fmt.Sprintf("still in use (a short command, process %d)", os.Getpid()))

	ended := make(chan error, 1)
	go func() { ended <- releaseOwner() }()
	select {
	case <-waiting:
	case <-ended:
		t.Fatal("the server was stopped under a command that had attached to it")
	}
	assert.Equal(t, 1, query[int](t, attached, "SELECT 1"))
	// A starting server waits for both commands.
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

// If the operating system refuses an operation on a data directory, the error has a remedy.
func TestFaultsOfTheFolderNameARemedy(t *testing.T) {
	t.Parallel()
	refused := func(why error) error {
		return fmt.Errorf("make: %w", &fs.PathError{Op: "mkdir", Path: "/x/y", Err: why})
	}
	own := &DirError{"/x", errors.New("it is full of bees")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{own, "/x: it is full of bees"},
		{errors.New("it is old"), "/x: it is old"},
		{refused(syscall.EACCES), "/x: it cannot be used (make: mkdir /x/y: permission denied): user " + userName(uint32(os.Geteuid())) +
			" may not do that: run this as the folder's owner, or name another folder"},
		{refused(syscall.ENOSPC), "/x: it cannot be used (make: mkdir /x/y: no space left on device): free some space, or name a folder on " +
			"another disk"},
		{refused(syscall.EROFS), "/x: it cannot be used (make: mkdir /x/y: read-only file system): name a folder that can be written to"},
		{refused(syscall.ENOTDIR), "/x: it cannot be used (make: mkdir /x/y: not a directory): name another folder"},
	} {
		if err := inDir("/x", c.err); c.err == nil {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, c.want)
		}
	}
}

// With MustExist nothing is created. A cluster does not count while another start is still creating it.
func TestUseMakesNothingUnasked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "mistyped")
	_, _, err := Use(t.Context(), Config{Dir: dir, MustExist: true})
	require.ErrorIs(t, err, ErrNoCluster)
	assert.NoDirExists(t, dir)
	require.NoError(t, os.MkdirAll(lockFolder(dir), 0o755))
	_, _, err = Use(t.Context(), Config{Dir: dir, MustExist: true})
	require.ErrorIs(t, err, ErrNoCluster)
	assert.NoDirExists(t, clusterIn(dir))
}

// Data is upgraded from the PostgreSQL found on this machine to the PostgreSQL of the tests. The two have different
// major versions if FOOTFALL_TEST_POSTGRES_BIN names another version.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	from, to := testConfig(usedDir(t)), testConfig(filepath.Join(openDir(t), "new"))
	major, err := clusterMajor(clusterIn(from.Dir))
	require.NoError(t, err)
	if found, err := findBinaries("", 0, nil); err == nil && found.major < major {
		from = testConfig(openDir(t)) // usedDir has the tests' version
		from.BinDir = found.dir
	}
	to.BinDir, err = Find(to.BinDir)
	require.NoError(t, err)
	old := start(t, from)
	check := keep(t, old.URL())
	execute(t, old.URL(), `CREATE ROLE reader LOGIN PASSWORD 'secret'`)
	execute(t, old.URL(), `GRANT SELECT ON kept TO reader`)
	execute(t, old.URL(), `ALTER DATABASE footfall SET statement_timeout = '7s'`)
	password := query[string](t, old.URL(), `SELECT rolpassword FROM pg_authid WHERE rolname = 'reader'`)
	require.ErrorContains(t, Upgrade(t.Context(), from, to), "already serves from")
	assert.NoFileExists(t, to.Dir)
	require.NoError(t, old.Stop(t.Context()))
	require.NoError(t, os.WriteFile(filepath.Join(from.Dir, "beside"), []byte("it"), 0o600))

	require.NoError(t, Upgrade(t.Context(), from, to, "beside", "no such file"))
	fresh := start(t, to)
	check(fresh.URL())
	assert.Equal(t, password, query[string](t, fresh.URL(), `SELECT rolpassword FROM pg_authid WHERE rolname = 'reader'`))
	assert.True(t, query[bool](t, fresh.URL(), `SELECT has_table_privilege('reader', 'kept', 'SELECT')`))
	assert.Equal(t, "7s", query[string](t, fresh.URL(), `SHOW statement_timeout`))
	beside, err := os.ReadFile(filepath.Join(to.Dir, "beside"))
	require.NoError(t, err)
	assert.Equal(t, "it", string(beside))
	require.NoError(t, fresh.Stop(t.Context()))
	assert.NoFileExists(t, to.Dir+".unfinished")

	old = start(t, from)
	check(old.URL())
	require.NoError(t, old.Stop(t.Context()))
	require.ErrorContains(t, Upgrade(t.Context(), from, to), "it is not empty")
}

func TestUpgradeOfNothing(t *testing.T) {
	t.Parallel()
	from, to := testConfig(openDir(t)), testConfig(filepath.Join(openDir(t), "new"))
	require.ErrorIs(t, Upgrade(t.Context(), from, to), ErrNoCluster)
	assert.NoFileExists(t, to.Dir)
}

func TestFindNewer(t *testing.T) {
	t.Parallel()
	folder, err := Find(os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"))
	require.NoError(t, err)
	as, err := newAccount()
	require.NoError(t, err)
	found, err := findNewer(folder, oldestMajor, as)
	require.NoError(t, err)
	assert.Equal(t, folder, found.dir)
	_, err = findNewer(folder, found.major+1, as)
	require.ErrorContains(t, err, "no usable PostgreSQL in "+folder)
	_, err = findNewer("", 99, as)
	require.ErrorContains(t, err, "no PostgreSQL newer than the data's version, 99")
}

// script writes an executable script.
func script(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path+".unfinished", []byte("#!/bin/sh\n"+text), 0o755)) //nolint:gosec // it is to be run
	require.NoError(t, os.Rename(path+".unfinished", path))
}

// If one of two programs fails, the other one is stopped, and the error has the output of the failed one.
func TestProgramsThatFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script(t, dir, "fails", "cat >/dev/null; echo 'it is Tuesday' >&2; exit 3")
	script(t, dir, "leaves", "echo 'it is late' >&2; exit 1")
	script(t, dir, "yes", "exec yes")
	script(t, dir, "cat", "exec cat >/dev/null")
	p := tools(dir)
	_, err := p.run(t.Context(), "fails", bytes.NewReader(nil))
	require.ErrorContains(t, err, "it is Tuesday")
	require.ErrorContains(t, p.pipe(t.Context(), []string{"yes"}, []string{"leaves"}), "it is late")
	require.ErrorContains(t, p.pipe(t.Context(), []string{"leaves"}, []string{"cat"}), "it is late")
	require.Error(t, p.pipe(t.Context(), []string{"yes"}, []string{"no such program"}))
	require.NoError(t, p.pipe(t.Context(), []string{"cat"}, []string{"cat"}))
}

func TestFindTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range strings.Fields("pg_dump pg_dumpall pg_restore psql vacuumdb") {
		script(t, dir, name, "")
	}
	found, err := findTools("/no/such/folder", dir)
	require.NoError(t, err)
	assert.Equal(t, tools(dir), found)
}
