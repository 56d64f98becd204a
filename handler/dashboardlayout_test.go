package handler

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
)

// busySite counts two months of a site with many pages and sources, three devices, two goals and two events.
func (e *edge) busySite() {
	e.t.Helper()
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "demo", app.Settings{Goals: []string{"event:signup", "page:/p3"}})
	})
	agents := []string{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (Linux; Android 13; SM-T870) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"}
	visit := func(ask url.Values) {
		ask.Set("app", "demo")
		a := e.get("/visit?" + ask.Encode())
		require.Equal(e.t, http.StatusOK, a.status, a.body)
	}
	for i := range 70 * 4 {
		e.Clock.Set(noon.AddDate(0, 0, i/4))
		ask := url.Values{"ip": {fmt.Sprintf("192.0.2.%d", i%200)}, "uri": {fmt.Sprintf("http://hhui.top/p%d", i*i%17)}, "agent": {agents[i%3]}}
		if source := i * 7 % 13; source > 0 {
			ask.Set("referrer", fmt.Sprintf("https://s%02d.example/", source))
		}
		visit(ask)
		if i%16 == 0 {
			visit(url.Values{"ip": ask["ip"], "event": {[]string{"signup", "download"}[i/16%2]}})
		}
	}
	e.Close() // also adds up the tags
}

// measuring lets a page measure the positions of its lines of text.
const measuring = `(() => {
	window.baseline = e => {
		const mark = document.createElement('i')
		mark.style.cssText = 'display: inline-block; width: 0; height: 0'
		e.prepend(mark)
		const {bottom} = mark.getBoundingClientRect()
		mark.remove()
		return bottom
	}
	window.seen = (selector, within = document) => [...within.querySelectorAll(selector)].filter(e => e.checkVisibility() && !e.closest('.sr'))
	window.uneven = elements => { // texts of one line that are not on its baseline
		const lines = elements.map(e => [baseline(e), e.textContent.trim()])
		const near = (y, other) => Math.abs(y - other) > 0.5 && Math.abs(y - other) < 12
		return lines.filter(([y]) => lines.some(([other]) => near(y, other))).map(([y, text]) => y + ' ' + text)
	}
})()`

// TestDashboardLayout checks pages as drawn by a browser: one baseline for all texts of a line, one style of small
// links, two columns of about the same height, and a site on two screens.
func TestDashboardLayout(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.busySite()
	b := w.driveOwner(t)
	measure := func(path string, wide int) {
		b.look(wide, "light")
		b.open(dash + path)
		b.ask(measuring, nil)
	}
	const site = "/dash/demo/hhui.top"

	t.Run("texts of a line share a baseline, and small links a style", func(t *testing.T) {
		for _, path := range []string{site, site + "?range=7d", site + "?where=source:s01.example", site + "?page=/p3", site + "?columns=more",
			site + "?all", site + "?funnel", site + "?goal=event:signup", site + "?who", "/dash/demo", "/dash/demo/(events)", "/settings",
			"/settings/demo", "/embed?app=demo", "/proof"} {
			for _, wide := range []int{1280, 320, 768}[:dbtest.LongOrShort(3, 2)] {
				measure(path, wide)
				var uneven []string
				b.ask(`[seen('.top :is(a, .leave)'), ...seen('.title').map(e => seen('h2, a, button', e)),
					...seen('.feet').map(e => seen(':scope > * > :is(a, summary), :scope > .quiet', e))].flatMap(uneven)`, &uneven)
				assert.Empty(t, uneven, "%s at %d", path, wide)
				var heads []float64
				b.ask(`[...new Set(seen('.title > h2, .columns > section > h2').map(e => Math.round(10 * (baseline(e) -
					e.closest('section').getBoundingClientRect().top - parseFloat(getComputedStyle(e.closest('section')).paddingTop))) / 10))]`, &heads)
				assert.LessOrEqual(t, len(heads), 1, "%s at %d: headings begin at different heights: %v", path, wide, heads)
				var links []string
				b.ask(`[...new Set(seen('main .source a, main .quiet a, main .lead a, .bottom p a').map(e => {
					const {fontSize, color, textDecorationLine, textDecorationColor, fontWeight} = getComputedStyle(e)
					return [fontSize, color, textDecorationLine, textDecorationColor, fontWeight].join(' ')
				}))]`, &links)
				assert.Len(t, links, 1, "%s at %d", path, wide)
			}
		}
	})

	t.Run("a site is two screens", func(t *testing.T) {
		for _, query := range []string{
			"", "?range=7d", "?range=today", "?range=all", "?compare=year", "?where=source:s01.example", "?where=event:signup",
		} {
			measure(site+query, 1280)
			var high int
			b.ask(`document.documentElement.scrollHeight`, &high)
			assert.LessOrEqual(t, high, 1800, query)
		}
	})

	t.Run("two columns end at about the same height", func(t *testing.T) {
		for _, path := range []string{
			site, site + "?where=source:s01.example", site + "?where=page:/p3", site + "?page=/p3", site + "?columns=more",
		} {
			for _, wide := range []int{1280, 768, 720} {
				measure(path, wide)
				var ends []float64 // of the left and the right column
				b.ask(`['.left', '.right'].map(side => Math.max(...seen('.columns > ' + side).map(e => e.getBoundingClientRect().bottom)))`, &ends)
				assert.InDelta(t, ends[0], ends[1], 260, "%s at %d", path, wide)
				var beside, over bool
				b.ask(`seen('.left').every(l => seen('.right').every(r => l.getBoundingClientRect().right <= r.getBoundingClientRect().left + 0.5))`,
					&beside)
				assert.True(t, beside, "%s at %d", path, wide)
				b.ask(`seen('.columns > section').some((a, i, all) => all.slice(i + 1).some(b => {
					const [one, other] = [a.getBoundingClientRect(), b.getBoundingClientRect()]
					return one.left < other.right - 1 && other.left < one.right - 1 && one.top < other.bottom - 1 && other.top < one.bottom - 1
				}))`, &over)
				assert.False(t, over, "%s at %d: panels overlap", path, wide)
			}
		}
	})

	t.Run("the way to a page is one line", func(t *testing.T) {
		for _, path := range []string{site, site + "?page=/p3", site + "?page=/" + strings.Repeat("long", 40)} {
			measure(path, 320)
			var lines []float64
			b.ask(`[...new Set(seen('.top a').map(e => Math.round(baseline(e))))]`, &lines)
			assert.Len(t, lines, 1, path)
		}
	})

	t.Run("folded parts open without script", func(t *testing.T) {
		b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		measured := func(selector string) (high float64) {
			b.ask(`document.querySelector('`+selector+`').getBoundingClientRect().height`, &high)
			return high
		}
		b.look(1280, "light")
		b.open(dash + site)
		folded := measured("section[aria-labelledby=returns]")
		b.ask(`document.querySelector('#returns').click()`, nil)
		assert.Greater(t, measured("section[aria-labelledby=returns]"), folded+100)
		b.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
	})
}

// If there are ten rows, ten are shown. If there are more, a link shows their total number.
func TestPanelsShowTenRows(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	rows := regexp.MustCompile(`<th scope="row">`)
	panel := func(path string) string {
		_, panel, _ := strings.Cut(e.shown(path), `<h2 id="from"`)
		panel, _, _ = strings.Cut(panel, "</section>")
		return panel
	}
	for visitor := range 10 + 12 {
		site, from := "ten.example", ""
		if visitor >= 10 {
			site = "more.example"
		}
		if visitor%10 > 0 {
			from = fmt.Sprintf("https://s%02d.example/", visitor)
		}
		e.brings(visitor, "http://"+site+"/", from)
	}
	e.Close() // also adds up the tags
	for _, c := range []struct {
		site, all         string
		shown, shownOfAll int
	}{{"ten.example", "", 10, 10}, {"more.example", ">All 11</a>", 10, 11}} {
		shown := panel("/dash/demo/" + c.site + "?range=today")
		assert.Len(t, rows.FindAllString(shown, -1), c.shown, c.site)
		assert.Equal(t, c.all != "", strings.Contains(shown, ">All "), c.site)
		assert.Contains(t, shown, c.all, c.site)
		assert.Len(t, rows.FindAllString(panel("/dash/demo/"+c.site+"?range=today&all=from"), -1), c.shownOfAll, c.site)
	}
}
