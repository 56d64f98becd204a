package main

import (
	"context"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/embedded"
)

const fullDiskClients = 8

// The disk fills up under load, first for the tables and then for PostgreSQL's log of what it writes
// (WAL), without which the server cannot run. Visits are refused meanwhile; when there is space
// again they count, and the tables agree with all that was answered.
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
	_, err = conn.Exec(ctx, `SELECT pg_switch_wal()`) // to a file that has room for more than the tables then take
	require.NoError(t, err)

	free := fill(t, disk)
	c.awaitRefusals(100)
	assert.Zero(t, c.status(http.StatusInternalServerError), "nothing is unknown of what the server has refused")
	require.NoError(t, conn.Ping(ctx), "the server runs on")
	free()
	c.awaitAnswers(c.answered.Load() + 500)

	free = fill(t, disk)
	c.fillWAL(server)
	if !testing.Short() {
		c.awaitRefusals(100) // it takes a while until visits are: first it is asked what became of those before
	}
	free()
	c.awaitAnswers(c.answered.Load() + 500)

	c.taken.Store(math.MaxInt64 / 2)
	clients.Wait()
	t.Logf("%d visits answered, %v: %s", c.answered.Load(), c.statuses, c.compare())
	assert.Contains(t, well(t, "verify", "--data", data), "0 violations")
	assert.Zero(t, c.service.stop())
}

// fillWAL writes to the WAL of a server whose disk is full until the server cannot even start. It
// recovers as long as there is some room left in the last file, which is filled up with ever less at
// a time.
func (c *crash) fillWAL(server string) {
	size := 1 << 20
	eventually(c.t, "the server cannot start", func() bool {
		if conn, err := pgx.Connect(c.ctx, server); err == nil {
			for err == nil {
				_, err = conn.Exec(c.ctx, `SELECT pg_logical_emit_message(true, 'full', repeat('-', $1))`, size)
			}
			_ = conn.Close(c.ctx)
			size = max(size/100, 1)
		}
		_, fails := c.service.logged("the database could not be started; trying again")
		return fails
	})
}

// awaitRefusals waits until so many more visits have been refused.
func (c *crash) awaitRefusals(n int64) {
	n += c.status(http.StatusServiceUnavailable)
	eventually(c.t, "visits are refused", func() bool { return c.status(http.StatusServiceUnavailable) >= n })
}

func (c *crash) status(code int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.statuses[code]
}

// smallDisk is a file system of its own that PostgreSQL's user can enter.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := newData(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=192m,mode=755"); err != nil {
		t.Skip("a file system of a size of its own cannot be mounted here: ", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// fill takes all the space that is left on a disk, until free.
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
