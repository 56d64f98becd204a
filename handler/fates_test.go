package handler

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/handler/routing"
)

// far is another instance on the database of an edge, with a network in between.
func (e *edge) far(statementTimeout time.Duration) (*edge, *dbtest.Network) {
	e.t.Helper()
	network, through := dbtest.NewNetwork(e.t, e.URL)
	o := desk.Options{DB: db.Options{StatementTimeout: statementTimeout}}
	o.Clock = e.Clock.Now
	far := desk.On(e.t, through, o)
	return &edge{t: e.t, Desk: e.Desk, public: listen(e.t, publicHandler(Options{Cells: one(far)}), slog.New(slog.DiscardHandler))}, network
}

// sums is the response to a call with answers=none.
func (a answer) sums(t *testing.T) (s sums) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.NoError(t, json.Unmarshal([]byte(a.body), &s))
	return s
}

const (
	holdSiteA     = `SELECT FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example' FOR UPDATE OF counters`
	noNumbers     = `{"numbers":"unknown"}`
	oneOfPastDay  = `[{"uri":"http://a.example/","ip":"192.0.2.2","at":"2019-06-28T12:00:00Z"}]`
	daysOfThisOne = `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20190629 FROM apps WHERE name = 'demo'
		ON CONFLICT (app_id) DO UPDATE SET from_day = excluded.from_day`
)

// ways are the ways to send a visit of 192.0.2.2 with an id, so that it is repeatable.
var ways = map[string]func(e *edge) answer{
	"GET": func(e *edge) answer { return e.get("/visit?app=demo&ip=192.0.2.2&uri=http://a.example/&id=x") },
	"call of ids": func(e *edge) answer {
		return e.visits("app=demo", `[{"uri":"http://a.example/","ip":"192.0.2.2","id":"x"}]`, inArray...)
	},
	"call of a key": func(e *edge) answer {
		return e.visits("app=demo", `[{"uri":"http://a.example/","ip":"192.0.2.2"}]`, append([]string{"Idempotency-Key", "x"}, inArray...)...)
	},
}

// isOf checks that one visit has an outcome, by its member in a response, and its numbers; "" for any.
func isOf(t *testing.T, a answer, fate, numbers string) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, a.body)
	switch {
	case strings.HasPrefix(a.body, `{"visits"`):
		assert.True(t, strings.HasPrefix(a.body, `{"visits":[{"`+fate+`":{`), a.body)
		assert.Contains(t, a.body, numbers)
	default:
		assert.Equal(t, fate == "repeated", a.header.Get(repeatedHeader) == "id")
		assert.Contains(t, a.body, numbers)
	}
}

// The connection is lost while a visit's transaction commits: the visit is answered as counted, with unknown numbers,
// and without an error. Sent again, it is repeated, and counts once.
func TestCountedWithNumbersThatAreNotKnown(t *testing.T) {
	t.Parallel()
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			far, network := e.far(0)
			far.get("/visit?app=demo&ip=192.0.2.1&uri=http://a.example/")
			release := e.hold(holdSiteA)
			got := make(chan answer, 1)
			go func() { got <- send(far) }()
			e.blocked(1) // the server has received the whole batch, including its commit
			network.Cut()
			e.blocked(2) // the query after it waits for it
			release()
			isOf(t, <-got, "counted", noNumbers)
			for range 2 {
				isOf(t, send(far), "repeated", `"page":{"pv":2,"uv":2,"rank":2,"hot":2}`)
			}
			require.Equal(t, 2, e.hotOf())
		})
	}
}

// The database is away longer than any caller waits: it is not known whether the visit was counted, so the response
// is neither an error of the visit nor a success.
func TestNotKnownWhetherCounted(t *testing.T) {
	t.Parallel()
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			far, network := e.far(2 * time.Second)
			require.Equal(t, http.StatusOK, e.get("/visit?app=demo&ip=192.0.2.1&uri=http://a.example/").status)
			release := e.hold(holdSiteA)
			got := make(chan answer, 1)
			go func() { got <- send(far) }()
			e.blocked(1)
			network.LeadTo("postgres://nobody@127.0.0.1:1/nowhere")
			network.Cut()
			release()
			a := <-got
			require.Equal(t, http.StatusInternalServerError, a.status, a.body)
			assert.Contains(t, a.error(t), "it is unknown whether")
			if name == "GET" {
				for _, path := range []string{"/visit?app=demo&uri=http://a.example/", "/counts?app=demo&uri=http://a.example/", "/readyz"} {
					away := far.get(path)
					assert.Equal(t, http.StatusServiceUnavailable, away.status, path)
					assert.Equal(t, "1", away.header.Get("Retry-After"), path)
					assert.NotRegexp(t, `(?i)SQLSTATE|postgres|nowhere|nobody|127\.0\.0\.1|dial`, away.body)
				}
				assert.Equal(t, http.StatusOK, far.get("/livez").status)
			}
			network.LeadTo(e.URL)
			answered := func() answer { // statements are cancelled early here, as may happen on a slow machine
				for a = send(far); a.status == http.StatusServiceUnavailable; a = send(far) {
				}
				return a
			}
			require.Equal(t, http.StatusOK, answered().status, a.body)
			isOf(t, answered(), "repeated", `"page":{"pv":2,"uv":2,"rank":2,"hot":2}`)
			require.Equal(t, 2, e.hotOf())
		})
	}
}

// The database goes away in the middle of a call: visits counted before are answered, and for the others the response
// distinguishes those that may have been counted from those that were not.
func TestNotKnownInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"app=demo", "app=demo&answers=none"} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			far, network := e.far(2 * time.Second)
			require.Equal(t, http.StatusOK, e.get("/visit?app=demo&ip=192.0.2.1&uri=http://a.example/").status)
			const visits, ofB = 6000, 1000 // more than a chunk of the site b, then more than the largest chunk of a
			var items []string
			for i := range visits {
				site := "a"
				if i < ofB {
					site = "b"
				}
				items = append(items, fmt.Sprintf(`{"uri":"http://%s.example/","ip":"10.0.%d.%d"}`, site, i/250, i%250))
			}
			call := func() answer {
				return far.visits(query, "["+strings.Join(items, ",")+"]", append([]string{"Idempotency-Key", "x"}, inArray...)...)
			}
			release := e.hold(holdSiteA)
			got := make(chan answer, 1)
			go func() { got <- call() }()
			e.blocked(1)
			network.LeadTo("postgres://nobody@127.0.0.1:1/nowhere")
			network.Cut()
			release()
			a := <-got
			if !strings.Contains(query, "answers") {
				require.Equal(t, http.StatusOK, a.status, a.body)
				require.Contains(t, a.body, `{"unknown":"it is unknown whether it was counted: send them again with the same Idempotency-Key"}`)
				require.Contains(t, a.body, `{"error":"not counted: send again"}`)
				require.Less(t, strings.LastIndex(a.body, `"unknown"`), strings.Index(a.body, `"error"`))
			} else {
				s := a.sums(t)
				require.Positive(t, s.Counted)
				require.Positive(t, s.Unknown)
				require.Positive(t, s.Unreached)
				require.Empty(t, s.Errors)
				require.Equal(t, visits, s.Counted+s.Unknown+s.Unreached)
			}
			network.LeadTo(e.URL)
			left := func() bool { // some of it: statements are cancelled early here, too
				if a.status == http.StatusServiceUnavailable {
					return true
				}
				if strings.Contains(query, "answers") {
					s := a.sums(t)
					return s.Unknown+s.Unreached > 0
				}
				return strings.Contains(a.body, `"unknown"`) || strings.Contains(a.body, "send again")
			}
			for a = call(); left(); a = call() {
			}
			require.NotContains(t, a.body, `"error":`)
			require.Equal(t, 1+visits, e.hotOf())
		})
	}
}

// A visit that was counted before is answered as repeated even if its numbers cannot be read.
func TestRepeatedWithNumbersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	keyed := append([]string{"Idempotency-Key", "x"}, inArray...)
	const single = "/visit?app=demo&ip=192.0.2.2&uri=http://a.example/&id=x&at=2019-06-28T12:00:00Z"
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{RetainDays: ptr(0)})
	})
	require.Equal(t, http.StatusOK, e.get(single).status)
	isOf(t, e.visits("app=demo", oneOfPastDay, keyed...), "counted", "")
	e.Exec(t, daysOfThisOne)
	e.Exec(t, `ALTER TABLE counters RENAME TO lost_counters`)
	isOf(t, e.get(single), "repeated", noNumbers)
	isOf(t, e.visits("app=demo", oneOfPastDay, keyed...), "repeated", noNumbers)
	e.Exec(t, `ALTER TABLE lost_counters RENAME TO counters`)
	isOf(t, e.get(single), "repeated", `"hot":2`)
	isOf(t, e.visits("app=demo", oneOfPastDay, keyed...), "repeated", `"hot":2`)
}

// A repeated call reports the outcome of each visit, whatever settings changed in the meantime: the visits that it has counted
// are repeated, and no other visits.
func TestCallAgainAfterTheSettingsHaveChanged(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	headers := append([]string{"Authorization", "Bearer " + e.key("shop", app.ScopeAssert), "Idempotency-Key", "x"}, inArray...)
	set := func(s app.Settings) {
		t.Helper()
		e.administer(func(ctx context.Context, a *admin.Admin) error { return a.SetApp(ctx, "shop", s) })
	}
	set(app.Settings{RetainDays: ptr(0)})
	const body = `[{"uri":"http://new.example/","ip":"192.0.2.1"},
		{"uri":"http://example.com/","ip":"192.0.2.1"},
		{"uri":"http://example.com/","ip":"192.0.2.2","agent":"Googlebot/2.1 (+http://www.google.com/bot.html)"},
		{"uri":"http://example.com/","ip":"192.0.2.3","at":"2019-06-28T12:00:00Z"},
		{"uri":"http://example.com/","ip":"nobody"},
		{"uri":"http://new.example/","ip":"192.0.2.4","id":"sent alone"},
		{"uri":"http://example.com/","ip":"192.0.2.5"},
		{"uri":"http://new.example/","ip":"192.0.2.6"}]`
	const refused = `[{"uri":"http://new.example/","ip":"192.0.2.7"}]`
	fatesOf := func(body string, headers ...string) (all []string) {
		t.Helper()
		var said struct{ Visits []map[string]any }
		a := e.visits("app=shop", body, headers...)
		require.NoError(t, json.Unmarshal([]byte(a.body), &said), a.body)
		for _, one := range said.Visits {
			for fate, value := range one {
				if why, is := value.(string); is {
					fate = why
				}
				all = append(all, fate)
			}
		}
		return all
	}
	fates := func() []string { t.Helper(); return fatesOf(body, headers...) }
	second := append(append([]string{}, headers[:2]...), append([]string{"Idempotency-Key", "y"}, inArray...)...)
	const notHere, wrong = "uri: app shop does not count the site new.example: its operator can add it", "ip: it is not"
	is := func(got []string, want ...string) {
		t.Helper()
		require.Len(t, got, len(want))
		for i := range want {
			assert.Contains(t, got[i], want[i], i)
		}
		assert.Equal(t, 3, e.hotOf()-strings.Count(got[5], "repeated"), "each counted once")
	}
	is(fates(), notHere, "counted", "bot", "counted", wrong, notHere, "counted", notHere)
	is(fates(), notHere, "repeated", "bot", "repeated", wrong, notHere, "repeated", notHere)
	assert.Contains(t, fmt.Sprint(fatesOf(refused, second...)), notHere)

	set(app.Settings{Sites: []string{"example.com", "new.example"}, Bots: ptr("count")})
	const never = "it was not counted when this call was sent before, but would be counted now"
	is(fates(), never, "repeated", never, "repeated", wrong, never, "repeated", never)
	assert.Contains(t, fmt.Sprint(fatesOf(refused, second...)), never, "also where nothing of it was counted")

	require.Equal(t, 200, e.askWith("", http.MethodGet, "/visit?app=shop&uri=http://new.example/&ip=192.0.2.4&id=sent+alone",
		headers[:2]...).status)
	e.Exec(t, strings.ReplaceAll(daysOfThisOne, "demo", "shop"))
	is(fates(), never, "repeated", never, "repeated", wrong, "repeated", "repeated", never)

	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.RemoveSites(ctx, "shop", []string{"example.com"})
		return err
	})
	const notThere = "uri: app shop does not count the site example.com"
	is(fates(), never, "repeated", notThere, "repeated", wrong, "repeated", "repeated", never)
	assert.Contains(t, e.visits("app=shop", body, headers...).body, `{"repeated":`+noNumbers+`}`)
	assert.Contains(t, e.visits("app=shop&answers=none", body, headers...).body, `{"counted":0,"repeated":4,"skipped":{},"failed":4,`)
}

// A call fails before any of its visits is counted, and when it is repeated one of its days is no longer kept: the
// visits of that day are never counted, however often the call is repeated.
func TestCallAgainAfterADayHasGone(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{RetainDays: ptr(0)})
	})
	headers := append([]string{"Idempotency-Key", "x"}, inLines...)
	const body = `{"uri":"http://a.example/","ip":"192.0.2.1","at":"2019-06-14T12:00:00Z"}
		{"uri":"http://a.example/","ip":"192.0.2.2","at":"2019-06-29T12:00:00Z"}`
	e.Exec(t, `ALTER TABLE days RENAME TO lost_days`)
	require.Equal(t, http.StatusServiceUnavailable, e.visits("app=demo", body, headers...).status)
	e.Exec(t, `ALTER TABLE lost_days RENAME TO days`)
	e.Exec(t, daysOfThisOne)
	for round := range 3 {
		got := manyResults(t, e.visits("app=demo", body, headers...))
		assert.Contains(t, got[0].Error, "at: app demo no longer keeps visits of that day", round)
		assert.Equal(t, round == 0, got[1].Counted != nil, round)
		assert.Equal(t, round > 0, got[1].Repeated != nil, round)
	}
	require.Equal(t, 1, e.hotOf())
}

// readers is the number of concurrent queries.
const readers = 8

// hold executes a statement that takes locks in a transaction, until release.
func (e *edge) hold(sql string) (release func()) {
	e.t.Helper()
	conn := e.Conn(e.t)
	_, err := conn.Exec(context.Background(), "BEGIN; "+sql)
	require.NoError(e.t, err)
	return func() { _ = conn.Close(context.Background()) }
}

// blocked waits until this number of sessions wait for the held locks.
func (e *edge) blocked(sessions int) {
	e.t.Helper()
	dbtest.AwaitWaiting(e.t, e.Conn(e.t), sessions)
}

// send sends a request over a new connection, without waiting for the response.
func (e *edge) send(pathAndQuery string) *net.TCPConn {
	e.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.public, "http://"))
	require.NoError(e.t, err)
	e.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\n\r\n", pathAndQuery, desk.Browser)
	require.NoError(e.t, err)
	return conn.(*net.TCPConn)
}

// waiting returns the number of accepted visits without a response.
func (e *edge) waiting() string {
	metrics := e.do(http.MethodGet, e.admin+"/metrics", "", "").body
	_, value, _ := strings.Cut(metrics, "\nfootfall_visits_waiting ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// Callers close their connections while their visits are being counted, or their queries answered: the visits count, other
// visits in the same batch are answered, and nothing is logged.
func TestCallersWhoClose(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const visit, counts = "/visit?app=demo&uri=http://a.example/&ip=192.0.2.", "/counts?app=demo&uri=http://a.example/&ip=192.0.2."
	require.Equal(t, http.StatusOK, e.get(visit+"1").status)
	release := e.hold("LOCK TABLE counters")
	first := e.send(visit + "1")
	e.blocked(1) // the following ones share a batch
	closes, resets, stays := e.send(visit+"2"), e.send(visit+"3"), e.send(visit+"4")
	leave := []*net.TCPConn{first, closes, resets}
	for range 2 * readers {
		leave = append(leave, e.send(counts+"2"))
	}
	e.blocked(1 + readers) // the others wait for a connection for their queries
	require.Eventually(t, func() bool { return e.waiting() == "4" }, dbtest.Patience, dbtest.Tick)
	require.NoError(t, resets.SetLinger(0)) // so that Close resets the connection
	for _, gone := range leave {
		require.NoError(t, gone.Close())
	}
	release()
	answer, err := http.ReadResponse(bufio.NewReader(stays), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	assert.JSONEq(t, `{"site":{"pv":4,"uv":4,"rank":0,"hot":5},"page":{"pv":4,"uv":4,"rank":0,"hot":5}}`, e.get(counts+"9").body)
	e.close()
	assert.Empty(t, e.log.String())
}

// Two reports are running, which use all connections for reports. Other reports wait for a while, and get 503. Visits are
// counted in the meantime.
func TestMoreReportsThanConnections(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	hurried := e.options
	hurried.reportWait, hurried.Metrics = usualWait, prometheus.NewRegistry()
	e.public = listen(t, publicHandler(hurried), hurried.Log)
	const report, asked = "/api/apps/demo/uniques?uri=http://a.example/&uri=http://a.example/b", 4 * routing.ReportPlaces
	e.counting(0, "192.0.2.1", "http://a.example/")
	e.counting(0, "192.0.2.1", "http://a.example/b") // a single page would be read from its sums
	key := e.key("demo", app.ScopeRead)
	release := e.hold("LOCK TABLE erased_visits")
	answers := make(chan answer, asked)
	for range asked {
		go func() { answers <- e.ask(http.MethodGet, report, "Authorization", "Bearer "+key) }()
	}
	e.blocked(routing.ReportPlaces)
	e.counting(0, "192.0.2.2", "http://a.example/")
	refused := 0 // the first one ends the wait of the others
	for range asked {
		a := <-answers
		if a.status != http.StatusOK && a.error(t) == "too many reports are being made; try again" {
			assert.Equal(t, http.StatusServiceUnavailable, a.status)
			assert.Equal(t, "2", a.header.Get("Retry-After"))
			refused++
			release()
		}
	}
	assert.Positive(t, refused)
	assert.Equal(t, http.StatusOK, e.get(report).status)
}

// The reason for refused visits is logged once per batch, and not again for each request.
func TestRefusedVisitsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.Exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$`)
	e.Exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON footfall.visitors FOR EACH ROW EXECUTE FUNCTION refuse()`)
	assert.Equal(t, http.StatusServiceUnavailable, e.get("/visit?app=demo&ip=192.0.2.1&uri=http://a.example/").status)
	assert.Equal(t, 1, strings.Count(e.Log.String(), "no room"), e.Log)
	e.close()
	assert.NotContains(t, e.log.String(), "no room")
}
