package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/visit"
)

// countedApp is an app, and what clients were told of it.
type countedApp struct {
	name, cell                 string
	answered, unknown, refused atomic.Int64
}

// TestCellsServedAsOne serves two cells by two instances, one of which has few rights, on a cluster of
// one node and of three, and kills the node of one cell: its apps are refused, the other's go on.
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

	for _, name := range []string{"footfall_other", `"footfall_Not-One"`} { // whose names are like those of cells
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
		assert.Equal(t, http.StatusNotFound, response.StatusCode, "no database is away, though another is no cell")
		response.Body.Close()
	}

	// An app that is added behind the back of the services, and one whose name is another's.
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
	eventually(t, "metrics are told apart", func() bool {
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

// TestCellsWithDeadNodes kills a machine with a cell and one without: a service of all cells starts without
// them, other cells count, their days are made, and they are added, moved and dropped.
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
	for _, day := range made[len(made)-2:] { // as if they had not come into reach
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
	assert.Contains(t, r.stdout, "of the cluster of Citus "+cluster.Node(2)+", "+cluster.Node(3)+" is away")
	three := add("three", 0)
	eventually(t, "the new cell counts", func() bool { three.count(t, client, s.url, "10.0.0.1"); return three.answered.Load() > 0 })
	well(t, "cell", "move", "cellthree", "--to", cluster.Node(1), home)
	refused := footfall(t, "cell", "move", "cellthree", "--to", cluster.Node(3), home)
	assert.Contains(t, refused.stderr, "nothing answers at "+cluster.Node(3))
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

// dropDay drops the partition of a day, which is empty.
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
