package main

import (
	"context"

	"footfall/db"
)

type standbyRequireCmd struct {
	What string `arg:"" name:"on|off"`
}

func (c *standbyRequireCmd) check(g globals) faults {
	f := g.checkDatabase()
	f.addIf(c.What != "on" && c.What != "off", "standby require: %q is neither on nor off: write one of them", c.What)
	f.addIf(c.What == "on" && g.embedded(), "standby require: the embedded server has no standby: name a server that has one with "+
		"--database-url")
	return f
}

func (c *standbyRequireCmd) run(ctx context.Context, p *program, d *db.DB) error {
	says := "from now on, the server's settings decide whether acknowledged visits are on one machine or two"
	if c.What == "on" {
		says = "from now on, nothing is counted or changed unless COMMIT waits for a synchronous standby"
	}
	return p.printChange(d.SayStandby(ctx, c.What == "on", false), "%s", says)
}

// storeStandbyRequirement stores the flag --require-standby in the tables, so that all instances and commands require a
// synchronous standby. If the flag is missing, but the tables already require a standby, it logs a message.
func (p *program) storeStandbyRequirement(ctx context.Context, d *db.DB) error {
	ctx, cancel := d.InTime(ctx)
	defer cancel()
	if p.NeedStandby {
		return d.SayStandby(ctx, true, true)
	}
	standby, err := d.Standby(ctx)
	if err == nil && standby.Required {
		p.log.Info("nothing is counted unless COMMIT waits for a synchronous standby: the tables require it, " +
			"although --require-standby is not given; " + p.commandToType("standby require off") + " changes this")
	}
	return err
}
