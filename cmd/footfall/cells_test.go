package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/visit"
)

const cellClients = 12 // of each cell

// TestCellsMove moves cells while visits are counted. Each cell has two instances, one of them with few rights. During every
// third move, the test kills a node: the cell's present node, its next node or the coordinator. The tables must agree with the
// answers that clients received. No reader may get lower numbers than an answer before the request contained. FOOTFALL_CELLS
// and FOOTFALL_MOVES make the test longer.
func TestCellsMove(t *testing.T) {
	t.Parallel()
	cells, moves := dbtest.FromEnv(t, "FOOTFALL_CELLS", dbtest.LongOrShort(3, 1)),
		dbtest.FromEnv(t, "FOOTFALL_MOVES", dbtest.LongOrShort(10, 2))
	c := &movingCells{t: t, cluster: dbtest.NewCluster(t, 1+max(2, cells))}
	c.home = "--database-url=" + c.cluster.Home()
	for n := range max(2, cells) {
		well(t, "cell", "node", "add", c.cluster.Node(1+n), c.home)
	}
	for n := range cells {
		c.add(n)
	}
	var clients sync.WaitGroup
	ctx, end := context.WithTimeout(context.Background(), crashPatience)
	defer end()
	for _, cell := range c.cells {
		cell.ctx, cell.visits = ctx, 1<<40
		for range cellClients {
			clients.Go(cell.client)
		}
		clients.Go(cell.reader)
	}
	for n := range moves {
		for _, cell := range c.cells {
			cell.awaitAnswers(cell.answered.Load() + 100)
		}
		c.move(n)
	}
	for _, cell := range c.cells {
		cell.awaitAnswers(cell.answered.Load() + 100)
	}
	c.restored(c.cells[0])
	require.NoError(t, ctx.Err(), "it took too long")
	end()
	clients.Wait()
	for _, cell := range c.cells {
		cell.ctx = context.Background()
		compared := cell.compare()
		assert.Positive(t, cell.reads.Load())
		assert.Contains(t, well(t, "verify", "--database-url="+cell.address), "0 violations")
		t.Logf("cell %s: %d visits answered by %d clients, %d failed %v: %s; %d reads", cell.name, cell.answered.Load(), cellClients,
			cell.failed.Load(),
			cell.statuses, compared, cell.reads.Load())
	}
}

type movingCells struct {
	t       *testing.T
	cluster *dbtest.Cluster
	home    string
	cells   []*movingCell
	killed  int
}

// movingCell is a cell under test, and the answers to its clients.
type movingCell struct {
	*crash
	name, address string
	admin         string // the admin address of its first instance
	node          int
	reads         atomic.Int64
}

// add creates a cell with two instances.
func (c *movingCells) add(n int) {
	t := c.t
	t.Helper()
	cell := &movingCell{
		crash: &crash{t: t, ctx: t.Context(), targets: make(map[string]*told), statuses: make(map[int]int64)}, name: fmt.Sprintf("c%d", n),
		node: 1 + n,
	}
	cell.address = strings.TrimSpace(well(t, "cell", "add", cell.name, "--on", c.cluster.Node(cell.node), c.home))
	cell.connect = func() (*pgx.Conn, bool) { return c.cluster.Connect(cell.address), true }
	flag := "--database-url=" + cell.address
	well(t, "app", "add", "demo", "--access=open", "--visitor=address", flag)
	if n == 0 {
		role := dbtest.Connect(t, c.cluster.URL(0, "footfall_"+cell.name))
		_, err := role.Exec(t.Context(), `CREATE ROLE counting LOGIN IN ROLE footfall_app`)
		require.NoError(t, err)
	}
	services := []*running{start(t, flag), start(t, "--no-migrate", strings.Replace(flag, "footfall@", "counting@", 1))}
	for _, s := range services {
		s.awaitReady()
	}
	cell.url.Store(&services[0].url)
	cell.others, cell.admin = []string{services[1].url}, services[0].admin
	c.cells = append(c.cells, cell)
}

// restored creates another cell from a dump of a cell that was made while visits were counted, and deletes data in the new
// cell.
func (c *movingCells) restored(cell *movingCell) {
	t := c.t
	t.Helper()
	hot := func(address string) int64 {
		return dbtest.Column[int64](t, c.cluster.Connect(address), `SELECT hot FROM counters WHERE page_id = 1`)[0]
	}
	before := hot(cell.address)
	again := restoredAs(t, c.cluster, cell.name, "again")
	assert.Contains(t, well(t, "verify", "--database-url="+again), "0 violations")
	assert.GreaterOrEqual(t, hot(again), before)
	assert.Positive(t, before)

	there := c.cluster.Connect(again)
	page := dbtest.Column[string](t, there, `SELECT uri FROM pages WHERE site_id IS NOT NULL LIMIT 1`)[0]
	visitor := dbtest.Column[string](t, there, `SELECT host(ip) FROM visitors LIMIT 1`)[0]
	secret := "--secret-file=" + writeFile(t, strings.Repeat("secret", 6))
	days := writeFile(t, "day,page,page_views\n"+strings.Repeat("2024-05-03,b.example/a,3\n", 6000)+"2024-05-04,b.example/b,4\n")
	first := writeFile(t, "day,page,page_views\n2024-05-03,b.example/a,9\n")
	for _, command := range [][]string{
		{"history", "import", "--app=demo", "--from=csv", "--offsets", days}, {"history", "import", "--app=demo", "--from=csv", first},
		{"history", "list", "--app=demo"}, {"report", "days", "b.example/b", "--from=all", "--history"},
		{"visitor", "erase", "demo", visitor, "--yes"}, {"page", "delete", "demo", page, "--yes"}, {"retain"},
		{"app", "set", "demo", "--visitor=hashed", secret}, {"app", "add", "browsers", "--visitor=browser", "--site=b.example", secret},
		{"verify"},
	} {
		well(t, append(command, "--database-url="+again)...)
	}
	assert.Equal(t, []string{"20240503 b.example 9", "20240503 b.example/a 9", "20240504 b.example 4", "20240504 b.example/b 4"},
		dbtest.Column[string](t, there, `SELECT concat_ws(' ', d.day_id, h.uri, h.page_views)
			FROM history AS h JOIN history_days AS d ON d.id = h.day ORDER BY 1`))
	assert.Equal(t, []int64{13}, dbtest.Column[int64](t, there, `SELECT hot FROM offsets WHERE uri = 'b.example'`))
	well(t, "history", "remove", "--app=demo", "1", "--database-url="+again)
	assert.Positive(t, dbtest.Column[int64](t, there, `SELECT count(*) FROM visitors`)[0])
	assert.Empty(t, dbtest.Column[string](t, there, `SELECT host(ip) FROM visitors WHERE NOT ip << 'fd00::/8' UNION ALL
		SELECT host(ip) FROM visits WHERE NOT ip << 'fd00::/8'`))
	_, err := there.Exec(t.Context(), `INSERT INTO batches (id, schema_version) VALUES (gen_random_uuid(), 2)`)
	require.ErrorContains(t, err, "batches_by_this_version", "of an instance that would take browsers for one visitor")
	well(t, "app", "delete", "demo", "--yes", "--database-url="+again)
	assert.Empty(t, dbtest.Column[string](t, there, `SELECT uri FROM pages`))
}

// restoredAs creates another cell from a dump, as described in docs/cluster.md.
func restoredAs(t *testing.T, cluster *dbtest.Cluster, name, other string) (address string) {
	t.Helper()
	program := func(in []byte, name string, args ...string) []byte {
		command, said := exec.CommandContext(t.Context(), filepath.Join(os.Getenv(dbtest.EnvCitus), name), args...),
			new(bytes.Buffer) //nolint:gosec // of PostgreSQL
		command.Env = append(os.Environ(), "PGOPTIONS=-c citus.override_table_visibility=on")
		command.Stdin, command.Stderr = bytes.NewReader(in), said
		out, err := command.Output()
		require.NoError(t, err, said)
		return out
	}
	from, to := cluster.URL(0, "footfall_"+name), cluster.URL(0, "footfall_"+other)
	dump := program(nil, "pg_dump", "-Fc", "-n", "cell", from)
	program(nil, "psql", "-c", "CREATE DATABASE footfall_"+other+" ENCODING 'UTF8' TEMPLATE template0", cluster.Home())
	program(dump, "pg_restore", "-e", "-d", to)
	address = strings.TrimSpace(well(t, "cell", "add", other, "--database-url="+cluster.Home()))
	const tables = `SELECT logicalrelid::text FROM pg_dist_partition ORDER BY 1`
	assert.Equal(t, dbtest.Column[string](t, dbtest.Connect(t, from), tables), dbtest.Column[string](t, dbtest.Connect(t, to), tables),
		"and no copies of them")
	return address
}

// A cell, a cluster, or the commands of cell refuse impossible requests with the problem and the remedy.
func TestCellsRefuse(t *testing.T) {
	t.Parallel()
	cluster := dbtest.NewCluster(t, 1)
	home, plain := cluster.Home(), dbtest.New(t)
	_, far := dbtest.OwnFar(t, dbtest.OwnDir(t)) // it has no Citus
	blogs := strings.TrimSpace(well(t, "cell", "add", "blogs", "--database-url="+home))
	well(t, "app", "add", "demo", "--site=blog.example", "--visitor=address", "--database-url="+blogs)
	_, err := dbtest.Connect(t, home).Exec(t.Context(), `CREATE ROLE weak LOGIN`)
	require.NoError(t, err)
	at, _, _ := strings.Cut(cluster.Node(0), ":")
	for _, host := range []string{"127.0.0.9", at} {
		_, err := dbtest.Connect(t, home).Exec(t.Context(), `ALTER DATABASE postgres SET citus.local_hostname = '`+host+`'`)
		require.NoError(t, err)
		if r := footfall(t, "cell", "add", "blogs", "--database-url="+home); host == "127.0.0.9" {
			assert.Contains(t, r.stderr, cluster.Node(0)+" cannot connect to itself at 127.0.0.9:5433, the address that Citus uses: run there, "+
				"as a superuser, ALTER SYSTEM SET citus.local_hostname = '"+at+"'; SELECT pg_reload_conf();")
		} else {
			assert.Zero(t, r.code)
		}
	}
	weak, nobody := strings.Replace(home, "footfall@", "weak@", 1), "127.0.0.1:1"
	on := func(url string) string { return url + "&cell=on" }
	for _, c := range []struct{ url, command, says string }{
		{home, "cell add Blogs", `name: "Blogs" is not a valid name of a cell: write up to 40 of a–z, 0–9 and _`},
		{home, "cell add shop --on HOST:99999", `"HOST:99999" is not the address of a server: write it as HOST:PORT`},
		{home, "cell add shop --on " + nobody, nobody + " is not a node of this cluster, which has [" + cluster.Node(0) + "]: add it with"},
		{home, "cell move blogs --to " + nobody, "is not a node of this cluster"},
		{home, "cell move shop --to " + cluster.Node(0), "there is no cell shop: `footfall cell list` shows"},
		{home, "cell move-app demo --to shop", "there is no cell shop"},
		{home, "cell move-app demo --to Shop", `--to: "Shop" is not a valid name of a cell: write up to 40 of a–z, 0–9 and _`},
		{home, "cell move-app none --to blogs", "no cell except blogs has an app none: if the app is in a database that is not a cell, " +
			"name this database with --from"},
		{home, "cell move-app demo --to blogs --from " + plain, "the database of --from has no app demo"},
		{home, "cell move-app demo --to blogs --from " + home, "the database does not contain Footfall's schema"},
		{home, "cell node add " + nobody, "no server answers at " + nobody},
		{blogs, "cell list", "this database belongs to a cell: name a database of the coordinator that belongs to no cell"},
		{"postgres://footfall@127.0.0.1/postgres", "cell list",
			"write the address at which other nodes reach the coordinator, as postgres://user:password@HOST:PORT/postgres"},
		{"postgres://footfall@" + nobody + "/postgres", "cell list", "no server answers at " + nobody},
		{far, "cell add shop", `extension "citus" is not available`},
		{weak, "cell add shop", "only a superuser can create and move cells, and weak is not one at " + cluster.Node(0)},
		{weak, "cell list", "only a superuser can create and move cells"},
		{strings.Replace(blogs, "footfall@", "weak@", 1), "app list", "make it a member of footfall_app"},
		{strings.Replace(blogs, "cell=on", "cell=yes", 1), "app list", "cell=yes is not valid: write cell=on for a cell, or leave it out"},
		{strings.Replace(blogs, cluster.Node(0), nobody, 1), "app list", "no server answers at " + nobody},
		{home, "cell node replace " + nobody + " " + nobody, nobody + " cannot be replaced by itself"},
		{home, "cell node replace " + nobody + " 127.0.0.1:2", nobody + " is not a node of this cluster"},
		{home, "cell node remove " + nobody, nobody + " is not a node of this cluster"},
		{home, "cell drop shop --yes", "there is no cell shop"},
		{strings.Replace(home, cluster.Node(0), cluster.Node(0)+","+nobody, 1), "cell list",
			"write the address at which other nodes reach the coordinator"},
		{strings.Replace(blogs, "blogs", "shop", 1), "app list", "the server has no such database"},
		{strings.Replace(blogs, "cell=on&", "", 1), "migrate up",
			"this database belongs to a cell: use its URL from `footfall cell list`, with ?cell=on"},
		{on(home), "migrate up", "if the database is not a cell, leave out cell=on"},
		{on(home), "serve --addr=127.0.0.1:0 --admin-addr=off", "if the database is not a cell, leave out cell=on"},
		{blogs, "migrate down --yes", "the steps of a cell cannot be reverted: move its apps to another cell, and drop this one"},
	} {
		r := footfall(t, append(strings.Fields(c.command), "--database-url="+c.url)...)
		assert.NotZero(t, r.code, "%s on %s", c.command, c.url)
		assert.Contains(t, r.stderr, c.says, "%s on %s", c.command, c.url)
	}
	assert.Contains(t, well(t, "cell", "list", "--database-url="+home), blogs)

	link := footfall(t, "start-link", "--database-url="+blogs)
	assert.Contains(t, link.stderr, "Accounts of `serve --cells` are in the coordinator's database")
	nodesNeedPasswords(t, cluster)

	from := withDemo(t)
	appGoes(t, from, "--database-url="+blogs)
	appsMove(t, cluster, blogs, from)

	// If the cluster has a single node, this node has the tables twice, but a dump contains them only once.
	again := restoredAs(t, cluster, "blogs", "again")
	assert.Equal(t, []string{"again", "back", "blog", "demo"},
		dbtest.Column[string](t, cluster.Connect(again), `SELECT name FROM apps ORDER BY 1`))
}

// nodesNeedPasswords makes PostgreSQL require a password from a user. The nodes have no password for connections to each other.
func nodesNeedPasswords(t *testing.T, cluster *dbtest.Cluster) {
	t.Helper()
	conn := dbtest.Connect(t, cluster.Home())
	hba := dbtest.Column[string](t, conn, `SHOW hba_file`)[0]
	rules, err := os.ReadFile(hba)
	require.NoError(t, err)
	rules = append([]byte("host all strict 127.0.0.0/8 scram-sha-256\n"), rules...)
	require.NoError(t, os.WriteFile(hba, rules, 0o644)) //nolint:gosec // as before
	for _, sql := range []string{`CREATE ROLE strict LOGIN SUPERUSER PASSWORD 'secret'`, `SELECT pg_reload_conf()`} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	r := footfall(t, "cell", "add", "shop", "--database-url="+strings.Replace(cluster.Home(), "footfall@", "strict:secret@", 1))
	assert.Equal(t, exitFailed, r.code)
	assert.Contains(t, r.stderr, "no password supplied")
	assert.Contains(t, r.stderr, "write the password into ~/.pgpass of the user that runs each node's server (mode 0600)")
	assert.NotContains(t, r.stderr, "citus.local_hostname")
}

// appsMove moves an app from one cell to another, with a command that is killed twice on the way, and then back. It also moves
// another app out of a plain database.
func appsMove(t *testing.T, cluster *dbtest.Cluster, blogs, plain string) {
	t.Helper()
	home := "--database-url=" + cluster.Home()
	shop := strings.TrimSpace(well(t, "cell", "add", "shop", home))
	days := func(app, url string) string {
		return strings.ReplaceAll(well(t, "report", "days", "blog.example", "--app="+app, "--database-url="+url), app+": ", "")
	}
	want := days("blog", blogs)
	well(t, "app", "key", "add", "blog", "--scope=read", "--database-url="+blogs)
	well(t, "app", "share", "add", "blog", "--database-url="+blogs)
	_, err := cluster.Connect(blogs).Exec(t.Context(), `SELECT put_in_inbox(id, tz, visitor, ipv6_prefix, '{blog.example/}', '{1}',
		ARRAY[today(tz)], '{0}', '{192.0.2.200}', NULL) FROM apps WHERE name = 'blog'`)
	require.NoError(t, err)
	gone := `SELECT concat_ws(' ', (SELECT count(*) FROM inbox), (SELECT count(*) FROM keys WHERE app_id = a.id),
		(SELECT count(*) FROM shares)) FROM apps AS a WHERE name = 'blog'`
	for url, once := range map[string]string{
		blogs: `SELECT count(*) FROM apps WHERE name = 'blog' AND moving_to = 'shop'`, shop: `SELECT count(*) FROM apps WHERE name = 'blog'`} {
		cmd := exec.Command(os.Args[0], "cell", "move-app", "blog", "--to=shop", home)
		cmd.Env = environment()
		require.NoError(t, cmd.Start())
		conn := cluster.Connect(url)
		eventually(t, "it moves", func() bool { return dbtest.Column[int](t, conn, once)[0] > 0 })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	assert.Contains(t, well(t, "cell", "move-app", "blog", "--to=shop", home), "app blog is in the cell shop")
	well(t, "cell", "move-app", "blog", "--to=shop", home) // once more
	assert.Equal(t, want, days("blog", shop))
	assert.Equal(t, []string{"1 1 1"}, dbtest.Column[string](t, cluster.Connect(shop), gone),
		"waiting visits, keys and links get new ids there")
	old := footfall(t, "report", "days", "blog.example", "--app=blog", "--database-url="+blogs)
	assert.Contains(t, old.stderr, "app blog is in the cell shop")
	assert.Empty(t, dbtest.Column[string](t, cluster.Connect(blogs), `SELECT uri FROM pages JOIN apps a ON a.id = app_id WHERE name = 'blog'`))
	for _, cell := range []string{blogs, shop} {
		assert.Contains(t, well(t, "verify", "--database-url="+cell), "0 violations")
	}
	well(t, "cell", "move-app", "blog", "--to=blogs", home)
	moved := well(t, "cell", "move-app", "back", "--to=blogs", "--from="+strings.TrimPrefix(plain, "--database-url="), home)
	assert.Regexp(t, `app back is in the cell blogs, with all its data; visits were refused for [\d.]+m?s; `, moved)
	for _, app := range []string{"blog", "back"} {
		assert.Equal(t, want, days(app, blogs))
	}
	assert.Contains(t, well(t, "verify", "--database-url="+blogs), "0 violations")
	assert.Contains(t, well(t, "verify", plain), "0 violations")
}

// TestCellsReplace kills a node under load, promotes its standby, and replaces the node by the standby, with a command that is
// killed half-way and then repeated. Then it removes this node, and replaces the coordinator in the same way. Services must
// start while the coordinator is away. Finally it drops a cell.
func TestCellsReplace(t *testing.T) {
	t.Parallel()
	c := &movingCells{t: t, cluster: dbtest.NewCluster(t, 3)}
	c.home = "--database-url=" + c.cluster.Home()
	for n := range 2 {
		well(t, "cell", "node", "add", c.cluster.Node(1+n), c.home)
	}
	c.add(0)
	c.add(1)
	cell, other := c.cells[0], c.cells[1]
	var clients sync.WaitGroup
	ctx, end := context.WithTimeout(context.Background(), crashPatience)
	defer end()
	for _, cell := range c.cells {
		cell.ctx, cell.visits = ctx, 1<<40
		for range cellClients {
			clients.Go(cell.client)
		}
		clients.Go(cell.reader)
	}
	goOn := func() {
		for _, cell := range c.cells {
			cell.awaitAnswers(cell.answered.Load() + cellClients + 100)
		}
	}
	refused := func(says string, args ...string) {
		r := footfall(t, append(args, c.home)...)
		assert.Equal(t, exitFailed, r.code, args)
		assert.Contains(t, r.stderr, says)
	}

	old, standby := 1, c.cluster.Follow(1)
	goOn()
	replace := []string{"cell", "node", "replace", c.cluster.Node(old), c.cluster.Node(standby)}
	refused(c.cluster.Node(old)+" is still running, and visits that it still counts would be lost: stop it first", replace...)
	refused(c.cluster.Node(standby)+" is still a standby: promote it first", replace...)
	refused(c.cluster.Node(2)+" is already a node of the cluster", "cell", "node", "replace", c.cluster.Node(old), c.cluster.Node(2))
	list := well(t, "cell", "list", c.home)
	assert.Regexp(t, `(?m)^c0 +`+c.cluster.Node(old)+` +[\d.]+MiB +1 +[1-9]\d* +\S+ sync +ready$`, list)
	assert.Regexp(t, `(?m)^c1 +`+c.cluster.Node(2)+` +[\d.]+MiB +1 +[1-9]\d* +- +ready$`, list)
	assert.Regexp(t, `(?m)^`+c.cluster.Node(old)+` +c0 +[\d.]+MiB +answers$`, list)
	_, metrics := get(cell.admin + "/metrics")
	assert.Contains(t, metrics, `footfall_cell_apps{node="`+c.cluster.Node(old)+`"} 1`)
	c.cluster.Kill(old)
	killed := time.Now()
	assert.Regexp(t, `(?m)^c0 +`+c.cluster.Node(old)+` +- .* no server answers at `+c.cluster.Node(old), well(t, "cell", "list", c.home))
	c.cluster.Promote(standby)
	c.killedHalfWay(append(replace, c.home), other, standby)
	for range 2 {
		assert.Contains(t, well(t, append(replace, c.home)...), c.cluster.Node(standby)+" has replaced "+c.cluster.Node(old))
	}
	cell.awaitAnswers(cell.answered.Load() + cellClients + 100)
	t.Logf("counts again after %.1f s", time.Since(killed).Seconds())
	other.awaitAnswers(other.answered.Load() + 100)
	for _, at := range []int{0, 2, standby} {
		for _, database := range []string{"postgres", "footfall_c0", "footfall_c1"} {
			assert.ElementsMatch(t, []string{c.cluster.Node(0), c.cluster.Node(2), c.cluster.Node(standby)}, dbtest.Column[string](t,
				dbtest.Connect(t, c.cluster.URL(at, database)), `SELECT concat(nodename, ':', nodeport) FROM pg_dist_node`), "%s at %d", database, at)
		}
	}
	c.cluster.Start(old)
	refused(c.cluster.Node(old)+" has old tables of this database", "cell", "node", "add", c.cluster.Node(old))
	c.cluster.Kill(old) // the old node would give outdated information to services that start now
	refused(c.cluster.Node(standby)+" has cells: c0: move them", "cell", "node", "remove", c.cluster.Node(standby))
	refused("is the coordinator", "cell", "node", "remove", c.cluster.Node(0))
	well(t, "cell", "node", "remove", c.cluster.Node(standby), "--to", c.cluster.Node(2), c.home)
	well(t, "cell", "node", "add", c.cluster.Node(standby), c.home)
	goOn()

	standby = c.cluster.Follow(0)
	c.cluster.Kill(0)
	start(t, "--database-url="+other.address).awaitReady()
	c.cluster.Promote(standby)
	c.home = "--database-url=" + c.cluster.URL(standby, "postgres")
	well(t, "cell", "node", "replace", c.cluster.Node(0), c.cluster.Node(standby), c.home)
	refused("running services use these tables (3 in all): stop these services first", "cell", "drop", "c1", "--yes")
	goOn()
	end()
	clients.Wait()
	for _, cell := range c.cells {
		cell.ctx = context.Background()
		assert.Positive(t, cell.reads.Load())
		assert.Contains(t, well(t, "verify", "--database-url="+cell.address), "0 violations")
		t.Logf("cell %s: %d visits answered, %d failed %v: %s", cell.name, cell.answered.Load(), cell.failed.Load(), cell.statuses,
			cell.compare())
	}
	fresh := strings.TrimSpace(well(t, "cell", "add", "fresh", "--on", c.cluster.Node(standby), c.home))
	assert.Contains(t, fresh, c.cluster.Node(standby)+","+c.cluster.Node(2)+",")
	refused("nothing was done: without a terminal, it cannot be confirmed", "cell", "drop", "fresh")
	well(t, "cell", "drop", "fresh", "--yes", c.home)
	for _, at := range []int{standby, 2} {
		assert.Equal(t, []string{"footfall_c0", "footfall_c1"}, dbtest.Column[string](t, dbtest.Connect(t, c.cluster.URL(at, "postgres")),
			`SELECT datname FROM pg_database WHERE datname LIKE 'footfall\_%' ORDER BY 1`))
	}
}

// killedHalfWay kills a command that replaces a node, after it has changed one cell's database and before it changes the
// database of the other cell.
func (c *movingCells) killedHalfWay(args []string, other *movingCell, by int) {
	t := c.t
	t.Helper()
	database := "footfall_" + other.name
	hold := dbtest.Connect(t, c.cluster.URL(0, database))
	tx, err := hold.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE pg_dist_node IN SHARE MODE`)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = environment()
	require.NoError(t, cmd.Start())
	home := dbtest.Connect(t, c.cluster.Home())
	eventually(t, "it waits", func() bool {
		return dbtest.Column[int](t, home, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = '`+database+`' AND wait_event_type = 'Lock' AND query LIKE '%citus_update_node%'`)[0] > 0
	})
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventually(t, "what it asked for last has ended", func() bool {
		return dbtest.Column[int](t, home, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = '`+database+`' AND wait_event_type = 'Lock'`)[0] == 0
	})
	require.NoError(t, tx.Rollback(t.Context()))
	for n, known := range []int{1, 0} {
		assert.Equal(t, []int{known}, dbtest.Column[int](t, dbtest.Connect(t, c.cluster.URL(0, "footfall_"+c.cells[n].name)),
			`SELECT count(*) FROM pg_dist_node WHERE concat(nodename, ':', nodeport) = '`+c.cluster.Node(by)+`'`))
	}
}

// reader requests the numbers of a site. They must not be lower than the numbers in earlier answers.
func (cell *movingCell) reader() {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for cell.ctx.Err() == nil {
		cell.mu.Lock()
		var told int64
		for hot := range cell.target("site0.example").hots {
			told = max(told, hot)
		}
		cell.mu.Unlock()
		response, err := client.Get(cell.base() + "/counts?app=demo&uri=http://site0.example/0")
		if err != nil {
			continue
		}
		var answer visit.Answer
		if err := json.NewDecoder(response.Body).Decode(&answer); err == nil && response.StatusCode == http.StatusOK {
			cell.reads.Add(1)
			assert.GreaterOrEqual(cell.t, answer.Site.Hot, told, "a read that is stale")
		}
		_ = response.Body.Close()
	}
}

// move moves a cell to the next node. In every third move it kills a node, and repeats the move.
func (c *movingCells) move(n int) {
	c.t.Helper()
	cell := c.cells[n%len(c.cells)]
	from, to := cell.node, 1+cell.node%max(2, len(c.cells))
	args := []string{"cell", "move", cell.name, "--to", c.cluster.Node(to), c.home}
	if n%3 != 1 {
		well(c.t, args...)
	} else {
		moved := make(chan result, 1)
		go func() { moved <- footfall(c.t, args...) }()
		source := dbtest.Connect(c.t, c.cluster.URL(from, "postgres"))
		eventually(c.t, "the move is under way", func() bool {
			return len(moved) > 0 || slices.Contains(dbtest.Column[bool](c.t, source, `SELECT true FROM pg_replication_slots`), true)
		})
		_ = source.Close(c.t.Context())
		victim := []int{from, to, 0}[c.killed%3]
		c.killed++
		c.cluster.Kill(victim)
		c.cluster.Start(victim)
		c.t.Logf("node %d was killed; the move ended so: %s", victim, (<-moved).stderr)
		eventually(c.t, "the cell moves after all", func() bool { return footfall(c.t, args...).code == exitDone })
	}
	cell.node = to
}

// A cell gets the migrations and functions of a next version while visits are counted.
func TestCellsNextVersion(t *testing.T) {
	t.Parallel()
	c := &movingCells{t: t, cluster: dbtest.NewCluster(t, 2)}
	next, _ := nextVersions(t)
	c.home = "--database-url=" + c.cluster.Home()
	well(t, "cell", "node", "add", c.cluster.Node(1), c.home)
	c.add(0)
	cell := c.cells[0]
	cell.visits = 1 << 40
	var clients sync.WaitGroup
	for range cellClients {
		clients.Go(cell.client)
	}
	defer func() { cell.taken.Store(cell.visits); clients.Wait() }()
	for _, program := range next {
		cell.awaitAnswers(cell.answered.Load() + 100)
		s := startOf(t, program, "--database-url="+cell.address)
		s.awaitReady()
		cell.goTo(s)
	}
	cell.awaitAnswers(cell.answered.Load() + 100)
	cell.taken.Store(cell.visits)
	clients.Wait()
	t.Log(cell.compare())
	r := footfallOf(t, next[1], nil, "", "verify", "--database-url="+cell.address)
	assert.Contains(t, r.stdout, "0 violations", r.stderr)
}

// countedApp is an app, and the answers to its clients.
type countedApp struct {
	name, cell                 string
	answered, unknown, refused atomic.Int64
}

// TestCellsServedAsOne serves two cells with two instances, one of them with few rights, on a cluster of one node and on one of
// three. It kills the node of one cell: visits to this cell's apps are refused, and the other apps continue to count.
func TestCellsServedAsOne(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			servedAsOne(t, nodes)
		})
	}
}

func servedAsOne(t *testing.T, nodes int) {
	cluster := dbtest.NewCluster(t, nodes)
	home := "--database-url=" + cluster.Home()
	for n := 1; n < nodes; n++ {
		well(t, "cell", "node", "add", cluster.Node(n), home)
	}
	apps := []*countedApp{{name: "one"}, {name: "two"}}
	for n, a := range apps {
		node := cluster.Node((n + 1) % nodes)
		a.cell = strings.TrimSpace(well(t, "cell", "add", "cell"+a.name, "--on", node, home))
		well(t, "app", "add", a.name, "--access=open", "--visitor=address", "--database-url="+a.cell)
	}
	_, err := dbtest.Connect(t, cluster.URL(0, "footfall_cellone")).Exec(t.Context(), `CREATE ROLE counting LOGIN IN ROLE footfall_app`)
	require.NoError(t, err)

	for _, name := range []string{"footfall_other", `"footfall_Not-One"`} { // their names look like those of cells
		_, err := dbtest.Connect(t, cluster.Home()).Exec(t.Context(), `CREATE DATABASE `+name)
		require.NoError(t, err)
	}

	served := []*running{start(t, "--cells="+cluster.Home())}
	served[0].awaitReady()
	served = append(served, start(t, "--no-migrate", "--cells="+strings.Replace(cluster.Home(), "footfall@", "counting@", 1)))
	served[1].awaitReady()

	var clients sync.WaitGroup
	var ended atomic.Bool
	for i := range 4 * len(apps) {
		clients.Go(func() {
			client, a := &http.Client{Timeout: patience}, apps[i%len(apps)]
			defer client.CloseIdleConnections()
			for n := 0; !ended.Load(); n++ {
				a.count(t, client, served[i/len(apps)%2].url, fmt.Sprintf("10.0.%d.%d", i, n%250+1))
			}
		})
	}
	defer func() { ended.Store(true); clients.Wait() }()
	more := func(of *countedApp, than int64) {
		t.Helper()
		eventually(t, "visits of "+of.name, func() bool { return of.answered.Load() > than })
	}
	more(apps[0], 50)
	more(apps[1], 50)

	if response, err := http.Get(served[0].url + "/visit?app=nobody&uri=http://nobody.example/"); assert.NoError(t, err) {
		assert.Equal(t, http.StatusNotFound, response.StatusCode, "no database is away, although another one is not a cell")
		response.Body.Close()
	}

	// Both instances serve an app that is added directly to a cell's database.
	well(t, "app", "add", "three", "--access=open", "--visitor=address", "--database-url="+apps[1].cell)
	third := &countedApp{name: "three"}
	for _, s := range served {
		third.count(t, http.DefaultClient, s.url, "10.0.0.1")
	}
	assert.Equal(t, int64(2), third.answered.Load())
	if nodes > 1 {
		cluster.Kill(1)
		refused := apps[0].refused.Load()
		eventually(t, "apps of the node are refused", func() bool { return apps[0].refused.Load() > refused+20 })
		more(apps[1], apps[1].answered.Load()+200)
		assert.Zero(t, apps[1].refused.Load(), "the other cell")
		cluster.Start(1)
		more(apps[0], apps[0].answered.Load()+50)

		cluster.Kill(0)
		for _, a := range apps {
			more(a, a.answered.Load()+200)
		}
		assert.Zero(t, apps[1].refused.Load(), "without the coordinator")
		_, ready := get(served[0].url + "/readyz")
		assert.Contains(t, ready, `"coordinator":"away"`)
		cluster.Start(0)
	}
	eventually(t, "the metrics of each node are distinguished", func() bool {
		response, err := http.Get(served[0].admin + "/metrics") //nolint:gosec // of the service
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return strings.Contains(string(text), `footfall_visits_total{cell="cellone"`) &&
			strings.Contains(string(text), `footfall_cell_up{cell="celltwo"`)
	})
	ended.Store(true)
	clients.Wait()
	for _, a := range apps {
		hot := dbtest.Column[int64](t, cluster.Connect(a.cell), `SELECT sum(c.hot)::bigint FROM counters AS c JOIN pages AS p ON p.id = c.page_id
			WHERE p.site_id IS NULL AND p.uri = '`+a.name+`.example'`)[0]
		assert.GreaterOrEqual(t, hot, a.answered.Load(), "none is lost")
		assert.LessOrEqual(t, hot, a.answered.Load()+a.unknown.Load(), "none is doubled")
		assert.Contains(t, well(t, "verify", "--database-url="+a.cell), "0 violations")
		t.Logf("%s: %d answered, %d refused, %d not known", a.name, a.answered.Load(), a.refused.Load(), a.unknown.Load())
	}
}

// TestCellsWithDeadNodes kills a machine with a cell and a machine without one. A service of all cells must start without these
// machines. The other cells must continue to count and get partitions for new days, and cells can be added, moved and dropped.
func TestCellsWithDeadNodes(t *testing.T) {
	t.Parallel()
	cluster := dbtest.NewCluster(t, 4)
	home := "--database-url=" + cluster.Home()
	for n := 1; n < 4; n++ {
		well(t, "cell", "node", "add", cluster.Node(n), home)
	}
	add := func(name string, node int) *countedApp {
		a := &countedApp{name: name}
		a.cell = strings.TrimSpace(well(t, "cell", "add", "cell"+name, "--on", cluster.Node(node), home))
		well(t, "app", "add", name, "--access=open", "--visitor=address", "--database-url="+a.cell)
		return a
	}
	one, two := add("one", 1), add("two", 2)
	_, err := dbtest.Connect(t, cluster.URL(0, "footfall_cellone")).Exec(t.Context(), `CREATE ROLE counting LOGIN IN ROLE footfall_app`)
	require.NoError(t, err)
	began := time.Now()
	s := serve(t, "--cells="+cluster.Home())
	usual := time.Since(began)
	one.count(t, client, s.url, "10.0.0.1")
	two.count(t, client, s.url, "10.0.0.1")
	require.Zero(t, s.stop())
	require.Equal(t, []int64{1, 1}, []int64{one.answered.Load(), two.answered.Load()})

	tables := cluster.Connect(one.cell)
	days := func() []int32 {
		return dbtest.Column[int32](t, tables, `SELECT day FROM footfall.visits_partitions() ORDER BY 1`)
	}
	made := days()
	for _, day := range made[len(made)-2:] { // as if the nodes had been out of reach
		dropDay(t, cluster, "cellone", day)
	}
	cluster.Kill(2)
	cluster.Kill(3)
	require.Equal(t, made[:len(made)-2], days())
	began = time.Now()
	s = serve(t, "--no-migrate", "--cells="+strings.Replace(cluster.Home(), "footfall@", "counting@", 1)) // with few rights
	took := time.Since(began)
	t.Logf("ready in %v, and in %v with all nodes", took, usual)
	assert.Less(t, took, usual+5*time.Second)
	one.count(t, client, s.url, "10.0.0.2")
	two.count(t, client, s.url, "10.0.0.2")
	assert.Equal(t, []int64{2, 1}, []int64{one.answered.Load(), two.refused.Load()})
	eventually(t, "the days are made", func() bool { return len(days()) == len(made) })
	eventually(t, "/readyz names the nodes", func() bool {
		status, body := get(s.url + "/readyz")
		assert.Equal(t, http.StatusOK, status)
		return body == `{"state":"ready","away":["celltwo"],"nodes_away":["`+cluster.Node(2)+`","`+cluster.Node(3)+`"],"days_left":8}`
	})
	require.Zero(t, s.stop())

	_, err = tables.Exec(t.Context(), `UPDATE footfall.schema_files SET hash = '' WHERE name = 'functions'`)
	require.NoError(t, err)
	assert.Contains(t, well(t, "migrate", "up", "--database-url="+one.cell), "applied functions and views")
	s = serve(t, "--cells="+cluster.Home())
	r := footfall(t, "status", "--database-url="+one.cell)
	assert.Equal(t, exitWarned, r.code, r.stderr)
	assert.Contains(t, r.stdout, "nodes of the Citus cluster cannot be reached: "+cluster.Node(2)+", "+cluster.Node(3)+";")
	three := add("three", 0)
	eventually(t, "the new cell counts", func() bool { three.count(t, client, s.url, "10.0.0.1"); return three.answered.Load() > 0 })
	well(t, "cell", "move", "cellthree", "--to", cluster.Node(1), home)
	refused := footfall(t, "cell", "move", "cellthree", "--to", cluster.Node(3), home)
	assert.Contains(t, refused.stderr, "no server answers at "+cluster.Node(3))
	well(t, "cell", "drop", "cellthree", "--yes", home)
	one.count(t, client, s.url, "10.0.0.3")
	assert.Equal(t, int64(3), one.answered.Load())

	cluster.Start(2)
	cluster.Start(3)
	eventually(t, "the other cell counts", func() bool { two.count(t, client, s.url, "10.0.0.3"); return two.answered.Load() > 1 })
	well(t, "cell", "move", "cellone", "--to", cluster.Node(3), home)
	well(t, "cell", "drop", "celltwo", "--yes", home)
	assert.Equal(t, []string{"cellone"}, dbtest.Column[string](t, dbtest.Connect(t, cluster.Home()),
		`SELECT substr(datname, 10) FROM pg_database WHERE datname LIKE 'footfall\_%'`))
	eventually(t, "it counts on the node that was away", func() bool {
		one.count(t, client, s.url, "10.0.0.4")
		return one.answered.Load() > 3
	})
	assert.Contains(t, well(t, "verify", "--database-url="+one.cell), "0 violations")

	thaw := cluster.Freeze(3)
	list := well(t, "cell", "list", home)
	assert.Regexp(t, `(?m)^cellone +`+cluster.Node(3)+` .*the server at `+cluster.Node(3)+` does not answer in time$`, list)
	assert.NotContains(t, list, "the server at "+cluster.Node(0))
	thaw()
}

// dropDay drops the empty partition of a day.
func dropDay(t *testing.T, cluster *dbtest.Cluster, cell string, day int32) {
	t.Helper()
	conn := dbtest.Connect(t, cluster.URL(0, "footfall_"+cell))
	for _, sql := range []string{"ALTER TABLE cell.visits DETACH PARTITION cell.visits_%d", "DROP TABLE cell.visits_%d"} {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(sql, day))
		require.NoError(t, err)
	}
}

func (a *countedApp) count(t *testing.T, client *http.Client, base, ip string) {
	response, err := client.Get(base + "/visit?app=" + a.name + "&ip=" + ip + "&uri=http://" + a.name + ".example/")
	if err != nil {
		a.unknown.Add(1)
		return
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		var answer visit.Answer
		assert.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
		assert.Positive(t, answer.Site.Hot)
		a.answered.Add(1)
	case http.StatusServiceUnavailable:
		a.refused.Add(1)
	default:
		assert.Equal(t, http.StatusInternalServerError, response.StatusCode)
		a.unknown.Add(1)
	}
}
