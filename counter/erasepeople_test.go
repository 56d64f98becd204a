package counter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/verify"
	"footfall/visit/tag"
)

// newLinked returns an instance in which old, cookie:a and device:x lead to user:42, and moved to user:7. In the
// previous period moved led to user:42 too, and old only has a row there. All ids have visited as themselves.
func newLinked(t *testing.T) *instance {
	t.Helper()
	t.Parallel()
	in, _ := plain.newPeople(t, counter.Options{})
	for _, id := range everybody {
		in.by(t, id, page)
	}
	in.has(t, "user:42", tag.Tag{Name: "age", Value: "25-34"}, tag.Tag{Name: "plan", Value: "pro"})
	in.link(t, "old", "user:42")
	in.link(t, "moved", "user:42")
	in.turn(t)
	in.link(t, "moved", "user:7")
	in.link(t, "cookie:a", "user:42")
	in.link(t, "device:x", "cookie:a")
	return in
}

var (
	everybody = []string{"user:42", "old", "cookie:a", "device:x", "new", "user:7", "moved"}
	stayed    = []string{"user:7", "moved"}
)

// of returns those ids that occur in any table.
func (in *instance) of(t *testing.T, ids ...string) (stored []string) {
	t.Helper()
	for _, id := range ids {
		var is bool
		require.NoError(t, in.Tables().QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM people WHERE $1 IN (id, person))
			OR EXISTS (SELECT FROM visitors WHERE ip = $1) OR EXISTS (SELECT FROM visits WHERE ip = $1)`, in.stored(t, id)).Scan(&is))
		if is {
			stored = append(stored, id)
		}
	}
	return stored
}

// begin starts a call that is expected to wait.
func begin(do func() error) (done chan error) {
	done = make(chan error, 1)
	go func() { done <- do() }()
	return done
}

func (in *instance) erases(id string) (done chan error) {
	return begin(func() error { _, err := in.process().EraseVisitor(context.Background(), "demo", id); return err })
}

func (in *instance) links(id, is string) (done chan error) {
	return begin(func() error {
		p, err := in.AuthorizePuttingPeople(context.Background(), counter.Request{App: "demo"})
		if err == nil {
			_, err = p.Put(context.Background(), []app.Link{{ID: id, PersonID: is}}, nil)
		}
		return err
	})
}

func (in *instance) looksUp(id string) (done chan error) {
	return begin(func() error {
		p, err := in.AuthorizeFindingPeople(context.Background(), counter.Request{App: "demo"})
		if err == nil {
			_, err = p.Find(context.Background(), []string{id})
		}
		return err
	})
}

// holds executes a statement about an id in a transaction that stays open.
func (in *instance) holds(t *testing.T, sql, id string) pgx.Tx {
	t.Helper()
	tx, err := in.Tables().Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), sql, in.stored(t, id))
	require.NoError(t, err)
	return tx
}

// notYet keeps an id out of the present period: a transaction that writes it there has to wait.
const notYet = `INSERT INTO people (app_id, period, height, id) SELECT id, people_period(), 0, $1 FROM apps WHERE name = 'demo'`

// Any of a person's ids shows and erases the whole person, from every period, and no other person.
func TestShowAndErasePeople(t *testing.T) {
	for _, id := range []string{"user:42", "old", "device:x"} {
		t.Run(id, func(t *testing.T) {
			in := newLinked(t)
			in.Exec(t, `UPDATE apps SET tags = '{hour,age}' WHERE name = 'demo'`)
			shown, err := in.Admin.ShowVisitor(t.Context(), "demo", id)
			require.NoError(t, err)
			assert.Equal(t, in.stored(t, "user:42"), shown.Person)
			var ids []netip.Addr
			for _, id := range []string{"user:42", "old", "cookie:a", "device:x"} {
				ids = append(ids, in.stored(t, id))
			}
			assert.ElementsMatch(t, ids, shown.StoredAs)
			assert.Equal(t, []string{"age 25-34", "plan pro"}, shown.Tags, "also a tag that the app stopped counting")
			assert.Len(t, shown.Targets, 8, "four ids have visited a page")

			erased, err := in.Admin.EraseVisitor(t.Context(), "demo", id)
			require.NoError(t, err)
			assert.Equal(t, admin.ErasureResult{Targets: 8, IDs: 4}, erased)
			assert.Equal(t, append([]string{"new"}, stayed...), in.of(t, everybody...))
			in.verified(t)
			erased, err = in.Admin.EraseVisitor(t.Context(), "demo", id)
			require.NoError(t, err)
			assert.Zero(t, erased)
			assert.Equal(t, "8 8 8 8 | 8 8 8 8", in.by(t, id, page), "who comes again is new")

			shown, err = in.Admin.ShowVisitor(t.Context(), "demo", "moved")
			require.NoError(t, err)
			assert.Equal(t, in.stored(t, "user:7"), shown.Person)
			assert.Len(t, shown.StoredAs, 2)
			shown, err = in.Admin.ShowVisitor(t.Context(), "demo", "new")
			require.NoError(t, err)
			assert.False(t, shown.Person.IsValid(), "the id is not linked to a person")
			assert.Len(t, shown.Targets, 2)
			erased, err = in.Admin.EraseVisitor(t.Context(), "demo", "new")
			require.NoError(t, err)
			assert.Equal(t, admin.ErasureResult{Targets: 2}, erased)
		})
	}
}

// An id that is linked to a person during the person's erasure is erased too, whether the link is written before the
// ids are deleted or at that moment.
func TestEraseDuringALink(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		in := newLinked(t)
		release := in.hold(t, "a")
		erased := in.erases("cookie:a")
		in.waiters(t, 1)
		in.link(t, "new", "cookie:a")
		release()
		require.NoError(t, <-erased)
		assert.Equal(t, stayed, in.of(t, everybody...))
		in.verified(t)
	})
	t.Run("under way", func(t *testing.T) {
		in := newLinked(t)
		held := in.holds(t, notYet, "new")
		linked := in.links("new", "user:42")
		in.waiters(t, 1)
		erased := in.erases("user:42")
		in.waiters(t, 2)
		require.NoError(t, held.Rollback(t.Context()))
		require.NoError(t, <-linked)
		require.NoError(t, <-erased)
		assert.Equal(t, stayed, in.of(t, everybody...))
		in.verified(t)
	})
}

// Links that are written while their ids are being erased are erased, too, even if an id gets a lower height than before.
func TestEraseDuringAnErasure(t *testing.T) {
	in := newLinked(t)
	held := in.holds(t, `SELECT $1::inet, lock_people(id) FROM apps WHERE name = 'demo'`, "old")
	erased := in.erases("cookie:a")
	in.waiters(t, 1) // it has read all ids of the person
	put := func(height int, id string, person any) {
		_, err := held.Exec(t.Context(), `
			INSERT INTO people (app_id, period, height, id, person)
			SELECT id, people_period(), $1, $2, $3 FROM apps WHERE name = 'demo'`, height, in.stored(t, id), person)
		require.NoError(t, err)
	}
	_, err := held.Exec(t.Context(), `DELETE FROM people`)
	require.NoError(t, err)
	put(2, "cookie:a", nil)
	put(1, "new", in.stored(t, "cookie:a"))
	put(0, "later", in.stored(t, "new"))
	require.NoError(t, held.Commit(t.Context()))
	require.NoError(t, <-erased)
	assert.Zero(t, in.One(t, `SELECT count(*) FROM people`))
	in.verified(t)
}

// A row that is being copied into the present period while its id is erased is erased too. A row that was to be
// copied after the erasure does not return.
func TestEraseDuringARenewal(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		in := newLinked(t)
		held := in.holds(t, notYet, "old")
		found := in.looksUp("old")
		in.waiters(t, 1)
		erased := in.erases("device:x")
		in.waiters(t, 2)
		require.NoError(t, held.Rollback(t.Context()))
		require.NoError(t, <-found)
		require.NoError(t, <-erased)
		assert.NotContains(t, in.of(t, everybody...), "old")
	})
	t.Run("after", func(t *testing.T) {
		in := newLinked(t)
		held := in.holds(t, `SELECT FROM people WHERE period = people_period() AND id = $1 FOR KEY SHARE`, "device:x")
		erased := in.erases("user:42")
		in.waiters(t, 1) // it has deleted the rows of the previous period
		found := in.looksUp("old")
		in.waiters(t, 2)
		require.NoError(t, held.Rollback(t.Context()))
		require.NoError(t, <-erased)
		require.NoError(t, <-found)
		assert.NotContains(t, in.of(t, everybody...), "old")
	})
}

// A lookup that is rolled back by a deadlock is repeated, so that its caller gets the person.
func TestLookUpAfterDeadlock(t *testing.T) {
	in := newLinked(t)
	ids := []string{"old", "user:42"}
	slices.SortFunc(ids, func(a, b string) int { return in.stored(t, a).Compare(in.stored(t, b)) })
	const lock = `SELECT FROM people WHERE period <> people_period() AND id = $1 FOR UPDATE`
	held := in.holds(t, lock, ids[1])
	_, err := held.Exec(t.Context(), `SET deadlock_timeout = '10min'`) // the lookup is rolled back
	require.NoError(t, err)
	found := in.looksUp("old")
	in.waiters(t, 1)
	got, err := held.Exec(t.Context(), lock, in.stored(t, ids[0]))
	require.NoError(t, err)
	require.EqualValues(t, 1, got.RowsAffected(), "the row that the lookup had locked")
	require.NoError(t, held.Rollback(t.Context()))
	require.NoError(t, <-found)
}

// A killed erasure keeps the ids until all visits of the person are erased. If it is repeated with any of these ids, it
// continues.
func TestErasePeopleContinues(t *testing.T) {
	in := newLinked(t)
	held := in.holds(t, `SELECT $1::inet, lock_people(id) FROM apps WHERE name = 'demo'`, "old")
	erased := in.erases("cookie:a")
	in.endWaiters(t)
	require.Error(t, <-erased)
	shown, err := in.Admin.ShowVisitor(t.Context(), "demo", "device:x")
	require.NoError(t, err)
	assert.Len(t, shown.StoredAs, 4)
	assert.Empty(t, shown.Targets)
	in.verified(t)
	in.by(t, "old", page)

	require.NoError(t, held.Rollback(t.Context()))
	require.NoError(t, <-in.erases("device:x"))
	assert.Equal(t, append([]string{"new"}, stayed...), in.of(t, everybody...))
	in.verified(t)
}

// Deleting an app deletes its people, including those being written at that moment. Afterwards no people can be written for the
// app.
func TestDeleteAppWithPeople(t *testing.T) {
	in := newLinked(t)
	held := in.holds(t, notYet, "new")
	linked := in.links("new", "user:42")
	in.waiters(t, 1)
	deleted := begin(func() error { return in.Admin.DeleteApp(context.Background(), "demo") })
	in.waiters(t, 2)
	require.NoError(t, held.Rollback(t.Context()))
	require.NoError(t, <-linked)
	require.NoError(t, <-deleted)
	require.Error(t, <-in.links("later", "user:42"))
	assert.Zero(t, in.One(t, `SELECT count(*) FROM people`))
}

// A proof finds no violation while people are written, looked up, erased and renewed.
func TestVerifyWhilePeopleAreWritten(t *testing.T) {
	t.Parallel()
	a, b := plain.newPeople(t, counter.Options{})
	both := []*instance{a, b}
	disperse := dbtest.Crowd(t, 4, func(client, i int) {
		id := func() string { return fmt.Sprint("user:", rand.IntN(40)) }
		in, at := both[i%2], id()
		switch rand.IntN(20) {
		case 0:
			assert.NoError(t, <-in.erases(at))
		case 1, 2, 3:
			_, err := in.Visit(context.Background(), counter.Request{App: "demo", Visitor: at, URI: page})
			assert.NoError(t, err)
		case 4, 5, 6:
			assert.NoError(t, <-in.looksUp(at))
		default:
			assert.NoError(t, <-in.links(at, id()))
		}
	})
	for i := range dbtest.LongOrShort(10, 4) {
		if i%3 == 1 {
			a.pass(t, 1)
			require.Eventually(t, func() bool { return a.Table(t, `SELECT turn_people()`)[0] == "true\n" }, dbtest.Patience, dbtest.Tick)
		}
		proof, err := verify.Run(t.Context(), b.DB, verify.Options{Limit: 3, Within: time.Nanosecond})
		require.NoError(t, err)
		for _, p := range proof.Promises {
			require.Zero(t, p.Violations, "%s: %v", p.Name, p.Offenders)
		}
	}
	disperse()
	a.verified(t)
}

// If an app has links between ids, its visitor mode cannot change, and if the mode changes first, links are refused.
func TestAppWithPeopleKeepsItsVisitors(t *testing.T) {
	t.Parallel()
	in, _ := plain.newPeople(t, counter.Options{})
	byAddress := app.ByAddress
	set := func() error {
		return in.Admin.SetApp(context.Background(), "demo", app.Settings{Visitor: &byAddress})
	}
	held := in.holds(t, notYet, "cookie:a")
	linked := in.links("cookie:a", "user:42")
	in.waiters(t, 1)
	changed := begin(set)
	in.waiters(t, 2)
	require.NoError(t, held.Rollback(t.Context()))
	require.NoError(t, <-linked)
	require.ErrorContains(t, <-changed, "app demo has distinguished visitors by id, and that cannot change")
	require.NoError(t, <-in.erases("cookie:a"))

	held = in.holds(t, `SELECT $1::inet FROM epochs WHERE name = 'apps' FOR UPDATE`, "cookie:a")
	changed = begin(set)
	in.waiters(t, 1)
	linked = in.links("cookie:a", "user:42")
	in.waiters(t, 2)
	require.NoError(t, held.Rollback(t.Context()))
	require.NoError(t, <-changed)
	require.ErrorContains(t, <-linked, "the app has just been changed; try again")
	in.verified(t)
}

// remains lists the tables that contain any of these ids, in whichever column.
func (in *instance) remains(t *testing.T, ids []string) (tables []string) {
	t.Helper()
	var stored []string
	for _, id := range ids {
		stored = append(stored, in.stored(t, id).String())
	}
	for _, name := range in.Table(t, `SELECT tablename FROM pg_tables WHERE schemaname = 'footfall'`) {
		for _, line := range in.Table(t, `SELECT row::text FROM `+name+` AS row WHERE row::text ~ '`+strings.Join(stored, "|")+`'`) {
			tables = append(tables, name+line)
		}
	}
	return tables
}

// Persons are erased on two instances while they visit, are linked, are looked up and change periods on both. An
// erasure afterwards leaves no id in any table.
func TestErasePeopleDuringEverything(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	a.by(t, "stays", page)
	var ids []string
	for i := range 6 {
		ids = append(ids, fmt.Sprint("id:", i))
	}
	ctx := context.Background()
	for range dbtest.LongOrShort(6, 2) {
		for i, id := range ids {
			a.by(t, id, page)
			require.NoError(t, <-a.links(id, ids[max(0, i-1)]))
		}
		disperse := dbtest.Crowd(t, 6, func(client, i int) {
			in, id := []*instance{a, b}[i%2], ids[rand.IntN(len(ids))]
			var err error
			switch client {
			case 0:
				err = <-in.links(id, ids[rand.IntN(len(ids))])
			case 1:
				err = <-in.looksUp(id)
			default:
				_, err = in.Visit(ctx, counter.Request{App: "demo", Visitor: id, URI: fmt.Sprint(page, i%5), CountLater: client == 2,
					Tags: tag.Set{{Name: "plan", Value: id[3:]}}})
			}
			assert.NoError(t, err)
		})
		for i := range 4 {
			require.NoError(t, <-[]*instance{a, b}[i%2].erases(ids[i]))
			if i == 2 {
				a.pass(t, 1)
				_ = a.Table(t, `SELECT turn_people()`)
			}
		}
		disperse()
		for _, id := range ids {
			require.NoError(t, <-b.erases(id))
		}
		// For five minutes, though, `here` may contain visitors that an instance saw seconds before the erasure.
		require.Empty(t, slices.DeleteFunc(a.remains(t, ids), func(row string) bool { return strings.HasPrefix(row, "here") }))
		a.verified(t)
	}
	require.NotEmpty(t, a.remains(t, []string{"stays"}))
	a.Check(t)
	a.checkTags(t)
	b.warnsOfNoBatch(t)
	require.Empty(t, b.of(t, ids...))
}
