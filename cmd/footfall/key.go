package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"footfall/admin"
	"footfall/counter/app"
)

type keyCmd struct {
	Add    keyAddCmd    `cmd:""`
	List   keyListCmd   `cmd:""`
	Revoke keyRevokeCmd `cmd:""`
}

type keyAddCmd struct {
	App   string      `arg:""`
	Scope []app.Scope `required:"" sep:"none" placeholder:"SCOPE"`
}

type keyListCmd struct {
	App string `arg:""`
}

type keyRevokeCmd struct {
	App string `arg:""`
	Key string `arg:""`
}

func (c *keyAddCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		key, err := a.AddKey(ctx, c.App, c.Scope)
		if key == "" {
			return err
		}
		fmt.Fprintf(p.stderr, "Send the key as the header `Authorization: Bearer KEY`, never in a URL. Keep it: it is shown this once.\n")
		fmt.Fprintln(p.stdout, key)
		return err // the key is made; perhaps an instance does not know it yet
	})
}

func (c *keyListCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		keys, err := a.Keys(ctx, c.App)
		if err != nil {
			return err
		}
		table := tableOn(p.stdout, "KEY\tSCOPES\tMADE\tLAST USED\tREVOKED")
		for _, key := range keys {
			fmt.Fprintf(table, "%s_…\t%s\t%s\t%s\t%s\n", key.Name, strings.Join(key.Scopes, ","),
				moment(&key.Made), moment(key.Used), moment(key.Revoked))
		}
		return table.Flush()
	})
}

func (c *keyRevokeCmd) run(ctx context.Context, p *program) error {
	return p.withAdmin(ctx, func(a *admin.Admin) error {
		if err := a.RevokeKey(ctx, c.App, strings.TrimSuffix(c.Key, "_…")); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "revoked the key of app %s\n", c.App)
		return nil
	})
}

// moment writes a time for people; nil is "-".
func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
