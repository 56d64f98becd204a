package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"footfall/db/dbtest"
)

// footfallAt runs a command whose input is a terminal, with typed input.
func footfallAt(t *testing.T, typed string, args ...string) result {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer person.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer terminal.Close()
	_, err = person.WriteString(typed)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment(), terminal, &stdout, &stderr
	_ = cmd.Run() // ProcessState has the exit code
	require.NoError(t, ctx.Err(), "footfall %v took too long: %s", args, stderr.String())
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// A command that deletes data for good does nothing without a confirmation at the terminal, or without a terminal.
// After the confirmation it reports the deletion.
func TestTakingAwayAsks(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	url := "--database-url=" + database
	well(t, "app", "add", "shop", "--visitor=address", "--access=open", url)
	well(t, "app", "add", "other", "--visitor=address", "--access=open", url)
	countLongAgo(t, database)
	assert.Equal(t, "nothing is stored about this visitor\n", well(t, "visitor", "erase", "other", "192.0.2.9", url))
	for _, c := range []struct{ command, answer, done string }{
		{"visitor erase other 192.0.2.1", "yes", "erased from 2 pages and sites\n"},
		{"page delete shop a.example/", "yes", "deleted a.example/; its numbers (hot 2, pv 2, uv 1) are now part of a.example/(deleted)\n"},
		{"app delete shop", "shop", "deleted app shop\n"},
		{"migrate down", "yes", takenBack(t) + "\n"},
	} {
		args := append(strings.Fields(c.command), url)
		const endOfInput = "\x04"
		for _, typed := range []string{endOfInput, "\n", "no\n", "Y" + c.answer + "\n"} {
			r := footfallAt(t, typed, args...)
			assert.Equal(t, exitFailed, r.code, "%s: %q", c.command, typed)
			assert.Contains(t, r.stderr, "Type "+c.answer+" to continue: ")
			assert.Contains(t, r.stderr, "nothing was done")
			assert.Empty(t, r.stdout)
		}
		piped := footfallTyped(t, c.answer+"\n", args...)
		assert.Equal(t, exitFailed, piped.code, c.command)
		assert.Contains(t, piped.stderr, "nothing was done: without a terminal, it cannot be confirmed: give --yes")
		r := footfallAt(t, c.answer+"\n", args...)
		assert.Zero(t, r.code, r.stderr)
		assert.Equal(t, c.done, r.stdout)
	}
}
