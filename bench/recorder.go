package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/bench/tables"
	"footfall/db"
	"footfall/visit"
)

// RecorderOptions of a run. A zero field means its default.
type RecorderOptions struct {
	DatabaseURL string       // a server on which databases may be made; default: an embedded one
	Dir         string       // where the embedded one keeps its data; default: the system's folder for temporary files
	BinDir      string       // PostgreSQL's programs for the embedded one; default: looked for
	Visits      int          // of each round; default 200,000
	Clients     int          // who visit at once; batches are about half as large; default 1,000
	Preload     []int        // how many rows visitors has before; each is measured; default 0
	Rounds      int          // default 3
	Explain     bool         // print the plans of the two statements
	Progress    func(string) // told what is being done; may be nil
}

func (o *RecorderOptions) complete() {
	if o.Visits == 0 {
		o.Visits = 200_000
	}
	if o.Clients == 0 {
		o.Clients = 1000
	}
	if len(o.Preload) == 0 {
		o.Preload = []int{0}
	}
	if o.Rounds == 0 {
		o.Rounds = 3
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// addressOf places visitor n in 10.0.0.0/8, far from visitor n-1: addresses do not come in the order of
// an index. The multiplier is odd, so that no two of the first 16 million meet.
const (
	multiplier = 0x9E3779
	addresses  = 1 << 24
)

func addressOf(n int) netip.Addr {
	at := n * multiplier % addresses
	return netip.AddrFrom4([4]byte{10, byte(at >> 16), byte(at >> 8), byte(at)})
}

// subject is one database of a recorder's run.
type subject struct {
	preload int
	address string
	db      *db.DB
	drop    func() error
	used    int // visitors that have been there
}

// Recorder measures the recorder alone: every visit is somebody's first, to one of 1,000 pages of one site. Rounds of
// the different preloads take turns. A database without preload is new in each round; the others are kept.
func Recorder(ctx context.Context, o RecorderOptions) (_ *RecorderReport, err error) {
	o.complete()
	if most := slices.Max(o.Preload)/2 + o.Rounds*o.Visits; most > addresses {
		return nil, fmt.Errorf("bench: %d visitors are more than the %d addresses to give them", most, addresses)
	}
	s, err := openServer(ctx, o.DatabaseURL, o.Dir, o.BinDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	report := &RecorderReport{Visits: o.Visits, Clients: o.Clients}
	if report.Machine, err = s.machine(ctx); err != nil {
		return nil, err
	}
	subjects := map[int]*subject{}
	defer func() {
		for _, sub := range subjects {
			err = errors.Join(err, sub.close())
		}
	}()
	for round := 1; round <= o.Rounds; round++ {
		for _, preload := range o.Preload {
			sub := subjects[preload]
			if sub == nil {
				if sub, err = newSubject(ctx, s, preload, o.Progress); err != nil {
					return nil, err
				}
				subjects[preload] = sub
				if o.Explain && round == 1 {
					if err := explain(ctx, sub, report); err != nil {
						return nil, err
					}
				}
			}
			sample, err := sub.round(ctx, o)
			if err != nil {
				return nil, err
			}
			sample.Round = round
			report.Samples = append(report.Samples, sample)
			o.Progress(fmt.Sprintf("round %d: %s", round, sample))
			if preload == 0 {
				delete(subjects, preload)
				if err := sub.close(); err != nil {
					return nil, err
				}
			}
		}
	}
	return report, nil
}

// newSubject makes a database with all pages, and with visitors' rows.
func newSubject(ctx context.Context, s *server, preload int, progress func(string)) (_ *subject, err error) {
	sub := &subject{preload: preload}
	if sub.address, sub.drop, err = s.database(ctx, fmt.Sprintf("recorder_%d", preload)); err != nil {
		return nil, err
	}
	if sub.db, err = openFootfall(ctx, sub.address); err != nil {
		return nil, errors.Join(err, sub.drop())
	}
	if err := sub.fill(ctx, progress); err != nil {
		return nil, errors.Join(err, sub.close())
	}
	return sub, nil
}

func (s *subject) close() error {
	s.db.Close()
	return s.drop()
}

// fill makes the targets, and half as many visitors as rows are asked for: each came to one page, and so to the site.
func (s *subject) fill(ctx context.Context, progress func(string)) error {
	ids, err := internTargets(ctx, s.db)
	if err != nil || s.preload == 0 {
		return err
	}
	progress(fmt.Sprintf("filling visitors with %d rows", s.preload))
	conn, err := connect(ctx, s.address)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	q := tables.New(conn)
	s.used = s.preload / 2
	return errors.Join(
		q.VisitorsPreload(ctx, tables.VisitorsPreloadParams{Site: ids[site], Visitors: int64(s.used), Multiplier: multiplier}),
		q.CountersPreload(ctx), q.VisitorsVacuum(ctx), q.Checkpoint(ctx))
}

// internTargets returns the ids of the site and of all pages, by uri.
func internTargets(ctx context.Context, d *db.DB) (map[string]int64, error) {
	apps, err := d.AppsList(ctx)
	if err != nil || len(apps) != 1 {
		return nil, fmt.Errorf("bench: there should be one app: %v, %w", apps, err)
	}
	uris, sites := make([]string, pages), make([]string, pages)
	for i := range uris {
		uris[i], sites[i] = pageURI(i), site
	}
	ids, _, err := d.Intern(ctx, db.Interning{App: apps[0].ID, By: db.CountsBy{Tz: apps[0].Tz, Visitor: apps[0].Visitor}, Pages: uris, Sites: sites})
	return ids, err
}

// pageURI is a page as Footfall keeps it; with http:// before it, as a caller names it.
func pageURI(n int) string { return fmt.Sprintf("%s/page/%d", site, n%pages) }

// round sends the visits and measures them.
func (s *subject) round(ctx context.Context, o RecorderOptions) (RecorderSample, error) {
	before, err := s.bytes(ctx)
	if err != nil {
		return RecorderSample{}, err
	}
	metrics := prometheus.NewRegistry()
	counter, err := visit.Open(ctx, s.db, visit.Options{Metrics: metrics, MaxWait: maxWait})
	if err != nil {
		return RecorderSample{}, err
	}
	begin := time.Now()
	waits, err := visitAll(ctx, counter, s.used, o)
	took := time.Since(begin)
	counter.Close()
	s.used += o.Visits
	if err != nil {
		return RecorderSample{}, err
	}
	after, err := s.bytes(ctx)
	if err != nil {
		return RecorderSample{}, err
	}
	batch, err := meanBatch(metrics)
	slices.Sort(waits)
	keys := float64(2 * o.Visits) // each visitor is new to a page, and to the site
	return RecorderSample{
		Preload: s.preload, PerSecond: float64(o.Visits) / took.Seconds(), MeanBatch: batch,
		P50Ms: ms(waits[len(waits)/2]), P99Ms: ms(waits[len(waits)*99/100]),
		TableBytes: float64(after.Tables-before.Tables) / keys, IndexBytes: float64(after.Indexes-before.Indexes) / keys,
	}, err
}

// visitAll sends visitors number first and following, as many at once as there are clients, and returns how long each waited.
func visitAll(ctx context.Context, counter *visit.Counter, first int, o RecorderOptions) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waits := make([]time.Duration, o.Visits) // each is set by the one client that took the visit
	var next atomic.Int64
	var clients sync.WaitGroup // they end when no visit is left, or the first has failed
	for range o.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= o.Visits {
					return
				}
				begin := time.Now()
				_, err := counter.Visit(ctx, visit.Request{
					App: app, URI: "http://" + pageURI(first+n), IP: addressOf(first + n).String(),
				})
				if err != nil {
					cancel(fmt.Errorf("visit %d: %w", n, err))
				}
				waits[n] = time.Since(begin)
			}
		})
	}
	clients.Wait()
	return waits, context.Cause(ctx)
}

func (s *subject) bytes(ctx context.Context) (tables.BytesOnDiskRow, error) {
	conn, err := connect(ctx, s.address)
	if err != nil {
		return tables.BytesOnDiskRow{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return tables.New(conn).BytesOnDisk(ctx)
}

// meanBatch is the mean size of the batches that a counter wrote.
func meanBatch(metrics prometheus.Gatherer) (float64, error) {
	families, err := metrics.Gather()
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	for _, family := range families {
		if family.GetName() == "footfall_batch_visits" {
			h := family.GetMetric()[0].GetHistogram()
			return ratio(h.GetSampleSum(), float64(h.GetSampleCount())), nil
		}
	}
	return 0, errors.New("bench: the counter has no metric footfall_batch_visits")
}
