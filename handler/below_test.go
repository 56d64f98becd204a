package handler

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/db/dbtest"
	"footfall/desk"
)

// nginx starts an nginx with the lines of docs/embed.md in front of a service, and returns its URL.
func nginx(t *testing.T, service string) string {
	t.Helper()
	binary := ""
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // Debian's path, which is not in every PATH
		if found, err := exec.LookPath(name); err == nil {
			binary = found
		}
	}
	if binary == "" {
		t.Skip("no nginx found: scripts/install-deps nginx")
	}
	docs, err := os.ReadFile("../docs/embed.md")
	require.NoError(t, err)
	lines := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(docs)
	require.NotNil(t, lines)
	folder, address, temporary := t.TempDir(), dbtest.FreeAddress(t), ""
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += fmt.Sprintf("%s_temp_path %s;\n", of, filepath.Join(folder, of))
	}
	config := filepath.Join(folder, "nginx.conf")
	require.NoError(t, os.WriteFile(config,
		fmt.Appendf(nil, "daemon off; master_process off; pid %s; events {}\nhttp {\naccess_log off;\n%sserver {\nlisten %s;\n%s}\n}\n",
			filepath.Join(folder, "pid"), temporary, address, strings.ReplaceAll(string(lines[1]), "http://127.0.0.1:8080", service)), 0o600))
	cmd := exec.Command(binary, "-p", folder, "-c", config, "-e", "stderr")
	var said bytes.Buffer // valid after it has exited
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, dbtest.Patience, dbtest.Tick, "nginx listens")
	return "http://" + address
}

// TestBelowAPath serves at http://blog.example/numbers, behind an nginx that removes the path.
func TestBelowAPath(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.AddSites(ctx, "shop", []string{"blog.example"})
		require.NoError(t, err)
		_, err = a.RemoveSites(ctx, "shop", []string{"example.com"})
		return err
	})
	w.counting(0, "192.0.2.1", "http://hhui.top/home")
	w.SignIn(t, "Ann", desk.Looks("shop"))
	shared := "/numbers" + w.share("shop", "blog.example")
	options := w.options
	options.Metrics, options.PublicURL = nil, "http://blog.example/numbers"
	front := nginx(t, listen(t, publicHandler(options), slog.New(slog.DiscardHandler)))
	through, err := url.Parse(front)
	require.NoError(t, err)
	w.rest = httputil.NewSingleHostReverseProxy(through)
	b := w.drive(t)

	// The line that the service shows counts, and so does the one for busuanzi.
	line := html.UnescapeString(regexp.MustCompile(`&lt;script src=.*`).FindString(w.do(http.MethodGet, front+"/numbers/embed?app=demo", "",
		"").body))
	line, _, _ = strings.Cut(line, "</pre>")
	require.Contains(t, line, `src="http://blog.example/numbers/count.js"`)
	w.put("blog.example/hello", strings.Replace(line, `"demo"`, `"shop"`, 1)+`<p data-footfall="page.hot"></p>`)
	w.put("blog.example/bye", `<script async src="http://blog.example/numbers/busuanzi/2.3/busuanzi.pure.mini.js"></script><p `+
		`id="busuanzi_value_page_pv"></p>`)
	for _, page := range []string{"hello", "bye"} {
		b.open("http://blog.example/" + page)
		b.await(`document.querySelector('p').textContent === '1'`)
	}

	// Signing in leads to the requested page, and no other service receives the cookie.
	b.open("http://blog.example/numbers/dash/shop/blog.example?range=7d")
	b.ask(`document.querySelector('#name').value = 'Ann', document.querySelector('#password').value = '`+desk.Password+`'`, nil)
	b.leads(func() { b.ask(`document.querySelector('form.sign').requestSubmit()`, nil) })
	assert.Equal(t, "http://blog.example/numbers/dash/shop/blog.example?range=7d", b.where())
	b.await(`document.querySelector('.big').textContent === '1' && document.querySelector('footer button') !== null`) // by dash.js
	var has struct{ Cookies []struct{ Name, Path string } }
	b.do("Network.getCookies", nil, &has)
	require.Len(t, has.Cookies, 2, "the session and the remembered browser")
	for _, c := range has.Cookies {
		assert.Equal(t, "/numbers/", c.Path, c.Name)
	}

	// Every link from these pages stays below the path, and works.
	seen := map[string]bool{}
	for next := []string{"/numbers/", "/numbers/dash/shop", "/numbers/enter", shared, shared + "?embed", "/numbers/embed?app=shop"}; len(
		next) > 0; next = next[1:] {
		var page struct {
			Status int
			Links  []string
		}
		b.ask(`fetch('`+next[0]+`').then(async r => ({Status: r.status, Links: [...new DOMParser().parseFromString(await r.text(), `+
			`'text/html').querySelectorAll('[href], [src], [action]')]
			.map(e => e.getAttribute('href') ?? e.getAttribute('src') ?? e.getAttribute('action'))}))`, &page)
		assert.Equal(t, http.StatusOK, page.Status, next[0])
		for _, to := range page.Links {
			if strings.HasPrefix(to, "#") || strings.HasPrefix(to, "https://") { // to the counted page
				continue
			}
			assert.True(t, strings.HasPrefix(to, "/numbers/"), "%s on %s", to, next[0])
			if kind, _, _ := strings.Cut(to, "?"); !seen[kind] {
				seen[kind] = true
				next = append(next, to)
			}
		}
	}
	for _, to := range []string{"/numbers/", "/numbers/dash/dash.js", "/numbers/dash/shop/blog.example", "/numbers/embed", "/numbers/leave",
		shared} {
		assert.Contains(t, seen, to)
	}

	w.put("blog.example/frame", `<iframe src="`+shared+`?embed"></iframe>`)
	b.open("http://blog.example/frame")
	b.await(`document.querySelector('iframe').contentDocument.querySelector('.big')?.textContent === '1'`)

	b.open("http://blog.example/numbers/leave")
	b.leads(func() { b.ask(`document.querySelector('form.sign').requestSubmit()`, nil) })
	assert.Equal(t, "http://blog.example/numbers/", b.where())
	b.open("http://blog.example/numbers/dash/shop")
	assert.Equal(t, "Sign in", b.title())
	b.open("http://blog.example/numbers/share/none")
	assert.Equal(t, "Not Found", b.title())
}
