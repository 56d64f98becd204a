package db_test

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

func TestSentence(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.Empty(t))
	_, zero := conn.Exec(t.Context(), "SELECT 1/0")
	_, missing := conn.Exec(t.Context(), "SELECT * FROM visitors")
	_, ours := conn.Exec(t.Context(), "DO $$ BEGIN RAISE SQLSTATE 'FF999' USING MESSAGE = 'no'; END $$")
	plain := errors.New("it rains")
	for _, c := range []struct {
		err  error
		want string
	}{
		{plain, "it rains"},
		{zero, "the database refuses a value (division by zero)"},
		{fmt.Errorf("count: %w", missing), `count: the tables do not match this footfall (relation "visitors" does not exist): type ` +
			"`footfall migrate up`"},
		{ours, "the database returned an error (no): look at the server's log"},
		{fmt.Errorf("both: %w", errors.Join(zero, plain, fmt.Errorf("then %w", ours))),
			"both: the database refuses a value (division by zero)\nit rains\nthen the database returned an error (no): look at the server's log"},
	} {
		assert.Equal(t, c.want, db.Sentence(c.err))
	}
	assert.Equal(t, "the database refuses a value", db.Reason(zero), "not the server's message")
	assert.Equal(t, "the database does not answer", db.Reason(plain))
}

// The error of a failed step does not contain its SQL.
func TestFailedStepShowsNoSQL(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	exec(t, dbtest.Connect(t, url), "CREATE SCHEMA footfall; CREATE TABLE footfall.apps ()")
	_, err := dbtest.Open(t, url, db.Options{}).MigrateUp(t.Context())
	require.ErrorContains(t, err, `relation "apps" already exists`)
	assert.NotContains(t, err.Error(), "CREATE")
}

// RefusedForGood is true if waiting does not change the refusal. It is false if the server may still start.
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	answered := make(chan struct{})
	go func() { // returns when the listener is closed
		defer close(answered)
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 8)) // the request for TLS
			_, _ = conn.Write([]byte("N"))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { plain.Close(); <-answered })
	given := dbtest.Empty(t)
	for _, c := range []struct {
		url  string
		good bool
		says string
	}{
		{dbtest.WithParameter(t, given, "user", "nobody_of_this_name"), true, "the server refuses this user"},
		{"postgres://u@" + plain.Addr().String() + "/d?sslmode=require", true, "does not support TLS, which sslmode requires"},
		{"postgres://u@127.0.0.1:1/d", false, "no server answers at 127.0.0.1:1 (connection refused)"},
		{"postgres://u@host.invalid/d", false, "the host host.invalid cannot be resolved"},
		{"postgres:///d?host=/nowhere&port=5432", false, "no server answers at /nowhere/.s.PGSQL.5432"},
	} {
		err := dbtest.Open(t, c.url, db.Options{}).Ping(t.Context())
		assert.Equal(t, c.good, db.RefusedForGood(err), "%v", err)
		assert.Contains(t, db.Sentence(err), c.says)
		assert.NotContains(t, db.Sentence(err), "SQLSTATE")
	}
}

// During a failover the remaining servers are standbys, which have no TLS. The missing TLS is not a reason to give
// up, and the message for users does not mention it.
func TestFailoverIsNoFaultOfTLS(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, false)
	d := dbtest.Open(t, dbtest.WithParameter(t, p.URL(), "sslmode", "prefer"), db.Options{}) // the default if the URL has none
	require.NoError(t, d.Ping(t.Context()))
	p.Kill()
	var err error
	eventually(t, func() bool { err = d.Ping(t.Context()); return err != nil && db.IsConnect(err) }, "the connections to be lost")
	require.ErrorContains(t, err, "server refused TLS connection")
	assert.False(t, db.RefusedForGood(err))
	assert.Regexp(t, `no server at \S+, \S+ accepts writes: the primary is down, and no standby is promoted yet`, db.Sentence(err))
	assert.NotContains(t, db.Sentence(err), "TLS")
}
