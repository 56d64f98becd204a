package storm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

// model is what has to be in the tables, by what was answered: sets of visitors for each target and
// day.
type model struct {
	*storm
	mu      sync.Mutex
	targets map[string]*target // by "app uri", as the tables name it
	lives   map[string]int     // how often a visitor was erased
	visits  int
	maybes  int
}

// who is a visitor: one who comes again after they were erased is another one.
type who struct {
	ip   string
	life int
}

// span is the days on one of which a visit was counted: the same two where that is certain, as it
// is for visits that tell when they were.
type span struct{ from, to int64 }

// target is what is certain of one, and what may be besides: visits of which nobody was answered
// what became of them.
type target struct {
	hot, perhaps int64
	hots         map[int64]bool
	ranks        map[who]int64
	ofRank       map[int64]who
	came, mayBe  map[who][]span
	days         map[span]int64
	perhapsDays  map[span]int64
	rows         map[who]map[int64]bool // days of which there was a row
}

func (m *model) begin(s *storm) {
	m.storm, m.targets, m.lives = s, map[string]*target{}, map[string]int{}
}

func (m *model) target(app, uri string) *target {
	name := app + " " + uri
	if m.targets[name] == nil {
		m.targets[name] = &target{
			hots: map[int64]bool{}, ranks: map[who]int64{}, ofRank: map[int64]who{}, came: map[who][]span{}, mayBe: map[who][]span{},
			days: map[span]int64{}, perhapsDays: map[span]int64{}, rows: map[who]map[int64]bool{},
		}
	}
	return m.targets[name]
}

// of are the site and the page of a visit; the site alone where what is counted for the page moves.
func (m *model) of(t *trip) []*target {
	all := []*target{m.target(t.name, siteOf(t.uri))}
	if t.exact && !strings.HasSuffix(t.uri, fmt.Sprint("/", gone)) {
		all = append(all, m.target(t.name, strings.TrimPrefix(t.uri, "http://")))
	}
	return all
}

// spanOf is the days on which a visit may have been counted that is answered now. Without a time of
// its own it may be counted a day ahead: some clocks are.
func (t *trip) spanOf(now int64) span {
	if t.at != present {
		return span{t.at, t.at}
	}
	return span{t.from, now + 1}
}

// counted notes a visit that is counted for certain, with its numbers, if these were answered.
func (m *model) counted(t *trip, now int64, a *visit.Answer) {
	if a != nil {
		m.counts(t, *a)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.visits++
	for _, o := range m.of(t) {
		o.hot++
		o.days[t.spanOf(now)]++
		o.came[t.who] = append(o.came[t.who], t.spanOf(now))
	}
}

// perhaps notes a visit of which it is not known whether it was counted.
func (m *model) perhaps(t *trip, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.maybes++
	for _, o := range m.of(t) {
		o.perhaps++
		o.perhapsDays[t.spanOf(now)]++
		o.mayBe[t.who] = append(o.mayBe[t.who], t.spanOf(now))
	}
}

// countedWildly notes a visit of an app that is not exact. One that has an id and is counted later
// is not counted if another one with this id is.
func (m *model) countedWildly(t *trip, a visit.Answer) {
	if t.name == brief.name {
		return
	}
	if n := numbersOf(a); n != nil {
		m.counts(t, *n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.Later && t.id != "" {
		m.maybes++
		m.of(t)[0].perhaps++
	} else {
		m.visits++
		m.of(t)[0].hot++
	}
}

func (m *model) perhapsWildly(t *trip) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.maybes++
	m.of(t)[0].perhaps++
}

// counts holds the numbers of a visit's own moment against all others.
func (m *model) counts(t *trip, a visit.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, o := range m.of(t) {
		n := []visit.Counts{a.Site, a.Page}[i]
		assert.True(m, n.Hot >= n.PV && n.PV >= n.UV && n.UV >= n.Rank && n.Rank >= 1, "%+v: %+v", t, n)
		assert.False(m, o.hots[n.Hot], "%+v: two visits got hot %d", t, n.Hot)
		o.hots[n.Hot] = true
		if t.exact {
			o.heard(m, t, n.Rank)
		}
	}
}

// heard holds the rank of a visitor who was counted before against the one that they were answered.
func (m *model) heard(t *trip, a visit.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, o := range m.of(t) {
		o.heard(m, t, []int64{a.Site.Rank, a.Page.Rank}[i])
	}
}

func (o *target) heard(m *model, t *trip, rank int64) {
	if before, known := o.ranks[t.who]; known {
		assert.Equal(m, before, rank, "%+v: it had another rank before", t)
	}
	if other, taken := o.ofRank[rank]; taken {
		assert.Equal(m, other, t.who, "%+v: somebody else has rank %d", t, rank)
	}
	o.ranks[t.who], o.ofRank[rank] = rank, t.who
}

func (m *model) life(ip string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lives[ip]
}

// erased notes that a visitor was erased of whom nothing is under way.
func (m *model) erased(ip string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives[ip]++
}

func (m *model) summary() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%d visits and %d of which no answer came, %d targets compared, %d days", m.visits, m.maybes, len(m.targets),
		m.today.Load()+1)
}

// readRows reads on which days visitors came whose visits do not tell that.
func (m *model) readRows() bool {
	rows, err := m.own.Query(context.Background(), `
		SELECT p.uri, host(v.ip), day_date(v.day_id) - $2::date FROM visits AS v JOIN pages AS p ON p.id = v.page_id
		WHERE p.app_id = (SELECT id FROM apps WHERE name = $1)`, live.name, firstDay)
	if err != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var uri, ip string
	var day int64
	_, err = pgx.ForEachRow(rows, []any{&uri, &ip, &day}, func() error {
		o := m.target(live.name, uri)
		if o.rows[who{ip: ip}] == nil {
			o.rows[who{ip: ip}] = map[int64]bool{}
		}
		o.rows[who{ip: ip}][day] = true
		return nil
	})
	return err == nil
}

// compare holds all tables against the model.
func (s *storm) compare() {
	m := &s.model
	require.True(s, m.readRows())
	for _, name := range slices.Sorted(maps.Keys(m.targets)) {
		of, uri, _ := strings.Cut(name, " ")
		i := slices.IndexFunc(apps, func(a tenant) bool { return a.name == of })
		if o := m.targets[name]; of == brief.name || o.hot+o.perhaps == 0 {
			continue // deleted with all that it had; or a page that is
		} else if apps[i].exact {
			m.compareTarget(apps[i], uri, o)
		} else {
			m.compareHot(name, m.tables(of, uri).hot, o)
		}
	}
}
