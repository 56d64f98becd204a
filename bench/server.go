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
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/bench/tables"
	"footfall/db"
	"footfall/db/embedded"
	"footfall/pause"
)

// LiveHeap is the memory of what this program can reach at the moment.
func LiveHeap() int64 {
	runtime.GC()
	runtime.GC() // what the first one found to be finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a size
}

// Server is the PostgreSQL of a run. One goroutine uses it.
type Server struct {
	base  *url.URL
	admin *pgx.Conn
	stop  func() error
	made  []string // addresses of databases that are not dropped yet
}

// OpenServer uses the server that is named, or starts one with its data in a new folder. It must be
// closed.
func OpenServer(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{stop: func() error { return nil }}
	address := o.DatabaseURL
	if address == "" {
		if address, s.stop, err = startServer(ctx, o.Dir, o.PostgresBin); err != nil {
			return nil, err
		}
	}
	if s.base, err = url.Parse(address); err != nil || s.base.Scheme == "" {
		return nil, errors.Join(errors.New("database url: it should look like postgres://user:password@host:5432/database"), s.stop())
	}
	if s.admin, err = pgx.Connect(ctx, address); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: %w", err), s.stop())
	}
	return s, nil
}

func startServer(ctx context.Context, dir, binDir string) (address string, stop func() error, err error) {
	folder, err := os.MkdirTemp(dir, "footfall-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("bench: %w", err)
	}
	remove := func() error { return os.RemoveAll(folder) }
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // where root runs this, the server's user must get in
		return "", nil, errors.Join(err, remove())
	}
	address, release, err := embedded.Use(ctx, embedded.Config{Dir: filepath.Join(folder, "data"), BinDir: binDir})
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("bench: %w", err), remove())
	}
	return address, func() error { return errors.Join(release(), remove()) }, nil
}

// Close removes what was made and started.
func (s *Server) Close() (err error) {
	for len(s.made) > 0 {
		err = errors.Join(err, s.Drop(s.made[0]))
	}
	return errors.Join(err, s.admin.Close(context.Background()), s.stop())
}

// Machine says where something is measured, and when.
func (s *Server) Machine(ctx context.Context) (string, error) {
	v, err := tables.New(s.admin).ServerVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("bench: ask the server: %w", err)
	}
	return fmt.Sprintf("%d CPUs, %s, PostgreSQL %s, fsync %s, synchronous_commit %s, begun %s", runtime.GOMAXPROCS(0), runtime.Version(), v.Version, v.Fsync,
		v.SynchronousCommit, time.Now().UTC().Format(time.RFC3339)), nil
}

// made counts the databases of this process, so that no two have one name.
var made atomic.Int64

// Database makes a database, an empty one or a copy of the one that template names, and returns its
// URL. It exists until Drop or Close.
func (s *Server) Database(ctx context.Context, template string) (address string, err error) {
	named, from := *s.base, "template0 ENCODING 'UTF8'"
	named.Path = fmt.Sprintf("/footfall_bench_%d_%d", os.Getpid(), made.Add(1))
	if address = named.String(); template != "" {
		from = nameOf(template) + " STRATEGY file_copy"
	}
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+nameOf(address)+" TEMPLATE "+from); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	s.made = append(s.made, address)
	// What the run before left in memory is written out now, and not while this one is measured.
	return address, tables.New(s.admin).Checkpoint(ctx)
}

// Drop removes a database.
func (s *Server) Drop(address string) error {
	s.made = slices.DeleteFunc(s.made, func(made string) bool { return made == address })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+nameOf(address)+" WITH (FORCE)")
	return err
}

// nameOf is the name of a database that Database made.
func nameOf(address string) string {
	path, _, _ := strings.Cut(address, "?")
	return path[strings.LastIndex(path, "/")+1:]
}

// Ask runs f on a connection of its own that sees Footfall's tables.
func Ask(ctx context.Context, address string, f func(q *tables.Queries) error) error {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	cfg.RuntimeParams["search_path"] = db.Schema
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // each query is planned for what it asks
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(tables.New(conn))
}

// Vacuum does what autovacuum does in its own time.
func Vacuum(ctx context.Context, address string) error {
	return Ask(ctx, address, func(q *tables.Queries) error { return q.Vacuum(ctx) })
}

// Migrated opens the database, its schema brought up to date.
func Migrated(ctx context.Context, address string) (*db.DB, error) {
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

// RowsWritten is how many rows have been written into the tables of a database since it was made.
// It waits until nobody is connected to it any more: a session need not tell before it ends.
func (s *Server) RowsWritten(ctx context.Context, address string) (rows int64, err error) {
	err = WaitUntil(ctx, "all sessions have ended", func() (bool, error) {
		sessions, err := tables.New(s.admin).Sessions(ctx, nameOf(address))
		return sessions == 0, err
	})
	if err != nil {
		return 0, err
	}
	err = Ask(ctx, address, func(q *tables.Queries) error { rows, err = q.RowsWritten(ctx); return err })
	return rows, err
}

// WAL is how many bytes the server has written into its log.
func (s *Server) WAL(ctx context.Context) (int64, error) { return tables.New(s.admin).WALPosition(ctx) }

const (
	patience  = 30 * time.Minute // a filter of many millions is read for minutes
	lookAgain = 2 * time.Millisecond
)

// WaitUntil returns when done says so, or fails.
func WaitUntil(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		if err := pause.For(ctx, lookAgain); err != nil {
			return fmt.Errorf("bench: waited in vain until %s: %w", what, err)
		}
	}
}
