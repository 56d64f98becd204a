package main

import (
	"context"
	"errors"
	"net/http"

	"footfall/admin"
	"footfall/counter"
	"footfall/handler"
	"footfall/handler/routing"
	"footfall/intake/queues"
	"footfall/record"
)

type consumeQueueCmd struct {
	Queue        string `arg:"" name:"queue"`
	App          string `required:"" placeholder:"NAME"`
	Partitions   string `placeholder:"0,3"`
	PasswordFile string `env:"FOOTFALL_QUEUE_PASSWORD_FILE" placeholder:"FILE"`
	AdminAddr    string `env:"FOOTFALL_CONSUME_ADMIN_ADDR" default:"off" placeholder:"HOST:PORT"`
	countriesFlag

	address *queues.Address // the address in Queue, parsed by check
}

func (c *consumeQueueCmd) check(g globals) faults {
	f := g.checkDatabase()
	f.add(checkAddress(adminAddr, c.AdminAddr))
	address, wrong := queues.ParseAddress(c.Queue, c.Partitions, c.PasswordFile, c.App)
	c.address = address
	return append(f, wrong...)
}

func (c *consumeQueueCmd) run(ctx context.Context, p *program) error {
	admin, err := listen(adminAddr, c.AdminAddr)
	if err != nil {
		return err
	}
	if admin != nil {
		defer admin.Close()
	}
	registry := newRegistry()
	return orInterrupted(ctx, p.withCounter(ctx, c.countriesFlag, record.Options{Log: p.log, Metrics: registry},
		func(counting *counter.Counter) error {
			if admin != nil {
				_, server := handler.Servers(handler.Options{Log: p.log, Metrics: registry, Cells: routing.NewSingle(&routing.Cell{Counter: counting})})
				defer func() { _ = server.Close() }()
				go func() { // this goroutine runs until server is closed
					if err := server.Serve(admin); !errors.Is(err, http.ErrServerClosed) {
						p.log.Error("the admin address is no longer served", "error", err)
					}
				}()
				p.log.Info("ready", "admin", admin.Addr().String())
			}
			return queues.Run(ctx, counting, queues.Options{App: c.App, Connect: c.address.Connect, Log: p.log,
				Metrics: queues.NewMetrics(registry)})
		}))
}

type consumeListCmd struct {
	App string `placeholder:"NAME"`
}

func (c *consumeListCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	list, err := a.Queues(ctx, c.App)
	return printRows(p.stdout, err, "APP\tQUEUE\tPARTITION\tNEXT\tREFUSED\tOPENED", list,
		func(of admin.OfApp[admin.QueuesListRow]) []any {
			q := of.Row
			return []any{of.App, q.Source, q.Part, q.Next, q.Refused, moment(&q.UsedAt)}
		})
}
