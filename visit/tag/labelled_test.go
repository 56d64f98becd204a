package tag

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names that ua-parser-js has for what is one here; others are Other.
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

// Most agents in the tests of ua-parser-js are of browsers that hardly anybody has: each has one or
// two. What is named right of these is a floor for what is of visitors.
func TestLabelledAgents(t *testing.T) {
	t.Parallel()
	found, err := exec.Command("../../scripts/fetch-npm", "ua-parser-js").Output()
	if err != nil && testing.Short() {
		t.Skipf("there are no labelled agents here: %v", err)
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
