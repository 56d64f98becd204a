package dbtest

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/embedded"
)

// Pair is a primary and its standby for one test, with Footfall's tables. At first the second server is the standby.
// Promote swaps the roles of the servers.
type Pair struct {
	t       testing.TB
	bin     string
	nodes   [2]*node
	primary int
}

// node is a server of a Pair or a Cluster.
type node struct {
	dir      string
	host     string // an address that no other server uses
	server   *embedded.Server
	followed bool // this server has a standby, for which its commits wait
}

func (n *node) cluster() string { return filepath.Join(n.dir, "postgres") }

// NewPair makes a pair. If synchronous is set, commits wait for the standby. The test is skipped if PostgreSQL,
// pg_basebackup or pg_rewind is missing, or if /proc does not list the children of a process.
func NewPair(t testing.TB, synchronous bool) *Pair {
	t.Helper()
	bin, err := embedded.Find(os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"))
	if err != nil {
		t.Skip("no PostgreSQL found to start a server: ", err)
	}
	p := &Pair{t: t, bin: bin}
	for _, needed := range []string{filepath.Join(bin, "pg_basebackup"), filepath.Join(bin, "pg_rewind"),
		fmt.Sprintf("/proc/%d/task/%[1]d/children", os.Getpid())} {
		if _, err := os.Stat(needed); err != nil {
			t.Skip("a pair of servers cannot be made here: ", err)
		}
	}
	for i := range p.nodes {
		p.nodes[i] = &node{dir: OwnDir(t), host: ownHost()}
	}
	t.Cleanup(func() { stopAll(t, p.nodes[:]) })
	first, second := p.nodes[0], p.nodes[1]
	p.start(first, nil)
	p.Exec("ALTER ROLE footfall PASSWORD 'secret'")
	p.Exec("ALTER SYSTEM SET wal_keep_size = '256MB'") // for pg_rewind, which starts a server that reads settings only from files
	require.NoError(t, migrate(context.Background(), first.server.URL()))
	if synchronous {
		p.Exec("ALTER SYSTEM SET synchronous_standby_names = '*'") // takes effect below, when the standby exists
	}
	second.copyOf(t, bin, first)
	p.follow(second, first)
	p.Exec("SELECT pg_reload_conf()")
	p.AwaitStandby()
	return p
}

// copyOf makes n a copy of the running server `of`, so that n can become a standby of this server.
func (n *node) copyOf(t testing.TB, bin string, of *node) {
	t.Helper()
	owner, err := os.Stat(of.cluster())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(n.cluster(), 0o700))
	require.NoError(t, os.Chown(n.cluster(), int(owner.Sys().(*syscall.Stat_t).Uid), int(owner.Sys().(*syscall.Stat_t).Gid)))
	n.run(t, bin, "pg_basebackup", "--dbname="+of.source(t), "--pgdata="+n.cluster(), "--checkpoint=fast", "--wal-method=stream", "--no-sync")
	require.NoError(t, os.WriteFile(filepath.Join(n.cluster(), "standby.signal"), nil, 0o644)) //nolint:gosec // it is empty
}

// source returns the parameters with which programs connect to the server over its Unix socket.
func (n *node) source(t testing.TB) string {
	u, err := url.Parse(n.server.URL())
	require.NoError(t, err)
	return fmt.Sprintf("host=%s port=%d user=footfall dbname=postgres", u.Query().Get("host"), embedded.Port)
}

// run runs one of PostgreSQL's programs as the user who owns the server's files.
func (n *node) run(t testing.TB, bin, program string, args ...string) {
	t.Helper()
	owner, err := os.Stat(n.cluster())
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Dir, cmd.Env = "/", []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	if user := owner.Sys().(*syscall.Stat_t); os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.Uid, Gid: user.Gid}}
	}
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", program, output)
}

func (p *Pair) start(n *node, more map[string]string) {
	p.t.Helper()
	n.start(p.t, p.bin, map[string]string{
		"max_connections": "100", "shared_buffers": "32MB", "wal_receiver_status_interval": "1s", "wal_retrieve_retry_interval": "50ms",
	}, more)
}

// start starts a server with the given settings. Values in more replace those in settings.
func (n *node) start(t testing.TB, bin string, settings, more map[string]string) {
	t.Helper()
	settings["listen_addresses"], settings["fsync"] = n.host, "off"
	maps.Copy(settings, more)
	var err error
	n.server, err = embedded.Start(context.Background(), embedded.Config{Dir: n.dir, BinDir: bin, Wait: patience, Settings: settings})
	require.NoError(t, err)
}

// follow starts the server standby as a standby of the server `of`.
func (p *Pair) follow(standby, of *node) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(standby.cluster(), "standby.signal"), nil, 0o644)) //nolint:gosec // it is empty
	p.start(standby, map[string]string{"primary_conninfo": of.source(p.t)})
}

// URL returns a URL with the hosts of both servers of the pair. The driver selects the server that accepts writes. The
// URL disables TLS, because the servers do not support it, and each refused attempt would cost a connection.
func (p *Pair) URL() string {
	return fmt.Sprintf("postgres://footfall:secret@%s:%d,%s:%[2]d/footfall?sslmode=disable", p.nodes[0].host, embedded.Port, p.nodes[1].host)
}

// Primary returns the URL of the present primary only. Commits of connections to this URL do not wait for a standby.
func (p *Pair) Primary() string {
	return WithParameter(p.t, p.nodes[p.primary].server.URL(), "synchronous_commit", "local")
}

// Exec executes a statement on the primary, without waiting for a standby.
func (p *Pair) Exec(sql string) {
	p.t.Helper()
	conn, err := pgx.Connect(context.Background(), p.Primary())
	require.NoError(p.t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), sql)
	require.NoError(p.t, err, sql)
}

// WaitFor sets the standbys that the primary's commits wait for. If standbys is "", they wait for no standby.
func (p *Pair) WaitFor(standbys string) {
	p.t.Helper()
	p.Exec("ALTER SYSTEM SET synchronous_standby_names = '" + standbys + "'")
	p.Exec("SELECT pg_reload_conf()")
}

// AwaitStandby waits until the standby receives changes from the primary. If synchronous_standby_names is set, it also
// waits until the standby is synchronous.
func (p *Pair) AwaitStandby() {
	p.t.Helper()
	conn := Connect(p.t, p.Primary())
	require.Eventually(p.t, func() bool {
		return len(Column[int32](p.t, conn, `SELECT pid FROM pg_stat_replication WHERE state = 'streaming'
			AND (sync_state <> 'async' OR current_setting('synchronous_standby_names') = '')`)) > 0
	}, Patience, Tick)
	_ = conn.Close(context.Background())
}

// Waiting returns the process ids of the primary's sessions that wait for the standby in a statement. The parameter is
// an ILIKE pattern for this statement.
func (p *Pair) Waiting(statement string) []int32 {
	p.t.Helper()
	conn := Connect(p.t, p.Primary())
	defer conn.Close(context.Background())
	return Column[int32](p.t, conn, `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ILIKE $1`, statement)
}

// processes returns the process ids of a running server, the postmaster's first.
func (n *node) processes(t testing.TB) []int {
	t.Helper()
	read, err := os.ReadFile(filepath.Join(n.cluster(), "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(read), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	require.NoError(t, err)
	pids := []int{pid}
	for _, child := range strings.Fields(string(children)) {
		n, err := strconv.Atoi(child)
		require.NoError(t, err)
		pids = append(pids, n)
	}
	return pids
}

func signal(pids []int, signal syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal) // fails if the process has exited
	}
}

// Kill kills the primary, with all of its processes, and returns when they have exited.
func (p *Pair) Kill() { p.t.Helper(); p.nodes[p.primary].kill(p.t) }

// Restart starts the killed primary, with additional settings.
func (p *Pair) Restart(settings map[string]string) {
	p.t.Helper()
	p.start(p.nodes[p.primary], settings)
}

// KillStandby kills the standby, with all of its processes, and returns when they have exited.
func (p *Pair) KillStandby() { p.t.Helper(); p.nodes[1-p.primary].kill(p.t) }

// kill kills a server with all of its processes, and returns when they have exited.
func (n *node) kill(t testing.TB) {
	t.Helper()
	signal(n.processes(t), syscall.SIGKILL)
	<-n.server.Done()
	require.NoError(t, n.server.Stop(context.Background()))
	n.server = nil
}

// stopAll stops the servers that are still running.
func stopAll(t testing.TB, nodes []*node) {
	t.Helper()
	for _, n := range nodes {
		if n.server != nil {
			ctx, end := context.WithTimeout(context.Background(), patience)
			assert.NoError(t, n.server.Stop(ctx))
			end()
		}
	}
}

// Freeze pauses the primary, with all of its processes, until thaw is called.
func (p *Pair) Freeze() (thaw func()) {
	p.t.Helper()
	return p.nodes[p.primary].freeze(p.t)
}

func (n *node) freeze(t testing.TB) (thaw func()) {
	t.Helper()
	pids := n.processes(t)
	signal(pids, syscall.SIGSTOP)
	thaw = sync.OnceFunc(func() { signal(pids, syscall.SIGCONT) })
	t.Cleanup(thaw)
	return thaw
}

// FreezeWalSender pauses the primary's WAL sender for ever, so that the standby receives nothing more, as over a slow
// network.
func (p *Pair) FreezeWalSender() {
	p.t.Helper()
	conn := Connect(p.t, p.Primary())
	for _, pid := range Column[int32](p.t, conn, `SELECT pid FROM pg_stat_replication`) {
		require.NoError(p.t, syscall.Kill(int(pid), syscall.SIGSTOP))
	}
	_ = conn.Close(context.Background())
}

// Promote makes the standby the primary, whatever the state of the old primary.
func (p *Pair) Promote() {
	p.t.Helper()
	p.primary = 1 - p.primary
	conn := Connect(p.t, p.nodes[p.primary].server.URL())
	require.Equal(p.t, []bool{true}, Column[bool](p.t, conn, `SELECT pg_promote(true, 240)`))
	_ = conn.Close(context.Background())
}

// Rejoin starts the killed server as a standby of the present primary.
func (p *Pair) Rejoin() {
	p.t.Helper()
	standby, primary := p.nodes[1-p.primary], p.nodes[p.primary]
	if _, err := os.Stat(filepath.Join(standby.cluster(), "standby.signal")); err != nil { // the server was a primary
		p.Exec("CHECKPOINT") // before PostgreSQL 16, pg_rewind does not find the new timeline without it
		standby.run(p.t, p.bin, "pg_rewind", "--target-pgdata="+standby.cluster(), "--source-server="+primary.source(p.t), "--no-sync")
	}
	p.follow(standby, primary)
	p.AwaitStandby()
}
