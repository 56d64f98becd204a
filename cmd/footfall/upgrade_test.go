package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/embedded"
)

// Numbers, and who is who, are the same on the new folder, and every promise holds.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	data := usedData(t)
	to := filepath.Join(newData(t), "new")
	refused := footfall(t, "upgrade", "--to", to, "--database-url=postgres://h/d")
	assert.Equal(t, exitUsage, refused.code)
	assert.Contains(t, refused.stderr, "upgrade is for the embedded PostgreSQL")
	refused = footfall(t, "upgrade", "--to", data, "--data", newData(t))
	assert.Contains(t, refused.stderr, "footfall: --to: "+data+": ")
	newer := brokenPostgres(t, "exit 1")
	require.NoError(t, os.WriteFile(filepath.Join(newer, "postgres"), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 99.1'\n"),
		0o755)) //nolint:gosec // it is run
	refused = footfall(t, "upgrade", "--to", to, "--postgres-bin", newer, "--data", data)
	assert.Equal(t, exitFailed, refused.code)
	assert.Contains(t, refused.stderr, "footfall: --postgres-bin: "+newer+" is of PostgreSQL 99")
	assert.Contains(t, refused.stderr, "--to-postgres-bin those of the new one")
	if testing.Short() { // db/embedded tests the copying itself
		return
	}
	well(t, "app", "add", "shop", "--site=example.com", "--access=open", "--data", data)
	s := serve(t, "--data", data)
	visited := s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://example.com/"
	status, _ := get(visited)
	require.Equal(t, http.StatusOK, status)
	require.Zero(t, s.stop())

	bin, err := embedded.Find(os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"))
	require.NoError(t, err)
	said := well(t, "upgrade", "--to", to, "--to-postgres-bin", bin, "--data", data)
	assert.Contains(t, said, "--data '"+to+"' --postgres-bin '"+bin+"' verify\n")
	s = serve(t, "--data", to)
	_, body := get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://example.com/")
	assert.Contains(t, body, `"uv":1,"rank":1,"hot":2},"page"`, "the visitor is known by the secret")
	well(t, "verify", "--data", to)
}
