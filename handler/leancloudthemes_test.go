package handler

import (
	"context"
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

// blogs is where scripts/fetch-themes has made blogs with real themes. The short form makes none.
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

// newBlogs has the service at count.example, for the blogs of an app, whose visitors have the address that
// comes returns.
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

// TestLeanCloudThemes shows blogs made with real themes, whose settings name the service as LeanCloud's
// server: each view counts once, and is shown as LeanCloud would.
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
		assert.EventuallyWithT(t, func(c *assert.CollectT) { // themes count after they show
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
			assert.Contains(t, string(settings), line, "the documented settings are those that are tried")
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
