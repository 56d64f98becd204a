package counter

import (
	"strings"

	"footfall/counter/app"
	"footfall/record/cache"
	"footfall/visit"
)

// skips returns why a visit is not counted; "" for a visit that is to be counted.
func (c *Counter) skips(a *app.App, r *Request, w subject) visit.Skipped {
	why := c.whySkipped(a, r, w)
	if why != "" {
		c.metrics.skipped.WithLabelValues(string(why)).Inc()
	}
	return why
}

func (c *Counter) whySkipped(a *app.App, r *Request, w subject) visit.Skipped {
	switch {
	case r.Prefetch:
		return visit.SkippedPrefetch
	case a.Ignores(w.address, r.Visitor):
		return visit.SkippedIgnored
	case a.RespectDnt && r.DoNotTrack:
		return visit.SkippedDNT
	case r.Agent == "" && w.asserter: // a backend tells of the visitor what it knows
	case w.badge && isImageProxy(r.Agent):
	case a.SkipsBots(w.untrusted) && c.bots.is(r.Agent):
		return visit.SkippedBot
	}
	return ""
}

// bots tells crawlers from browsers by their User-Agent. It is safe for concurrent use.
//
// A person looks at a page in a browser; everything else is a bot: search engines, AI crawlers and
// assistants that fetch for somebody, SEO tools, link previews (WhatsApp, Slackbot,
// facebookexternalhit), monitors (UptimeRobot, Pingdom), browsers that a program drives
// (HeadlessChrome, PhantomJS, Cypress), and HTTP libraries (curl, python-requests, axios). So are
// the libraries of mobile apps (okhttp, CFNetwork, Dalvik): nothing tells an app that a person
// holds from a scraper with the same library. A page shown inside an app (Facebook, Instagram,
// WeChat, a WebView, Electron) is looked at by a person, and so is one in a text browser.
//
// A full list of crawlers would be out of date the day after, so nearly all are recognized by what
// their names have in common. A crawler with exactly the User-Agent of a browser is not recognized;
// no list could do that.
type bots struct {
	verdicts *cache.Cache[string, bool]
}

const (
	agentBytes    = 512     // of an agent that are read; all that matters in that of a browser is shorter
	verdictBytes  = 4 << 20 // room for 8,000 agents of the usual length at least, and twice that at most
	agentOverhead = 96      // bytes of an entry beside its agent, at most. A test holds it
)

func newBots() *bots {
	return &bots{cache.New[string, bool](verdictBytes, func(agent string) int { return len(agent) + agentOverhead })}
}

// is reports whether a User-Agent is that of a crawler or another program. An empty one is: every
// browser sends one.
func (b *bots) is(agent string) bool {
	agent = agent[:min(len(agent), agentBytes)]
	bot, known := b.verdicts.Get(agent)
	if !known {
		bot = judgeAgent(agent)
		b.verdicts.Put(strings.Clone(agent), bot) // a copy, which does not keep the whole request in memory
	}
	return bot
}

// judgeAgent searches for fixed texts only, so that its time depends on the length of an agent
// alone.
func judgeAgent(agent string) bool {
	agent = strings.ToLower(agent)
	return !likeBrowser(agent) || givesAddress(agent) || compatibleCrawler(agent) || calledBot(agent) || marked(agent)
}

// browserStarts are the beginnings of the agents of browsers: all current ones, text browsers,
// those of phones before smartphones, and that of Facebook's app, which may have nothing else.
var browserStarts = []string{
	"mozilla/", "opera/", "ucweb/", "lynx/", "w3m/", "links (", "elinks/", "dillo/", "netsurf/",
	"blackberry", "nokia", "samsung-", "sonyericsson", "[fban/",
}

// likeBrowser reports whether an agent begins like a browser's. HTTP libraries, monitors and most
// previews do not.
func likeBrowser(agent string) bool {
	for _, start := range browserStarts {
		if strings.HasPrefix(agent, start) {
			return start != "mozilla/" || strings.Contains(agent, "(") // in browsers the platform follows in parentheses
		}
	}
	return false
}

// givesAddress reports whether an agent contains a web address, as that of a crawler should and
// that of a browser never does.
func givesAddress(agent string) bool {
	return strings.Contains(agent, "://") || strings.Contains(agent, "www.")
}

// compatibleCrawler reports whether an agent says "compatible", as crawlers do, and of browsers
// only old ones.
func compatibleCrawler(agent string) bool {
	return strings.Contains(agent, "compatible") && !strings.Contains(agent, "msie") && !strings.Contains(agent, "konqueror")
}

// calledBot reports whether a word of an agent ends in bot or bots, but not in CUBOT, which is a
// maker of phones.
func calledBot(agent string) bool {
	for {
		before, after, found := strings.Cut(agent, "bot")
		if !found {
			return false
		}
		end := strings.TrimPrefix(after, "s")
		if (end == "" || end[0] < 'a' || end[0] > 'z') && !strings.HasSuffix(before, "cu") {
			return true
		}
		agent = after
	}
}

// botMarks are found in agents of crawlers that otherwise look like a browser, and in no agent of a
// browser. They are in lower case.
var botMarks = []string{
	"crawl", "spider", "scrap", "slurp", "fetch/", "-user/", "python", "powershell",
	"headless", "phantomjs", "puppeteer", "playwright", "selenium", "cypress/", "jsdom",
	"preview", "externalhit", "prerender", "favicon", "imageproxy", "feeder", "-google", "google-",
	"lighthouse", "page speed", "pagespeed", "gtmetrix", "ptst/", "pingdom", "monitor", "synthetics", "thousandeyes", "appinsights",
	"siteimprove", "linkcheck", "acunetix", "nikto", "openvas",
}

func marked(agent string) bool {
	for _, mark := range botMarks {
		if strings.Contains(agent, mark) {
			return true
		}
	}
	return false
}
