package counter_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// people is a model of the links and visits, derived only from the rules. Changes of links and visits take turns, so that each
// visit has one expected answer despite concurrency.
type people struct {
	rows   map[string]*personRow
	period int
	eras   map[string]int // the number of erasures of an id
	model  desk.Model
	mu     sync.Mutex
	ranks  map[string]int64 // by target and visitor, from answers
}

// personRow is the state of an id.
type personRow struct {
	is   string // "": it is a person
	tags tag.Set
	used int // the last period in which it was used
}

// ided is a visit of an id to be counted.
type ided struct {
	id, page, visitID string
	day               int32
	at                string
	brings            tag.Set
}

// way returns the ids from one id to its person, and the person.
func (p *people) way(id string) (way []string, person string) {
	for row := p.rows[id]; row != nil; row = p.rows[id] {
		if way = append(way, id); row.is == "" {
			break
		}
		id = row.is
	}
	return way, id
}

func (p *people) use(id string) (person string) {
	way, person := p.way(id)
	for _, at := range way {
		p.rows[at].used = p.period
	}
	return person
}

// row returns the row of an id, after adding one as a person if there was none.
func (p *people) row(id string) *personRow {
	if p.rows[id] == nil {
		p.rows[id] = &personRow{used: p.period}
	}
	return p.rows[id]
}

// turn starts a period: ids last used before the previous period are deleted.
func (p *people) turn(t *testing.T, in *instance) {
	in.turn(t)
	p.period++
	maps.DeleteFunc(p.rows, func(_ string, row *personRow) bool { return row.used < p.period-1 })
}

// tags returns the tags of a person.
func (p *people) tags(person string) tag.Set {
	if row := p.rows[person]; row != nil {
		return row.tags
	}
	return nil
}

// links links one id to another. It expects a refusal if an id would lead to itself, or be more than four steps from
// the person.
func (p *people) links(t *testing.T, in *instance, id, is string) {
	if id == is {
		return
	}
	fault := in.says(t, app.Link{ID: id, PersonID: is})
	p.use(id)
	p.use(is)
	way, person := p.way(is)
	steps := len(way)
	if p.rows[person] == nil {
		steps++
	}
	longest := 0
	for from := range p.rows {
		way, _ := p.way(from)
		longest = max(longest, slices.Index(way, id))
	}
	switch row := p.rows[id]; {
	case row != nil && row.is == is:
		require.Empty(t, fault)
	case person == id || slices.Contains(way, id):
		require.Contains(t, fault, "form a circle")
	case longest+steps > 4:
		require.Contains(t, fault, "more than 4 links")
	default:
		require.Empty(t, fault)
		p.row(person)
		row = p.row(id)
		row.is, row.tags = is, nil
	}
}

// has sets the tags of a person by any of the person's ids.
func (p *people) has(t *testing.T, in *instance, id string, has tag.Set) {
	in.has(t, id, has...)
	if person := p.use(id); len(has) > 0 {
		p.row(person).tags = has
	} else if p.rows[person] != nil {
		p.rows[person].tags = nil
	}
}

// erases erases a person with all ids.
func (p *people) erases(t *testing.T, in *instance, id string) {
	again(t, func() error { _, err := in.Admin.EraseVisitor(t.Context(), "demo", id); return err })
	_, person := p.way(id)
	all := []string{person}
	for other := range p.rows {
		if _, is := p.way(other); is == person {
			all = append(all, other)
		}
	}
	slices.Sort(all)
	for _, other := range slices.Compact(all) {
		delete(p.rows, other)
		p.eras[other]++
	}
}

// visitor returns the visitor that an id counts as now.
func (p *people) visitor(id string) string {
	_, person := p.way(id)
	return fmt.Sprintf("%s#%d", person, p.eras[person])
}

// counts notes a visit that is counted. Concurrent visits of one person have the same tags, so that it does not
// matter which one is first.
func (p *people) counts(v ided) {
	person := p.use(v.id)
	tags := slices.Clone(v.brings)
	for _, own := range p.tags(person) {
		if !slices.ContainsFunc(tags, func(t tag.Tag) bool { return t.Name == own.Name }) {
			tags = append(tags, own)
		}
	}
	seen := desk.Seen{Visitor: person, Era: p.eras[person], Page: v.page, Day: v.day}
	for _, has := range tags {
		seen.SiteTag = append(seen.SiteTag, has.Name+" "+has.Value)
	}
	p.model.Counted(seen)
}

// ranked notes the ranks in the answer to a visit. They must equal the ranks in earlier answers to the same visitor.
func (p *people) ranked(t *testing.T, v ided, answer visit.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for target, rank := range map[string]int64{"a": answer.Site.Rank, v.page: answer.Page.Rank} {
		key := fmt.Sprint(target, " ", p.visitor(v.id))
		if p.ranks[key] == 0 {
			p.ranks[key] = rank
		}
		assert.Equal(t, p.ranks[key], rank, key)
	}
}

// again repeats a call during which connections may be cut, until it succeeds.
func again(t *testing.T, do func() error) {
	t.Helper()
	require.Eventually(t, func() bool { return do() == nil }, dbtest.Patience, dbtest.Tick)
}

func (v *ided) request() counter.Request {
	return counter.Request{App: "demo", Visitor: v.id, URI: "http://" + v.page, ID: v.visitID, At: v.at, Tags: v.brings}
}

// send counts a visit, and repeats it after an unknown outcome.
func (p *people) send(t *testing.T, in *instance, v ided) {
	for {
		answer, err := in.Visit(context.Background(), v.request())
		if verr := (*visit.Error)(nil); errors.As(err, &verr) && (verr.Kind == visit.Unavailable || verr.Kind == visit.Lost) {
			continue
		}
		if assert.NoError(t, err) && !answer.NoNumbers {
			p.ranked(t, v, answer)
		}
		return
	}
}

// sendChunk counts visits in a chunk, and repeats it after an unknown outcome.
func (p *people) sendChunk(t *testing.T, in *instance, some []ided) {
	var items []counter.Item
	for _, v := range some {
		item := counter.Item{Visitor: v.id, URI: "http://" + v.page, ID: v.visitID, Tags: v.brings}
		if v.at != "" {
			item.At, _ = visit.ParseTime(v.at)
		}
		items = append(items, item)
	}
	for left := true; left; {
		left = false
		for i, got := range in.chunk(t, items) {
			switch {
			case got.Err == nil:
				p.ranked(t, some[i], got.Answer)
			case !errors.Is(got.Err, record.ErrRepeated) && !errors.Is(got.Err, record.ErrNumbersLost):
				left = true
			}
		}
	}
}

// chunk returns a chunk of items, if the app can be read now.
func (in *instance) chunk(t *testing.T, items []counter.Item) []record.Result {
	g, err := in.AuthorizeCounting(context.Background(), counter.Request{App: "demo", Peer: peer})
	if err != nil {
		return []record.Result{{Err: err}}
	}
	var steps []record.Step
	at := &record.Position{}
	for i, item := range items {
		v, _, err := g.Visit(context.Background(), item)
		if err != nil {
			return []record.Result{{Err: err}}
		}
		steps = append(steps, record.Step{Visit: &v, Position: at, Next: int64(i) + 1})
	}
	return g.Recorder().RecordChunk(steps)
}

// finds looks up the person of an id, as GET /people does.
func (p *people) finds(t *testing.T, in *instance, id string) {
	whom := in.finds(t, id)
	way, _ := p.way(id)
	person := p.use(id)
	if len(way) == 0 {
		require.False(t, whom.Person.IsValid())
		return
	}
	require.Equal(t, in.stored(t, person), whom.Person)
	require.Equal(t, p.tags(person).Text(), whom.Tags.Text())
}

// asks checks the numbers returned for an id against the model.
func (p *people) asks(t *testing.T, in *instance, id, page string) {
	var answer visit.Answer
	again(t, func() (err error) {
		answer, err = in.Counts(t.Context(), counter.Request{App: "demo", Visitor: id, URI: "http://" + page})
		return err
	})
	all := p.model.All()
	for target, got := range map[string]visit.Counts{"a": answer.Site, page: answer.Page} {
		o := all[target]
		want := visit.Counts{UV: int64(len(o.Came)), PV: o.PV(), Hot: o.Hot, Rank: got.Rank}
		require.Equal(t, want, got, "%s of %s", target, id)
		require.Equal(t, o.Came[p.visitor(id)] != nil, got.Rank > 0, "%s of %s", target, id)
	}
	p.ranked(t, ided{id: id, page: page}, answer) // this may be the first answer with the rank
}

// isThere compares rows and sums of the tables with the model.
func (p *people) isThere(t *testing.T, in *instance, ids []string) {
	stored := map[string]string{}
	for _, id := range ids {
		stored[id] = in.stored(t, id).String()
	}
	var want, visits []string
	ranks := map[string]int64{}
	for _, id := range ids {
		if row := p.rows[id]; row != nil {
			is := "<nil>"
			if row.is != "" {
				is = stored[row.is]
			}
			want = append(want, fmt.Sprintln(stored[id], is, row.used == p.period, row.tags.Text()))
		}
	}
	require.ElementsMatch(t, want, in.Table(t, `
		SELECT DISTINCT ON (id) host(id), host(person), period = people_period(),
		       coalesce((SELECT string_agg(t.name || E'\x1f' || t.value, E'\n' ORDER BY t.name) || E'\n' FROM tags AS t
		       WHERE t.id = ANY (p.tag_ids)), '')
		FROM people AS p
		ORDER BY id, period = people_period() DESC`))

	for target, o := range p.model.All() {
		for visitor, days := range o.Came {
			id, era, _ := strings.Cut(visitor, "#")
			for day := range days {
				if era == fmt.Sprint(p.eras[id]) {
					visits = append(visits, fmt.Sprint(target, " ", stored[id], " ", day))
					ranks[target+" "+stored[id]] = p.ranks[fmt.Sprint(target, " ", visitor)]
				}
			}
		}
	}
	var there []string
	for _, line := range in.Table(t, `
		SELECT p.uri, host(v.ip), v.day_id, w.rank
		FROM visits AS v JOIN pages AS p ON p.id = v.page_id JOIN visitors AS w ON w.page_id = v.page_id AND w.ip = v.ip`) {
		f := strings.Fields(line)
		there = append(there, strings.Join(f[:3], " "))
		if rank := ranks[f[0]+" "+f[1]]; rank != 0 { // otherwise every answer with it was lost
			require.Equal(t, fmt.Sprint(rank), f[3], line)
		}
	}
	require.ElementsMatch(t, visits, there)

	require.Equal(t, sums(t, p.model.Tags()), sums(t, in.TagsOf(t)))

	of := map[string][]string{"page": {"/0", "/1", "/2", "/*"}}
	for _, name := range []string{"age", "plan"} {
		of[name] = append(desk.Column[string](t, in.Desk, `
			SELECT value
			FROM tags
			WHERE name = $1
			  AND id IN (SELECT unnest(v.tags) FROM visits AS v JOIN pages AS p ON p.id = v.page_id WHERE p.uri = 'a')`, name), "(none)")
	}
	for range dbtest.LongOrShort(200, 100) {
		conditions := desk.AnyConditions(of)
		require.Equal(t, p.model.Where("a", p.eras, 0, 30000101, conditions...),
			in.WhereOf(t, "a", 0, 30000101, []string{"age", "plan"}, conditions...), conditions)
	}
}

// sums returns the visits of each tag by day, and its newcomers over all days, because the first of several
// concurrent visits is not determined.
func sums(t *testing.T, lines []string) map[string]int {
	all := map[string]int{}
	for _, line := range lines {
		if f := strings.Fields(line); f[2] != tag.Hour {
			var pv, newcomers int
			_, err := fmt.Sscan(f[4]+" "+f[5], &pv, &newcomers)
			require.NoError(t, err)
			all[strings.Join(f[:4], " ")] += pv
			all["newcomers "+f[0]+" "+f[2]+" "+f[3]] += newcomers
		}
	}
	return all
}

// Ids are linked, linked again, tagged, looked up and erased while periods pass. In between, two instances count
// their visits in every way, with connections being cut and one instance restarted now and then. Links, numbers,
// rows, ranks, sums by tag and filtered numbers equal the model's.
func TestPeopleEqualTheModel(t *testing.T) { everyWay(t, testPeopleEqualTheModel) }

func testPeopleEqualTheModel(t *testing.T, w way) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	a, b := w.newPeople(t, counter.Options{})
	p := &people{rows: map[string]*personRow{}, eras: map[string]int{}, ranks: map[string]int64{}}
	var ids []string
	for i := range 24 {
		ids = append(ids, fmt.Sprint("id:", i))
	}
	any := func() string { return ids[r.IntN(len(ids))] }
	values := []string{"x", "y", "z"}
	visits := 0
	visitOf := func(daysAgo int) ided {
		visits++
		at := a.Clock.Now().AddDate(0, 0, -daysAgo)
		v := ided{id: any(), page: fmt.Sprint("a/", r.IntN(3)), visitID: fmt.Sprint(visits), day: visit.DayOf(at, time.UTC)}
		if daysAgo > 0 {
			v.at = at.Format(time.RFC3339)
		}
		return v
	}
	var accepted []ided
	end := func() {}
	drain := func() { // the inbox's visits count for the present persons
		end()
		a.Drained(t)
		for _, v := range accepted {
			p.counts(v)
		}
		accepted = nil
	}
	var cuts atomic.Int64
	for round := range dbtest.FromEnv(t, "FOOTFALL_PEOPLE_ROUNDS", dbtest.LongOrShort(20, 6)) {
		for range 1 + r.IntN(15) {
			in := []*instance{a, b}[r.IntN(2)]
			switch r.IntN(20) {
			default:
				p.links(t, in, any(), any())
			case 0, 1, 2:
				has := tag.Set{{Name: "age", Value: values[r.IntN(3)]}, {Name: "plan", Value: values[r.IntN(3)]}}
				p.has(t, in, any(), has[:r.IntN(3)])
			case 3, 4:
				p.finds(t, in, any())
			case 5:
				drain()
				p.erases(t, in, any())
			case 6:
				p.turn(t, a)
			}
		}
		drain()
		if r.IntN(4) == 0 {
			b.Close()
			b = w.startOn(t, a.URL, counter.Options{Options: record.Options{Clock: a.Clock.Now}})
		}

		var sent []ided
		trial := r.IntN(3)
		for range 40 {
			v := visitOf(max(0, r.IntN(5)-2))
			if _, person := p.way(v.id); len(person)%3 == trial {
				v.brings = tag.Set{{Name: "plan", Value: "trial"}}
			}
			sent = append(sent, v)
			p.counts(v)
		}
		var visitors sync.WaitGroup
		for i, some := range slices.Collect(slices.Chunk(sent, 5)) {
			in := []*instance{a, b}[i%2]
			visitors.Go(func() {
				if i%4 > 1 {
					p.sendChunk(t, in, some)
					return
				}
				for _, v := range some {
					if round%3 == 0 { // the other instance, which meets no cuts, keeps its memory
						cuts.Add(a.One(t, `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
							WHERE datname = current_database() AND application_name = 'footfall' ORDER BY state, random() LIMIT 1) AS one`))
					}
					p.send(t, in, v)
				}
			})
		}
		visitors.Wait()
		for _, id := range ids {
			p.asks(t, a, id, fmt.Sprint("a/", r.IntN(3)))
		}

		end = a.keepWaiting(t)
		for range 5 {
			v := visitOf(r.IntN(2))
			request := v.request()
			request.CountLater = true
			again(t, func() error { _, err := b.Visit(context.Background(), request); return err })
			accepted = append(accepted, v)
		}
		if r.IntN(3) == 0 {
			a.Clock.Set(a.Clock.Now().AddDate(0, 0, 1))
		}
	}
	drain()
	require.Positive(t, cuts.Load())
	for _, id := range ids {
		for page := range 3 {
			p.asks(t, a, id, fmt.Sprint("a/", page))
		}
	}
	p.isThere(t, a, ids)
	a.Check(t)
	a.checkTags(t)
	a.verified(t)
}
