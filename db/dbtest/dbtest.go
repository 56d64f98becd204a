// Package dbtest gives each test a PostgreSQL database of its own. Tests alone import it.
//
// A package that uses it calls Main from its TestMain:
//
//	func TestMain(m *testing.M) { dbtest.Main(m) }
//
// The first database that is asked for decides on the server, once a process:
//
//   - FOOTFALL_TEST_DATABASE_URL: a server that runs already, named by the URL of a database from which the role may
//     create others; withserver starts one for all packages;
//   - else a server started here, of the PostgreSQL found on this machine or in FOOTFALL_TEST_POSTGRES_BIN.
//
// Every database has the time zone Pacific/Chatham, 12:45 or 13:45 ahead of UTC and nobody's: whatever leans on the
// session's time zone, where it should take the app's, goes wrong at most hours of the day.
package dbtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// TimeZone is that of every session on a database of this package.
const TimeZone = "Pacific/Chatham"

// patience bounds what only a broken server takes longer for.
const patience = 2 * time.Minute

// running says that Main stands ready to stop what a test starts.
var running atomic.Bool

// Main is Run, and exits.
func Main(m *testing.M, leaks ...goleak.Option) { os.Exit(Run(m, leaks...)) }

// Run runs the tests, stops the server they started, looks for goroutines that have not ended, and returns the exit code.
func Run(m *testing.M, leaks ...goleak.Option) int {
	running.Store(true)
	code := m.Run()
	if err := stopServer(); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest: stop the server:", err)
		code = max(code, 1)
	}
	// A test that failed may well have left something behind; its own message is the one to read.
	if code == 0 {
		if err := goleak.Find(leaks...); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest: the tests left goroutines behind:", err)
			code = 1
		}
	}
	return code
}

// New returns the URL of a new database with every migration applied. The database goes when the test ends; that of a failed
// test stays, for somebody to look at, where the server outlives the tests.
func New(t testing.TB) string {
	t.Helper()
	return fresh(t, func(ctx context.Context, s *server) (string, error) { return s.template(ctx) })
}

// Empty is New without the migrations.
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
			t.Logf("dbtest: database %s is kept until its server stops; one of your own, named in %s, does not stop with the tests", name, EnvDatabaseURL)
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

// create makes a database from another one.
func (s *server) create(ctx context.Context, name, template string) error {
	quoted := pgx.Identifier{name}.Sanitize()
	options := s.copying
	if template == "template0" { // the only one whose encoding and locale a copy may change
		options += " ENCODING 'UTF8' LOCALE 'C'"
	}
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+quoted+" TEMPLATE "+pgx.Identifier{template}.Sanitize()+options); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	// A copy does not take such settings over from its template.
	if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+quoted+" SET timezone = '"+TimeZone+"'"); err != nil {
		return fmt.Errorf("set the time zone of database %s: %w", name, err)
	}
	return nil
}

// drop removes a database, also from under those who are still connected to it.
func (s *server) drop(ctx context.Context, name string) error {
	if _, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameFor is the test's name as PostgreSQL takes one, told apart from those of other processes on the same server.
func nameFor(t testing.TB) string {
	slug := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "_"), "_")
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails
	return fmt.Sprintf("%.40s_%s", slug, hex.EncodeToString(unique))
}
