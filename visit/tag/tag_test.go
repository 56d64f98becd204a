package tag

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/language"
)

const page = "https://blog.example.com/post"

func TestSources(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, uri, referrer, want string }{
		{"nothing", page, "", ""},
		{"a host", page, "https://other.example.org/path?q=search#x", "other.example.org"},
		{"without www and port, in lower case", page, "HTTPS://WWW.Other.example:8443", "other.example"},
		{"Unicode as it is canonical", page, "https://日本.example/", "xn--wgv71a.example"},
		{"user-info", page, "https://somebody:secret@other.example/", "other.example"},
		{"a dot behind", page, "https://www.google.com./", "google"},
		{"the page's own site", page, "https://blog.example.com/another", ""},
		{"with www and a port", page, "http://www.blog.example.com:8080/", ""},
		{"another site below the same domain", page, "https://example.com/", "example.com"},
		{"an address", page, "http://192.0.2.7/", ""},
		{"an address in other numbers", page, "http://0x7f.1/", ""},
		{"an address of IPv6", page, "http://[2001:db8::1]:80/", ""},
		{"a machine", page, "http://localhost:3000/", ""},
		{"no address of a page", page, "other.example", ""},
		{"of an extension", page, "chrome-extension://abcdef/page.html", ""},
		{"nonsense", page, "https://exa mple/", ""},
		{"invalid UTF-8", page, "https://\xff.example/", ""},
		{"a control character", page, "https://a\x00.example/", ""},
		{"too long", page, "https://" + strings.Repeat("a.", 60) + "example/", Other},

		{"google anywhere", page, "https://www.google.co.uk/", "google"},
		{"google", page, "https://google.com.hk/", "google"},
		{"google's pages that are no search", page, "https://docs.google.com/x", "docs.google.com"},
		{"a host that only begins so", page, "https://google.attacker.example/", "google.attacker.example"},
		{"mail", page, "https://mail.google.com/", "gmail"},
		{"mail, by its app", page, "android-app://com.google.android.gm/", "gmail"},
		{"search, by its app", page, "android-app://com.google.android.googlequicksearchbox/https/www.google.com", "google"},
		{"another app", page, "android-app://org.example.reader", "org.example.reader"},
		{"bing", page, "https://cn.bing.com/search", "bing"},
		{"duckduckgo", page, "https://html.duckduckgo.com/", "duckduckgo"},
		{"yandex", page, "https://yandex.com.tr/", "yandex"},
		{"yandex, its short name", page, "https://ya.ru/", "yandex"},
		{"baidu", page, "https://m.baidu.com/", "baidu"},
		{"yahoo", page, "https://de.search.yahoo.com/", "yahoo"},
		{"a search that has one name", page, "https://search.brave.com/", "search.brave.com"},
		{"facebook", page, "http://m.facebook.com/", "facebook"},
		{"facebook's links", page, "https://l.facebook.com/l.php?u=x", "facebook"},
		{"facebook's mobile links", page, "https://lm.facebook.com/", "facebook"},
		{"instagram", page, "https://l.instagram.com/", "instagram"},
		{"x", page, "https://t.co/abc", "x"},
		{"x, by its name", page, "https://x.com/", "x"},
		{"x, as it was called", page, "https://mobile.twitter.com/", "x"},
		{"a host that ends so", page, "https://not-x.com/", "not-x.com"},
		{"a host below t.co", page, "https://a.t.co/", "a.t.co"},
		{"reddit", page, "https://old.reddit.com/r/golang", "reddit"},
		{"reddit's app", page, "android-app://com.reddit.frontpage/", "reddit"},
		{"hacker news", page, "https://news.ycombinator.com/item?id=1", "hacker news"},
		{"lobsters", page, "https://lobste.rs/", "lobsters"},
		{"linkedin", page, "https://lnkd.in/x", "linkedin"},
		{"youtube", page, "https://youtu.be/x", "youtube"},
		{"mastodon", page, "https://mastodon.social/@a", "mastodon"},
		{"bluesky", page, "https://go.bsky.app/", "bluesky"},
		{"chatgpt", page, "https://chatgpt.com/", "chatgpt"},
		{"perplexity", page, "https://www.perplexity.ai/", "perplexity"},
		{"claude", page, "https://claude.ai/", "claude"},
		{"gemini", page, "https://gemini.google.com/", "gemini"},
		{"weibo", page, "https://weibo.cn/", "weibo"},
		{"zhihu", page, "https://link.zhihu.com/?target=x", "zhihu"},

		{"utm_source comes first", page + "?utm_source=Newsletter", "https://t.co/", "newsletter"},
		{"and is grouped", page + "?a=1&utm_source=chatgpt.com", "", "chatgpt"},
		{"as people call it", page + "?utm_source=twitter", "", "x"},
		{"source", page + "?source=fb", "https://other.example/", "facebook"},
		{"ref", page + "?ref=producthunt", "", "product hunt"},
		{"ref that is an address", page + "?ref=https%3A%2F%2Fwww.reddit.com%2Fr%2Fx", "", "reddit"},
		{"utm_source before source before ref", page + "?ref=c&source=b&utm_source=a", "", "a"},
		{"empty ones say nothing", page + "?utm_source=&source=&ref=", "https://other.example/", "other.example"},
		{"the first of two", page + "?utm_source=a&utm_source=b", "", "a"},
		{"in capitals", page + "?UTM_SOURCE=A", "", "a"},
		{"decoded", page + "?utm_source=spring+sale%20%e6%98%a5", "", "spring sale 春"},
		{"escaped once too often", page + "?a=1&amp;utm_source=feed", "", "feed"},
		{"in the fragment it is none", page + "#?utm_source=a", "", ""},
		{"a broken escape", page + "?utm_source=%zz", "https://other.example/", "other.example"},
		{"the site itself", page + "?ref=blog.example.com", "https://other.example/", "other.example"},
		{"an e-mail address", page + "?utm_source=a@b.example", "https://other.example/", Other},
		{"one that is escaped twice", page + "?utm_source=a%2540b.example", "", Other},
		{"too long to keep", page + "?utm_source=" + strings.Repeat("a", MostBytes+1), "", Other},
		{"as long as may be", page + "?utm_source=" + strings.Repeat("a", MostBytes), "", strings.Repeat("a", MostBytes)},
		{"a control character in it", page + "?utm_source=a%00b", "", ""},
		{"a mark of direction", page + "?utm_source=a%E2%80%AEb", "", ""},
		{"an invisible character", page + "?utm_source=%E2%80%8B", "", ""},
		{"one within a text", page + "?utm_source=go%C2%ADogle", "", ""},
		{"nothing but a joiner", page + "?utm_source=%E2%80%8D", "", ""},
		{"a joiner, which scripts need", page + "?utm_source=%d9%85%db%8c%e2%80%8c%d8%ae", "", "می\u200cخ"},
		{"what stands for none", page + "?utm_source=(None)", "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := Read(Request{URI: test.uri, Site: "blog.example.com", Referrer: test.referrer, At: time.Now(), Zone: time.UTC})
			require.Equal(t, test.want, got.value(Source))
		})
	}
}

// value returns the value of a name, or "" if the set does not have the name.
func (s Set) value(name string) string {
	for _, brought := range s {
		if brought.Name == name {
			return brought.Value
		}
	}
	return ""
}

// Each service is recognized by its own name, and no name leads to two services.
func TestServices(t *testing.T) {
	t.Parallel()
	for name, service := range services {
		require.Equal(t, service, serviceOf(service), "a source that is called like it")
		require.Equal(t, strings.ToLower(name), name)
		require.Equal(t, Value(service), service)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	got := Read(Request{
		URI: page + "?utm_campaign=Spring%20Sale&utm_source=ig", Site: "blog.example.com", Referrer: "https://t.co/", Languages: "de-AT,en;q=0.5",
		Country: "at",
		Agent:   ReadAgent(agents[0].agent), At: time.Date(2019, 6, 30, 22, 59, 59, 0, time.UTC), Zone: berlin,
	})
	require.Equal(t, Set{
		{Source, "instagram"}, {Campaign, "spring sale"}, {Country, "AT"}, {Language, "de"}, {Device, "desktop"}, {System, "Windows"},
		{Browser, "Chrome"}, {Hour, "00"},
	}, got)
	require.Equal(t, Set{{Hour, "22"}}, Read(Request{At: time.Date(2019, 6, 30, 22, 0, 0, 0, time.UTC), Zone: time.UTC}))
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "de": "de", "DE-at,en;q=0.5": "de", "zh-Hans-CN": "zh", "en_US": "en", "fil-PH": "fil", " pt ;q=1": "pt", "iw-IL": "he",
		"in": "id",
		"*":  "", "*;q=0.5, de": "", "d": "", "english": "", "e2": "", "i-klingon": "", "x-mine": "", "qq": Other, "tlh": Other, ";": "",
		",de": "", "\xff\xff": "", "a b": "",
	} {
		require.Equal(t, want, LanguageOf(header), "%q", header)
	}
}

// The list has every language with a code of two letters.
func TestLanguagesOfTwoLetters(t *testing.T) {
	t.Parallel()
	for first := 'a'; first <= 'z'; first++ {
		for second := 'a'; second <= 'z'; second++ {
			code := string(first) + string(second)
			base, err := language.ParseBase(code)
			isOne := err == nil && len(base.String()) == 2
			require.Equal(t, isOne, LanguageOf(code) != Other, code)
		}
	}
	for code := range strings.FieldsSeq(languages) {
		_, err := language.ParseBase(code)
		require.NoError(t, err, code)
		require.Equal(t, code, LanguageOf(code))
	}
}

func TestCountries(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"DE": "DE", "de": "DE", "UK": "GB", "XK": "XK",
		"": "", "D": "", "DEU": "", "T1": "", "XX": "", "ZZ": "", "EU": "", "AP": "", "A1": "", "??": "", "\xc3\xa4": "", "D\x20": "", "[[": "",
		"@@": "",
	} {
		require.Equal(t, want, CountryOf(code), "%q", code)
	}
}

// When the clock is put back an hour occurs twice, and when it is put forward one is missing.
func TestHours(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, test := range []struct {
		day         time.Time
		hours, twos int
	}{
		{time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), 23, 0},
		{time.Date(2026, 10, 25, 0, 0, 0, 0, berlin), 25, 2},
		{time.Date(2026, 6, 30, 0, 0, 0, 0, berlin), 24, 1},
	} {
		of := map[string]int{}
		hours := 0
		for at := test.day; at.Day() == test.day.Day(); at = at.Add(time.Hour) {
			of[HourOf(at.UTC(), berlin)]++
			hours++
		}
		require.Equal(t, test.hours, hours)
		require.Equal(t, test.twos, of["02"])
		require.Equal(t, 1, of["00"])
		require.Equal(t, 1, of["23"])
	}
}

func TestNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plan", "a", "a1_b", strings.Repeat("a", MostNameBytes)} {
		require.NoError(t, CheckName(name), name)
	}
	for _, name := range []string{"", "1a", "_a", "A", "a-b", "a b", "é", "source", "hour", strings.Repeat("a", MostNameBytes+1)} {
		require.Error(t, CheckName(name), name)
	}
}

// Whatever the input, each value can be stored, is read as itself, and has a bounded length.
func FuzzRead(f *testing.F) {
	f.Add(page+"?utm_source=a%20b&utm_campaign=%C3%84", "https://t.co/", "de-AT", "de", agents[0].agent)
	f.Add(page+"?ref=android-app://x.y&utm_campaign=\u0130\u0130", "android-app://com.google.android.gm", "*", "XX", "\xff")
	f.Fuzz(func(t *testing.T, uri, referrer, languages, country, agent string) {
		set := Read(Request{URI: uri, Site: "blog.example.com", Referrer: referrer, Languages: languages, Country: country,
			Agent: ReadAgent(agent), At: time.Now(), Zone: time.UTC})
		for _, brought := range set {
			require.NotEmpty(t, brought.Value, brought.Name)
			require.LessOrEqual(t, len(brought.Value), MostBytes, brought.Name)
			require.True(t, utf8.ValidString(brought.Value), brought.Name)
			require.NotContains(t, brought.Value, "@", brought.Name)
			require.NotContains(t, brought.Value, "\x00", brought.Name)
			if IsOpen(brought.Name) {
				require.Equal(t, brought.Value, Value(brought.Value))
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	for _, bench := range []struct{ name, uri, referrer string }{
		{"direct", page, ""}, {"the site itself", page, "https://blog.example.com/before"}, {"a host", page, "https://other.example.org/"},
		{"a service", page, "https://www.google.com/"}, {"marked", page + "?utm_source=newsletter&utm_campaign=spring", ""},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := Request{URI: bench.uri, Site: "blog.example.com", Referrer: bench.referrer, Languages: "de-AT,en;q=0.5", Country: "AT",
				Agent: ReadAgent(agents[0].agent), At: time.Now(), Zone: time.UTC}
			b.ReportAllocs()
			for b.Loop() {
				Read(r)
			}
		})
	}
}

// A written set can be read again.
func TestTextOfASet(t *testing.T) {
	t.Parallel()
	for _, s := range []Set{nil, {{Name: Source, Value: "a=b, c \U0001F600"}}, {{Name: Campaign, Value: Other}, {Name: Hour, Value: "00"},
		{Name: "plan", Value: "pro"}}} {
		require.Equal(t, s, ParseSet(s.Text()))
	}
}

// theirNames maps names in ua-parser-js to ours. All others are Other.
var theirNames = map[string]map[string]string{
	"browser": {
		"Chrome": "Chrome", "Chromium": "Chrome", "Chrome Headless": "Chrome", "Chrome WebView": "WebView", "Safari": "Safari",
		"Mobile Safari": "Safari",
		"Firefox":       "Firefox", "Fennec": "Firefox", "Firefox Focus": "Firefox", "Firefox Reality": "Firefox", "Edge": "Edge",
		"IE": "Internet Explorer", "IEMobile": "Internet Explorer",
		"Opera": "Opera", "Opera Mini": "Opera", "Opera Mobi": "Opera", "Opera Tablet": "Opera", "Opera Coast": "Opera", "Opera Touch": "Opera",
		"Brave": "Brave", "Vivaldi": "Vivaldi", "Yandex": "Yandex", "UCBrowser": "UC Browser", "Samsung Browser": "Samsung Internet",
		"MIUI Browser": "Xiaomi", "Silk": "Silk", "Whale": "Whale",
		"Android Browser": "Android Browser", "QQ": "QQ", "QQBrowser": "QQ", "QQBrowserLite": "QQ", "baiduboxapp": "Baidu",
		"baidubrowser": "Baidu", "BIDUBrowser": "Baidu",
		"Facebook": "Facebook", "Instagram": "Instagram", "WeChat": "WeChat", "WeChat(Win) Desktop": "WeChat", "weibo": "Weibo", "Line": "LINE",
		"GSA": "Google",
	},
	"os": {
		"Windows": "Windows", "Windows Phone": "Windows", "Windows Phone OS": "Windows", "Windows Mobile": "Windows", "Mac OS": "macOS",
		"iOS": "iOS", "Android": "Android", "Android-x86": "Android", "Chromium OS": "ChromeOS", "Tizen": "Tizen", "webOS": "webOS",
		"FreeBSD": "BSD", "OpenBSD": "BSD", "NetBSD": "BSD", "DragonFly": "BSD", "GhostBSD": "BSD",
		"Linux": "Linux", "Debian": "Linux", "debian": "Linux", "Ubuntu": "Linux", "Kubuntu": "Linux", "Mint": "Linux", "Fedora": "Linux",
		"Gentoo": "Linux", "gentoo": "Linux", "Red Hat": "Linux",
		"redhat": "Linux", "SUSE": "Linux", "Arch": "Linux", "Slackware": "Linux", "Mandriva": "Linux", "CentOS": "Linux", "PCLinuxOS": "Linux",
		"Zenwalk": "Linux", "Deepin": "Linux",
		"Linpus": "Linux", "Manjaro": "Linux", "elementary OS": "Linux", "Sabayon": "Linux", "Linspire": "Linux", "Raspbian": "Linux",
		"Joli": "Linux", "MeeGo": "Linux", "Maemo": "Linux", "Sailfish": "Linux",
	},
	"device": {"mobile": phone, "tablet": tablet, "undefined": desktop},
}

// Most agents in the tests of ua-parser-js are of rare browsers, with one or two agents each. The share named
// correctly is a lower bound for the share of visitors.
func TestLabelledAgents(t *testing.T) {
	t.Parallel()
	found, err := exec.Command("../../scripts/fetch-npm", "ua-parser-js").Output()
	if err != nil && testing.Short() {
		t.Skipf("no labelled agents found: %v", err)
	}
	require.NoError(t, err, "scripts/fetch-npm ua-parser-js")
	for _, test := range []struct {
		kind, field string
		named       func(Agent) string
		least       float64
	}{
		{"browser", "name", func(a Agent) string { return a.Browser }, 0.85},
		{"os", "name", func(a Agent) string { return a.System }, 0.9},
		{"device", "type", func(a Agent) string { return a.Device }, 0.9},
	} {
		raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(found)), "test", test.kind+"-test.json"))
		require.NoError(t, err)
		var agents []struct {
			UA     string
			Expect map[string]string
		}
		require.NoError(t, json.Unmarshal(raw, &agents))
		right := 0
		for _, one := range agents {
			want := theirNames[test.kind][one.Expect[test.field]]
			if want == "" {
				want = Other
			}
			if got := test.named(ReadAgent(one.UA)); got == want {
				right++
			} else {
				t.Logf("%s: %s is %s here, not %s: %s", test.kind, one.Expect[test.field], got, want, one.UA)
			}
		}
		share := float64(right) / float64(len(agents))
		t.Logf("%s: %d of %d named right: %.1f %%", test.kind, right, len(agents), 100*share)
		require.GreaterOrEqual(t, share, test.least, test.kind)
	}
}
