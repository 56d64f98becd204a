package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"
	"go.uber.org/goleak"

	"footfall/db/embedded"
	"footfall/db/embedded/tempdir"
)

const (
	image          = "postgres:17.10-alpine"
	maxConnections = "200" // every parallel test has pools of its own
)

// copyFiles spares the log of a copy. The checkpoints that it takes instead cost little where nothing waits for a disk.
const copyFiles = " STRATEGY file_copy"

// server is where the databases of this process are. It is made by the first test that needs it and stopped by Main.
type server struct {
	base      *url.URL
	admin     *pgxpool.Pool // creates and drops databases
	copying   string        // how CREATE DATABASE copies; empty: the server's own way
	keptUntil string        // what a kept database's message adds
	stop      func(context.Context) error
	ignored   []goleak.Option // what the way the server runs leaves behind by itself

	templateOnce sync.Once
	templateName string
	templateErr  error
}

// The one server of the process, and whether there is any to stop.
var (
	started   *server
	theServer = sync.OnceValues(func() (*server, error) {
		s, err := startServer()
		started = s
		return s, err
	})
)

// stopServer stops the server if there is one. No test runs any more.
func stopServer() ([]goleak.Option, error) {
	if started == nil {
		return nil, nil
	}
	started.admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return started.ignored, started.stop(ctx)
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
	switch kind := os.Getenv("FOOTFALL_TEST_SERVER"); kind {
	case "":
	case "container":
		return startContainer(ctx)
	default:
		return nil, "", fmt.Errorf("FOOTFALL_TEST_SERVER is %q: it takes container, or nothing", kind)
	}
	if address := os.Getenv("FOOTFALL_TEST_DATABASE_URL"); address != "" {
		return &server{stop: func(context.Context) error { return nil }}, address, nil
	}
	return startEmbedded(ctx)
}

func startEmbedded(ctx context.Context) (*server, string, error) {
	dir, err := tempdir.Make()
	if err != nil {
		return nil, "", err
	}
	running, err := embedded.Start(ctx, embedded.Config{
		Dir:    dir,
		BinDir: os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"),
		// Nothing here has to survive a power cut. A log kept small stays in the memory where the cluster may lie.
		Settings: map[string]string{
			"fsync": "off", "full_page_writes": "off", "max_connections": maxConnections, "shared_buffers": "128MB",
			"wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "512MB", "autovacuum": "off",
		},
	})
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return &server{
		copying:   copyFiles,
		keptUntil: " until the server stops with the tests; to look at it later, name a server of your own in FOOTFALL_TEST_DATABASE_URL",
		stop:      func(ctx context.Context) error { return errors.Join(running.Stop(ctx), os.RemoveAll(dir)) },
	}, running.URL(), nil
}

func startContainer(ctx context.Context) (*server, string, error) {
	container, err := postgres.Run(ctx, image,
		postgres.WithDatabase("footfall"), postgres.WithUsername("footfall"), postgres.WithPassword("footfall"),
		testcontainers.WithCmdArgs("-c", "max_connections="+maxConnections, "-c", "full_page_writes=off"),
		// The image starts a first server to make the database, and says ready for that one, too.
		testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForAll(
			wait.ForLog("database system is ready to accept connections").WithOccurrence(2),
			wait.ForListeningPort("5432/tcp"),
		)),
	)
	stop := func(context.Context) error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("container of %s: %w", image, err), stop(ctx))
	}
	address, err := container.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return nil, "", errors.Join(err, stop(ctx))
	}
	return &server{
		keptUntil: " until the container goes with the tests; to look at it later, name a server of your own in FOOTFALL_TEST_DATABASE_URL",
		stop:      stop,
		// The Docker client keeps its idle connections.
		ignored: []goleak.Option{
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		},
	}, address, nil
}

// connect opens the administrator's pool.
func (s *server) connect(ctx context.Context, address string) error {
	base, err := url.Parse(address)
	if err != nil || base.Scheme == "" {
		return fmt.Errorf("%q is no URL: write it as postgres://user:password@host:5432/database", address)
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
	if err := s.admin.Ping(ctx); err != nil {
		s.admin.Close()
		return err
	}
	return nil
}

// url names a database of the server.
func (s *server) url(database string) string {
	u := *s.base
	u.Path = "/" + database
	return u.String()
}
