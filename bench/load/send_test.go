package load

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What comes behind a slow answer has waited from when it was due.
func TestClients(t *testing.T) {
	t.Parallel()
	const slow = 50 * time.Millisecond
	var came atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if assert.Equal(t, fmt.Sprintf("/%d", came.Load()), r.URL.Path); came.Add(1) == 1 {
			<-time.After(slow)
		}
		if r.URL.Path == "/7" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, "an answer with a body")
	}))
	defer server.Close()
	s := Clients{URL: server.URL, Requests: 7, PerSecond: 1000, Connections: 1, Request: func(n int) []byte {
		return fmt.Appendf(nil, "GET /%d HTTP/1.1\r\nHost: here\r\n\r\n", n)
	}}
	require.NoError(t, s.Send(t.Context()))
	assert.Len(t, s.Waits, 7)
	for n, wait := range s.Waits {
		assert.GreaterOrEqual(t, wait, slow-time.Duration(n)*time.Millisecond, n)
	}
	came.Store(0)
	s.Requests = 8
	require.EqualError(t, s.Send(t.Context()), "visit 7 was answered 503")
	server.Close()
	require.ErrorContains(t, s.Send(t.Context()), "connection refused")
}
