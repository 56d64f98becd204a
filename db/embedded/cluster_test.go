package embedded

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClusterMadeHalfIsMadeAnew(t *testing.T) {
	t.Parallel()
	cfg := testConfig(openDir(t))
	parent, _, _ := startHelper(t, cfg.Dir, nil)
	half := filepath.Join(clusterIn(cfg.Dir)+".unfinished", "PG_VERSION")
	eventually(t, func() bool { _, err := os.Stat(half); return err == nil }, "initdb has begun")
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	waitUntilFree(t, cfg.Dir)
	_, err := os.Stat(clusterIn(cfg.Dir))
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing half-made has the cluster's name")

	require.NoError(t, os.MkdirAll(filepath.Dir(half), 0o700)) // and any other files that a crash leaves there
	require.NoError(t, os.WriteFile(half, []byte("15\n"), 0o600))
	assert.Equal(t, 1, query[int](t, start(t, cfg).URL(), "SELECT 1"))
}

func TestLongDataDirectory(t *testing.T) {
	t.Parallel()
	cfg := testConfig(filepath.Join(openDir(t), strings.Repeat("long", 30)))
	server := start(t, cfg)
	require.True(t, strings.HasPrefix(server.socket, "/tmp/footfall-"))
	url, ok, err := Attach(cfg.Dir)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, server.URL(), url)
	require.NoError(t, server.Stop(t.Context()))
	_, err = os.Stat(server.socket)
	assert.ErrorIs(t, err, fs.ErrNotExist)

	// A folder of this name that other users may write to is not trusted.
	require.NoError(t, os.Mkdir(server.socket, 0o777))
	t.Cleanup(func() { _ = os.Remove(server.socket) })
	require.NoError(t, os.Chmod(server.socket, 0o777))
	_, err = Start(t.Context(), cfg)
	require.ErrorContains(t, err, "is not a private folder")
}

func TestOtherVersionsDataIsLeftAlone(t *testing.T) {
	t.Parallel()
	cfg := testConfig(openDir(t))
	cfg.BinDir = fakePostgres(t, 15)
	require.NoError(t, os.Mkdir(clusterIn(cfg.Dir), 0o755))
	version := filepath.Join(clusterIn(cfg.Dir), "PG_VERSION")
	require.NoError(t, os.WriteFile(version, []byte("17\n"), 0o644))
	if as, err := newAccount(); assert.NoError(t, err) {
		require.NoError(t, as.give(clusterIn(cfg.Dir)))
	}
	_, err := Start(t.Context(), cfg)
	require.ErrorContains(t, err, "of PostgreSQL 17")
	require.ErrorContains(t, err, "of PostgreSQL 15")
	require.ErrorContains(t, err, "--postgres-bin")
	_, err = os.Stat(version)
	assert.NoError(t, err)

	require.NoError(t, os.Rename(version, version+"~"))
	_, err = Start(t.Context(), cfg)
	require.ErrorContains(t, err, "not a PostgreSQL cluster")
	_, err = os.Stat(version + "~")
	assert.NoError(t, err)
}

// fakePostgres returns a folder of programs that only print their version.
func fakePostgres(t *testing.T, major int) string {
	t.Helper()
	dir := openDir(t)
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.1 (fake)'\n", major)
	for _, binary := range []string{"postgres", "initdb"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, binary), []byte(script), 0o755))
	}
	return dir
}

func TestFind(t *testing.T) {
	t.Parallel()
	explicit := fakePostgres(t, 15)
	dir, err := Find(explicit)
	require.NoError(t, err)
	assert.Equal(t, explicit, dir)
	_, err = Find(fakePostgres(t, 14))
	require.ErrorContains(t, err, "it is PostgreSQL 14, but Footfall needs 15 or newer")
	_, err = Find("/etc")
	require.ErrorContains(t, err, "no usable PostgreSQL in /etc")
}

func TestFindPrefersWhatFitsTheData(t *testing.T) {
	newer, older := fakePostgres(t, 98), fakePostgres(t, 97)
	t.Setenv("PATH", newer+":/usr/bin:/bin")
	places := installedIn
	installedIn = []string{older}
	t.Cleanup(func() { installedIn = places })
	as, err := newAccount()
	require.NoError(t, err)
	found, err := findBinaries("", 97, as)
	require.NoError(t, err)
	assert.Equal(t, binaries{older, 97}, found)

	t.Setenv("PATH", fakePostgres(t, 14)) // without a usable version, the error names the refused version and the command to type
	installedIn = nil
	_, err = Find("")
	require.ErrorContains(t, err, "no PostgreSQL server found; install it: ")
	require.ErrorContains(t, err, "PostgreSQL 14")
}

func TestListeningAsksForAPassword(t *testing.T) {
	t.Parallel()
	cfg := testConfig(usedDir(t))
	server := start(t, cfg)
	address := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)) // unused
	execute(t, server.URL(), "ALTER ROLE footfall PASSWORD 'secret'")
	execute(t, server.URL(), "ALTER SYSTEM SET listen_addresses = '"+address+"'")
	require.NoError(t, server.Stop(t.Context()))
	start(t, cfg)
	at := net.JoinHostPort(address, strconv.Itoa(Port))
	assert.Equal(t, 1, query[int](t, "postgres://footfall:secret@"+at+"/footfall", "SELECT 1"))
	err := ping(t.Context(), "postgres://footfall:guessed@"+at+"/footfall")
	assert.Equal(t, "28P01", sqlState(err))
}

func TestRefusedSettingIsReported(t *testing.T) {
	t.Parallel()
	cfg := testConfig(usedDir(t))
	cfg.Settings["shared_buffers"] = "much"
	_, err := Start(t.Context(), cfg)
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers": "much"`)
}

func TestReusedProcessNumberIsNoServer(t *testing.T) {
	t.Parallel()
	cfg := testConfig(usedDir(t))
	server := start(t, cfg)
	pidFile := filepath.Join(clusterIn(cfg.Dir), "postmaster.pid")
	text, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	if os.Geteuid() == 0 { // a cluster that belongs to root, and a socket in the folder of the server's user
		dir := openDir(t)
		require.NoError(t, os.Mkdir(clusterIn(dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(clusterIn(dir), "postmaster.pid"), text, 0o644))
		_, ok, err := Attach(dir)
		require.NoError(t, err)
		assert.False(t, ok, "nobody else's socket is trusted")
	}
	require.NoError(t, server.Stop(t.Context()))

	as, err := accountOf(clusterIn(cfg.Dir))
	require.NoError(t, err)
	other := exec.Command("sleep", "3600")
	other.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	_, rest, _ := strings.Cut(string(text), "\n")
	require.NoError(t, os.WriteFile(pidFile, fmt.Appendf(nil, "%d\n%s", other.Process.Pid, rest), 0o600))
	require.NoError(t, as.give(pidFile))
	start(t, cfg)
}

func TestClosedFolderIsNamed(t *testing.T) {
	t.Parallel()
	needRoot(t)
	closed := filepath.Join(openDir(t), "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))
	_, err := Start(t.Context(), testConfig(filepath.Join(closed, "a", "b")))
	require.ErrorContains(t, err, "cannot enter "+closed+":")
	require.ErrorContains(t, err, "--data")
}

func TestNormalUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	nobody := &account{65534, 65534, "nobody"}
	dir := openDir(t)
	require.NoError(t, nobody.give(dir))
	cmd, stdin, output := startHelper(t, dir, nobody)
	url := readURL(t, output)
	attached, ok, err := Attach(dir) // as root
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, url, attached)
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())

	// Root still runs the server as the owner of the data.
	start(t, testConfig(dir))
	info, err := os.Stat(filepath.Join(clusterIn(dir), "postmaster.pid"))
	require.NoError(t, err)
	assert.True(t, nobody.owns(info))
}

func TestAnotherUsersClusterIsRefused(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := openDir(t)
	require.NoError(t, os.Mkdir(clusterIn(dir), 0o755))
	nobody := &account{65534, 65534, "nobody"}
	require.NoError(t, nobody.give(dir))
	require.NoError(t, (&account{uid: 1, gid: 1}).give(clusterIn(dir)))
	cmd, _, output := startHelper(t, dir, nobody)
	said, err := io.ReadAll(output)
	require.NoError(t, err)
	assert.Contains(t, string(said), "belongs to user "+userName(1)+": run Footfall as that user or as root")
	require.Error(t, cmd.Wait())
}

func TestLinksInPlaceOfOurFilesAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, ours := range []string{"lock/serve", "lock/owner", "postgres-start.log"} {
		cfg := testConfig(openDir(t))
		require.NoError(t, os.Mkdir(filepath.Join(cfg.Dir, "lock"), 0o755))
		target := filepath.Join(cfg.Dir, "precious")
		require.NoError(t, os.WriteFile(target, []byte("kept"), 0o600))
		require.NoError(t, os.Symlink(target, filepath.Join(cfg.Dir, ours)))
		_, err := Start(t.Context(), cfg)
		require.ErrorIs(t, err, syscall.ELOOP, ours)
		text, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.Equal(t, "kept", string(text))
	}
}
