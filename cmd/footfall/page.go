package main

import (
	"context"

	"footfall/counter"
)

type pageCmd struct {
	Delete pageDeleteCmd `cmd:""`
}

type pageDeleteCmd struct {
	App string `arg:""`
	URI string `arg:"" name:"uri"`
}

func (c *pageDeleteCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *counter.Admin) error { return a.DeletePage(ctx, c.App, c.URI) })
}
