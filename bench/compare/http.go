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
		first, err := c.play(ctx, contenders[slices.IndexFunc(contenders, func(c contender) bool { return c.Name == both })], t)
		if err != nil {
			return nil, err
		}
		r.Sustained = first.PerSecond
	}
	if err := c.write(of, t); err != nil {
		return nil, err
	}
	program := c.Footfall
	switch {
	case of.alone:
		program = "" // this one
	case of.program != "":
		program = of.program
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
	return func(s standing) verdict { return judgeSent(sent, m.Requests, int64(c.Connections), s) },
		c.spent(ctx, logged, func() (bench.Figures, error) { return p.Figures(ctx) }, r)
}

// visits is the name of what wrk sends to a contender.
func (c contender) visits(t task) string {
	if c.proxied {
		return t.Name + "-forwarded"
	}
	return t.Name + c.query
}

// write writes down for wrk what it sends to a contender, unless it is there.
func (c *comparison) write(of contender, t task) error {
	line := func(a load.Arrival) string { return load.Asserted(a) + of.query }
	if of.proxied {
		line = load.Forwarded
	}
	if name := of.visits(t); !c.written[name] {
		c.Progress(fmt.Sprintf("preparing %d visits of %s", len(t.sequence), name))
		c.written[name] = true
		return c.script.Write(name, t.sequence, line)
	}
	return nil
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
func (c *comparison) send(ctx context.Context, of contender, t task, in layout, p *bench.Process, r *Turn) (load.Measure, []load.Arrival, error) {
	switch of.Name {
	case calls:
		return load.Calls(ctx, p.URL, t.sequence, c.Duration)
	case flash:
		offered := t.sequence[:min(c.Visits, len(t.sequence))]
		m, err := load.Offer(ctx, p.URL, offered, headers(""), 2*r.Sustained, func() { r.Early = p.PeakMemory() })
		r.WorstMs = bench.Ms(m.Worst)
		c.Progress(fmt.Sprintf("%.0f visits/s were counted, twice as many offered: %d of %d to be counted later", r.Sustained, m.Later, m.Requests))
		return m.Measure, offered, err
	}
	m, err := c.script.Run(ctx, load.Job{
		URL: p.URL, Visits: of.visits(t), Again: of.Name == constant, Headers: headers(in.key), Connections: c.Connections, Duration: c.Duration,
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
