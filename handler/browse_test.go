package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/visit"
)

// internet serves every host but the service's to a Chromium.
type internet struct {
	*edge
	mu    sync.Mutex               // guards pages after a Chromium has started
	pages map[string]string        // by host and path
	gates map[string]chan struct{} // by path: the response waits until it is closed
	rest  http.Handler             // responds to all other requests; nil: 404
	next  chan string              // targets of /next, in order
	told  chan string              // messages from pages
	ended chan struct{}            // closed when the Chromium has exited; nil until there is one
}

func newInternet(e *edge) *internet {
	return &internet{
		edge: e, pages: map[string]string{}, gates: map[string]chan struct{}{},
		next: make(chan string, 100), told: make(chan string, 100),
	}
}

// telling lets a page send messages to the test, and sends its errors.
const telling = `<script>
	const tell = what => fetch('/told', {method: 'POST', body: JSON.stringify(what)})
	addEventListener('error', e => tell('fault: ' + e.message))
	addEventListener('unhandledrejection', e => tell('fault: ' + e.reason))
</script>
`

// put adds a page, also while Chromium is running.
func (w *internet) put(at, page string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages[at] = page
}

func (w *internet) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	page, found := w.pages[r.Host+r.URL.Path]
	w.mu.Unlock()
	gate := w.gates[r.URL.Path]
	switch {
	case r.Method == http.MethodConnect: // requests of Chromium to its makers
		http.NotFound(out, r)
	case r.URL.Path == "/told":
		said, _ := io.ReadAll(r.Body)
		w.told <- string(said)
	case r.URL.Path == "/next":
		select {
		case url := <-w.next:
			http.Redirect(out, r, url, http.StatusSeeOther)
		default: // no more targets
		}
	case gate != nil:
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	case found:
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(out, "<!doctype html><title>a page</title>", telling, page)
	case w.rest != nil:
		w.rest.ServeHTTP(out, r)
	default:
		http.NotFound(out, r)
	}
}

// open shows the first page in Chromium, and the next ones at /next of any host.
func (w *internet) open(t *testing.T, pages ...string) {
	t.Helper()
	for _, page := range pages[1:] {
		w.next <- page
	}
	w.browse(t).newPage(pages[0])
}

// hear reads the next message of a page.
func (w *internet) hear(t *testing.T, into any) {
	t.Helper()
	select {
	case said := <-w.told:
		require.NotContains(t, said, "fault: ")
		require.NoError(t, json.Unmarshal([]byte(said), into), said)
	case <-w.ended:
		require.Fail(t, "Chromium has ended")
	case <-time.After(dbtest.Patience):
		require.Fail(t, "the page sends no message")
	}
}

// proxy passes requests on to the service.
func (w *internet) proxy() *httputil.ReverseProxy {
	w.t.Helper()
	service, err := url.Parse(w.public)
	require.NoError(w.t, err)
	return httputil.NewSingleHostReverseProxy(service)
}

// dash is the origin of the service's pages.
const dash = "http://dash.example"

// driveOwner browses with one page, as an owner signed in at dash.
func (w *internet) driveOwner(t *testing.T) *devtools {
	t.Helper()
	w.rest = w.proxy()
	b := w.drive(t)
	b.open(dash + "/enter")
	session := w.SignIn(t, desk.Owner, account.Rights{})
	b.do("Network.setCookie", map[string]any{"name": sessionCookie, "value": session, "url": dash}, nil)
	return b
}

// text returns the visible text of a page below dash.
func (d *devtools) text(path string) (is string) {
	d.t.Helper()
	d.open(dash + path)
	d.ask(`document.querySelector('main').innerText`, &is)
	return is
}

// counted returns hot of a page of example.com.
func (w *internet) counted(t *testing.T, path string) (hot int64) {
	t.Helper()
	a := w.get("/counts?app=shop&uri=http://example.com/" + path)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var said visit.Answer
	require.NoError(t, json.Unmarshal([]byte(a.body), &said))
	return said.Page.Hot
}

// visitors returns the addresses in the tables.
func (w *internet) visitors(t *testing.T) (addresses []string) {
	t.Helper()
	rows, err := w.Conn(w.t).Query(context.Background(), `SELECT DISTINCT host(ip) FROM footfall.visitors`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var address string
		require.NoError(t, rows.Scan(&address))
		addresses = append(addresses, address)
	}
	require.NoError(t, rows.Err())
	return addresses
}
