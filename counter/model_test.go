package counter_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/desk"
	"footfall/db/dbtest"
	"footfall/record"
)

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
	var model desk.Model
	for day := range 2 { // nobody is under way at midnight, so that each visit's day is known
		var wg sync.WaitGroup
		for c := range clients {
			rng := rand.New(rand.NewPCG(uint64(c), uint64(day)))
			wg.Go(func() {
				for range each {
					s := desk.Seen{
						Visitor: fmt.Sprintf("10.0.0.%d", rng.IntN(60)),
						Page:    fmt.Sprintf("site%d.example/%d", rng.IntN(2), rng.IntN(3)),
						Day:     int32(day), //nolint:gosec // 0 or 1
						Began:   int64(time.Since(epoch)),
					}
					var err error
					s.Answer, err = instances[rng.IntN(2)].Visit(t.Context(), counter.Request{App: "demo", IP: s.Visitor, URI: "http://" + s.Page})
					if err != nil {
						t.Error(err)
						return
					}
					s.Got = int64(time.Since(epoch))
					model.Counted(s)
				}
			})
		}
		wg.Wait()
		a.Clock.Set(a.Clock.Now().Add(24 * time.Hour))
	}

	model.Answers(t)
	a.Check(t)
	require.Equal(t, model.Totals(), a.TotalsOf(t))
}
