package handler

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/desk"
	"footfall/web/words"
)

// pagesInWords are pages of all kinds, as seen by an account with all rights.
var pagesInWords = []string{
	"/dash/demo", "/dash/demo/hhui.top", "/dash/demo/hhui.top?range=today", "/dash/demo/hhui.top?range=all&one&columns=more&by=change",
	"/dash/demo/hhui.top?range=year&period=month&chart=views", "/dash/demo/hhui.top?page=/home", "/dash/demo/hhui.top?where=!device:phone&range=all",
	"/dash/demo/hhui.top?range=all&all=with", "/dash/demo/hhui.top?who&range=all", "/dash/demo/hhui.top?goal=page:/home&goal_by=source",
	"/dash/demo/hhui.top?funnel&step=page:/home&step=page:/none", "/dash/demo/hhui.top?find=zzz", "/dash/demo/never.example",
	"/dash/demo/hhui.top?range=x", "/dash/demo/hhui.top?where=x", "/dash/demo/hhui.top?from=2018-01-01&to=2018-01-02", "/embed?app=demo", "/proof",
	"/enter", "/leave", "/new", "/new/shop", "/settings", "/settings/shop", "/settings?account=1", "/nowhere", "/dash/nope", "/share/wrong", "/begin",
}

// sameWords are the same in English and another language, names, or typed words.
var sameWords = map[string]string{
	"": `footfall csv json ann olga demo shop new utc source campaign country language device system browser hour count assert read admin event page
		returning open sites phone key off answers hashed address id daily default skip true false on visitor host port hugo hexo jekyll wordpress
		ghost astro vitepress next code injection site header settings google html pricing download home head script src data defer none`,
	"de": "single optional import filter name badges apps app hosts browser was links webhooks host link text system systeme dashboard crawler website slug",
	"fr": "condition import source sources page pages date badges campagne note notes webhooks app action message direct site sites part total",
	"es": "host hosts webhooks total no original visible",
}

// wrongForms are forms that are refused: a page, and the form data.
var wrongForms = []string{
	"/settings do=invite&name=", "/settings do=invite&name=%E2%80%AEx", "/settings do=language&language=tlh", "/settings do=password&old=x&new=y",
	"/settings/shop do=set&of=counting&tz=Mars&was.tz=UTC&access=x&was.access=sites&ignore=x+y&was.ignore=&keep-query=%26&was.keep-query=",
	"/settings/shop do=set&of=counting&ignore=192.0.2.1/33&was.ignore=&public-counts=x&was.public-counts=off&bots=x&was.bots=default",
	"/settings/shop do=set&of=counting&ignore=192.0.2.1/24&was.ignore=&respect-dnt=x&was.respect-dnt=false",
	"/settings/shop do=set&of=visitors&visitor=x&was.visitor=hashed&ipv6-prefix=1&was.ipv6-prefix=64",
	"/settings/shop do=set&of=kept&retain-days=-1&was.retain-days=35&forget-days=-1&was.forget-days=0&tags=1,2&was.tags=&filters=x&was.filters=on",
	"/settings/shop do=set&of=kept&forget-days=1&was.forget-days=0", "/settings/shop do=set&of=kept&goal=x&was.goal=&titles=&was.titles=on",
	"/settings/shop do=set&of=limits&max-requests=x&was.max-requests=default&max-new-pages=-1&was.max-new-pages=default",
	"/settings/shop do=add&of=hosts&site=", "/settings/shop do=add&of=hosts&site=*.com", "/settings/shop do=add&of=keys&scope=",
	"/settings/shop do=add&of=links&site=x&until=x", "/settings/shop do=add&of=links&site=&until=2010-01-01", "/settings/shop do=add&of=notes&day=x&text=",
	"/settings/shop do=add&of=webhooks&url=x&site=", "/settings/shop do=add&of=webhooks&url=http://127.0.0.1/&site=hhui.top",
	"/settings/shop do=add&of=offsets&uri=http://x:y/&hot=x&pv=0&uv=5", "/settings/shop do=show&visitor=x", "/settings/shop do=show&visitor=",
	"/settings/shop do=delete+page&uri=hhui.top", "/settings/shop do=delete+page&uri=http://no.example/x", "/settings/shop do=import+history", "/settings/shop do=delete&word=x&sure=yes", "/settings/shop do=remove&of=hosts&one=hhui.top",
	"/new host=&zone=Mars&visitor=x", "/new host=*.com&zone=UTC&visitor=hashed", "/settings?account=1 do=rights&one=1&owner=", "/settings do=x",
}

var (
	untold = regexp.MustCompile(`(?s)<(script|style|code|pre|kbd|bdi|option)\b.*?</(script|style|code|pre|kbd|bdi|option)>|` +
		`<ul class="options languages">.*?</ul>`)
	told   = regexp.MustCompile(`(?:aria-label|title|placeholder|data-of|data-words)="([^"]*)"`)
	ofTags = regexp.MustCompile(`<[^>]*>`)
	dotted = regexp.MustCompile(`\S+[./:=]\S+`) // hosts, paths and typed values
	letter = regexp.MustCompile(`[A-Za-z]{3,}`)
)

// lines returns the texts of a page.
func lines(page string) (said []string) {
	page = untold.ReplaceAllString(page, "")
	for _, attribute := range told.FindAllStringSubmatch(page, -1) {
		page += "\n" + attribute[1]
	}
	for line := range strings.Lines(html.UnescapeString(ofTags.ReplaceAllString(page, "\n"))) {
		if line = strings.TrimSpace(line); letter.MatchString(line) {
			said = append(said, line)
		}
	}
	return said
}

// vocabulary returns the words in a language's file, as written in a text.
func vocabulary(t *testing.T, tag string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../web/words/" + tag + ".toml")
	require.NoError(t, err)
	has := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if _, said, is := strings.Cut(line, " = "); is {
			for _, word := range letter.FindAllString(dotted.ReplaceAllString(said, ""), -1) {
				has[strings.ToLower(word)] = true
			}
		}
	}
	return has
}

// Each page, and each error of a form, is completely in the browser's preferred language.
func TestPagesAreInTheLanguageOfTheReader(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	owner := e.owner()
	require.Equal(t, 303, owner.sends("/settings/shop", "do", "set", "of", "kept", "goal", "page:/home", "was.goal", "").status)
	english := map[string]answer{}
	for _, path := range pagesInWords {
		english[path] = owner.do(http.MethodGet, path, nil, "Accept", "text/html")
	}
	inEnglish := vocabulary(t, "en")
	for _, l := range words.All()[1:] {
		base, _, _ := strings.Cut(l.Tag, "-")
		allowed, own := strings.Fields(sameWords[""]+" "+sameWords[base]), vocabulary(t, l.Tag)
		inThatLanguage := func(path, body string) {
			for _, line := range lines(body) {
				for _, word := range letter.FindAllString(dotted.ReplaceAllString(line, ""), -1) {
					word = strings.ToLower(word)
					assert.False(t, inEnglish[word] && !own[word] && !slices.Contains(allowed, word), "%s: %s says %q: %.300s", l.Tag, path, word, line)
				}
			}
		}
		for _, path := range pagesInWords {
			a := owner.do(http.MethodGet, path, nil, "Accept", "text/html", "Accept-Language", l.Tag+",en;q=0.5")
			assert.Equal(t, english[path].status, a.status, path)
			assert.Equal(t, l.Tag, a.header.Get("Content-Language"), path)
			assert.Contains(t, a.header.Get("Vary"), "Accept-Language", path)
			assert.Contains(t, a.body, `<html lang="`+l.Tag+`">`, path)
			if a.header.Get("ETag") != "" {
				assert.NotEqual(t, english[path].header.Get("ETag"), a.header.Get("ETag"), path)
			}
			inThatLanguage(path, a.body)
		}
		for _, form := range wrongForms {
			path, sent, _ := strings.Cut(form, " ")
			values, err := url.ParseQuery(sent)
			require.NoError(t, err)
			a := owner.do(http.MethodPost, path, values, "Accept", "text/html", "Accept-Language", l.Tag)
			assert.NotEqual(t, 303, a.status, form)
			inThatLanguage(form, a.body)
		}
	}
}

// The language in the address takes precedence over the account's language, which takes precedence over the browser's. If the
// address of a page has a language, all links on the page keep it.
func TestLanguageIsKept(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps()
	owner := e.owner()
	in := func(path string, headers ...string) string {
		return owner.do(http.MethodGet, path, nil, headers...).header.Get("Content-Language")
	}
	assert.Equal(t, "en", in("/proof"))
	assert.Equal(t, "zh-CN", in("/proof", "Accept-Language", "zh-TW,zh;q=0.9"))
	assert.Equal(t, "en", in("/proof", "Accept-Language", "tlh, nonsense;;;"))
	assert.Equal(t, 303, owner.sends("/settings", "do", "language", "language", "ja").status)
	assert.Equal(t, "ja", in("/proof", "Accept-Language", "de"))
	assert.Equal(t, "fr", in("/proof?lang=fr", "Accept-Language", "de"))
	assert.Equal(t, "ja", in("/proof?lang=tlh"))
	assert.Equal(t, 400, owner.sends("/settings", "do", "language", "language", "tlh").status)
	assert.Equal(t, 303, owner.sends("/settings", "do", "language", "language", "browser").status)
	assert.Equal(t, "de", in("/proof", "Accept-Language", "de"))

	leads := regexp.MustCompile(` (?:href|action)="([^"#]*)`)
	asks := regexp.MustCompile(`<form[^>]* action="[^"]*">(?:<input type="hidden" name="lang" value="de">)?`)
	for _, path := range append(slices.Clone(pagesInWords), e.share("demo", "")+"?embed") {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		a := owner.do(http.MethodGet, path+sign+"lang=de", nil, "Accept", "text/html")
		main, _, _ := strings.Cut(a.body, `<ul class="options languages">`)
		for _, lead := range leads.FindAllStringSubmatch(main, -1) {
			to, err := url.Parse(html.UnescapeString(lead[1]))
			require.NoError(t, err)
			kept := to.Host != "" || to.Path == "" && to.RawQuery == "" || strings.HasPrefix(to.Path, "/api/") ||
				strings.HasPrefix(to.Path, "/dash/icon") || strings.HasPrefix(to.Path, "/dash/style") || to.Query().Get("lang") == "de"
			assert.True(t, kept || strings.Contains(asks.FindString(main), lead[1]), "%s leads to %s", path, lead[1])
		}
		for _, form := range asks.FindAllString(main, -1) {
			assert.True(t, strings.Contains(form, `method="post"`) || strings.Contains(form, `name="lang"`), "%s: %s", path, form)
		}
	}
	assert.Contains(t, html.UnescapeString(owner.get("/embed?app=demo&lang=de").body), `<a href="/hello">Hallo</a>`,
		"the rest of the address stays")
	led := newPerson(e).do(http.MethodPost, "/enter?lang=de", url.Values{"to": {"/dash/shop"}, "name": {"nobody"}, "password": {"x"}})
	assert.Contains(t, led.body, "Name oder Passwort ist falsch.")
	done := owner.sends("/settings?lang=de", "do", "language", "language", "browser")
	assert.Equal(t, "/settings?done=yes&lang=de", done.header.Get("Location"))
	for _, l := range words.All()[1:] {
		assert.Contains(t, owner.get("/proof").body, `href="/proof?lang=`+l.Tag+`" lang="`+l.Tag+`"`)
	}
}

// longer makes each word of a page 1.4 times as long, because words of other languages may be. Names, numbers and
// typed values stay.
const longer = `(() => {
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	for (let node; node = walker.nextNode();) {
		if (node.parentNode.closest('bdi, code, pre, script, option, svg, textarea, .crumbs, .languages')) continue
		node.data = node.data.replace(/\p{L}{3,}/gu, word => word + 'e'.repeat(Math.ceil(word.length * 0.4)))
	}
	return document.documentElement.scrollWidth
})()`

// opened opens the folded parts of a page.
const opened = `document.querySelectorAll('main > :not(.ranges) details').forEach(d => d.open = true)`

// fitsInEachLanguage opens pages on the narrowest phone, as browsers of each language do, and with longer words.
func fitsInEachLanguage(t *testing.T, b *devtools, script, base string, paths []string) {
	t.Helper()
	b.look(320, "light")
	for i, path := range paths {
		b.open(base + path)
		b.ask(opened, nil)
		var wide int
		b.ask(longer, &wide)
		assert.LessOrEqual(t, wide, 320, "%s with longer words", path)
		for j, l := range words.All()[1:] {
			if testing.Short() && l.Tag != "de" && (i+j)%3 != 0 { // German has the longest words
				continue
			}
			b.do("Emulation.setUserAgentOverride", map[string]any{"userAgent": desk.Browser, "acceptLanguage": l.Tag}, nil)
			b.open(base + path)
			b.ask(opened, nil)
			var shown struct {
				Wide     int
				Language string
			}
			b.ask(`({Wide: document.documentElement.scrollWidth, Language: document.documentElement.lang})`, &shown)
			assert.Equal(t, l.Tag, shown.Language)
			assert.LessOrEqual(t, shown.Wide, 320, "%s in %s", path, l.Tag)
			if !testing.Short() || i == j%len(paths) {
				assertAccessible(t, b, script)
			}
		}
		b.do("Emulation.setUserAgentOverride", map[string]any{"userAgent": desk.Browser, "acceptLanguage": "en"}, nil)
	}
}
