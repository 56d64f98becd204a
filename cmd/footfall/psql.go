package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"footfall/db"
	"footfall/db/embedded"
)

type psqlCmd struct {
	ReadOnly bool
	Args     []string `arg:"" optional:"" passthrough:""`
}

// psqlGrace is how long psql may take to exit after it has received SIGTERM. Then psql is killed.
const psqlGrace = 5 * time.Second

// check reports a fault if a flag of Footfall follows a flag of psql, because Kong would pass both to psql. If the
// arguments start with --, all of them are meant for psql, so check reports no such fault.
func (c *psqlCmd) check(g globals) faults {
	f := g.checkDatabase()
	if len(c.Args) > 0 && c.Args[0] == "--" {
		return f
	}
	for _, arg := range c.Args {
		switch name, _, _ := strings.Cut(arg, "="); name {
		case "--data", "--database-url", "--secret-file", "--require-standby", "--postgres-bin", "--log-level", "--log-format", "--read-only":
			f.add(fmt.Errorf("%s: after a flag of psql, all flags are passed to psql: write it first, "+
				"as in psql %s … -- -c …", name, name))
		}
	}
	return f
}

func (c *psqlCmd) run(ctx context.Context, p *program) error {
	binary, err := findPsql(p.PostgresBin)
	if err != nil {
		return err
	}
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	settings := []string{"search_path=" + db.Schema}
	if c.ReadOnly {
		settings = append(settings, "default_transaction_read_only=on")
	}
	return p.withURL(ctx, func(given string) error {
		database, err := db.Direct(ctx, given)
		if err != nil {
			return err
		}
		target, options := psqlTarget(database, os.Getenv("PGOPTIONS"), settings)
		child := exec.CommandContext(ctx, binary, append([]string{"--dbname=" + target}, args...)...)
		child.Stdin, child.Stdout, child.Stderr = p.stdin, p.stdout, p.stderr
		child.Env = append(os.Environ(), "PGOPTIONS="+options)
		child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
		child.WaitDelay = psqlGrace
		// The terminal sends Ctrl-C both to this program and to psql. In psql, Ctrl-C only cancels a statement, so this
		// program must continue.
		signal.Reset(os.Interrupt)
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, os.Interrupt)
		defer signal.Stop(ignored)
		err = child.Run()
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() > 0 {
			return childExit(ended.ExitCode())
		}
		return err
	})
}

// psqlTarget returns the URL for psql, and the value of the environment variable PGOPTIONS. It moves session settings
// (options=…) from the URL to PGOPTIONS. From the URL, it also removes parameters that only the Go driver accepts.
func psqlTarget(database, options string, settings []string) (target, pgoptions string) {
	parts := strings.Fields(options)
	parsed, err := url.Parse(database)
	if err == nil && (parsed.Scheme == "postgres" || parsed.Scheme == "postgresql") {
		query := parsed.Query()
		if own := query.Get("options"); own != "" {
			parts = append(parts, own)
		}
		query.Del("options")
		for name := range query {
			if strings.HasPrefix(name, "pool_") || strings.HasSuffix(name, "_cache_capacity") || name == "default_query_exec_mode" {
				query.Del(name)
			}
		}
		parsed.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // psql does not decode a plus
		database = parsed.String()
	}
	for _, setting := range settings {
		parts = append(parts, "-c "+setting)
	}
	return database, strings.Join(parts, " ")
}

// findPsql returns the path of psql. It first searches the folder with PostgreSQL's server programs, and then the PATH.
// Debian installs psql on the PATH.
func findPsql(explicit string) (string, error) {
	folder, err := embedded.Find(explicit)
	if err == nil {
		binary := filepath.Join(folder, "psql")
		if info, err := os.Stat(binary); err == nil && info.Mode().IsRegular() {
			return binary, nil
		}
	}
	binary, err := exec.LookPath("psql")
	if err != nil {
		return "", errors.New("psql was not found, neither next to PostgreSQL's server nor on the PATH: " +
			"install PostgreSQL's client (apt-get install postgresql-client, dnf install postgresql, apk add postgresql-client, brew install libpq)")
	}
	return binary, nil
}
