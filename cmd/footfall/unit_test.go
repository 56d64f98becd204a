package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The unit of systemd is one that systemd reads without complaint, and lets the service end by
// itself: a SIGTERM to all of its processes would cut off visits under way.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/footfall.service")
	require.NoError(t, err)
	assert.Contains(t, string(text), "\nKillMode=mixed\n")
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze")
	}
	const program = "/usr/local/bin/footfall"
	require.Equal(t, 1, strings.Count(string(text), program))
	unit := filepath.Join(t.TempDir(), "footfall.service")
	require.NoError(t, os.WriteFile(unit, []byte(strings.Replace(string(text), program, os.Args[0], 1)), 0o600))
	said, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", unit).CombinedOutput()
	require.NoError(t, err, string(said))
	assert.NotContains(t, string(said), unit, "it complains of the unit")
}
