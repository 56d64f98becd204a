package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"footfall/bench"
	"footfall/bench/load"
)

// visitProcess starts the contender, lets wrk visit it as often as it can, and reads its figures before it ends.
func (c *comparison) visitProcess(ctx context.Context, of contender, t task, in layout, r *Turn) (_ verdicts, err error) {
	p, err := bench.Start(ctx, of.program, func(addr, admin string) []string { return of.commandLine(addr, admin, in.address) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if of.alone {
		p.Admin = p.URL
	}
	if slices.Contains(of.arguments, "on") || of.program != "" { // it has a filter
		if err := p.Shows(ctx, bench.MetricFilterReady, 1); err != nil {
			return nil, err
		}
	}
	logged, err := c.server.WAL(ctx)
	if err != nil {
		return nil, err
	}
	m, sent, err := c.send(ctx, of, t, in.key, p.URL)
	if err != nil {
		return nil, err
	}
	r.Visits, r.PerSecond, r.P50Ms, r.P99Ms = int(m.Requests), m.PerSecond, bench.Ms(m.P50), bench.Ms(m.P99)
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
	ended, err := c.server.WAL(ctx)
	if err != nil {
		return nil, err
	}
	told, err := p.Figures(ctx)
	if err != nil {
		return nil, err
	}
	r.WAL = float64(ended - logged)
	r.Asked, r.Helpers, err = usedUp(told)
	return func(held standing) verdict {
		return judgeSent(sent, m.Requests, int64(c.Connections), held)
	}, err
}

// drain waits until what was accepted is counted, and returns how many visits a second that were.
func drain(ctx context.Context, p *bench.Process) (perSecond float64, err error) {
	began, first := time.Now(), -1.0
	for {
		told, err := p.Figures(ctx)
		if err != nil {
			return 0, err
		}
		waiting := told[bench.MetricAccepted] - told[bench.MetricDrained]
		if first < 0 {
			first = waiting
		}
		if waiting == 0 {
			return first / time.Since(began).Seconds(), nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// send sends visits of a task to a contender for as long as is asked for, and returns which.
func (c *comparison) send(ctx context.Context, of contender, t task, key, url string) (load.Measure, []load.Arrival, error) {
	if of.Name == calls {
		return load.Calls(ctx, url, t.sequence, c.Duration)
	}
	visits := t.Name
	if of.proxied {
		visits += proxied
	}
	if of.query != "" {
		visits += "-later"
		if err := c.script.Write(visits, t.sequence, func(a load.Arrival) string { return load.Asserted(a) + of.query }); err != nil {
			return load.Measure{}, nil, err
		}
	}
	m, err := c.script.Run(ctx, load.Job{
		URL: url, Visits: visits, Again: of.Name == constant, Headers: headers(key), Connections: c.Connections, Duration: c.Duration,
	})
	return m, m.SentOf(t.sequence), err
}

// headers are those of the requests, in turns: all name a browser, as visits do, which takes reading time whoever looks at it; and they
// show the key, if there is one.
func headers(key string) (sets []string) {
	for _, system := range []string{"Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "Linux; Android 10; K"} {
		for version := 130; version <= 142; version++ {
			set := fmt.Sprintf("User-Agent: Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", system, version)
			if key != "" {
				set = "Authorization: Bearer " + key + "\t" + set
			}
			sets = append(sets, set)
		}
	}
	return sets
}
