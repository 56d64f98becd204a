package attacks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/desk"
)

// patience is the time to wait for a server that does not respond.
const patience = 4 * time.Minute

// send sends a request over a new connection: a line with method and target, lines of headers and, after an empty line, a body.
// The usual headers of clients are added unless they are given. A line -Name leaves the header Name out.
func (w *world) send(to via, request string) answer {
	w.t.Helper()
	return w.sendTo(w.public[to], request)
}

func (w *world) sendTo(base, request string) answer {
	w.t.Helper()
	method, _, _ := strings.Cut(request, " ")
	a := w.raw(base, method, wire(w.expand(request)))
	w.checkAnswer(method, a)
	return a
}

func (w *world) get(target string) answer {
	w.t.Helper()
	base, path, _ := strings.Cut(strings.TrimPrefix(target, "http://"), "/")
	return w.sendTo("http://"+base, "GET /"+path+"\nHost: "+base)
}

// wire returns a request as sent in HTTP.
func wire(request string) string {
	head, body, hasBody := strings.Cut(request, "\n\n")
	line, headers, _ := strings.Cut(head, "\n")
	headers = "\n" + headers
	usual := [][2]string{{"Host", "footfall.example"}, {"User-Agent", desk.Browser}, {"Connection", "close"}}
	if hasBody {
		usual = append(usual, [2]string{"Content-Type", "application/json"}, [2]string{"Content-Length", strconv.Itoa(len(body))})
	}
	var out strings.Builder
	out.WriteString(line + " HTTP/1.1\r\n")
	for _, header := range usual {
		if !strings.Contains(headers, "\n"+header[0]+":") && !strings.Contains(headers, "\n-"+header[0]) {
			out.WriteString(header[0] + ": " + header[1] + "\r\n")
		}
	}
	for header := range strings.SplitSeq(headers[1:], "\n") {
		if header != "" && header[0] != '-' {
			out.WriteString(header + "\r\n")
		}
	}
	out.WriteString("\r\n" + body)
	return out.String()
}

type answer struct {
	status int
	header http.Header
	body   string
}

// raw sends bytes, and reads the answer to a request of this method, or the zero answer if there is none.
func (w *world) raw(base, method, request string) (a answer) {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(w.t, err)
	defer conn.Close()
	require.NoError(w.t, conn.SetDeadline(time.Now().Add(patience)))
	var writing sync.WaitGroup
	writing.Go(func() { _, _ = io.WriteString(conn, request) }) // the server may hang up in between
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(response.Body); err == nil {
			a = answer{response.StatusCode, response.Header, string(body)}
		}
		response.Body.Close()
	}
	conn.Close()
	writing.Wait()
	return a
}

// rawToTheEnd sends bytes and returns everything that the server sends until it hangs up, which it does after its
// last answer at the latest.
func (w *world) rawToTheEnd(base, requests string) string {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(w.t, err)
	defer conn.Close()
	require.NoError(w.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, requests)
	assert.NoError(w.t, err)
	assert.NoError(w.t, conn.(*net.TCPConn).CloseWrite())
	answers, _ := io.ReadAll(conn) // fails if the server does not read the request to its end
	return string(answers)
}

// cut sends bytes, and hangs up.
func (w *world) cut(base, request string) {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(w.t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	assert.NoError(w.t, err)
}

// checkAnswer checks what every answer has in common.
func (w *world) checkAnswer(method string, a answer) {
	w.t.Helper()
	assert.NotContains(w.t, a.header, "Access-Control-Allow-Credentials")
	assert.NotEqual(w.t, "*", a.header.Get("Access-Control-Allow-Origin"))
	assert.NotRegexp(w.t, `SQLSTATE|goroutine|\.go:\d`, a.body)
	assert.NotRegexp(w.t, "footfall (app|key|serve)| --[a-z]", a.body, "HTTP clients have no command line")
	ours := strings.HasPrefix(a.header.Get("Content-Type"), "application/json")
	if !ours { // from net/http before our handler runs, from the metrics, or without a body
		return
	}
	assert.Equal(w.t, "no-store", a.header.Get("Cache-Control"))
	assert.Equal(w.t, "nosniff", a.header.Get("X-Content-Type-Options"))
	if a.status >= 400 && method != http.MethodHead {
		var said map[string]string
		assert.NoError(w.t, json.Unmarshal([]byte(a.body), &said), a.body)
		assert.Len(w.t, said, 1)
		assert.NotEmpty(w.t, said["error"])
	}
}

// inJSON returns text as a JSON string.
func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // cannot fail for a string
	return string(quoted[1 : len(quoted)-1])
}

// flooders is the number of concurrent connections, and ahead the number of requests that each sends before it waits
// for answers.
const (
	flooders = 64
	ahead    = 4
)

// flood sends requests 0 to n-1 as fast as it can, and returns the number of answers with each status.
func (w *world) flood(to via, n int, request func(i int) string) map[int]int {
	w.t.Helper()
	var next atomic.Int64
	var crowd sync.WaitGroup
	var mu sync.Mutex // guards all
	all := map[int]int{}
	for range flooders {
		crowd.Go(func() {
			got, err := floodOne(w.public[to], func() string {
				if i := int(next.Add(1)) - 1; i < n {
					return request(i)
				}
				return ""
			})
			assert.NoError(w.t, err)
			mu.Lock()
			defer mu.Unlock()
			for status, times := range got {
				all[status] += times
			}
		})
	}
	crowd.Wait()
	return all
}

// floodOne sends requests over one connection until next returns "".
func floodOne(base string, next func() string) (got map[int]int, err error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	got = map[int]int{}
	var out []byte
	for request := next(); request != ""; {
		out = out[:0]
		sent := 0
		for ; sent < ahead && request != ""; sent++ {
			out = append(out, wire(request+"\nConnection: keep-alive")...)
			request = next()
		}
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return got, err
		}
		if _, err := conn.Write(out); err != nil {
			return got, err
		}
		for range sent {
			status, err := readStatus(in)
			if err != nil {
				return got, err
			}
			got[status]++
		}
	}
	return got, nil
}

// readStatus reads an answer to its end, in a tenth of the time of http.ReadResponse, so that the server and not the
// client is busy.
func readStatus(in *bufio.Reader) (status int, err error) {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		switch {
		case status == 0:
			if status, err = strconv.Atoi(string(line[len("HTTP/1.1 "):][:3])); err != nil {
				return 0, err
			}
		case len(line) <= 2:
			_, err = in.Discard(length)
			return status, err
		default:
			if said, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				if length, err = strconv.Atoi(string(bytes.TrimSpace(said))); err != nil {
					return 0, err
				}
			}
		}
	}
}

// counted returns the numbers of an answer.
func (w *world) counted(a answer) (site, page string) {
	w.t.Helper()
	require.Equal(w.t, http.StatusOK, a.status, a.body)
	var said struct {
		Site, Page struct{ PV, UV, Rank, Hot int64 }
	}
	require.NoError(w.t, json.Unmarshal([]byte(a.body), &said))
	text := func(c struct{ PV, UV, Rank, Hot int64 }) string {
		return fmt.Sprintf("%d %d %d %d", c.PV, c.UV, c.Rank, c.Hot)
	}
	return text(said.Site), text(said.Page)
}
