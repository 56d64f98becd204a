package counter_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/visit"
	"footfall/visit/tag"
)

// newPeople starts two instances on one database, in which visitors of demo have ids.
func (w way) newPeople(t testing.TB, o counter.Options) (a, b *instance) {
	t.Helper()
	a = w.startOn(t, desk.Database(t, desk.Options{Apps: map[string]app.Settings{
		"demo": {Access: ptr("open"), Visitor: ptr("id"), Tags: []string{"default", "age", "plan"}, RetainDays: ptr(0)},
	}}), o)
	o.Clock = a.Clock.Now
	return a, w.startOn(t, a.URL, o)
}

// by counts a visit of an id.
func (in *instance) by(t *testing.T, id, uri string) string {
	t.Helper()
	answer, err := in.Visit(context.Background(), counter.Request{App: "demo", Visitor: id, URI: uri})
	require.NoError(t, err)
	return row(answer)
}

// askBy requests the numbers of an id, in each way.
func (in *instance) askBy(t *testing.T, id, uri string) string {
	t.Helper()
	r := counter.Request{App: "demo", Visitor: id, URI: uri}
	one, err := in.Counts(t.Context(), r)
	require.NoError(t, err)
	many, _, err := in.CountsForPages(t.Context(), r, []string{uri})
	require.NoError(t, err)
	require.Equal(t, row(one), row(many[0].Answer))
	g := in.counting(t)
	v, _, err := g.Visit(t.Context(), counter.Item{Visitor: id, URI: uri})
	require.NoError(t, err)
	numbers, err := g.Numbers(t.Context(), []record.Visit{v})
	require.NoError(t, err)
	require.Equal(t, row(one), row(numbers[0]))
	return row(one)
}

// stored returns an id as written in the tables.
func (in *instance) stored(t *testing.T, id string) netip.Addr {
	t.Helper()
	of, err := in.demo(context.Background())
	require.NoError(t, err)
	visitor, err := (&app.App{App: of}).VisitorByID(desk.Secret, id)
	require.NoError(t, err)
	return visitor
}

// says links an id or sets its tags as PUT /people does, and returns the problem with it.
func (in *instance) says(t *testing.T, said app.Link) string {
	t.Helper()
	p, err := in.AuthorizePuttingPeople(t.Context(), counter.Request{App: "demo"})
	require.NoError(t, err)
	var faults []string
	again(t, func() error { faults, err = p.Put(t.Context(), []app.Link{said}, nil); return err })
	return faults[0]
}

// finds returns the person of an id, as GET /people does.
func (in *instance) finds(t *testing.T, id string) app.Person {
	t.Helper()
	p, err := in.AuthorizeFindingPeople(t.Context(), counter.Request{App: "demo"})
	require.NoError(t, err)
	var found []app.Person
	again(t, func() error { found, err = p.Find(t.Context(), []string{id}); return err })
	return found[0]
}

// link links an id to another.
func (in *instance) link(t *testing.T, id, is string) {
	t.Helper()
	require.Empty(t, in.says(t, app.Link{ID: id, PersonID: is}))
}

// has sets the tags of a person.
func (in *instance) has(t *testing.T, id string, tags ...tag.Tag) {
	t.Helper()
	require.Empty(t, in.says(t, app.Link{ID: id, Tags: append(tag.Set{}, tags...)}))
}

// pass advances the people clock by this number of periods.
func (in *instance) pass(t *testing.T, periods int) {
	t.Helper()
	in.Exec(t, fmt.Sprintf(`CREATE OR REPLACE FUNCTION people_clock() RETURNS bigint LANGUAGE sql STABLE RETURN %d`,
		in.One(t, `SELECT people_clock()`)+int64(periods)))
}

// turn starts a new period of people.
func (in *instance) turn(t *testing.T) {
	t.Helper()
	in.pass(t, 1)
	require.Eventually(t, func() bool {
		in.Exec(t, `SELECT turn_people()`) // unless an instance has done so
		return in.One(t, `SELECT people_clock() - value FROM epochs WHERE name = 'people'`) == 0
	}, dbtest.Patience, dbtest.Tick)
}

// A link written while an app is moving to another cell has to be retried, whether or not the instance knows of the move yet.
func TestPeopleWaitForAMove(t *testing.T) {
	t.Parallel()
	in, _ := plain.newPeople(t, counter.Options{})
	unavailable := func(err error) {
		told, is := errors.AsType[*visit.Error](err)
		require.True(t, is && told.Kind == visit.Unavailable, err)
	}
	before, err := in.AuthorizePuttingPeople(t.Context(), counter.Request{App: "demo"})
	require.NoError(t, err)
	in.Exec(t, `UPDATE apps SET moving_to = 'there' WHERE name = 'demo'`)
	_, err = before.Put(t.Context(), []app.Link{{ID: "cookie:a", PersonID: "user:42"}}, nil)
	unavailable(err)
	require.Eventually(t, func() bool {
		_, err = in.AuthorizePuttingPeople(t.Context(), counter.Request{App: "demo"})
		return err != nil
	}, dbtest.Patience, dbtest.Tick)
	unavailable(err)
	require.ErrorContains(t, err, "moving to the cell there")
	in.Exec(t, `UPDATE apps SET moving_to = NULL WHERE name = 'demo'`)
	_, err = before.Put(t.Context(), []app.Link{{ID: "cookie:a", PersonID: "user:42"}}, nil)
	require.NoError(t, err)
}

const page = "http://a/"

// Once it is acknowledged, a link holds at each instance, whatever the instance remembers of the id, even if it is
// the app's first link. Earlier counts do not change.
func TestLinksHoldAtOtherInstances(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	require.Equal(t, "1 1 1 1 | 1 1 1 1", b.by(t, "cookie:1", page))
	require.Equal(t, "1 1 1 2 | 1 1 1 2", b.by(t, "cookie:1", page))
	require.Equal(t, "2 2 2 3 | 2 2 2 3", a.by(t, "user:1", page))
	a.link(t, "cookie:1", "user:1")
	require.Equal(t, "2 2 2 4 | 2 2 2 4", b.by(t, "cookie:1", page), "the first link")
	require.Equal(t, "3 3 3 5 | 3 3 3 5", b.by(t, "cookie:2", page))
	require.Equal(t, "4 4 4 6 | 4 4 4 6", a.by(t, "user:2", page))
	a.link(t, "cookie:2", "user:2")
	require.Equal(t, "4 4 4 7 | 4 4 4 7", b.by(t, "cookie:2", page), "remembered as somebody else")
	a.link(t, "cookie:3", "user:3")
	require.Equal(t, "5 5 5 8 | 5 5 5 8", b.by(t, "cookie:3", page), "who never came")
	require.Equal(t, "5 5 5 9 | 5 5 5 9", a.by(t, "user:3", page))
	a.link(t, "cookie:3", "user:2")
	require.Equal(t, "5 5 4 10 | 5 5 4 10", b.by(t, "cookie:3", page), "linked to another person")
	require.Equal(t, "5 5 5 11 | 5 5 5 11", b.by(t, "user:3", page))

	a.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	require.Equal(t, "6 5 2 12 | 6 5 2 12", b.by(t, "cookie:1", page))
	require.Equal(t, "6 5 2 13 | 6 5 2 13", a.by(t, "user:1", page))
	require.Equal(t, "7 5 4 14 | 7 5 4 14", a.by(t, "cookie:2", page))
	require.Equal(t, "7 5 4 15 | 7 5 4 15", b.by(t, "cookie:3", page))
	for id, rank := range map[string]int{"cookie:1": 2, "user:1": 2, "cookie:2": 4, "cookie:3": 4, "user:2": 4, "user:3": 5} {
		require.Equal(t, fmt.Sprintf("7 5 %d 15 | 7 5 %[1]d 15", rank), b.askBy(t, id, page))
	}
	a.verified(t)
	b.warnsOfNoBatch(t)
}

// A person may become an alias of another person, again and again. The ids that lead to the first person then lead to the other
// one.
func TestPersonsBecomeAliases(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	ids := []string{"0", "1", "2", "3", "4"}
	for i, id := range ids {
		require.Equal(t, fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d | 1 1 1 1", i+1), b.by(t, id, page+id))
	}
	hot := len(ids)
	for i := range ids[1:] {
		a.link(t, ids[i], ids[i+1])
		for _, id := range ids[:i+2] {
			hot++
			require.Equal(t, fmt.Sprintf("5 5 %d %d", i+2, hot), strings.Split(b.by(t, id, page+ids[i+1]), " | ")[0])
		}
	}
	for _, id := range ids {
		require.Equal(t, fmt.Sprintf("5 5 5 %d | 1 1 1 6", hot), b.askBy(t, id, page+"4"))
	}
	require.Zero(t, b.Metric(t, "footfall_filter_wrong_hints_total"), "it is asked for the person")
	a.Check(t)
}

// Visits accepted before a link and counted after it, visits of past days, visits in one call, and repeated visits count as the
// person.
func TestEveryWayInResolves(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	a.by(t, "user:1", page)
	b.by(t, "cookie:1", page)
	end := b.keepWaiting(t)
	b.later(t, counter.Request{Visitor: "cookie:1", URI: page})
	b.later(t, counter.Request{Visitor: "cookie:1", URI: page, At: "2026-06-28T12:00:00Z"})
	a.link(t, "cookie:1", "user:1")
	end()
	b.Drained(t)
	require.Equal(t, "3 2 1 4 | 3 2 1 4", b.askBy(t, "cookie:1", page))

	g := b.counting(t)
	chunk := func(items ...counter.Item) {
		for _, got := range g.Recorder().RecordChunk(chunkOf(t, g, nil, items...)) {
			if !errors.Is(got.Err, record.ErrRepeated) {
				require.NoError(t, got.Err)
			}
		}
	}
	now := b.Clock.Now()
	past := func(days int) counter.Item {
		return counter.Item{URI: page, Visitor: "cookie:1", At: now.AddDate(0, 0, -days), ID: fmt.Sprint(days)}
	}
	chunk(past(0), past(1), past(2), counter.Item{URI: page, Visitor: "user:1", At: now.AddDate(0, 0, -3)})
	require.Equal(t, "5 2 1 8 | 5 2 1 8", b.askBy(t, "cookie:1", page))
	chunk(past(0), past(2), past(3), past(4))
	require.Equal(t, "6 2 1 10 | 6 2 1 10", b.askBy(t, "user:1", page))
	again, err := b.Visit(t.Context(), counter.Request{App: "demo", Visitor: "cookie:1", URI: page, ID: "2"})
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.Equal(t, "6 2 1 10 | 6 2 1 10", row(again), "a skipped visit returns the person's numbers")
	a.link(t, "cookie:3", "user:3")
	chunk(counter.Item{URI: page, Visitor: "cookie:3", At: now.AddDate(0, 0, -3)},
		counter.Item{URI: page, Visitor: "user:3", At: now.AddDate(0, 0, -2)})
	require.Equal(t, "8 3 3 12 | 8 3 3 12", b.askBy(t, "cookie:3", page))
	a.verified(t)
}

// A batch that waits while its id is linked again or a person is erased, and that has to be sent again, uses the new
// state.
func TestSentAgainResolvesAgain(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	for _, id := range []string{"user:1", "user:2", "cookie:1"} {
		a.by(t, id, page)
	}
	a.link(t, "cookie:1", "user:1")
	require.Equal(t, "3 3 1 4 | 3 3 1 4", b.by(t, "cookie:1", page))
	start := func() (release func(), done chan string) {
		release, done = a.hold(t, "a"), make(chan string, 1)
		go func() {
			answer, err := b.Visit(context.Background(), counter.Request{App: "demo", Visitor: "cookie:1", URI: page})
			assert.NoError(t, err)
			done <- row(answer)
		}()
		a.waiters(t, 1)
		return release, done
	}

	release, done := start()
	a.link(t, "cookie:1", "user:2")
	a.endWaiters(t)
	release()
	require.Equal(t, "3 3 2 5 | 3 3 2 5", <-done, "its session ended")

	release, done = start()
	a.forget(t, "cookie:1")
	release()
	require.Equal(t, "3 3 3 6 | 3 3 3 6", <-done, "the link was erased")
	a.Check(t)
}

// forget deletes the rows of ids.
func (in *instance) forget(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		for _, which := range []string{"<>", "="} {
			_, err := in.Tables().Exec(t.Context(), `DELETE FROM people WHERE period `+which+` people_period() AND id = $1`, in.stored(t, id))
			require.NoError(t, err)
		}
	}
}

// The batch of an alias commits, and its response is lost: it has counted once, as the person.
func TestCommitUnseenOfAnAlias(t *testing.T) {
	t.Parallel()
	a, _ := both.newPeople(t, counter.Options{})
	c, through := newCutter(t, a.URL)
	in := both.startOn(t, through, counter.Options{})
	a.by(t, "user:1", page)
	in.by(t, "cookie:1", page)
	a.link(t, "cookie:1", "user:1")
	require.Equal(t, "2 2 1 3 | 2 2 1 3", in.by(t, "cookie:1", page))
	release := a.hold(t, "a")
	answered := make(chan visit.Answer, 1)
	a.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	in.Clock.Set(a.Clock.Now())
	go func() {
		answer, err := in.Visit(context.Background(), counter.Request{App: "demo", Visitor: "cookie:1", URI: page})
		assert.NoError(t, err)
		answered <- answer
	}()
	a.waiters(t, 1)
	c.cut()
	a.waiters(t, 2)
	release()
	require.True(t, (<-answered).NoNumbers)
	require.Equal(t, "3 2 1 4 | 3 2 1 4", in.askBy(t, "cookie:1", page))
	require.Equal(t, "3 2 1 5 | 3 2 1 5", in.by(t, "user:1", page))
	a.Check(t)
}

// An alias at an instance whose clock is behind counts as the person, on the new day.
func TestMidnightOfAnAlias(t *testing.T) {
	t.Parallel()
	a, _ := both.newPeople(t, counter.Options{})
	behind := both.startOn(t, a.URL, counter.Options{})
	a.link(t, "cookie:1", "user:1")
	a.has(t, "user:1", tag.Tag{Name: "age", Value: "25-34"})
	require.Equal(t, "1 1 1 1 | 1 1 1 1", behind.by(t, "cookie:1", page))
	a.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	require.Equal(t, "2 2 2 2 | 2 2 2 2", a.by(t, "user:2", page))
	require.Equal(t, "3 2 1 3 | 3 2 1 3", behind.by(t, "cookie:1", page))
	require.Equal(t, "3 2 1 4 | 3 2 1 4", a.by(t, "user:1", page))
	require.Contains(t, a.TagsOf(t), "a 20260630 age 25-34 1 0")
	a.Check(t)
}

// A link waits while all people of the app are erased. It then is the app's first link again.
func TestLinkBehindErasing(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	a.by(t, "user:1", page)
	a.link(t, "cookie:1", "user:1")
	require.Equal(t, "1 1 1 2 | 1 1 1 2", b.by(t, "cookie:1", page))

	a.Exec(t, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
		CREATE TRIGGER wait BEFORE INSERT ON people FOR EACH STATEMENT EXECUTE FUNCTION wait()`)
	writing, err := a.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = writing.Exec(t.Context(), `SELECT pg_advisory_xact_lock(1)`)
	require.NoError(t, err)
	erasing, err := a.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = erasing.Exec(t.Context(), `SELECT lock_people(id) FROM apps; DELETE FROM people`)
	require.NoError(t, err)
	linked := make(chan struct{})
	go func() { a.link(t, "cookie:1", "user:1"); close(linked) }()
	a.waiters(t, 1)
	require.NoError(t, erasing.Commit(t.Context()))
	require.Eventually(t, func() bool {
		return a.One(t, `SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database()
			AND locktype = 'advisory' AND objid = 1 AND NOT granted`) == 1
	}, dbtest.Patience, dbtest.Tick)
	require.Equal(t, "2 2 2 3 | 2 2 2 3", b.by(t, "cookie:1", page), "it stands for itself now")
	require.NoError(t, writing.Rollback(t.Context()))
	<-linked
	require.Equal(t, "2 2 1 4 | 2 2 1 4", b.by(t, "cookie:1", page))
}

// The height of an id depends on the ids that lead to it now, not on former ones. Recomputing the heights does not count as use
// of these ids. If a row of the previous period is copied later, its height is right.
func TestWaysGetShorter(t *testing.T) {
	t.Parallel()
	in, _ := ways[3].newPeople(t, counter.Options{})
	chain := func(ids ...string) {
		for i := range ids[1:] {
			in.link(t, ids[i], ids[i+1])
		}
	}
	chain("u", "v", "w", "x", "y")
	in.turn(t)
	for _, id := range []string{"u", "v", "w", "x"} {
		in.link(t, id, "z")
	}
	chain("y", "z")
	in.verified(t)

	chain("a", "b", "c", "d")
	chain("a", "z")
	in.turn(t)
	chain("d", "e", "f")
	require.Contains(t, in.says(t, app.Link{ID: "f", PersonID: "g"}), "more than 4 links")
	kept := func() string {
		return fmt.Sprint(in.Table(t, fmt.Sprintf(`SELECT period = people_period(), height FROM people WHERE id IN ('%s', '%s') ORDER BY height`,
			in.stored(t, "b"), in.stored(t, "c"))))
	}
	require.Equal(t, "[false 0\n false 1\n]", kept())
	in.verified(t)
	in.by(t, "b", page)
	require.Equal(t, "[false 0\n true 0\n false 1\n true 1\n]", kept())
	in.verified(t)
}

// A visit that copies an id into the present period while fewer ids lead to it copies the new height.
func TestWaysGetShorterDuringAUse(t *testing.T) {
	t.Parallel()
	in, _ := ways[3].newPeople(t, counter.Options{})
	for _, link := range []string{"ab", "bc", "cd"} {
		in.link(t, link[:1], link[1:])
	}
	in.link(t, "a", "z")
	in.turn(t)
	in.link(t, "d", "e")
	writing := in.holds(t, `SELECT FROM people WHERE id = $1 FOR KEY SHARE`, "b")
	linked := in.links("e", "f")
	in.waiters(t, 1)
	_, err := writing.Exec(t.Context(), `INSERT INTO people (app_id, period, height, id, person)
		SELECT app_id, people_period(), height, id, person FROM people WHERE id = $1`, in.stored(t, "b"))
	require.NoError(t, err)
	require.NoError(t, writing.Commit(t.Context()))
	require.NoError(t, <-linked)
	require.Equal(t, []string{"false 0\n", "true 0\n"}, in.Table(t, fmt.Sprintf(
		`SELECT period = people_period(), height FROM people WHERE id = '%s' ORDER BY 1`, in.stored(t, "b"))))
	in.verified(t)
}

// The tags of a person count at sites with the person's first visit of the day, unless that visit has another value
// for the name, or the app no longer counts the name.
func TestTagsOfPersons(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	comes := func(id string, brought ...tag.Tag) {
		t.Helper()
		_, err := b.Visit(t.Context(), counter.Request{App: "demo", Visitor: id, URI: page, Tags: brought, Referrer: "https://news.example/"})
		require.NoError(t, err)
	}
	tomorrow := func() { a.Clock.Set(a.Clock.Now().Add(24 * time.Hour)) }
	comes("cookie:1")
	a.link(t, "cookie:1", "user:1")
	a.has(t, "user:1", tag.Tag{Name: "age", Value: "25-34"}, tag.Tag{Name: "plan", Value: "free"})
	comes("cookie:1") // as a new visitor
	comes("user:1")
	comes("cookie:2", tag.Tag{Name: "age", Value: "35-44"})
	tomorrow()
	a.has(t, "user:1", tag.Tag{Name: "age", Value: "35-44"}, tag.Tag{Name: "plan", Value: "pro"})
	comes("cookie:1", tag.Tag{Name: "plan", Value: "trial"})
	comes("user:1")
	tomorrow()
	require.NoError(t, a.Admin.SetApp(t.Context(), "demo", app.Settings{Tags: []string{"plan"}}))
	comes("user:1")
	comes("cookie:2")
	tomorrow()
	a.has(t, "cookie:2")
	comes("cookie:1")
	comes("cookie:2")
	var own []string
	for _, line := range a.TagsOf(t) {
		if !strings.Contains(line, "hour") {
			own = append(own, line)
		}
	}
	require.Equal(t, []string{
		"a 20260629 age 25-34 1 1", "a 20260629 age 35-44 1 1", "a 20260629 plan free 1 1", "a 20260629 source news.example 3 3",
		"a 20260630 age 35-44 1 0", "a 20260630 plan trial 1 0", "a 20260630 source news.example 1 0",
		"a 20260701 plan pro 1 0",
		"a 20260702 plan pro 1 0",
		"a/ 20260629 source news.example 3 3", "a/ 20260630 source news.example 1 0",
	}, own)
	a.checkTags(t)
}

// An id used in one period is kept in the next, with every id on its way to the person. An id not used for two
// periods is deleted, and then stands for itself.
func TestUsedPeopleStay(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	a.by(t, "user:2", page)
	a.link(t, "cookie:1", "user:1")
	a.link(t, "cookie:2", "user:1")
	a.link(t, "user:1", "user:2")
	a.has(t, "user:2", tag.Tag{Name: "age", Value: "25-34"})
	for period := range 3 {
		a.turn(t)
		require.Equal(t, fmt.Sprintf("1 1 1 %d | 1 1 1 %d", 1+period, 1+period), b.askBy(t, "cookie:1", page), "a question uses nobody")
		require.Equal(t, []string{"0\n"}, a.Table(t, `SELECT count(*) FROM people WHERE period = people_period()`))
		require.Equal(t, fmt.Sprintf("1 1 1 %d | 1 1 1 %d", 2+period, 2+period), b.by(t, "cookie:1", page))
		require.Equal(t, []string{"3\n"}, a.Table(t, `SELECT count(*) FROM people WHERE period = people_period()`))
	}
	require.Equal(t, "2 2 2 5 | 2 2 2 5", b.by(t, "cookie:2", page), "it was not used for two periods")
	a.turn(t)
	a.turn(t)
	require.Equal(t, "3 3 3 6 | 3 3 3 6", b.by(t, "cookie:1", page))
	require.Empty(t, a.Table(t, `SELECT FROM people`))
	a.link(t, "cookie:1", "user:2")
	require.Equal(t, "3 3 1 7 | 3 3 1 7", b.by(t, "cookie:1", page), "the first link again")
	a.Check(t)
}

// If a connection is cut while an id's use is written, neither the visit nor the use is lost.
func TestUseIsWrittenOnAnotherConnection(t *testing.T) {
	t.Parallel()
	a, b := both.newPeople(t, counter.Options{})
	a.link(t, "cookie:1", "user:1")
	a.turn(t)
	a.Exec(t, `CREATE SEQUENCE public.cuts;
		CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			IF nextval('public.cuts') = 1 THEN
				PERFORM pg_terminate_backend(pg_backend_pid());
			END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER cut AFTER INSERT ON people FOR EACH STATEMENT EXECUTE FUNCTION cut()`)
	b.by(t, "cookie:1", page)
	require.EqualValues(t, 2, a.One(t, `SELECT last_value FROM public.cuts`), "it was cut, and written again")
	require.EqualValues(t, 2, a.One(t, `SELECT count(*) FROM people WHERE period = people_period()`))
}

// Instances start the periods.
func TestInstancesBeginPeriods(t *testing.T) {
	t.Parallel()
	a, _ := both.newPeople(t, counter.Options{})
	a.link(t, "cookie:1", "user:1")
	a.pass(t, 3) // by then both tables have to be emptied
	keepsUp(t, a.URL, counter.Options{})
	require.Eventually(t, func() bool { return a.One(t, `SELECT people_clock() - value FROM epochs WHERE name = 'people'`) == 0 },
		dbtest.Patience, dbtest.Tick)
	require.Empty(t, a.Table(t, `SELECT FROM people`))
}

func (in *instance) known(t *testing.T, target, name string) []string {
	t.Helper()
	return in.Table(t, `SELECT * FROM report.people('demo', '`+target+`', '`+name+`')`)
}

// The report counts all visitors of a target by the present tags of their persons, whichever period set the tags, and
// whether the visits were by the id itself or by the person.
func TestReportPeople(t *testing.T) {
	in := newLinked(t)
	assert.Equal(t, []string{"25-34 4\n", "(none) 3\n"}, in.known(t, "a", "age"), "user:42 and three ids visited as themselves")
	assert.Equal(t, []string{"25-34 4\n", "(none) 3\n"}, in.known(t, "a/", "age"))
	in.has(t, "moved", tag.Tag{Name: "age", Value: "35-44"})
	assert.Equal(t, []string{"25-34 4\n", "35-44 2\n", "(none) 1\n"}, in.known(t, "a", "age"), "user:7 and moved, which stood for user:42")
	assert.Equal(t, []string{"pro 4\n", "(none) 3\n"}, in.known(t, "a", "plan"))
	assert.Equal(t, []string{"(none) 7\n"}, in.known(t, "a", "country"))
	in.link(t, "user:42", "user:7")
	assert.Equal(t, []string{"35-44 6\n", "(none) 1\n"}, in.known(t, "a", "age"), "three steps, over the person who was")
	in.by(t, "later", page)
	in.link(t, "later", "device:x")
	assert.Equal(t, []string{"35-44 7\n", "(none) 1\n"}, in.known(t, "a", "age"), "four steps")
	in.by(t, "latest", page)
	in.link(t, "latest", "user:7")
	in.has(t, "later", tag.Tag{Name: "plan", Value: "pro"}, tag.Tag{Name: "age", Value: "18-24"})
	assert.Equal(t, []string{"18-24 8\n", "(none) 1\n"}, in.known(t, "a", "age"))
	assert.Equal(t, in.known(t, "a", "age"), in.known(t, "a/", "age"))

	require.NoError(t, <-in.erases("new"))
	assert.Equal(t, []string{"18-24 8\n", "(none) 1\n"}, in.known(t, "a", "age"), "an erased visitor is one of uv")
	require.NoError(t, <-in.erases("user:7"))
	assert.Equal(t, []string{"(none) 9\n"}, in.known(t, "a", "age"))
	assert.Empty(t, in.known(t, "elsewhere", "age"))
	_, err := in.Tables().Exec(t.Context(), `SELECT * FROM report.people('demo', 'a', 'size')`)
	assert.ErrorContains(t, err, "app demo has no tag size")
}
