package handler

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/desk"
)

// chromium is a running browser. Starting one takes longer than most tests, so tests share it.
type chromium struct {
	cmd     *exec.Cmd
	profile string         // its folder
	out     io.WriteCloser // its commands; Chromium exits when this is closed, as it is when this process exits
	said    chan message   // its messages, in order
	ended   chan struct{}  // closed when it has exited
	last    int            // the number of the last command
}

// chromiums contains the idle browsers. nil stands for a browser that is not started yet.
var chromiums = make(chan *chromium, chromiumsAtOnce)

const chromiumsAtOnce = 2

func TestMain(m *testing.M) { dbtest.Main(withChromiums{m}) }

// withChromiums closes the idle browsers after the tests.
type withChromiums struct{ *testing.M }

func (m withChromiums) Run() int {
	for range chromiumsAtOnce {
		chromiums <- nil
	}
	code := m.M.Run()
	for range chromiumsAtOnce {
		if err := (<-chromiums).end(); err != nil {
			fmt.Fprintln(os.Stderr, "remove the profile of Chromium:", err)
			code = max(code, 1)
		}
	}
	return code
}

// takeChromium lends a Chromium to a test. It is not lent again if the test failed.
func takeChromium(t *testing.T) *chromium {
	t.Helper()
	c := <-chromiums
	t.Cleanup(func() {
		if t.Failed() && c != nil {
			said, _ := os.ReadFile(c.stderr())
			t.Logf("%s printed:\n%s", c.cmd.Path, said)
			assert.NoError(t, c.end())
			c = nil
		}
		chromiums <- c
	})
	if c == nil {
		c = startChromium(t)
	}
	return c
}

// findChromium returns the path of an installed browser.
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
	require.Fail(t, "Chromium is missing: install it with `make deps`, or name one in FOOTFALL_TEST_CHROMIUM", "looked for: %s",
		strings.Join(names, ", "))
	return ""
}

func startChromium(t *testing.T) *chromium {
	t.Helper()
	program := findChromium(t)
	profile, err := os.MkdirTemp("", "footfall-chromium-")
	require.NoError(t, err)
	c := &chromium{profile: profile, said: make(chan message, 1000), ended: make(chan struct{})}
	c.cmd = exec.Command(program,
		"--headless=new", "--user-data-dir="+profile, "--no-first-run", "--disable-background-networking", "--disable-gpu",
		"--disable-dev-shm-usage", // containers have little of it
		"--no-sandbox",            // neither root nor most containers may use it, and only our own pages are opened
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", // for its own requests; each test serves its own internet
		"--disable-features=HttpsUpgrades", "--user-agent="+desk.Browser, "--remote-debugging-pipe")
	c.cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children can be killed with it
	stderr, err := os.Create(c.stderr())
	require.NoError(t, err)
	commands, ours, err := os.Pipe()
	require.NoError(t, err)
	answers, theirs, err := os.Pipe()
	require.NoError(t, err)
	c.out, c.cmd.Stderr = ours, stderr
	c.cmd.ExtraFiles = []*os.File{commands, theirs} // descriptors 3 and 4
	require.NoError(t, c.cmd.Start())
	for _, its := range []*os.File{stderr, commands, theirs} { // the child has its own copies, so that its exit is noticed
		require.NoError(t, its.Close())
	}
	go c.listen(answers)
	go func() {
		_ = c.cmd.Wait() // it is killed, or hear reports its exit
		close(c.ended)
	}()
	return c
}

// stderr is the file with its standard error.
func (c *chromium) stderr() string { return filepath.Join(c.profile, "stderr") }

// listen forwards Chromium's messages.
func (c *chromium) listen(answers io.ReadCloser) {
	defer close(c.said)
	defer answers.Close()
	for lines := bufio.NewReader(answers); ; {
		line, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) == nil {
			c.said <- m
		}
	}
}

// end kills the browser, if it was started, and removes its folder. Its children may still write there until they exit.
func (c *chromium) end() (err error) {
	if c == nil {
		return nil
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // it may have exited by itself
	<-c.ended
	c.out.Close()
	for range c.said { // discards remaining messages
	}
	const pause = 10 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range dbtest.Patience / pause {
		if err = os.RemoveAll(c.profile); err == nil {
			return nil
		}
		<-tick.C
	}
	return err
}

// attempt is one request that a page tries. S is the service, U the uri of a page of example.com, and read turns a
// response into text.
type attempt struct {
	name, script, says string
	hot                int64
}

// The attempts of a page on a site that app shop counts.
var listedAttempts = []attempt{
	{"visit", `fetch(S + '/visit?app=shop&uri=' + U).then(read)`, "200 hot 1", 1},
	{"post", `fetch(S + '/visit', json({app: 'shop', uri: U})).then(read)`, "200 hot 1", 1},
	{"counts", `fetch(S + '/counts?app=shop&uri=' + U).then(read)`, "200 hot 0", 0},
	{"bad-uri", `fetch(S + '/visit?app=shop&uri=ftp:' + U).then(read)`, "400 uri: it does not begin with http", 0},
	{"other-site", `fetch(S + '/visit?app=shop&uri=http://other.example/').then(read)`,
		"403 uri: app shop does not count the site other.example", 0},
	{"asserted-ip", `fetch(S + '/visit?app=shop&ip=192.0.2.1&uri=' + U).then(read)`, "403 ip: app shop accepts it", 0},
	{"key", `fetch(S + '/visit?app=shop&uri=' + U, {headers: {Authorization: 'Bearer footfall_key'}}).then(read)`, "TypeError", 0},
	// The browser sends this request but hides the response from the page. Before a POST it sends a preflight.
	{"cookies", `fetch(S + '/visit?app=shop&uri=' + U, {credentials: 'include'}).then(read)`, "TypeError", 1},
	{"cookies-post", `fetch(S + '/visit', {credentials: 'include', ...json({app: 'shop', uri: U})}).then(read)`, "TypeError", 0},
	{"prefetch", `put('link', {rel: 'prefetch', href: S + '/visit?app=shop&uri=' + U})`, "", 0},
	{"image", `put('img', {src: S + '/visit?app=shop&uri=' + U})`, "error", 1}, // for pages without scripts
	{"no-cors", `fetch(S + '/visit?app=shop&uri=' + U, {mode: 'no-cors'}).then(r => r.type)`, "opaque", 1},
}

// The attempts of a page on a site that it does not count.
var unlistedAttempts = []attempt{
	{"visit", `fetch(S + '/visit?app=shop&uri=' + U).then(read)`, "TypeError", 0},
	{"post", `fetch(S + '/visit', json({app: 'shop', uri: U})).then(read)`, "TypeError", 0},
	{"counts", `fetch(S + '/counts?app=shop&uri=' + U).then(read)`, "TypeError", 0},
	{"own-uri", `fetch(S + '/visit?app=shop&uri=' + encodeURIComponent(location.href)).then(read)`, "TypeError", 0},
	{"form", `fetch(S + '/visit', {mode: 'no-cors', method: 'POST', body: JSON.stringify({app: 'shop', uri: U})}).then(r => r.type)`, "opaque",
		0},
	{"no-origin", `new Promise(done => {
		addEventListener('message', said => done(said.data), {once: true})
		put('iframe', {sandbox: 'allow-scripts', srcdoc: '<script>fetch("' + S + '/visit?app=shop&uri=' + U +
			'").then(() => parent.postMessage("read", "*"), e => parent.postMessage(e.name, "*"))<\/script>'})
	})`, "TypeError", 0},
	{"prefetch", `put('link', {rel: 'prefetch', href: S + '/visit?app=shop&uri=' + U})`, "", 0},
	// Requests that the browser sends without an Origin.
	{"image", `put('img', {src: S + '/visit?app=shop&uri=' + U})`, "error", 0},
	{"image-without-referrer", `put('img', {referrerPolicy: 'no-referrer', src: S + '/visit?app=shop&uri=' + U})`, "error", 0},
	{"frame", `put('iframe', {src: S + '/visit?app=shop&uri=' + U})`, "load", 0},
	{"no-cors", `fetch(S + '/visit?app=shop&uri=' + U, {mode: 'no-cors'}).then(async r => r.type + (await r.text()))`, "opaque", 0},
}

// attempting returns a page that makes all attempts in turn, and sends the result of each.
func attempting(service string, attempts []attempt) string {
	page := new(strings.Builder)
	fmt.Fprintf(page, `<script>
		const S = %q, learnt = {}
		const json = body => ({method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)})
		const read = async r => { const a = await r.json(); return r.status + ' ' + (a.error || 'hot ' + a.page.hot) }
		const put = (tag, attributes) => new Promise(done => {
			const e = Object.assign(document.createElement(tag), attributes)
			e.onload = e.onerror = event => done(event.type)
			document.head.append(e)
		})
		const run = async (name, attempt) => { learnt[name] = await attempt('http://example.com/' + location.host + '/' + name).catch(e => `+
		`e.name) }
		addEventListener('load', async () => {
	`, service)
	for _, a := range attempts {
		fmt.Fprintf(page, "await run(%q, U => %s)\n", a.name, a.script)
	}
	page.WriteString("await tell({Host: location.host, Learnt: learnt})\nlocation.href = '/next'\n})</script>")
	return page.String()
}

func TestChromiumKeepsSitesApart(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	cases := map[string][]attempt{
		"example.com":    listedAttempts,
		"example.com:81": unlistedAttempts,
		"a.example.com":  unlistedAttempts,
		"other.example":  unlistedAttempts,
	}
	var pages []string
	for host, attempts := range cases {
		pages = append(pages, "http://"+host+"/")
		w.pages[host+"/"] = attempting(w.public, attempts)
	}
	w.open(t, pages...)
	for range cases {
		var told struct {
			Host   string
			Learnt map[string]string
		}
		w.hear(t, &told)
		require.Contains(t, cases, told.Host)
		for _, a := range cases[told.Host] {
			assert.Contains(t, told.Learnt[a.name], a.says, "%s: %s", told.Host, a.name)
			assert.Equal(t, a.hot, w.counted(t, told.Host+"/"+a.name), "%s: %s", told.Host, a.name)
		}
	}
	metrics := w.do(http.MethodGet, w.admin+"/metrics", "", "").body
	assert.True(t, strings.Contains(metrics, `footfall_visits_skipped_total{reason="prefetch"} 1`), "that of the listed page")
	assert.Equal(t, []string{"127.0.0.1"}, w.visitors(t))
}
