package counter

import (
	"footfall/record/cache"
	"strings"
)

// bots tells crawlers by what they call themselves. It is safe for concurrent use.
//
// A person looks at a page in a browser; everything else is a bot: search engines, AI crawlers and assistants that fetch for
// somebody, SEO tools, link previews (WhatsApp, Slackbot, facebookexternalhit), monitors (UptimeRobot, Pingdom), browsers that a
// program drives (HeadlessChrome, PhantomJS, Cypress), and HTTP libraries (curl, python-requests, axios). So are the libraries of
// mobile apps (okhttp, CFNetwork, Dalvik): nothing tells an app that a person holds from a scraper with the same library.
// A page shown inside an app (Facebook, Instagram, WeChat, a WebView, Electron) is looked at by a person, and so is one in a
// text browser.
//
// There is no full list of crawlers here, which would be out of date the day after: nearly all are told by what they share.
// A crawler that calls itself exactly what a browser does is not told; no list could.
type bots struct {
	verdicts *cache.Cache[string, bool]
}

const (
	agentBytes    = 512     // of an agent that are looked at; a browser says all that matters in fewer
	verdictBytes  = 4 << 20 // room for 8,000 agents of the usual length at least, and twice that at most
	agentOverhead = 96      // bytes of an entry beside its agent, at most. A test holds it
)

func newBots() *bots {
	return &bots{cache.New[string, bool](verdictBytes, func(agent string) int { return len(agent) + agentOverhead })}
}

// is reports whether a User-Agent is that of a crawler, or of a program. An empty one is a program's: no browser leaves it out.
func (b *bots) is(agent string) bool {
	agent = agent[:min(len(agent), agentBytes)]
	bot, known := b.verdicts.Get(agent)
	if !known {
		bot = judgeAgent(agent)
		b.verdicts.Put(strings.Clone(agent), bot) // the whole of a long one, or of its request, must not be kept
	}
	return bot
}

// judgeAgent searches for fixed texts only, so its time is bounded by the length of the agent, whatever is in it.
func judgeAgent(agent string) bool {
	agent = strings.ToLower(agent)
	return !likeBrowser(agent) || givesAddress(agent) || compatibleCrawler(agent) || calledBot(agent) || marked(agent)
}

// browserStarts are what agents of browsers begin with: all of today, text browsers, those of phones before smartphones, and
// Facebook's, which may say nothing else.
var browserStarts = []string{
	"mozilla/", "opera/", "ucweb/", "lynx/", "w3m/", "links (", "elinks/", "dillo/", "netsurf/",
	"blackberry", "nokia", "samsung-", "sonyericsson", "[fban/",
}

// likeBrowser reports whether an agent begins like a browser's. HTTP libraries, monitors and most previews do not.
func likeBrowser(agent string) bool {
	for _, start := range browserStarts {
		if strings.HasPrefix(agent, start) {
			return start != "mozilla/" || strings.Contains(agent, "(") // a browser says what it runs on
		}
	}
	return false
}

// givesAddress reports whether an agent says where to read about it, as crawlers ought to and browsers never do.
func givesAddress(agent string) bool {
	return strings.Contains(agent, "://") || strings.Contains(agent, "www.")
}

// compatibleCrawler reports whether an agent claims to be compatible with Mozilla, which of browsers only old ones do.
func compatibleCrawler(agent string) bool {
	return strings.Contains(agent, "compatible") && !strings.Contains(agent, "msie") && !strings.Contains(agent, "konqueror")
}

// calledBot reports whether a word of an agent ends in bot or bots. CUBOT makes phones.
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

// botMarks tell those that otherwise look like a browser. Each is in lower case, and in no agent of a browser.
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
