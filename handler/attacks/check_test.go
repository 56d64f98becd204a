package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkTables holds the promises on totals against the tables, whatever the attacks were.
func (w *world) checkTables() {
	w.t.Helper()
	rows, err := w.conn.Query(context.Background(), `
		WITH proof AS (
			SELECT p.id, p.app_id, p.site_id, p.uri, coalesce(c.pv, 0) AS pv, coalesce(c.uv, 0) AS uv, coalesce(c.hot, 0) AS hot,
			       v.visitors + coalesce(e.visitors, 0) AS visitors, greatest(v.last_rank, e.last_rank, 0) AS last_rank,
			       d.days + coalesce(g.days, 0) AS days, d.strangers
			FROM pages p
			LEFT JOIN counters c ON c.page_id = p.id
			CROSS JOIN LATERAL (SELECT count(*) AS visitors, max(rank) AS last_rank FROM visitors v WHERE v.page_id = p.id) v
			CROSS JOIN LATERAL (SELECT count(*) AS visitors, max(rank) AS last_rank FROM erased_ranks v WHERE v.page_id = p.id) e
			CROSS JOIN LATERAL (
				SELECT count(*) AS days, count(*) FILTER (WHERE known.ip IS NULL) AS strangers
				FROM visits v LEFT JOIN visitors known ON known.page_id = v.page_id AND known.ip = v.ip WHERE v.page_id = p.id
			) d
			CROSS JOIN LATERAL (SELECT sum(v.visitors) AS days FROM erased_visits v WHERE v.page_id = p.id) g
		)
		SELECT format('%s: pv %s uv %s hot %s, but %s visitors, last rank %s, %s days, %s by nobody', uri, pv, uv, hot, visitors, last_rank, days,
			strangers)
		FROM proof WHERE uv <> visitors OR uv <> last_rank OR pv <> days OR strangers > 0
		UNION ALL
		SELECT format('%s: hot %s, its pages %s; uv %s, pages at most %s in all %s', s.uri, s.hot, sum(p.hot), s.uv, max(p.uv), sum(p.uv))
		FROM proof s JOIN proof p ON p.site_id = s.id
		GROUP BY s.id, s.uri, s.hot, s.uv, s.pv
		HAVING s.hot <> sum(p.hot) OR s.uv NOT BETWEEN max(p.uv) AND sum(p.uv) OR s.pv NOT BETWEEN max(p.pv) AND sum(p.pv)`)
	require.NoError(w.t, err)
	broken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	assert.Empty(w.t, broken)
}

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
		require.True(w.t, strings.Contains(a.body, "footfall_http_request_seconds"), "these are the metrics")
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
