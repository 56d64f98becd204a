package counter_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/visit"
)

// seen is one answered visit, as a client saw it.
type seen struct {
	visitor    string
	page       string
	day        int
	began, got int64 // moments, in one order for all clients
	answer     visit.Answer
}

// Hundreds of clients on few targets, two instances on one database, midnight in the middle: every
// promise is checked on the answers alone.
func TestConcurrentAnswers(t *testing.T) { everyWay(t, testConcurrentAnswers) }

func testConcurrentAnswers(t *testing.T, w way) {
	const clients = 200
	each := dbtest.LongOrShort(25, 10)
	a := w.newInstance(t, counter.Options{})
	b := w.startOn(t, a.URL, counter.Options{Options: record.Options{Clock: a.Clock.Now}})
	instances := []*instance{a, b}

	epoch := time.Now()
	all := make([][]seen, clients)
	for day := range 2 { // nobody is under way at midnight, so that each visit's day is known
		var wg sync.WaitGroup
		for c := range clients {
			rng := rand.New(rand.NewPCG(uint64(c), uint64(day)))
			wg.Go(func() {
				for range each {
					s := seen{
						visitor: fmt.Sprintf("10.0.0.%d", rng.IntN(60)),
						page:    fmt.Sprintf("http://site%d.example/%d", rng.IntN(2), rng.IntN(3)),
						day:     day,
						began:   int64(time.Since(epoch)),
					}
					var err error
					s.answer, err = instances[rng.IntN(2)].Visit(t.Context(), counter.Request{App: "demo", IP: s.visitor, URI: s.page})
					if err != nil {
						t.Error(err)
						return
					}
					s.got = int64(time.Since(epoch))
					all[c] = append(all[c], s)
				}
			})
		}
		wg.Wait()
		a.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	}

	visits := slices.Concat(all...)
	require.Len(t, visits, clients*each*2)
	bySite, byPage := map[string][]told{}, map[string][]told{}
	for _, s := range visits {
		site := s.page[:len("http://site0.example")]
		bySite[site] = append(bySite[site], told{s, s.answer.Site})
		byPage[s.page] = append(byPage[s.page], told{s, s.answer.Page})
	}
	for target, visits := range bySite {
		checkAnswers(t, target, visits)
	}
	for target, visits := range byPage {
		checkAnswers(t, target, visits)
	}
	a.Check(t)
}

// told is what one visit was told of one target.
type told struct {
	seen
	counts visit.Counts
}

// checkAnswers replays the visits of one target in the order of their hot. That order decides
// everything else: who was first, on which day, and so each number.
func checkAnswers(t *testing.T, target string, visits []told) {
	t.Helper()
	slices.SortFunc(visits, func(a, b told) int { return cmp.Compare(a.counts.Hot, b.counts.Hot) })
	ranks := map[string]int64{}
	days := map[string]bool{}
	latest := int64(0) // when the last of the earlier visits had begun
	for i, v := range visits {
		if ranks[v.visitor] == 0 {
			ranks[v.visitor] = int64(len(ranks) + 1)
		}
		days[fmt.Sprint(v.visitor, v.day)] = true
		want := visit.Counts{Hot: int64(i + 1), UV: int64(len(ranks)), PV: int64(len(days)), Rank: ranks[v.visitor]}
		require.Equal(t, want, v.counts, "%s: the visit of %s in place %d", target, v.visitor, i+1)
		require.Greater(t, v.got, latest, "%s: hot %d was answered before a visit with a lower hot began", target, v.counts.Hot)
		latest = max(latest, v.began)
	}
}
