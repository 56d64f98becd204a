// Package bench measures Footfall: beside other ways of counting visits, in one process (Compare) or over HTTP (HTTP), and its
// reports (Reports). Each starts a PostgreSQL of its own with its default, durable settings, or makes databases of its own on
// a server that is named, and removes them when it ends.
package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/bench/tables"
	"footfall/counter"
	"footfall/db"
	"footfall/db/embedded"
)

// Machine is where a report was measured.
type Machine struct {
	CPUs       int    `json:"cpus"`
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
	Fsync      string `json:"fsync"`
	Commit     string `json:"synchronousCommit"`
	Began      string `json:"began"`
}

func (m Machine) String() string {
	return fmt.Sprintf("%d CPUs, %s, PostgreSQL %s, fsync %s, synchronous_commit %s", m.CPUs, m.Go, m.PostgreSQL, m.Fsync, m.Commit)
}

// server is the PostgreSQL of a run.
type server struct {
	base  *url.URL
	admin *pgx.Conn // used by the run's goroutine alone
	stop  func() error
}

// openServer uses the server that databaseURL names, or starts one with its data in a new folder in dir.
func openServer(ctx context.Context, databaseURL, dir, binDir string) (_ *server, err error) {
	s := &server{stop: func() error { return nil }}
	if databaseURL == "" {
		if databaseURL, s.stop, err = startServer(ctx, dir, binDir); err != nil {
			return nil, err
		}
	}
	if s.base, err = url.Parse(databaseURL); err != nil || s.base.Scheme == "" {
		return nil, errors.Join(errors.New("database url: it should look like postgres://user:password@host:5432/database"), s.stop())
	}
	if s.admin, err = pgx.Connect(ctx, databaseURL); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: %w", err), s.stop())
	}
	return s, nil
}

func startServer(ctx context.Context, dir, binDir string) (address string, stop func() error, err error) {
	if dir == "" {
		dir = os.TempDir()
	}
	folder, err := os.MkdirTemp(dir, "footfall-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("bench: %w", err)
	}
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // where root runs this, the server's user must get in
		return "", nil, errors.Join(err, os.RemoveAll(folder))
	}
	running, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(folder, "data"), BinDir: binDir})
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("bench: %w", err), os.RemoveAll(folder))
	}
	return running.URL(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return errors.Join(running.Stop(ctx), os.RemoveAll(folder))
	}, nil
}

func (s *server) close() error {
	return errors.Join(s.admin.Close(context.Background()), s.stop())
}

func (s *server) machine(ctx context.Context) (Machine, error) {
	v, err := tables.New(s.admin).ServerVersion(ctx)
	if err != nil {
		return Machine{}, fmt.Errorf("bench: ask the server: %w", err)
	}
	return Machine{
		CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version(), PostgreSQL: v.Version, Fsync: v.Fsync, Commit: v.SynchronousCommit,
		Began: time.Now().UTC().Format(time.RFC3339),
	}, nil
}

// made counts the databases of this process, so that no two have one name.
var made atomic.Int64

// database makes an empty database and returns its URL. drop removes it; it must be called.
func (s *server) database(ctx context.Context, name string) (address string, drop func() error, err error) {
	name = fmt.Sprintf("footfall_bench_%d_%d_%s", os.Getpid(), made.Add(1), name)
	quoted := pgx.Identifier{name}.Sanitize()
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+quoted+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return "", nil, fmt.Errorf("bench: %w", err)
	}
	drop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+quoted+" WITH (FORCE)")
		return err
	}
	// What the run before left in memory is written out now, and not while this one is measured.
	if err := tables.New(s.admin).Checkpoint(ctx); err != nil {
		return "", nil, errors.Join(fmt.Errorf("bench: %w", err), drop())
	}
	named := *s.base
	named.Path = "/" + name
	return named.String(), drop, nil
}

const (
	app   = "demo"
	site  = "bench.example"
	pages = 1000
)

// maxWait lets the service refuse nobody on a machine that is busy with something else: a refused visit ends a comparison.
const maxWait = time.Minute

// openFootfall migrates a database and adds the app that counts.
func openFootfall(ctx context.Context, address string) (*db.DB, error) {
	d, err := openMigrated(ctx, address)
	if err != nil {
		return nil, err
	}
	open := "open"
	if err := counter.NewAdmin(d, nil).AddApp(ctx, app, counter.Settings{Access: &open}); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// openMigrated migrates a database.
func openMigrated(ctx context.Context, address string) (*db.DB, error) {
	d, err := db.Open(ctx, address, db.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := d.MigrateUp(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// internTargets returns the ids of the site and of all pages, by uri.
func internTargets(ctx context.Context, d *db.DB) (map[string]int64, error) {
	apps, err := d.Apps(ctx)
	if err != nil || len(apps) != 1 {
		return nil, fmt.Errorf("bench: there should be one app: %v, %w", apps, err)
	}
	uris, sites := make([]string, pages), make([]string, pages)
	for i := range uris {
		uris[i], sites[i] = pageURI(i), site
	}
	ids, _, err := d.Intern(ctx, db.Interning{App: apps[0].ID, By: apps[0].CountsBy(), Pages: uris, Sites: sites})
	return ids, err
}

// connect opens a connection to Footfall's tables with the settings of those that write batches.
func connect(ctx context.Context, address string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	for name, value := range map[string]string{
		"search_path": db.Schema, "plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off",
	} {
		cfg.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return conn, nil
}

// spread is a median between the least and the most.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}
