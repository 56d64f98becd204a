// Package embedded runs a PostgreSQL server as a child of Footfall, in Footfall's data directory.
//
// The server belongs to the process that started it: it stops with it, however that ends, and nobody else
// starts one on the same directory meanwhile. Start is for a process that serves; Use is for a short
// command, which attaches to the server that runs or starts one for its own duration.
//
// Clients reach the server through a Unix socket in a directory that only its user may enter, so local
// connections need no password. A TCP port is opened on request only, and always asks for one.
//
// The data directory holds
//
//	postgres/              the cluster; postgres/log has the server's log, a file a day for a week
//	postgres.unfinished/   a cluster whose making was interrupted; the next start begins it anew
//	postgres-start.log     what the server said before its log was open
//	socket/                the Unix socket, unless its path would be too long for one
//	lock/                  who uses the directory (see locks)
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"
)

// Config says where the server lives and which binaries run it.
type Config struct {
	// Dir is Footfall's data directory. It is made if it is missing.
	Dir string
	// BinDir is the folder of postgres and initdb. Empty: the newest that fits the data is looked for.
	BinDir string
	// Listen is host:port for clients over TCP, who log in with a password (scram-sha-256; the role has none
	// until one is set, with \password in psql). Empty: the Unix socket only.
	Listen string
	// Settings are server settings that win over every file, such as fsync=off for a cluster that may be lost;
	// with that one initdb does not wait for the disk either.
	Settings map[string]string
	// Wait is how long a start waits for whoever holds the directory to let it go, and how long a short command that
	// owns the server waits for those who attached to it. Zero: ten seconds.
	Wait time.Duration
	// Log gets a line for what takes long or is worth knowing. Nil: nobody does.
	Log *slog.Logger
}

// pollEvery is short beside what is waited for, and costs nothing noticeable: a file lock or a connection attempt.
const pollEvery = 10 * time.Millisecond

// exitGrace is how long a killed process may take to go, and with it its locks.
const exitGrace = time.Second

// Start starts the server of a process that serves, making the cluster first where there is none, and returns
// when it accepts connections: after a crash that is when it has recovered, however long that takes.
//
// It waits for a server that is stopping and for a short command. Another process that serves from the same
// directory is an error. Stop must be called, also when the server ended by itself.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	locks, err := openLocks(cfg.Dir)
	if err != nil {
		return nil, err
	}
	grace, cancel := context.WithTimeout(ctx, min(cfg.Wait, exitGrace))
	defer cancel()
	serving, err := waitLock(grace, locks.serve, exclusive)
	if err != nil {
		return nil, fmt.Errorf("footfall already serves from %s (%s): stop it first, or give this one another data directory: %w",
			cfg.Dir, holder(locks.serve), err)
	}
	serving.describe("serve")
	server, err := startServing(ctx, cfg, locks)
	if err != nil {
		serving.release()
		return nil, err
	}
	server.serving = serving
	return server, nil
}

func startServing(ctx context.Context, cfg Config, locks locks) (*Server, error) {
	wait, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	owner, err := waitLock(wait, locks.owner, exclusive)
	if err != nil {
		return nil, fmt.Errorf("data directory %s is still in use (%s): try again when that has ended: %w",
			cfg.Dir, holder(locks.owner), err)
	}
	owner.describe("serve")
	return launch(ctx, cfg, locks, owner)
}

// Use returns the URL of the server on cfg.Dir for a short command: of the one that runs, else of one that it
// starts. The caller must call release when it is done; that stops a server it started, after those who attached to it
// meanwhile have gone.
func Use(ctx context.Context, cfg Config) (url string, release func() error, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return "", nil, err
	}
	locks, err := openLocks(cfg.Dir)
	if err != nil {
		return "", nil, err
	}
	wait, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	for {
		if url, release, err = attachShared(cfg.Dir, locks); err != nil || release != nil {
			return url, release, err
		}
		owner, err := tryLock(locks.owner, exclusive)
		if err != nil {
			return "", nil, err
		}
		if owner != nil {
			owner.describe("a short command")
			return startForCommand(ctx, cfg, locks, owner)
		}
		if !sleep(wait, pollEvery) {
			return "", nil, fmt.Errorf("the server on %s is starting or stopping (%s): try again when it is ready: %w",
				cfg.Dir, holder(locks.owner), wait.Err())
		}
	}
}

// attachShared attaches, and keeps the owner of the server, if that is a short command, from stopping it
// before release. A nil release means that no server runs.
func attachShared(dir string, locks locks) (url string, release func() error, err error) {
	// The lock comes before the look, so that an owner who stops has either seen us or is seen by us.
	shared, err := tryLock(locks.attached, sharedBy)
	if err != nil || shared == nil {
		return "", nil, err
	}
	url, ok, err := Attach(dir)
	if err != nil || !ok {
		shared.release()
		return "", nil, err
	}
	return url, func() error { shared.release(); return nil }, nil
}

func startForCommand(ctx context.Context, cfg Config, locks locks, owner *lock) (string, func() error, error) {
	server, err := launch(ctx, cfg, locks, owner)
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() error {
		wait, cancel := context.WithTimeout(context.Background(), cfg.Wait)
		defer cancel()
		// Those who stay longer than that lose their connection.
		last, err := tryLock(locks.attached, exclusive)
		if last == nil && err == nil {
			cfg.Log.Info("waiting for other commands on this PostgreSQL to end", "dir", cfg.Dir)
			last, err = waitLock(wait, locks.attached, exclusive)
		}
		if err == nil {
			defer last.release()
		}
		stop, cancelStop := context.WithTimeout(context.Background(), cfg.Wait)
		defer cancelStop()
		return server.Stop(stop)
	}, nil
}

// Attach returns the URL of the server that runs on dir right now, for short commands; ok is false where none
// accepts connections.
func Attach(dir string) (url string, ok bool, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", false, err
	}
	url, err = runningURL(dir)
	if err != nil || url == "" {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), attachTimeout)
	defer cancel()
	switch err = ping(ctx, url); {
	case err == nil || answered(err):
		return url, true, nil
	case errors.Is(err, context.DeadlineExceeded):
		return "", false, fmt.Errorf("the PostgreSQL server on %s does not answer: %w", dir, err)
	default:
		return "", false, nil
	}
}

// withDefaults returns the configuration made whole, or what is wrong with it.
func (cfg Config) withDefaults() (Config, error) {
	if cfg.Dir == "" {
		return cfg, errors.New("the data directory has no name")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return cfg, fmt.Errorf("data directory %s: %w", cfg.Dir, err)
	}
	cfg.Dir = dir
	cfg.Wait = cmp.Or(cfg.Wait, 10*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	_, _, err = cfg.listen()
	return cfg, err
}

// listen returns the listen_addresses and the port of the server. The port also names the socket.
func (cfg Config) listen() (addresses string, port int, err error) {
	if cfg.Listen == "" {
		return "", 5432, nil
	}
	host, service, err := net.SplitHostPort(cfg.Listen)
	if err == nil {
		port, err = strconv.Atoi(service)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("PostgreSQL's listen address %q: give it as host:port, such as 127.0.0.1:5432", cfg.Listen)
	}
	return cmp.Or(host, "*"), port, nil
}

// sleep waits for d and says whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
