package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// name is the database, and the role that owns everything.
	name = "footfall"
	// longestSocketPath is what fits the socket address of every Unix; Linux would take four bytes more.
	longestSocketPath = 103
)

// hba lets in who can enter the socket's private directory, and asks everybody else for a password. The latter
// matters only where a TCP port is open.
const hba = `# Written once by Footfall; from here on this file is yours.
# The Unix socket lies in a directory that only the server's user and root can enter.
local  all          all       trust
local  replication  all       trust
host   all          all  all  scram-sha-256
`

// settings go into postgresql.conf when the cluster is made, not onto the command line, where they would win over
// what an operator sets in that file or with ALTER SYSTEM.
const settings = `
# Written once by Footfall; from here on this file is yours (or use ALTER SYSTEM).
cluster_name = 'footfall'
shared_buffers = 256MB
max_wal_size = 4GB             # a checkpoint writes every page that changed once more into the WAL,
checkpoint_timeout = 15min     # so few of them save most of the writing
max_connections = 100
jit = off                      # our statements are short: compiling them takes longer than running them
logging_collector = on         # a file for each day of the week, the oldest overwritten
log_error_verbosity = terse     # details may hold addresses of visitors
log_filename = 'postgresql-%a.log'
log_truncate_on_rotation = on
log_rotation_age = 1d
log_rotation_size = 0
`

func clusterIn(dir string) string { return filepath.Join(dir, "postgres") }

// clusterMajor is the major version that made the cluster, 0 where there is none yet.
func clusterMajor(cluster string) (int, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		// An empty folder may be somebody's preparation; anything else is not ours to touch.
		entries, err := os.ReadDir(cluster)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("look into %s: %w", cluster, err)
		}
		if len(entries) > 0 {
			return 0, fmt.Errorf("%s is not empty, but it is no PostgreSQL cluster (it has no PG_VERSION): "+
				"move it away, or use another data directory", cluster)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the cluster's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the cluster's version from %s/PG_VERSION: %w", cluster, err)
	}
	return major, nil
}

// chooseBinaries finds binaries that fit the cluster, and says what to do where there are none: a cluster of another
// major version is never touched.
func chooseBinaries(cfg Config, major int, as *account) (binaries, error) {
	bin, err := findBinaries(cfg.BinDir, major, as)
	if err != nil {
		return binaries{}, err
	}
	if major != 0 && bin.major != major {
		return binaries{}, fmt.Errorf("the data in %s is of PostgreSQL %d, and the binaries in %s are of PostgreSQL %d: "+
			"name the folder of a PostgreSQL %d with --postgres-bin, or convert the data with pg_upgrade first; nothing was changed",
			clusterIn(cfg.Dir), major, bin.dir, bin.major, major)
	}
	return bin, nil
}

// makeCluster makes the cluster under another name and moves it into place when it is complete, so that one that
// exists is complete, whatever interrupted its making.
func makeCluster(ctx context.Context, cfg Config, bin binaries, as *account, inherited *lock) error {
	began := time.Now()
	cluster, unfinished := clusterIn(cfg.Dir), clusterIn(cfg.Dir)+".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return err
	}
	if err := as.give(unfinished); err != nil {
		return err
	}
	// The locale is C because it is the one that exists everywhere and never changes its order: indexes survive an upgrade of the
	// operating system, and LIKE 'prefix%' can use them. The texts are UTF-8 all the same.
	args := []string{"--pgdata", unfinished, "--username", name, "--encoding=UTF8", "--locale=C", "--data-checksums",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions"}
	synced := cfg.Settings["fsync"] != "off"
	if !synced {
		args = append(args, "--no-sync")
	}
	if err := initdb(ctx, exec.CommandContext(ctx, filepath.Join(bin.dir, "initdb"), args...), as, inherited); err != nil {
		return err
	}
	if err := configure(unfinished); err != nil {
		return err
	}
	if err := os.Remove(cluster); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(unfinished, cluster); err != nil {
		return err
	}
	if synced {
		if err := syncFile(cfg.Dir); err != nil {
			return err
		}
	}
	cfg.Log.Info("made a PostgreSQL cluster", "dir", cluster, "major", bin.major, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func initdb(ctx context.Context, cmd *exec.Cmd, as *account, inherited *lock) error {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{inherited.file}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second // for its children, who hold the pipe
	p, err := spawn(cmd, as)
	if err == nil {
		<-p.done
		err = p.err
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("make a PostgreSQL cluster: initdb: %w\n%s", err, lastLines(said.String()))
}

// configure completes the files of a cluster that no server has run on yet. After that they are never written again: a superuser of
// the database could have put a link in their place, for root to write through.
func configure(cluster string) error {
	access := filepath.Join(cluster, "pg_hba.conf")
	if err := os.WriteFile(access, []byte(hba), 0o600); err != nil { // keeps the owner that initdb gave it
		return err
	}
	conf, err := os.OpenFile(filepath.Join(cluster, "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString(settings)
	return errors.Join(err, conf.Sync(), conf.Close(), syncFile(access))
}

// socketDir makes the folder of the Unix socket, private to the server's user, and returns it. It stays the same as long as
// the data directory does, so that clients of a server that was restarted find the new one.
func socketDir(cfg Config, port int, as *account) (string, error) {
	dir := filepath.Join(cfg.Dir, "socket")
	// PostgreSQL takes a comma for the end of the path, and so do its clients.
	if len(socketIn(dir, port)) > longestSocketPath || strings.ContainsAny(dir, ",\"\\") {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(cfg.Dir))
		dir = fmt.Sprintf("/tmp/footfall-%d-%016x", os.Geteuid(), hash.Sum64())
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return dir, as.give(dir)
	}
	info, statErr := os.Lstat(dir)
	if statErr != nil {
		return "", fmt.Errorf("make the folder of PostgreSQL's socket: %w", err)
	}
	if !info.IsDir() || !as.owns(info) || info.Mode().Perm() != 0o700 {
		return "", fmt.Errorf("%s should be a private folder (mode 0700) of %s, for PostgreSQL's socket: remove it", dir, as)
	}
	return dir, nil
}

func socketIn(dir string, port int) string {
	return filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port))
}

// socketURL names the database, reached through the socket.
func socketURL(dir string, port int, database string) string {
	query := url.Values{"host": {dir}, "port": {strconv.Itoa(port)}}.Encode()
	query = strings.ReplaceAll(query, "+", "%20") // PostgreSQL's clients take a plus literally
	u := url.URL{Scheme: "postgres", User: url.User(name), Path: "/" + database, RawQuery: query}
	return u.String()
}

// postmasterPID is what a server writes about itself into its cluster. The file outlives a server that was killed.
type postmasterPID struct {
	pid, port int
	socketDir string
}

// readPostmasterPID returns nil where there is no server, or one that has not told its socket yet.
func readPostmasterPID(cluster string) (*postmasterPID, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("the PostgreSQL cluster is another user's: run this as that user or as root: %w", err)
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 6 {
		return nil, nil
	}
	pid, errPID := strconv.Atoi(lines[0])
	port, errPort := strconv.Atoi(lines[3])
	if errPID != nil || errPort != nil {
		return nil, nil
	}
	return &postmasterPID{pid: pid, port: port, socketDir: lines[4]}, nil
}

// runningURL is the URL of the server that wrote postmaster.pid, if its socket's folder is still the server's
// user's: in /tmp somebody else could have put one there since.
func runningURL(dir string) (string, error) {
	cluster := clusterIn(dir)
	server, err := readPostmasterPID(cluster)
	if err != nil || server == nil {
		return "", err
	}
	clusterInfo, err := os.Stat(cluster)
	if err != nil {
		return "", err
	}
	socketInfo, err := os.Lstat(server.socketDir)
	if err != nil {
		return "", nil
	}
	clusterUID, _ := ownerOf(clusterInfo)
	if socketUID, _ := ownerOf(socketInfo); socketUID != clusterUID {
		return "", nil
	}
	return socketURL(server.socketDir, server.port, name), nil
}

// dropForeignPID removes a postmaster.pid whose process number now is another program's, as happens after a reboot or in a
// restarted container, and which PostgreSQL would take for a running server. That no server of ours runs is known.
func dropForeignPID(cluster string) error {
	server, err := readPostmasterPID(cluster)
	if err != nil || server == nil {
		return err
	}
	program, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", server.pid))
	if err != nil || strings.HasPrefix(string(program), "postgres") {
		return nil // none of that number, or nobody can tell (no /proc): PostgreSQL's own check decides
	}
	return os.Remove(filepath.Join(cluster, "postmaster.pid"))
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// lastLines is the end of what a program printed, where it says why it gave up.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
