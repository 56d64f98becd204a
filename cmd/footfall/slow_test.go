package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/db/dbtest"
)

const slowPause = 50 * time.Millisecond

// Clients that send one byte at a time, and reconnect whenever they are disconnected, do not affect other clients: all other
// requests are answered, and their visits are in the tables. The slow clients are disconnected, and their incomplete requests
// do not count. A client that reads an answer slowly gets all of it, and is counted once.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	slowWriters := dbtest.LongOrShort(200, 40) // half of them send an endless header, half an endless body
	slowReaders := dbtest.LongOrShort(100, 20) // clients that read an answer slowly
	s := serve(t, withDemo(t))
	c := &slowCrowd{host: strings.TrimPrefix(s.url, "http://")}
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup // all clients finish when ctx ends
	defer all.Wait()
	defer leave()
	for n := range slowWriters {
		all.Go(func() { c.write(ctx, n) })
	}
	for n := range slowReaders {
		all.Go(func() { c.read(ctx, n) })
	}
	eventually(t, "all slow clients are there", func() bool { return int(c.there.Load()) == slowWriters+slowReaders })

	const clients, visits = 8, 25
	var others sync.WaitGroup
	for client := range clients {
		others.Go(func() {
			for n := range visits {
				status, body := get(fmt.Sprintf("%s/visit?app=demo&ip=192.0.2.%d&uri=http://quick.example/%d", s.url, client, n))
				assert.Equal(t, http.StatusOK, status, body)
			}
		})
	}
	others.Wait()
	counts := func(host string) string {
		_, body := get(fmt.Sprintf("%s/counts?app=demo&uri=http://%s/&ip=198.51.100.1", s.url, host))
		return body
	}
	assert.Contains(t, counts("quick.example"), fmt.Sprintf(`{"site":{"pv":%d,"uv":%[1]d,"rank":0,"hot":%d}`, clients, clients*visits))

	eventually(t, "every slow reader has read all of the answer", func() bool { return int(c.answered.Load()) == slowReaders })
	assert.Contains(t, counts("read.example"), fmt.Sprintf(`{"site":{"pv":%d,"uv":%[1]d,"rank":0,"hot":%[1]d}`, slowReaders))
	eventually(t, "every slow writer has been sent away", func() bool { return int(c.sentAway.Load()) >= slowWriters })
	assert.Contains(t, counts("write.example"), `{"site":{"pv":0,"uv":0,"rank":0,"hot":0}`)
	leave()
	all.Wait()
	assert.Zero(t, s.stop())
}

// slowCrowd is a number of slow clients, each with a goroutine that ends with its context.
type slowCrowd struct {
	host                      string
	there, sentAway, answered atomic.Int64
}

// connect opens a connection and sends the text begins. The connection is closed when ctx ends. connect returns nil if ctx has
// ended.
func (c *slowCrowd) connect(ctx context.Context, begins string) net.Conn {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.host)
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	_, _ = io.WriteString(conn, begins) // if this write fails, the next one fails, too
	return conn
}

// write repeatedly sends an endless request.
func (c *slowCrowd) write(ctx context.Context, n int) {
	begins := "GET /visit?app=demo&ip=192.0.2.1&uri=http://write.example/ HTTP/1.1\r\nHost: x\r\nX-Endless: "
	if n%2 == 0 {
		begins = "POST /visit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 16000\r\n\r\n" +
			`{"app":"demo","ip":"192.0.2.1","uri":"http://write.example/"`
	}
	for first := true; ; first = false {
		conn := c.connect(ctx, begins)
		if conn == nil {
			return
		}
		if first {
			c.there.Add(1)
		}
		for aMoment(ctx) {
			if _, err := conn.Write([]byte(" ")); err != nil {
				break
			}
		}
		if ctx.Err() != nil {
			return
		}
		c.sentAway.Add(1)
	}
}

// read sends one visit, and reads its answer.
func (c *slowCrowd) read(ctx context.Context, n int) {
	conn := c.connect(ctx, fmt.Sprintf("GET /visit?app=demo&ip=203.0.113.%d&uri=http://read.example/ HTTP/1.1\r\nHost: x\r\nUser-Agent: "+
		"%s\r\n\r\n", n, browser))
	if conn == nil {
		return
	}
	c.there.Add(1)
	for answer, next := "", make([]byte, 1); aMoment(ctx); answer += string(next) {
		if strings.HasSuffix(answer, "}}") {
			if strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") {
				c.answered.Add(1)
			}
			return
		}
		if _, err := conn.Read(next); err != nil {
			return
		}
	}
}

// aMoment waits between two bytes, and returns false if ctx has ended.
func aMoment(ctx context.Context) bool {
	select {
	case <-time.After(slowPause):
		return true
	case <-ctx.Done():
		return false
	}
}
