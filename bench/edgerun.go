package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The names of metrics that only the edge is measured by.
const (
	metricCPU   = "process_cpu_seconds_total"
	metricFiles = "process_open_fds"
)

// warmUp is the part of a turn's time for which steady visits come before they are timed: one in so many.
const warmUp = 5

// loaded is what one load saw.
type loaded struct {
	measure
	late  float64                     // ms
	judge func(held standing) verdict // what the tables hold
}

// run gives a way its turn, on a database of its own.
func (e *edge) run(ctx context.Context, in scene, way way) (run EdgeRun, err error) {
	run = EdgeRun{Scene: in.name, Way: way.name}
	address, drop, err := e.server.database(ctx, "edge")
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	key, err := way.prepare(ctx, address)
	if err != nil {
		return run, err
	}
	seen, err := e.load(ctx, in, way, address, key, &run)
	if err != nil {
		return run, err
	}
	held, err := serviceTables(ctx, address)
	if err != nil {
		return run, err
	}
	bySlow := held.without(slowSite)
	v := seen.judge(held)
	run.Errors, run.Fault = v.Errors, exactPromise.broken(v)
	if run.Fault == "" && run.Crowd != nil {
		run.Fault = run.Crowd.fault(bySlow.hot)
	}
	return run, nil
}

// load starts the service, lets the crowd gather if there is to be one, and the visits come, and reads the service's figures before it ends.
func (e *edge) load(ctx context.Context, in scene, way way, address, key string, run *EdgeRun) (seen loaded, err error) {
	p, err := startProcess(ctx, func(addr, admin string) []string { return way.arguments(addr, admin, address) })
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := p.shows(ctx, metricFilterReady, 1); err != nil {
		return seen, err
	}
	host := strings.TrimPrefix(p.url, "http://")
	var slow *crowd
	if way.crowded {
		slow = newCrowd(host, key, e.Slow, e.Seed)
		if err := slow.gather(ctx); err != nil {
			return seen, err
		}
		defer slow.leave()
	}
	before, err := p.figures(ctx)
	if err != nil {
		return seen, err
	}
	if in.steady {
		seen, err = e.visitSteadily(ctx, in, way, host, key)
	} else {
		seen, err = e.visitMost(ctx, in, way, p.url, key)
	}
	if err != nil {
		return seen, err
	}
	after, err := p.figures(ctx)
	if err != nil {
		return seen, err
	}
	run.Visits, run.PerSecond, run.P50Ms, run.P99Ms, run.LateMs = seen.requests, seen.perSecond, ms(seen.p50), ms(seen.p99), seen.late
	run.CPUMicros = 1e6 * (after[metricCPU] - before[metricCPU]) / float64(max(seen.requests, 1))
	run.Memory = p.peakMemory()
	if slow != nil {
		slow.leave()
		told := slow.figures()
		told.Files = int64(after[metricFiles])
		run.Crowd = &told
		if err := slow.thin(told); err != nil && !e.Quick { // which measures nothing anyway
			return seen, err
		}
	}
	return seen, p.shows(ctx, metricWaiting, 0)
}

// visitMost lets wrk visit as often as it can.
func (e *edge) visitMost(ctx context.Context, in scene, way way, url, key string) (loaded, error) {
	file := in.workload
	if way.proxied {
		file += forwarded
	}
	m, err := e.script.run(ctx, load{
		url: url, workload: file, headers: way.headers(key), connections: e.Connections, duration: e.Duration,
	})
	return loaded{measure: m, judge: func(held standing) verdict {
		return judgeSent(m.sentOf(e.sequences[in.workload]), m.requests, int64(e.Connections), held)
	}}, err
}

// visitSteadily sends so many visits a second, all of which must be answered.
func (e *edge) visitSteadily(ctx context.Context, in scene, way way, host, key string) (loaded, error) {
	chosen, err := workloadsNamed([]string{in.workload})
	if err != nil {
		return loaded{}, err
	}
	timed := e.Rate * int(e.Duration.Seconds())
	untimed := timed / warmUp
	sequence := chosen[0].sequence(e.Seed, untimed+timed)
	sets := way.headers(key)
	s := steady{host: host, perSecond: e.Rate}
	for n, a := range sequence {
		s.requests = append(s.requests, fmt.Appendf(nil, "GET /visit?app=%s&ip=%s&uri=http://%s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n",
			app, addressOf(int(a.visitor)), pageURI(int(a.page)), host, strings.ReplaceAll(sets[n%len(sets)], "\t", "\r\n")))
	}
	if err := s.send(ctx); err != nil {
		return loaded{}, err
	}
	told, err := s.told()
	if err != nil {
		return loaded{}, err
	}
	waits := sortedWaits(s.waits[untimed:])
	m := measure{
		requests: int64(len(sequence)), perSecond: s.reached(untimed),
		p50: percentile(waits, 50), p95: percentile(waits, 95), p99: percentile(waits, 99),
	}
	return loaded{measure: m, late: ms(percentile(sortedWaits(s.lates[untimed:]), 99)), judge: func(held standing) verdict {
		return judge(sequence, told, held)
	}}, nil
}

// without takes a site and its pages out of what the tables hold, and returns the site's sums.
func (s standing) without(host string) sums {
	all := s.sums[host]
	for uri := range s.sums {
		if uri == host || strings.HasPrefix(uri, host+"/") {
			delete(s.sums, uri)
			delete(s.ranks, uri)
		}
	}
	return all
}
