package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/db/embedded"
)

// TestClientsByTheTable runs clients that follow the table in docs/ways-in.md ("What became of a visit") while service and
// database are killed: each of their visits is counted exactly once. A client that sends neither ids nor keys does not repeat
// visits with an unknown outcome. It must not lose any other visit.
func TestClientsByTheTable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), crashPatience)
	defer cancel()
	c := &crash{t: t, ctx: ctx, data: usedData(t), killed: kills{}}
	c.start()
	over := make(chan struct{})
	var clients sync.WaitGroup
	all := map[string]*tableClient{}
	for n, name := range []string{"visits with ids", "visits", "calls with ids", "calls with keys", "calls with keys, sums", "calls"} {
		for twin := range dbtest.LongOrShort(3, 2) {
			client := &tableClient{crash: c, site: fmt.Sprintf("table%d-%d.example", n, twin), ids: strings.Contains(name, "ids"),
				keys: strings.Contains(name, "keys"),
				sums: strings.Contains(name, "sums"), many: 1}
			if strings.HasPrefix(name, "calls") {
				client.many = 300
			}
			all[fmt.Sprint(name, " ", twin)] = client
			clients.Go(func() { client.run(over) })
		}
	}
	progress := func() (least int64) {
		least = 1 << 60
		for _, client := range all {
			least = min(least, client.sent.Load())
		}
		return least
	}
	kills := dbtest.LongOrShort(12, 3)
	services, postmasters := 0, 0
	for n := range kills {
		before, began := c.service.cmd.Process.Pid, c.serverBegan()
		for from := progress(); progress() < from+3 && aMoment(ctx); {
		}
		c.kill(n)
		if c.service.cmd.Process.Pid != before {
			services++
		}
		if n%3 != 0 {
			eventually(t, "PostgreSQL was killed, and is back", func() bool { return c.serverBegan() != began && c.serverBegan() != "" })
			postmasters++
		}
	}
	for from := progress(); progress() < from+3 && aMoment(ctx); {
	}
	close(over)
	clients.Wait()
	require.NoError(t, ctx.Err(), "it took too long")
	assert.Equal(t, kills/3, services, "the service was killed")
	assert.Equal(t, kills-kills/3, postmasters, "so was PostgreSQL")

	var visits, again, unknown, repeated, lost, doubled int64
	for name, client := range all {
		_, body := get(c.service.url + "/counts?app=demo&uri=http://" + client.site + "/")
		var now struct{ Site struct{ Hot int64 } }
		require.NoError(t, json.Unmarshal([]byte(body), &now), body)
		assert.Positive(t, client.counted, name)
		if client.ids || client.keys {
			assert.Zero(t, client.unknown, name)
		}
		visits, again, unknown, repeated = visits+client.counted, again+client.again, unknown+client.unknown, repeated+client.repeated
		lost += max(0, client.counted-now.Site.Hot)
		doubled += max(0, now.Site.Hot-client.counted-client.unknown)
	}
	t.Logf("%d visits counted, %d repeated, sent again %d times, %d without id or key have an unknown outcome; %d kills of the service, "+
		"%d of PostgreSQL: %d lost, %d doubled",
		visits, repeated, again, unknown, services, postmasters, lost, doubled)
	assert.Positive(t, again, "the kills were felt")
	assert.Zero(t, lost)
	assert.Zero(t, doubled)
	assert.Contains(t, well(t, "verify", "--data", c.data), "0 violations")
	assert.Zero(t, c.service.stop())
}

// serverBegan returns when PostgreSQL started to accept connections. The time also changes after a crash of one of its
// processes. It is "" if PostgreSQL does not respond.
func (c *crash) serverBegan() (began string) {
	url, running, err := embedded.Attach(c.data)
	if err != nil || !running {
		return ""
	}
	conn, err := pgx.Connect(c.ctx, url)
	if err != nil {
		return ""
	}
	defer conn.Close(c.ctx)
	_ = conn.QueryRow(c.ctx, "SELECT pid || ' ' || backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'").Scan(&began)
	return began
}

// tableClient sends visits to its own site.
type tableClient struct {
	*crash
	site             string
	ids, keys, sums  bool
	many             int // visits per call; 1: /visit
	sent             atomic.Int64
	counted, unknown int64
	again, repeated  int64
}

// fate is the outcome of a visit, in the words of the table.
type fate int

const (
	isCounted fate = iota
	isNotCounted
	isNotKnown
)

func (c *tableClient) run(over chan struct{}) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: patience}
	defer client.CloseIdleConnections()
	for n := 0; c.ctx.Err() == nil; n++ {
		left := make([]string, c.many)
		for i := range left {
			id := ""
			if c.ids {
				id = fmt.Sprintf(`,"id":"%s %d %d"`, c.site, n, i)
			}
			left[i] = fmt.Sprintf(`{"uri":"http://%s/%d","ip":"10.0.0.%d"%s}`, c.site, i%3, (n+i)%250, id)
		}
		for len(left) > 0 && c.ctx.Err() == nil {
			fates := c.send(client, n, left)
			var rest []string
			for i, is := range fates {
				switch {
				case is == isCounted:
					c.counted++
				case is == isNotCounted || c.ids || c.keys:
					rest = append(rest, left[i])
				default:
					c.unknown++
				}
			}
			if c.keys && len(rest) > 0 { // the whole call, unchanged
				c.counted -= int64(len(left) - len(rest))
				rest = left
			}
			if left = rest; len(left) > 0 {
				c.again++
				aMoment(c.ctx) // it is down
			}
		}
		c.sent.Add(1)
		select {
		case <-over:
			return
		default:
		}
	}
}

// send sends visits in one request, and returns the outcome of each by the table.
func (c *tableClient) send(client *http.Client, n int, visits []string) []fate {
	path, body := "/visits?app=demo", "["+strings.Join(visits, ",")+"]"
	switch {
	case c.many == 1:
		path, body = "/visit", `{"app":"demo",`+visits[0][1:]
	case c.sums:
		path += "&answers=none"
	}
	fates := make([]fate, len(visits))
	all := func(is fate) []fate {
		for i := range fates {
			fates[i] = is
		}
		return fates
	}
	request, err := http.NewRequestWithContext(c.ctx, http.MethodPost, *c.url.Load()+path, strings.NewReader(body))
	if err != nil {
		return all(isNotCounted)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.keys {
		request.Header.Set("Idempotency-Key", c.site+strconv.Itoa(n))
	}
	response, err := client.Do(request)
	if dialled, ok := errors.AsType[*net.OpError](err); ok && dialled.Op == "dial" {
		return all(isNotCounted) // nothing was sent
	}
	if err != nil {
		return all(isNotKnown) // no answer
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return all(isNotKnown)
	case response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusTooManyRequests:
		return all(isNotCounted)
	case response.StatusCode == http.StatusInternalServerError:
		return all(isNotKnown)
	case !assert.Equal(c.t, http.StatusOK, response.StatusCode, string(read)):
		return all(isNotCounted)
	case c.many == 1:
		if response.Header.Get("Footfall-Repeated") != "" {
			c.repeated++
		}
		return all(isCounted)
	}
	var said struct {
		Visits []map[string]any

		Counted, Repeated, Failed, Unknown, Unreached int
	}
	if !assert.NoError(c.t, json.Unmarshal(read, &said), string(read)) {
		return all(isNotKnown)
	}
	if c.sums {
		assert.Equal(c.t, len(visits), said.Counted+said.Repeated+said.Unknown+said.Unreached, string(read))
		c.repeated += int64(said.Repeated)
		for i := said.Counted + said.Repeated; i < len(fates); i++ {
			fates[i] = isNotCounted // or its outcome is unknown: with a key, both are sent again
		}
		return fates
	}
	if !assert.Len(c.t, said.Visits, len(visits)) {
		return all(isNotKnown)
	}
	for i, one := range said.Visits {
		switch {
		case one["counted"] != nil:
		case one["repeated"] != nil:
			c.repeated++
		case one["unknown"] != nil:
			fates[i] = isNotKnown
		default:
			assert.Equal(c.t, "not counted: send again", one["error"])
			fates[i] = isNotCounted
		}
	}
	return fates
}
