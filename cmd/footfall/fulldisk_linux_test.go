package main

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/embedded"
)

const fullDiskClients = 8

// The disk fills up under load, first for the tables and then for PostgreSQL's write-ahead log (WAL), without which the server
// cannot run. Visits are refused in the meantime. When there is space again, visits are counted, and the tables agree with all
// answers. The lines of a log that is imported at the same time are also counted once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	disk := smallDisk(t)
	data := filepath.Join(disk, "data")
	require.NoError(t, exec.Command("cp", "-a", usedData(t), data).Run())
	c := &crash{t: t, ctx: ctx, data: data, visits: math.MaxInt64 / 2, targets: make(map[string]*told), statuses: make(map[int]int64)}
	c.start()
	var clients sync.WaitGroup
	for range fullDiskClients {
		clients.Go(c.client)
	}
	c.awaitAnswers(500)

	server, running, err := embedded.Attach(data)
	require.NoError(t, err)
	require.True(t, running)
	conn, err := pgx.Connect(ctx, server)
	require.NoError(t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `SELECT pg_switch_wal()`) // so that the new file has more room than the tables then take
	require.NoError(t, err)

	log := c.follow(server, accessLog(t, "access.log", 1, 4500))
	log.grow(1500)
	free := fill(t, disk)
	c.awaitRefusals(100)
	log.write(1500)
	eventually(t, "the import says why it does not go on", func() bool { return log.says("import: the database", "No space left on device") })
	assert.Zero(t, c.status(http.StatusInternalServerError), "no refused visit has an unknown outcome")
	require.NoError(t, conn.Ping(ctx), "the server runs on")
	status := footfall(t, "status", "--database-url="+server)
	assert.Equal(t, exitWarned, status.code, status.stderr)
	assert.Contains(t, status.stdout, "WARNING: no visit can be counted now: probe: the disk of the database is full")
	free()
	c.awaitAnswers(c.answered.Load() + 500)
	log.grow(0)

	free = fill(t, disk)
	c.fillWAL(server)
	if !testing.Short() {
		c.awaitRefusals(100) // it takes a while until new visits are refused: the service first looks up the outcome of earlier ones
	}
	free()
	c.awaitAnswers(c.answered.Load() + 500)

	log.grow(1500)
	log.end()

	c.taken.Store(math.MaxInt64 / 2)
	clients.Wait()
	t.Logf("%d visits answered, %v: %s", c.answered.Load(), c.statuses, c.compare())
	assert.Contains(t, well(t, "verify", "--data", data), "0 violations")
	assert.Zero(t, c.service.stop())
}

// followed is a log that an import follows.
type followed struct {
	*crash
	server string // the server's URL
	file   *os.File
	lines  []string // lines still to be written
	hot    int      // the number of lines written
	said   string   // the file with the import's output
	cmd    *exec.Cmd
}

// follow imports a log, which is first truncated: its lines are written later.
func (c *crash) follow(server, path string) *followed {
	well(c.t, "app", "add", "blog", "--site=blog.example", "--data", c.data)
	text, err := os.ReadFile(path)
	require.NoError(c.t, err)
	require.NoError(c.t, os.Truncate(path, 0))
	f := &followed{crash: c, server: server, lines: strings.SplitAfter(string(text), "\n"), said: path + ".said"}
	f.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(c.t, err)
	said, err := os.Create(f.said)
	require.NoError(c.t, err)
	f.cmd = exec.Command(os.Args[0], "import", "--follow", "--app=blog", "--data", c.data, path)
	f.cmd.Env, f.cmd.Stderr = environment(), said
	require.NoError(c.t, f.cmd.Start())
	c.t.Cleanup(func() { _ = f.cmd.Process.Kill() })
	return f
}

// write writes a number of lines.
func (f *followed) write(lines int) {
	_, err := f.file.WriteString(strings.Join(f.lines[:lines], ""))
	require.NoError(f.t, err)
	f.lines, f.hot = f.lines[lines:], f.hot+lines
}

// grow writes a number of lines, and waits until all written lines are counted.
func (f *followed) grow(lines int) {
	f.write(lines)
	eventually(f.t, "the log is counted", func() bool {
		conn, err := pgx.Connect(f.ctx, f.server)
		if err != nil {
			return false // the follower is restarting
		}
		defer conn.Close(f.ctx)
		var hot int
		err = conn.QueryRow(f.ctx, `SELECT hot FROM report.sites WHERE app = 'blog'`).Scan(&hot)
		return err == nil && hot == f.hot
	})
}

func (f *followed) says(words ...string) bool {
	text, err := os.ReadFile(f.said)
	require.NoError(f.t, err)
	return !slices.ContainsFunc(words, func(word string) bool { return !bytes.Contains(text, []byte(word)) })
}

// end stops the import.
func (f *followed) end() {
	require.NoError(f.t, f.cmd.Process.Signal(os.Interrupt))
	err := f.cmd.Wait()
	text, _ := os.ReadFile(f.said)
	assert.NoError(f.t, err, "%s", text)
}

// fillWAL writes to the WAL of a server whose disk is full until the server cannot even start. The server recovers as long as
// the last WAL file has some room, so fillWAL uses up this room with smaller and smaller writes.
func (c *crash) fillWAL(server string) {
	size := 1 << 20
	eventually(c.t, "the server cannot start", func() bool {
		if conn, err := pgx.Connect(c.ctx, server); err == nil {
			for err == nil {
				_, err = conn.Exec(c.ctx, `SELECT pg_logical_emit_message(true, 'full', repeat('-', $1))`, size)
			}
			_ = conn.Close(c.ctx)
			size = max(size/10, 1)
		}
		_, fails := c.service.logged("the database server could not be started; trying again")
		return fails
	})
}

// awaitRefusals waits until n more visits have been refused.
func (c *crash) awaitRefusals(n int64) {
	n += c.status(http.StatusServiceUnavailable)
	eventually(c.t, "visits are refused", func() bool { return c.status(http.StatusServiceUnavailable) >= n })
}

func (c *crash) status(code int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.statuses[code]
}

// smallDisk returns a separate file system that PostgreSQL's user can enter.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := newData(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=192m,mode=755"); err != nil {
		t.Skip("a file system of a size of its own cannot be mounted here: ", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fill takes all the space that is left on a disk. The caller releases the space by calling free.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	ballast, err := os.Create(filepath.Join(disk, "ballast"))
	require.NoError(t, err)
	for _, size := range []int{1 << 20, 1 << 10, 1} { // down to the last byte
		for some := make([]byte, size); err == nil; {
			_, err = ballast.Write(some)
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		err = nil
	}
	require.NoError(t, ballast.Close())
	return func() { require.NoError(t, os.Remove(ballast.Name())) }
}
