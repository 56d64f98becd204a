package bench

import (
	"context"
	"errors"
	"fmt"
	"footfall/counter"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
)

// constant counts nothing: it is what Echo and the network cost by themselves.
const constant = "constant"

// overHTTP are the contenders of a comparison over HTTP, in the order of the tables.
var overHTTP = append(slices.Clone(contenders), contender{
	ContenderAbout: ContenderAbout{Name: constant, About: "counts nothing and answers the same each time: what HTTP costs by itself"}, alone: true,
})

// The names of the metrics that are read, of the service and of what is served here.
const (
	metricWaiting     = "footfall_visits_waiting"
	metricAsked       = "footfall_existence_queries_total"
	metricFilterReady = "footfall_filter_ready"
	metricFilterBytes = "footfall_filter_bytes"
	metricMemoryBytes = "footfall_memory_bytes"
)

// arguments are the command line of a contender's process.
func (c contender) arguments(addr, admin, databaseURL string) []string {
	if c.alone {
		args := []string{"bench", "contender", c.Name, "--addr", addr}
		if c.Name != constant {
			args = append(args, "--database-url", databaseURL)
		}
		return args
	}
	args := []string{"serve", "--addr", addr, "--admin-addr", admin, "--database-url", databaseURL, "--max-wait", "10s", "--memory", strconv.FormatInt(c.helpers.Memory, 10)}
	if !c.helpers.Filter {
		return append(args, "--filter", "off")
	}
	return append(args, "--filter", "on", "--filter-memory", strconv.FormatInt(c.helpers.FilterMemory, 10))
}

// ServeContender serves one of those that are not Footfall's service until ctx ends, at the same URLs and with the same answers.
func ServeContender(ctx context.Context, name, addr, databaseURL string) error {
	at := slices.IndexFunc(overHTTP, func(c contender) bool { return c.Name == name && c.alone })
	if at < 0 {
		return fmt.Errorf("contender: %q is none that is served here", name)
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	if name == constant {
		answer := []byte(`{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}` + "\n")
		e.GET("/visit", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, answer) })
		return serve(ctx, e, addr)
	}
	counts, err := overHTTP[at].open(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer counts.close()
	one := contenderService{counting: counts}
	e.GET("/visit", one.visitOnce)
	e.GET("/metrics", one.metrics)
	return serve(ctx, e, addr)
}

// contenderService is how a contender answers.
type contenderService struct {
	counting
	waiting atomic.Int64 // visits under way
}

// visitOnce counts a visit as soon as it comes.
func (s *contenderService) visitOnce(c echo.Context) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	// The visit outlives its request, as it does in the service: wrk hangs up on the last ones.
	answer, err := s.visit(context.WithoutCancel(c.Request().Context()), counter.Request{
		App: c.QueryParam("app"), IP: c.QueryParam("ip"), URI: c.QueryParam("uri"),
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// metrics answers by the names of the service's metrics.
func (s *contenderService) metrics(c echo.Context) error {
	spent, err := s.spent()
	if err != nil {
		return err
	}
	return c.String(http.StatusOK, fmt.Sprintf("%s %d\n%s %v\n%s %d\n%s 0\n",
		metricWaiting, s.waiting.Load(), metricAsked, spent.asked, metricFilterBytes, spent.helpers, metricMemoryBytes))
}

func serve(ctx context.Context, handler http.Handler, addr string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("contender: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1) // takes the one result of the goroutine, which Shutdown or Close ends
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("contender: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = server.Shutdown(stopping)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
