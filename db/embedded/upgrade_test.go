package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The data goes from the PostgreSQL that is found on this machine to the one that the tests run on,
// which is of another major version where FOOTFALL_TEST_POSTGRES_BIN names one.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	from, to := testConfig(usedDir(t)), testConfig(filepath.Join(openDir(t), "new"))
	major, err := clusterMajor(clusterIn(from.Dir))
	require.NoError(t, err)
	if found, err := findBinaries("", 0, nil); err == nil && found.major < major {
		from = testConfig(openDir(t)) // usedDir is of the tests' version
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
	require.ErrorContains(t, err, "no PostgreSQL newer than 99")
}

// script makes a program.
func script(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path+".unfinished", []byte("#!/bin/sh\n"+text), 0o755)) //nolint:gosec // it is to be run
	require.NoError(t, os.Rename(path+".unfinished", path))
}

// Whichever of two programs fails, the other one ends, and what it said is told.
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
