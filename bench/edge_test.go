package bench

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		of      []time.Duration
		percent int
		want    time.Duration
	}{
		{nil, 99, 0}, {hundred[:1], 50, 1}, {hundred[:1], 99, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred[:99], 99, 99}, {hundred[:10], 99, 10},
	} {
		assert.Equal(t, c.want, percentile(c.of, c.percent), "%d %% of %d", c.percent, len(c.of))
	}
}

// A visit that waits behind a slow answer has waited, although it was not sent yet.
func TestSteadyTimesFromWhenDue(t *testing.T) {
	t.Parallel()
	const slowest = 2 * steadyConnections // the number of the request until which the first one's answer waits
	var came atomic.Int64
	enough := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if came.Add(1) == slowest-1 { // all before but the second of the first connection, which has not been sent
			close(enough)
		}
		if r.URL.Path == "/0" {
			<-enough
		}
		_, _ = w.Write([]byte(`{"site":{"rank":3},"page":{"rank":2}}`))
	}))
	t.Cleanup(server.Close)
	s := steady{host: strings.TrimPrefix(server.URL, "http://"), perSecond: 500}
	for n := range slowest + 1 {
		path := "/1"
		if n == 0 {
			path = "/0"
		}
		s.requests = append(s.requests, []byte("GET "+path+" HTTP/1.1\r\nHost: here\r\n\r\n"))
	}
	require.NoError(t, s.send(t.Context()))
	first, second := s.after(slowest-1), s.after(slowest-1)-s.after(steadyConnections) // at the least, were the network as fast as can be
	assert.GreaterOrEqual(t, s.waits[0], first)
	assert.GreaterOrEqual(t, s.waits[steadyConnections], second)
	assert.GreaterOrEqual(t, s.lates[steadyConnections], second, "it cannot be sent before the answer")
	told, err := s.told()
	require.NoError(t, err)
	assert.Equal(t, toldRanks{site: 3, page: 2}, told[slowest])
	assert.Positive(t, s.reached(0))
}

func TestSteadyFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	s := steady{host: strings.TrimPrefix(server.URL, "http://"), perSecond: 1000, requests: [][]byte{[]byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n")}}
	require.ErrorContains(t, s.send(t.Context()), "404")
	s.bodies[0] = []byte("no")
	_, err := s.told()
	require.ErrorContains(t, err, "visit 0")
}

// A crowd comes, is sent away by a server with time-outs and comes again, and what it reads slowly is told. All of it ends.
func TestCrowd(t *testing.T) {
	t.Parallel()
	visits := atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Query().Get("app") == app && r.Header.Get("Authorization") == "Bearer k" {
			visits.Add(1)
		}
		_, _ = new(bytes.Buffer).ReadFrom(r.Body)
	}))
	server.Config.ReadHeaderTimeout, server.Config.ReadTimeout = 100*time.Millisecond, 200*time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	c := newCrowd(strings.TrimPrefix(server.URL, "http://"), "k", 20, 1)
	c.pause = time.Millisecond
	require.NoError(t, c.gather(t.Context()))
	require.NoError(t, waitUntil(t.Context(), "slow ones came again and read", func() (bool, error) {
		return c.sentAway.Load() > 40 && c.answered.Load() > 4, nil
	}))
	c.leave()
	c.leave()
	f := c.figures()
	assert.NoError(t, c.thin(CrowdFigures{Clients: 20, Held: 20, Files: 20}))
	assert.Zero(t, c.there.Load())
	assert.Zero(t, f.Refused)
	assert.Positive(t, f.Bytes)
	assert.Empty(t, f.fault(visits.Load()))
	assert.NotEmpty(t, f.fault(f.Answered-1))
	assert.NotEmpty(t, f.fault(f.Asked+1))
	assert.ErrorContains(t, c.thin(CrowdFigures{Clients: 20, Held: 20, Files: 17}), "17 files")
	assert.ErrorContains(t, c.thin(CrowdFigures{Clients: 20, Held: 17, Files: 20}), "only 17")
}

// Nobody can come where nobody listens: that is an error, and no crowd.
func TestCrowdNeedsAServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c := newCrowd(strings.TrimPrefix(server.URL, "http://"), "k", 3, 1)
	assert.ErrorIs(t, c.gather(ctx), context.DeadlineExceeded)
}

// The ratio is that of each round: what slows both down is in none.
func TestEdgeSummarizes(t *testing.T) {
	t.Parallel()
	r := EdgeReport{Runs: []EdgeRun{
		{Scene: "returning", Way: "open", Round: 1, PerSecond: 1000, P99Ms: 10, CPUMicros: 20, Visits: 5},
		{Scene: "returning", Way: "guarded", Round: 1, PerSecond: 900, P99Ms: 11, CPUMicros: 22, Visits: 5, Memory: 7},
		{Scene: "returning", Way: "guarded", Round: 2, PerSecond: 98, P99Ms: 100, CPUMicros: 21, Visits: 5, Memory: 9},
		{Scene: "returning", Way: "open", Round: 2, PerSecond: 100, P99Ms: 100, CPUMicros: 20, Visits: 5},
		{Scene: "returning", Way: "open", Round: 3, PerSecond: 1000, P99Ms: 10, CPUMicros: 20, Visits: 5},
		{Scene: "returning", Way: "guarded", Round: 3, PerSecond: 960, P99Ms: 30, CPUMicros: 20, Visits: 5, Fault: "hot is off by 1"},
	}}
	in := scene{name: "returning", ways: []way{openWay, guardedWay}, asked: []asked{
		{way: "guarded", figure: ofRate, least: 0.95}, {way: "guarded", figure: ofP99, most: 1},
	}}
	r.summarize([]scene{in})
	require.Len(t, r.Scenes, 1)
	row := r.Scenes[0].Rows[1]
	assert.Equal(t, spread{0.96, 0.9, 0.98}, row.ToPerSecond)
	assert.Equal(t, spread{900, 98, 960}, row.PerSecond)
	assert.Equal(t, spread{1.1, 1, 3}, row.ToP99)
	assert.InDelta(t, 1.05, row.ToCPU.Median, 1e-9)
	assert.EqualValues(t, 9, row.Memory)
	assert.EqualValues(t, 15, row.Visits)
	assert.Equal(t, []EdgeAsked{
		{"visits/s of guarded to that of open: at least 0.95", 0.96, true}, {"p99 of guarded to that of open: at most 1", 1.1, false},
	}, r.Scenes[0].Asked)
	require.ErrorIs(t, r.untrue(), ErrUntrue)
	assert.ErrorContains(t, r.untrue(), "round 3, returning, guarded: hot is off by 1")
	var out strings.Builder
	r.Print(&out)
	for _, want := range []string{"×0.96", "0.90..0.98", "0.960, held", "1.100, MISSED", "! round 3"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestScenesOf(t *testing.T) {
	t.Parallel()
	for parts, want := range map[string]string{"": "first returning steady saturated", "slow": "steady saturated", "slow,keys": "first returning steady saturated"} {
		chosen, err := scenesOf(strings.FieldsFunc(parts, func(r rune) bool { return r == ',' }), false)
		require.NoError(t, err)
		assert.Equal(t, want, strings.Join(namesOf(chosen, func(s scene) string { return s.name }), " "), parts)
	}
	quick, err := scenesOf(nil, true)
	require.NoError(t, err)
	assert.Len(t, quick, 2)
	_, err = scenesOf([]string{"bots"}, false)
	assert.ErrorContains(t, err, `parts: there is no "bots"`)
}

func TestWithoutSite(t *testing.T) {
	t.Parallel()
	s := faultless()
	s.sums[slowSite], s.sums[slowSite+"/page"], s.sums[slowSite+"r/page"] = sums{1, 1, 5}, sums{1, 1, 5}, sums{2, 2, 2}
	s.came(slowSite, addressOf(0), 1)
	assert.Equal(t, sums{1, 1, 5}, s.without(slowSite))
	delete(s.sums, slowSite+"r/page")
	assert.Equal(t, faultless(), s)
}

// Every way names browsers, and those with a key show it; a proxy's visits go into lines of their own.
func TestWaysHeaders(t *testing.T) {
	t.Parallel()
	for _, w := range []way{openWay, guardedWay, strangerWay, crowdedWay} {
		sets := w.headers("k")
		assert.Greater(t, len(sets), 50, w.name)
		for _, set := range sets {
			assert.Contains(t, set, "User-Agent: Mozilla/5.0 (")
			assert.NotContains(t, set, "%!")
			assert.Equal(t, w.keyed, strings.HasPrefix(set, "Authorization: Bearer k\t"), w.name)
		}
	}
	script, err := newScript()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, script.remove()) })
	require.NoError(t, script.writeLines("x", []arrival{{page: 1, visitor: 0}}, forwardedLine))
	line, err := os.ReadFile(script.visits("x") + ".1")
	require.NoError(t, err)
	assert.Equal(t, "uri=http://bench.example/page/1\t"+addressOf(0).String()+"\n", string(line))
}
