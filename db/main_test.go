package db_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// today is the day of most batches here. fixture makes its partition.
const today = 20190629

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), sql, args...).Scan(&value), sql)
	return value
}

// fixture returns a migrated database with one app, targets 1 (a site), 2 and 3 (its pages), each with counters, and
// a partition for today.
func fixture(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	url = dbtest.New(t)
	conn = dbtest.Connect(t, url)
	makeTargets(t, conn)
	return url, conn
}

func makeTargets(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `
		INSERT INTO apps (name) VALUES ('shop');
		INSERT INTO pages (app_id, uri) VALUES (1, 'example.com');
		INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'example.com/a'), (1, 1, 'example.com/b');
		INSERT INTO counters (page_id) VALUES (1), (2), (3)`)
	require.True(t, query[bool](t, conn, `SELECT make_visits_day($1)`, today))
}

var lastBatch atomic.Uint64

// batchID returns an id that no other batch of these tests has.
func batchID() (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], lastBatch.Add(1))
	return id
}

// visitBatch returns a batch of one visit to each of the targets, by one visitor.
func visitBatch(ip string, targets ...int64) *db.Batch {
	b := &db.Batch{ID: batchID()}
	for _, target := range targets {
		b.Targets.IDs = append(b.Targets.IDs, target)
		b.Targets.Hot = append(b.Targets.Hot, 1)
		b.Targets.Newcomers = append(b.Targets.Newcomers, 0)
		b.Pairs.Targets = append(b.Pairs.Targets, target)
		b.Pairs.Visitors = append(b.Pairs.Visitors, netip.MustParseAddr(ip))
		b.Pairs.Hinted = append(b.Pairs.Hinted, false)
	}
	return onDay(b, today)
}

// onDay sets the day of a batch. It also sets the sites of the batch's targets as in fixture.
func onDay(b *db.Batch, day int32) *db.Batch {
	b.Targets.Sites, b.Targets.Days, b.Pairs.Days = nil, nil, nil
	for _, target := range b.Targets.IDs {
		b.Targets.Sites = append(b.Targets.Sites, map[int64]int64{2: 1, 3: 1}[target])
		b.Targets.Days = append(b.Targets.Days, day)
	}
	b.Pairs.TagSets = make([]string, len(b.Pairs.Targets))
	for range b.Pairs.Targets {
		b.Pairs.Days = append(b.Pairs.Days, day)
	}
	return b
}

// begin starts a transaction on a new connection, executes the statement in it, and leaves it open.
func begin(t *testing.T, url, sql string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := dbtest.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	return tx
}

// async runs f concurrently. The test does not end before f has returned.
func async[T any](t *testing.T, f func() T) <-chan T {
	t.Helper()
	result := make(chan T, 1)
	done := make(chan struct{})
	go func() { defer close(done); result <- f() }()
	t.Cleanup(func() { <-done })
	return result
}

// receive waits for a value that is due at once, with a time limit for very slow machines.
func receive[T any](t *testing.T, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(time.Minute):
		require.Fail(t, "never came: "+what)
	}
	return value
}

// eventually waits for a condition that only the database shows.
func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, dbtest.Patience, dbtest.Tick, "waited in vain for "+what)
}

// interning requests pages of app 1 without a limit.
func interning(pages, sites []string) db.Interning {
	return db.Interning{App: 1, Settings: db.CountingSettings{Tz: "UTC", Visitor: "address", Ipv6Prefix: 64}, Pages: pages, Sites: sites}
}
