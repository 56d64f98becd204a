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

// visitProcess starts the contender, lets wrk visit it as often as it can, and reads its figures
// before it ends.
func (c *comparison) visitProcess(ctx context.Context, of contender, t task, in layout, r *Turn) (_ verdicts, err error) {
	if of.Name == flash {
		if r.Sustained, err = c.sustained(ctx, t); err != nil {
			return nil, err
		}
	}
	p, err := bench.Start(ctx, c.program(of), func(addr, admin string) []string { return of.commandLine(addr, admin, in.address) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if of.alone {
		p.Admin = p.URL
	}
	if err := of.filterReady(ctx, p); err != nil {
		return nil, err
	}
	logged, err := c.server.WAL(ctx)
	if err != nil {
		return nil, err
	}
	m, sent, err := c.send(ctx, of, t, in, p, r)
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

// program is what a contender's process runs; "": this program.
func (c *comparison) program(of contender) string {
	switch {
	case of.alone:
		return ""
	case of.program != "":
		return of.program
	}
	return c.Footfall
}

// filterReady waits for the filter, if there is one.
func (c contender) filterReady(ctx context.Context, p *bench.Process) error {
	if slices.Contains(c.arguments, "on") || c.program != "" {
		return p.Shows(ctx, bench.MetricFilterReady, 1)
	}
	return nil
}

// sustained is how many visits a second the service counts of a task, as the contender both does.
func (c *comparison) sustained(ctx context.Context, t task) (perSecond float64, err error) {
	of := contenders[slices.IndexFunc(contenders, func(c contender) bool { return c.Name == both })]
	from, err := c.layoutOf(ctx, of, t.preload)
	if err != nil {
		return 0, err
	}
	address, drop, err := c.server.Database(ctx, from.address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	p, err := bench.Start(ctx, c.program(of), func(addr, admin string) []string { return of.commandLine(addr, admin, address) })
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := of.filterReady(ctx, p); err != nil {
		return 0, err
	}
	m, _, err := c.send(ctx, of, t, from, p, nil)
	return m.PerSecond, err
}

// offer offers visits of a task at twice the rate that was sustained.
func (c *comparison) offer(ctx context.Context, t task, p *bench.Process, r *Turn) (load.Measure, []load.Arrival, error) {
	offered := t.sequence[:min(c.Visits, len(t.sequence))]
	m, err := load.Offer(ctx, p.URL, offered, headers(""), 2*r.Sustained, func() { r.Early = p.PeakMemory() })
	if err != nil {
		return load.Measure{}, nil, err
	}
	r.WorstMs = bench.Ms(m.Worst)
	c.Progress(fmt.Sprintf("%.0f visits/s were counted, twice as many offered: %d of %d to be counted later", r.Sustained, m.Later, m.Requests))
	return m.Measure, offered, nil
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
func (c *comparison) send(ctx context.Context, of contender, t task, in layout, p *bench.Process, r *Turn) (load.Measure, []load.Arrival, error) {
	switch of.Name {
	case calls:
		return load.Calls(ctx, p.URL, t.sequence, c.Duration)
	case flash:
		return c.offer(ctx, t, p, r)
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
		URL: p.URL, Visits: visits, Again: of.Name == constant, Headers: headers(in.key), Connections: c.Connections, Duration: c.Duration,
	})
	return m, m.SentOf(t.sequence), err
}

// headers are those of the requests, in turns: all name a browser, as visits do, which takes
// reading time whoever looks at it; and they show the key, if there is one.
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
