package handler

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/db/dbtest"
	"footfall/desk"
)

// axe is a script that finds accessibility faults, or "" if it is missing and optional.
func axe(t *testing.T) string { t.Helper(); return fromNPM(t, "axe-core", "axe.min.js") }

// fromNPM returns a file of a package fetched by scripts/fetch-npm, or "" if it is missing and optional.
func fromNPM(t *testing.T, name, file string) string {
	t.Helper()
	found, err := exec.Command("../scripts/fetch-npm", name).Output()
	if err != nil && testing.Short() {
		t.Logf("%s is not tried: %v", name, err)
		return ""
	}
	require.NoError(t, err, "scripts/fetch-npm %s", name)
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(found)), file))
	require.NoError(t, err)
	return string(script)
}

// hostilePages are pages that any caller who can count a visit could create.
var hostilePages = []string{
	"/<script>hacked=1</script>", `/"onmouseover=hacked=1 x="`, "/'><img src=x onerror=hacked=1>", "/{{.}}${1}", "/%E2%80%AEgnp.exe",
	"/%D7%A9%D7%9C%D7%95%D7%9D",
	"/%3Cb%3E%2F%25", "/" + strings.Repeat("w", 1900), "/%E6%97%A5%E6%9C%AC", "/javascript:hacked=1",
}

// TestDashboardInChromium checks all pages in one browser: wide and on a phone, in light and dark mode, by keyboard,
// and without scripts.
func TestDashboardInChromium(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	for i, path := range hostilePages {
		for visitor := range 1 + i%3 {
			w.counting(i/3, "192.0.2."+string(rune('1'+visitor)), "http://hhui.top"+path)
		}
	}
	w.counting(3, "192.0.2.9", "http://xn--r8jz45g.jp/")
	w.administer(func(ctx context.Context, a *admin.Admin) error {
		_, hostile := a.AddNote(ctx, "demo", "2019-06-30", "<b onmouseover=hacked=1>שלום</b>", "")
		_, long := a.AddNote(ctx, "demo", "2019-07-01", strings.Repeat("long", 50), "hhui.top")
		return errors.Join(hostile, long)
	})
	_, err := w.Conn(t).Exec(t.Context(), `
		WITH made AS (
			INSERT INTO footfall.tags (app_id, name, value)
			SELECT 1, n, v FROM unnest('{source,campaign,country,system}'::text[]) AS n, unnest(ARRAY['<b onmouseover=hacked=1>x', repeat('w', 100),
			'DE']) AS v RETURNING id, name
		)
		INSERT INTO footfall.tag_days (page_id, day_id, tag_id, pv, newcomers)
		SELECT d.page_id, d.day_id, m.id, 1, 0 FROM made AS m, footfall.days AS d WHERE d.site_id IS NULL OR m.name IN ('source', 'campaign')`)
	require.NoError(t, err)
	w.Exec(t, `INSERT INTO titles (page_id, title, told_at) SELECT id, CASE id % 3 WHEN 0 THEN '<b onmouseover=hacked=1>שלום'
		WHEN 1 THEN 'Title' ELSE repeat('w', 200) END, now() FROM pages WHERE site_id IS NOT NULL`)
	proxy := w.proxy()
	var asked sync.Map
	w.rest = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		asked.Store(r.Host+r.URL.Path, true)
		proxy.ServeHTTP(out, r)
	})
	b, script := w.drive(t), axe(t)
	b.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil) // no other page has the keyboard
	paths := []string{
		"/", "/dash/demo", "/dash/demo/hhui.top", "/dash/demo/hhui.top?range=all&compare=none", "/dash/demo/hhui.top?page=/%253Cb%253E%252F%2525",
		"/dash/demo/never.example",
		"/dash/demo/hhui.top?range=x", "/dash/demo/hhui.top?find=<b>", "/dash/demo/hhui.top?range=all&all=from",
		"/dash/demo/hhui.top?range=today&period=day", "/dash/demo/hhui.top?with_by=system&value=wwww" + strings.Repeat("w", 96),
		"/dash/demo/hhui.top?range=all&where=!country:de&where=" + strings.Repeat("w", 100),
		"/dash/demo/hhui.top?range=all&where=!new&where=!source:DE",
		"/dash/demo/hhui.top?range=all&find=w", "/embed?app=demo", "/proof", "/dash/demo/hhui.top?columns=more&by=change", "/enter", "/leave",
		"/dash/shop",
		"/dash/demo/hhui.top?range=all&one&where=new",
		"/dash/demo/hhui.top?goal=page:/%25E6%2597%25A5%25E6%259C%25AC&goal_by=source&range=all", "/dash/demo/hhui.top?funnel&range=all",
		"/dash/demo/hhui.top?funnel&range=all&step=page:/*&step=" + strings.Repeat("w", 100),
		"/dash/demo/hhui.top?funnel&range=all&step=page:/*&step=!new",
		w.share("demo", "hhui.top"), w.share("demo", "") + "/hhui.top?embed&page=/%25E6%2597%25A5%25E6%259C%25AC", "/share/wrong",
	}
	looks := []struct {
		wide   int
		scheme string
	}{{1600, "light"}, {320, "dark"}, {390, "light"}, {1440, "dark"}}
	for i, look := range looks[:dbtest.LongOrShort(4, 2)] {
		b.look(look.wide, look.scheme)
		for j, path := range paths {
			b.open(dash + path)
			var wide int
			b.ask(`document.documentElement.scrollWidth`, &wide)
			assert.LessOrEqual(t, wide, look.wide, "%s at %d", path, look.wide)
			var small []string
			b.ask(`[...document.querySelectorAll('a, button, input, summary')].filter(e => e.checkVisibility() && !e.matches('.skip')).filter(e => {
				const {width, height} = e.getBoundingClientRect()
				return width < 24 || height < 24
			}).map(e => e.outerHTML)`, &small)
			assert.Empty(t, small, "%s at %d: too small for a finger", path, look.wide)
			if !testing.Short() || (i+j)%2 == 0 { // the expensive half of a look, once per page in short runs
				assertAccessible(t, b, script)
			}
		}
	}

	t.Run("stored values are text", func(t *testing.T) {
		b.open(dash + "/dash/demo/hhui.top?range=all")
		var alien int
		b.ask(`document.querySelectorAll('script:not([src="/dash/dash.js"]), img, iframe, b b, [onerror], [onmouseover], [style], `+
			`style').length + (typeof hacked === 'undefined' ? 0 : 100)`, &alien)
		assert.Zero(t, alien)
		var names []string
		b.ask(`[...document.querySelectorAll('.pages tbody bdi')].map(e => e.textContent)`, &names)
		assert.Contains(t, names, "/%3Cscript%3Ehacked=1%3C/script%3E")
		assert.Contains(t, names, "/%E2%80%AEgnp.exe", "a mark of direction")
		assert.Contains(t, names, "/שלום")
		assert.Contains(t, names, "/日本")
		var links []string
		b.ask(`[...document.querySelectorAll('.pages tbody a')].map(e => e.href)`, &links)
		require.Len(t, links, len(hostilePages))
		for _, link := range links {
			assert.True(t, strings.HasPrefix(link, dash+"/dash/demo/hhui.top?"), link)
			b.open(link)
			var page struct{ Number, Stored string }
			b.ask(`({Number: document.querySelector('.big')?.textContent, Stored: document.querySelector('h1').title})`, &page)
			assert.NotEmpty(t, page.Number, link)
			assert.Equal(t, "hhui.top"+mustQuery(t, link).Get("page"), page.Stored)
			var title string
			b.ask(`document.querySelector('.heading .calls').textContent`, &title)
			assert.Contains(t, []string{"<b onmouseover=hacked=1>שלום", "Title", strings.Repeat("w", 200)}, title)
		}
	})

	t.Run("the first screen of a phone", func(t *testing.T) {
		b.do("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true}, nil)
		queries := []string{"", "?range=today", "?range=all", "?page=/%25E6%2597%25A5%25E6%259C%25AC&range=all", "?range=month",
			"?range=7d&where=!new"}
		for i := range 3 * len(queries) {
			query, wide := queries[i/3], []int{320, 360, 390}[i%3]
			b.look(wide, "light")
			b.open(dash + "/dash/demo/hhui.top" + query)
			var at struct {
				Number, Chart, Ranges, Out float64
				Keyboard                   bool
			}
			b.ask(`({Number: document.querySelector('.big').getBoundingClientRect().bottom,
				Chart: document.querySelector('.chart').getBoundingClientRect().top,
				Ranges: document.querySelector('.ranges').getBoundingClientRect().height,
				Out: Math.min(...[...document.querySelectorAll('main :is(a, summary, h1, h2, p, dd, th, td)')]
					.filter(e => e.checkVisibility() && !e.closest('.sr'))
					.map(e => e.getBoundingClientRect().left)) - document.querySelector('main').getBoundingClientRect().left,
				Keyboard: [...document.querySelectorAll('footer button')].some(e => e.checkVisibility())})`, &at)
			assert.Less(t, at.Number, 300.0, "%s at %d", query, wide)
			assert.Less(t, at.Chart, 700.0, "%s at %d", query, wide)
			assert.Less(t, at.Ranges, 45.0, "%s at %d: one line", query, wide)
			assert.GreaterOrEqual(t, at.Out, 0.0, "%s: nothing hangs out of the margin", query)
			assert.False(t, at.Keyboard, "nobody has one there")
		}
		b.do("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": false}, nil)
		b.look(1440, "light")
		b.open(dash + "/dash/demo/hhui.top")
		var keyboard bool
		b.ask(`[...document.querySelectorAll('footer button')].some(e => e.checkVisibility())`, &keyboard)
		assert.True(t, keyboard)
	})

	t.Run("in each language", func(t *testing.T) {
		fitsInEachLanguage(t, b, script, dash, []string{"/dash/demo", "/dash/demo/hhui.top?columns=more&range=all&one", "/embed?app=demo",
			"/proof", "/dash/demo/hhui.top?range=today", "/dash/demo/hhui.top?funnel&range=all&step=page:/*", "/enter", "/dash/demo/hhui.top?find=h"})
	})

	t.Run("by keyboard only, without scripts", func(t *testing.T) {
		w.SignIn(t, "Ann", desk.Looks("shop", "demo"))
		b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		b.open(dash + "/dash/shop")
		b.await(`document.activeElement.name === 'name'`) // autofocus may happen after loading
		b.do("Input.insertText", map[string]any{"text": "ann"}, nil)
		b.press("Tab", 9)
		b.do("Input.insertText", map[string]any{"text": desk.Password}, nil)
		b.leads(func() { b.press("Enter", 13) })
		assert.Equal(t, "shop", b.title())
		b.open(dash + "/dash/demo/hhui.top")
		b.press("Tab", 9) // to the link past the navigation
		b.press("Enter", 13)
		b.await(`location.hash === '#main' && document.activeElement === document.body`) // the focus leaves the link last
		assert.Equal(t, dash+"/dash/demo/hhui.top#main", b.where())
		b.press("Tab", 9) // to the site itself
		b.press("Tab", 9)
		b.leads(func() { b.press("Enter", 13) })
		assert.Contains(t, b.where(), "range=today")
		b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
		for _, wide := range []int{1440, 360} {
			b.look(wide, "light")
			b.open(dash + "/dash/demo/hhui.top?range=all&who")
			var shown struct{ Rows, Wide int }
			b.ask(`({Rows: document.querySelectorAll('.who th[scope=row]').length, Wide: document.documentElement.scrollWidth})`, &shown)
			assert.Positive(t, shown.Rows)
			assert.LessOrEqual(t, shown.Wide, wide)
			assertAccessible(t, b, script)
		}
	})
	for _, said := range b.console {
		if !strings.Contains(said, "status of 4") && !strings.Contains(said, "recommendation") { // the errors that the test provokes
			assert.Fail(t, "Chromium reports an error or a violated rule", said)
		}
	}
	asked.Range(func(at, _ any) bool {
		assert.True(t, strings.HasPrefix(at.(string), "dash.example/") || strings.Contains(at.(string), ".google"), at)
		return true
	})
}

// assertAccessible runs an accessibility script in the shown page, if there is a script.
func assertAccessible(t *testing.T, b *devtools, script string) {
	t.Helper()
	if script == "" {
		return
	}
	b.ask(`document.querySelectorAll('details').forEach(d => { d.open = true })`, nil)
	b.ask(script+`;0`, nil)
	var faults []string
	b.ask(`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => `+
		`n.html.slice(0, 200) + ' ' + n.failureSummary).join('; ')))`, &faults)
	assert.Empty(t, faults, b.where())
}

func mustQuery(t *testing.T, address string) url.Values {
	t.Helper()
	at, err := url.Parse(address)
	require.NoError(t, err)
	return at.Query()
}

// where returns the current address.
func (d *devtools) where() string { d.t.Helper(); return d.shown().URL }

func (d *devtools) title() string { d.t.Helper(); return d.shown().Title }

type shownPage struct{ URL, Title string }

func (d *devtools) shown() shownPage {
	d.t.Helper()
	var history struct {
		CurrentIndex int
		Entries      []shownPage
	}
	d.do("Page.getNavigationHistory", nil, &history)
	return history.Entries[history.CurrentIndex]
}
