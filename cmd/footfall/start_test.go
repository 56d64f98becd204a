package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/embed"
)

// brokenPostgres is a folder with a server that says its version, and an initdb that fails.
func brokenPostgres(t *testing.T, initdb string) string {
	t.Helper()
	bin := newData(t)
	for name, script := range map[string]string{"postgres": "echo 'postgres (PostgreSQL) 17.1'", "initdb": initdb} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	return bin
}

// What initdb says comes to the user, with what to do about it.
func TestFailureOfInitdbIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ initdb, says, remedy string }{
		{`echo 'running bootstrap script ... FATAL:  could not write to file "base/4/1247": No space left on device'
echo 'STATEMENT:  CREATE DATABASE template0;'; exit 1`, `"base/4/1247": No space left on device`, "free some space"},
		{"echo 'initdb: error while loading shared libraries: libpq.so.5'; exit 127", "libpq.so.5",
			"mend the installation, or name another PostgreSQL with --postgres-bin"},
	} {
		data := newData(t)
		r := footfall(t, "serve", "--data", data, "--postgres-bin", brokenPostgres(t, c.initdb), "--addr=127.0.0.1:0", "--admin-addr=off")
		assert.Equal(t, exitFailed, r.code, r.stderr)
		assert.Contains(t, r.stderr, "footfall: --data: "+data+": PostgreSQL's initdb could not make a cluster (exit status ")
		assert.Contains(t, r.stderr, c.says)
		assert.Contains(t, r.stderr, c.remedy)
		assert.NotContains(t, r.stderr, "CREATE DATABASE")
	}
}

// What PostgreSQL says as it gives up comes to the user, from whichever of its logs.
func TestFailureOfPostgresIsTold(t *testing.T) {
	t.Parallel()
	data := usedData(t)
	set, err := os.OpenFile(filepath.Join(data, "postgres", "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = set.WriteString("listen_addresses = '192.0.2.1'\n")
	require.NoError(t, errors.Join(err, set.Close()))
	r := footfall(t, "serve", "--data", data, "--addr=127.0.0.1:0", "--admin-addr=off")
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.stderr, `could not bind IPv4 address "192.0.2.1"`)
}

// Only those commands make data that somebody may begin with. The others find none, rather than
// data in which nothing was counted.
func TestNoDataIsMadeUnasked(t *testing.T) {
	t.Parallel()
	data := filepath.Join(newData(t), "mistyped")
	for _, args := range []string{
		"verify", "report top", "app set demo --access=open", "page delete demo a.example/b --yes", "migrate up", "status", "psql -- -l",
	} {
		r := footfall(t, append([]string{"--data", data}, strings.Fields(args)...)...)
		assert.Equal(t, exitFailed, r.code, args)
		assert.Contains(t, r.stderr, "--data: there is nothing of Footfall in "+data, args)
		assert.Contains(t, r.stderr, "--database-url", args)
	}
	assert.NoDirExists(t, data)
	r := footfallWith(t, []string{"FOOTFALL_DATA=" + data}, "", "verify")
	assert.Contains(t, r.stderr, "footfall: FOOTFALL_DATA: there is nothing of Footfall in "+data)
}

func TestDataThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	cluster := newData(t)
	require.NoError(t, os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("15\n"), 0o600))
	file := writeFile(t, "")
	for data, says := range map[string]string{
		file:    "not a directory): name another folder",
		cluster: "it is itself the cluster of a PostgreSQL server",
	} {
		r := footfall(t, "serve", "--data", data, "--addr=127.0.0.1:0", "--admin-addr=off")
		assert.Equal(t, exitFailed, r.code)
		assert.Contains(t, r.stderr, "footfall: --data: "+data+": ")
		assert.Contains(t, r.stderr, says)
	}
}

// Who begins with an app of their own gets no open one beside it.
func TestOwnAppComesFirst(t *testing.T) {
	t.Parallel()
	data := newData(t)
	for _, wrong := range [][]string{{"X!", "--access=open"}, {"shop"}, {"shop", "--site=a/b"}} {
		assert.Equal(t, exitUsage, footfall(t, append([]string{"app", "add", "--data", data}, wrong...)...).code, wrong)
	}
	for _, flag := range []string{"--data", "--database-url=postgres://h/d", "--read-only", "--postgres-bin"} {
		behind := footfall(t, "psql", "--data", data, "-c", "SELECT 1", flag, data)
		assert.Equal(t, exitUsage, behind.code)
		name, _, _ := strings.Cut(flag, "=")
		assert.Contains(t, behind.stderr, "footfall: "+name+
			": it stands behind a flag of psql's, where all are psql's: write it first, as in psql "+name+" … -- -c …")
	}
	assert.NoDirExists(t, filepath.Join(data, "postgres"), "what is typed is looked at first")
	said := well(t, "app", "add", "shop", "--site=shop.example", "--public-url=https://shop.example/numbers", "--data", data)
	assert.Contains(t, said, "\n  "+embed.Line("https://shop.example/numbers", "shop")+"\n", "ready to be pasted")
	assert.Contains(t, said, "\n  "+embed.PinnedLine("https://shop.example/numbers", "shop")+"\n")
	assert.Contains(t, said, "https://shop.example/numbers/embed?app=shop\n")
	assert.Contains(t, said, "\n\nIt keeps no addresses, but hashes of them, keyed with the secret.\n")
	assert.Contains(t, said, "\nLook at it at https://shop.example/numbers/dash/shop\n")
	keyed := well(t, "app", "add", "backend", "--visitor=address", "--site=shop.example", "--access=key", "--data", data)
	assert.Contains(t, keyed, "\n\nIt keeps the addresses of its visitors as they are.\nIt tells ")
	assert.NotContains(t, keyed, "<script", "no page counts for it")
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"add", "shop", "--access=open"}, 2, []string{"there is an app shop already"}},
		{[]string{"add", "none"}, 2, []string{"app none would count nothing"}},
		{[]string{"add", "new", "--site=a/b", "--tz=Mars/Olympus", "--ipv6-prefix=8"}, 2, []string{"footfall: --site: ", "footfall: --tz: ",
			"footfall: --ipv6-prefix: "}},
		{[]string{"set", "nobody", "--access=open"}, 1, []string{"there is no app"}},
	} {
		r := footfall(t, append([]string{"app", "--data", data}, c.args...)...)
		assert.Equal(t, c.code, r.code, "%v: %s", c.args, r.stderr)
		for _, words := range c.says {
			assert.Contains(t, r.stderr, words)
		}
	}
	s := serve(t, "--data", data, "--busuanzi=shop")
	assert.NotContains(t, well(t, "app", "list", "--data", data), "demo")
	assert.NotContains(t, s.said(), "is open")
	assert.NotContains(t, s.said(), "--busuanzi")
	status, _ := get(s.url + "/busuanzi?url=http://shop.example/")
	assert.Equal(t, http.StatusOK, status, "of the two apps that list the site it is the one that was named")
}

// What the server refuses for good is told at once; nobody waits for it.
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	given, err := url.Parse(dbtest.Empty(t))
	require.NoError(t, err)
	elsewhere, stranger := *given, *given
	elsewhere.Path = "/nowhere"
	stranger.RawQuery += "&options=-c%20role%3Dnobody_of_this_name"
	for _, c := range []struct {
		url  url.URL
		says string
	}{
		{elsewhere, `the server has no such database (database "nowhere" does not exist): make it, or name another`},
		{stranger, `(role "nobody_of_this_name" does not exist)`},
	} {
		r := footfallWith(t, []string{"FOOTFALL_DATABASE_URL=" + c.url.String()}, "", "serve", "--addr=127.0.0.1:0", "--admin-addr=off")
		assert.Equal(t, exitFailed, r.code)
		assert.Contains(t, r.stderr, "footfall: FOOTFALL_DATABASE_URL: ")
		assert.Contains(t, r.stderr, c.says)
		assert.NotContains(t, r.stderr, "waiting for the database")
		assert.NotContains(t, r.stderr, "SQLSTATE")
		for _, command := range []string{"app list", "import --app=demo -"} {
			r = footfall(t, append(strings.Fields(command), "--database-url", c.url.String())...)
			assert.Contains(t, r.stderr, "footfall: --database-url: ")
			assert.Equal(t, 1, strings.Count(r.stderr, "--database-url"), r.stderr)
			assert.Contains(t, r.stderr, c.says)
		}
	}
}

// Whatever is wrong with what was typed and with the environment is told at once, each by the name
// that the user gave it.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	environment := []string{
		"FOOTFALL_ADDR=here", "FOOTFALL_MIGRATE=maybe", "FOOTFALL_LOG_LEVEL=loud", "FOOTFALL_TRUST_PROXI=10.0.0.0/8", "FOOTFALL_PORT=80",
		"FOOTFALL_SERVICE_HOST=10.0.0.1", "FOOTFALL_DB_PORT=tcp://10.0.0.1:5432", "FOOTFALL_PORT_8080_TCP_ADDR=10.0.0.1", // Kubernetes
	}
	r := footfallWith(t, environment, "", "serve", "--max-wait=soon", "--admin-addr=there")
	assert.Equal(t, exitUsage, r.code)
	for _, says := range []string{
		`FOOTFALL_ADDR: "here" is not an address`, "FOOTFALL_MIGRATE: ", `FOOTFALL_LOG_LEVEL: "loud"`, `--max-wait: "soon"`,
		`--admin-addr: "there"`,
		"FOOTFALL_TRUST_PROXI is set in the environment, and nothing reads it: is FOOTFALL_TRUST_PROXY meant?",
		"FOOTFALL_PORT is set in the environment, and nothing reads it: `footfall serve --help` lists the names",
	} {
		assert.Contains(t, r.stderr, "footfall: "+says)
	}
	assert.Len(t, strings.Split(strings.TrimSpace(r.stderr), "\n"), 7, r.stderr)

	r = footfallWith(t, []string{"FOOTFALL_ADDR=here"}, "", "serve", "--no-such-flag")
	assert.Contains(t, r.stderr, "unknown flag --no-such-flag")
	assert.Contains(t, r.stderr, "FOOTFALL_ADDR: ", "a fault of the line hides none of the environment")
	r = footfall(t, "verify", "--sample=x", "--jobs=y")
	assert.Contains(t, r.stderr, "--sample: expected a float")
	assert.Contains(t, r.stderr, "--jobs: expected")
	assert.NotContains(t, r.stderr, "is not a percentage", "one fault of each flag will do")

	r = footfallWith(t, []string{"FOOTFALL_ADDR=here", "FOOTFALL_FILTR=off"}, "", "version")
	assert.Zero(t, r.code, "another command does not read it")
	assert.Contains(t, r.stderr, "is FOOTFALL_FILTER meant?")
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	all := well(t)
	assert.Contains(t, all, "Usage: footfall <command>")
	assert.Contains(t, all, "Exit codes:")
	assert.Equal(t, all, well(t, "help"))
	assert.Equal(t, well(t, "app", "key", "add", "--help"), well(t, "help", "app", "key", "add"))
	for _, args := range []string{"version", "--version", "-v"} {
		assert.Regexp(t, `^footfall dev \(commit \S+, go1\.\S+\)\n$`, well(t, args))
	}
	unknown := footfall(t, "help", "nothing")
	assert.Equal(t, exitUsage, unknown.code)
	assert.Contains(t, unknown.stderr, "unexpected argument nothing")
}

func TestMissingAppOfBusuanziIsToldOf(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	p := &program{log: slog.New(slog.NewTextHandler(&said, nil))}
	for _, app := range []string{"", "shop", "blog"} {
		(&serveCmd{Busuanzi: app}).warnOfApps(p, []db.App{{Name: "shop"}}, "")
	}
	assert.Equal(t, 1, strings.Count(said.String(), "level=WARN"))
	assert.Contains(t, said.String(), "--busuanzi: there is no app blog yet")
	(&serveCmd{}).warnOfApps(p, []db.App{{Name: "shop", Access: "open"}}, "blogs")
	assert.Contains(t, said.String(), "with the --database-url that `footfall cell list` shows of the cell blogs")
}

// An import that starts while a failover lasts waits for its end. One that is interrupted then says so, and
// nothing more.
func TestImportWaitsForTheFailover(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t, true)
	url := "--database-url=" + dbtest.With(t, pair.URL(), "sslmode", "prefer")
	well(t, "app", "add", "demo", "--access=open", "--visitor=address", url)
	file := writeFile(t, `192.0.2.1 - - [28/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "`+browser+`"`+"\n")
	pair.Kill()
	begin := func() (cmd *exec.Cmd, said *dbtest.Log, ended chan error) {
		cmd, said, ended = exec.Command(os.Args[0], "import", "--app=demo", "--site=a.example", file, url), &dbtest.Log{}, make(chan error, 1)
		cmd.Env, cmd.Stdout, cmd.Stderr = environment(), said, said
		require.NoError(t, cmd.Start())
		go func() { ended <- cmd.Wait() }()
		eventually(t, "it waits", func() bool { return len(ended) > 0 || strings.Contains(said.String(), "waiting for the database") })
		require.Empty(t, ended, said)
		return cmd, said, ended
	}
	cmd, said, ended := begin()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, <-ended)
	assert.Contains(t, said.String(), "footfall: interrupted before the database answered: nothing was done")
	assert.NotContains(t, said.String(), "context canceled")
	assert.Contains(t, said.String(), "takes writes: the primary is away")

	_, said, ended = begin()
	pair.Promote()
	pair.WaitFor("")
	require.NoError(t, <-ended, said)
	assert.Regexp(t, `visits counted +1\n`, said.String())
}
