package record

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// full makes a table refuse rows as a full disk does.
const full = `
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '53100'
	USING MESSAGE = 'could not extend file'; END $$;
	CREATE TRIGGER refuse BEFORE INSERT ON `

// An instance is ready where a batch could be written, and says in words why it is not.
func TestReadyTellsWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, setting, value, says string }{
		{name: "well"},
		{name: "full disk", sql: full + `batches FOR EACH ROW EXECUTE FUNCTION refuse()`, says: "the disk of the database is full"},
		{name: "read-only", setting: "default_transaction_read_only", value: "on",
			says: "the database takes no writes: it is a standby, or read-only"},
		{name: "right lost", sql: `REVOKE INSERT ON visits FROM footfall_app`, setting: "role", value: "footfall_app",
			says: "the role has no right to do this"},
		{name: "table lost", sql: `ALTER TABLE days RENAME TO gone`, says: "the tables are not those of this footfall"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{}).Close() // makes the partitions
			_, err := w.conn.Exec(t.Context(), c.sql)
			require.NoError(t, err)
			url := w.url
			if c.setting != "" {
				url = dbtest.With(t, url, c.setting, c.value)
			}
			err = recorder(t, dbtest.Open(t, url, db.Options{}), Options{}).Ready(t.Context())
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "visits cannot be counted now: "+c.says)
		})
	}
}

// A batch that is refused makes the instance not ready at once, and one that is written makes it
// ready again: nobody has to probe.
func TestBatchesAreThePulse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := recorder(t, dbtest.Open(t, w.url, db.Options{}), Options{})
	require.Contains(t, w.count(t, r, 1, "a.example/"), "1 1 1 1")
	r.pulse.probe = func(context.Context) error { return errors.New("nobody has to probe") }
	hour := time.Now().Add(time.Hour)
	r.pulse.now = func() time.Time { return hour } // which stands still, so that what was seen stays fresh
	require.Contains(t, w.count(t, r, 2, "a.example/"), "2 2 2 2")
	require.NoError(t, r.Ready(t.Context()))

	_, err := w.conn.Exec(t.Context(), full+`visitors FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	require.Contains(t, w.count(t, r, 3, "a.example/"), "the database cannot count now")
	require.ErrorContains(t, r.Ready(t.Context()), "the disk of the database is full")
	_, err = w.conn.Exec(t.Context(), `DROP TRIGGER refuse ON visitors`)
	require.NoError(t, err)
	require.Contains(t, w.count(t, r, 3, "a.example/"), "3 3 3 3")
	require.NoError(t, r.Ready(t.Context()))
}

// However many ask, the database is probed once in a while, by one of them.
func TestProbesAreRare(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var probes atomic.Int64
	down := errors.New("down")
	p := newPulse(nil, slog.New(slog.DiscardHandler))
	p.now = func() time.Time { return now }
	var asking sync.WaitGroup
	p.probe = func(context.Context) error { probes.Add(1); asking.Wait(); return down } // so that nobody is too late to probe, too
	ask := func(want error) {
		const callers = 20
		asking.Add(callers)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				asking.Done()
				assert.Equal(t, want, p.ready(t.Context()))
			})
		}
		all.Wait()
	}
	ask(down)
	assert.EqualValues(t, 1, probes.Load())
	now = now.Add(pulseFresh - 1)
	ask(down)
	assert.EqualValues(t, 1, probes.Load(), "what was seen of late is believed")
	p.saw(nil)
	ask(nil)
	now = now.Add(pulseFresh - 1)
	ask(nil)
	assert.EqualValues(t, 1, probes.Load(), "a batch is as good as a probe")
	now = now.Add(1)
	ask(down)
	assert.EqualValues(t, 2, probes.Load())

	left, leave := context.WithCancel(t.Context())
	leave()
	now = now.Add(pulseFresh)
	p.probe = func(ctx context.Context) error { return ctx.Err() }
	assert.NoError(t, p.ready(left), "who leaves does not make it fail for others")
}

// What waits for a synchronous standby that does not answer is named, although batches were written of
// late, and also where it is no batch that waits, but a page that is made.
func TestReadyNamesTheStandby(t *testing.T) {
	t.Parallel()
	p := dbtest.NewPair(t, true)
	addDemo(t)(dbtest.Open(t, p.URL(), db.Options{}))
	w := worldAt(t, p.URL())
	r := recorder(t, dbtest.Open(t, p.URL(), db.Options{}), Options{})
	require.Contains(t, w.count(t, r, 1, "a.example/"), "1 1 1 1")
	hour := time.Now().Add(time.Hour)
	r.pulse.now = func() time.Time { return hour } // which stands still, so that what was seen stays fresh
	r.pulse.saw(nil)
	require.NoError(t, r.Ready(t.Context()))
	p.FreezeWalSender()
	told := w.start(r, 2, "a.example/new")
	require.Eventually(t, func() bool {
		err := r.Ready(t.Context())
		return err != nil && assert.ErrorContains(t, err,
			"visits cannot be counted now: the database's commits wait for the synchronous standby, which does not answer")
	}, dbtest.Patience, dbtest.Tick)
	p.Kill()
	p.Promote()
	p.WaitFor("")
	receive(t, told)
}
