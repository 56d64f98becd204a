// Package attacks attacks the service from outside. With -v its test lists each case: the requests, the answers and
// the stored rows.
package attacks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attack is one case: the requests, their answers and the stored rows. Either it has requests, which all get the same
// answer, or a story, a function with its own checks.
type attack struct {
	name string
	sent string

	requests []string // in the form that world.send reads
	via      via      // the listener that they go to
	status   int
	says     string // a part of the answer's error
	stores   string // the rows that each request adds, in the form of world.stored; "": none
	headers  map[string]string

	answered, stored string // descriptions, if status, says and stores are not enough
	story            func(w *world)
}

// groups are all attacks. The attacks of one group share a world, one after the other.
var groups = []struct {
	name    string
	attacks []attack
	alone   bool // it measures memory
}{
	{"floods", floodAttacks, true},
	{"keys", keyAttacks, false},
	{"reading", readingAttacks, false},
	{"addresses", addressAttacks, false},
	{"sites", siteAttacks, false},
	{"origins", originAttacks, false},
	{"uncounted", uncountedAttacks, false},
	{"limits", limitAttacks, false},
	{"requests", requestAttacks, false},
	{"rights", rightsAttacks, false},
	{"badges", badgeAttacks, false},
	{"busuanzi", busuanziAttacks, false},
	{"logs", logAttacks, false},
}

// TestAttacks is not parallel, so that nothing runs alongside the group that measures memory.
func TestAttacks(t *testing.T) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			if !g.alone {
				t.Parallel()
			}
			w := newWorld(t)
			for _, a := range g.attacks {
				t.Run(a.name, func(t *testing.T) {
					t.Log(a.inWords())
					a.make(w.of(t))
				})
			}
			w.Check(t)
			w.of(t).checkSilence()
		})
	}
}

func (a attack) make(w *world) {
	if a.story != nil {
		a.story(w)
	}
	for _, request := range a.requests {
		w.page++
		before := w.tables()
		got := w.send(a.via, request)
		told := w.expand(request)
		if len(told) > 300 {
			told = told[:300] + "…"
		}
		assert.Equal(w.t, a.status, got.status, "%s\n%s", told, got.body)
		assert.Contains(w.t, got.body, inJSON(a.says), told)
		assert.Equal(w.t, w.expand(a.stores), w.tables().since(before), told)
		for name, want := range a.headers {
			assert.Equal(w.t, w.expand(want), strings.Join(got.header[name], "|"), "%s: %s", name, told)
		}
	}
}

// inWords describes the requests, the answers and the stored rows.
func (a attack) inWords() string {
	answered := cmp.Or(a.answered, strings.TrimSpace(fmt.Sprintf("%d %s", a.status, a.says)))
	if why := a.headers[skippedHeader]; why != "" {
		answered += ", " + skippedHeader + ": " + why
	}
	stored := strings.ReplaceAll(cmp.Or(a.stored, a.stores, "nothing"), "{page}", "the page, by")
	return fmt.Sprintf("sent: %s\nanswered: %s\nstored: %s", a.sent, answered, stored)
}

// records are logs as text and as JSON, for concurrent writers.
type records struct {
	mu         sync.Mutex // guards the following fields
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

// traces may not appear in a log or metric: addresses of clients, URIs, forged texts, keys.
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
