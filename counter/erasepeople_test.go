package counter_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
)

// linked is an instance with the app shop, where old, cookie:a and device:x lead to user:42, and moved
// to user:7. In the period before moved led to user:42, too; old is of that period alone, as are the
// persons.
type linked struct {
	*instance
	row db.App
	as  *app.App
}

func newLinked(t *testing.T) *linked {
	t.Helper()
	t.Parallel()
	l := &linked{instance: plain.newInstance(t, counter.Options{})}
	l.shop(t, app.Settings{Visitor: ptr("id"), Access: ptr("open"), Tags: []string{"age"}})
	require.NoError(t, l.db.Read(t.Context(), func(q *db.Queries) (err error) { l.row, err = q.AppGet(t.Context(), "shop"); return err }))
	var err error
	l.as, err = app.New(l.row, secret)
	require.NoError(t, err)
	l.exec(t, `INSERT INTO tags (app_id, name, value) SELECT id, 'age', '25-34' FROM apps WHERE name = 'shop';
		INSERT INTO tags (app_id, name, value) SELECT id, 'gender', 'f' FROM apps WHERE name = 'shop'`)
	l.put(t, "2 user:42 user:42 tags", "0 old user:42", "0 moved user:42", "1 user:7 user:7")
	l.exec(t, `UPDATE epochs SET value = value + 1 WHERE name = 'people'`)
	l.put(t, "0 moved user:7", "1 cookie:a user:42", "0 device:x cookie:a")
	for _, id := range []string{"user:42", "old", "device:x", "moved", "stranger"} {
		l.visits(t, id, "/")
	}
	return l
}

// put writes rows of people in the present period, each a height, an id, and to whom that leads.
func (l *linked) put(t *testing.T, rows ...string) {
	t.Helper()
	require.NoError(t, l.db.InTx(t.Context(), func(q *db.Queries) error {
		require.NoError(t, q.PeopleLock(t.Context(), l.row.ID))
		return q.PeoplePut(t.Context(), l.rows(t, rows...))
	}))
}

func (l *linked) rows(t *testing.T, rows ...string) (p db.PeoplePutParams) {
	t.Helper()
	p.AppID = l.row.ID
	for _, row := range rows {
		f := append(strings.Fields(row), "")
		p.Heights = append(p.Heights, int16(f[0][0]-'0'))
		p.Ids, p.Persons = append(p.Ids, l.ip(t, f[1])), append(p.Persons, l.ip(t, f[2]))
		p.Tags = append(p.Tags, strings.Replace(f[3], "tags", "{1,2}", 1))
	}
	return p
}

func (l *linked) ip(t *testing.T, id string) netip.Addr {
	t.Helper()
	ip, err := l.as.VisitorByID(secret, id)
	require.NoError(t, err)
	return ip
}

func (l *linked) visits(t *testing.T, id, path string) {
	t.Helper()
	_, err := l.Visit(t.Context(), counter.Request{App: "shop", Visitor: id, URI: "http://shop.example" + path})
	require.NoError(t, err)
}

// of lists those of some ids of which anything is stored.
func (l *linked) of(t *testing.T, ids ...string) (stored []string) {
	t.Helper()
	for _, id := range ids {
		var is bool
		require.NoError(t, l.tables(t).QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM people WHERE $1 IN (id, person))
			OR EXISTS (SELECT FROM visitors WHERE ip = $1) OR EXISTS (SELECT FROM visits WHERE ip = $1)`, l.ip(t, id)).Scan(&is))
		if is {
			stored = append(stored, id)
		}
	}
	return stored
}

var all = []string{"user:42", "old", "cookie:a", "device:x", "new", "user:7", "moved", "stranger"}

// erase begins to erase a visitor.
func (l *linked) erase(id string) (erased chan error) {
	erased = make(chan error, 1)
	go func() {
		_, err := l.admin().EraseVisitor(context.Background(), "shop", id)
		erased <- err
	}()
	return erased
}

// Any id of a person shows and erases all of them, whatever period they are of, and nobody else.
func TestShowAndErasePeople(t *testing.T) {
	for _, id := range []string{"user:42", "old", "cookie:a", "device:x"} {
		t.Run(id, func(t *testing.T) {
			l := newLinked(t)
			shown, err := l.admin().ShowVisitor(t.Context(), "shop", id)
			require.NoError(t, err)
			assert.Equal(t, l.ip(t, "user:42"), shown.Person)
			assert.ElementsMatch(t, []netip.Addr{l.ip(t, "user:42"), l.ip(t, "old"), l.ip(t, "cookie:a"), l.ip(t, "device:x")}, shown.StoredAs)
			assert.Equal(t, []string{"age 25-34", "gender f"}, shown.Tags, "one that the app counts, and one that it does not")
			assert.Len(t, shown.Targets, 6, "three ids have visited a page")

			erased, err := l.admin().EraseVisitor(t.Context(), "shop", id)
			require.NoError(t, err)
			assert.Equal(t, admin.Erased{Targets: 6, IDs: 4}, erased)
			assert.Equal(t, []string{"user:7", "moved", "stranger"}, l.of(t, all...))
			l.checkTables(t)
			l.verified(t)
			erased, err = l.admin().EraseVisitor(t.Context(), "shop", id)
			require.NoError(t, err)
			assert.Zero(t, erased)

			shown, err = l.admin().ShowVisitor(t.Context(), "shop", "moved")
			require.NoError(t, err)
			assert.Equal(t, l.ip(t, "user:7"), shown.Person)
			assert.Len(t, shown.StoredAs, 2)
			assert.Empty(t, shown.Tags)
		})
	}
	t.Run("nobody's", func(t *testing.T) {
		l := newLinked(t)
		shown, err := l.admin().ShowVisitor(t.Context(), "shop", "stranger")
		require.NoError(t, err)
		assert.False(t, shown.Person.IsValid())
		assert.Len(t, shown.Targets, 2)
		erased, err := l.admin().EraseVisitor(t.Context(), "shop", "stranger")
		require.NoError(t, err)
		assert.Equal(t, admin.Erased{Targets: 2}, erased)
		assert.Equal(t, []string{"user:42", "old", "cookie:a", "device:x", "user:7", "moved"}, l.of(t, all...))
	})
}

// An id that is linked to a person who is being erased goes with them, whether that is written before
// the ids go, or is under way then.
func TestEraseBesideALink(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		l := newLinked(t)
		l.visits(t, "new", "/")
		release := l.hold(t, "shop.example")
		erased := l.erase("cookie:a")
		l.waiters(t, 1)
		l.put(t, "0 new cookie:a")
		release()
		require.NoError(t, <-erased)
		assert.Equal(t, []string{"user:7", "moved", "stranger"}, l.of(t, all...))
		l.verified(t)
	})
	t.Run("under way", func(t *testing.T) {
		l := newLinked(t)
		l.visits(t, "new", "/")
		erased := make(chan error)
		require.NoError(t, l.db.InTx(t.Context(), func(q *db.Queries) error {
			require.NoError(t, q.PeopleLock(t.Context(), l.row.ID))
			require.NoError(t, q.PeoplePut(t.Context(), l.rows(t, "0 new user:42")))
			erased = l.erase("user:42")
			l.waiters(t, 1)
			return nil
		}))
		require.NoError(t, <-erased)
		assert.Equal(t, []string{"user:7", "moved", "stranger"}, l.of(t, all...))
		l.verified(t)
	})
}

// A row that is copied into the present period while its id is erased goes, too; one that is to be
// copied after it went does not come back.
func TestEraseBesideARenewal(t *testing.T) {
	renew := func(l *linked, q *db.Queries) error {
		return q.PeopleRenew(context.Background(), db.PeopleRenewParams{AppIds: []int32{l.row.ID, l.row.ID}, Ids: []netip.Addr{l.ip(t, "old"), l.ip(t, "user:42")}})
	}
	t.Run("before", func(t *testing.T) {
		l := newLinked(t)
		erased := make(chan error)
		require.NoError(t, l.db.InTx(t.Context(), func(q *db.Queries) error {
			require.NoError(t, renew(l, q))
			erased = l.erase("device:x")
			l.waiters(t, 1)
			return nil
		}))
		require.NoError(t, <-erased)
		assert.Equal(t, []string{"user:7", "moved", "stranger"}, l.of(t, all...))
	})
	t.Run("after", func(t *testing.T) {
		l := newLinked(t)
		tx, err := l.tables(t).Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `SELECT FROM people WHERE period = people_period() AND id = $1 FOR KEY SHARE`, l.ip(t, "device:x"))
		require.NoError(t, err)
		erased, renewed := l.erase("user:42"), make(chan error, 1)
		l.waiters(t, 1) // with the rows of the period before deleted
		go func() { renewed <- l.db.InTx(context.Background(), func(q *db.Queries) error { return renew(l, q) }) }()
		l.waiters(t, 2)
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, <-erased)
		require.NoError(t, <-renewed)
		assert.Equal(t, []string{"user:7", "moved", "stranger"}, l.of(t, all...))
	})
}

// An erasure that is killed leaves the ids until all that they visited is gone: typed again, with
// any of them, it goes on.
func TestErasePeopleGoesOn(t *testing.T) {
	l := newLinked(t)
	tx, err := l.tables(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT lock_people($1)`, l.row.ID)
	require.NoError(t, err)
	erased := l.erase("cookie:a")
	l.endWaiters(t)
	require.Error(t, <-erased)
	require.NoError(t, tx.Rollback(t.Context()))
	shown, err := l.admin().ShowVisitor(t.Context(), "shop", "device:x")
	require.NoError(t, err)
	assert.Len(t, shown.StoredAs, 4)
	assert.Empty(t, shown.Targets)
	l.verified(t)

	l.visits(t, "old", "/again")
	require.NoError(t, <-l.erase("device:x"))
	assert.Equal(t, []string{"user:7", "moved", "stranger"}, l.of(t, all...))
	l.verified(t)
}

// Somebody waits to write an app's people while the last ones are erased: then these are its first,
// and instances hear of it.
func TestFirstPeopleAfterTheLast(t *testing.T) {
	l := newLinked(t)
	const epoch = `SELECT value FROM epochs WHERE name = 'erasures'`
	tx, err := l.tables(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT lock_people($1)`, l.row.ID)
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() {
		written <- l.db.InTx(context.Background(), func(q *db.Queries) error { return q.PeopleLock(context.Background(), l.row.ID) })
	}()
	l.waiters(t, 1)
	_, err = tx.Exec(t.Context(), `DELETE FROM people`)
	require.NoError(t, err)
	var erased int64
	require.NoError(t, tx.QueryRow(t.Context(), epoch).Scan(&erased))
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-written)
	assert.Greater(t, l.one(t, epoch), erased)
}

// An app takes its people with it, also those who are written, or copied, at that moment; and none
// comes after it.
func TestDeleteAppWithPeople(t *testing.T) {
	l := newLinked(t)
	erased := make(chan error, 1)
	require.NoError(t, l.db.InTx(t.Context(), func(q *db.Queries) error {
		require.NoError(t, q.PeopleLock(t.Context(), l.row.ID))
		require.NoError(t, q.PeoplePut(t.Context(), l.rows(t, "0 new user:42")))
		go func() { erased <- l.admin().DeleteApp(context.Background(), "shop") }()
		l.waiters(t, 1)
		return nil
	}))
	require.NoError(t, <-erased)
	l.put(t, "0 later later")
	assert.Zero(t, l.one(t, `SELECT count(*) FROM people`))
	l.verified(t)
}
