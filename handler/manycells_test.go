package handler

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/handler/routing"
	"footfall/report"
)

// cellsOfTest is a set of databases, one per cell, and a service for all cells, which starts from another database.
type cellsOfTest struct {
	*edge
	mu      sync.Mutex
	cells   map[string]*desk.Desk
	missing map[string]bool // cells that cannot be opened
	opened  map[string]*routing.Cell
	lost    bool // the list of cells is unavailable
	leadFor time.Duration
}

func (c *cellsOfTest) find(context.Context) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost {
		return nil, errors.New("nothing answers")
	}
	return slices.Sorted(maps.Keys(c.cells)), nil
}

func (c *cellsOfTest) reach(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing[name] {
		return errors.New("nothing answers")
	}
	return nil
}

func (c *cellsOfTest) open(ctx context.Context, name string, _ int) (*routing.Cell, error) {
	if _, bounded := ctx.Deadline(); bounded {
		return nil, errors.New("steps of the schema may take longer")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.cells[name]
	c.opened[name] = &routing.Cell{Name: name, Counter: d.Counter, Admin: d.Admin, Reports: report.NewReader(d.DB), Close: func() {}}
	return c.opened[name], nil
}

func (c *cellsOfTest) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// serve starts to serve the cells.
func (c *cellsOfTest) serve() (end func()) {
	home := &routing.Cell{Counter: c.Counter, Admin: c.Admin, Reports: report.NewReader(c.DB), Close: func() {}}
	all, err := routing.Open(c.t.Context(), home, routing.Options{Find: c.find, Reach: c.reach, Open: c.open,
		NodesAway: func(context.Context) ([]string, error) { return []string{"127.0.0.1:1"}, nil },
		LeadFor:   c.leadFor, Log: slog.New(slog.DiscardHandler)})
	require.NoError(c.t, err)
	options := c.options
	options.Cells, options.Metrics = all, nil
	server := serve(c.t, publicHandler(options), options.Log)
	c.public = server.URL
	return sync.OnceFunc(func() { server.Close(); all.Close() })
}

func (c *cellsOfTest) visit(app, site string) answer {
	c.t.Helper()
	return c.get("/visit?app=" + app + "&uri=http://" + site + "/")
}

func (c *cellsOfTest) eventually(what string, f func() bool) {
	c.t.Helper()
	require.Eventually(c.t, f, dbtest.Patience, dbtest.Tick, what)
}

func newCells(t *testing.T) (c *cellsOfTest, away *dbtest.Network) {
	t.Helper()
	c = &cellsOfTest{edge: newEdge(t), cells: map[string]*desk.Desk{}, missing: map[string]bool{},
		opened: map[string]*routing.Cell{}, leadFor: time.Hour}
	sites := func(names ...string) desk.Options {
		o := desk.Options{Began: noon, Apps: map[string]app.Settings{}}
		for _, name := range names {
			o.Apps[name] = app.Settings{Sites: []string{name + ".example"}}
		}
		return o
	}
	c.cells["blogs"] = desk.Open(t, sites("blog", "twice"))
	o := sites("store", "twice", "more")
	url := desk.Database(t, o)
	away, o.ConnectURL = dbtest.NewNetwork(t, url)
	c.cells["shops"] = desk.On(t, url, o)
	return c, away
}

// One service serves the apps of several databases, each in its own database, and a failing cell does not affect the other
// cells.
func TestManyCells(t *testing.T) {
	t.Parallel()
	c, network := newCells(t)
	blogs, shops := c.cells["blogs"], c.cells["shops"]
	end := c.serve()
	defer func() { end() }()

	hot := func(d *desk.Desk) int64 { return d.One(t, `SELECT coalesce(sum(hot), 0)::bigint FROM counters`) }
	require.Equal(t, 200, c.visit("blog", "blog.example").status)
	require.Equal(t, 200, c.visit("store", "store.example").status)
	require.Equal(t, 200, c.visit("shop", "example.com").status, "of the database from which the service begins")
	assert.Equal(t, []int64{2, 2, 2}, []int64{hot(blogs), hot(shops), hot(c.Desk)}, "a page and a site, each where its app is")
	assert.Equal(t, http.StatusNotFound, c.visit("nobody", "blog.example").status)
	assert.Equal(t, 200, c.get("/counts?app=store&uri=http://store.example/").status)

	// Calls of many visits to a cell that does not respond take no turns of other cells' calls.
	for range cap(c.opened["shops"].Turns) {
		c.opened["shops"].Turns <- struct{}{}
	}
	many := func(name string, in *desk.Desk) func() int {
		key, err := in.Admin.AddKey(t.Context(), name, []app.Scope{app.ScopeAssert})
		require.NoError(t, err)
		return func() int {
			return c.askWith(`[]`, http.MethodPost, "/visits?app="+name, "Authorization", "Bearer "+key, "Content-Type", "application/json").status
		}
	}
	waits, waited := many("store", shops), make(chan int, 1)
	go func() { waited <- waits() }()
	assert.Equal(t, 200, many("blog", blogs)())

	// If two cells have apps of the same name, neither is served, and both cells are named.
	owner := c.owner()
	assert.NotContains(t, owner.get("/").body, "/dash/twice", "which of both would it be?")
	assert.NotContains(t, owner.get("/settings").body, "/settings/twice")
	for _, path := range []string{"/visit?app=twice&uri=http://twice.example/", "/counts?app=twice&uri=http://twice.example/",
		"/api/apps/twice/sites"} {
		a := c.get(path)
		assert.Equal(t, http.StatusServiceUnavailable, a.status)
		assert.Contains(t, a.error(t), "blogs, shops", path)
	}
	blogs.Exec(t, `UPDATE apps SET moving_to = 'shops' WHERE name = 'twice'`)
	c.eventually("it is on its way", func() bool {
		a := c.visit("twice", "twice.example")
		return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "is moving to the cell shops")
	})
	blogs.Exec(t, `UPDATE apps SET moving_to = NULL WHERE name = 'twice'`)
	require.NoError(t, blogs.Admin.DeleteApp(t.Context(), "twice"))
	c.eventually("one is left", func() bool { return c.visit("twice", "twice.example").status == 200 })

	// Requests that name no app (from pages made for other services), shared links, and origins.
	busuanzi := c.ask(http.MethodGet, "/busuanzi?url=http://store.example/2", "Origin", "http://store.example")
	assert.Equal(t, 200, busuanzi.status, busuanzi.body)
	assert.Equal(t, "http://store.example", busuanzi.header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, int64(6), hot(shops), "twice and the other page")
	const inStore = `{"url":"http://store.example/2"}`
	cc := c.askWith(inStore, http.MethodPost, "/api.php", "Origin", "http://store.example")
	assert.Equal(t, 200, cc.status, cc.body)
	assert.Equal(t, int64(8), hot(shops), "the site and the page")
	increment := func() answer {
		return c.askWith(one1, http.MethodPut, "/1.1/classes/Counter/"+recordID("/2"), "Origin", "http://store.example")
	}
	assert.Equal(t, 200, increment().status)
	assert.Equal(t, int64(10), hot(shops))
	link, _, err := shops.Admin.AddShare(t.Context(), "store", "", "")
	require.NoError(t, err)
	assert.Equal(t, 200, c.get("/share/"+link).status)
	assert.Equal(t, http.StatusNotFound, c.get("/share/"+link+"x").status)
	assert.Equal(t, 200, c.get("/badge/store.svg?uri=http://store.example/").status)

	assert.Equal(t, http.StatusServiceUnavailable, <-waited)

	c.opensAllToOneOwner()
	c.addsApps()

	// An app that has moved is served from its new cell at once. During the move it is refused.
	require.NoError(t, blogs.DB.InTx(t.Context(), func(q *db.Queries) error {
		_, err := q.Tx().Exec(t.Context(), `UPDATE apps SET cell = 'shops' WHERE name = 'blog'`)
		return err
	}))
	require.NoError(t, blogs.DB.WaitForInstances(t.Context(), dbtest.Patience))
	moving := c.visit("blog", "blog.example")
	assert.Equal(t, http.StatusServiceUnavailable, moving.status)
	assert.Contains(t, moving.error(t), "app blog is in the cell shops")
	require.NoError(t, shops.Admin.AddApp(t.Context(), "blog", app.Settings{Sites: []string{"blog.example"}}))
	assert.Equal(t, 200, c.visit("blog", "blog.example").status)
	c.eventually("it is written down", func() bool {
		return c.One(t, `SELECT count(*) FROM apps WHERE name = 'blog' AND cell = 'shops'`) == 1
	})

	// A cell that fails is left out of lists over all cells.
	shops.Exec(t, `ALTER TABLE changes RENAME TO none`)
	changed := c.owner().get("/settings")
	assert.Equal(t, 200, changed.status)
	assert.Contains(t, changed.body, "Apps in shops are not shown")
	shops.Exec(t, `ALTER TABLE none RENAME TO changes`)

	// If a cell is away, only its own apps return 503.
	network.LeadTo("postgres://nobody@127.0.0.1:1/none")
	network.Cut()
	c.eventually("it is noticed", func() bool { return shops.CachedRegister() == nil })
	assert.Equal(t, http.StatusServiceUnavailable, c.visit("store", "store.example").status)
	assert.Equal(t, 200, c.visit("new", "new.example").status)
	assert.Equal(t, 200, c.visit("shop", "example.com").status)
	ready := c.get("/readyz")
	assert.Regexp(t, `^{"state":"ready","away":\["shops"\],"nodes_away":\["127.0.0.1:1"\],"days_left":\d}$`, ready.body)
	page := c.owner().get("/")
	assert.Equal(t, 200, page.status)
	assert.Contains(t, page.body, "Apps in shops are not shown")
	assert.Contains(t, page.body, "/dash/new")
	assert.NotContains(t, page.body, "/dash/store")
	settings := c.owner().get("/settings")
	assert.Equal(t, 200, settings.status)
	assert.Contains(t, settings.body, "Apps in shops are not shown")
	assert.Equal(t, http.StatusServiceUnavailable, c.get("/busuanzi?url=http://store.example/2").status)
	assert.Equal(t, http.StatusServiceUnavailable, c.askWith(inStore, http.MethodPost, "/api.php", "Origin", "http://store.example").status)
	assert.Equal(t, http.StatusServiceUnavailable, increment().status)
	assert.Equal(t, http.StatusServiceUnavailable, c.get("/top?app=store&site=store.example").status)
	assert.Equal(t, http.StatusServiceUnavailable, c.get("/counts?app=store&uri=http://store.example/&with=today").status)
	assert.Contains(t, increment().body, `{"code":503,"error":"`)

	// A service that starts now knows the cells of the apps that the home database has recorded.
	end()
	c.set(func() { c.missing["shops"], c.leadFor = true, 0 })
	c.options.Busuanzi = "store"
	end = c.serve()
	assert.Equal(t, http.StatusServiceUnavailable, c.get("/busuanzi?url=http://new.example/").status, "it may be of store")
	away := c.visit("store", "store.example")
	assert.Equal(t, http.StatusServiceUnavailable, away.status)
	assert.Contains(t, away.error(t), "app store is in cell shops, which cannot be reached")
	unknown := c.visit("nobody", "blog.example")
	assert.Equal(t, http.StatusServiceUnavailable, unknown.status, "it may be there")
	assert.Contains(t, unknown.error(t), "shops")
	assert.Equal(t, 200, c.visit("new", "new.example").status)
	c.backAgain(network)
	assert.Equal(t, http.StatusNotFound, c.visit("nobody", "blog.example").status)
	assert.Contains(t, c.get("/busuanzi?url=http://blog.example/").body, "app blog", "as store does not count it")

	// All cells with apps are proved.
	for _, d := range []*desk.Desk{blogs, shops} {
		d.Exec(t, `INSERT INTO epochs (name, value) VALUES ('proved', extract(epoch FROM date '2019-06-28')::bigint)`)
	}
	proof := func() string { return c.get("/proof").body }
	assert.NotContains(t, proof(), "2019", "shop is not proved")
	for name := range c.CachedRegister().Apps {
		require.NoError(t, c.Admin.DeleteApp(t.Context(), name))
	}
	assert.Contains(t, proof(), "2019")
}

// opensAllToOneOwner signs in an owner once, who sees the apps of all cells, and a member, who sees one.
func (c *cellsOfTest) opensAllToOneOwner() {
	t, owner := c.t, c.owner()
	c.eventually("names are known where accounts are", func() bool {
		return c.One(t, `SELECT count(*) FROM apps WHERE cell IS NOT NULL`) == 4
	})
	home := owner.get("/").body
	for _, name := range []string{"blog", "shop", "store", "twice"} {
		assert.Contains(t, home, `/dash/`+name)
	}
	assert.Equal(t, 200, owner.get("/dash/store").status)
	assert.Contains(t, owner.get("/settings").body, "/settings/blog")
	assert.Contains(t, owner.get("/settings/blog").body, "blog.example")
	set := owner.sends("/settings/store", "do", "set", "of", "kept", "retain-days", "50", "was.retain-days", "35")
	assert.Equal(t, http.StatusSeeOther, set.status, set.body)
	assert.Equal(t, int64(50), c.cells["shops"].One(t, `SELECT retain_days FROM apps WHERE name = 'store'`))
	assert.Contains(t, owner.get("/settings").body, "retain-days")

	member := c.member("Max", "store")
	assert.Equal(t, 200, member.get("/dash/store").status)
	assert.NotEqual(t, 200, member.get("/dash/blog").status)
	assert.Equal(t, http.StatusForbidden, c.get("/dash/store").status)
}

// addsApps adds apps with the API, on a page, and in a cell without the service.
func (c *cellsOfTest) addsApps() {
	t := c.t
	key, err := c.Admin.AddKey(t.Context(), "", []app.Scope{app.ScopeAdmin})
	require.NoError(t, err)
	add := func(name, more string) answer {
		return c.manage(http.MethodPost, "/api/apps", key, `{"name":"`+name+`","tz":"UTC","sites":["`+name+`.example"]`+more+`}`)
	}
	assert.Equal(t, http.StatusCreated, add("new", "").status)
	assert.Equal(t, int64(1), c.cells["blogs"].One(t, `SELECT count(*) FROM apps WHERE name = 'new'`), "where there are fewer")
	assert.Equal(t, 200, c.visit("new", "new.example").status)
	for _, taken := range []string{"store", "blog", "shop", "new"} {
		a := add(taken, `,"cell":"blogs"`)
		assert.Equal(t, http.StatusBadRequest, a.status)
		assert.Contains(t, a.error(t), "there is an app "+taken+" already")
	}
	assert.Contains(t, add("third", `,"cell":"none"`).error(t), "there is no cell")
	assert.Equal(t, http.StatusCreated, add("third", `,"cell":"shops"`).status)
	assert.Equal(t, int64(1), c.cells["shops"].One(t, `SELECT count(*) FROM apps WHERE name = 'third'`))
	assert.Contains(t, c.manage(http.MethodGet, "/api/apps", key, "").body, `"name":"third"`)
	assert.Equal(t, 200, c.manage(http.MethodDelete, "/api/apps/third", key, "").status)
	c.Exec(t, `UPDATE apps SET created_at = now() - interval '2 hours' WHERE cell IS NOT NULL`)
	assert.Contains(t, add("third", `,"cell":"blogs"`).error(t), "the name third still leads to the cell shops", "a moment ago it was there")
	require.NoError(t, c.cells["shops"].Admin.AddApp(t.Context(), "behind", app.Settings{Sites: []string{"behind.example"}}))
	assert.Contains(t, add("behind", "").error(t), "there is an app behind already")

	made := c.owner().sends("/new", "host", "page.example", "zone", "UTC", "visitor", "hashed")
	assert.Equal(t, http.StatusSeeOther, made.status, made.body)
	assert.Equal(t, 200, c.owner().get(made.header.Get("Location")).status)
	assert.Equal(t, int64(0), c.One(t, `SELECT count(*) FROM apps WHERE name LIKE 'page%' AND cell IS NULL`))

	require.NoError(t, c.cells["shops"].Admin.AddApp(t.Context(), "late", app.Settings{Sites: []string{"late.example"},
		PublicCounts: ptr(app.PublicAnswers)}))
	assert.Equal(t, 200, c.visit("late", "late.example").status, "at once")
	c.written("late", "shops")
	assert.Equal(t, int64(1), c.One(t, `SELECT count(*) FROM apps WHERE name = 'third'`), "its name is kept for a while, however old it is")

	// An app that was deleted and added again is a new one, and the rights to the old one are gone.
	rights := `SELECT count(*) FROM account_apps AS r JOIN apps AS a ON a.id = r.app_id WHERE a.name = '`
	c.member("May", "more")
	require.NoError(t, c.cells["shops"].Admin.DeleteApp(t.Context(), "store"))
	assert.Equal(t, int64(1), c.One(t, rights+"store'"))
	require.NoError(t, c.cells["shops"].Admin.AddApp(t.Context(), "store", app.Settings{Sites: []string{"store.example"}}))
	c.eventually("nobody has rights to the new one", func() bool { return c.One(t, rights+"store'") == 0 })
	assert.Equal(t, int64(1), c.One(t, rights+"more'"))
}

// written waits until the home database records that a cell has an app.
func (c *cellsOfTest) written(name, cell string) {
	c.t.Helper()
	c.eventually(name+" is written down", func() bool {
		return c.One(c.t, `SELECT count(*) FROM apps WHERE cell_began IS NOT NULL AND name = '`+name+`' AND cell = '`+cell+`'`) == 1
	})
}

// backAgain brings back a cell that the service has not seen, whose apps have kept their names in the meantime.
func (c *cellsOfTest) backAgain(network *dbtest.Network) {
	t, blogs, shops := c.t, c.cells["blogs"], c.cells["shops"]
	sites := app.Settings{Sites: []string{"store.example"}}
	require.NoError(t, blogs.Admin.AddApp(t.Context(), "store", sites))
	require.NoError(t, blogs.Admin.AddApp(t.Context(), "seen", sites))
	c.written("seen", "blogs")
	assert.Contains(t, c.visit("store", "store.example").error(t), "app store is in cell shops, which cannot be reached")
	c.written("store", "shops")
	require.NoError(t, blogs.Admin.DeleteApp(t.Context(), "store"))

	network.LeadTo(shops.URL)
	c.set(func() { c.missing["shops"], c.lost = false, true })
	c.eventually("it is back", func() bool { return c.visit("store", "store.example").status == 200 })
	c.set(func() { c.lost = false })

	// A name that leads nowhere is free, even if another cell leads to a cell that has lost it.
	c.Exec(t, `INSERT INTO apps (name, cell) VALUES ('ghost', 'blogs')`)
	blogs.Exec(t, `INSERT INTO apps (name, cell) VALUES ('ghost', 'shops')`)
	require.NoError(t, blogs.DB.WaitForInstances(t.Context(), dbtest.Patience))
	c.eventually("names are free", func() bool { return c.One(t, `SELECT count(*) FROM apps WHERE name IN ('third', 'ghost')`) == 0 })
	again := c.addApp("ghost", "blogs")
	require.Equal(t, http.StatusCreated, again.status, again.body)
	c.eventually("it counts", func() bool { return c.visit("ghost", "ghost.example").status == 200 })
}

func (c *cellsOfTest) addApp(name, cell string) answer {
	key, err := c.Admin.AddKey(c.t.Context(), "", []app.Scope{app.ScopeAdmin})
	require.NoError(c.t, err)
	return c.manage(http.MethodPost, "/api/apps", key, `{"name":"`+name+`","tz":"UTC","sites":["`+name+`.example"],"cell":"`+cell+`"}`)
}
