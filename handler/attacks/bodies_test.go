package attacks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bodiesBound is what bodies of calls and their texts may take, and what the texts of four packed
// ones grow out of while they are unpacked.
const bodiesBound = 64<<20 + 4*8<<20

// badBody is the beginning of a call after which nothing comes any more.
type badBody struct {
	header string
	body   []byte
	cut    bool // not sent to its end
}

func badBodies(w *world) map[string]badBody {
	zip := func(size int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(bytes.Repeat([]byte(" "), size))
		require.NoError(w.t, err)
		require.NoError(w.t, z.Close())
		return b.Bytes()
	}
	const packed = "Content-Encoding: gzip\r\n"
	bomb, large := zip(64<<20), zip(8<<20-1)
	return map[string]badBody{
		"slow":        {"Content-Length: 100000\r\n", []byte("["), true},
		"many":        {"Transfer-Encoding: chunked\r\n", []byte("400\r\n" + strings.Repeat(" ", 0x400) + "\r\n"), true},
		"huge":        {fmt.Sprintf("Content-Length: %d\r\n", 8<<20), bytes.Repeat([]byte(" "), 8<<20-1), true},
		"packed":      {packed + fmt.Sprintf("Content-Length: %d\r\n", len(bomb)), bomb, false},
		"packed, cut": {packed + fmt.Sprintf("Content-Length: %d\r\n", len(large)), large[:len(large)-1], true},
	}
}

// crowdOf is how many connections send a body, each again and again.
var crowdOf = map[string]int{"slow": 40, "many": 100, "huge": 12, "packed": 4, "packed, cut": 20}

// floodOfBodies sends bodies that are slow, huge, packed and many, beside callers whose calls must
// all be counted meanwhile.
func floodOfBodies(w *world) {
	host, bodies := strings.TrimPrefix(w.public[direct], "http://"), badBodies(w)
	const callers, calls, visits = 6, 5, 50
	call := "POST /visits?app=demo&answers=none\nContent-Type: application/json\n\n[" +
		strings.Repeat(`{"uri":"http://honest.example/","ip":"203.0.113.5"},`, visits-1) + `{"uri":"http://honest.example/","ip":"203.0.113.5"}]`
	w.send(direct, "GET /visit?app=demo&ip=203.0.113.5&uri=http://honest.example/")
	before := heap()

	over := make(chan struct{})
	var mu sync.Mutex // guards conns and answers
	var conns []net.Conn
	answers := map[string]map[int]int{}
	var there, sentAway atomic.Int64
	var crowd sync.WaitGroup
	attack := func(name string, bad badBody) {
		for first, answered := true, false; ; first = false {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			_, _ = io.WriteString(conn, "POST /visits?app=demo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+bad.header+"\r\n")
			if first {
				there.Add(1)
			}
			go func() { _, _ = conn.Write(bad.body) }() // ends with the connection
			if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				_ = response.Body.Close()
				mu.Lock()
				if answers[name] == nil {
					answers[name] = map[int]int{}
				}
				answers[name][response.StatusCode]++
				mu.Unlock()
			}
			if !answered && (name == "slow" || name == "many") {
				answered = true
				sentAway.Add(1)
			}
			_ = conn.Close()
			select {
			case <-over:
				return
			default:
			}
		}
	}
	all := 0
	for name, n := range crowdOf {
		all += n
		for range n {
			crowd.Go(func() { attack(name, bodies[name]) })
		}
	}
	assert.Eventually(w.t, func() bool { return int(there.Load()) == all }, patience, time.Millisecond)

	var honest sync.WaitGroup
	for range callers {
		honest.Go(func() {
			for range calls {
				a := w.send(direct, call)
				for again := 0; a.status == http.StatusServiceUnavailable && again < 5; again++ { // of a busy machine
					a = w.send(direct, call)
				}
				assert.Equal(w.t, http.StatusOK, a.status, a.body)
				assert.Contains(w.t, a.body, fmt.Sprintf(`"counted":%d,`, visits))
			}
		})
	}
	honest.Wait()
	grown := heap() - before
	for range 20 { // each look has what was allocated meanwhile, too: the least is nearest to what is held
		grown = min(grown, heap()-before)
	}
	w.t.Logf("heap: %+.1f MB under attack", float64(grown)/(1<<20))
	assert.Less(w.t, grown, int64(bodiesBound+heapBound))
	assert.Eventually(w.t, func() bool { return int(sentAway.Load()) == crowdOf["slow"]+crowdOf["many"] }, patience, time.Millisecond,
		"slow ones are sent away")

	close(over)
	mu.Lock()
	for _, conn := range conns {
		_ = conn.Close()
	}
	mu.Unlock()
	crowd.Wait()
	w.t.Log(answers)
	for name, got := range answers {
		for status := range got {
			assert.Contains(w.t, []int{http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable}, status, name)
		}
	}
	assert.Positive(w.t, answers["packed"][http.StatusRequestEntityTooLarge])
	assert.Equal(w.t, http.StatusOK, w.send(direct, call).status)
	slow := w.send(direct, "POST /visits?app=demo\nContent-Length: 100000\n\n[")
	assert.Equal(w.t, http.StatusRequestTimeout, slow.status, "one alone, too")
	assert.Contains(w.t, slow.body, "body: it comes too slowly: send 16 KB a second or more")
	assert.EqualValues(w.t, 1+(callers*calls+1)*visits, w.tables()["demo honest.example"].hot)
	w.checkHeap(before)
}
