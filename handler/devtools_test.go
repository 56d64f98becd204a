package handler

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// devtools drives one page of a Chromium as the developer tools do: scripts that it runs are not subject to the
// page's own rules.
type devtools struct {
	*chromium
	t       *testing.T
	browses string   // the browser context, which belongs to this test only
	page    string   // the session of the page
	session string   // the session for commands, usually the page's; "": the browser
	loads   int      // the number of loaded pages
	console []string // errors in the page that Chromium reports
	spoken  []string // the page's messages to the console, with their level
}

// message is sent to Chromium or received from it.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// browse gives a test a Chromium that finds every host at w, with no state from other tests.
func (w *internet) browse(t *testing.T) *devtools {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	d := &devtools{chromium: takeChromium(t), t: t}
	w.ended = d.ended
	var made struct{ BrowserContextID string }
	d.do("Target.createBrowserContext", map[string]any{"proxyServer": server.URL, "disposeOnDetach": true}, &made)
	d.browses = made.BrowserContextID
	t.Cleanup(func() {
		if !t.Failed() { // otherwise the Chromium is killed
			d.session = ""
			d.do("Target.disposeBrowserContext", map[string]any{"browserContextId": d.browses}, nil)
		}
	})
	return d
}

// newPage opens a page in a new tab in front of the others.
func (d *devtools) newPage(url string) (target string) {
	d.t.Helper()
	var made struct{ TargetID string }
	d.do("Target.createTarget", map[string]any{"url": url, "browserContextId": d.browses}, &made)
	return made.TargetID
}

// drive browses with one page.
func (w *internet) drive(t *testing.T) *devtools {
	t.Helper()
	d := w.browse(t)
	var attached struct{ SessionID string }
	d.do("Target.attachToTarget", map[string]any{"targetId": d.newPage("about:blank"), "flatten": true}, &attached)
	d.page, d.session = attached.SessionID, attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		d.do(domain+".enable", nil, nil)
	}
	return d
}

// do sends a command and returns after its response.
func (d *devtools) do(method string, params map[string]any, into any) {
	d.t.Helper()
	d.last++
	written, err := json.Marshal(params)
	require.NoError(d.t, err)
	sent, err := json.Marshal(message{ID: d.last, Session: d.session, Method: method, Params: written})
	require.NoError(d.t, err)
	_, err = d.out.Write(append(sent, 0))
	require.NoError(d.t, err)
	answer := d.hear(func(m message) bool { return m.ID == d.last })
	require.Empty(d.t, string(answer.Error), method)
	if into != nil {
		require.NoError(d.t, json.Unmarshal(answer.Result, into))
	}
}

// hear waits for a message, and keeps reports of errors on the way.
func (d *devtools) hear(is func(message) bool) message {
	d.t.Helper()
	for patience := time.After(dbtest.Patience); ; {
		select {
		case m, more := <-d.said:
			require.True(d.t, more, "Chromium has ended")
			if m.Session == d.page {
				d.note(m)
			}
			if is(m) {
				return m
			}
		case <-patience:
			require.Fail(d.t, "Chromium does not answer")
		}
	}
}

// note keeps the page's errors and console messages.
func (d *devtools) note(m message) {
	switch m.Method {
	case "Log.entryAdded", "Runtime.exceptionThrown":
		d.console = append(d.console, string(m.Params))
	case "Runtime.consoleAPICalled":
		d.spoken = append(d.spoken, spokenBy(m.Params))
	case "Page.loadEventFired":
		d.loads++
	}
}

// spokenBy returns a message that the page wrote to the console: "warning: …".
func spokenBy(params json.RawMessage) string {
	var said struct {
		Type string
		Args []struct{ Value any }
	}
	_ = json.Unmarshal(params, &said) // valid, because Chromium wrote it
	text := said.Type + ":"
	for _, a := range said.Args {
		text += fmt.Sprint(" ", a.Value)
	}
	return text
}

// open opens a page, and returns when it has loaded.
func (d *devtools) open(url string) {
	d.t.Helper()
	d.leads(func() { d.do("Page.navigate", map[string]any{"url": url}, nil) })
}

// leads calls do, which opens another page, and returns when that page has loaded.
func (d *devtools) leads(do func()) {
	d.t.Helper()
	before := d.loads
	do()
	if d.loads == before {
		d.hear(func(message) bool { return d.loads > before })
	}
}

// look sets the reader's window width and colour scheme.
func (d *devtools) look(wide int, scheme string) {
	d.t.Helper()
	d.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": wide, "height": 900, "deviceScaleFactor": 1, "mobile": wide < 500}, nil)
	d.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// await waits until a condition holds in the page.
func (d *devtools) await(condition string) {
	d.t.Helper()
	for patience := time.After(dbtest.Patience); ; {
		var holds bool
		if d.ask(condition, &holds); holds {
			return
		}
		select {
		case <-patience:
			require.Fail(d.t, "never true: "+condition)
		case <-time.After(dbtest.Tick):
		}
	}
}

// ask evaluates an expression in the page.
func (d *devtools) ask(expression string, into any) {
	d.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	d.do("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	require.Empty(d.t, string(answer.ExceptionDetails))
	if into != nil {
		require.NoError(d.t, json.Unmarshal(answer.Result.Value, into))
	}
}

// press presses a key, such as "Tab" or "Enter".
func (d *devtools) press(key string, code int) {
	d.t.Helper()
	text := map[string]string{"Enter": "\r"}[key]
	d.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text},
		nil)
	d.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
}

// point clicks on the element of a selector, like a mouse.
func (d *devtools) point(selector, button string, params map[string]any) {
	d.t.Helper()
	var at struct{ X, Y float64 }
	d.ask(`(({x, y, width, height}) => ({X: x + width / 2, Y: y + height / 2}))(document.querySelector('`+selector+
		`').getBoundingClientRect())`, &at)
	for _, does := range []string{"mousePressed", "mouseReleased"} {
		event := map[string]any{"type": does, "x": at.X, "y": at.Y, "button": button, "clickCount": 1}
		maps.Copy(event, params)
		d.do("Input.dispatchMouseEvent", event, nil)
	}
}
