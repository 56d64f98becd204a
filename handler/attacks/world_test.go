package attacks

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/handler"
	"footfall/record"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	browser       = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	skippedHeader = "Footfall-Skipped"
)

// noon is in the middle of a day everywhere between UTC-11 and UTC+11.
var noon = time.Date(2019, 6, 29, 12, 0, 0, 0, time.UTC)

// via is a listener of the first instance.
type via int

const (
	direct  via = iota // nobody is believed
	proxied            // 127.0.0.0/8 is believed about X-Forwarded-For
	named              // 127.0.0.0/8 is believed about X-Real-Ip
	second             // the second instance; nobody is believed
	vias
)

// world is what an attack is made on: two instances on one database, with what serve has by
// default.
type world struct {
	t *testing.T
	*premises
}

// premises are the world beside the test that is under way.
type premises struct {
	database string
	conn     *pgx.Conn
	admin    *admin.Admin
	now      atomic.Pointer[time.Time]
	public   [vias]string // base URLs
	private  [vias]string // of the admin listeners
	log      *records
	words    map[string]string // what {word} stands for
	page     int               // the number of {page}, in {uri}
}

// of is the world for another test.
func (w *world) of(t *testing.T) *world { return &world{t, w.premises} }

func ptr[T any](v T) *T { return &v }

// attacked are the apps. Where a case needs no limits there are none, so that cases do not disturb
// each other.
var attacked = map[string]app.Settings{
	"shop":   {Sites: []string{"example.com"}, MaxRequests: ptr("0")},
	"blog":   {Sites: []string{"example.com", "blog.example:8080"}, MaxRequests: ptr("0")},
	"wide":   {Sites: []string{"example.com", "*.wild.example"}, MaxRequests: ptr("0")},
	"strict": {Sites: []string{"example.com"}, Access: ptr("key")},
	"ids":    {Sites: []string{"example.com"}, Visitor: ptr("id"), Ignore: []string{"id:me"}},
	"hashed": {Sites: []string{"example.com"}, Visitor: ptr("hashed")},
	"masked": {Sites: []string{"example.com"}, Visitor: ptr("hashed")},
	"daily":  {Sites: []string{"example.com"}, Visitor: ptr("daily")},
	"quiet":  {Sites: []string{"example.com"}, RespectDNT: ptr(true), Ignore: []string{"198.51.100.66", "203.0.113.0/24", "2001:db8:66::/48"}},
	"bots":   {Sites: []string{"example.com"}, Bots: ptr("count")},
	"plain":  {Sites: []string{"example.com"}},
	"own":    {Sites: []string{"own.example"}, MaxRequests: ptr("0"), PublicCounts: ptr("count")}, // listed by no other
	"shown":  {Sites: []string{"shown.example"}, PublicCounts: ptr("read")},
	"keyed":  {Sites: []string{"keyed.example"}, Access: ptr("key")},
	"demo":   {Access: ptr("open")},
	"picky":  {Access: ptr("open"), Bots: ptr("skip")},
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := context.Background()
	secret := app.Secret("thirty-two bytes that are secret")
	w := &world{t, &premises{log: new(records), words: map[string]string{}}}
	w.database = dbtest.Made(t, "attacked", noon, func(d *db.DB) {
		for name, settings := range attacked {
			require.NoError(t, admin.NewAdmin(d, secret).AddApp(ctx, name, settings))
		}
	})
	w.now.Store(&noon)
	d := dbtest.Open(t, w.database, db.Options{})
	w.conn = dbtest.Connect(t, w.database)

	w.admin = admin.NewAdmin(d, secret)
	first, registry := w.instance(secret)
	other, otherRegistry := w.instance(secret)
	w.listen(direct, first, registry, nil, "")
	w.listen(proxied, first, prometheus.NewRegistry(), []string{"127.0.0.0/8"}, "")
	w.listen(named, first, prometheus.NewRegistry(), []string{"127.0.0.0/8"}, "X-Real-Ip")
	w.listen(second, other, otherRegistry, nil, "")
	w.makeKeys()
	return w
}

func (w *world) instance(secret app.Secret) (*counter.Counter, *prometheus.Registry) {
	w.t.Helper()
	d := dbtest.Open(w.t, w.database, db.Options{})
	registry := prometheus.NewRegistry()
	counting, err := counter.Open(context.Background(), d, counter.Options{Secret: secret, Options: record.Options{
		Log: w.log.logger(), Metrics: registry, Filter: true, FilterMemory: 8 << 20, Memory: 8 << 20,
		Clock: func() time.Time { return *w.now.Load() },
		// That a busy machine turns visits away is tested elsewhere; here all that are sent are
		// accounted for.
		MaxWait: patience,
	}})
	require.NoError(w.t, err)
	w.t.Cleanup(counting.Close)
	return counting, registry
}

func (w *world) listen(at via, counting *counter.Counter, registry *prometheus.Registry, trusted []string, header string) {
	w.t.Helper()
	proxies, faults := handler.NewProxies(trusted, header)
	require.Empty(w.t, faults)
	public, private := handler.Servers(counting, handler.Options{Log: w.log.logger(), Metrics: registry, Proxies: proxies})
	w.public[at], w.private[at] = w.serve(public), w.serve(private)
}

// serve returns the base URL of a server, which ends with the test.
func (w *world) serve(server *http.Server) string {
	w.t.Helper()
	serving := httptest.NewUnstartedServer(nil)
	serving.Config = server
	serving.Start()
	w.t.Cleanup(serving.Close)
	return serving.URL
}

// makeKeys makes keys of the app shop, one for each scope, and one of another app.
func (w *world) makeKeys() {
	w.t.Helper()
	key := func(app string, scopes ...app.Scope) string {
		made, err := w.admin.AddKey(context.Background(), app, scopes)
		require.NoError(w.t, err)
		return made
	}
	w.words["assert"] = key("shop", app.ScopeAssert)
	w.words["count"] = key("shop", app.ScopeCount)
	w.words["read"] = key("shop", app.ScopeRead)
	w.words["foreign"] = key("blog", app.ScopeAssert, app.ScopeRead)
	w.words["ids"] = key("ids", app.ScopeAssert, app.ScopeRead)
	w.words["plain"] = key("plain", app.ScopeAssert)
	w.words["strict"] = key("strict", app.ScopeCount)
	w.words["strictread"] = key("strict", app.ScopeRead)
	good := w.words["assert"]
	w.words["name"] = good[:strings.LastIndex(good[:30], "_")]
	w.words["changed"] = good[:len(good)-2] + string(good[len(good)-2]^1) + good[len(good)-1:]
	w.words["upper"], w.words["lower"] = strings.ToUpper(good), strings.ToLower(good)
	w.words["long"] = strings.Repeat("k", 30_000)
}

// expand puts in what {words} stand for. {page} is new for each request, and {uri} leads to it.
func (w *world) expand(text string) string {
	path := fmt.Sprintf("p%d", w.page)
	page := "example.com/" + path
	text = strings.NewReplacer("{page}", page, "{uri}", "http://"+page, "{path}", path).Replace(text)
	for word, means := range w.words {
		text = strings.ReplaceAll(text, "{"+word+"}", means)
	}
	return text
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	later := w.now.Load().Add(d)
	w.now.Store(&later)
}

// add adds an app.
func (w *world) add(app string, s app.Settings) {
	w.t.Helper()
	require.NoError(w.t, w.admin.AddApp(context.Background(), app, s))
}

// number is what a query that counts gives.
func (w *world) number(sql string, arguments ...any) (n int64) {
	w.t.Helper()
	require.NoError(w.t, w.conn.QueryRow(context.Background(), sql, arguments...).Scan(&n))
	return n
}

// tables is what is stored of each target.
type tables map[string]row

type row struct {
	site        bool
	hot, pv, uv int64
	visitors    []string // in order of rank
	days        []string
}

func (w *world) tables() tables {
	w.t.Helper()
	rows, err := w.conn.Query(context.Background(), `
		SELECT a.name || ' ' || p.uri, p.site_id IS NULL, coalesce(c.hot, 0), coalesce(c.pv, 0), coalesce(c.uv, 0),
		       ARRAY(SELECT host(v.ip) FROM visitors v WHERE v.page_id = p.id ORDER BY v.rank),
		       ARRAY(SELECT v.day_id || ' ' || host(v.ip) FROM visits v WHERE v.page_id = p.id ORDER BY 1)
		FROM pages p JOIN apps a ON a.id = p.app_id LEFT JOIN counters c ON c.page_id = p.id`)
	require.NoError(w.t, err)
	all := tables{}
	var target string
	var r row
	_, err = pgx.ForEachRow(rows, []any{&target, &r.site, &r.hot, &r.pv, &r.uv, &r.visitors, &r.days}, func() error {
		all[target] = r
		return nil
	})
	require.NoError(w.t, err)
	return all
}

// since tells what was added: a line for each page, with its new visitors, and ×n where so many
// visits made them. It is empty where nothing at all has changed; that sites fit their pages is for
// checkTables to tell.
func (now tables) since(before tables) string {
	var lines []string
	for _, target := range slices.Sorted(maps.Keys(now)) {
		is, was := now[target], before[target]
		if is.site || fmt.Sprint(is) == fmt.Sprint(was) {
			continue
		}
		_, line, _ := strings.Cut(target, " ")
		news := is.visitors[min(len(was.visitors), len(is.visitors)):]
		for _, visitor := range news {
			line += " " + visitor
		}
		if hot := is.hot - was.hot; hot != int64(len(news)) {
			line += fmt.Sprintf(" ×%d", hot)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 && fmt.Sprint(now) != fmt.Sprint(before) {
		return fmt.Sprintf("what is no page: %v, before %v", now, before)
	}
	return strings.Join(lines, "\n")
}
