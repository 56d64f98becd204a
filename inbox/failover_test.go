package inbox_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/inbox"
	"footfall/record"
	"footfall/visit"
)

// A visit is only in the inbox of the primary, as if its commit had been cancelled while the standby was away. It has been
// read, and is being counted, when the primary dies. On the new primary another visit gets the same number. This visit counts
// once, and the lost visit is not counted in its place.
func TestInboxIsReadAgainAfterAFailover(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t, true)
	pair.Exec(`INSERT INTO footfall.apps (name) VALUES ('demo')`)
	pair.Exec(`SELECT setval('footfall.inbox_number_seq', 1000)`) // the standby does not receive the next number
	put := func(ip string) (number int64) {
		conn := dbtest.Connect(t, dbtest.WithParameter(t, pair.Primary(), "search_path", "footfall"))
		_, err := conn.Exec(t.Context(), `SELECT put_in_inbox(1, 'UTC', 'address', 64::smallint, '{a.example/}', '{1}', ARRAY[today('UTC')],
			'{0}', ARRAY[$1::inet], NULL)`, ip)
		require.NoError(t, err)
		number = dbtest.Column[int64](t, conn, `SELECT max(number) FROM inbox`)[0]
		require.NoError(t, conn.Close(t.Context()))
		return number
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, dbtest.Patience, dbtest.Tick, what)
	}

	first, second, _ := strings.Cut(pair.URL(), ",") // servers, each by its address
	user, _, _ := strings.Cut(first, "@")
	_, path, _ := strings.Cut(second, "/")
	begin, end := user+"@", "/"+path
	network, through := dbtest.NewNetwork(t, first+end)
	d := dbtest.Open(t, through, db.Options{Writers: record.Connections()})
	r, err := record.Open(t.Context(), d, record.Options{MaxWait: time.Minute})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	_, err = r.Record(record.Visit{ // it has committed on both servers, as has everything before
		App: 1, CountsBy: db.CountingSettings{Tz: "UTC", Visitor: "address", Ipv6Prefix: 64},
		Target:  visit.Target{Site: "a.example", Page: "a.example/"},
		Visitor: netip.MustParseAddr("192.0.2.9"), Day: visit.DayOf(d.Now(), time.UTC),
	})
	require.NoError(t, err)
	pair.FreezeWalSender()
	lost := put("192.0.2.1")
	i := inbox.Open(d, r, inbox.Options{})
	t.Cleanup(i.Close)
	old := dbtest.Connect(t, dbtest.WithParameter(t, pair.Primary(), "search_path", "footfall"))
	eventually("it is being counted", func() bool {
		return len(dbtest.Column[int64](t, old, `SELECT number FROM inbox FOR UPDATE SKIP LOCKED`)) == 0
	})
	network.Freeze()
	pair.Kill()
	pair.Promote()
	require.Equal(t, lost, put("192.0.2.2"))
	pair.WaitFor("")
	network.LeadTo(begin + second)
	network.Thaw()

	conn := dbtest.Connect(t, dbtest.WithParameter(t, pair.Primary(), "search_path", "footfall"))
	eventually("all that waits is counted", func() bool { return dbtest.Column[int64](t, conn, `SELECT inbox_behind(1)`)[0] == 0 })
	assert.Equal(t, []string{"192.0.2.2", "192.0.2.9"}, dbtest.Column[string](t, conn,
		`SELECT host(v.ip) FROM visitors AS v JOIN pages AS p ON p.id = v.page_id WHERE p.uri = 'a.example/' ORDER BY v.ip`))
}
