package feed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/record/feed"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// house is a database with the app demo, and no counter until one is opened.
type house struct {
	*desk.Desk
	t *testing.T
}

func newHouse(t *testing.T) *house {
	t.Helper()
	ever, open := 0, app.AccessOpen
	d := &house{t: t}
	o := desk.Options{Real: true, Apps: map[string]app.Settings{"demo": {Sites: []string{"a.example"}, RetainDays: &ever, Access: &open}}}
	o.DB = db.Options{Writers: record.Connections(), StatementTimeout: 5 * time.Second}
	d.Desk = desk.Idle(t, desk.Database(t, o), o)
	return d
}

// openHouse returns a house with an open counter.
func openHouse(t *testing.T) *house {
	t.Helper()
	d := newHouse(t)
	d.Counter = d.open()
	return d
}

func (d *house) open() *counter.Counter { return d.openAt(d.URL, 5*time.Second) }

func (d *house) openAt(url string, statementTimeout time.Duration) *counter.Counter {
	d.t.Helper()
	return desk.On(d.t, url, desk.Options{Real: true, DB: db.Options{Writers: record.Connections(),
		StatementTimeout: statementTimeout}}).Counter
}

// list is a source of two parts. Each fifth entry is skipped, each seventh entry is refused, and all other
// entries count. Reading starts at the positions.
type list struct {
	counter *counter.Counter
	app     string
	length  int64
	parts   [2]*record.Position
	next    [2]int64
	settled map[string]int // how often each entry was settled, by part and place
	fates   map[feed.Fate]int
	others  int

	at     time.Time // the time of the list's visits; zero: now
	idle   bool      // no entry of part 1 counts
	over   func()    // called when entries are settled
	judged func()    // called once, after entries have been judged and before any entry is sent; may be nil
}

func (d *house) list(c *counter.Counter, length int64) *feed.Feed[string] {
	d.t.Helper()
	l := &list{counter: c, app: "demo", length: length, settled: map[string]int{}, fates: map[feed.Fate]int{}}
	f := &feed.Feed[string]{Source: l, Retry: feed.NewRetry(func(string, error) {}, 0, feed.IsAway)}
	for i := range l.parts {
		require.NoError(d.t, f.Retry.Do(d.t.Context(), func() error {
			g, err := c.AuthorizeOperator(d.t.Context(), "demo")
			if err == nil {
				f.Recorder = g.Recorder()
				l.parts[i], err = g.OpenQueue(d.t.Context(), "list", fmt.Sprint(i), 0)
			}
			return err
		}))
		l.next[i] = l.parts[i].Next
	}
	return f
}

func (l *list) Read(_ context.Context, most int) (entries []feed.Entry[string], err error) {
	for len(entries) < min(most, 50) {
		part := 0
		if l.next[0] > l.next[1] {
			part = 1
		}
		place := l.next[part]
		if place == l.length {
			return entries, io.EOF
		}
		l.next[part]++
		e := feed.Entry[string]{Data: fmt.Sprintf("%d %d", part, place), Position: l.parts[part], Next: place + 1}
		if place%5 == 4 || l.idle && part == 1 {
			e.Fate = feed.Passes
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (l *list) Decide(ctx context.Context) (func(context.Context, *feed.Entry[string]) error, error) {
	g, err := l.counter.AuthorizeOperator(ctx, l.app)
	return func(ctx context.Context, e *feed.Entry[string]) error {
		if e.Next == 24 && l.judged != nil {
			defer l.judged()
			l.judged = nil
		}
		if e.Next%7 == 0 {
			return e.Refuse(visit.Errorf(visit.Invalid, "uri", "it is the seventh"))
		}
		v, _, err := g.Visit(ctx, counter.Item{URI: "http://a.example/" + fmt.Sprint(e.Next%9), IP: fmt.Sprintf("10.0.0.%d", e.Next%250),
			At: l.at})
		if err != nil {
			return e.Refuse(err)
		}
		e.Fate, e.Visit = feed.Counts, v
		return nil
	}, err
}

func (l *list) Unaccepted(_ *feed.Entry[string], err error) error { return err }

func (l *list) Keep(e *feed.Entry[string], _ bool) []record.Refusal {
	if e.Fate != feed.Refused {
		return nil
	}
	return []record.Refusal{{Position: e.Next - 1, Reason: e.Refusal.Message()}}
}

func (l *list) Settled(entries []*feed.Entry[string]) {
	if l.over != nil {
		l.over()
	}
	for _, e := range entries {
		l.settled[e.Data]++
		if l.fates[e.Fate]++; e.ByOthers {
			l.others++
		}
	}
}

// kinds returns the number of entries of a list that count, and that are refused.
func kinds(length int64) (counts, refused int64) {
	for n := range length {
		switch {
		case n%5 == 4:
		case (n+1)%7 == 0:
			refused++
		default:
			counts++
		}
	}
	return 2 * counts, 2 * refused
}

// Two readers read one source. Their connections to the database are repeatedly terminated, and one reader stops in
// the middle: every entry counts once, and every refusal is stored once.
func TestEachEntryCountsOnce(t *testing.T) {
	t.Parallel()
	d := newHouse(t)
	length := int64(dbtest.LongOrShort(20_000, 1000))
	leaves, leave := context.WithCancel(t.Context())
	feeds := []*feed.Feed[string]{d.list(d.open(), length), d.list(d.open(), length), d.list(d.open(), length)}
	kills := dbtest.LongOrShort(1000, 30)
	var ended atomic.Int64
	var killing, reading sync.WaitGroup
	conn := d.Conn(t)
	killing.Go(func() {
		for range kills {
			var killed int64
			err := conn.QueryRow(context.Background(), `
				SELECT count(pg_terminate_backend(pid)) FROM pg_sleep(0.01), LATERAL (
				    SELECT pid FROM pg_stat_activity
				    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'footfall' AND state = 'active'
				    LIMIT 1) AS one`).Scan(&killed)
			assert.NoError(t, err)
			ended.Add(killed)
		}
	})
	for i, f := range feeds {
		ctx := t.Context()
		if i == 2 {
			ctx = leaves
		}
		reading.Go(func() {
			assert.True(t, f.Run(ctx) == nil || ctx.Err() != nil, "%d", i)
		})
	}
	require.Eventually(t, func() bool { return ended.Load() > 0 }, dbtest.Patience, dbtest.Tick)
	leave()
	reading.Wait()
	killing.Wait()

	counts, refused := kinds(length)
	assert.Equal(t, counts, d.One(d.t, `SELECT sum(hot)::bigint FROM counters JOIN pages ON id = page_id WHERE uri = 'a.example'`))
	assert.Equal(t, min(refused, 2000), d.One(d.t, `SELECT count(*) FROM refused`), "the limit of kept entries per part")
	assert.Equal(t, 2*length, d.One(d.t, `SELECT sum(next)::bigint FROM positions WHERE source = 'list'`))
	others := 0
	for _, f := range feeds {
		l := f.Source.(*list)
		for entry, times := range l.settled {
			require.Equal(t, 1, times, entry)
		}
		others += l.others
	}
	t.Logf("%d entries, %d connections ended, %d entries that another reader had counted", 2*length, ended.Load(), others)
	assert.Positive(t, others)
}

// fault is an event during a feed. The returned function ends the fault. It is called when the feed waits for
// the end of the fault, or has failed.
type fault struct {
	judged func(d *house) (end func())                                     // when entries have been judged, before they are sent
	sent   func(d *house, n *dbtest.Network, waiting []int32) (end func()) // while their batch waits for a lock
	at     time.Time                                                       // the time of the visits
	none   bool                                                            // no visit counts
	idle   bool                                                            // no entry of part 1 counts
	fails  string                                                          // the feed fails with this error
}

var faults = map[string]fault{
	"killed before the commit": {sent: func(d *house, _ *dbtest.Network, waiting []int32) func() {
		d.Exec(d.t, `SELECT pg_terminate_backend($1)`, waiting[0])
		return nil
	}},
	"the answer is lost": {sent: func(_ *house, n *dbtest.Network, _ []int32) func() { n.Cut(); return nil }},
	"the database is away": {sent: func(d *house, n *dbtest.Network, _ []int32) func() {
		n.LeadTo("postgres://nobody@127.0.0.1:1/nowhere")
		n.Cut()
		return func() { n.LeadTo(d.URL) }
	}},
	"another reader": {judged: func(d *house) func() {
		assert.NoError(d.t, d.list(d.open(), faultsLength-1).Run(d.t.Context()))
		return nil
	}},
	"another reader of a part without visits": {idle: true, judged: func(d *house) func() {
		d.Exec(d.t, `UPDATE positions SET next = $1 WHERE part = '1'`, faultsLength)
		return nil
	}},
	"the app is deleted": {fails: "it has just been deleted", none: true, judged: func(d *house) func() {
		assert.NoError(d.t, d.Admin.DeleteApp(d.t.Context(), "demo"))
		return nil
	}},
	"the positions are forgotten": {fails: "it has just been deleted", none: true, judged: func(d *house) func() {
		d.Exec(d.t, `DELETE FROM positions`)
		return nil
	}},
	"the app is changed": {judged: func(d *house) func() {
		zone := "Asia/Tokyo"
		assert.NoError(d.t, d.Admin.SetApp(d.t.Context(), "demo", app.Settings{TZ: &zone}))
		return nil
	}},
	"the app is locked": {at: time.Now().AddDate(0, 0, -3), judged: func(d *house) func() {
		holder := d.Conn(d.t)
		_, err := holder.Exec(context.Background(), `BEGIN; SELECT hold_app_days(id) FROM apps`)
		assert.NoError(d.t, err)
		return func() { _ = holder.Close(context.Background()) }
	}},
	"the day becomes too old": {at: time.Now().AddDate(0, 0, -3), none: true, judged: func(d *house) func() {
		d.Exec(d.t, `INSERT INTO visits_kept (app_id, from_day) SELECT id, to_char(now() - interval '1 day', 'YYYYMMDD')::int FROM apps`)
		return nil
	}},
	"the tables accept nobody": {fails: "a visit cannot be stored", none: true, judged: func(d *house) func() {
		d.Exec(d.t, `ALTER TABLE visitors ADD CONSTRAINT nobody CHECK (false) NOT VALID`)
		return nil
	}},
}

const faultsLength = 60

// A feed's entries count exactly once despite any fault, whether the feed retries by itself, or stops and is
// started again. Settled entries stay settled.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, is := range faults {
		for _, patient := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, patient=%t", name, patient), func(t *testing.T) {
				t.Parallel()
				testFault(t, is, patient)
			})
		}
	}
}

func testFault(t *testing.T, is fault, patient bool) {
	d := newHouse(t)
	network, through := dbtest.NewNetwork(t, d.URL)
	far := d.openAt(through, 2*time.Second)
	var end atomic.Value
	begins := func(lift func()) {
		if lift != nil {
			end.Store(sync.OnceFunc(lift))
		}
	}
	ends := func() {
		if lift, under := end.Load().(func()); under {
			lift()
		}
	}
	begin := func() *feed.Feed[string] {
		f := d.list(far, faultsLength)
		f.Source.(*list).at, f.Source.(*list).idle = is.at, is.idle
		f.Retry = nil
		if patient {
			f.Retry = feed.NewRetry(func(string, error) { ends() }, 0, feed.IsAway)
		}
		return f
	}
	release, from := func() {}, 0
	if is.sent != nil {
		require.NoError(t, d.list(far, 1).Run(t.Context())) // creates counters to lock
		holder := d.Conn(t)
		_, err := holder.Exec(t.Context(), `BEGIN; SELECT FROM counters FOR UPDATE`)
		require.NoError(t, err)
		from, release = 2, func() { _ = holder.Close(context.Background()) }
	}
	f, ended := begin(), make(chan error, 1)
	f.Source.(*list).judged = func() {
		if is.judged != nil {
			begins(is.judged(d))
		}
	}
	go func() { ended <- f.Run(t.Context()) }()
	if is.sent != nil {
		begins(is.sent(d, network, dbtest.AwaitWaiting(t, d.Conn(t), 1)))
		release()
	}
	err := <-ended
	for ; err != nil && is.fails == "" && !patient; err = f.Run(t.Context()) {
		ends()
		f = begin()
	}
	settled := f.Source.(*list).settled
	for entry, times := range settled {
		require.Equal(t, 1, times, entry)
	}
	if is.fails != "" {
		require.ErrorContains(t, err, is.fails)
		require.Empty(t, settled)
		return
	}
	require.NoError(t, err)
	if patient {
		require.Len(t, settled, 2*faultsLength-from)
	}
	counts, _ := kinds(faultsLength)
	if is.none {
		counts = 0
	}
	if is.idle {
		counts /= 2
	}
	assert.Equal(t, counts, d.One(d.t, `SELECT coalesce(sum(hot), 0)::bigint FROM counters JOIN pages ON id = page_id
		WHERE uri = 'a.example'`))
	assert.EqualValues(t, 2*faultsLength, d.One(d.t, `SELECT sum(next)::bigint FROM positions WHERE source = 'list'`))
}

// During these faults each visit of the inbox is either counted once or dropped.
func TestFaultsOfTheInbox(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"killed before the commit", "the answer is lost", "the database is away", "the app is locked",
		"the day becomes too old", "the tables accept nobody"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testInboxFault(t, faults[name])
		})
	}
}

func testInboxFault(t *testing.T, is fault) {
	d := openHouse(t)
	network, through := dbtest.NewNetwork(t, d.URL)
	hold := func(sql string) (release func()) {
		holder := d.Conn(t)
		_, err := holder.Exec(t.Context(), sql)
		require.NoError(t, err)
		return func() { _ = holder.Close(context.Background()) }
	}
	come := func(n int, at string, later bool) {
		_, err := d.Visit(t.Context(), counter.Request{App: "demo", URI: "http://a.example/", IP: fmt.Sprintf("10.0.0.%d", n%50), At: at,
			CountLater: later})
		require.NoError(t, err)
	}
	begin := hold(`SELECT pg_advisory_lock(hashtext('footfall.drain_inbox'))`) // no instance counts accepted visits
	at := ""
	if !is.at.IsZero() {
		at = is.at.Format(time.RFC3339)
	}
	for n := range faultsLength {
		come(n, at, true)
	}
	counts, release, end := int64(faultsLength), func() {}, func() {}
	if is.sent != nil {
		come(0, "", false) // creates counters to lock
		counts, release = counts+1, hold(`BEGIN; SELECT FROM counters FOR UPDATE`)
	}
	d.Close()
	if is.judged != nil {
		end = is.judged(d)
	}
	d.openAt(through, 2*time.Second)
	begin()
	if is.sent != nil {
		end = is.sent(d, network, dbtest.AwaitWaiting(t, d.Conn(t), 1))
		release()
	} else if end != nil {
		dbtest.AwaitWaiting(t, d.Conn(t), 1)
	}
	if end != nil {
		end()
	}
	require.Eventually(t, func() bool { return d.One(d.t, `SELECT sum(inbox_behind(id))::bigint FROM apps`) == 0 }, dbtest.Patience,
		dbtest.Tick)
	if is.none {
		counts = 0
	}
	assert.Equal(t, counts, d.One(d.t, `SELECT coalesce(sum(hot), 0)::bigint FROM counters JOIN pages ON id = page_id
		WHERE uri = 'a.example'`))
}

// A feed whose time has run out starts no further chunk, and returns the reason.
func TestFeedEndsInTime(t *testing.T) {
	t.Parallel()
	d := openHouse(t)
	f := d.list(d.Counter, 500)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("its time is over")
	f.Source.(*list).over = func() { cancel(over) }
	require.ErrorIs(t, f.Run(ctx), over)
	assert.Len(t, f.Source.(*list).settled, 50)
	assert.EqualValues(t, 50, d.One(d.t, `SELECT sum(next)::bigint FROM positions WHERE source = 'list'`))
}

// Entries that were counted before the database became unavailable are not sent again, even if the stored
// positions cannot be read: the positions in memory have moved past them.
func TestCountedIsSettledWithoutLooking(t *testing.T) {
	t.Parallel()
	d := openHouse(t)
	f := d.list(d.Counter, 3)
	l := f.Source.(*list)
	entries, err := f.ReadChunk(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, entries, 6)
	l.parts[0].Next = 2
	away, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, f.RecordOnce(away, entries))
	assert.Equal(t, map[string]int{"0 0": 1, "0 1": 1}, l.settled)
	assert.Zero(t, l.others)
}

// If a feed fails to count entries, and finds that others have moved the positions, it does not report the
// entries as counted by itself.
func TestOthersHaveCountedUnsentEntries(t *testing.T) {
	t.Parallel()
	d := openHouse(t)
	c := d.open()
	f := d.list(c, 20)
	require.NoError(t, d.list(d.Counter, 20).Run(t.Context()))
	c.Close()
	require.NoError(t, f.Run(t.Context()))
	assert.Equal(t, 40, f.Source.(*list).others)
}

// A missing app ends the feed.
func TestFeedEndsWithoutItsApp(t *testing.T) {
	t.Parallel()
	d := openHouse(t)
	f := d.list(d.Counter, 100)
	f.Source.(*list).app = "nobody"
	err := f.Run(t.Context())
	verr, ok := errors.AsType[*visit.Error](err)
	require.True(t, ok, err)
	assert.Equal(t, visit.NotFound, verr.Kind)
	assert.Empty(t, f.Source.(*list).settled)
}

// The memory for entries is bounded even in a long sequence of entries that do not count, as in a
// log of bots.
func TestChunksWithoutCountsAreBounded(t *testing.T) {
	t.Parallel()
	d := openHouse(t)
	f := d.list(d.Counter, 50_000)
	l := f.Source.(*list)
	l.idle, l.next[0], f.DryRun, f.Fill = true, l.length, true, true
	before, largest := 0, 0
	l.over = func() { largest, before = max(largest, len(l.settled)-before), len(l.settled) }
	require.NoError(t, f.Run(t.Context()))
	l.over() // the remaining ones
	require.Len(t, l.settled, 50_000)
	assert.Less(t, largest, 10*f.Recorder.ChunkVisits())
}

// A dry run writes nothing, and reports the outcome of all entries.
func TestDryRunSettlesEverything(t *testing.T) {
	t.Parallel()
	d := openHouse(t)
	f := d.list(d.Counter, 100)
	f.DryRun, f.Fill = true, true
	require.NoError(t, f.Run(t.Context()))
	counts, refused := kinds(100)
	assert.Equal(t, map[feed.Fate]int{feed.Counted: int(counts), feed.Refused: int(refused), feed.Passes: 40}, f.Source.(*list).fates)
	assert.Zero(t, d.One(d.t, `SELECT count(*) FROM counters`))
}
