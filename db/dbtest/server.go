package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"footfall/db/embedded"
	"footfall/db/embedded/tempdir"
)

const (
	// EnvDatabaseURL is the environment variable with the URL of a database on a running server.
	EnvDatabaseURL = "FOOTFALL_TEST_DATABASE_URL"
	// MaxConnections is enough for several packages that are tested at the same time, with parallel tests that have
	// their own pools.
	MaxConnections = "500"
)

// copyFiles makes PostgreSQL copy a database without writing the copy to its write-ahead log. This needs additional
// checkpoints, which are cheap if they do not wait for a disk.
const copyFiles = " STRATEGY file_copy"

// server is the PostgreSQL server with the databases of this test process. The first test that needs a database chooses
// or starts the server, and Run stops it.
type server struct {
	base    *url.URL
	admin   *pgxpool.Pool // creates and drops databases
	copying string        // the option STRATEGY of CREATE DATABASE; empty: the server's default
	stop    func(context.Context) error

	templateOnce sync.Once
	templateName string
	templateErr  error

	mu   sync.Mutex                   // guards made
	made map[string]*preparedDatabase // by the name passed to NewPrepared
}

// preparedDatabase is a database that NewPrepared prepares once and copies for each test.
type preparedDatabase struct {
	once sync.Once
	name string // empty until the database is ready
}

func (s *server) madeOf(name string) *preparedDatabase {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[name] == nil {
		s.made[name] = new(preparedDatabase)
	}
	return s.made[name]
}

// theServer returns the only server of the process. started is this server, or nil if no test has needed it yet.
var (
	started   *server
	theServer = sync.OnceValues(func() (*server, error) {
		s, err := startServer()
		started = s
		return s, err
	})
)

// stopServer drops the databases in made, and closes the pool admin. If this process has started the server, stopServer
// also stops the server. No test may be running.
func stopServer() error {
	if started == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	for _, m := range started.made {
		errs = append(errs, started.drop(ctx, m.name))
	}
	started.admin.Close()
	return errors.Join(append(errs, started.stop(ctx))...)
}

func startServer() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, address, err := chooseServer(ctx)
	if err != nil {
		return nil, err
	}
	err = s.connect(ctx, address)
	if err != nil {
		return nil, errors.Join(err, s.stop(ctx))
	}
	return s, nil
}

func chooseServer(ctx context.Context) (s *server, address string, err error) {
	if address := os.Getenv(EnvDatabaseURL); address != "" {
		return &server{made: map[string]*preparedDatabase{}, stop: func(context.Context) error { return nil }}, address, nil
	}
	dir, err := tempdir.Make()
	if err != nil {
		return nil, "", err
	}
	running, err := StartIn(ctx, dir)
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	stop := func(ctx context.Context) error { return errors.Join(running.Stop(ctx), os.RemoveAll(dir)) }
	return &server{made: map[string]*preparedDatabase{}, stop: stop}, running.URL(), nil
}

// StartIn starts a server for tests. The server's user must be able to enter the folder dir.
func StartIn(ctx context.Context, dir string) (*embedded.Server, error) {
	return embedded.Start(ctx, embedded.Config{
		Dir:    dir,
		BinDir: os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"),
		Wait:   patience,
		// Nothing here has to survive a power cut. A cluster in memory needs a small write-ahead log.
		Settings: map[string]string{
			"fsync": "off", "full_page_writes": "off", "max_connections": MaxConnections, "shared_buffers": "128MB",
			"wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "512MB", "autovacuum": "off",
		},
	})
}

// connect opens the pool admin, and sets base and copying.
func (s *server) connect(ctx context.Context, address string) error {
	base, err := url.Parse(address)
	if err != nil || base.Scheme == "" {
		return fmt.Errorf("%q is not a URL: write it as postgres://user:password@host:5432/database", address)
	}
	s.base = base
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return err
	}
	cfg.MaxConns = 4
	if s.admin, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	var disk string
	if err := s.admin.QueryRow(ctx, "SHOW fsync").Scan(&disk); err != nil {
		s.admin.Close()
		return err
	}
	if disk == "off" {
		s.copying = copyFiles
	}
	return nil
}

// url returns the URL of a database of the server, with a long time limit for connecting.
func (s *server) url(database string) string {
	u := *s.base
	u.Path = "/" + database
	q := u.Query()
	q.Set("connect_timeout", strconv.Itoa(int(patience.Seconds())))
	u.RawQuery = q.Encode()
	return u.String()
}
