package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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

// systemd is told when visits are counted, that the service is alive, and when it ends: each by the
// service alone, though PostgreSQL would tell, too.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	folder := newData(t)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, os.Chmod(socket.LocalAddr().String(), 0o777))
	program := filepath.Join(folder, "footfall")
	require.NoError(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nexport NOTIFY_SOCKET='%s' WATCHDOG_USEC=400000\nexec '%s' \"$@\"\n",
		socket.LocalAddr(), os.Args[0]), 0o755))
	told := func() string {
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(patience)))
		message := make([]byte, 256)
		n, err := socket.Read(message)
		require.NoError(t, err)
		return string(message[:n])
	}
	r := startOf(t, program, "--data", usedData(t))
	require.Equal(t, "READY=1", told())
	r.awaitReady()
	require.Equal(t, "WATCHDOG=1", told())
	require.Equal(t, "WATCHDOG=1", told())
	require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
	last := told()
	for last == "WATCHDOG=1" {
		last = told()
	}
	require.Equal(t, "STOPPING=1", last)
	require.Zero(t, r.wait())
	require.NoError(t, socket.SetReadDeadline(time.Now()))
	_, err = socket.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nothing else is told")
}

// What the file of settings names is a setting of serve.
func TestFileOfSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../packaging/footfall.env")
	require.NoError(t, err)
	settings := regexp.MustCompile(`(?m)^#?(\w+)=`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, settings)
	help := well(t, "serve", "--help")
	for _, setting := range settings {
		assert.Contains(t, help, "$"+setting[1], setting[0])
	}
}
