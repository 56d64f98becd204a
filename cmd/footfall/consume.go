package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"footfall/admin"
	"footfall/counter"
	"footfall/handler"
	"footfall/intake/queues"
	"footfall/record"
)

// consumeCmd counts the messages of a queue, and lists the queues that were counted.
type consumeCmd struct {
	Queue consumeQueueCmd `cmd:"" default:"withargs"`
	List  consumeListCmd  `cmd:""`
}

type consumeQueueCmd struct {
	Queue        string `arg:"" name:"queue"`
	App          string `required:"" placeholder:"NAME"`
	Partitions   string `placeholder:"0,3"`
	PasswordFile string `env:"FOOTFALL_QUEUE_PASSWORD_FILE" placeholder:"FILE"`
	AdminAddr    string `env:"FOOTFALL_CONSUME_ADMIN_ADDR" default:"off" placeholder:"HOST:PORT"`

	address *queues.Address // as check has read it
}

func (c *consumeQueueCmd) check(g globals) []error {
	faults := g.checkDatabase()
	if c.AdminAddr != adminOff {
		faults = append(faults, checkAddress("--admin-addr", c.AdminAddr)...)
	}
	address, wrong := queues.ParseAddress(c.Queue, c.Partitions, c.PasswordFile, c.App)
	c.address = address
	return append(faults, wrong...)
}

func (c *consumeQueueCmd) run(ctx context.Context, p *program) error {
	var admin net.Listener
	if c.AdminAddr != adminOff {
		var err error
		if admin, err = net.Listen("tcp", c.AdminAddr); err != nil {
			return fmt.Errorf("--admin-addr: %w", taken(err))
		}
		defer admin.Close()
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return orInterrupted(ctx, p.withCounter(ctx, record.Options{Log: p.log, Metrics: registry}, func(counting *counter.Counter) error {
		if admin != nil {
			_, server := handler.Servers(counting, handler.Options{Log: p.log, Metrics: registry})
			defer func() { _ = server.Close() }()
			go func() { // until server is closed
				if err := server.Serve(admin); !errors.Is(err, http.ErrServerClosed) {
					p.log.Error("the admin address is not served any more", "error", err)
				}
			}()
			p.log.Info("ready", "admin", admin.Addr().String())
		}
		return queues.Run(ctx, counting, queues.Options{App: c.App, Connect: c.address.Connect, Log: p.log, Metrics: queues.NewMetrics(registry)})
	}))
}

type consumeListCmd struct {
	App string `placeholder:"NAME"`
}

func (c *consumeListCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		list, err := a.Queues(ctx, c.App)
		if err != nil {
			return err
		}
		table := tableOn(p.stdout, "APP\tQUEUE\tPART\tNEXT\tREFUSED\tOPENED")
		for _, q := range list {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", q.App, q.Source, q.Part, q.Next, q.Refused, moment(&q.Opened))
		}
		return table.Flush()
	})
}
