package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/desk"
	"footfall/report/draw"
)

const camo = "github-camo (876de43e)"

// TestBadges shows badges to image proxies, to readers and to other sites' pages.
func TestBadges(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.sixSteps() // of the app demo, for hhui.top
	set := func(name, public string) {
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			return a.SetApp(ctx, name, app.Settings{PublicCounts: &public})
		})
	}
	const home = "?uri=http%3A%2F%2Fhhui.top%2Fhome"
	badge := func(path string, headers ...string) answer {
		t.Helper()
		a := newPerson(e).do(http.MethodGet, "/badge/"+path, nil, headers...)
		require.Equal(t, http.StatusOK, a.status, "whatever is wrong: proxies keep the status of an error")
		assert.Equal(t, "cross-origin", a.header.Get("Cross-Origin-Resource-Policy"))
		assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		return a
	}
	says := func(a answer, said string) {
		t.Helper()
		assert.Contains(t, a.body, "<title>"+said+"</title>")
		assert.Empty(t, a.header.Get(errorHeader))
	}

	set("demo", "answers")
	t.Run("nothing by answers", func(t *testing.T) {
		a := badge("demo.svg" + home)
		assert.Contains(t, a.body, "<title>visits: –</title>")
		assert.Equal(t, "app demo does not allow this for badges: its operator can change --public-counts (footfall app set)",
			a.header.Get(errorHeader))
		assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
	})
	set("demo", "read")
	t.Run("numbers", func(t *testing.T) {
		a := badge("demo.svg"+home, "Referer", "https://github.com/", "User-Agent", camo)
		says(a, "visits: 4")
		assert.Equal(t, "image/svg+xml", a.header.Get("Content-Type"))
		assert.Equal(t, "max-age=0, must-revalidate", a.header.Get("Cache-Control"))
		again := newPerson(e).do(http.MethodGet, "/badge/demo.svg"+home, nil, "If-None-Match", a.header.Get("ETag"))
		assert.Equal(t, http.StatusNotModified, again.status)
		for show, said := range map[string]string{"page.pv": "daily visitors: 3", "page.uv": "visitors: 2", "site.hot": "visits: 6",
			"site.pv": "daily visitors: 3", "site.uv": "visitors: 2"} {
			says(badge("demo.svg"+home+"&show="+show), said)
		}
		says(badge("demo.svg"+home+"&label=opened"), "opened: 4")
		says(badge("demo.svg"+home+"&label="), "4")
		says(badge("demo.svg?uri=http://hhui.top/never&v=2"), "visits: 0")
		for _, gone := range []string{"color=0b6e63&style=flat-square", "style=plain", "chart=7d", "chart=month", "style=&chart=91d",
			"color=" + url.QueryEscape(`red"/><script>`)} {
			assert.Equal(t, a.body, badge("demo.svg"+home+"&"+gone).body, "as usual, where a README names what there was")
		}
		j := badge("demo.json" + home + "&color=0b6e63&style=flat-square")
		assert.JSONEq(t, `{"schemaVersion":1,"label":"visits","message":"4","color":"#007ec6"}`, j.body)
	})
	t.Run("refused requests", func(t *testing.T) {
		for query, why := range map[string]string{
			"": "uri: it is missing", "?uri=ftp:x": "uri: it does not begin with http", home +
				"&show=page.rank": `show: "page.rank" is not possible: use page.hot`,
			home + "&label=" + strings.Repeat("l", 65): "label: ",
			home + "&label=a%0Ab":                      "label: ", home + "&label=%FF": "label: ", home + "&count=yes": "count: ",
			home + "&count=1": "app demo does not allow this for badges",
		} {
			a := badge("demo.svg" + query)
			assert.Contains(t, a.header.Get(errorHeader), why, query)
			assert.Contains(t, a.body, "–</title>", query)
			assert.Equal(t, "no-store", a.header.Get("Cache-Control"), query)
		}
		assert.Contains(t, badge("nobody.svg"+home).header.Get(errorHeader), "app: there is no app")
		assert.JSONEq(t, `{"schemaVersion":1,"label":"visits","message":"–","color":"#007ec6","isError":true}`, badge("nobody.json"+home).body)
		assert.Equal(t, http.StatusNotFound, newPerson(e).get("/badge/demo.png").status)
	})
	t.Run("counting", func(t *testing.T) { tryCountingBadges(t, e, set, badge, says) })
	t.Run("nobody counts where each visit needs a key", func(t *testing.T) {
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			err := a.SetApp(ctx, "shop", app.Settings{Access: ptr("key")})
			assert.ErrorContains(t, err, "public-counts: with access key, visits without a key are not counted")
			assert.ErrorContains(t, a.SetApp(ctx, "shop", app.Settings{PublicCounts: ptr("all")}), `public-counts: "all" is not possible`)
			return nil
		})
	})
}

func tryCountingBadges(t *testing.T, e *edge, set func(app, public string), badge func(string, ...string) answer,
	says func(answer, string)) {
	set("shop", "count")
	const at = "shop.svg?uri=http://example.com/readme"
	says(badge(at), "visits: 0")
	a := badge(at+"&count=1", "User-Agent", camo)
	says(a, "visits: 1")
	assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
	says(badge(at+"&count=1", "User-Agent", "Mozilla/5.0 (via ggpht.com GoogleImageProxy)"), "visits: 2")
	says(badge(at+"&count=1", "User-Agent", desk.Browser, "Referer", "https://forge.example/readme"), "visits: 3")
	says(badge(at+"&count=1&show=page.uv", "User-Agent", camo), "visitors: 1")
	says(badge(at+"&show=page.pv"), "daily visitors: 1")
	assert.Contains(t, (&internet{edge: e}).visitors(t), "fd00::ba:d9e")
	for _, skipped := range [][]string{{"User-Agent", "curl/8"}, {"User-Agent", camo, "Sec-Purpose", "prefetch"}} {
		a := badge(at+"&count=1", skipped...)
		says(a, "visits: 4")
		assert.NotEmpty(t, a.header.Get(skippedHeader))
	}
	newPerson(e).do(http.MethodHead, "/badge/"+at+"&count=1", nil, "User-Agent", camo)
	says(badge(at), "visits: 4")
	assert.Contains(t, badge("shop.svg?uri=http://other.example/&count=1", "User-Agent", camo).header.Get(errorHeader),
		"does not count the site")
}

// Chromium and librsvg draw the same badge, in its declared size.
func TestBadgesAreDrawn(t *testing.T) {
	t.Parallel()
	w := newInternet(&edge{t: t})
	b := w.drive(t)
	for _, label := range []string{"visits", "", "Besuche <&> 访问量", strings.Repeat("W", 40)} {
		svg := draw.Badge{Label: label, Message: "1,234,567"}.SVG()
		b.ask(`(async () => {
			const svg = `+jsString(svg)+`
			document.body.innerHTML = '<img>'
			document.images[0].src = 'data:image/svg+xml,' + encodeURIComponent(svg)
			await document.images[0].decode()
			document.body.append(document.importNode(new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement, true))
		})()`, nil)
		var wide struct{ X, Y int }
		b.ask(`({X: document.images[0].naturalWidth, Y: document.images[0].naturalHeight})`, &wide)
		size := image.Pt(wide.X, wide.Y)
		assert.Positive(t, size.X, "%s: it is an image", label)
		// The letters, as text of a page, have the widths in the table.
		var over int
		b.ask(`[...document.querySelectorAll('text')].filter(t => t.getBBox().x + t.getBBox().width > `+strconv.Itoa(size.X)+`).length`, &over)
		assert.Zero(t, over, label)
		if label == "visits" { // every font has its letters
			var stretched []float64
			b.ask(`[...document.querySelectorAll('text')].map(t => { const wide = t.textLength.baseVal.value; t.removeAttribute('textLength');`+
				` return wide / t.getComputedTextLength() })`, &stretched)
			for _, by := range stretched {
				assert.InDelta(t, 1, by, 0.1, "letters stand as the font has them")
			}
		}
		drawn := rsvg(t, svg)
		if drawn != nil {
			assert.Equal(t, size, drawn.Bounds().Size(), label)
			assert.Greater(t, colors(drawn), 10, "there are letters")
		}
	}
	assert.Empty(t, b.console)
}

func jsString(s string) string { body, _ := json.Marshal(s); return string(body) }

// rsvg draws an SVG with librsvg, and returns nil if librsvg is missing and optional.
func rsvg(t *testing.T, svg string) image.Image {
	t.Helper()
	program, err := exec.LookPath("rsvg-convert")
	if err != nil && testing.Short() {
		return nil
	}
	require.NoError(t, err, "scripts/install-deps librsvg")
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader(svg)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	require.NoError(t, err, errors.String())
	assert.Empty(t, errors.String())
	drawn, err := png.Decode(bytes.NewReader(out))
	require.NoError(t, err)
	return drawn
}

// colors returns the number of colours of a picture.
func colors(p image.Image) int {
	all := map[[4]uint32]bool{}
	for y := p.Bounds().Min.Y; y < p.Bounds().Max.Y; y++ {
		for x := p.Bounds().Min.X; x < p.Bounds().Max.X; x++ {
			r, g, b, a := p.At(x, y).RGBA()
			all[[4]uint32{r, g, b, a}] = true
		}
	}
	return len(all)
}
