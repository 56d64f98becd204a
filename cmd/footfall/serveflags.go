package main

import (
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/docker/go-units"

	"footfall/db"
	"footfall/db/cells"
	"footfall/handler"
)

type serveCmd struct {
	Addr          string   `env:"FOOTFALL_ADDR" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	AdminAddr     string   `env:"FOOTFALL_ADMIN_ADDR" default:"127.0.0.1:8081" placeholder:"HOST:PORT"`
	Cells         string   `env:"FOOTFALL_CELLS" placeholder:"URL"`
	Migrate       bool     `env:"FOOTFALL_MIGRATE" default:"true" negatable:""`
	TrustProxy    []string `env:"FOOTFALL_TRUST_PROXY" placeholder:"CIDR"`
	ProxyHeader   string   `env:"FOOTFALL_PROXY_HEADER" placeholder:"NAME"`
	SignInHeader  string   `env:"FOOTFALL_SIGN_IN_HEADER" placeholder:"NAME"`
	CountryHeader string   `env:"FOOTFALL_COUNTRY_HEADER" placeholder:"NAME"`
	Dashboard     string   `env:"FOOTFALL_DASHBOARD" default:"on" placeholder:"on|off"`
	PublicURL     string   `name:"public-url" env:"FOOTFALL_PUBLIC_URL" placeholder:"URL"`
	Busuanzi      string   `env:"FOOTFALL_BUSUANZI" placeholder:"APP"`
	MaxWait       string   `env:"FOOTFALL_MAX_WAIT" default:"2s" placeholder:"DURATION"`
	Overload      string   `env:"FOOTFALL_OVERLOAD" default:"refuse" placeholder:"refuse|later"`
	InboxLimit    int64    `env:"FOOTFALL_INBOX_LIMIT" default:"10000000" placeholder:"VISITS"`
	Filter        string   `env:"FOOTFALL_FILTER" default:"on" placeholder:"on|off|only"`
	Memory        string   `env:"FOOTFALL_MEMORY" default:"320MB" placeholder:"SIZE"`
	RememberIDs   int      `name:"remember-ids" env:"FOOTFALL_REMEMBER_IDS" default:"7" placeholder:"DAYS"`
	countriesFlag

	// Values of flags after parsing, set by check.
	proxies *handler.Proxies
	maxWait time.Duration
	memory  int64
}

func (c *serveCmd) check(g globals) faults {
	var f faults
	if c.Cells == "" {
		f = g.checkDatabase()
	} else {
		_, err := cells.OpenCluster(c.Cells, db.Options{})
		f.addIf(err != nil, "--cells: %w", err)
		f.addIf(g.DatabaseURL != "" && g.DatabaseURL != c.Cells, "--cells: it replaces --database-url: leave that out")
		f.add(g.checkSecret())
	}
	f.add(checkAddress("--addr", c.Addr))
	f.add(checkAddress(adminAddr, c.AdminAddr))
	proxies, wrong := handler.NewProxies(c.TrustProxy, c.ProxyHeader)
	c.proxies, f = proxies, append(f, wrong...)
	f.add(handler.CheckSignInHeader(c.SignInHeader, c.TrustProxy))
	f.add(handler.CheckCountryHeader(c.CountryHeader, c.TrustProxy))
	var err error
	c.maxWait, err = time.ParseDuration(c.MaxWait)
	f.addIf(err != nil || c.maxWait <= 0 || c.maxWait > longestWait,
		"--max-wait: %q is not a possible duration: write one like 500ms or 2s, at most %v", c.MaxWait, longestWait)
	if c.Overload == "later" {
		c.maxWait = laterWait
	}
	f.addIf(c.Overload != "refuse" && c.Overload != "later", "--overload: %q is neither refuse nor later: write one of them", c.Overload)
	f.addIf(c.InboxLimit < 1, "--inbox-limit: %d is less than 1: write how many visits may wait", c.InboxLimit)
	f.addIf(c.Dashboard != "on" && c.Dashboard != "off", "--dashboard: %q is neither on nor off: write one of them", c.Dashboard)
	if c.PublicURL != "" {
		f.add(checkPublicURL(c.PublicURL))
	}
	f.addIf(c.Filter != "on" && c.Filter != "off" && c.Filter != "only", "--filter: %q is neither on, off nor only: write one of them",
		c.Filter)
	c.memory, err = units.RAMInBytes(c.Memory)
	f.addIf(err != nil || c.memory != 0 && c.memory < leastMemory,
		"--memory: %q is not a possible size: write one like 320MB, at least %s, or 0 to use none", c.Memory,
		units.BytesSize(leastMemory))
	f.addIf(c.RememberIDs < 1 || c.RememberIDs > longestMemory, "--remember-ids: %d is not a possible number of days: "+
		"write one from 1 to %d",
		c.RememberIDs, longestMemory)
	return f
}

// publicPath matches the valid paths of a URL in --public-url. The service's cookies get the same path as the URL.
var publicPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// checkPublicURL validates the public URL of a service.
func checkPublicURL(text string) error {
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || text != at.Scheme+"://"+at.Host+at.Path ||
		!publicPath.MatchString(at.Path) {
		return fmt.Errorf("--public-url: %q is not a valid URL for a service: write one like https://count.example, or "+
			"https://blog.example/numbers, without a slash at its end", text)
	}
	return nil
}

// shares divides --memory evenly among several databases. It returns two sizes in bytes for each database: one for the
// filter of all visitors, and one for the memory of recent visitors.
func (c *serveCmd) shares(among int64) (filter, memory int64) {
	all := c.memory / among
	switch c.Filter {
	case "off":
		return 0, all
	case "only":
		return all, 0
	}
	return all / 5 * 4, all / 5
}
