package handler

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/embed"
	"footfall/visit"
)

// numbersOf returns the response for a page of example.com, from hot and uv of the site and of the page.
func numbersOf(siteHot, siteUV, pageHot, pageUV string) string {
	return `{"site_pv":` + siteHot + `,"site_uv":` + siteUV + `,"page_pv":` + pageHot + `,"page_uv":` + pageUV + `}`
}

const busuanziPage = "http://example.com/post?from=mail"

// TestBusuanzi sends the requests of the clients, and expects the responses that they read.
func TestBusuanzi(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	require.EqualValues(t, 1, e.One(t, `SELECT count(*) FROM apps WHERE name = 'shop' AND public_counts = 'answers'`), "as clients need it")
	jsonp := func(path string, headers ...string) answer {
		return e.ask(http.MethodGet, path, append([]string{"Referer", busuanziPage}, headers...)...)
	}
	t.Run("the original's call", func(t *testing.T) {
		a := jsonp("/busuanzi?jsonpCallback=BusuanziCallback_777487655111", "Sec-Fetch-Dest", "script", "Sec-Fetch-Site", "cross-site")
		assert.Equal(t, `try{BusuanziCallback_777487655111(`+numbersOf("1", "1", "1", "1")+`);}catch(e){}`, a.body)
		for name, value := range map[string]string{
			"Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "cross-origin",
		} {
			assert.Equal(t, value, a.header.Get(name))
		}
		a = jsonp("/busuanzi?jsonpCallback=$_")
		assert.Equal(t, `try{$_(`+numbersOf("2", "1", "2", "1")+`);}catch(e){}`, a.body)
	})
	t.Run("soxft's calls", func(t *testing.T) {
		at := []string{"X-Bsz-Referer", busuanziPage, "Origin", "https://example.com", "Authorization", "Bearer eyJhbGciOi"}
		a := e.ask(http.MethodPost, "/busuanzi/api", at...)
		assert.Equal(t, `{"success":true,"message":"ok","data":`+numbersOf("3", "1", "3", "1")+`}`, a.body)
		assert.Equal(t, "https://example.com", a.header.Get("Access-Control-Allow-Origin"))
		assert.Contains(t, a.header.Values("Access-Control-Expose-Headers"), "Set-Bsz-Identity")
		assert.Empty(t, a.header.Get("Set-Bsz-Identity"), "nobody is followed")
		a = e.ask(http.MethodPut, "/busuanzi/api", at...)
		assert.Equal(t, http.StatusNoContent, a.status)
		assert.Empty(t, a.body)
		a = e.ask(http.MethodGet, "/busuanzi/api", at...)
		assert.Equal(t, `{"success":true,"message":"ok","data":`+numbersOf("4", "1", "4", "1")+`}`, a.body, "GET counts nothing")
		a = jsonp("/busuanzi/jsonp?callback=BszCallback_1_2")
		assert.Equal(t, `try{BszCallback_1_2(`+numbersOf("5", "1", "5", "1")+`);}catch(e){}`, a.body)
		a = e.ask(http.MethodOptions, "/busuanzi/api", "Origin", "https://example.com", "Access-Control-Request-Method", "POST")
		assert.Equal(t, "GET, POST, PUT", a.header.Get("Access-Control-Allow-Methods"))
		assert.Equal(t, "x-bsz-referer, Authorization", a.header.Get("Access-Control-Allow-Headers"))
		a = e.ask(http.MethodPost, "/busuanzi/api")
		assert.Equal(t, http.StatusBadRequest, a.status)
		assert.Equal(t, "uri: it is missing: the request does not name the page", a.error(t))
	})
	t.Run("Vercount's call", func(t *testing.T) {
		at := []string{"Content-Type", "application/json", "X-Browser-Token", "abc", "Origin", "https://example.com"}
		a := e.askWith(`{"url":"`+busuanziPage+`","token":"abc","version":"v2","isNewUv":true}`, http.MethodPost, "/api/v2/log", at...)
		assert.Equal(t, `{"status":"success","message":"ok","data":`+numbersOf("6", "1", "6", "1")+`}`, a.body)
		a = e.ask(http.MethodGet, "/api/v2/log?url="+url.QueryEscape(busuanziPage), at...)
		assert.Equal(t, `{"status":"success","message":"ok","data":`+numbersOf("6", "1", "6", "1")+`}`, a.body, "GET counts nothing")
		for _, body := range []string{"", "{}", `[1]`, `{"url":1}`, `{"url":"` + strings.Repeat("a", 20<<10) + `"}`} {
			a = e.askWith(body, http.MethodPost, "/api/v2/log", at...)
			assert.Equal(t, http.StatusBadRequest, a.status)
			assert.Equal(t, "uri: it is missing: the request does not name the page", a.error(t), "%.20s", body)
		}
		a = e.ask(http.MethodOptions, "/api/v2/log", "Origin", "https://example.com", "Access-Control-Request-Method", "POST")
		assert.Equal(t, "Content-Type, X-Browser-Token", a.header.Get("Access-Control-Allow-Headers"))
	})
	t.Run("our script's call", func(t *testing.T) {
		a := e.ask(http.MethodGet, "/busuanzi?url="+url.QueryEscape(busuanziPage), "Origin", "http://example.com")
		assert.Equal(t, numbersOf("7", "1", "7", "1"), a.body)
		assert.Equal(t, "application/json", a.header.Get("Content-Type"))
	})
	t.Run("numbers that came before", func(t *testing.T) {
		e.administer(func(ctx context.Context, a *admin.Admin) error {
			_, err := a.SetOffsets(ctx, "shop", []admin.Offset{{URI: "http://example.com/moved", Hot: 1000, PV: 200, UV: 100}}, false)
			return err
		})
		at := []string{"X-Bsz-Referer", "http://example.com/moved"}
		for _, call := range []answer{
			e.ask(http.MethodPost, "/busuanzi/api", at...), e.ask(http.MethodGet, "/busuanzi/api", at...),
			e.ask(http.MethodGet, "/api/v2/log?url=http://example.com/moved"),
		} {
			assert.Contains(t, call.body, `"data":`+numbersOf("8", "1", "1001", "101"))
		}
	})
	t.Run("visits that are not counted", func(t *testing.T) {
		bot := e.ask(http.MethodGet, "/busuanzi?url="+url.QueryEscape(busuanziPage), "User-Agent", "curl/8")
		assert.Equal(t, "bot", bot.header.Get(skippedHeader))
		assert.Equal(t, numbersOf("8", "1", "7", "1"), bot.body)
		assert.Equal(t, http.StatusOK, e.ask(http.MethodHead, "/busuanzi?jsonpCallback=a", "Referer", busuanziPage).status)
		assert.Equal(t, http.StatusMethodNotAllowed, e.ask(http.MethodPost, "/busuanzi").status)
		assert.Equal(t, numbersOf("9", "1", "1", "1"), e.ask(http.MethodGet, "/busuanzi?url=http://example.com/another").body)
	})
}

// ccNumbers returns the response to busuanzi.cc's call.
func ccNumbers(todayHot, todayPV, siteHot, siteUV, pageHot, pageUV int) string {
	return fmt.Sprintf(`{"busuanzi_today_pv":%d,"busuanzi_today_uv":%d,"busuanzi_site_pv":%d,"busuanzi_site_uv":%d,`+
		`"busuanzi_page_pv":%d,"busuanzi_page_uv":%d}`, todayHot, todayPV, siteHot, siteUV, pageHot, pageUV)
}

// TestBusuanziCC sends the calls of busuanzi.cc's clients.
func TestBusuanziCC(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	call := func(url string, headers ...string) answer {
		return e.askWith(`{"url":"`+url+`","referrer":"https://news.example/x"}`, http.MethodPost, "/api.php", headers...)
	}
	fromPage := []string{"Origin", "https://example.com"}
	a := call("https://example.com/hello", append(fromPage, "Content-Type", "text/plain;charset=UTF-8")...)
	assert.Equal(t, ccNumbers(1, 1, 1, 1, 1, 1), a.body)
	assert.Equal(t, "https://example.com", a.header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "application/json", a.header.Get("Content-Type"))
	asJSON := call("https://example.com/hello", append(fromPage, "Content-Type", "application/json")...)
	assert.Equal(t, ccNumbers(2, 1, 2, 1, 2, 1), asJSON.body)
	assert.Equal(t, ccNumbers(3, 1, 3, 1, 1, 1), call("https://example.com/more").body, "a caller that is not a page")

	// On the next day, offsets are not part of today's numbers.
	e.Clock.Set(noon.AddDate(0, 0, 1))
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		_, err := a.SetOffsets(ctx, "shop", []admin.Offset{{URI: "https://example.com/hello", Hot: 1000, PV: 200, UV: 100}}, false)
		return err
	})
	assert.Equal(t, ccNumbers(1, 1, 4, 1, 1003, 101), call("https://example.com/hello", fromPage...).body)
	bot := call("https://example.com/hello", append(fromPage, "User-Agent", "curl/8")...)
	assert.Equal(t, ccNumbers(1, 1, 4, 1, 1003, 101), bot.body)
	assert.Equal(t, "bot", bot.header.Get(skippedHeader))

	before := e.rows()
	for _, origin := range []string{"null", "https://evil.example", "https://example.com:81", "https://example.org", "https://example.com/",
		"https://example.com.evil.example", "<script>"} {
		a := call("https://example.com/hello", "Origin", origin)
		assert.Equal(t, http.StatusForbidden, a.status, origin)
		assert.JSONEq(t, `{"success":false,"message":"url: it is not a page of the site that sends the request","error":"url: it is not a page `+
			`of the site that sends the request"}`, a.body)
	}
	assert.Equal(t, http.StatusForbidden, call("https://example.com/hello", "Sec-Fetch-Site", "cross-site").status, "a page that hides")
	unlisted := call("https://nobody.example/", "Origin", "https://nobody.example")
	assert.Equal(t, http.StatusForbidden, unlisted.status)
	assert.Contains(t, unlisted.error(t), "uri: no app lists the site nobody.example")
	for _, body := range []string{"", "{}", "[1]", `{"url":1}`, `{"url":"/hello"}`, `{"url":"ftp://example.com/"}`, `{"url":"` +
		strings.Repeat("a", 20<<10) + `"}`} {
		assert.Equal(t, http.StatusBadRequest, e.askWith(body, http.MethodPost, "/api.php", fromPage...).status, "%.20s", body)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, e.ask(http.MethodGet, "/api.php?url=https://example.com/").status)
	a = e.ask(http.MethodOptions, "/api.php", "Origin", "https://example.com", "Access-Control-Request-Method", "POST")
	assert.Equal(t, []string{"POST", "Content-Type"}, []string{a.header.Get("Access-Control-Allow-Methods"),
		a.header.Get("Access-Control-Allow-Headers")})
	assert.Equal(t, before, e.rows())
	for _, version := range []string{"3.6.9", "latest", "%2e%2e"} {
		a := e.ask(http.MethodGet, "/busuanzi/"+version+"/busuanzi.min.js")
		assert.Equal(t, string(embed.Busuanzi.Plain), a.body, version)
	}

	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.SetApp(ctx, "shop", app.Settings{PublicCounts: ptr("off")})
	})
	before = e.rows()
	a = call("https://example.com/hello", fromPage...)
	assert.Equal(t, http.StatusForbidden, a.status)
	assert.Contains(t, a.body, `"success":false,"message":"app shop shows no numbers without a key`)
	assert.Equal(t, before, e.rows())
}

// TestBusuanziFindsTheApp checks that the app is found by the page's site, because these protocols name no app.
func TestBusuanziFindsTheApp(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	preferring := func(app string) *edge {
		options := e.options
		options.Busuanzi, options.Metrics = app, nil
		return &edge{t: t, public: listen(t, publicHandler(options), options.Log)}
	}
	says := func(e *edge, uri, said string) {
		t.Helper()
		assert.Contains(t, e.ask(http.MethodGet, "/busuanzi?url="+url.QueryEscape(uri)).body, said, uri)
	}
	says(e, "http://example.com/", `"page_pv":1`)
	// although demo counts every site
	says(e, "http://nobody.example/", "uri: no app lists the site nobody.example: the operator of an app can add the site to it")
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		require.NoError(t, a.AddApp(ctx, "second", app.Settings{Sites: []string{"*.wild.example", "a.wild.example", "example.com"},
			PublicCounts: ptr("answers")}))
		return a.AddApp(ctx, "closed", app.Settings{Sites: []string{"closed.example"}, Access: ptr("key")})
	})
	says(e, "http://example.com/", `"page_pv":2`)    // for the older app
	says(e, "http://a.wild.example/", `"page_pv":1`) // listed twice by one app
	says(e, "http://closed.example/", "key: app closed counts nothing without a key")
	says(e, "http://closed.example:81/", "no app lists")
	says(preferring("shop"), "http://example.com/", `"page_pv":3`)
	says(preferring("second"), "http://example.com/", `"page_pv":1`)
	says(preferring("shop"), "http://a.wild.example/", `"page_pv":2`) // the app that lists it
	says(preferring("nobody"), "http://a.wild.example/", `"page_pv":3`)
	says(preferring("demo"), "http://nobody.example/", `"page_pv":1`) // an open app without a list counts every site
	says(preferring("demo"), "http://a.wild.example/", `"page_pv":1`)
}

// If a visit is accepted to be counted later, the page gets the earlier numbers.
func TestBusuanziUnderOverload(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const call = "/busuanzi?url=http://example.com/"
	require.Equal(t, numbersOf("1", "1", "1", "1"), e.ask(http.MethodGet, call).body)
	o := desk.Options{Began: noon}
	o.MaxWait, o.Overflow = 50*time.Millisecond, true
	there := listen(t, publicHandler(Options{Cells: one(desk.On(t, e.URL, o))}), e.options.Log)
	release := e.hold(`SELECT FROM counters FOR UPDATE`)
	answers := make(chan answer, 10_000)
	var callers sync.WaitGroup
	var first answer
	require.Eventually(t, func() bool { // the first ones wait for the lock
		callers.Go(func() { answers <- e.do(http.MethodGet, there+call, "", "") })
		select {
		case first = <-answers:
			return true
		default:
			return false
		}
	}, dbtest.Patience, dbtest.Tick)
	release()
	callers.Wait()
	assert.Equal(t, numbersOf("1", "1", "1", "1"), first.body)
}

// A callback is a name of ASCII letters, digits, _ and $. Any other is refused.
func FuzzCallback(f *testing.F) {
	for _, seed := range []string{
		"BusuanziCallback_777487655111", "BszCallback_1_2", "$", "_", "", "1a", "a.b", "a[0]", "alert(1)//", "a\n", "\u2028", "é", "</script>",
		"eval`1`", strings.Repeat("a", 65), "a\x00",
	} {
		f.Add(seed)
	}
	b := &busuanzi{newService(Options{})}
	f.Fuzz(func(t *testing.T, callback string) {
		name := len(callback) > 0 && len(callback) <= 64 && strings.Trim(callback[:1], "0123456789") != ""
		for _, letter := range []byte(callback) {
			name = name && strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$", letter) >= 0
		}
		w := httptest.NewRecorder()
		err := b.jsonp(echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/busuanzi?callback="+url.QueryEscape(callback), http.NoBody),
			w), "callback")
		if name {
			require.ErrorContains(t, err, "referer: it is missing")
		} else {
			require.ErrorContains(t, err, "callback: it is not the name of a function")
		}
		require.Zero(t, w.Body.Len())
	})
}

// Whatever the Referer contains, the counted site is the origin of the request.
func FuzzReferer(f *testing.F) {
	for _, seed := range []string{
		"http://example.com/", "https://example.com", `http://example.com\@evil.example/`, "http://evil.example/?http://example.com/",
		"http://example.com@evil.example/",
		"//example.com/", "example.com", "http://EXAMPLE.com:80/%00", "http://example.com/\u2028'", "x://http://example.com/",
		"http:///example.com", " http://example.com?://a",
		"http://evil.example#@example.com/", "https://evil.example?://example.com/", "about:srcdoc", "null",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, referer string) {
		counted, err := visit.Normalize(referer, nil)
		asks, hidden := visit.Normalize(originOf(referer), nil)
		if err == nil && hidden == nil {
			require.Equal(t, counted.Site, asks.Site)
		}
	})
}
