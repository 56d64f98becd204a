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
	// name is the name of the database, and of the role that owns everything in the database.
	name = "footfall"
	// longestSocketPath is the maximum length of a socket's path that works on every Unix. Linux allows four bytes more.
	longestSocketPath = 103
	// Port is the TCP port, and part of the socket's name. It is not 5432, which another server of
	// the machine may use.
	Port = 5433
)

// hba accepts every client that can enter the socket's private directory. It requires a password from TCP clients,
// which can connect if an operator sets listen_addresses.
const hba = `# Written once by Footfall, which does not change this file again.
# The Unix socket lies in a directory that only the server's user and root can enter.
local  all          all       trust
local  replication  all       trust
host   all          all  all  scram-sha-256
`

// settings are written to postgresql.conf when the cluster is created. They are not passed on the command line,
// because there they would override an operator's settings in that file or by ALTER SYSTEM.
const settings = `
# Written once by Footfall, which does not change this file again: edit it, or use ALTER SYSTEM.
cluster_name = 'footfall'
listen_addresses = ''          # only the Unix socket; TCP connections need a password
shared_buffers = 256MB
max_wal_size = 4GB             # after a checkpoint every changed page is written to the WAL in full,
checkpoint_timeout = 15min     # so rare checkpoints save most of the writing
max_connections = 100
max_locks_per_transaction = 256 # late visits may take some for each of their visitors' later days
jit = off                      # statements are short: compiling them would take longer than running them
logging_collector = on         # a file for each day of the week, the oldest overwritten
log_error_verbosity = terse    # details may have addresses of visitors in them
log_filename = 'postgresql-%a.log'
log_truncate_on_rotation = on
log_rotation_age = 1d
log_rotation_size = 0
`

func clusterIn(dir string) string { return filepath.Join(dir, "postgres") }

// clusterMajor returns the major version of the cluster, or 0 if there is no cluster yet.
func clusterMajor(cluster string) (int, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		// An operator may have prepared an empty folder. A folder with other content is not used.
		entries, err := os.ReadDir(cluster)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("list the files in %s: %w", cluster, err)
		}
		if len(entries) > 0 {
			return 0, fmt.Errorf("%s is not empty, and is not a PostgreSQL cluster (it has no PG_VERSION): "+
				"move it away, or name another folder", cluster)
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

// chooseBinaries finds binaries of the cluster's major version, so that no other version ever runs on the cluster. If
// there are none, the error contains a remedy. For a new cluster, major is 0, and any supported version fits.
func chooseBinaries(cfg Config, major int, as *account) (binaries, error) {
	bin, err := findBinaries(cfg.BinDir, major, as)
	if err != nil {
		return binaries{}, err
	}
	if major != 0 && bin.major != major {
		return binaries{}, fmt.Errorf("the data in %s is of PostgreSQL %d, but the binaries in %s are of PostgreSQL %d: "+
			"name the folder of a PostgreSQL %d with --postgres-bin, or copy the data to a newer version with footfall upgrade; nothing was changed",
			clusterIn(cfg.Dir), major, bin.dir, bin.major, major)
	}
	return bin, nil
}

// makeCluster creates the cluster under another name and renames it when it is complete. So an
// existing cluster is complete, even if an earlier attempt was interrupted.
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
	// The locale C exists everywhere and never changes its order, so indexes survive an upgrade of
	// the operating system, and LIKE 'prefix%' can use them. Texts are UTF-8 nevertheless.
	args := []string{"--pgdata", unfinished, "--username", name, "--encoding=UTF8", "--locale=C", "--data-checksums",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions"}
	synced := cfg.Settings["fsync"] != "off"
	if !synced {
		args = append(args, "--no-sync")
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin.dir, "initdb"), args...)
	if output, err := runInitdb(initdb, as, inherited); ctx.Err() != nil {
		return fmt.Errorf("create a PostgreSQL cluster: %w", ctx.Err())
	} else if err != nil {
		return failedInitdb(cfg.Dir, err, output)
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
	cfg.Log.Info("created a PostgreSQL cluster", "dir", cluster, "major", bin.major, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func runInitdb(cmd *exec.Cmd, as *account, inherited *lock) (string, error) {
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{inherited.file}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second // for the children of initdb, which also have the output pipe open
	p, err := spawn(cmd, as)
	if err == nil {
		<-p.done
		err = p.err
	}
	return output.String(), err
}

// configure completes the files of a cluster on which no server has run yet. Footfall never writes these files
// later, because a superuser of the database could have replaced them by links, through which root would write.
func configure(cluster string) error {
	access := filepath.Join(cluster, "pg_hba.conf")
	// WriteFile keeps the owner set by initdb.
	if err := os.WriteFile(access, []byte(hba), 0o600); err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(cluster, "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString(settings)
	return errors.Join(err, conf.Sync(), conf.Close(), syncFile(access))
}

// socketDir creates the folder of the Unix socket, private to the server's user, and returns its path. The path is
// always the same for a data directory, so that clients find the server again after a restart.
func socketDir(cfg Config, port int, as *account) (string, error) {
	dir := filepath.Join(cfg.Dir, "socket")
	// PostgreSQL and its clients read only the part of a path before a comma.
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
		return "", fmt.Errorf("create the folder of PostgreSQL's socket: %w", err)
	}
	if !info.IsDir() || !as.owns(info) || info.Mode().Perm() != 0o700 {
		return "", fmt.Errorf("%s, the folder of PostgreSQL's socket, is not a private folder (mode 0700) of %s: remove it", dir, as)
	}
	return dir, nil
}

func socketIn(dir string, port int) string {
	return filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port))
}

func socketURL(dir string, port int) string {
	query := url.Values{"host": {dir}, "port": {strconv.Itoa(port)}}.Encode()
	query = strings.ReplaceAll(query, "+", "%20") // PostgreSQL's clients do not read a plus as a space
	u := url.URL{Scheme: "postgres", User: url.User(name), Path: "/" + name, RawQuery: query}
	return u.String()
}

// postmasterPID is the content of postmaster.pid, a file that a server writes in its cluster. If a server is
// killed, the file remains.
type postmasterPID struct {
	pid, port int
	socketDir string
}

// readPostmasterPID reads postmaster.pid. It returns nil if there is no such file, or if the server has not yet
// written its socket into the file.
func readPostmasterPID(cluster string) (*postmasterPID, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("the PostgreSQL cluster belongs to another user: run this as that user or as root (%w)", err)
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

// runningURL returns the URL of the server that wrote postmaster.pid. It returns "" if the socket's
// folder does not belong to the server's user, because in /tmp another user could have created it.
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
	return socketURL(server.socketDir, server.port), nil
}

// dropForeignPID removes a postmaster.pid if the process with the number in this file exists but is not
// PostgreSQL. This happens, for example, after a reboot or in a restarted container. PostgreSQL would take that
// process for a running server. The caller must have checked that no server runs on the cluster.
func dropForeignPID(cluster string) error {
	server, err := readPostmasterPID(cluster)
	if err != nil || server == nil {
		return err
	}
	program, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", server.pid))
	if err != nil || strings.HasPrefix(string(program), "postgres") {
		return nil // the process may be a server (or there is no /proc): PostgreSQL's own check decides
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
