package counter

import (
	"slices"
	"strings"

	"footfall/record/cache"
	"footfall/visit/tag"
)

// bots finds out from the User-Agent whether a browser or a bot sends a request, and which browser
// (docs/decisions/0013-bots-by-rules.md). It is safe for concurrent use.
//
// In a browser, or in the web view of a mobile app, a person views the page. All other programs are bots: crawlers, assistants
// that fetch pages, link previews, monitors, browsers driven by programs, and HTTP libraries. So a mobile app that requests pages
// with an HTTP library is a bot, too: its requests look like those of a scraper with the same library.
type bots struct {
	verdicts *cache.Cache[string, verdict]
}

// verdict is the result of parsing a User-Agent.
type verdict struct {
	bot   bool
	agent tag.Agent
}

const (
	agentBytes    = 512     // longer User-Agents are cut; browsers' User-Agents are shorter, or the rest is irrelevant
	verdictBytes  = 5 << 20 // room for 8,000 to 16,000 User-Agents of the usual length
	agentOverhead = 176     // maximum bytes of a cache entry without its User-Agent, when the map has just grown; a test checks it
)

func newBots() *bots {
	return &bots{cache.New[string, verdict](verdictBytes, func(agent string) int { return len(agent) + agentOverhead })}
}

// isBot reports whether a User-Agent belongs to a crawler or another program. An empty User-Agent counts as a bot's, because
// every browser sends a User-Agent.
func (b *bots) isBot(agent string) bool { return b.lookUp(agent).bot }

// lookUp returns the parsed User-Agent, from the cache if possible.
func (b *bots) lookUp(agent string) verdict {
	agent = agent[:min(len(agent), agentBytes)]
	v, cached := b.verdicts.Get(agent)
	if !cached {
		v = verdict{isBot(agent), tag.ReadAgent(agent)}
		b.verdicts.Put(strings.Clone(agent), v) // a copy, so that the request's buffer can be freed
	}
	return v
}

// isBot reports whether a User-Agent belongs to a bot. It only searches for fixed texts, so its time depends only on the
// User-Agent's length.
func isBot(agent string) bool {
	agent = strings.ToLower(agent)
	return !resemblesBrowser(agent) || compatibleCrawler(agent) || namesBot(agent) || hasAny(agent, botMarks)
}

func hasAny(agent string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(agent, mark) })
}

// browserStarts are prefixes of browsers' User-Agents that do not start with "mozilla/": text browsers, old phones, and
// Facebook's app.
var browserStarts = []string{
	"opera/", "ucweb/", "lynx/", "w3m/", "links (", "elinks/", "dillo/", "netsurf/",
	"blackberry", "nokia", "samsung-", "sonyericsson", "[fban/",
}

// resemblesBrowser reports whether a User-Agent starts like a browser's. HTTP libraries, monitors and most previews do not.
func resemblesBrowser(agent string) bool {
	if strings.HasPrefix(agent, "mozilla/") {
		return strings.Contains(agent, "(") // a browser's User-Agent has the platform in parentheses
	}
	return slices.ContainsFunc(browserStarts, func(start string) bool { return strings.HasPrefix(agent, start) })
}

// compatibleCrawler reports whether a User-Agent contains "compatible", as those of crawlers do. User-Agents of old
// browsers also contain this word, so they are excluded.
func compatibleCrawler(agent string) bool {
	return strings.Contains(agent, "compatible") && !strings.Contains(agent, "msie") && !strings.Contains(agent, "konqueror")
}

// namesBot reports whether a word of a User-Agent ends in bot or bots. CUBOT, a maker of phones, is excluded.
func namesBot(agent string) bool {
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

// botMarks are texts in User-Agents of crawlers that otherwise look like a browser. No browser's User-Agent contains them.
// All are in lower case.
var botMarks = []string{
	"://", "www.",
	"crawl", "spider", "scrap", "slurp", "fetch/", "-user/", "python", "powershell",
	"headless", "phantomjs", "puppeteer", "playwright", "selenium", "cypress/", "jsdom",
	"preview", "externalhit", "prerender", "favicon", "imageproxy", "feeder", "-google", "google-",
	"lighthouse", "page speed", "pagespeed", "gtmetrix", "ptst/", "pingdom", "monitor", "synthetics", "thousandeyes", "appinsights",
	"siteimprove", "linkcheck", "acunetix", "nikto", "openvas",
}
