package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/bench/tables"
	"footfall/db"
	"footfall/db/embedded"
	"footfall/pause"
)

// LiveHeap returns the size in bytes of all reachable objects on the Go heap.
func LiveHeap() int64 {
	runtime.GC()
	runtime.GC() // a second time, to free objects that have finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a size
}

// Machine returns a text about this machine, the Go version and the present time.
func Machine() string {
	return fmt.Sprintf("%d CPUs, %s, started %s", runtime.GOMAXPROCS(0), runtime.Version(), time.Now().UTC().Format(time.RFC3339))
}

// Server is the PostgreSQL server of a benchmark. It is not safe for concurrent use.
type Server struct {
	URL     string // URL of the server that the options name, or of the server that OpenServer has started
	Machine string // text about the machine, the time, and the settings of PostgreSQL
	admin   *pgx.Conn
	stop    func() error
	made    []string // URLs of all databases that were created, including dropped ones
}

// OpenServer connects to the server that the options name, or starts an embedded server. A started server has its data in
// the folder data. If data is "", it uses a new folder, which Close removes. The caller must close the Server.
func OpenServer(ctx context.Context, o Options, data string) (_ *Server, err error) {
	s := &Server{URL: o.DatabaseURL, stop: func() error { return nil }}
	if data != "" || s.URL == "" {
		remove := s.stop
		if data == "" {
			folder, err := os.MkdirTemp(o.Dir, "footfall-bench-")
			data, remove = filepath.Join(folder, "data"), func() error { return os.RemoveAll(folder) }
			if err := errors.Join(err, os.Chmod(folder, 0o755)); err != nil { //nolint:gosec // if root runs this, the server's user needs access
				return nil, errors.Join(fmt.Errorf("bench: %w", err), remove())
			}
		}
		url, release, err := embedded.Use(ctx, embedded.Config{Dir: data, BinDir: o.PostgresBin})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: %w", err), remove())
		}
		s.URL, s.stop = url, func() error { return errors.Join(release(), remove()) }
	}
	if s.admin, err = pgx.Connect(ctx, s.URL); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: %w", err), s.stop())
	}
	v, err := tables.New(s.admin).ServerVersion(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: query the server: %w", err), s.Close())
	}
	s.Machine = fmt.Sprintf("%s, PostgreSQL %s, fsync %s, synchronous_commit %s", Machine(), v.Version, v.Fsync, v.SynchronousCommit)
	return s, nil
}

// Close drops the databases that the method Database has created. If OpenServer has started the server, Close also stops
// it.
func (s *Server) Close() (err error) {
	for _, address := range s.made {
		err = errors.Join(err, s.Drop(address))
	}
	return errors.Join(err, s.admin.Close(context.Background()), s.stop())
}

// made is the number of databases that this process has created. It makes their names unique.
var made atomic.Int64

// Database creates a database and returns its URL. If template is "", the database is empty. Otherwise it is a copy of the
// database with the URL template. Drop or Close drops the new database.
func (s *Server) Database(ctx context.Context, template string) (address string, err error) {
	named, err := url.Parse(s.URL)
	if err != nil || named.Scheme == "" {
		return "", errors.New("database url: it should look like postgres://user:password@host:5432/database")
	}
	named.Path = fmt.Sprintf("/footfall_bench_%d_%d", os.Getpid(), made.Add(1))
	from := "template0 ENCODING 'UTF8'"
	if address = named.String(); template != "" {
		from = nameOf(template) + " STRATEGY file_copy"
	}
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+nameOf(address)+" TEMPLATE "+from); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	s.made = append(s.made, address)
	// PostgreSQL now writes all changed pages to disk, so that it does not write them during the measurement.
	return address, tables.New(s.admin).Checkpoint(ctx)
}

// Drop drops the database with this URL.
func (s *Server) Drop(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+nameOf(address)+" WITH (FORCE)")
	return err
}

// nameOf returns the name of a database. address is a URL that the method Database has returned.
func nameOf(address string) string {
	path, _, _ := strings.Cut(address, "?")
	return path[strings.LastIndex(path, "/")+1:]
}

// WithQueries opens a new connection to a database with Footfall's tables, and calls f with queries on this connection.
func WithQueries(ctx context.Context, address string, f func(q *tables.Queries) error) error {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	cfg.RuntimeParams["search_path"] = db.Schema
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // PostgreSQL plans each query for its actual parameters
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(tables.New(conn))
}

// OpenMigrated opens a database, and creates or updates Footfall's schema in it.
func OpenMigrated(ctx context.Context, address string) (*db.DB, error) {
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

// WaitUntil calls done again and again until it returns true or an error. If this takes too long, the error's text is
// "waited until" followed by what.
func WaitUntil(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute) // loading a filter with many millions of visitors takes minutes
	defer cancel()
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		if err := pause.For(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("bench: waited until %s: %w", what, err)
		}
	}
}

// Process is a running process of Footfall's service.
type Process struct {
	URL    string
	Admin  string // URL of the service's admin address, which serves the metrics
	cmd    *exec.Cmd
	lives  context.Context //nolint:containedctx // ends with the process
	stop   func()          // sends SIGTERM to the process
	output bytes.Buffer    // output of the process; valid after ended is closed
	ended  chan struct{}   // closed when the process has ended; from then on, result is set
	result error
}

// Names of the service's metrics that the benchmarks read.
const (
	MetricWaiting     = "footfall_visits_waiting"
	MetricAsked       = "footfall_existence_queries_total"
	MetricFilterReady = "footfall_filter_ready"
)

// Start starts a service, and returns when the service is ready. arguments returns the arguments of the program. Its
// parameters are the two addresses on which the service must listen. The service stops when ctx ends or Stop is called. The
// caller must call Stop.
func Start(ctx context.Context, program string, arguments func(addr, admin string) []string) (_ *Process, err error) {
	addrs, err := freeAddrs(ctx)
	if err != nil {
		return nil, err
	}
	p := &Process{URL: "http://" + addrs[0], Admin: "http://" + addrs[1], ended: make(chan struct{})}
	p.lives, p.stop = context.WithCancel(ctx)
	p.cmd = exec.CommandContext(p.lives, program, arguments(addrs[0],
		addrs[1])...) //nolint:gosec // this program itself, or one that the caller names
	p.cmd.Cancel = func() error { return errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), os.ErrProcessDone) } // a requested end is no error
	p.cmd.WaitDelay = 30 * time.Second
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: start %s: %w", p.cmd, err)
	}
	go func() {
		p.result = p.cmd.Wait()
		p.stop()
		close(p.ended)
	}()
	err = WaitUntil(p.lives, "it is ready", func() (bool, error) {
		_, err := Fetch(ctx, p.URL+"/readyz")
		return err == nil, nil // ignore the error, because Fetch fails until the service listens
	})
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// freeAddrs returns two addresses on the loopback interface with unused ports.
func freeAddrs(ctx context.Context) (addrs [2]string, err error) {
	for i := range addrs {
		free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return addrs, fmt.Errorf("bench: %w", err)
		}
		defer free.Close() //nolint:gocritic // after both are found
		addrs[i] = free.Addr().String()
	}
	return addrs, nil
}

// Fetch sends a GET request, and returns the body of the response. If the status is not 200, it returns an error.
func Fetch(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return "", fmt.Errorf("bench: %w", err)
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("bench: %s answers %s: %.200s", address, answer.Status, text)
	}
	return string(text), nil
}

// WaitForMetric waits until a metric of the process has the given value.
func (p *Process) WaitForMetric(metric string, value float64) error {
	return WaitUntil(p.lives, fmt.Sprintf("%s is %v", metric, value), func() (bool, error) {
		figures, err := p.Figures(p.lives)
		if _, there := figures[metric]; err == nil && !there {
			err = fmt.Errorf("bench: the process has no metric %s", metric)
		}
		return figures[metric] == value, err
	})
}

// Figures reads the metrics of the process. If a metric has several values with different labels, it adds them up.
func (p *Process) Figures(ctx context.Context) (Figures, error) {
	text, err := Fetch(ctx, p.Admin+"/metrics")
	return readFigures(text), err
}

// Figures contains the values of metrics, by the name of the metric.
type Figures map[string]float64

func readFigures(text string) Figures {
	f := Figures{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		name, _, _ := strings.Cut(words[0], "{")
		if value, err := strconv.ParseFloat(words[len(words)-1], 64); err == nil {
			f[name] += value
		}
	}
	return f
}

// Stop sends SIGTERM to the process, and waits until it has exited. The process counts all accepted visits before it exits.
func (p *Process) Stop() error {
	p.stop()
	<-p.ended
	if p.result == nil {
		return nil
	}
	output := p.output.String()
	// The error does not wrap p.result. Otherwise this program would exit with the exit code of the process.
	return fmt.Errorf("bench: %s: %s\n%s", p.cmd, p.result.Error(), output[max(0, len(output)-4000):])
}
