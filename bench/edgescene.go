package bench

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"footfall/visit"
)

// The parts of a measurement of the edge.
const (
	edgeKeys = "keys"
	edgeSlow = "slow"
)

// EdgeParts are the names that EdgeOptions.Parts may hold.
func EdgeParts() []string { return []string{edgeKeys, edgeSlow} }

// scene is a load under which ways are compared with the first of them.
type scene struct {
	part, name, about string
	workload          string
	steady            bool // so many visits a second, over few connections; else as many as wrk can over its own
	atLength          bool // left out where all is to be quick
	ways              []way
	asked             []asked
}

// asked is what a ratio to the first way is to be.
type asked struct {
	way    string
	figure edgeFigure
	least  float64 // 0: no bound
	most   float64 // 0: no bound
}

// way is how the service is set up, how it is visited, and beside whom.
type way struct {
	name, about string
	settings    func() visit.Settings // of the app
	keyed       bool                  // visits show a key
	proxied     bool                  // visits are of the caller's own address, as a trusted proxy tells it; else it is asserted
	crowded     bool                  // slow clients are there
}

var (
	openWay = way{
		name: "open", about: "an app made with --open: the address is asserted, no key, no limit", settings: openSettings,
	}
	guardedWay = way{
		name: "guarded", settings: guardedSettings, keyed: true,
		about: "a closed app: asserted with a key; every limit is set, and none is reached; crawlers are looked for, 10 networks are ignored",
	}
	strangerWay = way{
		name: "stranger", settings: strangerSettings, proxied: true,
		about: "a closed app: the visitor's own address as a trusted proxy's header tells it, no key; every limit is set, and none is reached; crawlers are looked for",
	}
	aloneWay   = way{name: "alone", about: "guarded, and nobody else is there", settings: guardedSettings, keyed: true}
	crowdedWay = way{name: "crowded", about: "guarded, while slow clients hold connections open", settings: guardedSettings, keyed: true, crowded: true}
)

// scenes in the order of the report.
var scenes = []scene{
	{
		part: edgeKeys, name: "first", atLength: true, workload: "first", about: "all visitors are new; as many visits as wrk can send",
		ways: []way{openWay, guardedWay, strangerWay}, asked: []asked{{way: guardedWay.name, figure: ofRate, least: 0.95}},
	},
	{
		part: edgeKeys, name: "returning", workload: "returning", about: "95 % of the visits are by visitors who come again; as many as wrk can send",
		ways: []way{openWay, guardedWay, strangerWay}, asked: []asked{{way: guardedWay.name, figure: ofRate, least: 0.95}},
	},
	{
		part: edgeSlow, name: "steady", workload: "returning", steady: true,
		about: "95 % of the visits are by visitors who come again; so many a second, each timed from when it was due",
		ways:  []way{aloneWay, crowdedWay}, asked: []asked{{way: crowdedWay.name, figure: ofP99, most: 2}},
	},
	{
		part: edgeSlow, name: "saturated", atLength: true, workload: "returning", about: "the same, as many as wrk can send",
		ways: []way{aloneWay, crowdedWay},
	},
}

// scenesOf are those of the named parts; all where none is named.
func scenesOf(parts []string, quick bool) (chosen []scene, err error) {
	parts, err = named("part", EdgeParts(), func(part string) string { return part }, parts)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		for _, one := range scenes {
			if one.part == part && (!quick || !one.atLength) {
				chosen = append(chosen, one)
			}
		}
	}
	return chosen, nil
}

// slowSite is what the slow clients visit, so that it can be told from what is measured.
const slowSite = "slow.example"

// unreached is a limit that is kept account of, and that no benchmark reaches.
const unreached = 1_000_000_000

func openSettings() visit.Settings {
	open := true
	return visit.Settings{Open: &open}
}

func strangerSettings() visit.Settings {
	limit := func() *string { n := strconv.Itoa(unreached); return &n }
	return visit.Settings{
		Sites:       []string{site, slowSite},
		MaxRequests: limit(), MaxNewVisitors: limit(), MaxNewPages: limit(), MaxPages: limit(),
	}
}

func guardedSettings() visit.Settings {
	s := strangerSettings()
	skip := "skip"
	s.Bots = &skip
	for n := range 10 { // beside those of the visitors
		s.Ignore = append(s.Ignore, fmt.Sprintf("192.0.2.%d/28", 16*n))
	}
	return s
}

// prepare makes the app in an empty database, with all its pages, and the key that visits show, or "".
func (w way) prepare(ctx context.Context, address string) (key string, err error) {
	d, err := openMigrated(ctx, address)
	if err != nil {
		return "", err
	}
	defer d.Close()
	admin := visit.NewAdmin(d, nil)
	if err := admin.AddApp(ctx, app, w.settings()); err != nil {
		return "", err
	}
	if w.keyed {
		if key, err = admin.AddKey(ctx, app, []visit.Scope{visit.ScopeAssert}); err != nil {
			return "", err
		}
	}
	_, err = internTargets(ctx, d) // a page is new once, and that is not what is measured
	return key, err
}

// arguments are the command line of the service.
func (w way) arguments(addr, admin, databaseURL string) []string {
	args := []string{"serve", "--addr", addr, "--admin-addr", admin, "--database-url", databaseURL, "--max-wait", "10s"}
	if w.proxied {
		args = append(args, "--trust-proxy", "127.0.0.1")
	}
	return args
}

// forwarded ends the name of a workload's visits whose addresses a proxy tells.
const forwarded = "-forwarded"

func forwardedLine(to io.Writer, a arrival) {
	fmt.Fprintf(to, "uri=http://%s\t%s\n", pageURI(int(a.page)), addressOf(int(a.visitor)))
}

// headers are those of the requests, in turns. All ways name a browser, which takes reading time whoever looks at it.
func (w way) headers(key string) (sets []string) {
	for _, agent := range agents() {
		set := "User-Agent: " + agent
		if w.keyed {
			set = "Authorization: Bearer " + key + "\t" + set
		}
		sets = append(sets, set)
	}
	return sets
}

// agents are what browsers call themselves, the way they do in one season: a few dozen.
func agents() (all []string) {
	systems := []string{
		"Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "Linux; Android 10; K", "X11; CrOS x86_64 14541.0.0",
	}
	const webKit, like = "AppleWebKit/537.36 (KHTML, like Gecko)", "Safari/537.36"
	for _, system := range systems {
		for version := 136; version <= 142; version++ {
			chrome := fmt.Sprintf("Mozilla/5.0 (%s) %s Chrome/%d.0.0.0", system, webKit, version)
			if strings.Contains(system, "Android") {
				chrome += " Mobile"
			}
			all = append(all, chrome+" "+like)
			if strings.Contains(system, "Windows") {
				all = append(all, fmt.Sprintf("%s %s Edg/%d.0.0.0", chrome, like, version))
			}
			if !strings.Contains(system, "Android") {
				all = append(all, fmt.Sprintf("Mozilla/5.0 (%s; rv:%d.0) Gecko/20100101 Firefox/%[2]d.0", system, version))
			}
		}
	}
	for minor := range 7 {
		all = append(all,
			fmt.Sprintf("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.%d Safari/605.1.15", minor),
			fmt.Sprintf("Mozilla/5.0 (iPhone; CPU iPhone OS 18_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.%[1]d Mobile/15E148 Safari/604.1", minor))
	}
	return all
}
