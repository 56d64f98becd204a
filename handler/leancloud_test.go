package handler

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
)

// theme sends the requests of themes to LeanCloud, from a page of example.com.
type theme struct {
	*edge
	headers []string
}

func newTheme(t *testing.T) *theme {
	t.Helper()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{PublicCounts: ptr("read")})
	})
	return &theme{e, []string{"Origin", "https://example.com", "X-LC-Id", "id", "X-LC-Key", "key", "Content-Type", "application/json"}}
}

func (th *theme) read(where string, headers ...string) answer {
	return th.ask(http.MethodGet, "/1.1/classes/Counter?where="+url.QueryEscape(where), append(headers, th.headers...)...)
}

func (th *theme) put(key string, headers ...string) answer {
	return th.askWith(one1, http.MethodPut, "/1.1/classes/Counter/"+recordID(key), append(headers, th.headers...)...)
}

func (th *theme) batch(keys ...string) answer {
	var requests []string
	for _, key := range keys {
		requests = append(requests, `{"method":"PUT","path":"/1.1/classes/Counter/`+recordID(key)+`","body":`+one1+`}`)
	}
	return th.askWith(`{"requests":[`+strings.Join(requests, ",")+`]}`, http.MethodPost, "/1.1/batch", th.headers...)
}

const one1 = `{"time":{"__op":"Increment","amount":1}}`

func recordID(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// hots returns hot of each counted page of example.com.
func (th *theme) hots() []string {
	return desk.Column[string](th.t, th.Desk, `SELECT p.uri || ' ' || c.hot FROM footfall.pages p JOIN footfall.counters c `+
		`ON c.page_id = p.id WHERE p.site_id IS NOT NULL ORDER BY 1`)
}

func TestLeanCloud(t *testing.T) {
	t.Parallel()
	th := newTheme(t)
	found := func(member, key string, time int) string {
		name, _ := json.Marshal(key)
		return fmt.Sprintf(`{"objectId":%q,%q:%s,"time":%d}`, recordID(key), member, name, time)
	}
	// A path that was never counted has a record, too, with its name unchanged.
	a := th.read(`{"url":"/文章/"}`)
	assert.JSONEq(t, `{"results":[`+found("url", "/文章/", 0)+`]}`, a.body)
	assert.Equal(t, "https://example.com", a.header.Get("Access-Control-Allow-Origin"))
	a = th.put("/文章/")
	require.Equal(t, http.StatusOK, a.status, a.body)
	var put struct{ ObjectID, UpdatedAt string }
	require.NoError(t, json.Unmarshal([]byte(a.body), &put))
	assert.Equal(t, recordID("/文章/"), put.ObjectID)
	assert.NotContains(t, a.body, "hot")
	assert.JSONEq(t, `{"results":[`+found("url", "/文章/", 1)+`,`+found("url", "/a/", 0)+`]}`,
		th.read(`{"url":{"$in":["/文章/","/a/"]}}`).body)
	assert.JSONEq(t, `{"results":[]}`, th.read(`{"url":{"$in":[]}}`).body)

	// Fluid's page views: one visitor of a post, and then of the home page.
	assert.Equal(t, 200, th.batch("site-pv", "site-uv", "/a/").status)
	assert.Equal(t, 200, th.batch("site-pv", "site-uv").status)
	assert.Equal(t, 200, th.batch("site-uv").status, "counts nothing")
	assert.Equal(t, 200, th.batch("/a/", "/a/").status, "one view")
	assert.Equal(t, []string{"example.com/%E6%96%87%E7%AB%A0/ 1", "example.com/(other) 1", "example.com/a/ 2"}, th.hots())
	for key, time := range map[string]int{"site-pv": 4, "site-uv": 1, "/a/": 2} {
		assert.JSONEq(t, `{"results":[`+found("target", key, time)+`]}`, th.read(fmt.Sprintf(`{"target":%q}`, key)).body)
	}
	// Only site-pv, for a page that the browser names.
	th.put("site-pv", "Referer", "https://example.com/archives/?page=2")
	th.put("site-pv", "Referer", "https://example.com/")
	th.put("site-pv", "Referer", "https://other.example/x")
	th.put("site-uv", "Referer", "https://example.com/archives/")
	assert.Equal(t, []string{"example.com/%E6%96%87%E7%AB%A0/ 1", "example.com/(other) 3", "example.com/a/ 2", "example.com/archives/ 1"},
		th.hots())

	post := func(body string) answer {
		return th.askWith(body, http.MethodPost, "/1.1/classes/Counter", th.headers...)
	}
	a = post(`{"title":"B","url":"/b/","time":1}`)
	assert.Equal(t, http.StatusCreated, a.status)
	assert.Contains(t, a.body, `{"objectId":"`+recordID("/b/")+`","createdAt":"20`)
	assert.Equal(t, http.StatusCreated, post(`{"target":"/c/","time":0}`).status)
	assert.Equal(t, http.StatusCreated, post(`{"target":"site-uv","time":1}`).status)
	a = th.askWith(`{"requests":[{"method":"POST","path":"/1.1/classes/Counter","body":{"url":"/b/","time":1}}]}`, http.MethodPost,
		"/1.1/batch", th.headers...)
	assert.Equal(t, 200, a.status)
	assert.Equal(t, "example.com/b/ 2", th.hots()[4])
	assert.Len(t, th.hots(), 5)

	// Offsets are included.
	th.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.SetOffsets(ctx, "shop", []admin.Offset{{URI: "https://example.com/c/", Hot: 1000}}, false)
		return err
	})
	assert.JSONEq(t, `{"results":[`+found("url", "/c/", 1000)+`]}`, th.read(`{"url":"/c/"}`).body)

	// A crawler, and a page below the site's address, whose browser sends no Origin with a GET.
	before := th.rows()
	assert.Equal(t, "bot", th.put("/a/", "User-Agent", "curl/8").header.Get(skippedHeader))
	assert.Equal(t, before, th.rows())
	a = th.ask(http.MethodGet, "/1.1/classes/Counter?where="+url.QueryEscape(`{"url":"/a/"}`), "Sec-Fetch-Site", "same-origin",
		"Referer", "https://example.com/a/")
	assert.JSONEq(t, `{"results":[`+found("url", "/a/", 2)+`]}`, a.body)
	for _, path := range []string{"/1.1/classes/Counter", "/1.1/classes/Counter/" + recordID("/a/"), "/1.1/batch"} {
		a = th.ask(http.MethodOptions, path, "Origin", "https://example.com", "Access-Control-Request-Method", "PUT")
		assert.Equal(t, []string{"https://example.com", "GET, POST, PUT", "Content-Type, X-LC-Id, X-LC-Key, X-LC-Sign, X-LC-Session"}, []string{
			a.header.Get("Access-Control-Allow-Origin"), a.header.Get("Access-Control-Allow-Methods"),
			a.header.Get("Access-Control-Allow-Headers")}, path)
	}
}

// Requests that no theme sends are refused in LeanCloud's form, and count nothing.
func TestLeanCloudRefuses(t *testing.T) {
	t.Parallel()
	th := newTheme(t)
	refused := func(a answer, status int, says string) {
		t.Helper()
		var told struct {
			Code  int
			Error string
		}
		require.NoError(t, json.Unmarshal([]byte(a.body), &told), a.body)
		assert.Equal(t, []int{status, status}, []int{a.status, told.Code}, a.body)
		assert.Contains(t, told.Error, says)
	}
	put := func(id, body string) answer {
		return th.askWith(body, http.MethodPut, "/1.1/classes/Counter/"+id, th.headers...)
	}
	before := th.rows()
	a := recordID("/a/")
	refused(put(a, `{"time":{"__op":"Increment","amount":1000}}`), 400, "time: send")
	refused(put(a, `{"time":{"__op":"Increment","amount":-1}}`), 400, "time: send")
	refused(put(a, `{"time":{"__op":"Delete"}}`), 400, "time: send")
	refused(put(a, `{"time":7}`), 400, "time: send")
	refused(put(a, `{"time":{"__op":"Increment","amount":1},"url":"/b/"}`), 400, "time: send")
	refused(put(a, one1+one1), 400, "time: send")
	refused(put(a, ""), 400, "time: send")
	for _, forged := range []string{"5f0c8a1b2d3e4f5061728394", recordID("http://evil.example/"), recordID("evil.example/"),
		recordID("\\\\evil"), recordID("/\x00"), recordID("/\xff"), recordID("site-hot"), "%2e%2e", a + "=",
		recordID("/" + strings.Repeat("a", 3000))} {
		refused(put(forged, one1), 404, "there is no object")
	}
	refused(th.batch(), 400, "requests: there are 0")
	refused(th.batch(strings.Split(strings.Repeat("/a/ ", 11)+"x", " ")[:11]...), 400, "requests: there are 11")
	refused(th.batch("/a/", "/b/"), 400, "two pages")
	refused(th.askWith(`{"requests":[{"method":"DELETE","path":"/1.1/classes/Counter/`+a+`"}]}`, http.MethodPost, "/1.1/batch", th.headers...),
		400, "request 1")
	refused(th.askWith(`{"requests":[{"method":"PUT","path":"/1.1/classes/_User/`+a+`","body":`+one1+`}]}`, http.MethodPost, "/1.1/batch",
		th.headers...), 404, "there is no object")
	refused(th.askWith(`[]`, http.MethodPost, "/1.1/batch", th.headers...), 400, "requests: send")
	post := func(body string) answer {
		return th.askWith(body, http.MethodPost, "/1.1/classes/Counter", th.headers...)
	}
	for _, body := range []string{`{"url":"/a/","time":1000}`, `{"url":"/a/","time":0.5}`, `{"url":"/a/"}`, `{"url":"/a/","time":"1"}`,
		`{"time":1}`,
		`{"url":"/a/","target":"/b/","time":1}`, `{"url":7,"time":1}`, `{"url":"a","time":1}`, `{"url":"/a/","time":1,"ACL":{}}`, `x`} {
		refused(post(body), 400, ":")
	}
	many, _ := json.Marshal(strings.Split(strings.Repeat("/a/ ", 101), " ")[:101])
	refused(th.read(`{"url":{"$in":`+string(many)+`}}`), 400, "where: it names 101")
	for _, where := range []string{``, `{}`, `{"title":"x"}`, `{"url":"/a/","time":{"$gt":1}}`, `{"url":{"$regex":".*"}}`, `{"url":["/a/"]}`,
		`{"url":"/a/","target":"/a/"}`, `{"url":{"$in":["/a/"],"$nin":[]}}`, `{"url":7}`, `{"url":null}`, `{"url":"a"}`} {
		refused(th.read(where), 400, ":")
	}
	refused(th.ask(http.MethodGet, "/1.1/classes/_User", th.headers...), 404, "there is no class")
	refused(th.ask(http.MethodPost, "/1.1/classes/Comment", th.headers...), 404, "there is no class")
	assert.Equal(t, http.StatusMethodNotAllowed, th.ask(http.MethodDelete, "/1.1/classes/Counter/"+a, th.headers...).status)

	// The page that sends the request.
	for origin, says := range map[string]string{"": "origin: it is missing", "null": "origin: it is missing",
		"https://evil.example": "no app lists", "https://example.com:81": "no app lists", "https://example.com/a": "origin: it is missing"} {
		th.headers[1] = origin
		for _, a := range []answer{th.read(`{"url":"/a/"}`), th.put("/a/"), th.batch("/a/"), post(`{"url":"/a/","time":1}`)} {
			refused(a, 403, says)
		}
	}
	refused(th.ask(http.MethodGet, `/1.1/classes/Counter?where={"url":"/a/"}`, "Referer", "https://example.com/"), 403,
		"origin: it is missing")
	assert.Equal(t, before, th.rows())

	// Numbers are shown with read, and visits count in any case.
	th.headers[1] = "https://example.com"
	for _, public := range []string{"off", "answers"} {
		th.administer(func(ctx context.Context, a *admin.Admin) error {
			return a.SetApp(ctx, "shop", app.Settings{PublicCounts: &public})
		})
		refused(th.read(`{"url":"/a/"}`), 401, "shows no numbers in pages: its operator can set --public-counts read")
		assert.Equal(t, 200, th.put("/a/").status)
	}
	assert.Equal(t, []string{"example.com/a/ 2"}, th.hots())
	th.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{PublicCounts: ptr("read"), MaxRequests: ptr("6"), MaxNewPages: ptr("3")})
	})
	limited := th.put("/a/")
	for range 6 {
		if limited = th.put("/a/"); limited.status != 200 {
			break
		}
	}
	refused(limited, 429, "too many requests")
	assert.NotEmpty(t, limited.header.Get("Retry-After"))

	// Made-up paths.
	th.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{MaxRequests: ptr("0")})
	})
	for i := range 20 {
		require.Equal(t, 200, th.put(fmt.Sprint("/made/up/", i)).status)
	}
	assert.Len(t, th.hots(), 3, "the site and two pages are three new ones of the day; the rest is (other)")
}

// blogs is the folder of blogs with real themes, made by scripts/fetch-themes. Short runs do not make them.
func blogs(t *testing.T) http.Handler {
	t.Helper()
	call := []string{}
	if testing.Short() {
		call = append(call, "--found")
	}
	made, err := exec.Command("../scripts/fetch-themes", call...).Output()
	if err != nil && testing.Short() {
		t.Skip("the blogs were not made: scripts/fetch-themes")
	}
	require.NoError(t, err, "scripts/fetch-themes")
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		blog, _, _ := strings.Cut(r.Host, ".")
		http.FileServer(http.Dir(strings.TrimSpace(string(made))+"/"+blog)).ServeHTTP(out, r)
	})
}

// newBlogs serves at count.example, for the blogs of an app. Their visitors have the address that is stored in from.
func newBlogs(t *testing.T, names ...string) (w *internet, from *atomic.Value) {
	t.Helper()
	pages := blogs(t)
	e := newEdge(t)
	sites := make([]string, len(names))
	for i, name := range names {
		sites[i] = name + ".example"
	}
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "blog", app.Settings{Sites: sites, PublicCounts: ptr("read")})
	})
	proxies, faults := NewProxies([]string{"127.0.0.0/8"}, "")
	require.Empty(t, faults)
	options := e.options
	options.Proxies, options.Metrics = proxies, nil
	service, err := url.Parse(listen(t, publicHandler(options), options.Log))
	require.NoError(t, err)
	from = &atomic.Value{}
	from.Store("192.0.2.1")
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(service)
		r.Out.Header.Set("X-Forwarded-For", from.Load().(string))
	}}
	w = newInternet(e)
	w.rest = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host == "count.example":
			proxy.ServeHTTP(out, r)
		case strings.HasSuffix(r.Host, ".example"):
			pages.ServeHTTP(out, r)
		default:
			http.NotFound(out, r)
		}
	})
	return w, from
}

// TestLeanCloudThemes shows blogs with real themes whose settings name the service as LeanCloud's server: each view
// counts once, and is shown as with LeanCloud.
func TestLeanCloudThemes(t *testing.T) {
	t.Parallel()
	w, from := newBlogs(t, "lean-next", "lean-secure", "lean-fluid")
	b := w.drive(t)
	shows := func(t *testing.T, selector, number string) {
		t.Helper()
		b.await(fmt.Sprintf(`document.querySelector(%q)?.innerText.trim() === %q`, selector, number))
	}
	counted := func(t *testing.T, site string, want ...string) {
		t.Helper()
		assert.EventuallyWithT(t, func(c *assert.CollectT) { // themes count after they show the numbers
			assert.Equal(c, want, desk.Column[string](t, w.Desk, `SELECT split_part(p.uri, '/', 2) || ' ' || c.hot || ' ' || c.uv `+
				`FROM footfall.pages p JOIN footfall.counters c ON c.page_id = p.id WHERE p.uri LIKE '`+site+`.example%' ORDER BY p.uri COLLATE "C"`))
		}, dbtest.Patience, dbtest.Tick)
	}
	come := func(path string) { b.open("http://" + path) }
	settings, err := os.ReadFile("../scripts/fetch-themes")
	require.NoError(t, err)
	text, err := os.ReadFile("../docs/embed.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## LeanCloud\n")
	for line := range strings.Lines(regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)[1]) {
		if line[0] != '#' {
			line = strings.NewReplacer("https:", "http:", "security: true", "security: false").Replace(line)
			assert.Contains(t, string(settings), line, "the documented settings are the tested ones")
		}
	}
	for _, blog := range []string{"lean-next", "lean-secure"} {
		t.Run(blog, func(t *testing.T) {
			from.Store("192.0.2.1")
			const views = ".leancloud-visitors-count"
			come(blog + ".example/hello/")
			shows(t, views, "1")
			counted(t, blog, " 1 1", "hello 1 1")
			come(blog + ".example/hello/")
			shows(t, views, "2")
			counted(t, blog, " 2 1", "hello 2 1")
			from.Store("192.0.2.2")
			come(blog + ".example/hello/")
			shows(t, views, "3")
			counted(t, blog, " 3 2", "hello 3 2")
			come(blog + ".example/" + url.PathEscape("你好") + "/")
			shows(t, views, "1")
			counted(t, blog, " 4 2", "%E4%BD%A0%E5%A5%BD 1 1", "hello 3 2")
			come(blog + ".example/") // shows both, and counts nothing
			var all []string
			b.await(`[...document.querySelectorAll('` + views + `')].every(e => e.innerText.trim())`)
			b.ask(`[...document.querySelectorAll('`+views+`')].map(e => e.innerText.trim())`, &all)
			assert.Equal(t, []string{"3", "1"}, all)
			counted(t, blog, " 4 2", "%E4%BD%A0%E5%A5%BD 1 1", "hello 3 2")
		})
	}
	t.Run("lean-fluid", func(t *testing.T) {
		from.Store("192.0.2.1")
		const pv, uv, views = "#leancloud-site-pv", "#leancloud-site-uv", "#leancloud-page-views"
		come("lean-fluid.example/hello/")
		shows(t, pv, "1")
		shows(t, uv, "1")
		shows(t, views, "1")
		counted(t, "lean-fluid", " 1 1", "hello 1 1")
		come("lean-fluid.example/")
		shows(t, pv, "2")
		shows(t, uv, "1")
		counted(t, "lean-fluid", " 2 1", "(other) 1 1", "hello 1 1")
		b.ask(`localStorage.clear()`, nil) // another visitor
		from.Store("192.0.2.2")
		come("lean-fluid.example/hello/")
		shows(t, pv, "3")
		shows(t, uv, "2")
		shows(t, views, "2")
		counted(t, "lean-fluid", " 3 2", "(other) 1 1", "hello 2 2")
		come("lean-fluid.example/hello/")
		shows(t, views, "3")
		shows(t, uv, "2")
		counted(t, "lean-fluid", " 4 2", "(other) 1 1", "hello 3 2")
	})
}
