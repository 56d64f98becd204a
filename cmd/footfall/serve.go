package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"footfall/account"
	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/handler"
	"footfall/handler/routing"
	"footfall/record"
	"footfall/retention"
	"footfall/status"
	"footfall/webhook"
)

const (
	adminAddr     = "--admin-addr" // only the address in this flag may be off
	adminOff      = "off"
	connectWithin = 30 * time.Second      // how long to wait at the start until the database server responds
	drainWithin   = 40 * time.Second      // time limit for open requests at shutdown; a batch of visits takes less time
	longestWait   = 10 * time.Second      // maximum of --max-wait, less than the server's write timeout
	laterWait     = 20 * time.Millisecond // with --overload later: how long a visit may wait before it is written to the inbox
	stopWithin    = 30 * time.Second      // how long the embedded PostgreSQL may take to write its data and stop
	tryEvery      = time.Second
	leastMemory   = 5 << 20
	longestMemory = 366 // days; the maximum of --remember-ids
)

// run opens the listeners before the database, so that it can report a port in use before it changes anything. At the end,
// run closes everything in the opposite order.
func (c *serveCmd) run(ctx context.Context, p *program) (err error) {
	if c.Cells != "" {
		p.DatabaseURL = c.Cells
	}
	countries, err := c.openCountries(ctx, p.log)
	if err != nil {
		return err
	}
	public, err := listen("--addr", c.Addr)
	if err != nil {
		return err
	}
	defer public.Close()
	private, err := listen(adminAddr, c.AdminAddr)
	if err != nil {
		return err
	}
	if private != nil {
		defer private.Close()
	}

	database, stop, err := c.startDatabase(ctx, p)
	if err != nil {
		return orInterrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, stop()) }()

	registry := newRegistry()
	all, accounts, err := c.openAll(ctx, p, database, openOptions{metrics: registry, countries: countries, shares: 1,
		slots: admin.NewSlots(ctx), options: db.Options{
			Name: instanceName(public.Addr()), Writers: record.Connections(), RequireStandby: p.NeedStandby, Log: p.log}})
	if err != nil {
		return orInterrupted(ctx, err)
	}
	if c.SignInHeader != "" && c.proxies.TrustNetworks() {
		p.log.Warn("--sign-in-header: any machine in a network of --trust-proxy, and any client " +
			"whose header a proxy there passes on, can sign in under any name: name the individual addresses of your proxies, " +
			"and have them remove this header from clients' requests")
	}
	stopping := make(chan struct{})
	options := handler.Options{Log: p.log, Metrics: registry, Stopping: stopping, Proxies: c.proxies, CountryHeader: c.CountryHeader,
		Accounts: accounts, SignInHeader: c.SignInHeader, Zone: machineZone(localtime), Cells: all,
		Dashboard: c.Dashboard == "on", PublicURL: c.PublicURL, Busuanzi: c.Busuanzi, CountriesBy: countries.About, Help: readHelp(helpText)}
	failed := make(chan error, 2) // has room for one error of each server
	service, operators := handler.Servers(options)
	serveListener(public, service, failed)
	if private != nil {
		serveListener(private, operators, failed)
	}
	c.announce(ctx, p, public.Addr(), private, options.Accounts)

	select {
	case <-ctx.Done():
		p.log.Info("stopping: visits in progress are answered first")
	case err = <-failed:
	}
	close(stopping)
	err = errors.Join(err, drain(service, all))
	_ = operators.Close()
	return err
}

// runAlongside starts two background tasks, which run until end is called. One applies retention once a day. The other
// sends the calls of webhooks. Calls must be signed with the secret, so without a secret they stay in the database.
func runAlongside(d *db.DB, c *counter.Counter, secret app.Secret, log *slog.Logger) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { retention.NewRetainer(d, retention.Options{Log: log}).Daily(ctx) })
	key := secret.WebhookKey
	if len(secret) == 0 {
		key = nil
	}
	done.Go(func() { webhook.NewSender(d, key, webhook.Options{Log: log}).Run(ctx) })
	return func() { cancel(); done.Wait() }
}

// instanceName returns a name that distinguishes this instance from the other instances on the same database. It consists
// of version, address and host name. PostgreSQL stores only the first 63 bytes of the name.
func instanceName(at net.Addr) string {
	host, _ := os.Hostname() // without a host name, the name contains only version and address
	return strings.TrimSpace(fmt.Sprintf("footfall %s %s %s", version, at, host))
}

// addressOf returns the address in name, which instanceName has returned. If that instance is not on this host, it returns
// "".
func addressOf(name, host string) string {
	words := strings.Fields(name)
	if len(words) < 3 || words[0] != "footfall" || !strings.HasPrefix(host, strings.Join(words[3:], " ")) {
		return ""
	}
	return words[2]
}

// describeDisk registers metrics for the free space and the size of the disk that contains dir.
func describeDisk(registry prometheus.Registerer, dir string) {
	gauge := func(name, what string, bytes func(*status.Disk) int64) {
		promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
			Name: name, Help: what + " of the disk with the data of the embedded PostgreSQL. NaN if it cannot be determined.",
		}, func() float64 {
			disk, err := status.DiskOf(dir)
			if err != nil {
				return math.NaN()
			}
			return float64(bytes(disk))
		})
	}
	gauge("footfall_data_free_bytes", "Free space", func(d *status.Disk) int64 { return d.Free })
	gauge("footfall_data_disk_bytes", "Size", func(d *status.Disk) int64 { return d.Bytes })
}

// orInterrupted returns nil if ctx has ended, because the user has then stopped the program, which has caused err.
// Otherwise it returns err.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listen listens on the address in a flag. If the address is empty or "off", it returns nil. Its errors suggest a remedy.
func listen(flag, address string) (net.Listener, error) {
	if address == "" || address == adminOff {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err == nil {
		return listener, nil
	}
	hint := "name another address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another program uses it: stop that, or name another address"
	case errors.Is(err, fs.ErrPermission):
		hint = "only root may listen there: name a port of 1024 or above"
	}
	if flag == adminAddr {
		hint += ", or off"
	}
	return nil, fmt.Errorf("%s: %w: %s", flag, err, hint)
}

// startDatabase returns the URL of the database. Without --database-url, it first starts the embedded server, and the
// returned function stop stops this server. With --database-url, stop does nothing.
func (c *serveCmd) startDatabase(ctx context.Context, p *program) (url string, stop func() error, err error) {
	if !p.embedded() {
		return p.DatabaseURL, func() error { return nil }, nil
	}
	p.makesData = true
	k, err := startKeeper(ctx, p.embeddedConfig())
	if err != nil {
		return "", nil, p.nameDatabaseFlag(err)
	}
	return k.url, k.stop, nil
}

// prepare waits until the database responds, unless it is a cell: a cell has already responded before prepare is called.
// Then prepare migrates or checks the schema. It adds the demo app to a new embedded database. Other databases get no demo
// app, because strangers may be able to reach their services from the start.
func (c *serveCmd) prepare(ctx context.Context, p *program, d *db.DB, cell string) error {
	if cell == "" {
		if err := p.awaitDatabase(ctx, d, connectWithin); err != nil {
			return err
		}
	}
	if err := d.CheckSessions(ctx); err != nil {
		return p.nameDatabaseFlag(err)
	}
	var applied []string
	var err error
	if c.Migrate {
		applied, err = d.MigrateUp(ctx)
	}
	if away := db.IsConnect(err) && d.IsCell(); !c.Migrate || away { // a cell with the current schema needs no coordinator
		if away {
			p.log.Warn("--migrate: the schema was not migrated, because that needs the coordinator", "error", db.Sentence(err))
		}
		err = d.CheckSchema(ctx)
	}
	if len(applied) > 0 {
		p.log.Info("schema brought up to date", "applied", applied)
	}
	if err != nil {
		return err
	}
	if err := p.storeStandbyRequirement(ctx, d); err != nil {
		return err
	}
	if p.embedded() {
		if err := admin.NewAdmin(d, nil).AddDemo(ctx); err != nil {
			return err
		}
	}
	apps, err := d.Apps(ctx)
	if err != nil {
		return fmt.Errorf("list apps: %w", err)
	}
	c.warnOfApps(p, apps, cell)
	return nil
}

// warnOfApps logs a warning for each open app, because anyone can count visits for it and claim to be any visitor. Without
// --cells, it also logs a warning if there is no app, or if the app in --busuanzi does not exist.
func (c *serveCmd) warnOfApps(p *program, apps []db.App, cell string) {
	if len(apps) == 0 && c.Cells == "" {
		p.log.Warn("there is no app yet, so nothing is counted: " + p.commandToType("app add NAME --site YOUR-SITE") + " adds one")
	} else if c.Busuanzi != "" && c.Cells == "" && !slices.ContainsFunc(apps, func(a db.App) bool { return a.Name == c.Busuanzi }) {
		p.log.Warn("--busuanzi: there is no app " + c.Busuanzi + " yet: " +
			p.commandToType("app add "+c.Busuanzi+" --site YOUR-SITE") + " adds it")
	}
	in := ""
	if cell != "" {
		in = ", with the --database-url that `footfall cell list` shows for the cell " + cell
	}
	for _, app := range apps {
		if app.Access == "open" {
			p.log.Warn("the app " + app.Name + " is open: anyone can count visits for it, under any ip or visitor that they send. " +
				"Restrict it before others can reach this service: " +
				p.commandToType("app set "+app.Name+" --access sites --site YOUR-SITE") + in)
		}
	}
}

// announce logs the addresses of the service, and starts to notify systemd. If the dashboard is on and there is no account
// yet, it also prints a new link for creating the first account.
func (c *serveCmd) announce(ctx context.Context, p *program, public net.Addr, operators net.Listener, accounts *account.Accounts) {
	where := []any{"address", public.String()}
	if operators != nil {
		where = append(where, "admin", operators.Addr().String())
	}
	p.log.Info("ready", where...)
	go notifySystemd(ctx, public.String(), p.log)
	if c.Dashboard != "on" {
		return
	}
	start, err := accounts.NewStart(ctx)
	if err != nil {
		p.log.Warn("no link for creating the first account could be made: "+p.commandToType("start-link")+" tries again", "error", err)
	}
	if start != "" {
		fmt.Fprintf(p.stdout, "\n  Open this to begin:  %s\n\n", passwordLink(cmp.Or(c.PublicURL, servedAt(public.String())), start))
	}
}

// serveListener serves requests in a goroutine until the server is shut down. If the server fails, the goroutine sends the
// error to failed.
func serveListener(l net.Listener, server *http.Server, failed chan<- error) {
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("listen on %s: %w", l.Addr(), err)
		}
	}()
}

// drain waits until all accepted visits are counted, and their requests have a response. It stops the HTTP server before it
// stops the counters, because open requests wait for the counters.
func drain(service *http.Server, c *routing.Cells) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	err := service.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("some connections were closed, because they were still in use %v "+
			"after the service was asked to stop: %w", drainWithin, err)
		_ = service.Close()
	}
	c.Close()
	return err
}
