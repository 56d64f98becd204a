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

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/load"
)

// visitProcess measures a contender over HTTP: it starts the contender's program, and sends visits for c.Duration. It
// returns the measured times, the number of keys that the program looked up to find out whether they are new, and the
// visits that got a response.
func (c *comparison) visitProcess(ctx context.Context, of contender, t task, address string) (m load.Measure, asked float64,
	sent []load.Arrival, err error) {
	p, err := bench.Start(ctx, cmp.Or(of.program, c.Footfall), func(addr, admin string) []string {
		return append(slices.Clone(of.arguments), "--addr", addr, "--admin-addr", admin, "--database-url", address)
	})
	if err != nil {
		return m, 0, nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if !slices.Contains(of.arguments, "off") { // the contender has a filter, which must be ready first
		err = p.WaitForMetric(bench.MetricFilterReady, 1)
	}
	if err == nil {
		m, sent, err = load.Visits(ctx, p.URL, t.sequence, ends(), c.Connections, c.Duration)
	}
	if err == nil {
		err = p.WaitForMetric(bench.MetricWaiting, 0)
	}
	if err != nil {
		return m, 0, nil, err
	}
	f, err := p.Figures(ctx)
	return m, f[bench.MetricAsked], sent, err
}

// ends returns browser headers and query parameters for requests, so that the service needs as much time for parsing a
// request as in practice. All requests contain a browser and a language. Half of them contain a referrer, mostly one of a
// few sites.
func ends() (all []load.End) {
	languages := []string{"en-US,en;q=0.9", "de-DE,de;q=0.9,en;q=0.8", "zh-CN,zh;q=0.9"}
	sources := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.5, 1, 99) //nolint:gosec // the same in every run
	for n := range 240 {
		var end load.End
		if n%2 == 0 {
			end.Query = fmt.Sprintf("&referrer=https://source-%d.example/", sources.Uint64())
		}
		agent := strings.ReplaceAll(generate.Agents[n%6], "140", strconv.Itoa(90+n%53))
		end.Headers = "User-Agent: " + agent + "\r\nAccept-Language: " + languages[n%len(languages)] + "\r\n"
		all = append(all, end)
	}
	return all
}
