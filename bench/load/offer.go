package load

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"footfall/bench"
)

// offerConnections are those over which visits are offered: more than are under way at a time, as
// far as each is answered within a fraction of a second.
const offerConnections = 2000

// Offered is what became of visits that came at a rate.
type Offered struct {
	Measure
	Worst time.Duration // p99 of the worst second
	Later int64         // answered 202
}

// Offer sends the visits of a sequence at a rate. Each must be counted, or accepted. early is
// called when a fifth has been sent.
func Offer(ctx context.Context, url string, sequence []Arrival, headers []string, perSecond float64, early func()) (Offered, error) {
	var tails [][]byte // of the requests in turns, behind the address
	for _, set := range headers {
		tails = append(tails, []byte(" HTTP/1.1\r\nHost: "+HostOf(url)+"\r\n"+strings.ReplaceAll(set, "\t", "\r\n")+"\r\n\r\n"))
	}
	pages := make([]string, Pages)
	for n := range pages {
		pages[n] = "&uri=http://" + PageURI(n)
	}
	var later atomic.Int64
	s := Steady{URL: url, Requests: len(sequence), PerSecond: perSecond, Connections: offerConnections,
		Request: func(to []byte, n int) []byte {
			if n == len(sequence)/5 {
				early()
			}
			a := sequence[n]
			to = Address(int(a.Visitor)).AppendTo(append(to, "GET /visit?app=demo&ip="...))
			return append(append(to, pages[a.Page]...), tails[n%len(tails)]...)
		},
		Answered: func(n, status int) error {
			if status == http.StatusAccepted {
				later.Add(1)
				return nil
			}
			return mustBeOK(n, status)
		}}
	began := time.Now()
	if err := s.Send(ctx); err != nil {
		return Offered{}, fmt.Errorf("offer visits: %w", err)
	}
	return offered(s.Waits, time.Since(began), int(perSecond), later.Load()), nil
}

func offered(waits []time.Duration, took time.Duration, inSecond int, later int64) Offered {
	o := Offered{Later: later}
	for second := range slices.Chunk(slices.Clone(waits), max(inSecond, 100)) {
		if slices.Sort(second); len(second) >= 100 {
			o.Worst = max(o.Worst, bench.Percentile(second, 99))
		}
	}
	o.Measure = measureOf(len(waits), waits, took)
	return o
}
