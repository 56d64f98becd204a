package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/account"
	"footfall/admin"
	"footfall/counter"
	"footfall/db"
	"footfall/db/cells"
	"footfall/handler/lead"
	"footfall/record"
	"footfall/report"
	"footfall/visit/country"
)

// opening is what a database of a service is opened with.
type opening struct {
	cell      string // its name
	metrics   prometheus.Registerer
	countries *country.Countries
	options   db.Options
	shares    int64 // of the memory, of which it gets one
}

// openAll opens the database of the service, and the cells that it is to serve. What it returns ends them.
func (c *serveCmd) openAll(ctx context.Context, p *program, url string, o opening) (*lead.Cells, *account.Accounts, error) {
	if p.embedded() {
		describeDisk(o.metrics, p.Data)
	}
	if c.Cells == "" {
		home, d, err := c.open(ctx, p, url, o)
		return lead.One(home), account.Open(d), err
	}
	cluster, err := cells.OpenCluster(url, o.options)
	if err != nil {
		return nil, nil, err
	}
	if d, err := db.Open(ctx, url, o.options); err == nil {
		names, _ := cluster.Found(ctx, d) // none, where it does not answer yet
		o.shares += int64(len(names))
		d.Close()
	}
	home, d, err := c.openOf(ctx, p, url, o)
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	var urls map[string]string
	others := map[string]time.Time{} // databases that look like cells, and are none, and when that was found out
	all, err := lead.Open(ctx, home, lead.Options{Log: p.log,
		Find: func(ctx context.Context) (names []string, err error) {
			found, err := cluster.Found(ctx, d)
			mu.Lock()
			defer mu.Unlock()
			urls = found
			for name := range found {
				if time.Since(others[name]) > notCellsFor {
					names = append(names, name)
				}
			}
			return names, err
		},
		Open: func(ctx context.Context, name string, all int) (*lead.Cell, error) {
			o := o
			o.cell, o.shares = name, int64(all)+1
			mu.Lock()
			at := urls[name] + "&pool_max_conn_idle_time=1m" // many cells would have many sessions that do nothing
			mu.Unlock()
			cell, _, err := c.openOf(ctx, p, at, o)
			if errors.Is(err, db.ErrNoCell) {
				mu.Lock()
				defer mu.Unlock()
				others[name] = time.Now()
			}
			return cell, err
		}})
	if err != nil {
		home.Close()
	}
	return all, account.Open(d), err
}

const notCellsFor = time.Minute

// openOf is open for one database of several, whose metrics and log are told apart by its name.
func (c *serveCmd) openOf(ctx context.Context, p *program, url string, o opening) (*lead.Cell, *db.DB, error) {
	all, own := prometheus.WrapRegistererWith(prometheus.Labels{"cell": o.cell}, o.metrics), &ownMetrics{Registry: prometheus.NewRegistry()}
	one := *p
	if o.cell != "" {
		one.log = p.log.With(slog.String("cell", o.cell))
	}
	o.metrics, o.options.Log = own, one.log
	cell, d, err := c.open(ctx, &one, url, o)
	if err != nil {
		return nil, nil, err
	}
	all.MustRegister(own)
	end := cell.Close
	cell.Close = func() { own.gone.Store(true); end() }
	return cell, d, nil
}

// ownMetrics are those of one database of several, until it is gone.
type ownMetrics struct {
	*prometheus.Registry
	gone atomic.Bool
}

// Describe tells nothing, so that a cell may come again.
func (*ownMetrics) Describe(chan<- *prometheus.Desc) {}

func (m *ownMetrics) Collect(to chan<- prometheus.Metric) {
	if !m.gone.Load() {
		m.Registry.Collect(to)
	}
}

// open opens a database, counts in it, and begins what runs beside that.
func (c *serveCmd) open(ctx context.Context, p *program, url string, o opening) (*lead.Cell, *db.DB, error) {
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

func (c *serveCmd) begin(ctx context.Context, p *program, d *db.DB, o opening) (*lead.Cell, error) {
	if err := c.prepare(ctx, p, d); err != nil {
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
	recording.Filter = recording.FilterMemory > 0
	counting, err := counter.Open(ctx, d, counter.Options{Secret: secret, InboxLimit: c.InboxLimit, Countries: o.countries,
		Options: recording})
	if err != nil {
		return nil, err
	}
	endBeside := runBeside(d, counting, secret, p.log)
	return &lead.Cell{Name: o.cell, Counter: counting, Admin: admin.NewAdmin(d, secret), Reports: report.NewReader(d), Status: p.statusText(d),
		Close: func() { counting.Close(); endBeside(); d.Close() }}, nil
}
