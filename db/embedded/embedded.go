// Package embedded runs a PostgreSQL server as a child of Footfall, in Footfall's data directory.
//
// The server belongs to the process that started it. On Linux and FreeBSD, the server stops when that process
// ends, for whatever reason. On other systems, a server can outlive a killed process, and the next start stops
// this server. No two servers run on the same directory. Start is for a process that serves. Use is for a short
// command: it attaches to the running server, or starts one that runs as long as the command.
//
// Clients reach the server through a Unix socket in a directory that only the server's user and root may enter,
// so local connections need no password. The server listens on TCP only if an operator sets listen_addresses, and
// then requires a password.
//
// The data directory contains
//
//	postgres/              the cluster; postgres/log has the server's log, one file per weekday
//	postgres.unfinished/   an incomplete cluster; the next start creates it again
//	postgres-start.log     the server's output before its log was open
//	socket/                the Unix socket, unless its path would be too long
//	lock/                  files whose locks show which processes use the directory (see serveLock)
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"footfall/pause"
)

// Config specifies where the server's data is and which binaries run it.
type Config struct {
	// Dir is Footfall's data directory. It is created if it is missing.
	Dir string
	// MustExist means that nothing is created: if there is no cluster, the error is ErrNoCluster.
	MustExist bool
	// BinDir is the folder of the programs postgres and initdb. If it is empty, a version that fits the data is
	// searched for in the folders that Find describes.
	BinDir string
	// Settings are server settings that override every file, such as fsync=off for a cluster that
	// may be lost. With fsync=off, initdb does not wait for the disk either.
	Settings map[string]string
	// Wait is how long a start waits for another process to release the directory. It is also how long a short
	// command that started the server waits for other commands that use the server. Zero means ten seconds.
	Wait time.Duration
	// Log receives lines about slow or notable events. If it is nil, there is no log.
	Log *slog.Logger
}

// pollEvery is the interval for polling a lock or a connection. Each attempt is cheap.
const pollEvery = 10 * time.Millisecond

// exitGrace is how long a killed process may take to exit, which releases its locks.
const exitGrace = time.Second

// Start starts the server for a process that serves. It creates the cluster if there is none, and
// returns when the server accepts connections. After a crash, the server first recovers, however
// long that takes.
//
// Start waits for a server that is stopping, or that a short command started. If another process serves from the
// same directory, Start returns an error. The caller must call Stop even if the server exited by itself.
func Start(ctx context.Context, cfg Config) (server *Server, err error) {
	if cfg, err = cfg.prepare(); err != nil {
		return nil, err
	}
	serving, err := waitLock(ctx, min(cfg.Wait, exitGrace), cfg.lock(serveLock))
	if err != nil {
		return nil, lockFault(cfg.Dir, err, "footfall already serves from this folder ("+holder(cfg.lock(serveLock))+
			"): stop it first, or name another folder")
	}
	defer func() {
		if err != nil {
			serving.release()
		}
	}()
	serving.describe("serve")
	owner, err := waitLock(ctx, cfg.Wait, cfg.lock(ownerLock))
	if err != nil {
		return nil, lockFault(cfg.Dir, err, "the folder is still in use ("+holder(cfg.lock(ownerLock))+"): try again when that process has ended")
	}
	owner.describe("serve")
	if server, err = launch(ctx, cfg, owner); err != nil {
		return nil, err
	}
	server.serving = serving
	return server, nil
}

// Use returns the URL of the server on cfg.Dir for a short command. If no server is running, Use starts one. The
// caller must call release when it is done. If Use started the server, release stops the server, but first waits
// for up to cfg.Wait until all other commands that use the server have ended.
func Use(ctx context.Context, cfg Config) (url string, release func() error, err error) {
	if cfg, err = cfg.prepare(); err != nil {
		return "", nil, err
	}
	wait, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	for {
		if url, release, err = cfg.attachShared(); err != nil || release != nil {
			return url, release, inDir(cfg.Dir, err)
		}
		owner, err := tryLock(cfg.lock(ownerLock), exclusive)
		if err != nil {
			return "", nil, inDir(cfg.Dir, err)
		}
		if owner != nil {
			owner.describe("a short command")
			return startForCommand(ctx, cfg, owner)
		}
		if pause.For(wait, pollEvery) != nil {
			return "", nil, lockFault(cfg.Dir, wait.Err(), "the PostgreSQL server of this folder is starting or stopping ("+
				holder(cfg.lock(ownerLock))+"): try again when it is ready")
		}
	}
}

// attachShared returns the URL of a server that is already running. If another short command started the server,
// that command waits for release before it stops the server, for up to its own Wait. A nil release means that no
// server is running or that it is stopping.
func (cfg Config) attachShared() (url string, release func() error, err error) {
	// Take the lock before looking for the server. If the command that started the server is about to stop it, that
	// command either finds this lock and waits, or already has the lock exclusively.
	shared, err := tryLock(cfg.lock(attachedLock), shared)
	if err != nil || shared == nil {
		return "", nil, err
	}
	url, ok, err := Attach(cfg.Dir)
	if err != nil || !ok {
		shared.release()
		return "", nil, err
	}
	return url, func() error { shared.release(); return nil }, nil
}

func startForCommand(ctx context.Context, cfg Config, owner *lock) (string, func() error, error) {
	server, err := launch(ctx, cfg, owner)
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() error {
		last, err := tryLock(cfg.lock(attachedLock), exclusive)
		if last == nil && err == nil {
			cfg.Log.Info("waiting for other commands that use this PostgreSQL to end", "dir", cfg.Dir)
			// Commands that take longer than cfg.Wait lose their connection.
			last, err = waitLock(context.Background(), cfg.Wait, cfg.lock(attachedLock))
		}
		if err == nil {
			defer last.release()
		}
		stop, cancel := context.WithTimeout(context.Background(), cfg.Wait)
		defer cancel()
		return server.Stop(stop)
	}, nil
}

// Attach returns the URL of the server running on dir, for short commands. ok is false if no server
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
		return "", false, fmt.Errorf("the PostgreSQL server on %s has not answered for %v: look at its log in %s", dir, attachTimeout,
			filepath.Join(clusterIn(dir), "log"))
	default:
		return "", false, nil
	}
}

// prepare returns the configuration with its defaults, and creates the data directory with its lock
// folder.
func (cfg Config) prepare() (Config, error) {
	if cfg.Dir == "" {
		return cfg, errors.New("the name of the data directory is empty")
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
	if err := cfg.checkDir(); err != nil {
		return cfg, err
	}
	return cfg, inDir(cfg.Dir, makeDir(lockFolder(cfg.Dir)))
}

// checkDir returns an error for an unsuitable folder before anything is created in it.
func (cfg Config) checkDir() error {
	if _, err := os.Stat(filepath.Join(cfg.Dir, "PG_VERSION")); err == nil {
		return inDir(cfg.Dir, errors.New("it is the cluster of a PostgreSQL server: name the folder of Footfall's data, "+
			"which contains the cluster in its folder postgres, or an empty folder"))
	}
	if !cfg.MustExist {
		return nil
	}
	for _, part := range []string{clusterIn(cfg.Dir), lockFolder(cfg.Dir)} {
		if _, err := os.Stat(part); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return nil // the folder exists or is being created, or later steps report the error better
		}
	}
	return inDir(cfg.Dir, ErrNoCluster)
}
