package tag

import "strings"

// services maps names to the service to which they belong. The names are hosts, Android apps, and common values of
// utm_source. If a host starts with a dot, its subdomains also belong to the service.
var services = readServices(`
google: images.google.com m.google.com com.google.android.googlequicksearchbox com.google.android.apps.searchlite
google news: news.google.com com.google.android.apps.magazines googlenews
gmail: mail.google.com com.google.android.gm
bing: .bing.com com.microsoft.bing
duckduckgo: .duckduckgo.com .ddg.gg com.duckduckgo.mobile.android ddg
yahoo: .yahoo.com .yahoo.co.jp
yandex: .yandex.ru .yandex.com .ya.ru ru.yandex.searchplugin
baidu: .baidu.com com.baidu.searchbox
facebook: .facebook.com .fb.com .fb.me .messenger.com com.facebook.katana com.facebook.lite com.facebook.orca fb
instagram: .instagram.com com.instagram.android ig
threads: .threads.net .threads.com com.instagram.barcelona
x: t.co .x.com .twitter.com com.twitter.android twitter
reddit: .reddit.com .redd.it com.reddit.frontpage
hacker news: news.ycombinator.com hn.algolia.com hckrnews.com hn hackernews hacker_news hacker-news
lobsters: lobste.rs
linkedin: .linkedin.com lnkd.in com.linkedin.android
youtube: .youtube.com youtu.be com.google.android.youtube yt
tiktok: .tiktok.com com.zhiliaoapp.musically
pinterest: .pinterest.com pin.it com.pinterest
telegram: t.me .telegram.org telegram.me org.telegram.messenger
whatsapp: .whatsapp.com wa.me com.whatsapp
discord: .discord.com .discordapp.com com.discord
slack: .slack.com com.slack
bluesky: .bsky.app bsky xyz.blueskyweb.app
mastodon: mastodon.social mastodon.online mastodon.world mastodon.cloud mastodon.uno mstdn.social mstdn.jp mas.to
mastodon: fosstodon.org hachyderm.io infosec.exchange chaos.social org.joinmastodon.android
github: .github.com com.github.android
wikipedia: .wikipedia.org org.wikipedia
product hunt: .producthunt.com producthunt
vk: .vk.com .vk.ru com.vkontakte.android
weibo: .weibo.com .weibo.cn t.cn com.sina.weibo
zhihu: .zhihu.com com.zhihu.android
wechat: .weixin.qq.com com.tencent.mm weixin
bilibili: .bilibili.com b23.tv tv.danmaku.bili
chatgpt: .chatgpt.com chat.openai.com com.openai.chatgpt
claude: .claude.ai com.anthropic.claude
gemini: gemini.google.com com.google.android.apps.bard
perplexity: .perplexity.ai ai.perplexity.app.android
copilot: copilot.microsoft.com com.microsoft.copilot
outlook: outlook.live.com outlook.office.com outlook.office365.com com.microsoft.office.outlook
`)

func readServices(lines string) map[string]string {
	services := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		service, others, _ := strings.Cut(line, ":")
		for name := range strings.FieldsSeq(others) {
			services[name] = service
			services[strings.TrimPrefix(name, ".")] = service
		}
	}
	return services
}
