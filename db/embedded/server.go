package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	attachTimeout = 5 * time.Second
	// killAfter bounds the time of an immediate shutdown. The server kills its own children after five seconds.
	killAfter = 10 * time.Second
)

// Server is a PostgreSQL server started by this process.
type Server struct {
	cfg     Config
	url     string
	socket  string
	process *process
	logged  map[string]int64 // sizes of the log files when the server was started, by path
	owner   *lock
	serving *lock // nil if a short command started the server

	stop    sync.Once
	stopErr error
}

// URL returns the URL of the database footfall over the Unix socket. The URL's user is the role footfall, which
// owns the database.
func (s *Server) URL() string { return s.url }

// Done returns a channel that is closed when the server has exited for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.process.done }

// Err returns how the server exited, or nil while it is running.
func (s *Server) Err() error {
	select {
	case <-s.process.done:
	default:
		return nil
	}
	how := "by itself"
	if s.process.err != nil {
		how = s.process.err.Error()
	}
	return fmt.Errorf("PostgreSQL has exited (%s); its log is in %s", how, s.log())
}

func (s *Server) log() string { return filepath.Join(clusterIn(s.cfg.Dir), "log") }

// Stop stops the server and waits until it has exited. A fast shutdown disconnects clients and
// writes everything to disk. If ctx ends first, the server stops immediately and recovers at its
// next start. In both cases, no committed data is lost.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() { s.stopErr = s.shutDown(ctx) })
	return s.stopErr
}

func (s *Server) shutDown(ctx context.Context) error {
	if s.serving != nil {
		s.serving.release()
	}
	defer s.owner.release()
	err := s.end(ctx)
	s.awaitLast(ctx)
	_ = os.Remove(s.socket) // fails if the folder is not empty
	return err
}

// awaitLast waits at most a second for processes that may outlive the server: the process that writes its log, and
// children of a killed server. If they take longer, the next start waits for them.
func (s *Server) awaitLast(ctx context.Context) {
	if last, err := waitLock(context.WithoutCancel(ctx), time.Second, s.cfg.lock(postgresLock)); err == nil {
		last.release()
	}
}

// end makes the server exit, with stronger signals if necessary, and returns when it has exited.
func (s *Server) end(ctx context.Context) error {
	_ = s.process.Signal(syscall.SIGINT) // fails only if the server has exited
	select {
	case <-s.process.done:
		return nil
	case <-ctx.Done():
	}
	_ = s.process.Signal(syscall.SIGQUIT)
	select {
	case <-s.process.done:
	case <-time.After(killAfter):
		_ = s.process.Kill()
		<-s.process.done
	}
	return fmt.Errorf("PostgreSQL did not stop in time and was killed (it will recover at its next start): %w", context.Cause(ctx))
}

// launch starts a server. The caller must hold ownerLock, which then belongs to the returned Server. If launch returns
// an error, it has released the lock.
func launch(ctx context.Context, cfg Config, owner *lock) (server *Server, err error) {
	defer func() {
		if err != nil {
			owner.release()
		}
	}()
	as, err := accountOf(clusterIn(cfg.Dir))
	if err != nil {
		return nil, inDir(cfg.Dir, err)
	}
	major, err := clusterMajor(clusterIn(cfg.Dir))
	if err != nil {
		return nil, inDir(cfg.Dir, err)
	}
	if major == 0 && cfg.MustExist {
		return nil, inDir(cfg.Dir, ErrNoCluster)
	}
	bin, err := chooseBinaries(cfg, major, as)
	if err != nil {
		return nil, err
	}
	if err := as.checkEntry(cfg.Dir, bin); err != nil {
		return nil, inDir(cfg.Dir, err)
	}
	server, err = begin(ctx, cfg, major, bin, as)
	if err != nil {
		return nil, err
	}
	server.owner = owner
	if err := server.awaitReady(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Wait)
		defer cancel()
		return nil, errors.Join(err, server.Stop(stop))
	}
	cfg.Log.Info("PostgreSQL is running", "major", bin.major, "binaries", bin.dir, "log", server.log())
	return server, nil
}

// begin waits until an earlier server has exited, creates the cluster if there is none, and starts
// the process.
func begin(ctx context.Context, cfg Config, major int, bin binaries, as *account) (*Server, error) {
	inherited, err := waitForOldServer(ctx, cfg, bin, as)
	if err != nil {
		return nil, err
	}
	defer inherited.leaveToChildren()
	if major == 0 {
		if err := makeCluster(ctx, cfg, bin, as, inherited); err != nil {
			return nil, inDir(cfg.Dir, err)
		}
	}
	return startProcess(cfg, bin, as, inherited)
}

// waitForOldServer waits until every process of an earlier server has exited. It returns postgresLock,
// which the new server's processes inherit.
func waitForOldServer(ctx context.Context, cfg Config, bin binaries, as *account) (*lock, error) {
	inherited, err := tryLock(cfg.lock(postgresLock), exclusive)
	if err != nil || inherited != nil {
		return inherited, err
	}
	cfg.Log.Info("waiting for the PostgreSQL server of an earlier Footfall process to stop", "dir", cfg.Dir)
	// The earlier server's parent has exited, because the caller holds the owner lock. pg_ctl stops the server in
	// case the kernel did not signal it. pg_ctl runs as the server's user: root must not signal a process whose ID
	// comes from a file of that user.
	_, _ = as.run(filepath.Join(bin.dir, "pg_ctl"), "/", "stop", "--mode=fast", "--no-wait", "--pgdata", clusterIn(cfg.Dir))
	inherited, err = waitLock(ctx, cfg.Wait, cfg.lock(postgresLock))
	if err != nil {
		return nil, lockFault(cfg.Dir, err, "processes of the earlier PostgreSQL server are still running: try again when they have ended")
	}
	return inherited, nil
}

// startProcess starts the server's process. The process and its children hold the inherited lock
// until all of them have exited.
func startProcess(cfg Config, bin binaries, as *account, inherited *lock) (*Server, error) {
	cluster := clusterIn(cfg.Dir)
	if err := dropForeignPID(cluster); err != nil {
		return nil, err
	}
	socket, err := socketDir(cfg, Port, as)
	if err != nil {
		return nil, inDir(cfg.Dir, err)
	}
	args := []string{"-D", cluster,
		"-c", "port=" + strconv.Itoa(Port),
		"-c", "unix_socket_directories=" + socket,
		"-c", "unix_socket_permissions=0700",
	}
	for _, setting := range slices.Sorted(maps.Keys(cfg.Settings)) {
		args = append(args, "-c", setting+"="+cfg.Settings[setting])
	}
	startLog, err := os.OpenFile(startLogIn(cfg.Dir), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, inDir(cfg.Dir, err)
	}
	defer func() { _ = startLog.Close() }() // the server has its own copy
	logged := serverLogs(cluster)
	cmd := exec.Command(filepath.Join(bin.dir, "postgres"), args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = startLog, startLog
	cmd.ExtraFiles = []*os.File{inherited.file}
	process, err := spawn(cmd, as)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return &Server{cfg: cfg, url: socketURL(socket, Port), socket: socket, process: process, logged: logged}, nil
}

func startLogIn(dir string) string { return filepath.Join(dir, "postgres-start.log") }

// awaitReady waits until the server accepts connections to the database, and creates the database
// if it is missing.
func (s *Server) awaitReady(ctx context.Context) error {
	began, logged := time.Now(), false
	for {
		err := ping(ctx, s.url)
		switch {
		case err == nil:
			return nil
		case sqlState(err) == unknownDatabase:
			if err := createDatabase(ctx, s.url); err != nil {
				return err
			}
			continue
		case answered(err):
			return fmt.Errorf("connect to the started PostgreSQL: %w", err)
		}
		if !logged && time.Since(began) > 5*time.Second {
			logged = true
			s.cfg.Log.Info("PostgreSQL is not ready yet; it may be recovering from a crash", "err", err, "log", s.log())
		}
		select {
		case <-s.process.done:
			s.awaitLast(ctx)
			printed, _ := os.ReadFile(startLogIn(s.cfg.Dir)) // if this fails, the message below is only shorter
			return fmt.Errorf("%w; it printed when it started:\n%s", s.Err(), lastLines(string(printed)+loggedSince(clusterIn(s.cfg.Dir), s.logged)))
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL was not ready in time: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

func ping(ctx context.Context, url string) error {
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// createDatabase creates the database of the URL, over a connection to the database postgres, which
// every cluster has.
func createDatabase(ctx context.Context, url string) error {
	conn, err := pgconn.Connect(ctx, strings.Replace(url, "/"+name+"?", "/postgres?", 1))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()).ReadAll(); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

const (
	unknownDatabase = "3D000"
	cannotConnect   = "57P03" // starting up, recovering or shutting down
)

// sqlState returns the code of a server's error, or "" for any other error.
func sqlState(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}

// answered reports whether err is the response of a running server that has the database.
func answered(err error) bool {
	code := sqlState(err)
	return code != "" && code != cannotConnect && code != unknownDatabase
}
