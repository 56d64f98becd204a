package attacks

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/handler"
	"footfall/handler/routing"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const skippedHeader = "Footfall-Skipped"

// noon is in the middle of a day in every zone from UTC-11 to UTC+11.
var noon = time.Date(2019, 6, 29, 12, 0, 0, 0, time.UTC)

// via is a listener of the first instance.
type via int

const (
	direct  via = iota // no peer is trusted
	proxied            // 127.0.0.0/8 is trusted for X-Forwarded-For
	named              // 127.0.0.0/8 is trusted for X-Real-Ip
	second             // the second instance, which trusts no peer
	vias
)

// world is the target of an attack: two instances on one database, with the defaults of serve.
type world struct {
	t *testing.T
	*premises
}

// premises are the parts of the world that do not depend on the running test.
type premises struct {
	*desk.Desk              // of the first instance
	public     [vias]string // base URLs
	private    [vias]string // of the admin listeners
	log        *records
	words      map[string]string // the value of each {word}
	page       int               // the number of {page}, in {uri}
}

// of returns the world for another test.
func (w *world) of(t *testing.T) *world { return &world{t, w.premises} }

func ptr[T any](v T) *T { return &v }

// attacked are the apps. An app without a case about limits has no limits, so that cases do not disturb each other.
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
	"own":    {Sites: []string{"own.example"}, MaxRequests: ptr("0"), PublicCounts: ptr("count")}, // no other app lists it
	"shown":  {Sites: []string{"shown.example"}, PublicCounts: ptr("read")},
	"keyed":  {Sites: []string{"keyed.example"}, Access: ptr("key")},
	"demo":   {Access: ptr("open")},
	"picky":  {Access: ptr("open"), Bots: ptr("skip")},
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t, &premises{log: new(records), words: map[string]string{}}}
	// Other tests check refusals by a busy machine. Here every visit sent has to be accounted for.
	o := desk.Options{Began: noon, Apps: attacked, Upkeep: true}
	o.Log, o.MaxWait, o.Filter, o.FilterMemory, o.Memory = w.log.logger(), patience, true, 8<<20, 8<<20
	w.Desk = desk.Open(t, o)
	o.Clock = w.Clock.Now
	other := desk.On(t, w.URL, o)
	w.listen(direct, w.Desk, w.Metrics, nil, "")
	w.listen(proxied, w.Desk, prometheus.NewRegistry(), []string{"127.0.0.0/8"}, "")
	w.listen(named, w.Desk, prometheus.NewRegistry(), []string{"127.0.0.0/8"}, "X-Real-Ip")
	w.listen(second, other, other.Metrics, nil, "")
	w.makeKeys()
	return w
}

func (w *world) listen(at via, on *desk.Desk, registry *prometheus.Registry, trusted []string, header string) {
	w.t.Helper()
	proxies, faults := handler.NewProxies(trusted, header)
	require.Empty(w.t, faults)
	public, private := handler.Servers(handler.Options{Log: w.log.logger(), Metrics: registry, Proxies: proxies,
		Cells: routing.NewSingle(&routing.Cell{Counter: on.Counter})})
	w.public[at], w.private[at] = w.serve(public), w.serve(private)
}

// serve returns the base URL of a server that stops with the test.
func (w *world) serve(server *http.Server) string {
	w.t.Helper()
	serving := httptest.NewUnstartedServer(nil)
	serving.Config = server
	serving.Start()
	w.t.Cleanup(serving.Close)
	return serving.URL
}

// makeKeys makes a key of the app shop for each scope, and one of another app.
func (w *world) makeKeys() {
	w.t.Helper()
	key := func(app string, scopes ...app.Scope) string {
		made, err := w.Admin.AddKey(context.Background(), app, scopes)
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

// expand replaces {words}. {page} is new for each request, and {uri} is its address.
func (w *world) expand(text string) string {
	path := fmt.Sprintf("p%d", w.page)
	page := "example.com/" + path
	text = strings.NewReplacer("{page}", page, "{uri}", "http://"+page, "{path}", path).Replace(text)
	for word, means := range w.words {
		text = strings.ReplaceAll(text, "{"+word+"}", means)
	}
	return text
}

func (w *world) pass(d time.Duration) {
	w.Clock.Set(w.Clock.Now().Add(d))
}

func (w *world) add(app string, s app.Settings) {
	w.t.Helper()
	require.NoError(w.t, w.Admin.AddApp(context.Background(), app, s))
}

// tables are the stored numbers of each target.
type tables map[string]row

type row struct {
	site        bool
	hot, pv, uv int64
	visitors    []string // in order of rank
	days        []string
}

func (w *world) tables() tables {
	w.t.Helper()
	rows, err := w.Tables().Query(context.Background(), `
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

// since returns the difference: a line for each page, with its new visitors, and ×n if n visits made them. It is
// empty if nothing at all has changed. Check compares sites with their pages.
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
