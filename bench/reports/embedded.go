package reports

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"footfall/bench"
	"footfall/counter"
)

// EmbeddedRow is how what goes into other people's pages was served.
type EmbeddedRow struct {
	What      string       `json:"what"`
	PerSecond bench.Spread `json:"perSecond"` // of the turns
	Wait      AnswerRow    `json:"wait"`
}

const (
	embeddedClients = 32
	embeddedTurns   = 5
	embeddedTurn    = 3 * time.Second
)

// measureEmbedded asks for the script, for badges and for what pages made for busuanzi call, in
// turns. Each client asks again when it is answered.
func (r *asking) measureEmbedded(ctx context.Context) error {
	d, err := bench.Migrated(ctx, r.address)
	if err != nil {
		return err
	}
	count := "count"
	err = counter.NewAdmin(d, nil).SetApp(ctx, r.world.app, counter.Settings{PublicCounts: &count})
	d.Close()
	if err != nil {
		return err
	}
	uri := url.QueryEscape("http://" + r.world.came[0].Uri)
	badge := "/badge/" + r.world.app + ".svg?uri=" + uri
	all := []struct{ what, path string }{
		{"/count.js", "/count.js"}, {"a badge", badge}, {"with chart=30d", badge + "&chart=30d"}, {"with count=1", badge + "&count=1"}, {"/busuanzi", "/busuanzi?url=" + uri},
	}
	turns, turn := embeddedTurns, embeddedTurn
	if r.Quick {
		turns, turn = 1, time.Second
	}
	return r.serving(ctx, func(p *bench.Process) error {
		rates, took := make([][]float64, len(all)), make([][]time.Duration, len(all))
		for n := range turns {
			r.Progress(fmt.Sprintf("%d of %d turns", n, turns))
			for i, one := range all {
				began := time.Now()
				some, err := askAgain(ctx, p.URL+one.path, turn)
				if err != nil {
					return fmt.Errorf("%s: %w", one.what, err)
				}
				rates[i], took[i] = append(rates[i], float64(len(some))/time.Since(began).Seconds()), append(took[i], some...)
			}
		}
		for i, one := range all {
			r.report.Embedded = append(r.report.Embedded, EmbeddedRow{one.what, bench.SpreadOf(rates[i]), answerRow(one.what, took[i])})
		}
		return nil
	}, "--busuanzi", r.world.app)
}

// askAgain asks with all clients for a while, and tells how long each answer took.
func askAgain(ctx context.Context, address string, long time.Duration) (took []time.Duration, err error) {
	connections := &http.Transport{MaxIdleConnsPerHost: embeddedClients}
	defer connections.CloseIdleConnections()
	client := &http.Client{Transport: connections}
	until := time.Now().Add(long)
	var clients sync.WaitGroup // goroutines, which end with until
	var lock sync.Mutex        // over took and err
	for range embeddedClients {
		clients.Go(func() {
			var mine []time.Duration
			var broken error
			for broken == nil && time.Now().Before(until) {
				began := time.Now()
				broken = askOnce(ctx, client, address)
				mine = append(mine, time.Since(began))
			}
			lock.Lock()
			defer lock.Unlock()
			if took = append(took, mine...); broken != nil {
				err = broken
			}
		})
	}
	clients.Wait()
	return took, err
}

func askOnce(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if why := answer.Header.Get("Footfall-Error"); err == nil && (answer.StatusCode != http.StatusOK || why != "" || len(body) == 0) {
		err = fmt.Errorf("%s: %s %s", answer.Status, why, strings.TrimSpace(string(body[:min(len(body), 200)])))
	}
	return err
}

func printEmbedded(w io.Writer, rows []EmbeddedRow) {
	fmt.Fprintf(w, "\nwhat goes into pages, asked for by %d clients: the median of the turns (slowest to fastest)\n", embeddedClients)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  asked for\ta second\t\tp50 ms\tp99 ms\tmax ms\n")
	for _, row := range rows {
		fmt.Fprintf(t, "  %s\t%s\t(%s to %s)\t%s\t%s\t%s\n", row.What, bench.Grouped(row.PerSecond.Median), bench.Grouped(row.PerSecond.Min), bench.Grouped(row.PerSecond.Max),
			bench.Millis(row.Wait.P50Ms), bench.Millis(row.Wait.P99Ms), bench.Millis(row.Wait.MaxMs))
	}
	_ = t.Flush() // w is a person's
}
