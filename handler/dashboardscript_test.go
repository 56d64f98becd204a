package handler

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
)

// scripted is a page in a Chromium whose clock the test controls.
type scripted struct {
	*devtools
	asked, unchanged atomic.Int64 // the number of requests for the page, and of responses that it was unchanged
}

func (w *internet) driveScript(t *testing.T) *scripted {
	t.Helper()
	s, proxy := &scripted{}, w.proxy()
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path != "/dash/dash.js" && r.Request.URL.Path != "/dash/style.css" && r.Request.URL.Path != "/dash/icon.svg" {
			s.asked.Add(1)
			if r.StatusCode == http.StatusNotModified {
				s.unchanged.Add(1)
			}
		}
		return nil
	}
	w.rest = proxy
	s.devtools = w.drive(t)
	s.do("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil) // no other page has the keyboard
	s.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `{
		const soon = setTimeout
		setTimeout = (what, ...more) => what.name === 'refresh' ? (window.later = what, 0) : soon(what, ...more)
	}`}, nil)
	s.look(1440, "light")
	return s
}

// first returns the text of the first element of a selector.
func (s *scripted) first(selector string) (text string) {
	s.t.Helper()
	s.ask(`document.querySelector('`+selector+`')?.textContent ?? ''`, &text)
	return text
}

// texts returns the texts of all elements of a selector.
func (s *scripted) texts(selector string) (texts []string) {
	s.t.Helper()
	s.ask(`[...document.querySelectorAll('`+selector+`')].map(e => e.textContent.trim())`, &texts)
	return texts
}

// TestDashboardScript tests the script in a browser, with one Chromium and one page.
func TestDashboardScript(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	for i, path := range []string{"/often", "/often", "/often", "/sometimes", "/sometimes", "/once"} {
		w.counting([]int{0, 25, 26, 27, 28, 29}[i], "192.0.2."+string(rune('1'+i)), "http://hhui.top"+path)
	}
	s, script := w.driveScript(t), axe(t)
	site := dash + "/dash/demo/hhui.top"

	t.Run("keys", func(t *testing.T) {
		s.open(site)
		for _, k := range []struct {
			key   string
			leads string
		}{{"d", "range=today"}, {"w", "range=7d"}, {"m", "range=month"}, {"t", "/hhui.top"}, {"x", "compare=none"}, {"X", "/hhui.top"},
			{"ArrowLeft", "from="}, {"ArrowRight", "/hhui.top"}} {
			s.leads(func() { s.press(k.key, 0) })
			assert.Contains(t, s.where(), k.leads, k.key)
		}
		s.press("?", 0)
		assert.Contains(t, s.texts("dialog dd"), "Today")
		assertAccessible(t, s.devtools, script)
		s.ask(`document.querySelector('dialog[open] input').click()`, nil)
		s.ask(`document.querySelector('dialog[open] button').click()`, nil)
		s.press("d", 0)
		assert.Equal(t, site, s.where(), "keys are off")
		s.ask(`[...document.querySelectorAll('footer button')].at(-1).click()`, nil)
		s.ask(`document.querySelector('dialog[open] input').click()`, nil)
		s.ask(`document.querySelector('dialog[open] button').click()`, nil)
		s.press("/", 0)
		var focus string
		s.ask(`document.activeElement.id`, &focus)
		assert.Equal(t, "find", focus)
		s.press("d", 0)
		assert.Equal(t, site, s.where(), "while the reader types")
		s.do("Input.insertText", map[string]any{"text": "/ONC"}, nil)
		s.leads(func() { s.press("Enter", 13) })
		assert.Contains(t, s.where(), "find=%2FONC")
		assert.Equal(t, []string{"/once"}, s.texts(".pages tbody a"))
		assert.Equal(t, "Pages with “/ONC”", s.first("#pages"))
	})

	t.Run("a cursor on the chart", func(t *testing.T) {
		s.open(site + "?range=30d")
		titles := s.texts(".plot title")
		require.Len(t, titles, 30)
		s.ask(`document.querySelector('.plot-room').focus()`, nil)
		for _, move := range []struct {
			key string
			to  int
		}{{"ArrowLeft", 29}, {"ArrowRight", 29}, {"ArrowLeft", 28}, {"Home", 0}, {"ArrowLeft", 0}, {"ArrowRight", 1}, {"End", 29}} {
			s.press(move.key, 0)
			assert.Equal(t, titles[move.to], s.first(".cursor[aria-live=polite]"), move.key)
		}
		assert.Contains(t, s.where(), "range=30d", "arrows that move the cursor lead nowhere")
		s.press("Escape", 0)
		assert.Empty(t, s.first(".cursor"))
	})

	t.Run("tables", func(t *testing.T) {
		s.open(site)
		assert.Empty(t, s.texts(".pages button"), "the order is by all pages, not only the shown ones")
		s.ask(`document.querySelector('.chart ~ .feet details').open = true`, nil)
		days := func() []string { return s.texts(".sortable tbody th")[:2] }
		press := func(column string) {
			s.ask(`[...document.querySelectorAll('.sortable th button')].find(b => b.textContent === '`+column+`').click()`, nil)
		}
		latest := s.texts(".sortable tbody th")
		slices.Reverse(latest)
		press("Days")
		press("Days")
		assert.Equal(t, latest[:2], days())
		press("Visitors")
		assert.Equal(t, []string{"1", "1"}, s.texts(".sortable tbody td:nth-child(2)")[:2])
		press("Visitors")
		assert.Equal(t, []string{"0", "0"}, s.texts(".sortable tbody td:nth-child(2)")[:2])
		var way string
		s.ask(`[...document.querySelectorAll('.sortable th[aria-sort]')].map(e => e.textContent + ' ' + e.ariaSort).join()`, &way)
		assert.Equal(t, "Visitors ascending", way)
		assertAccessible(t, s.devtools, script)
	})

	t.Run("numbers stay new", func(t *testing.T) {
		s.ask(`document.querySelector('.plot-room').focus()`, nil)
		s.press("End", 0)
		cursor := s.first(".cursor")
		s.ask(`later()`, nil) // without changes
		s.ask(`later()`, nil)
		assert.Positive(t, s.unchanged.Load())
		s.ask(`window.kept = document.querySelector('.big'), window.link = document.querySelectorAll('.pages tbody a')[1], 0`, nil)
		assert.Equal(t, "6", s.first(".big"))
		for i := range 4 {
			w.counting(29, "198.51.100."+string(rune('1'+i)), "http://hhui.top/once")
		}
		s.ask(`later()`, nil)
		assert.Equal(t, "10", s.first(".big"))
		assert.Equal(t, []string{"/once", "/often", "/sometimes"}, s.texts(".pages tbody a"))
		assert.Equal(t, "0", s.texts(".sortable tbody td:nth-child(2)")[0], "as the reader sorted them")
		var same []bool
		s.ask(`[kept === document.querySelector('.big'), link === document.querySelectorAll('.pages tbody a')[1], `+
			`document.activeElement.matches('.plot-room'), document.querySelector('.chart ~ .feet details').open]`, &same)
		assert.Equal(t, []bool{true, true, true, true}, same, "nothing flickers, nothing folds, the focus stays")
		assert.NotEqual(t, cursor, s.first(".cursor"), "the bar of today has grown")
		assert.Len(t, s.texts(".bar.at"), 1)

		before := s.asked.Load()
		s.ask(`Object.defineProperty(document, 'hidden', {get: () => true, configurable: true}), 0`, nil)
		s.ask(`later()`, nil)
		assert.Equal(t, before, s.asked.Load(), "nobody looks")
		s.ask(`delete document.hidden, document.dispatchEvent(new Event('visibilitychange')), later()`, nil)
		assert.Greater(t, s.asked.Load(), before)
		s.open(site + "?from=2019-06-01&to=2019-06-02")
		var live bool
		s.ask(`document.querySelector('main[data-live]') !== null`, &live)
		assert.False(t, live, "days that are over")
	})
	t.Run("texts are copied by a button", func(t *testing.T) {
		s.open(dash + "/embed?app=demo")
		texts := s.texts("pre[data-copy]")
		require.Len(t, texts, 5)
		for i, text := range texts {
			var copied, says string
			s.do("Runtime.evaluate", map[string]any{"userGesture": true, "expression": fmt.Sprintf(`
				addEventListener('copy', () => { copied = String(getSelection()).trim() }, {once: true})
				document.querySelectorAll('button.copy')[%d].click()`, i)}, nil)
			s.ask(`copied`, &copied)
			assert.Equal(t, text, copied)
			s.ask(fmt.Sprintf(`document.querySelectorAll('button.copy')[%d].textContent`, i), &says)
			assert.Equal(t, "Copied", says)
		}
		assertAccessible(t, s.devtools, script)
	})
	t.Run("print", func(t *testing.T) {
		s.open(site)
		s.do("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
		var shown []string
		s.ask(`[...document.querySelectorAll('a, button, input, summary, h1, h2, .big, .plot, td')].filter(e => e.checkVisibility() && `+
			`!e.matches('.skip')).map(e => e.closest('.pages, h1, h2, .big, .plot, .bars') ? 'number' : e.outerHTML)`, &shown)
		assert.Contains(t, shown, "number")
		assert.Subset(t, []string{"number"}, shown, "nothing to press")
		var pdf struct{ Data []byte }
		s.do("Page.printToPDF", map[string]any{"printBackground": true}, &pdf)
		assert.Equal(t, "%PDF-", string(pdf.Data[:5]))
		s.do("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)
	})
	assert.Empty(t, s.console, "Chromium reports an error or a violated rule")
}

func TestDashboardScriptShowsTheFirstVisit(t *testing.T) {
	t.Parallel()
	w := newInternet(newEdge(t))
	w.administer(func(ctx context.Context, a *admin.Admin) error { return a.DeleteApp(ctx, "shop") })
	s := w.driveScript(t)
	s.open(dash + "/")
	assert.Equal(t, "Footfall is running.", s.first("h1"))
	w.counting(0, "192.0.2.1", "http://hhui.top/home")
	s.ask(`later()`, nil)
	assert.Equal(t, "hhui.top", s.first("h1"))
	assert.Empty(t, s.console)
}
