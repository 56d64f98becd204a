package storm

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/visit"
)

// model is the expected content of the tables, derived from the answers: sets of visitors for each target and day.
type model struct {
	*storm
	mu      sync.Mutex
	targets map[string]*target // by "app uri", as the tables name it
	lives   map[string]int     // how often a visitor was erased
	visits  int
	maybes  int
}

// who is a visitor. A visitor who returns after an erasure is another one.
type who struct {
	ip   string
	life int
}

// span is the range of days on which a visit may have been counted. Both are equal if the day is certain, as it is
// for visits with a given time.
type span struct{ from, to int64 }

// target has the certain numbers of a target, and the uncertain ones, from visits without a known outcome.
type target struct {
	hot, perhaps int64
	hots         map[int64]bool
	ranks        map[who]int64
	ofRank       map[int64]who
	came, mayBe  map[who][]span
	days         map[span]int64
	perhapsDays  map[span]int64
	rows         map[who]map[int64]bool // days with a row
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

// of returns the site and the page of a visit, or only the site if the page's numbers may move.
func (m *model) of(t *trip) []*target {
	all := []*target{m.target(t.name, siteOf(t.uri))}
	if t.exact && !strings.HasSuffix(t.uri, fmt.Sprint("/", gone)) {
		all = append(all, m.target(t.name, strings.TrimPrefix(t.uri, "http://")))
	}
	return all
}

// spanOf returns the days on which a visit answered now may have been counted. Without a given time it may count a
// day ahead, because some clocks are ahead.
func (t *trip) spanOf(now int64) span {
	if t.at != present {
		return span{t.at, t.at}
	}
	return span{t.from, now + 1}
}

// counted notes a visit that is certainly counted, with its numbers, if it was answered with any.
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

// perhaps notes a visit with an unknown outcome.
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

// countedWildly notes a visit of an app that is not exact. A visit with an id that is counted later is not counted if
// another one with this id was.
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

// counts compares the numbers in the answer to a visit with those in all other answers.
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

// heard compares the rank in an answer with the one that the visitor had before.
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
		assert.Equal(m, other, t.who, "%+v: another visitor has rank %d", t, rank)
	}
	o.ranks[t.who], o.ofRank[rank] = rank, t.who
}

func (m *model) life(ip string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lives[ip]
}

// erased notes the erasure of a visitor without visits in progress.
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

// readRows reads the days of visitors whose visits have no given time.
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

// compare compares all tables with the model.
func (s *storm) compare() {
	m := &s.model
	require.True(s, m.readRows())
	for _, name := range slices.Sorted(maps.Keys(m.targets)) {
		of, uri, _ := strings.Cut(name, " ")
		i := slices.IndexFunc(apps, func(a tenant) bool { return a.name == of })
		if o := m.targets[name]; of == brief.name || o.hot+o.perhaps == 0 {
			continue // deleted with all its numbers, or a page that is
		} else if apps[i].exact {
			m.compareTarget(apps[i], uri, o)
		} else {
			m.compareHot(name, m.tables(of, uri).hot, o)
		}
	}
}

// numbers are all stored numbers of a target. Days are those of the storm.
type numbers struct {
	hot, pv, uv int64
	hots        map[int64]int64
	days        map[int64]string // pv and new visitors
	links       map[link]int64
	ranks       map[string]int64 // of present visitors
	erased      []int64          // ranks of erased visitors
	tags        map[string]int64 // pv by day and tag, and newcomers by tag
}

// link is a day, and the day on which its returning visitors last visited.
type link struct{ day, previous int64 }

// tables reads the stored numbers of a target.
func (m *model) tables(app, uri string) *numbers {
	n := &numbers{hots: map[int64]int64{}, days: map[int64]string{}, links: map[link]int64{}, ranks: map[string]int64{},
		tags: map[string]int64{}}
	ctx := context.Background()
	var id int64
	require.NoError(m, m.own.QueryRow(ctx, `
		SELECT p.id, c.hot, c.pv, c.uv FROM pages AS p JOIN counters AS c ON c.page_id = p.id JOIN apps AS a ON a.id = p.app_id
		WHERE a.name = $1 AND p.uri = $2`, app, uri).Scan(&id, &n.hot, &n.pv, &n.uv), uri)
	var day, previous, one, two, three int64
	var ip, tag, value string
	each := func(sql string, into []any, do func()) {
		rows, err := m.own.Query(ctx, sql, id, firstDay)
		require.NoError(m, err)
		_, err = pgx.ForEachRow(rows, into, func() error { do(); return nil })
		require.NoError(m, err)
	}
	each(`SELECT day_date(day_id) - $2::date, hot, pv, new_visitors FROM days WHERE page_id = $1`, []any{&day, &one, &two, &three}, func() {
		n.hots[day], n.days[day] = one, fmt.Sprint(two, " visitors, ", three, " new")
	})
	each(`SELECT day_date(day_id) - $2::date, day_date(previous_day) - $2::date, visitors FROM returns WHERE page_id = $1`,
		[]any{&day, &previous, &one}, func() {
			n.links[link{day, previous}] += one
		})
	each(`SELECT host(ip), rank FROM visitors WHERE page_id = $1 AND $2::date IS NOT NULL`, []any{&ip, &one}, func() { n.ranks[ip] = one })
	each(`SELECT day_date(d.day_id) - $2::date, t.name, t.value, d.pv, d.newcomers FROM tag_days AS d JOIN tags AS t ON t.id = d.tag_id
		WHERE d.page_id = $1 AND t.name IN ('source', 'campaign', 'hour')`,
		[]any{&day, &tag, &value, &one, &two}, func() {
			if tag == "hour" && app == live.name {
				value = "" // the instances' clocks differ
			}
			n.tags[fmt.Sprint(day, " ", tag, " ", value)] += one
			if tag != "campaign" { // it differs by day, and the first counted visit need not be of the first day
				n.tags[fmt.Sprint("new ", tag, " ", value)] += two
			}
		})
	n.erased = dbtest.Column[int64](m, m.own, `SELECT rank FROM erased_ranks WHERE page_id = $1`, id)
	return n
}

// compareHot compares the number of visits with those answered or accepted: none is lost, and none is counted twice.
func (m *model) compareHot(name string, hot int64, o *target) {
	assert.GreaterOrEqual(m, hot, o.hot, "%s: visits were lost that had been answered", name)
	assert.LessOrEqual(m, hot, o.hot+o.perhaps, "%s: visits were counted twice, or though they were refused", name)
	for answered := range o.hots {
		assert.LessOrEqual(m, answered, hot, name)
	}
}

// compareTarget compares all numbers of a target with the sets of its visitors.
func (m *model) compareTarget(of tenant, uri string, o *target) {
	name := of.name + " " + uri
	is := m.tables(of.name, uri)
	m.compareHot(name, is.hot, o)
	came := map[who][]int64{}
	for w := range o.came {
		came[w] = m.daysOf(of, name, o, w)
	}
	for w := range o.mayBe {
		if o.came[w] == nil && len(m.daysOf(of, name, o, w)) > 0 {
			came[w] = m.daysOf(of, name, o, w)
		}
	}
	for w := range o.rows {
		assert.NotEmpty(m, came[w], "%s: %v never came", name, w)
	}

	pv, days, fresh, links, tags := int64(0), map[int64]int64{}, map[int64]int64{}, map[link]int64{}, map[string]int64{}
	for w, all := range came {
		pv += int64(len(all))
		fresh[all[0]]++
		for i, day := range all {
			if days[day]++; i > 0 {
				links[link{day, all[i-1]}]++
			}
			of.brings(tags, uri, w.ip, day, i == 0)
		}
	}
	should := map[int64]string{}
	for day := range days {
		should[day] = fmt.Sprint(days[day], " visitors, ", fresh[day], " new")
	}
	assert.Equal(m, int64(len(came)), is.uv, "%s: uv", name)
	assert.Equal(m, pv, is.pv, "%s: pv", name)
	assert.Equal(m, should, is.days, "%s: days", name)
	assert.Equal(m, links, is.links, "%s: returns", name)
	maps.DeleteFunc(is.tags, func(_ string, n int64) bool { return n == 0 }) // values without new visitors
	assert.Equal(m, tags, is.tags, "%s: tags", name)
	m.compareHots(name, is, o)
	m.compareRanks(name, is, o, came)
	m.compareUniques(of, uri, came)
}

// brings adds the tags of a visitor of a target on a day.
func (t tenant) brings(tags map[string]int64, uri, ip string, day int64, isNew bool) {
	add := func(tag string) {
		tags[fmt.Sprint(day, " ", tag)]++
		if isNew && !strings.HasPrefix(tag, "campaign") {
			tags["new "+tag]++
		}
	}
	if source := sourceOf(ip); source != "" {
		add("source " + source)
	}
	if campaign := t.campaignOf(ip, day); campaign != "" {
		add("campaign " + campaign)
	}
	switch {
	case strings.Contains(uri, "/"): // pages have no hours
	case t.told:
		add("hour " + timeOf(day).Format("15"))
	default:
		add("hour ")
	}
}

// daysOf returns the days on which a visitor visited a target: the given days of their visits. If the visits have
// none, it returns the days with a row, after checking that each is the day of a visit and each visit has one.
func (m *model) daysOf(of tenant, name string, o *target, w who) []int64 {
	days := map[int64]bool{}
	if of.told {
		for _, s := range o.came[w] {
			days[s.from] = true
		}
		for _, s := range o.mayBe[w] {
			assert.True(m, days[s.from], "%s: nobody knows whether %v came on day %d", name, w, s.from)
		}
		return slices.Sorted(maps.Keys(days))
	}
	days = o.rows[w]
	for _, s := range o.came[w] {
		assert.True(m, s.has(days), "%s: %v came on a day of %v, not on %v", name, w, s, days)
	}
	for day := range days {
		explained := slices.ContainsFunc(slices.Concat(o.came[w], o.mayBe[w]), func(s span) bool { return s.from <= day && day <= s.to })
		assert.True(m, explained, "%s: %v did not come on day %d", name, w, day)
	}
	return slices.Sorted(maps.Keys(days))
}

func (s span) has(days map[int64]bool) bool {
	for day := s.from; day <= s.to; day++ {
		if days[day] {
			return true
		}
	}
	return false
}

// compareHots compares the visits of each day with those certainly, or possibly, on it.
func (m *model) compareHots(name string, is *numbers, o *target) {
	for day := range m.today.Load() + 3 {
		least, most := int64(0), int64(0)
		for s, n := range o.days {
			if s == (span{day, day}) {
				least += n
			}
			if s.from <= day && day <= s.to {
				most += n
			}
		}
		for s, n := range o.perhapsDays {
			if s.from <= day && day <= s.to {
				most += n
			}
		}
		assert.True(m, least <= is.hots[day] && is.hots[day] <= most, "%s: on day %d there were %d visits, not %d to %d", name, day, is.hots[day],
			least, most)
	}
}

// compareRanks checks that ranks are 1 to uv, that each visitor has the rank in their answers, and that the other ranks are
// those of erased visitors.
func (m *model) compareRanks(name string, is *numbers, o *target, came map[who][]int64) {
	all := append(slices.Collect(maps.Values(is.ranks)), is.erased...)
	slices.Sort(all)
	for i, rank := range all {
		assert.Equal(m, int64(i+1), rank, "%s: ranks have a gap, or one is there twice", name)
	}
	assert.Len(m, all, len(came), "%s: ranks", name)
	for w := range came {
		rank, answered := o.ranks[w]
		if stored, is := is.ranks[w.ip], m.lives[w.ip] == w.life; is {
			assert.Positive(m, stored, "%s: %v has no rank", name, w)
			assert.True(m, !answered || rank == stored, "%s: %v was answered rank %d, and has %d", name, w, rank, stored)
			continue
		}
		assert.True(m, !answered || slices.Contains(is.erased, rank), "%s: %v was erased and has rank %d", name, w, rank)
	}
	for ip := range is.ranks {
		assert.Contains(m, came, who{ip, m.lives[ip]}, "%s: who should not be there", name)
	}
}

// mostRanges limits the number of ranges of days that are compared for each target.
const mostRanges = 500

// compareUniques compares the number of visitors in each range of days.
func (m *model) compareUniques(of tenant, uri string, came map[who][]int64) {
	var ranges []span
	last := m.today.Load() + 2
	for from := range last {
		for to := from; to < last; to++ {
			ranges = append(ranges, span{from, to})
		}
	}
	r := rand.New(rand.NewPCG(m.seed, 0))
	r.Shuffle(len(ranges), func(i, j int) { ranges[i], ranges[j] = ranges[j], ranges[i] })
	ranges = ranges[:min(len(ranges), mostRanges)]
	var from, to []int32
	for _, s := range ranges {
		from, to = append(from, dayID(s.from)), append(to, dayID(s.to))
	}
	are := dbtest.Column[int64](m, m.own, `
		SELECT u.uniques
		FROM unnest($3::integer[], $4::integer[]) WITH ORDINALITY AS r (from_day, to_day, place)
		CROSS JOIN LATERAL report.uniques($1, $2::text, r.from_day, r.to_day) AS u
		WHERE u.exact
		ORDER BY r.place`, of.name, uri, from, to)
	if !assert.Len(m, are, len(ranges), "%s: not all uniques are exact", uri) {
		return
	}
	for i, s := range ranges {
		n := int64(0)
		for _, days := range came {
			if slices.ContainsFunc(days, func(day int64) bool { return s.from <= day && day <= s.to }) {
				n++
			}
		}
		assert.Equal(m, n, are[i], "%s %s: uniques of days %d to %d", of.name, uri, s.from, s.to)
	}
}

// dayID returns a day of the storm as stored in the tables.
func dayID(day int64) int32 {
	id, _ := strconv.ParseInt(firstDay.AddDate(0, 0, int(day)).Format("20060102"), 10, 32) // digits only
	return int32(id)
}
