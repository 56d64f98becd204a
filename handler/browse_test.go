package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

// chromiumPatience bounds what only a broken browser takes longer for.
const chromiumPatience = time.Minute

// findChromium is the browser that a person has here.
func findChromium(t *testing.T) string {
	t.Helper()
	names := []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	}
	if named := os.Getenv("FOOTFALL_TEST_CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.Fail(t, "Chromium is missing: install it with `make deps`, or name one in FOOTFALL_TEST_CHROMIUM", "looked for: %s", strings.Join(names, ", "))
	return ""
}

// internet is every host that the service is not: what a Chromium finds there.
type internet struct {
	*edge
	mu    sync.Mutex               // guards pages once there is a Chromium
	pages map[string]string        // by host and path
	gates map[string]chan struct{} // by path: answered when closed
	rest  http.Handler             // answers what is none of these; nil: it is not found
	next  chan string              // where /next leads to, one after the other
	told  chan string              // what pages tell
	ended chan struct{}            // closed when the Chromium has ended
}

func newInternet(e *edge) *internet {
	return &internet{
		edge: e, pages: map[string]string{}, gates: map[string]chan struct{}{},
		next: make(chan string, 100), told: make(chan string, 100), ended: make(chan struct{}),
	}
}

// telling lets a page say something to the test, and says what goes wrong in it.
const telling = `<script>
	const tell = what => fetch('/told', {method: 'POST', body: JSON.stringify(what)})
	addEventListener('error', e => tell('fault: ' + e.message))
	addEventListener('unhandledrejection', e => tell('fault: ' + e.reason))
</script>
`

// put makes a page, also when Chromium is there.
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
	case r.URL.Path == "/told":
		said, _ := io.ReadAll(r.Body)
		w.told <- string(said)
	case r.URL.Path == "/next":
		select {
		case url := <-w.next:
			http.Redirect(out, r, url, http.StatusSeeOther)
		default: // this was the last
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

// open shows the first page in a new Chromium, and at /next of any host the next. It ends with the
// test. Agent "" leaves it the name that it has when no person drives it.
func (w *internet) open(t *testing.T, agent string, pages ...string) {
	t.Helper()
	for _, page := range pages[1:] {
		w.next <- page
	}
	w.start(t, agent, func(cmd *exec.Cmd) {
		nobody, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		require.NoError(t, err)
		lifeline(t, cmd, nobody)
		cmd.Args = append(cmd.Args, pages[0])
	})
}

// start starts a Chromium, which finds everything at w. It ends with the test.
func (w *internet) start(t *testing.T, agent string, prepare func(cmd *exec.Cmd)) {
	t.Helper()
	program := findChromium(t)
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	profile, err := os.MkdirTemp("", "footfall-chromium-")
	require.NoError(t, err)
	address := server.Listener.Addr().String()
	cmd := exec.Command(program,
		"--headless=new", "--user-data-dir="+profile, "--no-first-run", "--disable-background-networking", "--disable-gpu",
		"--disable-dev-shm-usage", // of which containers have little
		"--no-sandbox",            // which neither root nor most containers may have; the pages are ours, and there are no others
		"--host-resolver-rules=MAP *:80 "+address+", MAP *:81 "+address+", MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--disable-features=HttpsUpgrades")
	if agent != "" {
		cmd.Args = append(cmd.Args, "--user-agent="+agent)
	}
	prepare(cmd)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children can be ended with it
	cmd.WaitDelay = 5 * time.Second
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait() // it is killed, or hear says that it ended
		close(w.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended by itself
		<-w.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", program, stderr.String())
		}
		removed := func() bool { return os.RemoveAll(profile) == nil }
		assert.Eventually(t, removed, chromiumPatience, 10*time.Millisecond, "its children may write until they end, too")
	})
}

// lifeline ends a Chromium when this process ends without its cleanups: it leaves when nobody can
// send it commands any more. It returns where commands are written to; what Chromium says to them
// goes to answers.
func lifeline(t *testing.T, cmd *exec.Cmd, answers *os.File) (commands io.Writer) {
	t.Helper()
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{theirs, answers} // descriptors 3 and 4
	cmd.Args = append(cmd.Args, "--remote-debugging-pipe")
	t.Cleanup(func() {
		theirs.Close()
		ours.Close()
		answers.Close()
	})
	return ours
}

// hear reads what a page tells next.
func (w *internet) hear(t *testing.T, into any) {
	t.Helper()
	select {
	case said := <-w.told:
		require.NotContains(t, said, "fault: ")
		require.NoError(t, json.Unmarshal([]byte(said), into), said)
	case <-w.ended:
		require.Fail(t, "Chromium has ended")
	case <-time.After(chromiumPatience):
		require.Fail(t, "the page does not tell what became of it")
	}
}

// counted is hot of a page of example.com.
func (w *internet) counted(t *testing.T, path string) (hot int64) {
	t.Helper()
	a := w.get("/counts?app=shop&uri=http://example.com/" + path)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var said visit.Answer
	require.NoError(t, json.Unmarshal([]byte(a.body), &said))
	return said.Page.Hot
}

// visitors are the addresses that the tables know.
func (w *internet) visitors(t *testing.T) (addresses []string) {
	t.Helper()
	rows, err := w.connect(w.database).Query(context.Background(), `SELECT DISTINCT host(ip) FROM footfall.visitors`)
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
