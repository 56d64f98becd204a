package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/bench/load"
	"footfall/counter"
)

// visitProcess starts the contender, lets wrk visit it as often as it can, and reads its figures
// before it ends. It returns what judges the tables then.
func (c *comparison) visitProcess(ctx context.Context, of contender, t task, in database, r *Turn) (_ func(standing) Errors, err error) {
	if of.Name == flash {
		first, err := c.play(ctx, named(both), t)
		if err != nil {
			return nil, err
		}
		r.Sustained = first.PerSecond
	}
	program := cmp.Or(of.program, c.Footfall)
	if of.alone {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	p, err := bench.Start(ctx, program, func(addr, admin string) []string {
		all := append(slices.Clone(of.arguments), "--addr", addr, "--database-url", in.address)
		if !of.alone {
			all = append(all, "--admin-addr", admin)
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if of.alone {
		p.Admin = p.URL
	}
	if slices.Contains(of.arguments, "on") || of.program != "" { // so there is a filter
		if err := p.Shows(bench.MetricFilterReady, 1); err != nil {
			return nil, err
		}
	}
	var sent []load.Arrival
	err = r.measured(ctx, c.server, func() (m load.Measure, f bench.Figures, err error) {
		if m, sent, err = c.send(ctx, of, t, in, p, r); err != nil {
			return m, f, err
		}
		if r.Memory = p.PeakMemory(); of.Name == constant {
			return m, f, nil
		}
		if slices.Contains(of.arguments, mayBeLater) {
			if r.Drained, err = drain(ctx, p); err != nil {
				return m, f, err
			}
		}
		if err = p.Shows(bench.MetricWaiting, 0); err == nil {
			f, err = p.Figures(ctx)
		}
		return m, f, err
	})
	return func(s standing) Errors { return judgeSent(sent, t.preload/2, r.Visits, c.Connections, s) }, err
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
func (c *comparison) send(ctx context.Context, of contender, t task, in database, p *bench.Process, r *Turn) (load.Measure,
	[]load.Arrival, error) {
	switch of.Name {
	case calls:
		return load.Calls(ctx, p.URL, t.sequence, c.Duration)
	case flash:
		offered := t.sequence[:min(c.Visits, len(t.sequence))]
		m, err := load.Offer(ctx, p.URL, offered, ends("", ""), 2*r.Sustained)
		return m, offered, err
	}
	query := ""
	if of.Name == inbox {
		query = "&answer=later"
	}
	return load.Job{
		URL: p.URL, Dir: c.scripts, Name: t.Name, Visits: t.sequence, Proxied: of.proxied,
		Ends: ends(query, in.key), Connections: c.Connections, Duration: c.Duration,
	}.Run(ctx)
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
		end += "\tUser-Agent: " + strings.ReplaceAll(generate.Agents[n%6], "140", strconv.Itoa(90+n%53)) + "\tAccept-Language: " +
			languages[n%len(languages)]
		if key != "" {
			end += "\tAuthorization: Bearer " + key
		}
		all = append(all, end)
	}
	return all
}

// Serve serves a contender that is not Footfall's service until ctx ends, at the same URLs and with
// the same answers and metrics.
func Serve(ctx context.Context, name, addr, databaseURL string) error {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Server.ReadHeaderTimeout = 10 * time.Second
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	if name == constant {
		answer := []byte(`{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}` + "\n")
		e.GET("/visit", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, answer) })
	} else {
		one, err := named(name).open(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer one.Close()
		var waiting atomic.Int64 // visits under way
		e.GET("/visit", func(c echo.Context) error {
			waiting.Add(1)
			defer waiting.Add(-1)
			// The visit outlives its request, as it does in the service: wrk hangs up on the last ones.
			answer, err := one.Visit(context.WithoutCancel(c.Request().Context()),
				counter.Request{App: c.QueryParam("app"), IP: c.QueryParam("ip"), URI: c.QueryParam("uri")})
			if err != nil {
				return err
			}
			return c.JSON(http.StatusOK, answer)
		})
		e.GET("/metrics", func(c echo.Context) error {
			figures, err := one.Figures()
			text := fmt.Sprintf("%s %d\n", bench.MetricWaiting, waiting.Load())
			for name, value := range figures {
				text += fmt.Sprintf("%s %v\n", name, value)
			}
			return errors.Join(err, c.String(http.StatusOK, text))
		})
	}
	// Nothing is under way any more when a contender is stopped: its tables are to be read.
	context.AfterFunc(ctx, func() { _ = e.Close() })
	if err := e.Start(addr); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("contender: %w", err)
	}
	return nil
}
