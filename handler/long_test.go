package handler

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
)

// historyForm is a form that imports a file.
func historyForm(t testing.TB, file []byte, fields ...string) (body []byte, contentType string) {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for i := 0; i < len(fields); i += 2 {
		require.NoError(t, w.WriteField(fields[i], fields[i+1]))
	}
	part, err := w.CreateFormFile("file", "a.csv.gz")
	require.NoError(t, err)
	_, err = part.Write(file)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return form.Bytes(), w.FormDataContentType()
}

// packedHistory returns a file that decompresses to n lines.
func packedHistory(t testing.TB, n int, line func(i int) string) []byte {
	t.Helper()
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	_, err := io.WriteString(w, "day,page,page_views\n")
	for i := range n {
		_, _ = io.WriteString(w, line(i)+"\n")
	}
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return file.Bytes()
}

// longPage returns a line for a separate page with a long name.
func longPage(i int) string {
	return fmt.Sprintf("2019-05-%02d,/%s%d,1", 1+i%28, strings.Repeat("a", 1000), i)
}

// upload sends a form with a file to the settings of shop, and returns the response.
func (p *person) upload(ctx context.Context, body []byte, contentType string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.public+"/settings/shop", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Cookie", p.cookie())
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

// assertStaysAvailable checks that /readyz returns 200, that another app's dashboard is shown, and that signing in
// takes less than a second, at the median, because the test machine is busy with other things.
func (e *edge) assertStaysAvailable(bea *person) {
	e.t.Helper()
	ask := func(method, path string, form url.Values, cookie string) (int, time.Duration) {
		ctx, cancel := context.WithTimeout(e.t.Context(), 20*time.Second) // requests held up by the floods took minutes
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, e.public+path, strings.NewReader(form.Encode()))
		require.NoError(e.t, err)
		r.Header.Set("Cookie", cookie)
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		began := time.Now()
		response, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(e.t, err, path)
		_ = response.Body.Close()
		return response.StatusCode, time.Since(began)
	}
	var took []time.Duration
	for range 5 {
		status, _ := ask(http.MethodGet, "/readyz", nil, "")
		assert.Equal(e.t, http.StatusOK, status, "/readyz")
		status, _ = ask(http.MethodGet, "/dash/demo/a.example", nil, bea.cookie())
		assert.Equal(e.t, http.StatusOK, status, "another app's dashboard")
		status, in := ask(http.MethodPost, "/enter", url.Values{"name": {"Bea"}, "password": {desk.Password}}, "")
		assert.Equal(e.t, http.StatusSeeOther, status, "sign-in")
		took = append(took, in)
	}
	slices.Sort(took)
	assert.LessOrEqual(e.t, took[2], time.Second, "sign-in: %v", took)
}

// waitingForLocks returns the number of sessions that wait for a lock.
func (e *edge) waitingForLocks() int {
	e.t.Helper()
	return int(e.One(e.t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`))
}

// Ten uploads of history by a member of one app, who hangs up, neither block the service nor continue to run.
func TestUploadsLeaveTheServiceAvailable(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://a.example/")
	max, bea := e.changes("Max", "shop"), e.member("Bea", "demo")
	file := packedHistory(t, 20_000, longPage)
	assert.Less(t, len(file), 400_000, "of 20 MB")
	body, contentType := historyForm(t, file, "do", "import history", "from", "csv", "site", "example.com", "try", "true")
	release := e.hold(`SELECT FROM apps WHERE name = 'shop' FOR UPDATE`) // so that no import ends before its caller disconnects
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error, 10)
	for range cap(ended) {
		go func() {
			a, err := max.upload(ctx, body, contentType)
			if a.status == http.StatusServiceUnavailable { // it has waited for 10 s
				err = context.Canceled
			}
			ended <- err
		}()
	}
	e.blocked(1)
	e.assertStaysAvailable(bea)
	assert.Equal(t, 1, e.waitingForLocks(), "one import runs per app")
	hangUp()
	for range cap(ended) {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	require.Eventually(t, func() bool { return e.waitingForLocks() == 0 }, dbtest.Patience, dbtest.Tick, "a preview ends with its caller")
	release()
	a, err := max.upload(t.Context(), body, contentType)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, a.status, "slots are free again")
	assert.Contains(t, a.body, "Nothing has been imported yet. 20,000 lines read")
}

// An import that has started finishes, although its caller has disconnected.
func TestImportContinuesWithoutItsCaller(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	max := e.changes("Max", "shop")
	body, contentType := historyForm(t, packedHistory(t, 10, longPage), "do", "import history", "from", "csv", "site", "example.com")
	release := e.hold(`SELECT FROM apps WHERE name = 'shop' FOR UPDATE`)
	ctx, hangUp := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := max.upload(ctx, body, contentType); left <- err }()
	e.blocked(1)
	hangUp()
	require.ErrorIs(t, <-left, context.Canceled)
	release()
	require.Eventually(t, func() bool { return e.One(t, `SELECT count(*) FROM history`) > 0 }, dbtest.Patience, dbtest.Tick)
}

// Forty erasures that wait for another instance's use one connection. Those without a slot get 503 after 10 s.
func TestErasuresLeaveTheServiceAvailable(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://a.example/")
	key, bea := e.key("shop", app.ScopeAdmin), e.member("Bea", "demo")
	release := e.hold(`SELECT FROM epochs WHERE name = 'erasures' FOR UPDATE`)
	answers := make(chan answer, 40)
	erase := func() answer {
		return e.askWith(`{"visitor":"192.0.2.7"}`, http.MethodPost, "/api/apps/shop/visitors/erase", "Authorization", "Bearer "+key,
			"Content-Type", "application/json")
	}
	for range cap(answers) {
		go func() { answers <- erase() }()
	}
	e.blocked(1)
	e.assertStaysAvailable(bea)
	assert.Equal(t, 1, e.waitingForLocks())
	for range cap(answers) - 1 {
		a := <-answers
		require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		assert.Equal(t, "10", a.header.Get("Retry-After"))
		assert.Equal(t, "other long work is running, such as an import or an erasure: try again later", a.error(t))
	}
	release()
	assert.Equal(t, http.StatusOK, (<-answers).status)
	assert.Equal(t, http.StatusOK, erase().status)
}

// The decompressed size of uploads is limited, and the error names the command that accepts more.
func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	max := e.changes("Max", "shop")
	wide := packedHistory(t, 270_000, func(i int) string { return "wrong" + longPage(i) })
	long := packedHistory(t, 2_000_000, func(int) string { return "wrong" })
	for says, file := range map[string][]byte{"it unpacks to more than 256 MB": wide, "it has more than 2000000 lines": long} {
		body, contentType := historyForm(t, file, "do", "import history", "from", "csv", "site", "example.com", "skip", "true", "try",
			"true")
		a, err := max.upload(t.Context(), body, contentType)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, a.status)
		assert.Contains(t, a.body, says+": import it in the shell with footfall history import, which accepts more")
	}
}

// Callers without an account, a key or a link take no places for reports.
func TestStrangersTakeNoPlaces(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.counting(0, "192.0.2.1", "http://a.example/")
	hurried := e.options
	hurried.reportWait, hurried.Metrics = time.Millisecond, prometheus.NewRegistry()
	e.public = listen(t, publicHandler(hurried), hurried.Log)
	bea, stranger, cell := e.member("Bea", "demo"), newPerson(e), e.options.Cells.Home()
	statuses := func(p *person) (all []int) {
		t.Helper()
		for _, path := range []string{"/enter", "/dash/x", "/proof", "/dash/demo/a.example"} {
			all = append(all, p.get(path).status)
		}
		return all
	}
	assert.Equal(t, []int{200, 403, 200, 200}, statuses(stranger))
	for range cap(cell.Places) {
		cell.Places <- struct{}{}
	}
	assert.Equal(t, []int{200, 403, 200, 200}, statuses(stranger), "they need no place of readers")
	assert.Equal(t, []int{200, 403, 503, 503}, statuses(bea))
	for range cap(cell.Places) {
		<-cell.Places
	}
	cell.Strangers <- struct{}{}
	assert.Equal(t, []int{200, 403, 503, 503}, statuses(stranger))
	assert.Equal(t, []int{200, 403, 200, 200}, statuses(bea), "they take none of readers")
	link, key := e.share("demo", ""), e.key("shop", app.ScopeRead)
	assert.Equal(t, 200, stranger.get(link).status)
	assert.Equal(t, 200, e.ask(http.MethodGet, "/api/apps/shop/sites", "Authorization", "Bearer "+key).status)
	assert.Equal(t, 503, e.ask(http.MethodGet, "/api/apps/demo/sites").status)
}
