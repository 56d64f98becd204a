package tag

import "strings"

// Agent describes a browser. ReadAgent makes an Agent from the header User-Agent only, so that callers can cache the
// Agent of each User-Agent. Agent.With then adds information from other headers.
type Agent struct{ Browser, System, Device string }

// The kinds of devices. Televisions, consoles, watches and cars are Other.
const (
	desktop = "desktop"
	phone   = "phone"
	tablet  = "tablet"
)

// rule gives a name to all User-Agents that contain at least one of the words. In a list of rules, the first rule
// that matches is used.
type rule struct{ name, words string }

// browsers is searched from the first to the last rule. Many User-Agents also contain Safari, or the name of the
// browser whose engine they use, so these rules come last. The list includes apps that show pages themselves, because
// for many visits the app is the only information about the source of the visit.
var browsers = []rule{
	{Other, "electron qtwebengine oculusbrowser tesla playstation nintendo nintendobrowser kaios tv smarttv hbbtv web0s vivobrowser " +
		"heytapbrowser" +
		" qihoobrowser qihu 360se 360ee metasr 2345explorer lbbrowser maxthon mxios coc puffin avast avg epiphany konqueror falkon palemoon " +
		"seamonkey" +
		" waterfox basilisk iceweasel sailfish camino meleon netscape navigator"},
	{"Facebook", "fban fbav fbios"},
	{"Instagram", "instagram"},
	{"WeChat", "micromessenger wechat"},
	{"TikTok", "musical bytedancewebview tiktok aweme"},
	{"Weibo", "weibo"},
	{"LINE", "line"},
	{"KakaoTalk", "kakaotalk"},
	{"Snapchat", "snapchat"},
	{"Pinterest", "pinterest"},
	{"LinkedIn", "linkedinapp"},
	{"X", "twitter twitterandroid"},
	{"Naver", "naver"},
	{"Baidu", "baiduboxapp baidubrowser bidubrowser"},
	{"Google", "gsa googleapp"},
	{"QQ", "qq mqqbrowser qqbrowser qqbrowserlite"},
	{"UC Browser", "ucbrowser ubrowser ucweb"},
	{"Yandex", "yabrowser yasearchbrowser yaapp"},
	{"Samsung Internet", "samsungbrowser"},
	{"Huawei Browser", "huaweibrowser"},
	{"Xiaomi", "miuibrowser"},
	{"DuckDuckGo", "duckduckgo ddg"},
	{"Ecosia", "ecosia"},
	{"Brave", "brave"},
	{"Vivaldi", "vivaldi"},
	{"Whale", "whale"},
	{"Silk", "silk"},
	{"Edge", "edg edga edgios edge"},
	{"Opera", "opr opera opios opt opx coast"},
	{"Internet Explorer", "msie trident iemobile"},
	{"Firefox", "firefox fxios focus klar fennec"},
	{"WebView", "wv"},
	{"Chrome", "chrome crios chromium"},
	{safari, "safari"},
}

var systems = []rule{
	{Other, "xbox playstation nintendo blackberry blackberry9700 bb10 symbian symbianos symbos kaios roku tesla"},
	{"HarmonyOS", "harmonyos openharmony"},
	{"Windows", "windows win98 win95"},
	{"iOS", "iphone ipad ipod opios"},
	{"Android", "android adr silk"},
	{"ChromeOS", "cros"},
	{"Tizen", "tizen"},
	{"webOS", "web0s webos hpwos netcast"},
	{"macOS", "macintosh mac"},
	{"BSD", "freebsd openbsd netbsd ghostbsd dragonfly"},
	{"Linux", "linux ubuntu fedora debian"},
}

var devices = []rule{
	{Other, "tv smarttv hbbtv googletv appletv netcast web0s webostv bravia crkey roku viera nettv playstation nintendo xbox tesla " +
		"oculusbrowser vr watch kobo" +
		" aftb aftka aftkm aftm aftmm aftn aftr aftrs afts aftss aftt"},
	{desktop, "nt cros"},
	{tablet, "ipad tablet kindle playbook silk touchpad"},
	{phone, "mobile mobi phone iphone ipod mini midp j2me iemobile blackberry bb10 symbian symbianos symbos"},
	{tablet, "android"}, // Android phones match the rule above, because they also contain the word Mobile
	{desktop, "macintosh mac x11 linux windows win98 win95"},
}

// Most browsers' User-Agents contain the name safari at the end. This is also true for androidBrowser, the browser of
// Android before Chrome.
const (
	safari         = "Safari"
	androidBrowser = "Android Browser"
)

// clue shows which rules contain a word. It has one number for each of the lists browsers, systems and devices. If
// the number is greater, the rule is nearer to the start of the list. 0 means that no rule of the list contains the
// word.
type clue [3]uint8

var lists = [len(clue{})][]rule{browsers, systems, devices}

var clues = readClues()

func readClues() map[string]clue {
	clues := map[string]clue{}
	for list, rules := range lists {
		for i, rule := range rules {
			for word := range strings.FieldsSeq(rule.words) {
				c := clues[word]
				c[list] = uint8(len(rules) - i) //nolint:gosec // the lists are short
				clues[word] = c
			}
		}
	}
	return clues
}

// ReadAgent parses a User-Agent and looks up each of its words once. If it recognizes no name, the name is Other. If
// the User-Agent is empty, all names are empty.
func ReadAgent(agent string) Agent {
	if agent == "" {
		return Agent{}
	}
	agent = strings.ToLower(agent)
	var first clue
	for at := 0; at < len(agent); at++ {
		from := at
		for at < len(agent) && ('a' <= agent[at] && agent[at] <= 'z' || '0' <= agent[at] && agent[at] <= '9') {
			at++
		}
		if at-from < 2 {
			continue
		}
		c := clues[agent[from:at]]
		first = clue{max(first[0], c[0]), max(first[1], c[1]), max(first[2], c[2])}
	}
	names := [len(clue{})]string{Other, Other, Other}
	for list, rules := range lists {
		if first[list] > 0 {
			names[list] = rules[len(rules)-int(first[list])].name
		}
	}
	a := Agent{names[0], names[1], names[2]}
	switch {
	case a.Browser == safari && a.System == "Android":
		a.Browser = androidBrowser
	case a.Browser == safari && a.System != "iOS" && a.System != "macOS" && a.System != "Windows":
		a.Browser = Other // some other browser that uses Safari's engine
	case a.Browser == Other && a.System == "iOS" && first[0] == 0:
		a.Browser = "WebView"
	}
	return a
}

// Hints are headers that browsers based on Chrome's engine send over TLS in addition to their User-Agent: Sec-CH-UA,
// Sec-CH-UA-Mobile and Sec-CH-UA-Platform.
type Hints struct{ Brands, Mobile, Platform string }

// brands lists browsers whose User-Agent may be the same as that of Chrome, with their names in the header Sec-CH-UA.
var brands = [...]struct{ brand, name string }{
	{`"Brave"`, "Brave"},
	{`"Microsoft Edge"`, "Edge"},
	{`"Opera`, "Opera"},
	{`"Vivaldi"`, "Vivaldi"},
	{`"YaBrowser"`, "Yandex"},
	{`"Samsung Internet"`, "Samsung Internet"},
	{`"DuckDuckGo"`, "DuckDuckGo"},
	{`"Android WebView"`, "WebView"},
}

// Named returns the empty agent, and an agent for each combination of a browser and a system in the lists of this
// package.
func Named() []Agent {
	agents := []Agent{{}}
	for _, browser := range append([]rule{{name: androidBrowser}}, browsers...) {
		for _, system := range systems {
			agents = append(agents, Agent{Browser: browser.name, System: system.name})
		}
	}
	return agents
}

// With returns the agent with the information from the hints added.
func (a Agent) With(h Hints) Agent {
	if a.Browser == "Chrome" && h.Brands != "" {
		for i := range brands {
			if strings.Contains(h.Brands, brands[i].brand) {
				a.Browser = brands[i].name
				break
			}
		}
	}
	if h.Mobile == "?1" && a.Device == desktop {
		a.Device = phone
	}
	if a.System == Other || a.System == "Linux" {
		switch h.Platform {
		case `"Windows"`, `"macOS"`, `"iOS"`, `"Android"`, `"Linux"`:
			a.System = h.Platform[1 : len(h.Platform)-1]
		case `"Chrome OS"`, `"Chromium OS"`:
			a.System = "ChromeOS"
		}
	}
	return a
}
