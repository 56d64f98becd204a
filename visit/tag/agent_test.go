package tag

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// After a change of the rules, this list must still be named correctly. Add each agent that was named wrongly.
var agents = []struct {
	want  Agent
	agent string
}{
	{Agent{"Chrome", "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36`},
	{Agent{"Chrome", "macOS", desktop}, `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36`},
	{Agent{"Chrome", "Linux", desktop}, `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36`},
	{Agent{"Chrome", "ChromeOS", desktop}, `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36`},
	{Agent{"Chrome", "Android", phone}, `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36`},
	{Agent{"Chrome", "Android", tablet}, `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36`},
	{Agent{"Chrome", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.7444.46 Mobile/15E148 Safari/604.1`},
	{Agent{"Edge", "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0`},
	{Agent{"Edge", "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/70.0.3538.102 Safari/537.36 Edge/18.19042`},
	{Agent{"Edge", "Android", phone}, `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 EdgA/141.0.0.0`},
	{Agent{"Edge", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 EdgiOS/140.0.3485.94 Mobile/15E148 Safari/605.1.15`},
	{Agent{"Edge", Other, Other}, `Mozilla/5.0 (Windows NT 10.0; Win64; x64; Xbox; Xbox Series X) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/121.0.0.0 Safari/537.36 Edg/121.0.0.0`},
	{Agent{"Edge", "Windows", phone}, `Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/52.0.2743.116 Mobile Safari/537.36 Edge/15.15063`},
	{Agent{"Firefox", "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0`},
	{Agent{"Firefox", "macOS", desktop}, `Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0`},
	{Agent{"Firefox", "Linux", desktop}, `Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0`},
	{Agent{"Firefox", "BSD", desktop}, `Mozilla/5.0 (X11; FreeBSD amd64; rv:128.0) Gecko/20100101 Firefox/128.0`},
	{Agent{"Firefox", "Android", phone}, `Mozilla/5.0 (Android 15; Mobile; rv:144.0) Gecko/144.0 Firefox/144.0`},
	{Agent{"Firefox", "Android", tablet}, `Mozilla/5.0 (Android 13; Tablet; rv:109.0) Gecko/117.0 Firefox/117.0`},
	{Agent{"Firefox", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/144.0 Mobile/15E148 Safari/605.1.15`},
	{Agent{Other, "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; WOW64; rv:68.0) Gecko/20100101 Firefox/68.0 Waterfox/56.6`},
	{Agent{"Safari", "macOS", desktop}, `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15`},
	{Agent{"Safari", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1`},
	{Agent{"Safari", "iOS", tablet}, `Mozilla/5.0 (iPad; CPU OS 12_5_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Mobile/15E148 Safari/604.1`},
	{Agent{"Safari", "iOS", phone}, `Mozilla/5.0 (iPod touch; CPU iPhone OS 12_5_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Mobile/15E148 Safari/604.1`},
	{Agent{"WebView", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148`},
	{Agent{"WebView", "Android", phone}, `Mozilla/5.0 (Linux; Android 14; Pixel 7 Build/UQ1A.240205.002; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/121.0.6167.178 Mobile Safari/537.36`},
	{Agent{"Samsung Internet", "Android", phone},
		`Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36`},
	{Agent{"Samsung Internet", "Android", tablet},
		`Mozilla/5.0 (Linux; Android 9; SAMSUNG SM-T825) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/10.1 Chrome/71.0.3578.99 Safari/537.36`},
	{Agent{"Opera", "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 OPR/124.0.0.0`},
	{Agent{"Opera", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1 OPT/5.7.0`},
	{Agent{"Opera", "Android", phone}, `Opera/9.80 (Android; Opera Mini/36.2.2254/191.303; U; en) Presto/2.12.423 Version/12.16`},
	{Agent{"Opera", Other, phone}, `Opera/9.80 (J2ME/MIDP; Opera Mini/7.1.32052/29.3709; U; en) Presto/2.8.119 Version/11.10`},
	{Agent{"Vivaldi", "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/134.0.0.0 Safari/537.36 Vivaldi/7.3.3635.4`},
	{Agent{"Yandex", "Windows", desktop}, `Mozilla/5.0 (Windows NT 10.0; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 YaBrowser/25.8.0.0 Safari/537.36`},
	{Agent{"Yandex", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 YaBrowser/24.2.9.479.10 SA/3 Mobile/15E148 Safari/604.1 YaApp_iOS/24.2`},
	{Agent{"UC Browser", "Android", phone},
		`Mozilla/5.0 (Linux; U; Android 13; en-US; RMX3630 Build/TP1A.220905.001) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/100.0.4896.58 UCBrowser/13.7.2.1636 Mobile Safari/537.36`},
	{Agent{"UC Browser", "Android", phone},
		`UCWEB/2.0 (MIDP-2.0; U; Adr 4.4.2; en-US; SM-G313HZ) U2/1.0.0 UCBrowser/10.7.6.805 U2/1.0.0 Mobile`},
	{Agent{"DuckDuckGo", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15`},
	{Agent{"DuckDuckGo", "macOS", desktop},
		`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4.1 Safari/605.1.15 Ddg/17.4.1`},
	{Agent{"QQ", "Android", phone}, `Mozilla/5.0 (Linux; U; Android 12; zh-cn; V2148A Build/SP1A.210812.003) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/109.0.5414.86 MQQBrowser/14.9 Mobile Safari/537.36`},
	{Agent{"Huawei Browser", "HarmonyOS", phone},
		`Mozilla/5.0 (Phone; OpenHarmony 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.0.0 Safari/537.36 ArkWeb/4.1.6.1 Mobile HuaweiBrowser/5.0.4.300`},
	{Agent{"Xiaomi", "Android", phone}, `Mozilla/5.0 (Linux; U; Android 13; en-gb; 2201117TG Build/TKQ1.221114.001) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/100.0.4896.127 Mobile Safari/537.36 XiaoMi/MiuiBrowser/13.28.0-gn`},
	{Agent{"Silk", "Android", tablet}, `Mozilla/5.0 (Linux; Android 11; KFTRWI) AppleWebKit/537.36 (KHTML, like Gecko) Silk/122.4.1 like Chrome/122.0.6261.90 Safari/537.36`},
	{Agent{"Android Browser", "Android", phone},
		`Mozilla/5.0 (Linux; U; Android 4.0.3; de-de; Galaxy S II Build/GRJ22) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 Mobile Safari/534.30`},
	{Agent{"Internet Explorer", "Windows", desktop}, `Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko`},
	{Agent{"Internet Explorer", "Windows", desktop},
		`Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; SLCC2; Tablet PC 2.0; .NET CLR 2.0.50727)`},
	// pages shown inside apps
	{Agent{"Facebook", "Android", phone}, `Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/123.0.6312.118 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/459.0.0.52.109;]`},
	{Agent{"Facebook", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E236 [FBAN/FBIOS;FBAV/458.0.0.37.109;FBDV/iPhone14,5]`},
	{Agent{"Instagram", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E219 Instagram 324.0.3.27.81 (iPhone12,1; iOS 17_4; en_US; en; scale=2.00; 828x1792; 580612966)`},
	{Agent{"WeChat", "Android", phone}, `Mozilla/5.0 (Linux; Android 13; 22101316C Build/TP1A.220624.014; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/116.0.0.0 Mobile Safari/537.36 XWEB/1160065 MMWEBSDK/20231202 MicroMessenger/8.0.47.2560(0x28002F30) WeChat/arm64 Weixin NetType/WIFI`},
	{Agent{"TikTok", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 musical_ly_33.9.0 JsSdk/2.0 NetType/WIFI Channel/App Store ByteLocale/en Region/US BytedanceWebview/d8a21c6`},
	{Agent{"Snapchat", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4.1 Mobile/15E148 Snapchat/12.81.0.44 (like Safari/8617.2.4.10.8, panda)`},
	{Agent{"X", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Twitter for iPhone/10.34`},
	{Agent{"LinkedIn", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E219 [LinkedInApp]/9.29.7632`},
	{Agent{"LINE", "Android", phone}, `Mozilla/5.0 (Linux; Android 13; SCG15 Build/TP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.6261.64 Mobile Safari/537.36 Line/14.2.1/IAB`},
	{Agent{"KakaoTalk", "Android", phone}, `Mozilla/5.0 (Linux; Android 14; SM-S911N Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.6261.64 Mobile Safari/537.36;KAKAOTALK 2510500`},
	{Agent{"Naver", "Android", phone}, `Mozilla/5.0 (Linux; Android 14; SM-S911N Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.6261.64 Whale/1.0.0.0 Crosswalk/28.114.0.20 Mobile Safari/537.36 NAVER(inapp; search; 2000; 12.5.3)`},
	{Agent{"Google", "iOS", phone}, `Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) GSA/309.1.618421994 Mobile/15E148 Safari/604.1`},
	{Agent{"Baidu", "HarmonyOS", phone}, `Mozilla/5.0 (Linux; Android 13; V2111 Build/TP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/97.0.4692.98 Mobile Safari/537.36 T7/13.54 BDOS/1.0 (HarmonyOS 3.0.0) SP-engine/2.92.0 baiduboxapp/13.54.0.10 (Baidu; P1 12)`},
	{Agent{Other, "macOS", desktop}, `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Code/1.87.2 Chrome/118.0.5993.159 Electron/27.3.2 Safari/537.36`},
	// televisions, consoles, cars and other devices
	{Agent{Other, Other, Other}, `Mozilla/5.0 (PlayStation; PlayStation 5/9.00) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Safari/605.1.15`},
	{Agent{Other, Other, Other}, `Mozilla/5.0 (Nintendo Switch; WifiWebAuthApplet) AppleWebKit/609.4 (KHTML, like Gecko) NF/6.0.2.21.3 NintendoBrowser/5.1.0.22474`},
	{Agent{Other, "Tizen", Other}, `Mozilla/5.0 (SMART-TV; LINUX; Tizen 6.5) AppleWebKit/537.36 (KHTML, like Gecko) 85.0.4183.93/6.5 TV Safari/537.36`},
	{Agent{Other, "webOS", Other}, `Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/94.0.4606.128 Safari/537.36 WebAppManager`},
	{Agent{Other, "Linux", Other}, `Mozilla/5.0 (X11; Linux x86_64; Quest 3) AppleWebKit/537.36 (KHTML, like Gecko) OculusBrowser/32.0.0.7.74 Chrome/122.0.6261.128 VR Safari/537.36`},
	{Agent{"WebView", "Android", Other}, `Mozilla/5.0 (Linux; Android 9; AFTKA Build/PS7633.3445N; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/108.0.5359.160 Mobile Safari/537.36`},
	{Agent{Other, Other, phone}, `Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5`},
	{Agent{Other, Other, phone}, `Nokia6300/2.0 (04.20) Profile/MIDP-2.1 Configuration/CLDC-1.1 UNTRUSTED/1.0`},
	{Agent{Other, "Linux", desktop}, `Links (2.29; Linux 6.1.0-18-amd64 x86_64; GNU C 12.2; text)`},
	{Agent{Other, Other, Other}, `w3m/0.5.3`},
	{Agent{Other, Other, Other}, "\xff\xfe"},
	{Agent{}, ""},
}

func TestAgents(t *testing.T) {
	t.Parallel()
	for _, test := range agents {
		require.Equal(t, test.want, ReadAgent(test.agent), test.agent)
		require.Equal(t, test.want, ReadAgent(strings.ToUpper(test.agent)), "in capitals: %s", test.agent)
		require.Contains(t, Named(), Agent{Browser: test.want.Browser, System: test.want.System}, test.agent)
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	windows, linux := Agent{"Chrome", "Windows", desktop}, Agent{"Chrome", "Linux", desktop}
	for _, test := range []struct {
		name  string
		agent Agent
		hints Hints
		want  Agent
	}{
		{"none", windows, Hints{}, windows},
		{"Chrome", windows, Hints{`"Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"`, "?0", `"Windows"`}, windows},
		{"Brave, whose agent is that of Chrome", windows, Hints{`"Chromium";v="142", "Brave";v="142", "Not_A Brand";v="99"`, "?0", `"Windows"`},
			Agent{"Brave", "Windows", desktop}},
		{"Opera GX", windows, Hints{`"Not_A Brand";v="8", "Chromium";v="120", "Opera GX";v="106"`, "?0", `"Windows"`},
			Agent{"Opera", "Windows", desktop}},
		{"a brand beside another agent", Agent{"Firefox", "Linux", desktop}, Hints{Brands: `"Brave";v="1"`}, Agent{"Firefox", "Linux", desktop}},
		{"a phone that asks for the page of a desktop", linux, Hints{"", "?1", `"Android"`}, Agent{"Chrome", "Android", phone}},
		{"ChromeOS", linux, Hints{"", "?0", `"Chrome OS"`}, Agent{"Chrome", "ChromeOS", desktop}},
		{"a system that the agent knows better", Agent{"Huawei Browser", "HarmonyOS", phone}, Hints{"", "?1", `"Android"`},
			Agent{"Huawei Browser", "HarmonyOS", phone}},
		{"a tablet stays one", Agent{"Chrome", "Android", tablet}, Hints{"", "?0", `"Android"`}, Agent{"Chrome", "Android", tablet}},
		{"a television stays one", Agent{Other, "Android", Other}, Hints{"", "?1", `"Android"`}, Agent{Other, "Android", Other}},
		{"nonsense", windows, Hints{"\xff", "?", "Windows"}, windows},
	} {
		require.Equal(t, test.want, test.agent.With(test.hints), test.name)
	}
}

func BenchmarkReadAgent(b *testing.B) {
	for _, bench := range []struct{ name, agent string }{
		{"Chrome", agents[0].agent}, {"Safari", agents[21].agent}, {"WeChat", agents[50].agent}, {"junk", strings.Repeat("mobi", 128)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ReadAgent(bench.agent)
			}
		})
	}
	b.Run("hints", func(b *testing.B) {
		a, h := ReadAgent(agents[0].agent), Hints{`"Chromium";v="142", "Brave";v="142", "Not_A Brand";v="99"`, "?0", `"Windows"`}
		b.ReportAllocs()
		for b.Loop() {
			a.With(h)
		}
	})
}
