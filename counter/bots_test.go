package counter

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// Changes of the rules are judged by these lists: add each agent that was classified wrongly.

// people are agents of browsers, of pages shown inside apps, of televisions and consoles.
var people = []string{
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36`,
	`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36`,
	`Mozilla/5.0 (X11; Ubuntu; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Ubuntu Chromium/80.0.3987.87 Chrome/80.0.3987.87 Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/62.0.3202.84 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 8.1.0; CUBOT_P20) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/88.0.4324.152 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 7.0; CUBOT X18 Build/NRD90M) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/70.0.3538.110 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20 PRO) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/112.0.0.0 Mobile Safari/537.36`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.7444.46 Mobile/15E148 Safari/604.1`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/70.0.3538.102 Safari/537.36 Edge/18.19042`,
	`Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 EdgA/141.0.0.0`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 EdgiOS/140.0.3485.94 Mobile/15E148 Safari/605.1.15`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0`,
	`Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0`,
	`Mozilla/5.0 (X11; FreeBSD amd64; rv:128.0) Gecko/20100101 Firefox/128.0`,
	`Mozilla/5.0 (Android 15; Mobile; rv:144.0) Gecko/144.0 Firefox/144.0`,
	`Mozilla/5.0 (Android 13; Tablet; rv:109.0) Gecko/117.0 Firefox/117.0`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/144.0 Mobile/15E148 Safari/605.1.15`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 12_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/7.0.4 Mobile/16B91 Safari/605.1.15`,
	`Mozilla/5.0 (Windows NT 6.1; WOW64; rv:52.0) Gecko/20100101 Firefox/52.0`,
	`Mozilla/5.0 (Windows NT 10.0; WOW64; rv:68.0) Gecko/20100101 Firefox/68.0 Waterfox/56.6`,
	`Mozilla/5.0 (X11; Linux x86_64; rv:102.0) Gecko/20100101 Goanna/6.7 Firefox/102.0 PaleMoon/33.3.1`,
	`Mozilla/5.0 (Windows NT 6.1; WOW64; rv:60.0) Gecko/20100101 Firefox/60.0 SeaMonkey/2.53.18`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1`,
	`Mozilla/5.0 (iPad; CPU OS 12_5_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Mobile/15E148 Safari/604.1`,
	`Mozilla/5.0 (iPod touch; CPU iPhone OS 12_5_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Mobile/15E148 Safari/604.1`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148`,
	`Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 9; SAMSUNG SM-T825) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/10.1 Chrome/71.0.3578.99 Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 12; SAMSUNG SM-G991B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/CrossApp/0.1.135 Chrome/115.0.5790.168 Mobile Safari/537.36`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 OPR/124.0.0.0`,
	`Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Mobile Safari/537.36 OPR/92.0.0.0`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1 OPT/5.7.0`,
	`Opera/9.80 (Android; Opera Mini/36.2.2254/191.303; U; en) Presto/2.12.423 Version/12.16`,
	`Opera/9.80 (J2ME/MIDP; Opera Mini/7.1.32052/29.3709; U; en) Presto/2.8.119 Version/11.10`,
	`Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18`,
	`Opera/9.80 (Linux armv7l; HbbTV/1.2.1 (; Philips; 40HFL5010T12; ; PHILIPSTV; CE-HTML/1.0 NETTV/4.4.1) en) Presto/2.12.407 Version/12.50`,
	`Mozilla/5.0 (Linux; U; Android 13; en-US; RMX3630 Build/TP1A.220905.001) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/100.0.4896.58 UCBrowser/13.7.2.1636 Mobile Safari/537.36`,
	`UCWEB/2.0 (MIDP-2.0; U; Adr 4.4.2; en-US; SM-G313HZ) U2/1.0.0 UCBrowser/10.7.6.805 U2/1.0.0 Mobile`,
	`UCWEB/2.0 (Java; U; MIDP-2.0; en-US; nokia501) U2/1.0.0 UCBrowser/9.5.0.449 U2/1.0.0 Mobile`,
	`Mozilla/5.0 (Linux; Android 14; Pixel 7 Build/UQ1A.240205.002; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/121.0.6167.178 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/123.0.6312.118 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/459.0.0.52.109;]`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E236 [FBAN/FBIOS;FBAV/458.0.0.37.109;FBBV/586133467;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/17.4.1;FBSS/3;FBID/phone;FBLC/de_DE;FBOP/5;FBRV/588246788]`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/MessengerForiOS;FBAV/461.0.0.36.106;FBBV/607000000;FBDV/iPhone13,2;FBMD/iPhone;FBSN/iOS;FBSV/17.5;FBSS/3;FBID/phone;FBLC/en_US;FBOP/5]`,
	`Mozilla/5.0 (Linux; Android 13; SM-A536B Build/TP1A.220624.014; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.6261.119 Mobile Safari/537.36 Instagram 322.0.0.36.90 Android (33/13; 450dpi; 1080x2177; samsung; SM-A536B; a53x; s5e8825; de_DE; 572640542)`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E219 Instagram 324.0.3.27.81 (iPhone12,1; iOS 17_4; en_US; en; scale=2.00; 828x1792; 580612966)`,
	`Mozilla/5.0 (Linux; Android 13; 22101316C Build/TP1A.220624.014; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/116.0.0.0 Mobile Safari/537.36 XWEB/1160065 MMWEBSDK/20231202 MMWEBID/2247 MicroMessenger/8.0.47.2560(0x28002F30) WeChat/arm64 Weixin NetType/WIFI Language/zh_CN ABI/arm64`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 MicroMessenger/8.0.47(0x18002f2c) NetType/4G Language/zh_CN`,
	`Mozilla/5.0 (Linux; Android 12; M2102J20SG Build/SKQ1.211006.001; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/121.0.6167.101 Mobile Safari/537.36 musical_ly_2023300040 JsSdk/1.0 NetType/WIFI Channel/googleplay AppName/musical_ly app_version/33.0.4 ByteLocale/en ByteFullLocale/en Region/DE BytedanceWebview/d8a21c6`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 musical_ly_33.9.0 JsSdk/2.0 NetType/WIFI Channel/App Store ByteLocale/en Region/US isDarkMode/1 WKWebView/1 RevealType/Dialog BytedanceWebview/d8a21c6`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4.1 Mobile/15E148 Snapchat/12.81.0.44 (like Safari/8617.2.4.10.8, panda)`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Twitter for iPhone/10.34`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E219 [LinkedInApp]/9.29.7632`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E219 [Pinterest/iOS]`,
	`Mozilla/5.0 (Linux; Android 13; SM-A336B Build/TP1A.220624.014; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.0.0 Mobile Safari/537.36 [Pinterest/Android]`,
	`Mozilla/5.0 (Linux; Android 13; SCG15 Build/TP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.6261.64 Mobile Safari/537.36 Line/14.2.1/IAB`,
	`Mozilla/5.0 (Linux; Android 14; SM-S911N Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.6261.64 Mobile Safari/537.36;KAKAOTALK 2510500`,
	`Mozilla/5.0 (Linux; Android 14; SM-S911N Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/122.0.6261.64 Whale/1.0.0.0 Crosswalk/28.114.0.20 Mobile Safari/537.36 NAVER(inapp; search; 2000; 12.5.3)`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) GSA/309.1.618421994 Mobile/15E148 Safari/604.1`,
	`Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/AP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/123.0.6312.40 Mobile Safari/537.36 GoogleApp/15.11.34.29.arm64`,
	`Mozilla/5.0 (Linux; Android 13; V2111 Build/TP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/97.0.4692.98 Mobile Safari/537.36 T7/13.54 BDOS/1.0 (HarmonyOS 3.0.0) SP-engine/2.92.0 baiduboxapp/13.54.0.10 (Baidu; P1 12)`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15`,
	`Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/123.0.6312.40 Mobile DuckDuckGo/5 Safari/537.36`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4.1 Safari/605.1.15 Ddg/17.4.1`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/134.0.0.0 Safari/537.36 Vivaldi/7.3.3635.4`,
	`Mozilla/5.0 (Windows NT 10.0; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 YaBrowser/25.8.0.0 Safari/537.36`,
	`Mozilla/5.0 (Linux; arm_64; Android 13; SM-A525F) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/122.0.6261.90 YaBrowser/24.4.1.90.00 SA/3 Mobile Safari/537.36`,
	`Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 YaBrowser/24.2.9.479.10 SA/3 Mobile/15E148 Safari/604.1 YaApp_iOS/24.2 YaApp_iOS_Browser/24.2`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/121.0.0.0 Safari/537.36 QIHU 360SE`,
	`Mozilla/5.0 (Linux; U; Android 12; zh-cn; V2148A Build/SP1A.210812.003) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/109.0.5414.86 MQQBrowser/14.9 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 10; HarmonyOS; ELS-AN00; HMSCore 6.13.0.321) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.5735.196 HuaweiBrowser/14.0.3.312 Mobile Safari/537.36`,
	`Mozilla/5.0 (Phone; OpenHarmony 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.0.0 Safari/537.36 ArkWeb/4.1.6.1 Mobile HuaweiBrowser/5.0.4.300`,
	`Mozilla/5.0 (Linux; U; Android 13; en-gb; 2201117TG Build/TKQ1.221114.001) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/100.0.4896.127 Mobile Safari/537.36 XiaoMi/MiuiBrowser/13.28.0-gn`,
	`Mozilla/5.0 (Linux; U; Android 12; en-us; CPH2239 Build/SP1A) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/90.0.4430.61 Mobile Safari/537.36 HeyTapBrowser/45.9.3.1.1`,
	`Mozilla/5.0 (Linux; Android 13; V2120 Build/TP1A) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/87.0.4280.141 Mobile Safari/537.36 VivoBrowser/13.1.3.0`,
	`Mozilla/5.0 (Linux; U; Android 4.0.3; de-de; Galaxy S II Build/GRJ22) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 Mobile Safari/534.30`,
	`Mozilla/5.0 (Linux; Android 11; KFTRWI) AppleWebKit/537.36 (KHTML, like Gecko) Silk/122.4.1 like Chrome/122.0.6261.90 Safari/537.36`,
	`Mozilla/5.0 (X11; U; Linux armv7l like Android; en-us) AppleWebKit/531.2+ (KHTML, like Gecko) Version/5.0 Safari/533.2+ Kindle/3.0+`,
	`Mozilla/5.0 (Linux; Android 9; AFTKA Build/PS7633.3445N; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/108.0.5359.160 Mobile Safari/537.36`,
	`Mozilla/5.0 (Linux; U; Android 2.0; en-us;) AppleWebKit/538.1 (KHTML, like Gecko) Version/4.0 Mobile Safari/538.1 (Kobo Touch 0384/4.38.21908)`,
	`Mozilla/5.0 (PlayStation; PlayStation 5/9.00) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Safari/605.1.15`,
	`Mozilla/5.0 (PlayStation 4 11.00) AppleWebKit/605.1.15 (KHTML, like Gecko)`,
	`Mozilla/5.0 (PLAYSTATION 3 4.90) AppleWebKit/531.22.8 (KHTML, like Gecko)`,
	`Mozilla/5.0 (Nintendo Switch; WifiWebAuthApplet) AppleWebKit/609.4 (KHTML, like Gecko) NF/6.0.2.21.3 NintendoBrowser/5.1.0.22474`,
	`Mozilla/5.0 (New Nintendo 3DS like iPhone) AppleWebKit/536.30 (KHTML, like Gecko) NX/3.0.0.5.20 Mobile NintendoBrowser/1.10.10166.EU`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64; Xbox; Xbox Series X) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/121.0.0.0 Safari/537.36 Edg/121.0.0.0`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Valve Steam GameOverlay/1709846872`,
	`Mozilla/5.0 (X11; Linux x86_64; Quest 3) AppleWebKit/537.36 (KHTML, like Gecko) OculusBrowser/32.0.0.7.74 Chrome/122.0.6261.128 VR Safari/537.36`,
	`Mozilla/5.0 (SMART-TV; LINUX; Tizen 6.5) AppleWebKit/537.36 (KHTML, like Gecko) 85.0.4183.93/6.5 TV Safari/537.36`,
	`Mozilla/5.0 (SMART-TV; Linux; Tizen 2.4.0) AppleWebKit/538.1 (KHTML, like Gecko) Version/2.4.0 TV Safari/538.1`,
	`Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/94.0.4606.128 Safari/537.36 WebAppManager`,
	`Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.79 Safari/537.36 DMOST/2.0.0 (; LGE; webOSTV; WEBOS6.3.2 03.34.95; W6_lm21a;)`,
	`Mozilla/5.0 (Linux; Android 9; BRAVIA 4K UR2 Build/PTT1.190515.001.S104) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/103.0.5060.129 Safari/537.36 OPR/46.0.2207.0 OMI/4.23.0.74.Catcher3.99 Model/Sony-KD-55XG8096`,
	`Mozilla/5.0 (X11; Linux armv7l) AppleWebKit/537.36 (KHTML, like Gecko) QtWebEngine/5.9.7 Chrome/56.0.2924.122 Safari/537.36 Sky_STB_ST412_2018/1.0.0 (Sky, EM150UK, )`,
	`Mozilla/5.0 (Linux; Andr0id 9; BRAVIA 4K GB) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/84.0.4147.125 Safari/537.36 HbbTV/1.5.1 (+DRM; Sony; KD-55X80J; PKG6.5629.0.3; Sony; )`,
	`Mozilla/5.0 (CrKey armv7l 1.5.16041) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/31.0.1650.0 Safari/537.36`,
	`Mozilla/5.0 (X11; GNU/Linux) AppleWebKit/537.36 (KHTML, like Gecko) Chromium/79.0.3945.130 Chrome/79.0.3945.130 Safari/537.36 Tesla/2023.44.30.8`,
	`Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5`,
	`Mozilla/5.0 (Mobile; LYF/F220B/LYF-F220B-003-01-15-130718-i; Android; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5`,
	`Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko`,
	`Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; .NET4.0C; .NET4.0E; .NET CLR 2.0.50727; .NET CLR 3.0.30729; .NET CLR 3.5.30729; rv:11.0) like Gecko`,
	`Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)`,
	`Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; SLCC2; .NET CLR 2.0.50727; InfoPath.3)`,
	`Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/52.0.2743.116 Mobile Safari/537.36 Edge/15.15063`,
	`Mozilla/5.0 (BB10; Kbd) AppleWebKit/537.35+ (KHTML, like Gecko) Version/10.3.3.3216 Mobile Safari/537.35+`,
	`BlackBerry9700/5.0.0.862 Profile/MIDP-2.1 Configuration/CLDC-1.1 VendorID/120`,
	`Nokia6300/2.0 (04.20) Profile/MIDP-2.0 Configuration/CLDC-1.1 UNTRUSTED/1.0`,
	`SAMSUNG-GT-E2252/E2252XXLG1 Openwave/6.2.3 Profile/MIDP-2.0 Configuration/CLDC-1.1 UP.Browser/6.2.3.3.c.1.101 (GUI) MMP/2.0`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15 Epiphany/605.1.15`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Falkon/3.1.0 QtWebEngine/5.12.5 Chrome/69.0.3497.128 Safari/537.36`,
	`Mozilla/5.0 (compatible; Konqueror/4.5; FreeBSD) KHTML/4.5.4 (like Gecko)`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) konqueror/22.12.3 QtWebEngine/5.15.12 Chrome/87.0.4280.144 Safari/537.36`,
	`Lynx/2.9.0dev.10 libwww-FM/2.14 SSL-MM/1.4.1 GNUTLS/3.7.1`,
	`w3m/0.5.3+git20230121`,
	`Links (2.29; Linux 6.1.0-18-amd64 x86_64; GNU C 12.2; text)`,
	`ELinks/0.13.2 (textmode; Linux; 80x24-2)`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Slack/4.36.140 Chrome/120.0.6099.291 Electron/28.2.10 Safari/537.36`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Code/1.87.2 Chrome/118.0.5993.159 Electron/27.3.2 Safari/537.36`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) discord/1.0.9036 Chrome/108.0.5359.215 Electron/22.3.26 Safari/537.36`,
	`Mozilla/5.0 (Linux; Android 12; moto g(9) play) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/110.0.0.0 Mobile Safari/537.36`,
}

// crawlers are agents of programs, by kind. Google-Extended is a name for robots.txt that no crawler sends. It is
// included as a precaution.
var crawlers = []string{
	// search
	`Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)`,
	`Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.7390.122 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)`,
	`Googlebot-Image/1.0`,
	`Mediapartners-Google`,
	`AdsBot-Google (+http://www.google.com/adsbot.html)`,
	`Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/49.0.2623.75 Safari/537.36 Google Favicon`,
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36`,
	`Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)`,
	`Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)`,
	`Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)`,
	`DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)`,
	`Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)`,
	`Mozilla/5.0 (compatible; SeznamBot/4.0; +http://napoveda.seznam.cz/seznambot-intro/)`,
	`Mozilla/5.0 (compatible; PetalBot;+https://webmaster.petalsearch.com/site/petalbot)`,
	`Mozilla/5.0 (compatible; Qwantify/1.0; +https://www.qwant.com/)`,
	`Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)`,
	`ia_archiver`,
	// AI
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot`,
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot`,
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; OAI-SearchBot/1.0; +https://openai.com/searchbot)`,
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)`,
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Claude-User/1.0; +Claude-User@anthropic.com)`,
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)`,
	`Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)`,
	`Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)`,
	`CCBot/2.0 (https://commoncrawl.org/faq/)`,
	`Google-Extended`,
	`Mozilla/5.0 (compatible; GoogleOther)`,
	`meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_10_1) AppleWebKit/600.2.5 (KHTML, like Gecko) Version/8.0.2 Safari/600.2.5 (Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot)`,
	`Mozilla/5.0 (compatible; YouBot/1.0; +https://about.you.com/youbot/)`,
	`cohere-ai`,
	`Diffbot/0.1 (+http://www.diffbot.com)`,
	`MistralAI-User/1.0`,
	// SEO
	`Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)`,
	`Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)`,
	`Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)`,
	`Mozilla/5.0 (compatible; DotBot/1.2; +https://opensiteexplorer.org/dotbot; help@moz.com)`,
	`Screaming Frog SEO Spider/20.1`,
	`Mozilla/5.0 (compatible; DataForSeoBot/1.0; +https://dataforseo.com/dataforseo-bot)`,
	`Mozilla/5.0 (compatible; BLEXBot/1.0; +http://webmeup-crawler.com/)`,
	`serpstatbot/2.1 (advanced backlink tracking bot; https://serpstatbot.com/; abuse@serpstatbot.com)`,
	// previews
	`facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0`,
	`WhatsApp/2.23.20.0 A`,
	`Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)`,
	`Slack-ImgProxy (+https://api.slack.com/robots)`,
	`Twitterbot/1.0`,
	`LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)`,
	`Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)`,
	`TelegramBot (like TwitterBot)`,
	`Pinterest/0.2 (+https://www.pinterest.com/bot.html)`,
	`Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5`,
	`Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)`,
	`Mastodon/4.2.8 (http.rb/5.1.1; +https://mastodon.social/)`,
	// monitors
	`Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)`,
	`Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)`,
	`Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/110.0.0.0 Safari/537.36 PingdomPageSpeed/1.0 (pingbot/2.0; +http://www.pingdom.com/)`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/96.0.4664.45 Safari/537.36 PTST/211202.211915`,
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.4896.60 Safari/537.36 NewRelicSynthetics/1.0`,
	`Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0; AppInsights)`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Safari/537.36 Chrome-Lighthouse`,
	`StatusCake`,
	`Uptime-Kuma/1.23.11`,
	`Blackbox Exporter/0.24.0`,
	`kube-probe/1.29`,
	`GoogleHC/1.0`,
	`ELB-HealthChecker/2.0`,
	// driven browsers
	`Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.6099.28 Safari/537.36`,
	`Mozilla/5.0 (Unknown; Linux x86_64) AppleWebKit/538.1 (KHTML, like Gecko) PhantomJS/2.1.1 Safari/538.1`,
	`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Cypress/12.17.4 Chrome/106.0.5249.51 Electron/21.0.0 Safari/537.36`,
	`Mozilla/5.0 (linux) AppleWebKit/537.36 (KHTML, like Gecko) jsdom/20.0.3`,
	// libraries
	`curl/8.5.0`,
	`Wget/1.21.4`,
	`python-requests/2.31.0`,
	`Python-urllib/3.11`,
	`Python/3.11 aiohttp/3.9.3`,
	`python-httpx/0.27.0`,
	`Go-http-client/2.0`,
	`axios/1.6.7`,
	`node-fetch/1.0 (+https://github.com/bitinn/node-fetch)`,
	`node`,
	`undici`,
	`got (https://github.com/sindresorhus/got)`,
	`okhttp/4.12.0`,
	`Dalvik/2.1.0 (Linux; U; Android 13; SM-A536B Build/TP1A.220624.014)`,
	`MyApp/12 CFNetwork/1494.0.7 Darwin/23.4.0`,
	`Java/17.0.10`,
	`Apache-HttpClient/4.5.14 (Java/17.0.10)`,
	`GuzzleHttp/7`,
	`libwww-perl/6.72`,
	`Ruby`,
	`PostmanRuntime/7.37.0`,
	`insomnia/8.6.1`,
	`Scrapy/2.11.0 (+https://scrapy.org)`,
	`Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.4170`,
	`HTTPie/3.2.2`,
	// hardly a name
	`Mozilla/5.0`,
	`Mozilla/5.0 (compatible)`,
	`-`,
	`null`,
}

func TestPeople(t *testing.T) {
	t.Parallel()
	b := newBots()
	for _, agent := range people {
		require.False(t, b.isBot(agent), agent)
		require.False(t, b.isBot(agent), "remembered: %s", agent)
	}
}

func TestCrawlers(t *testing.T) {
	t.Parallel()
	b := newBots()
	for _, agent := range crawlers {
		require.True(t, b.isBot(agent), agent)
		require.True(t, b.isBot(agent), "remembered: %s", agent)
	}
}

func TestOddAgents(t *testing.T) {
	t.Parallel()
	const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
	filled := func(text string, to int) string { return text + strings.Repeat("x", to-len(text)) }
	tests := []struct {
		rule, agent string
		bot         bool
	}{
		{"nothing", "", true},
		{"spaces alone", "   ", true},
		{"a browser in capitals", strings.ToUpper(chrome), false},
		{"a crawler in capitals", strings.ToUpper(chrome + " (compatible; Googlebot/2.1)"), true},
		{"a crawler behind the invalid UTF-8 of a browser", chrome + " \xff\xfe\xc3( HeadlessChrome", true},
		{"a browser with invalid UTF-8", chrome + " \xff\xfe\xc3(", false},
		{"nothing but invalid UTF-8", "\xff\xfe\xfd", true},
		{"NUL", chrome + "\x00", false},
		{"CUBOT makes phones", "Mozilla/5.0 (Linux; Android 8.1.0; CUBOT_P20) Chrome/88.0 Mobile Safari/537.36", false},
		{"a crawler on a CUBOT", "Mozilla/5.0 (Linux; Android 8.1.0; CUBOT_P20) Chrome/88.0 Mobile Safari/537.36 SomeBot/1.0", true},
		{"bots", "Mozilla/5.0 (X11; Linux x86_64) somebots", true},
		{"bot within a word", "Mozilla/5.0 (X11; Linux x86_64) Bottle/1.0 Botany/2.0", false},
		{"an old browser that claims to be compatible", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", false},
		{"an address on the web", "Mozilla/5.0 (X11; Linux x86_64) Something/1.0 (+https://example.com)", true},
		{"an address without its scheme", "Mozilla/5.0 (X11; Linux x86_64) Something/1.0 (www.example.com)", true},
		{"anything else that does", "Mozilla/5.0 (compatible; Something/1.0)", true},
		{"Facebook's browser, without its crawler", chrome + " [FB_IAB/FB4A;FBAV/459.0.0.52.109;]", false},
		{"Facebook's browser, which says no more than that", "[FBAN/FB4A;FBAV/16.0.0.20.15;FBBV/4061184;FBLC/en_US;]", false},
		{"a name within the bound", filled(chrome, agentBytes-len("bot")) + "bot", true},
		{"a name across the bound", filled(chrome, agentBytes-len("bo")) + "bot", false},
		{"a name behind the bound", filled(chrome, agentBytes) + " Googlebot/2.1", false},
		{"a megabyte", filled(chrome, 1<<20), false},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			b := newBots()
			require.Equal(t, test.bot, b.isBot(test.agent))
			require.Equal(t, test.bot, b.isBot(test.agent), "remembered")
		})
	}
}

// Agents crafted to be slow are classified like any other: the rules search for fixed texts within the first
// agentBytes bytes.
func TestCraftedAgents(t *testing.T) {
	t.Parallel()
	b := newBots()
	for _, junk := range []string{"bo", "cubot", "botx", "(", "compatibl", "ww.", ":/", "m", "crawspidescraheadles", "\xc3", "K"} {
		agent := "Mozilla/5.0 (X11) " + strings.Repeat(junk, 1<<20/len(junk))
		require.False(t, b.isBot(agent), junk)
		require.True(t, b.isBot("Mozilla/5.0 (X11) headless "+agent), junk)
	}
	require.LessOrEqual(t, b.verdicts.Count(), 2*11)
}

const cacheParts = 16 // of a cache.Cache. Each half of a part may hold one entry more.

func TestAgentsThatRotate(t *testing.T) {
	for _, test := range []struct {
		name           string
		agents, length int
	}{
		{"short", 1_000_000, 10},
		{"usual", 100_000, 150},
		{"long", 50_000, agentBytes},
		{"far too long", 10_000, 20 * agentBytes},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := heap()
			b := newBots()
			most, count := int64(0), 0
			padding := strings.Repeat("x", test.length)
			agents := dbtest.LongOrShort(test.agents, min(test.agents, 40_000))
			for i := range agents {
				b.isBot((strconv.Itoa(10_000_000+i) + padding)[:test.length])
				if i%100 == 0 {
					b.isBot(people[0])
				}
				if i%(agents/50) == 0 {
					most, count = max(most, heap()), max(count, b.verdicts.Count())
				}
			}
			_, known := b.verdicts.Get(people[0])
			require.True(t, known, "it was looked up all the time")
			most -= max(before, heap()) // b is released, so the rest of the heap's growth does not count
			entry := min(test.length, agentBytes) + agentOverhead
			t.Logf("%d agents of %d bytes held in %d, of %d promised", count, test.length, most, verdictBytes)
			require.LessOrEqual(t, most, int64(verdictBytes))
			require.LessOrEqual(t, count, verdictBytes/entry+2*cacheParts)
			require.Greater(t, count, verdictBytes/entry/2, "the bound is used")
		})
	}
}

func BenchmarkBots(b *testing.B) {
	junk := "Mozilla/5.0 (X11) " + strings.Repeat("cubot", agentBytes)
	for _, bench := range []struct{ name, agent string }{
		{"browser", people[0]}, {"crawler", crawlers[0]}, {"library", "curl/8.5.0"}, {"junk", junk[:agentBytes]},
	} {
		b.Run("judged/"+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				isBot(bench.agent)
			}
		})
		b.Run("remembered/"+bench.name, func(b *testing.B) {
			known := newBots()
			b.ReportAllocs()
			for b.Loop() {
				known.isBot(bench.agent)
			}
		})
	}
	b.Run("start", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newBots()
		}
	})
	b.Run("remembered/by all processors", func(b *testing.B) {
		known := newBots()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				known.isBot(people[i%len(people)])
			}
		})
	})
}
