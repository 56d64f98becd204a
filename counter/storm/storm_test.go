// Package storm runs everything that may happen to a database at once, and compares the final numbers with its own
// model.
package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/intake"
	"footfall/record"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestStorm sends visits in every way to instances whose clocks differ, while days pass quickly. Apps, pages and
// visitors change and are deleted. Connections are cut, instances and imports are killed, and so are processes of
// PostgreSQL, which restarts all of them. Whatever the order, every promise holds at every moment, and in the end
// each number of each target follows from the answers. STORM_SECONDS makes it longer. STORM_SEED repeats the choices,
// but not their timing.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := newStorm(t)
	clients, faults := s.begin(), s.beginFaults()
	for time.Since(s.began) < s.lasts && !t.Failed() {
		pause(t.Context(), min(2*time.Second, s.lasts/2))
		s.verify()
	}
	assert.Eventually(t, func() bool { return t.Failed() || s.missing() == "" }, 3*dbtest.Patience, dbtest.Tick)
	assert.Empty(t, s.missing(), "things that a storm is made of and that did not happen")
	faults() // callers waiting for an answer get one then
	clients()
	if t.Failed() {
		return
	}
	s.drained()
	s.verify()
	s.compare()
	s.noDeadlock()
	t.Logf("%s; %s", s.model.summary(), s.summary())
}

const (
	sites = 2
	pages = 4 // of each site; the last one is deleted again and again
	gone  = pages - 1

	held  = 2 // the number of days that may pass during work in progress
	keeps = 5 // the number of days for which exactly compared apps keep visits
	back  = 1 // the number of days before the present one for which a visit may not be refused
)

// tenant is an app that is counted. If it is exact, each number is compared: only the client who sends a visitor's
// visits erases this visitor, so that every visit belongs to a certain visitor. Otherwise only the visits are
// compared.
type tenant struct {
	name             string
	exact            bool
	told             bool // all of its visits have a given time, so that their days are certain
	visits, visitors int  // the number of days for which they are kept
	visitor          string
}

var (
	told  = tenant{"told", true, true, keeps, 0, "address"}
	live  = tenant{"live", true, false, keeps, 0, "address"}
	brief = tenant{"brief", false, false, 1, 0, "address"} // is deleted and added again
	wild  = []tenant{{"forgets", false, false, 2, 4, "address"}, {"daily", false, false, 1, 1, "daily"}, brief}
	apps  = append([]tenant{told, live}, wild...)
)

// ahead is how far clocks of instances may be ahead of the database's.
var ahead = []time.Duration{0, 24 * time.Hour, time.Hour, 11 * time.Hour}

// firstDay is at noon, as is every moment of the storm: a day is one step.
var firstDay = time.Date(2019, 6, 1, 12, 0, 0, 0, time.UTC)

var secret = app.Secret("thirty-two bytes that are secret")

type storm struct {
	*testing.T
	model      model
	dir        string // of the server
	url        string
	own        *pgxpool.Pool // for queries of the test itself
	instances  []instance
	admin      *admin.Admin
	retains    *db.DB
	proofs     *db.DB // its connections are only cut by faults of the whole server
	seed       uint64 // of the choices of all parts
	parts      int    // the number of parts
	began      time.Time
	lasts, day time.Duration
	today      atomic.Int64 // the number of days passed
	numbers    atomic.Int64 // for unique ids, keys and lines
	underWay   []atomic.Int64
	waiting    atomic.Int64 // the number of callers that have waited long for an answer

	mu       sync.Mutex
	happened map[string]int
}

// instance is one of several concurrent instances.
type instance struct {
	name    string
	options record.Options
	db      *db.DB
	desk    *intake.Desk
	now     atomic.Pointer[counter.Counter]
}

func newStorm(t *testing.T) *storm {
	s := &storm{T: t, dir: dbtest.OwnDir(t), seed: rand.Uint64(), lasts: time.Duration(dbtest.LongOrShort(10, 2)) * time.Second,
		happened: map[string]int{}}
	if text := os.Getenv("STORM_SEED"); text != "" {
		var err error
		s.seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "STORM_SEED")
	}
	s.lasts = time.Duration(dbtest.FromEnv(t, "STORM_SECONDS", int(s.lasts.Seconds()))) * time.Second
	s.day = max(100*time.Millisecond, s.lasts/100) // with more days more than a year would have to be compared
	t.Logf("STORM_SEED=%d STORM_SECONDS=%d", s.seed, int(s.lasts.Seconds()))

	s.url = dbtest.Own(t, s.dir, "").URL() // no other test could use a server with these faults
	_, err := dbtest.Open(t, s.url, db.Options{}).MigrateUp(t.Context())
	require.NoError(t, err)
	cfg, err := pgxpool.ParseConfig(s.url)
	require.NoError(t, err)
	cfg.ConnConfig.RuntimeParams["search_path"] = db.Schema
	s.own, err = pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(s.own.Close)
	_, err = s.own.Exec(t.Context(), fastClock)
	require.NoError(t, err)
	s.setDay(0)

	s.retains, s.proofs = s.open("retention"), dbtest.Open(t, s.url, db.Options{})
	s.admin = admin.NewAdmin(s.open("command"), secret)
	for _, a := range apps {
		require.NoError(t, s.addApp(a))
	}
	s.model.begin(s)
	s.instances = []instance{
		{name: "plain", options: record.Options{Overflow: true, MaxWait: time.Millisecond}}, // sends its visits to the inbox rather than let them wait
		{name: "both", options: record.Options{Filter: true, Memory: 8 << 20}},
		{name: "full filter", options: record.Options{Filter: true, FilterMemory: 8, Memory: 1 << 20}},
	}
	for i := range s.instances {
		in := &s.instances[i]
		in.db, in.desk = s.open(in.name), intake.NewDesk()
		require.True(t, s.start(in, ahead[i]))
		t.Cleanup(func() { in.now.Load().Close() })
	}
	s.began = time.Now() // starting instances may take longer than a short storm lasts
	return s
}

// fastClock gives the database a clock that the storm sets. It decides how long visits of earlier days are accepted
// and kept.
const fastClock = `
	CREATE TABLE public.clock (today date NOT NULL);
	INSERT INTO public.clock VALUES ('-infinity');
	CREATE OR REPLACE FUNCTION footfall.days_ago(n integer) RETURNS integer LANGUAGE sql STABLE STRICT
	AS $$ SELECT to_char(today - n, 'YYYYMMDD')::integer FROM public.clock $$`

func (s *storm) setDay(n int64) {
	if _, err := s.own.Exec(context.Background(), `UPDATE public.clock SET today = $1`, firstDay.AddDate(0, 0, int(n))); err == nil {
		s.today.Store(n)
	} else {
		assert.True(s, interrupted(err), "%v", err)
	}
}

// now returns the time of a clock that is ahead of the database's.
func (s *storm) now(ahead time.Duration) time.Time {
	return firstDay.AddDate(0, 0, int(s.today.Load())).Add(ahead)
}

// open opens the database under an application name, so that cut can find its connections.
func (s *storm) open(name string) *db.DB {
	return dbtest.Open(s.T, dbtest.WithParameter(s.T, s.url, "application_name", "storm "+name), db.Options{})
}

// start starts an instance, unless the database does not answer.
func (s *storm) start(in *instance, ahead time.Duration) bool {
	o := counter.Options{Secret: secret, Options: in.options}
	o.Clock = func() time.Time { return s.now(ahead) }
	if o.MaxWait == 0 {
		o.MaxWait = time.Minute // so that a slow machine refuses no visit
	}
	c, err := counter.Open(context.Background(), in.db, o)
	if err != nil {
		assert.True(s, interrupted(err), "start an instance: %v", err)
		return false
	}
	in.now.Store(c)
	return true
}

func (s *storm) any(r *rand.Rand) *instance { return &s.instances[r.IntN(len(s.instances))] }

func (s *storm) addApp(a tenant) error {
	open := "open"
	return s.admin.AddApp(context.Background(), a.name, app.Settings{Access: &open, RetainDays: &a.visits, ForgetDays: &a.visitors,
		Visitor: &a.visitor})
}

// part repeats an action, with its own random choices.
func (s *storm) part(ctx context.Context, all *sync.WaitGroup, every time.Duration, do func(r *rand.Rand)) {
	r := rand.New(rand.NewPCG(s.seed, uint64(s.parts)))
	s.parts++
	all.Go(func() {
		for pause(ctx, every/2+time.Duration(r.Int64N(int64(every)))) && !s.Failed() {
			do(r)
		}
	})
}

// number returns a number that is unique in the storm.
func (s *storm) number() string { return strconv.FormatInt(s.numbers.Add(1), 10) }

// some adds to the number of times that something has happened.
func (s *storm) some(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.happened[what] += n
}

// needed are the events required in every storm, however short.
var needed = []string{
	"connections cut", "instances killed", "backends killed", "imports stopped", "visitors erased", "pages deleted", "apps replaced",
	"apps set", "offsets set",
	"days closed", "days dropped", "visits deleted", "visitors forgotten", "proofs", "late visits", "visits too late", "visits into the inbox",
	"visits over into the inbox", "visits repeated",
	"visits skipped", "calls", "calls to two instances", "imports", "logs rotated",
}

// missing returns the required events that have not happened yet.
func (s *storm) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []string
	for _, what := range needed {
		if s.happened[what] == 0 {
			missing = append(missing, what)
		}
	}
	return strings.Join(missing, ", ")
}

func (s *storm) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make([]string, len(needed))
	for i, what := range needed {
		counts[i] = fmt.Sprintf("%d %s", s.happened[what], what)
	}
	return strings.Join(counts, ", ")
}

// untilAnswered repeats try until it succeeds, at the latest after the faults. The faults wait for slow calls,
// because on a slow machine these would be interrupted every time.
func (s *storm) untilAnswered(what string, try func() bool) {
	began, waits := time.Now(), int64(0)
	defer func() { s.waiting.Add(-waits) }()
	for !s.Failed() && !try() {
		switch took := time.Since(began); {
		case took > 3*time.Minute:
			s.Errorf("%s: it gets no answer", what)
		case took > 2*time.Second && waits == 0:
			waits = 1
			s.waiting.Add(waits)
		}
		pause(context.Background(), 5*time.Millisecond)
	}
}

// pause waits, and returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// uri returns the URI of a page.
func uri(site, page int) string { return fmt.Sprintf("http://s%d.example/%d", site, page) }

// siteOf returns the site of a URI, as the tables name it.
func siteOf(uri string) string { return strings.Split(uri, "/")[2] }

// kindOf returns the kind of an error for callers, or 0.
func kindOf(err error) visit.Kind {
	if told := asTold(err); told != nil {
		return told.Kind
	}
	return 0
}
