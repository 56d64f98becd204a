package counter_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/visit"
)

// hold locks a site's counters in a transaction of the test, so that a batch waits until release.
func (in *instance) hold(t *testing.T, site string) (release func()) {
	t.Helper()
	tx, err := in.Tables().Begin(context.Background())
	require.NoError(t, err)
	tag, err := tx.Exec(context.Background(),
		"SELECT FROM counters WHERE page_id = (SELECT id FROM pages WHERE key = page_key($1)) FOR UPDATE", site)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
	var once sync.Once
	release = func() { once.Do(func() { _ = tx.Rollback(context.Background()) }) }
	t.Cleanup(release)
	return release
}

// waiters waits until n sessions wait for a transaction of the test, directly or after another waiting session.
func (in *instance) waiters(t *testing.T, n int) (pids []int32) {
	t.Helper()
	return dbtest.AwaitWaiting(t, in.Tables(), n)
}

// endWaiters has the server terminate the one waiting session.
func (in *instance) endWaiters(t *testing.T) {
	t.Helper()
	_, err := in.Tables().Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM unnest($1::integer[]) AS pid`, in.waiters(t, 1))
	require.NoError(t, err)
}

// together counts visits that are certain to share a batch, because a batch before it is held up. It returns the
// answer and the error of each.
func (in *instance) together(t *testing.T, requests []counter.Request) ([]visit.Answer, []error) {
	t.Helper()
	in.Count(t, "192.0.2.250", "http://a/first")
	release := in.hold(t, "a")
	var wg sync.WaitGroup
	wg.Go(func() { in.Count(t, "192.0.2.250", "http://a/first") })
	in.waiters(t, 1)
	answers, errs := make([]visit.Answer, len(requests)), make([]error, len(requests))
	for i, r := range requests {
		r.App = "demo"
		wg.Go(func() { answers[i], errs[i] = in.Visit(context.Background(), r) })
	}
	release()
	wg.Wait()
	return answers, errs
}

// start counts a visit in its own goroutine, and sends the result.
func (in *instance) start(ip, uri string) <-chan string {
	done := make(chan string, 1)
	go func() {
		a, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: ip, URI: uri})
		if err != nil {
			done <- err.Error()
			return
		}
		done <- row(a)
	}()
	return done
}

// Midnight is between two visits of one visitor in the same batch: both days count.
func TestMidnightInABatch(t *testing.T) { everyWay(t, testMidnightInABatch) }

func testMidnightInABatch(t *testing.T, w way) {
	in := w.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.1", "http://a/")
	release := in.hold(t, "a")
	first := in.start("192.0.2.1", "http://a/")
	in.waiters(t, 1)
	accepted := in.start("192.0.2.2", "http://a/")
	require.Eventually(t, func() bool { return in.accepted(t) == 2 }, dbtest.Patience, dbtest.Tick)
	in.Clock.Set(in.Clock.Now().Add(24 * time.Hour))
	next := in.start("192.0.2.2", "http://a/")
	require.Eventually(t, func() bool { return in.accepted(t) == 3 }, dbtest.Patience, dbtest.Tick)
	release()
	require.Equal(t, "1 1 1 2 | 1 1 1 2", <-first)
	require.Equal(t, "2 2 2 3 | 2 2 2 3", <-accepted)
	require.Equal(t, "3 2 2 4 | 3 2 2 4", <-next)
	in.Check(t)
}

// accepted returns the number of visits waiting for their batch, or in the batch being written.
func (in *instance) accepted(t *testing.T) int {
	t.Helper()
	return int(in.Metric(t, "footfall_visits_waiting"))
}

// The database refuses one visit of many: only that visit fails.
func TestOnlyPoisonFails(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Exec(t, "ALTER TABLE visitors ADD CONSTRAINT poison CHECK (host(ip) <> '192.0.2.66')")
	var requests []counter.Request
	for i := range 100 {
		requests = append(requests, counter.Request{IP: fmt.Sprintf("192.0.2.%d", i), URI: fmt.Sprintf("http://a/%d", i%7)})
	}
	_, errs := in.together(t, requests)
	for i, err := range errs {
		var verr *visit.Error
		if i == 66 {
			require.Error(t, err)
			require.False(t, errors.As(err, &verr), "nothing that a caller should read: %v", err)
		} else {
			require.NoError(t, err, "visit %d", i)
		}
	}
	require.Contains(t, in.Log.String(), "poison", "the log shows the operator the fault of the tables")
	in.Check(t)
}

// A transaction that is rolled back because of other transactions is sent again, and counts once.
func TestBusyIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"40001", "40P01", "55P03"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			in := both.newInstance(t, counter.Options{})
			in.Exec(t, `CREATE SEQUENCE tries;
				CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN
					IF nextval('footfall.tries') <= 3 THEN RAISE EXCEPTION 'tripped' USING ERRCODE = '`+code+`'; END IF;
					RETURN NULL;
				END $$;
				CREATE TRIGGER trip AFTER INSERT ON visits FOR EACH STATEMENT EXECUTE FUNCTION trip()`)
			require.Equal(t, "1 1 1 1 | 1 1 1 1", row(in.Count(t, "192.0.2.1", "http://a/")))
			in.warnsOfNoBatch(t)
			in.Check(t)
		})
	}
}

// Close answers every accepted visit, and refuses later visits, including chunks.
func TestCloseAnswersTheAccepted(t *testing.T) {
	t.Parallel()
	in := both.newInstance(t, counter.Options{})
	in.Count(t, "192.0.2.250", "http://a/")
	g := in.counting(t)
	chunk := chunkOf(t, g, nil, counter.Item{URI: "http://a/", IP: "192.0.2.1"})
	release := in.hold(t, "a")
	var counted atomic.Int64
	var wg sync.WaitGroup
	const clients = 300
	for i := range clients {
		wg.Go(func() {
			_, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250), URI: "http://a/"})
			var verr *visit.Error
			switch {
			case err == nil:
				counted.Add(1)
			case !errors.As(err, &verr) || verr.Kind != visit.Unavailable:
				t.Error(err)
			}
		})
	}
	in.waiters(t, 1)
	closed := make(chan struct{})
	go func() { in.Close(); close(closed) }()
	release()
	<-closed
	wg.Wait()
	_, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: "192.0.2.1", URI: "http://a/"})
	require.ErrorContains(t, err, "shutting down")
	require.ErrorContains(t, g.Recorder().RecordChunk(chunk)[0].Err, "shutting down")
	var hot int64
	require.NoError(t, in.Tables().QueryRow(context.Background(), "SELECT max(hot) FROM counters").Scan(&hot))
	require.Equal(t, counted.Load()+1, hot, "counted = answered")
	in.Check(t)
}

// cutter is a proxy in front of the database that can lose a connection at a chosen moment.
type cutter struct {
	net.Listener
	network, address string
	swallow          atomic.Bool // responses are dropped from now on
	refuse           atomic.Bool // requests are dropped, together with the connection

	mu    sync.Mutex
	conns []net.Conn
}

func newCutter(t *testing.T, to string) (*cutter, string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(to)
	require.NoError(t, err)
	c := &cutter{}
	c.network, c.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	c.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := c.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.serve(client) })
		}
	})
	t.Cleanup(func() { _ = c.Close(); c.cut(); wg.Wait() })
	host, port, err := net.SplitHostPort(c.Addr().String())
	require.NoError(t, err)
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: net.JoinHostPort(host, port), Path: "/" +
		cfg.Database}
	return c, u.String() + "?sslmode=disable"
}

func (c *cutter) serve(client net.Conn) {
	server, err := net.Dial(c.network, c.address)
	if err != nil {
		_ = client.Close()
		return
	}
	c.mu.Lock()
	c.conns = append(c.conns, client, server)
	c.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { c.pipe(client, server, &c.swallow); _ = client.Close() })
	wg.Go(func() { c.pipe(server, client, &c.refuse); _ = server.Close() })
	wg.Wait()
}

// pipe copies until either end closes, or until drop is set: then it discards the bytes it has read, and returns.
func (c *cutter) pipe(to, from net.Conn, drop *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || drop.Load() || isCancel(buf[:n]) {
			return
		}
		if _, err := io.Writer(to).Write(buf[:n]); err != nil {
			return
		}
	}
}

// isCancel recognizes the driver's request to cancel the query of its lost connection. The request is dropped as
// well: a network failure would also lose it.
func isCancel(message []byte) bool {
	return len(message) >= 8 && binary.BigEndian.Uint32(message[4:]) == 80877102
}

// cut closes every connection.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// newCutInstance returns an instance that reaches the database through a cutter. Its first visit has been counted, so
// that its connections are open.
func (w way) newCutInstance(t *testing.T) (*instance, *cutter) {
	t.Helper()
	direct := w.newInstance(t, counter.Options{})
	c, through := newCutter(t, direct.URL)
	o := desk.Options{ConnectURL: through}
	o.Filter, o.FilterMemory, o.Memory = w.filter, w.filterMemory, w.memory
	in := &instance{desk.On(t, direct.URL, o)}
	in.Count(t, "192.0.2.1", "http://a/")
	return in, c
}

// The batch does not reach the database: it is sent again, and counts once.
func TestConnectionLostBeforeTheBatch(t *testing.T) {
	t.Parallel()
	in, c := both.newCutInstance(t)
	c.refuse.Store(true)
	done := in.start("192.0.2.1", "http://a/")
	require.Eventually(t, func() bool { // until the instance has requested a connection again
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.conns) > 0
	}, dbtest.Patience, dbtest.Tick)
	c.refuse.Store(false)
	require.Equal(t, "1 1 1 2 | 1 1 1 2", <-done)
	in.Check(t)
}

// pauses records the delay in each warning, until the apps are watched again.
type pauses chan time.Duration

func (pauses) Enabled(context.Context, slog.Level) bool { return true }
func (p pauses) WithAttrs([]slog.Attr) slog.Handler     { return p }
func (p pauses) WithGroup(string) slog.Handler          { return p }
func (p pauses) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "again_in" {
			p <- a.Value.Duration()
		}
		return true
	})
	return nil
}

// An instance without a database retries with growing delays, and quickly again after a success.
func TestWatcherBacksOff(t *testing.T) {
	t.Parallel()
	direct := plain.newInstance(t, counter.Options{})
	c, through := newCutter(t, direct.URL)
	told := make(pauses, 100)
	plain.startOn(t, through, counter.Options{Options: record.Options{Log: slog.New(told)}})
	c.refuse.Store(true)
	c.swallow.Store(true)
	c.cut()
	for _, want := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		require.Equal(t, want, <-told)
	}
	watchers := func(n int) func() bool {
		return func() bool {
			var found int
			assert.NoError(t, direct.Tables().QueryRow(context.Background(), watchersOfApps).Scan(&found))
			return found == n
		}
	}
	require.Eventually(t, watchers(1), dbtest.Patience, dbtest.Tick)
	c.refuse.Store(false)
	c.swallow.Store(false)
	for again := time.Duration(0); again != 200*time.Millisecond; { // it was cut off before it had read the apps
		require.Eventually(t, watchers(2), dbtest.Patience, dbtest.Tick)
		c.cut()
		select {
		case again = <-told:
		case <-time.After(time.Second): // the watcher that was counted had been cut off before
		}
	}
}

// watchersOfApps counts the instances that hold the epoch of the apps and have read them. After that they check once
// more that the epoch is unchanged.
const watchersOfApps = `SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
	WHERE locktype = 'advisory' AND objsubid = 2 AND datname = current_database() AND state = 'idle' AND query LIKE '-- name: AppsEpoch :%'`
