package counter

import (
	"slices"
	"strings"

	"footfall/record/cache"
	"footfall/visit/tag"
)

// bots tells crawlers from browsers by their User-Agent (docs/decisions/0013-bots-by-rules.md), and
// browsers from each other. It is safe for concurrent use.
//
// A person looks at a page in a browser, or inside an app; everything else is a bot: crawlers,
// assistants that fetch for somebody, link previews, monitors, browsers that a program drives, and
// HTTP libraries, also those of mobile apps: nothing tells an app that a person holds from a scraper
// with the same library.
type bots struct {
	verdicts *cache.Cache[string, verdict]
}

// verdict is what an agent says of whom it belongs to.
type verdict struct {
	bot   bool
	agent tag.Agent
}

const (
	agentBytes    = 512     // of an agent that are read; all that matters in that of a browser is shorter
	verdictBytes  = 5 << 20 // room for 8,000 agents of the usual length at least, and twice that at most
	agentOverhead = 176     // bytes of an entry beside its agent, at most: its map has just grown. A test holds it
)

func newBots() *bots {
	return &bots{cache.New[string, verdict](verdictBytes, func(agent string) int { return len(agent) + agentOverhead })}
}

// is reports whether a User-Agent is that of a crawler or another program. An empty one is: every
// browser sends one.
func (b *bots) is(agent string) bool { return b.of(agent).bot }

// of returns what a User-Agent says.
func (b *bots) of(agent string) verdict {
	agent = agent[:min(len(agent), agentBytes)]
	v, cached := b.verdicts.Get(agent)
	if !cached {
		v = verdict{isBot(agent), tag.ReadAgent(agent)}
		b.verdicts.Put(strings.Clone(agent), v) // a copy, which does not keep the whole request in memory
	}
	return v
}

// isBot reports whether an agent is that of a bot. It searches for fixed texts only, so that its time
// depends on the length of an agent alone.
func isBot(agent string) bool {
	agent = strings.ToLower(agent)
	return !likeBrowser(agent) || compatibleCrawler(agent) || calledBot(agent) || hasAny(agent, botMarks)
}

func hasAny(agent string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(agent, mark) })
}

// browserStarts are the beginnings of the agents of browsers that do not begin as all current ones do:
// text browsers, those of phones before smartphones, and that of Facebook's app.
var browserStarts = []string{
	"opera/", "ucweb/", "lynx/", "w3m/", "links (", "elinks/", "dillo/", "netsurf/",
	"blackberry", "nokia", "samsung-", "sonyericsson", "[fban/",
}

// likeBrowser reports whether an agent begins like a browser's. HTTP libraries, monitors and most
// previews do not.
func likeBrowser(agent string) bool {
	if strings.HasPrefix(agent, "mozilla/") {
		return strings.Contains(agent, "(") // in browsers the platform follows in parentheses
	}
	return slices.ContainsFunc(browserStarts, func(start string) bool { return strings.HasPrefix(agent, start) })
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
// browser: web addresses, and words. They are in lower case.
var botMarks = []string{
	"://", "www.",
	"crawl", "spider", "scrap", "slurp", "fetch/", "-user/", "python", "powershell",
	"headless", "phantomjs", "puppeteer", "playwright", "selenium", "cypress/", "jsdom",
	"preview", "externalhit", "prerender", "favicon", "imageproxy", "feeder", "-google", "google-",
	"lighthouse", "page speed", "pagespeed", "gtmetrix", "ptst/", "pingdom", "monitor", "synthetics", "thousandeyes", "appinsights",
	"siteimprove", "linkcheck", "acunetix", "nikto", "openvas",
}
