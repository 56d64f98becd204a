package record

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// These are faults of a whole server, or of TCP connections. All of them are tested on the same
// server.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	dir, backup := dbtest.OwnDir(t), dbtest.OwnDir(t)
	server := dbtest.Own(t, dir, "")
	d := dbtest.Open(t, server.URL(), db.Options{})
	_, err := d.MigrateUp(t.Context())
	require.NoError(t, err)
	addDemo(t)(d)
	w := worldAt(t, server.URL())
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{}), 1, "backed-up.example/"))
	require.NoError(t, server.Stop(t.Context()))
	require.NoError(t, exec.Command("cp", "-a", dir+"/.", backup).Run())
	server, far := dbtest.OwnFar(t, dir)
	w.url = server.URL()
	w.conn = dbtest.Connect(t, w.url)
	network, through := dbtest.NewNetwork(t, far)
	var seen faults
	r := recorder(t, dbtest.Open(t, through, db.Options{DeadAfter: 2 * time.Second}), Options{Filter: true, Memory: 8 << 20, Log: seen.log()})
	near := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{Filter: true, Memory: 8 << 20})

	t.Run("the network vanishes under a batch", func(t *testing.T) { w.testNetworkVanishes(t, network, r, near) })
	t.Run("kill -9 of the backend of a batch", func(t *testing.T) { w.testBackendKilled(t, r) })
	t.Run("another server answers", func(t *testing.T) {
		w.testAnotherServer(t, network, r, backup)
		require.Positive(t, seen.of(db.FaultStale), "the batch was refused before it was sent again")
	})
}

// The network vanishes while a batch holds its locks and is not complete. Both ends give up the connection. The
// batch is sent again over another connection, and the visits that waited for its locks are counted, too.
func (w *world) testNetworkVanishes(t *testing.T, network *dbtest.Network, r, near *Recorder) {
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "vanishes.example/"))
	vanished := network.VanishUnderBatch()
	underWay := w.start(r, 2, "vanishes.example/")
	<-vanished
	other := w.start(near, 2, "vanishes.example/")
	told := []string{receive(t, underWay), receive(t, other)}
	require.ElementsMatch(t, []string{"2 2 2 2 | 2 2 2 2", "2 2 2 3 | 2 2 2 3"}, told)
	require.Equal(t, "3 3 3 4 | 3 3 3 4", w.count(t, r, 3, "vanishes.example/"))
	w.prove(t)
}

// If a backend is killed, the server terminates all other backends and recovers. The batch is sent again, and
// counts once.
func (w *world) testBackendKilled(t *testing.T, r *Recorder) {
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "killed.example/"))
	w.hold(t, "killed.example")
	underWay := w.start(r, 2, "killed.example/")
	require.NoError(t, syscall.Kill(int(w.blocked(t, 1)[0]), syscall.SIGKILL))
	require.Equal(t, "2 2 2 2 | 2 2 2 2", receive(t, underWay))
	require.Equal(t, "2 2 1 3 | 2 2 1 3", w.count(t, r, 1, "killed.example/"))
	w.conn = dbtest.Connect(t, w.url)
	w.prove(t)
}

// A restored backup replaces the server. The instance forgets visits after the backup, although it has them in
// memory and has lost no batch. The visitors of these visits are new again.
func (w *world) testAnotherServer(t *testing.T, network *dbtest.Network, r *Recorder, backup string) {
	require.Equal(t, "2 2 2 2 | 2 2 2 2", w.count(t, r, 2, "backed-up.example/"))
	require.Equal(t, "2 2 2 3 | 2 2 2 3", w.count(t, r, 2, "backed-up.example/"), "from memory")
	_, restored := dbtest.OwnFar(t, backup)
	network.LeadTo(restored)
	network.Cut()
	cut := time.Now()
	require.Eventually(t, func() bool { return time.Since(cut) > 1500*time.Millisecond }, dbtest.Patience, dbtest.Tick,
		"connections that were not used for a second are looked at first, so that no batch is lost with them")
	require.Equal(t, "2 2 2 2 | 2 2 2 2", w.count(t, r, 2, "backed-up.example/"))
	require.Equal(t, "2 2 1 3 | 2 2 1 3", w.count(t, r, 1, "backed-up.example/"), "who is in the backup is known")
	require.Equal(t, "1 1 1 1 | 1 1 1 1", w.count(t, r, 1, "killed.example/"), "a page that the backup does not have")
	w.url = restored + "?sslmode=disable"
	w.prove(t)
}
