package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"footfall/bench"
	"footfall/bench/load"
)

// visitProcess starts the contender, lets wrk visit it as often as it can, and reads its figures
// before it ends. It returns what judges the tables then.
func (c *comparison) visitProcess(ctx context.Context, of contender, t task, in database, r *Turn) (_ func(standing) Errors, err error) {
	if of.Name == flash {
		first, err := c.play(ctx, contenders[slices.IndexFunc(contenders, func(c contender) bool { return c.Name == both })], t)
		if err != nil {
			return nil, err
		}
		r.Sustained = first.PerSecond
	}
	program := cmp.Or(of.program, c.Footfall)
	if of.alone {
		program = "" // this one
	}
	p, err := bench.Start(ctx, program, func(addr, admin string) []string { return of.commandLine(addr, admin, in.address) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if of.alone {
		p.Admin = p.URL
	}
	if slices.Contains(of.arguments, "on") || of.program != "" { // so there is a filter
		if err := p.Shows(ctx, bench.MetricFilterReady, 1); err != nil {
			return nil, err
		}
	}
	logged, err := c.server.WAL(ctx)
	if err != nil {
		return nil, err
	}
	m, sent, err := c.send(ctx, of, t, in, p, r)
	if err != nil {
		return nil, err
	}
	r.answered(m)
	r.Memory = p.PeakMemory()
	if of.Name == constant {
		return nil, nil
	}
	if of.inbox {
		if r.Drained, err = drain(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := p.Shows(ctx, bench.MetricWaiting, 0); err != nil {
		return nil, err
	}
	figures, err := p.Figures(ctx)
	if err != nil {
		return nil, err
	}
	return func(s standing) Errors { return judgeSent(sent, m.Requests, c.Connections, s) }, c.spent(ctx, logged, figures, r)
}

// drain waits until what was accepted is counted, and returns how many visits a second that were.
func drain(ctx context.Context, p *bench.Process) (perSecond float64, err error) {
	began, first := time.Now(), -1.0
	err = bench.WaitUntil(ctx, "the inbox is empty", func() (bool, error) {
		figures, err := p.Figures(ctx)
		waiting := figures[bench.MetricAccepted] - figures[bench.MetricDrained]
		if first < 0 {
			first = waiting
		}
		return waiting == 0, err
	})
	return first / time.Since(began).Seconds(), err
}

// send sends visits of a task to a contender for as long as is asked for, and returns which.
func (c *comparison) send(ctx context.Context, of contender, t task, in database, p *bench.Process, r *Turn) (load.Measure, []load.Arrival, error) {
	switch of.Name {
	case calls:
		return load.Calls(ctx, p.URL, t.sequence, c.Duration)
	case flash:
		offered := t.sequence[:min(c.Visits, len(t.sequence))]
		m, err := load.Offer(ctx, p.URL, offered, ends("", ""), 2*r.Sustained, func() { r.Early = p.PeakMemory() })
		r.WorstMs = m.WorstMs
		c.Doing("%.0f visits/s were counted, twice as many offered: %d of %d to be counted later", r.Sustained, m.Later, m.Requests)
		return m.Measure, offered, err
	}
	return c.script.Run(ctx, load.Job{
		URL: p.URL, Name: t.Name, Visits: t.sequence, Again: of.Name == constant, Proxied: of.proxied,
		Ends: ends(of.query, in.key), Connections: c.Connections, Duration: c.Duration,
	})
}

// Browsers, each of many versions.
var browsers = []string{
	"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:%d.0) Gecko/20100101 Firefox/140.0",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/%d.5 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Mobile Safari/537.36",
}

// ends are those of the requests, in turns, which take reading time whoever looks at them: all name
// a browser and a language, and half of them a page that led to this one, of few sites mostly; and
// they show the key, if there is one.
func ends(query, key string) (all []string) {
	languages := []string{"en-US,en;q=0.9", "de-DE,de;q=0.9,en;q=0.8", "zh-CN,zh;q=0.9"}
	sources := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.5, 1, 99) //nolint:gosec // the same each time
	for n := range 240 {
		end := query
		if n%2 == 0 {
			end += fmt.Sprintf("&referrer=https://source-%d.example/", sources.Uint64())
		}
		end += "\tUser-Agent: " + fmt.Sprintf(browsers[n%len(browsers)], 90+n%53) + "\tAccept-Language: " + languages[n%len(languages)]
		if key != "" {
			end += "\tAuthorization: Bearer " + key
		}
		all = append(all, end)
	}
	return all
}
