package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter/app"
	"footfall/desk"
)

// manage sends a call with a key ("": none) and JSON ("": none).
func (e *edge) manage(method, path, key, body string) answer {
	e.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, e.public+path, strings.NewReader(body))
	require.NoError(e.t, err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(e.t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(e.t, err)
	return answer{response.StatusCode, response.Header, string(read)}
}

func (e *edge) newKey(of string, scopes ...app.Scope) string {
	e.t.Helper()
	key, err := e.Admin.AddKey(e.t.Context(), of, scopes)
	require.NoError(e.t, err)
	return key
}

// TestProgramsChangeApps makes each possible change once, over REST.
func TestProgramsChangeApps(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	all := e.newKey("", app.ScopeAdmin)
	document := readDocument(t)
	told := map[string]any{} // response of the last call
	call := func(status int, method, path, body string, values ...string) {
		t.Helper()
		a := e.manage(method, path, all, body)
		require.Equal(t, status, a.status, a.body)
		told = map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(a.body), &told))
		for _, value := range values {
			assert.Contains(t, a.body, value)
		}
	}
	call(400, "POST", "/api/apps", `{"name":"blog","sites":["blog.example"]}`, `"error":"tz: it is missing`)
	call(400, "POST", "/api/apps", `{"name":"blog","tz":"Mars","max_requests":-1,"colour":"red"}`, `\"colour\" is not a setting`)
	call(400, "POST", "/api/apps", `{"name":"blog","tz":"Mars","max_requests":-1}`, `tz: \"Mars\" is not`,
		`max_requests: \"-1\" is not a limit`)
	call(400, "POST", "/api/apps", `{"name":"blog","tz":"UTC","sites":["blog.example"]} {"name":"shop"}`,
		`body: something follows the JSON object`)
	call(400, "POST", "/api/apps/demo/links", `{"site":"http://a b/"}`, `"error":"site: `)
	call(400, "POST", "/api/apps", `{"name":"No way","tz":"UTC","sites":["blog.example"]}`, `is not a name for an app`)
	call(201, "POST", "/api/apps", `{"name":"blog","tz":"Europe/Berlin","sites":["Blog.example"],"retain_days":60}`, `"visitor":"hashed"`)
	assert.Empty(t, document.faults("$", document.at(document.operations()["POST /api/apps"], "responses", "201", "content",
		"application/json", "schema"), any(told)))
	call(400, "POST", "/api/apps", `{"name":"blog","tz":"UTC","sites":["blog.example"]}`, `there is an app blog already`)
	call(200, "GET", "/api/apps", "", `"name":"blog"`, `"name":"shop"`)
	call(200, "PATCH", "/api/apps/blog", `{"public_counts":"read","respect_dnt":true,"max_requests":9,"goals":["event:signup"]}`)
	call(200, "GET", "/api/apps/blog", "", `"public_counts":"read"`, `"respect_dnt":true`, `"max_requests":9`, `"goals":["event:signup"]`,
		`"retain_days":60`, `"sites":["blog.example"]`)
	call(400, "PATCH", "/api/apps/blog", `{"public_counts":"all"}`, `public_counts: \"all\" is not possible`)
	call(400, "PATCH", "/api/apps/blog", `{"retain_days":1,"retain_days":2}`, `each given once`)
	call(404, "PATCH", "/api/apps/nobody", `{"retain_days":1}`, `there is no app`)
	call(413, "PATCH", "/api/apps/blog", strings.Repeat(" ", mostGiven+1), `body: it is larger than 1048576 bytes`)

	call(201, "POST", "/api/apps/blog/hosts", `{"site":"two.example"}`, `["blog.example","two.example"]`)
	call(200, "DELETE", "/api/apps/blog/hosts/blog.example", "")
	call(404, "DELETE", "/api/apps/blog/hosts/blog.example", "", `does not list blog.example`)
	call(201, "POST", "/api/apps/blog/keys", `{"scope":["read","count"]}`, `"secret":"footfall_`)
	assert.Equal(t, 200, e.manage("GET", "/api/apps/blog/days?site=two.example", told["secret"].(string), "").status)
	name := told["key"].(string)
	call(200, "GET", "/api/apps/blog/keys", "", name, `"scope":["read","count"]`)
	call(200, "DELETE", "/api/apps/blog/keys/"+name, "")
	call(201, "POST", "/api/apps/blog/links", `{"until":"2030-01-01"}`, `"until":"2030-01-01"`, `"url":"`+e.public+`/share/`)
	assert.Equal(t, 200, e.manage("GET", strings.TrimPrefix(told["url"].(string), e.public), "", "").status)
	call(200, "DELETE", "/api/apps/blog/links/"+told["link"].(string), "")
	call(201, "POST", "/api/apps/blog/notes", `{"day":"2019-06-29","text":"A new version"}`, `"number":1`)
	call(200, "GET", "/api/apps/blog/notes", "", `"text":"A new version"`, `"site":null`)
	call(404, "DELETE", "/api/apps/blog/notes/x", "", `is not a number`)
	call(200, "DELETE", "/api/apps/blog/notes/1", "")
	call(400, "POST", "/api/apps/blog/webhooks", `{"url":"http://127.0.0.1/","site":"two.example"}`, `is not a public address`)
	call(400, "POST", "/api/apps/blog/webhooks", `{"url":"http://127.0.0.1/","site":"two.example","private":"yes"}`, `private: \"yes\" is not`)
	call(201, "POST", "/api/apps/blog/webhooks", `{"url":"http://127.0.0.1/","site":"two.example","private":true}`, `"secret":"whsec_`)
	call(200, "GET", "/api/apps/blog/webhooks", "", `"target":"two.example"`, `"answers":[]`)
	call(200, "DELETE", "/api/apps/blog/webhooks/1", "")
	call(400, "POST", "/api/apps/blog/offsets", `{"uri":"two.example/a","hot":1,"uv":2}`, `hot: 1 is less than uv`)
	call(201, "POST", "/api/apps/blog/offsets", `{"uri":"two.example/a b","hot":3,"uv":2}`, `"added":1`)
	call(200, "GET", "/api/apps/blog/offsets", "", `"uri":"two.example/a%20b"`)
	call(200, "DELETE", "/api/apps/blog/offsets/"+url.PathEscape("two.example/a%20b"), "")

	// Requests that cannot be undone need no confirmation, and are noted.
	e.counting(0, "192.0.2.1", "http://hhui.top/home")
	e.counting(0, "192.0.2.2", "http://hhui.top/home")
	call(400, "POST", "/api/apps/demo/visitors/erase", `{"visitor":"nobody at all"}`, `"error":`)
	call(400, "POST", "/api/apps/demo/visitors/erase", `{"visitor":"192.0.2.1","sure":true}`, `visitor: send only this field`)
	call(400, "POST", "/api/apps/demo/visitors/erase", `{"visitor":["192.0.2.1","192.0.2.2"]}`, `visitor: send only this field`)
	call(200, "POST", "/api/apps/demo/visitors/erase", `{"visitor":"192.0.2.1"}`)
	assert.Equal(t, []string{"192.0.2.2"}, e.texts(`SELECT DISTINCT host(ip) FROM footfall.visitors WHERE host(ip) LIKE '192.0.2.%'`))
	call(404, "POST", "/api/apps/demo/pages/delete", `{"uri":"hhui.top/never"}`, `has no page`)
	call(200, "POST", "/api/apps/demo/pages/delete", `{"uri":"hhui.top/home"}`)
	assert.Equal(t, []string{"visitor | erased", "page | deleted"}, e.texts(`SELECT what || ' | ' || is_now FROM changes
		WHERE app = 'demo' AND who = 'key `+app.KeyName(all)+`' ORDER BY id`))

	call(400, "POST", "/api/keys", `{"scope":["read"]}`, `scope: a key for all apps can only have one scope`)
	call(201, "POST", "/api/keys", `{"scope":["admin"]}`, `"secret":"footfall_`)
	other, of := told["secret"].(string), told["key"].(string)
	assert.Equal(t, 200, e.manage("GET", "/api/apps", other, "").status)
	call(200, "DELETE", "/api/keys/"+of, "")
	assert.Equal(t, 403, e.manage("GET", "/api/apps", other, "").status)
	// Accounts.
	e.SignIn(t, desk.Owner, account.Rights{})
	call(400, "POST", "/api/accounts", `{"name":"Max","look":["nobody nowhere"]}`, `look: \"nobody nowhere\" is not the name of an app`)
	call(400, "POST", "/api/accounts", `{"name":"Max","colour":"red"}`, `colour: an account has no such field`)
	call(400, "POST", "/api/accounts", `{"name":"Max","owner":"yes"}`, `owner: \"yes\" is not possible`)
	call(201, "POST", "/api/accounts", `{"name":"Max","look":["blog"],"change":["shop"]}`, `"url":"`+e.public+`/start/`)
	max := "/api/accounts/" + fmt.Sprint(told["id"])
	call(400, "POST", "/api/accounts", `{"name":"max"}`)
	call(200, "GET", "/api/accounts", "", `"name":"Olga"`, `"change":["shop"]`, `"look":["blog"]`)
	call(200, "PATCH", max, `{"look":["demo"]}`)
	for _, wrong := range []string{`{"owner":1}`, `{"owner":[]}`, `{"owner":"TRUE"}`, `{"name":"Ann"}`} {
		call(400, "PATCH", max, wrong)
	}
	call(200, "GET", "/api/accounts", "", `"change":["shop"]`, `"look":["demo"]`)
	call(201, "POST", max+"/link", "", `/start/`)
	call(200, "DELETE", max, "")
	call(404, "PATCH", max, `{"owner":true}`)
	call(400, "PATCH", "/api/accounts/1", `{"owner":false}`, `it is the only owner`)
	for _, path := range []string{"/api/keys/a%00b", "/api/apps/%00", "/api/apps/blog/keys/%ff", "/api/apps/blog/links/%00"} {
		call(400, "DELETE", path, "", `this is not valid text`)
	}
	call(200, "DELETE", "/api/apps/blog", "")
	call(404, "GET", "/api/apps/blog", "")
	for _, wrong := range []string{`[]`, `{`, `{"a":null}`, `{"a":{}}`, `{"text":["a",1.5,[]]}`, `{"\u0000":1}`,
		`{"text":"a\u202eb","day":"today"}`} {
		assert.Equal(t, 400, e.manage("POST", "/api/apps/shop/notes", all, wrong).status, wrong)
	}
	changes, err := e.Admin.Changes(t.Context(), "blog", 100)
	require.NoError(t, err)
	for _, c := range changes {
		assert.Equal(t, "key "+app.KeyName(all), c.Who)
	}
	assert.Greater(t, len(changes), 15)
}

// The use of a key is noted, once a minute, and guessing is slowed down.
func TestUsesOfKeys(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	all := e.newKey("", app.ScopeAdmin)
	for i := range 11 {
		a := e.manage("GET", "/api/apps", "footfall_wrong", "")
		assert.Equal(t, map[bool]int{true: 403, false: 429}[i < 10], a.status, "try %d", i)
	}
	used := `SELECT used_at::text FROM admin_keys WHERE name = '` + app.KeyName(all) + `'`
	require.Equal(t, 200, e.manage("GET", "/api/apps", all, "").status)
	was := e.texts(used)
	assert.Equal(t, 200, e.manage("GET", "/api/apps", all, "").status)
	assert.Equal(t, was, e.texts(used), "that a key is used is written once a minute")
	e.Exec(t, `UPDATE admin_keys SET used_at = now() - interval '61 s'`)
	assert.Equal(t, 200, e.manage("GET", "/api/apps", all, "").status)
	assert.NotEqual(t, was, e.texts(used))
}
