package handler

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oapi-codegen makes a client of /openapi.json with its defaults, which compiles, counts and reads. It is a module of its
// own in testdata/client, which pins the generator and what the client needs.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	e, dir := newEdge(t), t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/client")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.json"), []byte(e.get("/openapi.json").body), 0o600))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run("tool", "oapi-codegen", "-generate", "types,client", "-package", "main", "-o", "client.go", "openapi.json")
	run("build", "-o", "client", ".")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "client"), e.public).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "visit: 1 1 1 1\npage: hhui.top/home 1\n"+
		"refused: app: there is no app \"none\": ask its operator how it is written\n", string(out))
}
