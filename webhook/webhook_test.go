package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/webhook"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// world is an app blog that counts, and that tests change.
type world struct {
	*desk.Desk
	t        *testing.T
	visitors int
	logged   dbtest.Log // by the sender
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	open := app.AccessOpen
	return &world{t: t, Desk: desk.Open(t, desk.Options{Real: true, Apps: map[string]app.Settings{"blog": {Access: &open}}})}
}

// come counts n new visitors, and counts the first of them a second time.
func (w *world) come(n int) {
	w.t.Helper()
	for i := range n + 1 {
		address := fmt.Sprintf("10.0.%d.%d", (w.visitors+i%n)/250, (w.visitors+i%n)%250)
		w.CountAs(w.t, counter.Request{App: "blog", IP: address, URI: "http://a.example/x"})
	}
	w.visitors += n
}

// add adds a webhook of the site, on the test's own machine.
func (w *world) add(url string) (id int32, key []byte) {
	w.t.Helper()
	id, target, key, err := w.Admin.AddWebhook(w.t.Context(), "blog", "a.example", "", url, true)
	require.NoError(w.t, err)
	require.Equal(w.t, "a.example", target)
	return id, key
}

// send runs an instance that calls webhooks, with the rights of the service, until end is called.
func (w *world) send(within time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	d := dbtest.Open(w.t, dbtest.WithParameter(w.t, w.URL, "role", "footfall_app"), db.Options{})
	var done sync.WaitGroup
	done.Go(func() {
		webhook.NewSender(d, desk.Secret.WebhookKey, webhook.Options{Log: slog.New(slog.NewTextHandler(&w.logged, nil)), Within: within}).Run(ctx)
	})
	end = func() { cancel(); done.Wait() }
	w.t.Cleanup(end)
	return end
}

// receiver accepts calls, or handles them with a function of the test.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
}

type call struct{ path, id, timestamp, signature, body string }

func newReceiver(t *testing.T, answer func(nth int, out http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		head := request.Header.Get
		r.calls = append(r.calls, call{request.Method + " " + request.URL.Path, head("webhook-id"), head("webhook-timestamp"),
			head("webhook-signature"), string(body)})
		nth := len(r.calls)
		r.mu.Unlock()
		if answer != nil {
			answer(nth, out, request)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// ids returns the ids of all received calls.
func (r *receiver) ids(t *testing.T) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		var told struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(c.body), &told), c.body)
		ids = append(ids, told.ID)
	}
	return ids
}

// awaits waits for these calls, and fails if there are other calls.
func (r *receiver) awaits(t *testing.T, ids ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.ids(t)) >= len(ids) }, dbtest.Patience, dbtest.Tick)
	require.Equal(t, ids, r.ids(t))
}

// awaitAllTaken waits until all waiting calls have been accepted.
func (w *world) awaitAllTaken() {
	w.t.Helper()
	conn := w.Conn(w.t)
	require.Eventually(w.t, func() bool {
		return dbtest.Column[bool](w.t, conn, `SELECT coalesce(bool_and(waiting = '{}'), true) FROM webhooks`)[0]
	}, dbtest.Patience, dbtest.Tick)
}

// Each round number that is reached while a webhook exists arrives once, although two instances run, signed with the
// key of the webhook.
func TestRoundNumbersArrive(t *testing.T) {
	w := newWorld(t)
	site, page := newReceiver(t, nil), newReceiver(t, nil)
	w.come(2)
	id, key := w.add(site.URL + "/hook?to=us")
	pageID, target, _, err := w.Admin.AddWebhook(t.Context(), "blog", "", "http://A.example/x?from=mail", page.URL, true)
	require.NoError(t, err)
	require.Equal(t, "a.example/x", target)
	w.Exec(t, `UPDATE webhooks SET salt = NULL WHERE id = $1`, pageID) // as added by 0.1.0
	_, _, _, err = w.Admin.AddWebhook(t.Context(), "blog", "", "a.example/never", page.URL, true)
	require.NoError(t, err)
	w.send(0)
	w.send(0)
	at := func(id int32, rank int) string { return fmt.Sprintf("%d/%d", id, rank) }
	w.come(2)
	w.come(7) // 11
	site.awaits(t, at(id, 5), at(id, 10))
	w.come(8) // 19
	w.come(4)
	site.awaits(t, at(id, 5), at(id, 10), at(id, 20))
	page.awaits(t, at(pageID, 5), at(pageID, 10), at(pageID, 20))

	first := site.calls[0]
	assert.Equal(t, "POST /hook", first.path)
	assert.JSONEq(t, fmt.Sprintf(`{"app":"blog","target":"a.example","rank":5,"first_day":%q,"id":"%d/5"}`,
		w.DB.Now().UTC().Format(time.DateOnly), id), first.body)
	assert.Equal(t, fmt.Sprintf("%d/5", id), first.id)
	sent, err := strconv.ParseInt(first.timestamp, 10, 64)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), time.Unix(sent, 0), dbtest.Patience)
	checkAsDocumented(t, webhook.KeyText(key), first)
	checkAsDocumented(t, webhook.KeyText(desk.Secret.WebhookKey(pageID, nil)), page.calls[0])
	// The standard's own example.
	checkAsDocumented(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", call{id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330",
		body: `{"test": 2432232314}`, signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="})
}

// checkAsDocumented checks a signature with the lines of docs/operating.md.
func checkAsDocumented(t *testing.T, key string, c call) {
	t.Helper()
	text, err := os.ReadFile("../docs/operating.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```sh\n([^`]*webhook-signature.*?)```").FindStringSubmatch(string(text))
	require.NotNil(t, found)
	other := c
	for change, is := range map[*string]bool{nil: true, &other.id: false, &other.timestamp: false, &other.body: false} {
		other = c
		if change != nil {
			*change += " "
		}
		shell := exec.Command("sh", "-c", found[1])
		shell.Env = append(os.Environ(), "KEY="+key, "ID="+other.id, "TIMESTAMP="+other.timestamp, "SIGNATURE="+c.signature, "BODY="+other.body)
		out, err := shell.CombinedOutput()
		assert.Equal(t, is, err == nil, "%+v: %s", other, out)
	}
}

// A call is repeated, with the same id and body, until its receiver accepts it. Redirects are not followed, responses
// are not read to their end, and little of an invalid response is logged.
func TestCallsAreMadeAgain(t *testing.T) {
	w := newWorld(t)
	endless := func(out http.ResponseWriter) {
		for {
			if _, err := fmt.Fprintln(out, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	}
	failing := newReceiver(t, func(nth int, out http.ResponseWriter, r *http.Request) {
		switch nth {
		case 1:
			http.Error(out, "no", http.StatusInternalServerError)
		case 2:
			http.Redirect(out, r, "/elsewhere", http.StatusTemporaryRedirect)
		case 3:
			conn, _, err := http.NewResponseController(out).Hijack()
			require.NoError(t, err)
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s%s\r\n\r\n", strings.Repeat("y", 9000), r.URL)
			conn.Close()
		case 4:
			<-r.Context().Done() // the caller has disconnected
		case 5:
			out.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		case 6:
			endless(out)
		}
	})
	id, key := w.add(failing.URL + "/token")
	w.come(1)
	w.send(2 * time.Second)
	one := fmt.Sprintf("%d/1", id)
	require.Eventually(t, func() bool {
		w.Exec(w.t, `UPDATE webhooks SET since = now() WHERE id = $1`, id) // so that there is a second between two tries
		return len(failing.ids(t)) >= 6
	}, dbtest.Patience, 10*dbtest.Tick)
	failing.awaits(t, one, one, one, one, one, one)
	for _, c := range failing.calls {
		assert.Equal(t, []string{failing.calls[0].path, failing.calls[0].id, failing.calls[0].body}, []string{c.path, c.id, c.body})
		checkAsDocumented(t, webhook.KeyText(key), c)
	}
	conn := w.Conn(t)
	require.Eventually(t, func() bool {
		return dbtest.Column[bool](t, conn, `SELECT waiting = '{}' FROM webhooks WHERE id = $1`, id)[0]
	}, dbtest.Patience, dbtest.Tick)
	w.come(1)
	failing.awaits(t, one, one, one, one, one, one, fmt.Sprintf("%d/2", id))
	assert.Contains(t, w.logged.String(), "yyyy")
	assert.Less(t, len(w.logged.String()), 3000)
	assert.NotContains(t, w.logged.String(), "token")
}

// A receiver that hangs does not delay calls to other receivers.
func TestReceiversDoNotWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	dead := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	alive := newReceiver(t, nil)
	deadID, _ := w.add(dead.URL)
	id, _ := w.add(alive.URL)
	w.come(1)
	w.send(time.Hour)
	alive.awaits(t, fmt.Sprintf("%d/1", id))
	dead.awaits(t, fmt.Sprintf("%d/1", deadID))
	w.come(1)
	alive.awaits(t, fmt.Sprintf("%d/1", id), fmt.Sprintf("%d/2", id))
	assert.Len(t, dead.ids(t), 1)
}

// If two instances find the same round numbers at once, only one of them notes the numbers. There is no deadlock, because both
// start with the oldest webhook, wherever its row is.
func TestOneOfTwoNotesANumber(t *testing.T) {
	w := newWorld(t)
	id, _ := w.add("http://127.0.0.1/")
	w.add("http://127.0.0.1/")
	w.Exec(w.t, `UPDATE webhooks SET since = now() WHERE id = $1`, id) // its row is now the last one
	w.come(2)
	first, second := w.Conn(t), w.Conn(t)
	tx, err := first.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM webhooks WHERE id = $1 FOR UPDATE`, id)
	require.NoError(t, err)
	noted := make(chan error)
	go func() {
		_, err := second.Exec(context.Background(), `SELECT see_round_numbers()`)
		noted <- err
	}()
	watching := w.Conn(t)
	require.Eventually(t, func() bool {
		return dbtest.Column[bool](t, watching, `SELECT cardinality(pg_blocking_pids($1)) > 0`, second.PgConn().PID())[0]
	}, dbtest.Patience, dbtest.Tick)
	_, err = tx.Exec(t.Context(), `SELECT see_round_numbers()`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-noted)
	assert.Equal(t, []int{2, 2}, dbtest.Column[int](t, watching, `SELECT cardinality(waiting) FROM webhooks`))
}

// The pause between two tries equals the time since the first one, from a second up to an hour.
func TestCallsRest(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, func(_ int, out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusBadGateway) })
	w.add(r.URL)
	w.come(1)
	w.send(0)
	conn := w.Conn(t)
	// A call noted while the row is changed here uses an earlier time: a minute is allowed.
	for _, is := range []struct{ waited, untilNext, atMost string }{{"0 s", "1 s", "30 min"}, {"20 min", "39 min", "50 min"},
		{"3 days", "3 days 59 min", "1 h"}} {
		w.Exec(w.t, `UPDATE webhooks SET since = now() - $1::interval, try_at = '2000-01-01'`, is.waited)
		require.Eventually(t, func() bool {
			return dbtest.Column[bool](t, conn, `SELECT try_at - since >= $1::interval AND try_at - now() <= $2::interval FROM webhooks`,
				is.untilNext, is.atMost)[0]
		}, dbtest.Patience, dbtest.Tick, is)
	}
}

// A call in progress when an instance stops is sent by the next one, with the same id.
func TestCallsOutliveInstances(t *testing.T) {
	w := newWorld(t)
	under := make(chan struct{}, 1)
	r := newReceiver(t, func(nth int, _ http.ResponseWriter, r *http.Request) {
		if nth == 1 {
			under <- struct{}{}
			<-r.Context().Done()
		}
	})
	id, _ := w.add(r.URL)
	end := w.send(0)
	w.come(1)
	<-under
	end()
	w.come(1)
	w.send(0)
	r.awaits(t, fmt.Sprintf("%d/1", id), fmt.Sprintf("%d/1", id), fmt.Sprintf("%d/2", id))
}

// Round numbers are the ones shown to visitors: offsets are included, and no call is made for the numbers that an offset skips.
// Numbers reached before a change of the offset are still sent. If two visitors were shown the same number, their calls have
// different ids.
func TestOffsetsPassNumbers(t *testing.T) {
	w := newWorld(t)
	up := make(chan struct{})
	r := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-up:
		case <-r.Context().Done():
		}
	})
	set := func(uv int64) {
		_, err := w.Admin.SetOffsets(t.Context(), "blog", []admin.Offset{{URI: "a.example", Hot: uv, PV: uv, UV: uv}}, false)
		require.NoError(t, err)
	}
	w.come(2)
	id, _ := w.add(r.URL)
	at := func(visitor int) string { return fmt.Sprintf("%d/%d", id, visitor) }
	w.come(2)
	set(1)    // the fourth visitor was shown 4, although it is 5 now, and no instance has looked yet
	w.come(5) // the last one was shown 10
	set(990)  // and is 999 now
	w.send(0)
	w.come(1)
	close(up)
	r.awaits(t, at(9), at(10))
	set(5)
	w.come(5) // the last one was shown 20
	r.awaits(t, at(9), at(10), at(15))
	_, err := w.Admin.RemoveOffset(t.Context(), "blog", "a.example")
	require.NoError(t, err)
	w.come(5) // and so is another one
	r.awaits(t, at(9), at(10), at(15), at(20))
	for i, rank := range []int{10, 1000, 20, 20} {
		assert.Contains(t, r.calls[i].body, fmt.Sprintf(`"rank":%d,`, rank))
		assert.NotContains(t, r.calls[i].body, "null")
	}
}

// The call about an erased visitor has no day.
func TestErasedVisitorHasNoDay(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	w.add(r.URL)
	w.come(1)
	w.Exec(w.t, `DELETE FROM visitors`)
	w.send(0)
	require.Eventually(t, func() bool { return len(r.ids(t)) == 1 }, dbtest.Patience, dbtest.Tick)
	assert.Contains(t, r.calls[0].body, `"first_day":null`)
}

// Deleting a page or an app deletes its webhooks, and no other webhooks.
func TestWebhooksGoWithTheirTargets(t *testing.T) {
	w := newWorld(t)
	w.come(3)
	for _, page := range []string{"http://a.example/x", "a.example/never", "(events)/signup"} {
		_, target, _, err := w.Admin.AddWebhook(t.Context(), "blog", "", page, "https://hook.example/", false)
		require.NoError(t, err)
		require.Contains(t, page, target)
	}
	w.add("http://127.0.0.1/")
	left := func() (uris []string) {
		return desk.Column[string](t, w.Desk, `SELECT uri FROM webhooks ORDER BY uri`)
	}
	require.NoError(t, w.Admin.DeletePage(t.Context(), "blog", "a.example/x"))
	assert.Equal(t, []string{"(events)/signup", "a.example", "a.example/never"}, left())
	require.NoError(t, w.Admin.DeleteApp(t.Context(), "blog"))
	assert.Empty(t, left())
}

// A webhook reaches no private address unless permitted, whatever host name leads to the address.
func TestPrivateAddressesAreNotCalled(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, nil)
	byName := strings.Replace(r.URL, "127.0.0.1", "localhost", 1)
	for _, url := range []string{r.URL, byName} {
		w.add(url)
	}
	w.Exec(w.t, `UPDATE webhooks SET private = false`)
	w.come(1)
	w.send(0)
	require.Eventually(t, func() bool { return strings.Count(w.logged.String(), "not a public address") == 2 }, dbtest.Patience, dbtest.Tick)
	require.Empty(t, r.ids(t))
	w.Exec(w.t, `UPDATE webhooks SET private = true, try_at = now()`)
	w.awaitAllTaken()
	require.Len(t, r.ids(t), 2)
	answers := desk.Column[[]string](t, w.Desk, `SELECT answers FROM webhooks`)[0]
	require.Len(t, answers, 2)
	assert.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: accepted \(200\)$`, answers[0], "the last first")
	assert.Regexp(t, `UTC: its host cannot be reached, or is not public$`, answers[1], "the address of a name is only in the log")
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"", "hook.example", "ftp://hook.example", "http://", "http:///x", "http://a.example:x/", "https://a.example/\n", "https://a.example/#x",
		"https://name:word@a.example/",
		"https://a.example/" + strings.Repeat("x", 2048),
	} {
		require.ErrorContains(t, webhook.CheckURL(wrong, true), "url: ", wrong)
	}
	for _, private := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"198.18.0.1", "192.0.0.1",
		"[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:1::1]",
		"[ff02::1]", "[fec0::1]",
	} {
		require.ErrorContains(t, webhook.CheckURL("http://"+private+":9000/x", false), "--private", private)
		require.NoError(t, webhook.CheckURL("http://"+private+":9000/x", true))
	}
	for _, public := range []string{"93.184.215.14", "[2606:2800:21f:cb07::1]", "hook.example", "localhost"} {
		require.NoError(t, webhook.CheckURL("https://"+public+"/x?key=1", false))
	}
}
