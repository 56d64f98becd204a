package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/db/embedded"
	"footfall/pause"
	"footfall/visit"
)

const (
	crashClients  = 64
	crashSites    = 2
	crashPages    = 4 // of each site
	withIDs       = "site0.example"
	crashPatience = 50 * time.Minute
)

// TestCrash repeatedly kills the service and PostgreSQL under load, and compares the tables with the answers that
// clients received. FOOTFALL_CRASH_VISITS and FOOTFALL_CRASH_KILLS make it longer.
func TestCrash(t *testing.T) {
	t.Parallel()
	visits, times := dbtest.FromEnv(t, "FOOTFALL_CRASH_VISITS", dbtest.LongOrShort(3000, 1500)),
		dbtest.FromEnv(t, "FOOTFALL_CRASH_KILLS", dbtest.LongOrShort(4, 3))
	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	defer cancel()
	c := &crash{t: t, ctx: ctx, data: usedData(t), visits: int64(visits), killed: kills{}, targets: make(map[string]*told),
		statuses: make(map[int]int64)}
	c.start()

	var clients sync.WaitGroup
	for range crashClients {
		clients.Go(c.client)
	}
	clients.Go(c.caller)
	clients.Go(c.acceptor)
	for n := range times {
		c.awaitAnswers(int64(visits) * int64(n+1) / int64(times+1))
		c.kill(n)
	}
	clients.Wait()
	require.NoError(t, ctx.Err(), "it took too long")

	c.allCounted(c.service.url)
	compared := c.compare()
	assert.Positive(t, c.called)
	assert.Positive(t, c.accepted)
	assert.Contains(t, well(t, "verify", "--data", c.data), "0 violations")
	assert.Zero(t, c.service.stop())
	t.Logf("%d visits answered by %d clients, %d failed, %d in calls, %d repeated, %d accepted: %s; %s",
		c.answered.Load(), crashClients, c.failed.Load(), c.called, c.repeated, c.accepted, compared,
		c.killed.each(t, "services", "servers", "backends"))
}

// crash is the service under test and the answers to its clients.
type crash struct {
	t        *testing.T
	ctx      context.Context
	data     string
	visits   int64
	taken    atomic.Int64 // visits that a client has started
	answered atomic.Int64
	failed   atomic.Int64
	url      atomic.Pointer[string]
	service  *running // used by the test's own goroutine

	pace    time.Duration            // each client's pause between two visits, in tests with a fixed duration
	ids     bool                     // visits to the site withIDs have ids, and are sent again until they are answered
	loses   bool                     // the comparison must find lost visits
	connect func() (*pgx.Conn, bool) // to the tables

	killed           kills // used by the test's own goroutine
	called, repeated int   // visits in calls (called) and those of them that were repeated; written by caller
	accepted         int   // visits to be counted later; written by acceptor

	mu       sync.Mutex // guards the following fields
	others   []string   // URLs of other instances
	targets  map[string]*told
	statuses map[int]int64 // the number of answers with each status
}

// told is the content of the answers about one target.
type told struct {
	answered int64
	unknown  int64            // visits that were neither answered nor certainly refused: each is counted at most once
	hots     map[int64]bool   // values in answers
	ranks    map[string]int64 // by visitor
	visitors map[int64]string // by rank
	twice    []string         // numbers that occurred in two answers, which must not happen
}

func (c *crash) target(uri string) *told {
	if c.targets[uri] == nil {
		c.targets[uri] = &told{hots: map[int64]bool{}, ranks: map[string]int64{}, visitors: map[int64]string{}}
	}
	return c.targets[uri]
}

func (o *told) answer(visitor string, n visit.Counts) {
	o.answered++
	if n.Hot == 0 { // the visit was counted, but its numbers are unknown
		return
	}
	if o.hots[n.Hot] {
		o.twice = append(o.twice, fmt.Sprintf("hot %d", n.Hot))
	}
	o.hots[n.Hot] = true
	if before, ok := o.ranks[visitor]; ok && before != n.Rank {
		o.twice = append(o.twice, fmt.Sprintf("%s with ranks %d and %d", visitor, before, n.Rank))
	}
	if before, ok := o.visitors[n.Rank]; ok && before != visitor {
		o.twice = append(o.twice, fmt.Sprintf("rank %d of %s and %s", n.Rank, before, visitor))
	}
	o.ranks[visitor], o.visitors[n.Rank] = n.Rank, visitor
}

func (c *crash) start() {
	c.service, c.connect = serve(c.t, "--data", c.data), c.attach
	c.url.Store(&c.service.url)
}

// base returns the URL to send a visit to.
func (c *crash) base() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := rand.IntN(1 + len(c.others)); at > 0 {
		return c.others[at-1]
	}
	return *c.url.Load()
}

// attach connects to the service's PostgreSQL server, if that is running.
func (c *crash) attach() (conn *pgx.Conn, answers bool) {
	url, running, err := embedded.Attach(c.data)
	if err != nil || !running {
		return nil, false
	}
	conn, err = pgx.Connect(c.ctx, url)
	return conn, err == nil
}

// client sends visits until enough are taken. Failed visits are not sent again, because a browser would not do so
// either.
func (c *crash) client() {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: patience}
	defer client.CloseIdleConnections()
	for pause.For(c.ctx, c.pace) == nil && c.taken.Add(1) <= c.visits {
		site := fmt.Sprintf("site%d.example", rand.IntN(crashSites))
		page := fmt.Sprintf("%s/%d", site, rand.IntN(crashPages))
		visitor := fmt.Sprintf("10.0.%d.%d", rand.IntN(8), rand.IntN(250))
		id := ""
		if c.ids && site == withIDs {
			id = fmt.Sprintf(`,"id":"%d"`, rand.Int64())
		}
		status, answer := c.visit(client, page, visitor, id)
		for id != "" && status != http.StatusOK && c.ctx.Err() == nil {
			c.failed.Add(1)
			_ = pause.For(c.ctx, 10*time.Millisecond)
			status, answer = c.visit(client, page, visitor, id)
		}

		c.mu.Lock()
		c.statuses[status]++
		switch status {
		case http.StatusOK:
			c.target(site).answer(visitor, answer.Site)
			c.target(page).answer(visitor, answer.Page)
		case http.StatusServiceUnavailable: // not counted
		default:
			c.target(site).unknown++
			c.target(page).unknown++
		}
		c.mu.Unlock()
		if status == http.StatusOK {
			c.answered.Add(1)
			continue
		}
		c.failed.Add(1)
		c.taken.Add(-1) // c.visits is a number of answered visits
		select {
		case <-time.After(10 * time.Millisecond): // the service is down; other clients notice this, too
		case <-c.ctx.Done():
		}
	}
}

// caller sends many visits in one call, and repeats each call until all of its visits are counted. Then each visit must be
// counted once.
func (c *crash) caller() {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: patience}
	defer client.CloseIdleConnections()
	for n := 0; pause.For(c.ctx, 10*c.pace) == nil && c.taken.Load() < c.visits; n++ {
		var pages, visitors, items []string
		for range 200 {
			pages = append(pages, fmt.Sprintf("site%d.example/%d", rand.IntN(crashSites), rand.IntN(crashPages)))
			visitors = append(visitors, fmt.Sprintf("10.0.%d.%d", rand.IntN(8), rand.IntN(250)))
			items = append(items, fmt.Sprintf(`{"ip":%q,"uri":"http://%s"}`, visitors[len(visitors)-1], pages[len(pages)-1]))
		}
		for c.ctx.Err() == nil && !c.call(client, strconv.Itoa(n), pages, visitors, "["+strings.Join(items, ",")+"]") {
			select {
			case <-time.After(10 * time.Millisecond): // it is down
			case <-c.ctx.Done():
			}
		}
	}
}

// acceptor sends visits to be counted later.
func (c *crash) acceptor() {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: patience}
	defer client.CloseIdleConnections()
	for pause.For(c.ctx, c.pace) == nil && c.taken.Load() < c.visits {
		site := fmt.Sprintf("site%d.example", rand.IntN(crashSites))
		page := fmt.Sprintf("%s/%d", site, rand.IntN(crashPages))
		body := fmt.Sprintf(`{"app":"demo","ip":"10.0.%d.%d","uri":"http://%s","answer":"later"}`, rand.IntN(8), rand.IntN(250), page)
		status := 0
		if response, err := client.Post(c.base()+"/visit", "application/json", strings.NewReader(body)); err == nil {
			status = response.StatusCode
			_ = response.Body.Close()
		}
		c.mu.Lock()
		for _, uri := range []string{site, page} {
			switch status {
			case http.StatusAccepted:
				c.target(uri).answered++
			case http.StatusServiceUnavailable: // not accepted
			default:
				c.target(uri).unknown++
			}
		}
		c.mu.Unlock()
		if status == http.StatusAccepted {
			c.accepted++
			continue
		}
		select {
		case <-time.After(10 * time.Millisecond): // it is down
		case <-c.ctx.Done():
		}
	}
}

// call sends a call, and notes the answers after all of it is counted.
func (c *crash) call(client *http.Client, key string, pages, visitors []string, body string) (whole bool) {
	request, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.base()+"/visits?app=demo", strings.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var said struct {
		Visits []struct{ Counted, Repeated *visit.Answer }
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&said) != nil {
		return false
	}
	for _, one := range said.Visits {
		if one.Counted == nil && one.Repeated == nil {
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range said.Visits {
		c.called++
		site, _, _ := strings.Cut(pages[i], "/")
		if one.Repeated != nil { // the visit was counted, but its numbers include later visits
			c.repeated++
			c.target(site).answered++
			c.target(pages[i]).answered++
			continue
		}
		c.target(site).answer(visitors[i], one.Counted.Site)
		c.target(pages[i]).answer(visitors[i], one.Counted.Page)
	}
	return true
}

// visit sends one visit, once: net/http itself would resend a GET whose connection breaks. Status 0 means that there
// was no answer.
func (c *crash) visit(client *http.Client, page, visitor, id string) (int, visit.Answer) {
	body := fmt.Sprintf(`{"app":"demo","ip":%q,"uri":"http://%s"%s}`, visitor, page, id)
	response, err := client.Post(c.base()+"/visit", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, visit.Answer{}
	}
	defer response.Body.Close()
	var answer visit.Answer
	read, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode == http.StatusOK {
		err = json.Unmarshal(read, &answer)
	}
	if err != nil {
		return 0, visit.Answer{}
	}
	if response.Header.Get("Footfall-Repeated") != "" { // the visit was counted before, and its numbers include later visits
		answer = visit.Answer{}
	}
	return response.StatusCode, answer
}

// allCounted waits until a service has counted all accepted visits.
func (c *crash) allCounted(service string) {
	eventually(c.t, "all accepted visits are counted", func() bool {
		status, body := get(service + "/counts?app=demo&uri=http://site0.example/0")
		return status == http.StatusOK && !strings.Contains(body, "behind")
	})
}

func (c *crash) awaitAnswers(n int64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.answered.Load() < n {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			require.Fail(c.t, "no progress", c.service.said())
		}
	}
}

// kill kills, in turn, the service, PostgreSQL, and one of PostgreSQL's processes, which makes the others restart.
func (c *crash) kill(n int) {
	switch n % 3 {
	case 0:
		require.NoError(c.t, c.service.cmd.Process.Kill())
		<-c.service.ended
		c.killed["services"]++
		c.start()
	case 1:
		killPostgres(c.t, c.data)
		c.killed["servers"]++
	case 2:
		var pid int
		eventually(c.t, "PostgreSQL answers", func() bool {
			conn, answers := c.connect()
			if !answers {
				return false
			}
			defer conn.Close(c.ctx)
			return conn.QueryRow(c.ctx, `
				SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'footfall%' AND backend_type = 'client backend'
				ORDER BY random() LIMIT 1`).Scan(&pid) == nil
		})
		if syscall.Kill(pid, syscall.SIGKILL) == nil { // the process may have exited by itself
			c.killed["backends"]++
		}
	}
}

// compare compares the tables with the answers and returns a summary.
func (c *crash) compare() string {
	var conn *pgx.Conn
	eventually(c.t, "PostgreSQL answers", func() (answers bool) { conn, answers = c.connect(); return answers })
	defer conn.Close(c.ctx)
	rows, err := conn.Query(c.ctx, `
		SELECT uri, hot, pv, uv,
		       (SELECT count(*) FROM footfall.visitors v WHERE v.page_id = p.id),
		       (SELECT coalesce(max(rank), 0) FROM footfall.visitors v WHERE v.page_id = p.id),
		       (SELECT count(*) FROM footfall.visits v WHERE v.page_id = p.id)
		FROM footfall.pages p JOIN footfall.counters ON page_id = id
		WHERE app_id = (SELECT id FROM footfall.apps WHERE name = 'demo')`)
	require.NoError(c.t, err)
	var lost, twice, gaps int64
	seen := 0
	for rows.Next() {
		var uri string
		var hot, pv, uv, visitors, highest, days int64
		require.NoError(c.t, rows.Scan(&uri, &hot, &pv, &uv, &visitors, &highest, &days))
		seen++
		o := c.target(uri)
		lost += max(0, o.answered-hot)
		if c.loses {
			continue
		}
		twice += max(0, hot-o.answered-o.unknown)
		gaps += highest - visitors // ranks are distinct and start at 1, so this is the count of unused ranks
		assert.Empty(c.t, o.twice, uri)
		assert.Equal(c.t, uv, visitors, uri)
		assert.Equal(c.t, pv, days, uri)
		for answered := range o.hots {
			assert.LessOrEqual(c.t, answered, hot, uri)
		}
		for rank := range o.visitors {
			assert.LessOrEqual(c.t, rank, uv, uri)
		}
	}
	require.NoError(c.t, rows.Err())
	assert.Equal(c.t, crashSites*(1+crashPages), seen)
	if c.loses {
		assert.Positive(c.t, lost, "the comparison finds lost visits")
		return fmt.Sprint(lost, " lost")
	}
	c.compareRanks(conn)
	assert.Zero(c.t, lost, "answered and not in the tables")
	assert.Zero(c.t, twice, "in the tables more often than sent")
	assert.Zero(c.t, gaps)
	return fmt.Sprintf("%d lost, %d counted twice beyond unanswered ones, %d rank gaps", lost, twice, gaps)
}

// compareRanks checks that every visitor has the rank in their answers.
func (c *crash) compareRanks(conn *pgx.Conn) {
	rows, err := conn.Query(c.ctx, "SELECT uri, host(ip), rank FROM footfall.visitors JOIN footfall.pages ON id = page_id")
	require.NoError(c.t, err)
	stored := make(map[string]int64)
	for rows.Next() {
		var uri, visitor string
		var rank int64
		require.NoError(c.t, rows.Scan(&uri, &visitor, &rank))
		stored[uri+" "+visitor] = rank
	}
	require.NoError(c.t, rows.Err())
	for uri, o := range c.targets {
		for visitor, rank := range o.ranks {
			assert.Equal(c.t, rank, stored[uri+" "+visitor], "%s on %s", visitor, uri)
		}
	}
}
