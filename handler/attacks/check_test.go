package attacks

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// records are a log, once as text and once as JSON, which are written at any time.
type records struct {
	mu         sync.Mutex // guards what follows
	text, json bytes.Buffer
}

type locked struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

func (r *records) logger() *slog.Logger {
	everything := &slog.HandlerOptions{Level: slog.LevelDebug}
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(locked{&r.mu, &r.text}, everything),
		slog.NewJSONHandler(locked{&r.mu, &r.json}, everything)))
}

func (r *records) read() (text, asJSON string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String(), r.json.String()
}

// traces are what must show nowhere: addresses of clients, URIs, what was forged, keys.
var traces = []string{
	"127.0.0.1", "::1", "198.51.100", "203.0.113", "2001:db8", "example.com", ".example", "http://", "FORGED", "\x1b", "\\x1b", "\\u001b",
}

// checkSilence reads the whole log and all metrics of a world.
func (w *world) checkSilence() {
	w.t.Helper()
	text, asJSON := w.log.read()
	said := text + asJSON
	for at := range vias {
		a := w.get(w.private[at] + "/metrics")
		require.Equal(w.t, http.StatusOK, a.status)
		require.True(w.t, strings.Contains(a.body, "footfall_http_request_duration_seconds"), "these are the metrics")
		said += a.body
	}
	keys := []string{}
	for _, key := range w.words {
		if strings.HasPrefix(key, "footfall_") && len(key) > 40 {
			keys = append(keys, key, key[20:])
		}
	}
	for _, line := range strings.Split(said, "\n") {
		for _, trace := range append(keys, traces...) {
			assert.False(w.t, strings.Contains(line, trace), "%q in: %.400s", trace, line)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		assert.Regexp(w.t, `^(time=\S+ level=\S+ msg=.*)?$`, line, "a record is one line")
	}
	for _, line := range strings.Split(strings.TrimSpace(asJSON), "\n") {
		assert.True(w.t, line == "" || json.Valid([]byte(line)), line)
	}
}
