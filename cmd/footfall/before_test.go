package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// versionBefore is the commit of the last release, 0.1.0.
const versionBefore = "d568d12"

// TestBesideTheVersionBefore has an instance of the last release count, accept visits and tell how many
// wait, before this version changes the tables, meanwhile, and beside it. What waited then is counted by
// this version, once.
func TestBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds another program; .ci/run does so")
	}
	before := builtBefore(t)
	database := dbtest.Empty(t)
	url := "--database-url=" + database
	for _, command := range [][]string{{"migrate", "up"}, {"app", "add", "demo", "--access=open", "--visitor=address"},
		{"app", "add", "blog", "--site=blog.example", "--visitor=address"},
		{"app", "add", "shop", "--site=shop.example", "--visitor=address", "--access=key"},
		{"app", "add", "badges", "--site=badges.example", "--visitor=address", "--public-counts=count"}} {
		r := footfallOf(t, before, nil, "", append(command, url)...)
		require.Zero(t, r.code, r.stderr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	t.Cleanup(cancel)
	c := &crash{t: t, ctx: ctx, targets: make(map[string]*told), statuses: make(map[int]int64), visits: math.MaxInt32,
		pace: 5 * time.Millisecond}
	c.connect = func() (*pgx.Conn, bool) { conn, err := pgx.Connect(ctx, database); return conn, err == nil }
	old := startOf(t, before, url)
	old.awaitReady()
	c.goTo(old)
	conn := dbtest.Connect(t, dbtest.With(t, database, "search_path", "footfall"))
	waiting := func() int64 {
		return dbtest.Column[int64](t, conn, `SELECT sum(inbox_behind(id))::bigint FROM apps`)[0]
	}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(c.client)
	}
	clients.Go(c.acceptor)
	defer func() { c.taken.Store(c.visits); clients.Wait() }()

	// It counts some of what it accepts; then rows wait in several turns, of which one is counted in part.
	c.awaitAnswers(200)
	eventually(t, "nobody counts what waits", func() bool {
		return dbtest.Column[bool](t, conn, `SELECT pg_try_advisory_lock(hashtext($1))`, db.DrainingInbox)[0]
	})
	for range 3 {
		had := waiting()
		eventually(t, "visits wait", func() bool { return waiting() > had+50 })
		eventually(t, "a turn ends", func() bool {
			_, err := conn.Exec(ctx, `SELECT turn_inbox()`)
			return err == nil
		})
	}
	turns := dbtest.Column[int64](t, conn, `SELECT DISTINCT turn FROM inbox_apps WHERE waiting > 0`)
	require.GreaterOrEqual(t, len(turns), 3)

	first := start(t, url)
	first.awaitReady()
	applied, _ := first.logged("schema brought up to date")
	assert.Contains(t, applied.whole, "inbox_carried.sql")
	assert.Equal(t, []string{"badges count", "blog answers", "demo read", "shop off"},
		dbtest.Column[string](t, conn, `SELECT name || ' ' || public_counts FROM apps ORDER BY name`), "who is told what stays")
	had := waiting()
	assert.Positive(t, had, "it is carried over")
	eventually(t, "the version before still accepts", func() bool { return waiting() > had+50 })
	status, body := get(old.url + "/counts?app=demo&uri=http://site1.example/1")
	assert.Equal(t, http.StatusOK, status, body)
	assert.Regexp(t, `"behind":[1-9]`, body)
	dbtest.Column[bool](t, conn, `SELECT pg_advisory_unlock(hashtext($1))`, db.DrainingInbox)
	c.goTo(old, first)
	c.awaitAnswers(c.answered.Load() + 400)
	_, tells := old.logged("the inbox is not counted for now; it is tried again")
	assert.True(t, tells, "by the version before, which says so")
	c.goTo(first)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, bytes.Repeat([]byte("s"), 32), 0o600))
	said := well(t, "app", "add", "office", "--site=office.example", "--visitor=browser", "--secret-file="+secret, url)
	assert.Contains(t, said, "Instances of 0.1.0, which would take browsers behind one address for one visitor, count nothing in")
	status, body = get(old.url + "/visit?app=demo&uri=http://site1.example/1")
	assert.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Zero(t, old.stop())
	c.awaitAnswers(c.answered.Load() + 200)

	c.taken.Store(c.visits) // enough
	clients.Wait()
	eventually(t, "all that was accepted is counted", func() bool { return waiting() == 0 })
	t.Logf("%d visits answered, %d failed, %d accepted, %v: %s", c.answered.Load(), c.failed.Load(), c.accepted, c.statuses, c.compare())
	assert.Positive(t, c.accepted)
	assert.Contains(t, well(t, "verify", url), "0 violations")
}

// builtBefore builds the last release.
func builtBefore(t *testing.T) (program string) {
	t.Helper()
	sources, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "archive", versionBefore).Output()
	if err != nil {
		t.Skip("this clone has not the commit of the last release: ", err)
	}
	folder := t.TempDir()
	for files := tar.NewReader(bytes.NewReader(sources)); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if file.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(folder, filepath.FromSlash(file.Name)) //nolint:gosec // our own repository
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))   //nolint:gosec // it is read by go build
		text, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	program = filepath.Join(folder, "footfall-before")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o="+program, "./cmd/footfall")
	build.Dir = folder
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	return program
}
