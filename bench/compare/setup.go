package compare

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/bench/tables"
	"footfall/counter"
)

// setUpOpen makes an app that counts whatever a caller asserts.
func setUpOpen(ctx context.Context, address string, preload int) (string, error) {
	open := "open"
	return setUpApp(ctx, address, preload, counter.Settings{Access: &open}, false)
}

// setUpStranger makes an app that counts callers of one site, each within limits that no benchmark
// reaches.
func setUpStranger(ctx context.Context, address string, preload int) (string, error) {
	return setUpApp(ctx, address, preload, limited(), false)
}

// setUpGuarded makes one that counts whom the holder of a key asserts, besides.
func setUpGuarded(ctx context.Context, address string, preload int) (string, error) {
	s := limited()
	skip := "skip"
	s.Bots = &skip
	for n := range 10 { // beside those of the visitors
		s.Ignore = append(s.Ignore, fmt.Sprintf("192.0.2.%d/28", 16*n))
	}
	return setUpApp(ctx, address, preload, s, true)
}

func limited() counter.Settings {
	unreached := strconv.Itoa(1_000_000_000)
	return counter.Settings{Sites: []string{load.Site}, MaxRequests: &unreached, MaxNewPages: &unreached}
}

func setUpApp(ctx context.Context, address string, preload int, s counter.Settings, keyed bool) (key string, err error) {
	d, err := bench.Migrated(ctx, address)
	if err != nil {
		return "", err
	}
	defer d.Close()
	admin := counter.NewAdmin(d, nil)
	if err := admin.AddApp(ctx, load.App, s); err != nil {
		return "", err
	}
	if keyed {
		if key, err = admin.AddKey(ctx, load.App, []counter.Scope{counter.ScopeAssert}); err != nil {
			return "", err
		}
	}
	return key, fill(ctx, address, preload)
}

// setUpByProgram lets another version make its own tables and an app that counts whatever a caller
// asserts.
func setUpByProgram(ctx context.Context, program, address string, preload int) (string, error) {
	run := func(words ...string) error {
		out, err := exec.CommandContext(ctx, program, append(words, "--database-url", address)...).CombinedOutput() //nolint:gosec // the caller names it
		if err != nil {
			return fmt.Errorf("old: %s %s: %s: %s", program, strings.Join(words, " "), err.Error(), strings.TrimSpace(string(out)))
		}
		return nil
	}
	if err := run("migrate", "up"); err != nil {
		return "", err
	}
	err := run("app", "add", load.App, "--access", "open")
	if err != nil { // so it was written before there was --access
		if before := run("app", "add", load.App, "--open"); before != nil {
			return "", errors.Join(err, before)
		}
	}
	return "", fill(ctx, address, preload)
}

// fill makes the site and all its pages: a page is new once, and that is not what is measured. Then
// it makes so many rows of visitors: half as many people, each of whom came to one page, and so to
// the site. It knows no more of the tables than versions share.
func fill(ctx context.Context, address string, preload int) error {
	conn, err := bench.Connect(ctx, address, nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	q := tables.New(conn)
	uris := make([]string, load.Pages)
	for i := range uris {
		uris[i] = load.PageURI(i)
	}
	err = q.TargetsMake(ctx, tables.TargetsMakeParams{Site: load.Site, Pages: uris})
	if err == nil && preload > 0 {
		err = errors.Join(
			q.VisitorsPreload(ctx, tables.VisitorsPreloadParams{Visitors: int64(preload / 2), Multiplier: load.Multiplier}),
			q.CountersPreload(ctx), q.VisitorsVacuum(ctx), q.Checkpoint(ctx))
	}
	if err != nil {
		return fmt.Errorf("bench: fill the tables: %w", err)
	}
	return nil
}
