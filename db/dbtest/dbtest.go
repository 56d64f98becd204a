// Package dbtest gives each test its own PostgreSQL database. Only tests import it.
//
// A package that uses dbtest calls Main from its TestMain:
//
//	func TestMain(m *testing.M) { dbtest.Main(m) }
//
// The first request for a database selects the server, once per process:
//
//   - FOOTFALL_TEST_DATABASE_URL is the URL of a database on a running server. Its user must be allowed to create
//     databases. The command withserver starts such a server for all packages.
//   - Without this variable, this package starts a server, with the PostgreSQL found on this machine or in
//     FOOTFALL_TEST_POSTGRES_BIN.
//
// To test faults, Own starts a server for one test only, and Network makes the connection between a client and a
// server fail.
//
// Every database has the time zone Pacific/Chatham, which is 12:45 or 13:45 ahead of UTC and which no test gives to
// an app. Code that uses the session's time zone instead of the app's therefore fails at most hours of the day.
package dbtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"footfall/db"
)

// TimeZone is the time zone of every session on a database of this package.
const TimeZone = "Pacific/Chatham"

// daysAhead is the number of days for which a service creates partitions in advance.
const daysAhead = 8

// patience is the time limit for operations on a server. Only a broken server takes longer.
const patience = 2 * time.Minute

// running is true once Run has started. Otherwise no test gets a database, because only Run stops the server.
var running atomic.Bool

// Main calls Run and exits with its code.
func Main(m goleak.TestingM, leaks ...goleak.Option) { os.Exit(Run(m, leaks...)) }

// Run runs the tests, stops the server that they started, checks for goroutines that are still running, and returns
// the exit code.
func Run(m goleak.TestingM, leaks ...goleak.Option) int {
	running.Store(true)
	code := m.Run()
	if err := stopServer(); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest: stop the server:", err)
		code = max(code, 1)
	}
	// A failed test may have left goroutines behind, but its own message is the relevant one.
	if code == 0 {
		if err := findLeaks(leaks); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest: the tests left goroutines behind:", err)
			code = 1
		}
	}
	return code
}

// findLeaks retries for a minute: the driver may need 15 s to close a connection in the middle of a query.
func findLeaks(leaks []goleak.Option) error {
	err := goleak.Find(leaks...)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
		err = goleak.Find(leaks...) // waits half a second itself
	}
	return err
}

// New returns the URL of a new database with every migration applied. The database is dropped when the test ends.
// If the test failed, the database is kept for inspection as long as the server runs.
func New(t testing.TB) string {
	t.Helper()
	return fresh(t, func(ctx context.Context, s *server) (string, error) { return s.template(ctx) })
}

// NewPrepared is like New, but the database also has the changes that do makes. Before it calls do, NewPrepared creates
// the partitions that a service would create if it started at the given time. The process makes one such database for
// each name, and copies it for each test, because copying is cheaper.
func NewPrepared(t testing.TB, name string, started time.Time, do func(d *db.DB)) string {
	t.Helper()
	return fresh(t, func(ctx context.Context, s *server) (string, error) {
		made := s.madeOf(name)
		made.once.Do(func() {
			copied := nameFor(t)
			template, err := s.template(ctx)
			if err == nil {
				err = s.create(ctx, copied, template)
			}
			require.NoError(t, err)
			d, err := db.Open(ctx, s.url(copied), db.Options{StatementTimeout: patience, DeadAfter: patience})
			require.NoError(t, err)
			defer d.Close()
			var days []int32
			for ahead := -1; ahead <= daysAhead; ahead++ {
				year, month, day := started.UTC().AddDate(0, 0, ahead).Date()
				days = append(days, int32(year*10000+int(month)*100+day)) //nolint:gosec // like 20190629
			}
			_, err = d.MakeDays(ctx, days...)
			require.NoError(t, err)
			do(d)
			made.name = copied
		})
		if made.name == "" {
			return "", errors.New("another test could not make this database")
		}
		return made.name, nil
	})
}

// Open opens a database, and closes it when the test ends. If o.StatementTimeout or o.DeadAfter is 0, it is set to a
// time that is long enough for a slow machine.
func Open(t testing.TB, url string, o db.Options) *db.DB {
	t.Helper()
	o.StatementTimeout, o.DeadAfter = cmp.Or(o.StatementTimeout, patience), cmp.Or(o.DeadAfter, patience)
	d, err := db.Open(context.Background(), url, o)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// Empty is like New, but applies no migrations.
func Empty(t testing.TB) string {
	t.Helper()
	return fresh(t, func(context.Context, *server) (string, error) { return "template0", nil })
}

func fresh(t testing.TB, template func(context.Context, *server) (string, error)) string {
	t.Helper()
	if !running.Load() {
		t.Fatal("dbtest: this package needs a TestMain that calls dbtest.Main, which stops the server")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := theServer()
	if err != nil {
		t.Fatalf("dbtest: start a server: %v", err)
	}
	source, err := template(ctx, s)
	if err != nil {
		t.Fatalf("dbtest: make the template: %v", err)
	}
	name := nameFor(t)
	if err := s.create(ctx, name, source); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("dbtest: database %s is kept until its server stops; a server given by %s is not stopped after the tests", name,
				EnvDatabaseURL)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return s.url(name)
}

// create makes a database as a copy of the template.
func (s *server) create(ctx context.Context, name, template string) error {
	quoted := pgx.Identifier{name}.Sanitize()
	options := s.copying
	if template == "template0" { // only copies of template0 may have another encoding and locale
		options += " ENCODING 'UTF8' LOCALE 'C'"
	}
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+quoted+" TEMPLATE "+pgx.Identifier{template}.Sanitize()+options); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	// A copy does not inherit the time zone from its template.
	if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+quoted+" SET timezone = '"+TimeZone+"'"); err != nil {
		return fmt.Errorf("set the time zone of database %s: %w", name, err)
	}
	return nil
}

// drop drops a database, even if clients are still connected to it.
func (s *server) drop(ctx context.Context, name string) error {
	if _, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameFor returns a name for a test's database that is unique among all processes on the server.
func nameFor(t testing.TB) string {
	slug := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "_"), "_")
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails
	return fmt.Sprintf("%.40s_%s", slug, hex.EncodeToString(unique))
}

// Log collects log records of all goroutines.
type Log struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// LongOrShort returns the number of repetitions or items in a test: short with go test -short, else long. Even the
// short test must fail if the tested code is removed.
func LongOrShort(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

// FromEnv returns the number in an environment variable. If the variable is not set, FromEnv returns the number
// that the caller passes as otherwise.
func FromEnv(t testing.TB, name string, otherwise int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	require.NoError(t, err, name)
	return n
}

// Crowd makes concurrent clients call do repeatedly until disperse is called, or until the test ends. Even a failed
// test waits for the clients before it closes the resources that they use.
func Crowd(t testing.TB, clients int, do func(client, i int)) (disperse func()) {
	t.Helper()
	var ended atomic.Bool
	var all sync.WaitGroup
	disperse = func() { ended.Store(true); all.Wait() }
	t.Cleanup(disperse)
	for client := range clients {
		all.Go(func() {
			for i := 0; !ended.Load(); i++ {
				do(client, i)
			}
		})
	}
	return disperse
}
