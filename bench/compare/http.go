package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/load"
)

// visitProcess starts the contender, visits it as often as it can, and reads its figures
// before it ends. It returns what judges the tables then.
func (c *comparison) visitProcess(ctx context.Context, of contender, t task, address string, r *Turn) (_ func(standing) Errors, err error) {
	p, err := bench.Start(ctx, cmp.Or(of.program, c.Footfall), func(addr, admin string) []string {
		return append(slices.Clone(of.arguments), "--addr", addr, "--admin-addr", admin, "--database-url", address)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if slices.Contains(of.arguments, "on") || of.program != "" { // so there is a filter
		if err := p.Shows(bench.MetricFilterReady, 1); err != nil {
			return nil, err
		}
	}
	var sent []load.Arrival
	err = r.measured(ctx, c.server, func() (m load.Measure, f bench.Figures, err error) {
		if m, sent, err = c.send(ctx, of, t, p); err != nil {
			return m, f, err
		}
		r.Memory = p.PeakMemory()
		if of.Name == inbox {
			if r.Drained, err = drain(ctx, p); err != nil {
				return m, f, err
			}
		}
		if err = p.Shows(bench.MetricWaiting, 0); err == nil {
			f, err = p.Figures(ctx)
		}
		return m, f, err
	})
	return func(s standing) Errors { return judgeSent(sent, s) }, err
}

// drain waits until what was accepted is counted, and returns how many visits a second that were.
func drain(ctx context.Context, p *bench.Process) (perSecond float64, err error) {
	before, err := p.Figures(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = bench.WaitUntil(ctx, "the inbox is empty", func() (bool, error) {
		now, err := p.Figures(ctx)
		return now[bench.MetricAccepted] == now[bench.MetricDrained], err
	})
	return (before[bench.MetricAccepted] - before[bench.MetricDrained]) / time.Since(began).Seconds(), err
}

// send sends visits of a task to a contender for as long as is asked for, and returns which.
func (c *comparison) send(ctx context.Context, of contender, t task, p *bench.Process) (load.Measure, []load.Arrival, error) {
	if of.Name == calls {
		return load.Calls(ctx, p.URL, t.sequence, c.Duration)
	}
	query := ""
	if of.Name == inbox {
		query = "&answer=later"
	}
	return load.Visits(ctx, p.URL, t.sequence, ends(query), c.Connections, c.Duration)
}

// ends are those of the requests, in turns, which take reading time whoever looks at them: all name
// a browser and a language, and half of them a page that led to this one, of few sites mostly.
func ends(query string) (all []load.End) {
	languages := []string{"en-US,en;q=0.9", "de-DE,de;q=0.9,en;q=0.8", "zh-CN,zh;q=0.9"}
	sources := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.5, 1, 99) //nolint:gosec // the same each time
	for n := range 240 {
		end := load.End{Query: query}
		if n%2 == 0 {
			end.Query += fmt.Sprintf("&referrer=https://source-%d.example/", sources.Uint64())
		}
		agent := strings.ReplaceAll(generate.Agents[n%6], "140", strconv.Itoa(90+n%53))
		end.Headers = "User-Agent: " + agent + "\r\nAccept-Language: " + languages[n%len(languages)] + "\r\n"
		all = append(all, end)
	}
	return all
}
