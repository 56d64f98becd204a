package handler

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/handler/routing"
)

// readers is how many questions the database is asked at once.
const readers = 8

// hold executes a statement in a transaction, which takes locks, until release.
func (e *edge) hold(sql string) (release func()) {
	e.t.Helper()
	conn := e.Conn(e.t)
	_, err := conn.Exec(context.Background(), "BEGIN; "+sql)
	require.NoError(e.t, err)
	return func() { _ = conn.Close(context.Background()) }
}

// blocked waits until so many sessions wait for what is held.
func (e *edge) blocked(sessions int) {
	e.t.Helper()
	dbtest.AwaitWaiting(e.t, e.Conn(e.t), sessions)
}

// send sends a request over a connection of its own, and waits for no answer.
func (e *edge) send(pathAndQuery string) *net.TCPConn {
	e.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.public, "http://"))
	require.NoError(e.t, err)
	e.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\n\r\n", pathAndQuery, desk.Browser)
	require.NoError(e.t, err)
	return conn.(*net.TCPConn)
}

// waiting is how many visits are accepted and not yet answered.
func (e *edge) waiting() string {
	metrics := e.do(http.MethodGet, e.admin+"/metrics", "", "").body
	_, value, _ := strings.Cut(metrics, "\nfootfall_visits_waiting ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// Callers close their connections while their visits are being counted, or their questions
// answered: the visits count, those that share their batch are answered, and nothing is logged.
func TestCallersWhoClose(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const visit, counts = "/visit?app=demo&uri=http://a.example/&ip=192.0.2.", "/counts?app=demo&uri=http://a.example/&ip=192.0.2."
	require.Equal(t, http.StatusOK, e.get(visit+"1").status)
	release := e.hold("LOCK TABLE counters")
	first := e.send(visit + "1")
	e.blocked(1) // those that follow share a batch
	closes, resets, stays := e.send(visit+"2"), e.send(visit+"3"), e.send(visit+"4")
	leave := []*net.TCPConn{first, closes, resets}
	for range 2 * readers {
		leave = append(leave, e.send(counts+"2"))
	}
	e.blocked(1 + readers) // the others wait for a connection to ask on
	require.Eventually(t, func() bool { return e.waiting() == "4" }, dbtest.Patience, dbtest.Tick)
	require.NoError(t, resets.SetLinger(0)) // its close is a reset
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

// Two reports are being made, which is as many as there are connections for them. Others wait for a
// while, and are asked to come again; visits are counted meanwhile.
func TestMoreReportsThanConnections(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	hurried := e.options
	hurried.reportWait, hurried.Metrics = usualWait, prometheus.NewRegistry()
	e.public = listen(t, publicHandler(hurried), hurried.Log)
	const report, asked = "/api/apps/demo/uniques?uri=http://a.example/&uri=http://a.example/b", 4 * routing.ReportPlaces
	e.counting(0, "192.0.2.1", "http://a.example/")
	e.counting(0, "192.0.2.1", "http://a.example/b") // one page alone would be read from its sums
	key := e.key("demo", app.ScopeRead)
	release := e.hold("LOCK TABLE erased_visits")
	answers := make(chan answer, asked)
	for range asked {
		go func() { answers <- e.ask(http.MethodGet, report, "Authorization", "Bearer "+key) }()
	}
	e.blocked(routing.ReportPlaces)
	e.counting(0, "192.0.2.2", "http://a.example/")
	refused := 0 // the first of whom ends the wait of the others
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

// Why visits are refused is logged by who knows it, once for a batch, and not again for each request.
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
