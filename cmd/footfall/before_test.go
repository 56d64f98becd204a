package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/db/embedded"
)

// versionBefore is the commit of the last release, 0.2.0.
const versionBefore = "958d793e"

// TestBesideTheVersionBefore runs an instance of the last release that counts and accepts visits before, while and after
// this version changes the tables. Visits that waited in the inbox are counted once.
func TestBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds another program; .ci/run does so")
	}
	before := builtBefore(t)
	database := dbtest.Empty(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, bytes.Repeat([]byte("s"), 32), 0o600))
	flags := []string{"--database-url=" + database, "--secret-file=" + secret}
	for _, command := range [][]string{{"migrate", "up"},
		{"app", "add", "demo", "--access=open", "--visitor=address", "--public-counts=read"},
		{"app", "add", "blog", "--site=blog.example"}} {
		r := footfallOf(t, before, nil, "", append(command, flags...)...)
		require.Zero(t, r.code, r.stderr)
	}
	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	t.Cleanup(cancel)
	c := &crash{t: t, ctx: ctx, targets: make(map[string]*told), statuses: make(map[int]int64), visits: math.MaxInt32,
		pace: 5 * time.Millisecond}
	c.connect = func() (*pgx.Conn, bool) { conn, err := pgx.Connect(ctx, database); return conn, err == nil }
	old := startOf(t, before, flags...)
	old.awaitReady()
	c.goTo(old)
	conn := dbtest.Connect(t, dbtest.WithParameter(t, database, "search_path", "footfall"))
	waiting := func() int64 {
		return dbtest.Column[int64](t, conn, `SELECT sum(inbox_behind(id))::bigint FROM apps`)[0]
	}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(c.client)
	}
	clients.Go(c.acceptor)
	defer func() { c.taken.Store(c.visits); clients.Wait() }()

	logs := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(logs, "a.log"), nil, 0o600))
	follower := followWith(t, before, append([]string{filepath.Join(logs, "*.log"), "--app=blog"}, flags...)...)

	// The last release counts some of the visits that it accepts. Then a lock keeps all instances from counting the inbox, so
	// that rows wait in it.
	c.awaitAnswers(200)
	eventually(t, "no instance counts the inbox", func() bool {
		return dbtest.Column[bool](t, conn, `SELECT pg_try_advisory_lock(hashtext($1))`, db.DrainingInbox)[0]
	})
	had := waiting()
	eventually(t, "visits wait", func() bool { return waiting() > had+50 })

	first := start(t, flags...)
	first.awaitReady()
	_, migrated := first.logged("schema brought up to date")
	assert.True(t, migrated, "this version changes the tables or functions")
	fresh, err := os.ReadFile(accessLog(t, "access.log", 7, 200))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(logs, "b.log"), fresh, 0o600))
	follower.ends("this version can no longer import: run the same command of the new version")
	assert.Regexp(t, `\nvisits counted +200\n`, well(t, append([]string{"import", filepath.Join(logs, "*.log"), "--app=blog"}, flags...)...))
	had = waiting()
	assert.Positive(t, had, "the waiting visits are still there")
	eventually(t, "the last release still accepts", func() bool { return waiting() > had+50 })
	dbtest.Column[bool](t, conn, `SELECT pg_advisory_unlock(hashtext($1))`, db.DrainingInbox)
	c.goTo(old, first)
	c.awaitAnswers(c.answered.Load() + 400)
	readReports(t, old.url)
	c.goTo(first)
	require.Zero(t, old.stop())
	c.awaitAnswers(c.answered.Load() + 200)

	c.taken.Store(c.visits) // stops the clients
	clients.Wait()
	eventually(t, "every accepted visit is counted", func() bool { return waiting() == 0 })
	t.Logf("%d visits answered, %d failed, %d accepted, %v: %s", c.answered.Load(), c.failed.Load(), c.accepted, c.statuses, c.compare())
	assert.Positive(t, c.accepted)
	assert.Contains(t, well(t, append([]string{"verify"}, flags...)...), "0 violations")
}

// readReports requests every report and every page of the service at url. Each must return 200 for at least one of these
// queries, and none may fail in the database.
func readReports(t *testing.T, url string) {
	t.Helper()
	queries := []string{"", "?site=site1.example", "?uri=http://site1.example/1", "?site=site1.example&step=page:/1&step=page:/2",
		"?site=site1.example&name=browser&value=firefox", "?site=site1.example&where=new", "?site=site1.example&rank=1"}
	var description struct{ Paths map[string]map[string]any }
	_, text := get(url + "/openapi.json")
	require.NoError(t, json.Unmarshal([]byte(text), &description))
	paths := []string{"/dash/demo", "/dash/demo/site1.example/", "/dash/demo/site1.example?where=new"}
	for path, methods := range description.Paths {
		if report, is := strings.CutPrefix(path, "/api/apps/{app}/"); is && methods["get"] != nil {
			paths = append(paths, "/api/apps/demo/"+report)
		}
	}
	require.Greater(t, len(paths), 20)
	for _, path := range paths {
		var statuses []int
		for _, query := range queries {
			if strings.Contains(path, "?") {
				query = ""
			}
			status, body := get(url + path + query)
			assert.Less(t, status, http.StatusInternalServerError, "%s%s: %s", path, query, body)
			statuses = append(statuses, status)
		}
		if !slices.Contains(statuses, http.StatusUnauthorized) && !slices.Contains(statuses, http.StatusForbidden) { // needs a key
			assert.Contains(t, statuses, http.StatusOK, path)
		}
	}
}

// follower is an import that follows logs.
type follower struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{}
}

func followWith(t *testing.T, program string, args ...string) *follower {
	t.Helper()
	f := &follower{t: t, cmd: exec.Command(program, append([]string{"import", "--follow"}, args...)...), ended: make(chan struct{})}
	f.cmd.Env, f.cmd.Stderr = environment(), &f.stderr
	require.NoError(t, f.cmd.Start())
	go func() { _ = f.cmd.Wait(); close(f.ended) }() // ends with the process
	t.Cleanup(func() { _ = f.cmd.Process.Kill(); <-f.ended })
	return f
}

// ends waits until the import exits by itself, long before its time limit for the database, and checks the reason.
func (f *follower) ends(why string) {
	f.t.Helper()
	begun := time.Now()
	<-f.ended
	assert.Contains(f.t, f.stderr.String(), why)
	assert.Equal(f.t, 1, f.cmd.ProcessState.ExitCode())
	assert.Less(f.t, time.Since(begun), dbtest.Patience)
	assert.Less(f.t, f.cmd.ProcessState.UserTime(), dbtest.Patience/10, "it does not spin")
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
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-o="+program, "./cmd/footfall")
	build.Dir = folder
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	return program
}

// Numbers and links of people are the same on the new version, and every promise holds.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	data := usedData(t)
	to := filepath.Join(newData(t), "new")
	refused := footfall(t, "upgrade", "--to", to, "--database-url=postgres://h/d")
	assert.Equal(t, exitUsage, refused.code)
	assert.Contains(t, refused.stderr, "upgrade is for the embedded PostgreSQL")
	refused = footfall(t, "upgrade", "--to", data, "--data", newData(t))
	assert.Contains(t, refused.stderr, "footfall: --to: "+data+": ")
	newer := brokenPostgres(t, "exit 1")
	require.NoError(t, os.WriteFile(filepath.Join(newer, "postgres"), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 99.1'\n"),
		0o755)) //nolint:gosec // it is run
	refused = footfall(t, "upgrade", "--to", to, "--postgres-bin", newer, "--data", data)
	assert.Equal(t, exitFailed, refused.code)
	assert.Contains(t, refused.stderr, "footfall: --postgres-bin: "+newer+" contains PostgreSQL 99")
	assert.Contains(t, refused.stderr, "the folder of the new ones in --to-postgres-bin")
	if testing.Short() { // db/embedded tests the copying itself
		return
	}
	well(t, "app", "add", "shop", "--site=example.com", "--access=open", "--data", data)
	s := serve(t, "--data", data)
	visited := s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://example.com/"
	status, _ := get(visited)
	require.Equal(t, http.StatusOK, status)
	require.Zero(t, s.stop())

	bin, err := embedded.Find(os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"))
	require.NoError(t, err)
	said := well(t, "upgrade", "--to", to, "--to-postgres-bin", bin, "--data", data)
	assert.Contains(t, said, "--data '"+to+"' --postgres-bin '"+bin+"' verify\n")
	s = serve(t, "--data", to)
	_, body := get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://example.com/")
	assert.Contains(t, body, `"uv":1,"rank":1,"hot":2},"page"`, "the visitor is known by the secret")
	well(t, "verify", "--data", to)
}
