package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/go-units"
	"github.com/prometheus/client_golang/prometheus"

	"footfall/account"
	"footfall/admin"
	"footfall/counter"
	"footfall/db"
	"footfall/db/cells"
	"footfall/handler/routing"
	"footfall/record"
	"footfall/report"
	"footfall/visit/country"
)

// openOptions contains the parameters for opening one database of the service.
type openOptions struct {
	cell      string // name of the cell; "" for the service's own database
	metrics   prometheus.Registerer
	countries *country.Countries
	options   db.Options
	shares    int64 // the database gets 1/shares of --memory
	slots     *admin.Slots
}

// openAll opens the service's own database. With --cells, it also opens the cells' databases. To close all databases, the
// caller closes the returned Cells.
func (c *serveCmd) openAll(ctx context.Context, p *program, url string, o openOptions) (*routing.Cells, *account.Accounts, error) {
	if p.embedded() {
		describeDisk(o.metrics, p.Data)
	}
	if c.Cells == "" {
		home, d, err := c.open(ctx, p, url, o)
		if err != nil {
			return nil, nil, err
		}
		return routing.NewSingle(home), openAccounts(p, d), nil
	}
	cluster, err := cells.OpenCluster(url, o.options)
	if err != nil {
		return nil, nil, err
	}
	if d, err := db.Open(ctx, url, o.options); err == nil {
		names, _ := cluster.FindURLs(ctx, d) // names is empty if the database does not respond yet
		o.shares += int64(len(names))
		d.Close()
	}
	home, d, err := c.openLabeled(ctx, p, url, o)
	if err != nil {
		return nil, nil, err
	}
	finding := &cellFinder{cluster: cluster, home: d, notCells: map[string]time.Time{}}
	all, err := routing.Open(ctx, home, routing.Options{Log: p.log, Find: finding.find, LeadFor: leadFor,
		NodesAway: func(ctx context.Context) (away []string, err error) {
			return away, d.Read(ctx, func(q *db.Queries) (err error) { away, err = q.NodesAway(ctx); return err })
		},
		Reach: func(ctx context.Context, name string) error { return finding.reach(ctx, name, o.options) },
		Open: func(ctx context.Context, name string, all int) (*routing.Cell, error) {
			o := o
			o.cell, o.shares = name, int64(all)+1
			// Close idle sessions after a minute. Otherwise a service with many cells would keep many idle sessions open.
			cell, _, err := c.openLabeled(ctx, p, finding.url(name)+"&pool_max_conn_idle_time=1m", o)
			return cell, err
		}})
	if err != nil {
		home.Close()
	}
	return all, openAccounts(p, d), err
}

// openAccounts returns the accounts in d. A key that is derived from the service's secret signs the cookies of browsers
// that have signed in before.
func openAccounts(p *program, d *db.DB) *account.Accounts {
	secret, _ := p.secret()
	return account.Open(d).SignDevices(secret.DeviceKey())
}

const (
	leadFor     = time.Minute
	notCellsFor = 5 * time.Second
)

// cellFinder finds the cells of a cluster.
type cellFinder struct {
	cluster *cells.Cluster
	home    *db.DB

	mu       sync.Mutex
	urls     map[string]string    // name → URL of each cell that the last search found
	notCells map[string]time.Time // databases named like cells that are not cells → time of the last check
}

func (f *cellFinder) url(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.urls[name]
}

func (f *cellFinder) find(ctx context.Context) (names []string, err error) {
	found, err := f.cluster.FindURLs(ctx, f.home)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.urls = found
	for name := range found {
		if at, other := f.notCells[name]; !cellName.MatchString(name) {
			continue
		} else if other && time.Since(at) > notCellsFor {
			if is, err := f.cluster.IsCell(ctx, name); err == nil && is {
				delete(f.notCells, name)
			} else {
				f.notCells[name] = time.Now()
			}
		}
		if _, other := f.notCells[name]; !other {
			names = append(names, name)
		}
	}
	return names, nil
}

// reach returns an error if the cell with this name does not respond. If the database with this name is not a cell, reach
// returns routing.ErrNoCell. In the second case, the method find no longer returns this name, until a later check shows
// that the database is a cell.
func (f *cellFinder) reach(ctx context.Context, name string, o db.Options) error {
	d, err := db.Open(ctx, f.url(name), o)
	if err != nil {
		return err
	}
	defer d.Close()
	if err = d.Ping(ctx); errors.Is(err, db.ErrNoCell) {
		if is, failed := f.cluster.IsCell(ctx, name); failed == nil && !is { // otherwise it may be a cell whose node lacks the schema
			f.mu.Lock()
			defer f.mu.Unlock()
			f.notCells[name] = time.Now()
			return routing.ErrNoCell
		}
	}
	return err
}

// openLabeled calls open for one database of a service with cells. If the database is a cell, its metrics get the label
// cell with the cell's name, and so do its log entries.
func (c *serveCmd) openLabeled(ctx context.Context, p *program, url string, o openOptions) (*routing.Cell, *db.DB, error) {
	all, own := prometheus.WrapRegistererWith(prometheus.Labels{"cell": o.cell}, o.metrics), &ownMetrics{}
	registry := prometheus.NewRegistry()
	one := *p
	if o.cell != "" {
		one.log = p.log.With(slog.String("cell", o.cell))
	}
	o.metrics, o.options.Log = registry, one.log
	cell, d, err := c.open(ctx, &one, url, o)
	if err != nil {
		return nil, nil, err
	}
	own.registry.Store(registry)
	all.MustRegister(own)
	end := cell.Close
	cell.Close = func() { own.registry.Store(nil); end() }
	return cell, d, nil
}

// ownMetrics are the metrics of one database of a service with cells. When the database is closed, registry is set to nil.
// From then on, Collect sends no metrics. This is necessary because Prometheus cannot unregister a collector without
// descriptions.
type ownMetrics struct {
	registry atomic.Pointer[prometheus.Registry]
}

// Describe sends no descriptions, so that Prometheus accepts another ownMetrics when the cell is opened again.
func (*ownMetrics) Describe(chan<- *prometheus.Desc) {}

func (m *ownMetrics) Collect(to chan<- prometheus.Metric) {
	if registry := m.registry.Load(); registry != nil {
		registry.Collect(to)
	}
}

// open opens a database, and starts to count in it. It also starts the background tasks for this database.
func (c *serveCmd) open(ctx context.Context, p *program, url string, o openOptions) (*routing.Cell, *db.DB, error) {
	d, err := db.Open(ctx, url, o.options)
	if err != nil {
		return nil, nil, err
	}
	cell, err := c.begin(ctx, p, d, o)
	if err != nil {
		d.Close()
	}
	return cell, d, err
}

func (c *serveCmd) begin(ctx context.Context, p *program, d *db.DB, o openOptions) (*routing.Cell, error) {
	if err := c.prepare(ctx, p, d, o.cell); err != nil {
		return nil, err
	}
	secret, err := p.secret()
	if err != nil {
		return nil, err
	}
	if d.IsCell() {
		o.metrics.MustRegister(cellMetrics{d})
	}
	recording := record.Options{Log: p.log, Metrics: o.metrics, MaxWait: c.maxWait, Overflow: c.Overload == "later",
		RememberIDs: c.RememberIDs}
	recording.FilterMemory, recording.Memory = c.shares(o.shares)
	if share := c.memory / o.shares; c.memory > 0 && share < leastMemory {
		p.log.Warn("--memory: it is too little for this number of databases, so more visitors are looked up",
			"databases", o.shares, "each", units.BytesSize(float64(share)), "least", units.BytesSize(leastMemory))
	}
	recording.Filter = recording.FilterMemory > 0
	counting, err := counter.Open(ctx, d, counter.Options{Secret: secret, InboxLimit: c.InboxLimit, Countries: o.countries,
		Options: recording})
	if err != nil {
		return nil, err
	}
	stopTasks := runAlongside(d, counting, secret, p.log)
	return &routing.Cell{Name: o.cell, Counter: counting, Admin: admin.NewAdmin(d, secret).WithSlots(o.slots), Reports: report.NewReader(d),
		Status: p.statusText(d),
		Close:  func() { counting.Close(); stopTasks(); d.Close() }}, nil
}
