package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/counter"
	"footfall/intake"
	"footfall/visit"
)

const (
	visitorsOfApps = 12
	singles        = 6 // clients who send visits one by one
	owners         = 2 // clients who erase the visitor whose visits they send
	strangers      = 3 // clients of apps in which anything may happen
	callers        = 2 // clients who send many visits at once
	importers      = 2
)

// begin starts the clients and the commands, and returns the function that stops them.
func (s *storm) begin() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	s.underWay = make([]atomicDay, singles+owners+strangers+callers+importers)
	for client := range s.underWay {
		s.underWay[client].Store(idle)
	}
	client := 0
	for _, kind := range []struct {
		n     int
		every time.Duration
		do    func(client int, r *rand.Rand)
	}{
		{singles, 2 * time.Millisecond, s.single}, {owners, 20 * time.Millisecond, s.owner}, {strangers, 2 * time.Millisecond, s.stranger},
		{callers, 20 * time.Millisecond, s.caller}, {importers, 300 * time.Millisecond, s.importer()},
	} {
		for range kind.n {
			me := client
			s.part(ctx, &all, kind.every, func(r *rand.Rand) {
				s.underWay[me].Store(s.today.Load())
				kind.do(me, r)
				s.underWay[me].Store(idle)
			})
			client++
		}
	}
	s.part(ctx, &all, s.day, func(*rand.Rand) { s.passDay() })
	s.part(ctx, &all, s.day/2, s.retain)
	s.part(ctx, &all, 80*time.Millisecond, s.eraseSomebody)
	for range 2 { // so that two page deletions of one app may meet
		s.part(ctx, &all, 40*time.Millisecond, s.deletePage)
	}
	s.part(ctx, &all, 100*time.Millisecond, s.moveIn)
	s.part(ctx, &all, 100*time.Millisecond, s.set)
	s.part(ctx, &all, 700*time.Millisecond, s.replaceBrief)
	return func() { cancel(); all.Wait() }
}

// trip is a visit from its client's view.
type trip struct {
	tenant
	who  who
	uri  string
	id   string // "": none
	at   int64  // the given day; live otherwise
	from int64  // the day on which it was first sent
}

const present = -1

// sources and campaigns are the tags of visits. All visits of a visitor have the same source, and all with a given
// time have the same campaign on a day, whichever is counted first.
var (
	sources   = []string{"", "news.example", "wiki.example"}
	campaigns = []string{"", "spring", "autumn"}
)

func sourceOf(ip string) string { return sources[int(ip[len(ip)-1])%len(sources)] }

func (t tenant) campaignOf(ip string, day int64) string {
	if !t.told {
		return ""
	}
	return campaigns[(int(ip[len(ip)-1])/len(sources)+int(day))%len(campaigns)]
}

// referrer returns the page that a visit gives as its source.
func (t *trip) referrer() string {
	if source := sourceOf(t.who.ip); source != "" {
		return "https://" + source + "/" + t.id
	}
	return ""
}

// query returns the query of the visit's address.
func (t *trip) query() string { return "?utm_campaign=" + t.campaignOf(t.who.ip, t.at) }

func (t *trip) request() counter.Request {
	q := counter.Request{App: t.name, IP: t.who.ip, URI: t.uri + t.query(), Referrer: t.referrer(), ID: t.id, OnlyCounted: true}
	if t.at != present {
		q.At = timeOf(t.at).Format(time.RFC3339)
	}
	return q
}

// timeOf returns a time on a day, always before noon.
func timeOf(day int64) time.Time { return firstDay.AddDate(0, 0, int(day)).Add(-time.Hour) }

// anyTrip returns a random visit to an app that is exact.
func (s *storm) anyTrip(r *rand.Rand, ip string) trip {
	t := trip{tenant: live, who: who{ip: ip}, uri: uri(r.IntN(sites), r.IntN(pages)), at: present, from: s.today.Load()}
	if r.IntN(2) == 0 {
		t.tenant = told
	}
	if t.told || r.IntN(4) == 0 {
		t.at = max(0, t.from-r.Int64N(1+back))
	}
	if t.at < t.from && t.at != present {
		s.some("late visits", 1)
	}
	return t
}

func anyIP(r *rand.Rand) string { return fmt.Sprintf("192.0.2.%d", r.IntN(visitorsOfApps)) }

// ignored is a visitor that apps ignore at times.
const ignored = "203.0.113.9"

// single sends a visit until it is answered.
func (s *storm) single(_ int, r *rand.Rand) {
	t := s.anyTrip(r, anyIP(r))
	switch r.IntN(8) {
	case 0:
		t.who.ip = ignored
		s.send(r, &t)
	case 1, 2:
		s.send(r, &t)
	case 3: // possibly of a day that is no longer kept
		if t.told {
			t.at = max(0, t.from-r.Int64N(keeps+4))
		}
		s.sendWithID(r, &t)
	default:
		s.sendWithID(r, &t)
	}
}

// owner sends visits of a visitor that no other client sends, and erases the visitor. Later visits are another
// visitor's.
func (s *storm) owner(client int, r *rand.Rand) {
	for range 1 + r.IntN(4) {
		t := s.anyTrip(r, fmt.Sprintf("198.51.100.%d", client))
		t.tenant, t.at = told, max(0, t.from-r.Int64N(1+back))
		t.who.life = s.model.life(t.who.ip)
		s.sendWithID(r, &t)
	}
	ip := fmt.Sprintf("198.51.100.%d", client)
	s.untilAnswered("erase a visitor", func() bool {
		_, err := s.process().EraseVisitor(context.Background(), told.name, ip)
		s.command("erase a visitor", err)
		return err == nil
	})
	s.model.erased(ip)
	s.some("visitors erased", 1)
}

// send sends a visit without an id until it is answered. If the outcome of an attempt is unknown, one more visit may
// have been counted.
func (s *storm) send(r *rand.Rand, t *trip) {
	s.untilAnswered("a visit", func() bool {
		q := t.request()
		q.CountLater = r.IntN(4) == 0
		a, err := s.any(r).now.Load().Visit(context.Background(), q)
		switch {
		case err == nil && a.Skipped != "":
			assert.Equal(s, ignored, t.who.ip)
			s.some("visits skipped", 1)
			return true
		case err == nil:
			assert.False(s, a.Repeated)
			s.taken(&q, a)
			s.model.counted(t, s.today.Load(), numbersOf(a))
			return true
		case kindOf(err) == visit.Lost:
			s.model.perhaps(t, s.today.Load())
		default:
			s.mayFail(err, t)
		}
		return false
	})
}

// sendWithID sends a visit with an id to one instance, or to two at once, until one of them has answered. Then it may
// send it once more, which counts nothing.
func (s *storm) sendWithID(r *rand.Rand, t *trip) {
	t.id = "visit-" + s.number()
	sent, done, again := 0, false, r.IntN(3) == 0
	s.untilAnswered("a visit with an id", func() bool {
		var both sync.WaitGroup
		answers := make([]answered, 1+r.IntN(2))
		for i := range answers {
			q, in := t.request(), s.any(r)
			q.CountLater = r.IntN(4) == 0
			answers[i].q = q
			both.Go(func() { answers[i].Answer, answers[i].err = in.now.Load().Visit(context.Background(), q) })
		}
		both.Wait()
		sent += len(answers)
		refused := false
		for _, a := range answers {
			switch {
			case a.err == nil && a.Repeated:
				assert.Greater(s, sent, 1, "%+v was counted before it was sent", t)
				s.some("visits repeated", 1)
				done = true
				if n := numbersOf(a.Answer); n != nil {
					s.model.heard(t, *n)
				}
			case a.err == nil:
				assert.Empty(s, a.Skipped)
				s.taken(&a.q, a.Answer)
				done = true
				if n := numbersOf(a.Answer); n != nil {
					s.model.counts(t, *n)
				}
			case kindOf(a.err) == visit.Invalid && t.told && s.today.Load()-t.at >= keeps:
				refused = true
			default:
				s.mayFail(a.err, t)
			}
		}
		if done && again {
			again = false
			return false
		}
		if refused && !done && s.wasCounted(t) {
			done = true
		}
		if done {
			s.model.counted(t, s.today.Load(), nil)
		} else if refused {
			s.some("visits too late", 1)
		}
		return done || refused
	})
}

type answered struct {
	visit.Answer
	q   counter.Request
	err error
}

// wasCounted checks whether a visit that is refused now was counted, or accepted, at an earlier attempt whose answer
// was lost.
func (s *storm) wasCounted(t *trip) (known bool) {
	s.untilAnswered("whether a visit was counted", func() bool {
		err := s.own.QueryRow(context.Background(), `SELECT EXISTS (SELECT FROM visit_ids WHERE id = $1)`, t.id).Scan(&known)
		return err == nil
	})
	return known
}

// taken notes the outcome of a visit.
func (s *storm) taken(q *counter.Request, a visit.Answer) {
	switch {
	case q.CountLater:
		assert.True(s, a.Later)
		s.some("visits into the inbox", 1)
	case a.Later:
		s.some("visits over into the inbox", 1)
	}
}

// numbersOf returns the numbers in the answer to a visit, or nil if the visit will be counted later or the numbers were lost.
func numbersOf(a visit.Answer) *visit.Answer {
	if a.Later || a.NoNumbers {
		return nil
	}
	return &a
}

// mayFail fails the test unless the storm may cause such an error.
func (s *storm) mayFail(err error, t *trip) {
	kind := kindOf(err)
	assert.True(s, kind == visit.Unavailable || kind == visit.Lost || t.name == brief.name && kind == visit.NotFound, "%+v: %v", t, err)
}

// stranger sends one visit to an app in which anything may happen. Some ids are repeated.
func (s *storm) stranger(_ int, r *rand.Rand) {
	t := trip{tenant: wild[r.IntN(len(wild))], who: who{ip: anyIP(r)}, uri: uri(r.IntN(sites), r.IntN(pages)), at: present}
	if r.IntN(3) == 0 {
		t.id = fmt.Sprint(r.IntN(1000))
	}
	if r.IntN(8) == 0 {
		t.at = max(0, s.today.Load()-r.Int64N(3))
	}
	q := t.request()
	q.CountLater = r.IntN(4) == 0
	a, err := s.any(r).now.Load().Visit(context.Background(), q)
	switch {
	case err == nil && a.Repeated:
		assert.NotEmpty(s, q.ID)
	case err == nil:
		s.taken(&q, a)
		s.model.countedWildly(&t, a)
	case kindOf(err) == visit.Lost:
		s.model.perhapsWildly(&t)
	case kindOf(err) == visit.Invalid && t.at != present:
	default:
		s.mayFail(err, &t)
	}
}

// caller sends many visits in one call, to one instance or to two, until each is counted. The visits have ids, or the
// call has a key, or both.
func (s *storm) caller(_ int, r *rand.Rand) {
	key, ids := "", r.IntN(3) == 0
	if !ids || r.IntN(2) == 0 {
		key = "call " + s.number()
	}
	trips := make([]trip, 1+r.IntN(60))
	items := make([]map[string]string, len(trips))
	of := s.anyTrip(r, "").tenant
	for i := range trips {
		t := s.anyTrip(r, anyIP(r))
		if t.tenant = of; t.told && t.at == present {
			t.at = t.from
		}
		items[i] = map[string]string{"uri": t.uri + t.query(), "ip": t.who.ip, "referrer": t.referrer()}
		if ids {
			t.id = "item-" + s.number()
			items[i]["id"] = t.id
		}
		if t.at != present {
			items[i]["at"] = timeOf(t.at).Format(time.RFC3339)
		}
		trips[i] = t
	}
	body, err := json.Marshal(items)
	if !assert.NoError(s, err) {
		return
	}
	counted, known := make([]int, len(trips)), make([]bool, len(trips))
	s.some("calls", 1)
	s.untilAnswered("a call", func() bool {
		var both sync.WaitGroup
		results := make([][]intake.Result, 1+r.IntN(2))
		for i := range results {
			in := s.any(r)
			both.Go(func() { results[i] = s.call(in, of, key, string(body)) })
		}
		both.Wait()
		if len(results) > 1 {
			s.some("calls to two instances", 1)
		}
		for _, result := range results {
			s.heardOf(trips, result, counted, known)
		}
		for i := range trips {
			if !known[i] {
				return false
			}
		}
		for i := range trips {
			s.model.counted(&trips[i], s.today.Load(), nil)
		}
		return true
	})
}

func (s *storm) call(in *instance, of tenant, key, body string) []intake.Result {
	c := in.now.Load()
	counting, err := c.AuthorizeCounting(context.Background(), counter.Request{App: of.name, OnlyCounted: true})
	if err == nil {
		var results []intake.Result
		results, _, err = in.desk.Count(context.Background(), intake.Call{Counting: counting, Body: strings.NewReader(body), Key: key})
		if err == nil {
			return results
		}
	}
	kind := kindOf(err)
	assert.True(s, kind == visit.Unavailable || kind == visit.Lost, "a call: %v", err)
	return nil
}

// heardOf processes the results of a call.
func (s *storm) heardOf(trips []trip, results []intake.Result, counted []int, known []bool) {
	for i, result := range results {
		switch result.Outcome {
		case intake.Counted:
			counted[i]++
			assert.Equal(s, 1, counted[i], "%+v was counted again", trips[i])
			known[i] = true
			if n := numbersOf(result.Answer); n != nil {
				s.model.counts(&trips[i], *n)
			}
		case intake.Repeated:
			s.some("visits repeated", 1)
			known[i] = true
			if n := numbersOf(result.Answer); n != nil {
				s.model.heard(&trips[i], *n)
			}
		default:
			assert.NotEqual(s, intake.Skipped, result.Outcome)
		}
	}
}
