package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/embed"
)

// brokenPostgres returns a folder with a server that prints its version, and an initdb that fails.
func brokenPostgres(t *testing.T, initdb string) string {
	t.Helper()
	bin := newData(t)
	for name, script := range map[string]string{"postgres": "echo 'postgres (PostgreSQL) 17.1'", "initdb": initdb} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	return bin
}

// The output of initdb is shown to the user, with the remedy.
func TestFailureOfInitdbIsShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ initdb, says, remedy string }{
		{`echo 'running bootstrap script ... FATAL:  could not write to file "base/4/1247": No space left on device'
echo 'STATEMENT:  CREATE DATABASE template0;'; exit 1`, `"base/4/1247": No space left on device`, "free some space"},
		{"echo 'initdb: error while loading shared libraries: libpq.so.5'; exit 127", "libpq.so.5",
			"repair the installation, or name another PostgreSQL with --postgres-bin"},
	} {
		data := newData(t)
		r := footfall(t, "serve", "--data", data, "--postgres-bin", brokenPostgres(t, c.initdb), "--addr=127.0.0.1:0", "--admin-addr=off")
		assert.Equal(t, exitFailed, r.code, r.stderr)
		assert.Contains(t, r.stderr, "footfall: --data: "+data+": PostgreSQL's initdb could not create a cluster (exit status ")
		assert.Contains(t, r.stderr, c.says)
		assert.Contains(t, r.stderr, c.remedy)
		assert.NotContains(t, r.stderr, "CREATE DATABASE")
	}
}

// PostgreSQL's last message is shown to the user, whichever log file contains it.
func TestFailureOfPostgresIsShown(t *testing.T) {
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

// Only certain commands create a data directory. All other commands fail if there is none, instead of creating an empty
// database.
func TestNoDataIsMadeUnasked(t *testing.T) {
	t.Parallel()
	data := filepath.Join(newData(t), "mistyped")
	for _, args := range []string{
		"verify", "report top", "app set demo --access=open", "page delete demo a.example/b --yes", "migrate up", "status", "psql -- -l",
	} {
		r := footfall(t, append([]string{"--data", data}, strings.Fields(args)...)...)
		assert.Equal(t, exitFailed, r.code, args)
		assert.Contains(t, r.stderr, "--data: "+data+" contains no data of Footfall", args)
		assert.Contains(t, r.stderr, "--database-url", args)
	}
	assert.NoDirExists(t, data)
	r := footfallWith(t, []string{"FOOTFALL_DATA=" + data}, "", "verify")
	assert.Contains(t, r.stderr, "footfall: FOOTFALL_DATA: "+data+" contains no data of Footfall")
}

func TestDataThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	cluster := newData(t)
	require.NoError(t, os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte("15\n"), 0o600))
	file := writeFile(t, "")
	for data, says := range map[string]string{
		file:    "not a directory): name another folder",
		cluster: "it is the cluster of a PostgreSQL server",
	} {
		r := footfall(t, "serve", "--data", data, "--addr=127.0.0.1:0", "--admin-addr=off")
		assert.Equal(t, exitFailed, r.code)
		assert.Contains(t, r.stderr, "footfall: --data: "+data+": ")
		assert.Contains(t, r.stderr, says)
	}
}

// If a user's first command adds an app, the open app demo is not created.
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
			": after a flag of psql, all flags are passed to psql: write it first, as in psql "+name+" … -- -c …")
	}
	assert.NoDirExists(t, filepath.Join(data, "postgres"), "what is typed is looked at first")
	said := well(t, "app", "add", "shop", "--site=shop.example", "--public-url=https://shop.example/numbers", "--data", data)
	assert.Contains(t, said, "\n  "+embed.Line("https://shop.example/numbers", "shop")+"\n", "ready to be pasted")
	assert.Contains(t, said, "\n  "+embed.PinnedLine("https://shop.example/numbers", "shop")+"\n")
	assert.Contains(t, said, "https://shop.example/numbers/embed?app=shop\n")
	assert.Contains(t, said, "\n\nIt stores no addresses, only hashes of them, keyed with the secret.\n")
	assert.Contains(t, said, "\nView it at https://shop.example/numbers/dash/shop\n")
	keyed := well(t, "app", "add", "backend", "--visitor=address", "--site=shop.example", "--access=key", "--data", data)
	assert.Contains(t, keyed, "\n\nIt stores its visitors' addresses.\nNobody can read its numbers without a key. ")
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
	assert.Equal(t, http.StatusOK, status, "the named one of the two apps that list the site")
}

// A permanent refusal by the server is reported at once, without waiting.
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
		{elsewhere, `the server has no such database (database "nowhere" does not exist): create it, or name another one`},
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

// All errors in arguments and environment are reported at once, each with the name that the user used.
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
		"FOOTFALL_TRUST_PROXI is set in the environment, and nothing reads it: did you mean FOOTFALL_TRUST_PROXY?",
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
	assert.Contains(t, r.stderr, "did you mean FOOTFALL_FILTER?")
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

func TestMissingAppOfBusuanziIsReported(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	p := &program{log: slog.New(slog.NewTextHandler(&said, nil))}
	for _, app := range []string{"", "shop", "blog"} {
		(&serveCmd{Busuanzi: app}).warnOfApps(p, []db.App{{Name: "shop"}}, "")
	}
	assert.Equal(t, 1, strings.Count(said.String(), "level=WARN"))
	assert.Contains(t, said.String(), "--busuanzi: there is no app blog yet")
	(&serveCmd{}).warnOfApps(p, []db.App{{Name: "shop", Access: "open"}}, "blogs")
	assert.Contains(t, said.String(), "with the --database-url that `footfall cell list` shows for the cell blogs")
}

// An import that starts during a failover waits until the failover ends. An interrupted import reports only the interruption.
func TestImportWaitsForTheFailover(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t, true)
	url := "--database-url=" + dbtest.WithParameter(t, pair.URL(), "sslmode", "prefer")
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
	assert.Contains(t, said.String(), "accepts writes: the primary is down")

	_, said, ended = begin()
	pair.Promote()
	pair.WaitFor("")
	require.NoError(t, <-ended, said)
	assert.Regexp(t, `visits counted +1\n`, said.String())
}

// systemd accepts the unit file without complaint, and sends SIGTERM only to the service. If PostgreSQL got SIGTERM, too,
// visits in progress would be cut off.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/footfall.service")
	require.NoError(t, err)
	assert.Contains(t, string(text), "\nKillMode=mixed\n")
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze found")
	}
	const program = "/usr/local/bin/footfall"
	require.Equal(t, 1, strings.Count(string(text), program))
	unit := filepath.Join(t.TempDir(), "footfall.service")
	require.NoError(t, os.WriteFile(unit, []byte(strings.Replace(string(text), program, os.Args[0], 1)), 0o600))
	said, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", unit).CombinedOutput()
	require.NoError(t, err, string(said))
	assert.NotContains(t, string(said), unit, "it complains of the unit")
}

// The service notifies systemd when visits can be counted, while the service is alive, and when it stops. PostgreSQL, which
// would also notify systemd, does not do so.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	folder := newData(t)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, os.Chmod(socket.LocalAddr().String(), 0o777))
	program := filepath.Join(folder, "footfall")
	require.NoError(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nexport NOTIFY_SOCKET='%s' WATCHDOG_USEC=400000\nexec '%s' \"$@\"\n",
		socket.LocalAddr(), os.Args[0]), 0o755))
	told := func() string {
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(patience)))
		message := make([]byte, 256)
		n, err := socket.Read(message)
		require.NoError(t, err)
		return string(message[:n])
	}
	r := startOf(t, program, "--data", usedData(t))
	require.Equal(t, "READY=1", told())
	r.awaitReady()
	require.Equal(t, "WATCHDOG=1", told())
	require.Equal(t, "WATCHDOG=1", told())
	require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
	last := told()
	for last == "WATCHDOG=1" {
		last = told()
	}
	require.Equal(t, "STOPPING=1", last)
	require.Zero(t, r.wait())
	require.NoError(t, socket.SetReadDeadline(time.Now()))
	_, err = socket.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no other notification")
}

// Every name in the file of settings is a setting of serve.
func TestFileOfSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../packaging/footfall.env")
	require.NoError(t, err)
	settings := regexp.MustCompile(`(?m)^#?(\w+)=`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, settings)
	help := well(t, "serve", "--help")
	for _, setting := range settings {
		assert.Contains(t, help, "$"+setting[1], setting[0])
	}
}

// machineZone finds the machine's time zone in every form of configuration, and never returns a name that the tables refuse.
func TestMachineZone(t *testing.T) {
	link := filepath.Join(t.TempDir(), "localtime")
	for _, c := range []struct{ tz, link, want string }{
		{"", "/usr/share/zoneinfo/Europe/Berlin", "UTC"}, // an empty TZ means UTC
		{"Asia/Shanghai", "/usr/share/zoneinfo/Europe/Berlin", "Asia/Shanghai"},
		{":America/New_York", "", "America/New_York"},
		{"/usr/share/zoneinfo/Asia/Tokyo", "", "Asia/Tokyo"},
		{"CET-1CEST,M3.5.0,M10.5.0/3", "", "UTC"}, {"Local", "", "UTC"}, {"../../etc/passwd", "", "UTC"},
		{"-", "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"}, // -: not set
		{"-", "../usr/share/zoneinfo/posix/Europe/Paris", "Europe/Paris"},
		{"-", "/var/db/timezone/zoneinfo/America/Argentina/Salta", "America/Argentina/Salta"},
		{"-", "/etc/zoneinfo/Etc/UTC", "UTC"}, {"-", "/nowhere/else", "UTC"}, {"-", "", "UTC"},
	} {
		t.Setenv("TZ", c.tz)
		if c.tz == "-" {
			require.NoError(t, os.Unsetenv("TZ"))
		}
		_ = os.Remove(link)
		if c.link != "" {
			require.NoError(t, os.Symlink(c.link, link))
		}
		assert.Equal(t, c.want, machineZone(link), c)
	}
}

// An app has the machine's time zone unless another one is given. The command reports the zone at once, and it can be
// changed until something is counted.
func TestZoneIsReported(t *testing.T) {
	t.Parallel()
	url := withDemo(t)
	add := func(name string, tz ...string) string {
		r := footfallWith(t, append([]string{"TZ=Asia/Shanghai"}, tz...), "", "app", "add", name, "--access=open", "--visitor=address", url)
		require.Zero(t, r.code, r.stderr)
		return r.stdout
	}
	assert.Regexp(t, `^added app shop, which counts days in Asia/Shanghai, the time zone of this machine\. `+
		`The first visit fixes the time zone; until then, this changes it:\n\n  \S+ app set shop --tz ZONE\n`, add("shop"))
	assert.Regexp(t, `^added app bare, which counts days in UTC, because this machine has no other time zone set\. `, add("bare", "TZ="))
	assert.Contains(t, well(t, "app", "add", "told", "--access=open", "--visitor=address", "--tz=Asia/Tokyo", url),
		"added app told, which counts days in Asia/Tokyo. The first visit fixes the time zone")

	well(t, "app", "set", "shop", "--tz=Europe/Berlin", url)
	s := serve(t, url)
	status, body := get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://a.example/")
	require.Equal(t, 200, status, body)
	refused := footfall(t, "app", "set", "shop", "--tz=Asia/Shanghai", url)
	assert.Equal(t, exitUsage, refused.code)
	assert.Contains(t, refused.stderr, "has counted days in the time zone Europe/Berlin, and that cannot change")
	assert.Zero(t, s.stop())
	assert.Contains(t, well(t, "app", "list", url), "shop  open    address  Europe/Berlin ")
}
