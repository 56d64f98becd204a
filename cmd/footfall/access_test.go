package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
)

// ask sends a request with headers, written "Name: value".
func ask(t *testing.T, url string, headers ...string) (status int, body string, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("User-Agent", browser)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(read), response.Header
}

// TestAccess takes a new site from its app to the erasure of a visitor, with an operator's commands.
func TestAccess(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	well(t, "app", "add", "shop", "--visitor=address", "--site=shop.example", "--site=*.shop.example", "--ignore=192.0.2.99", database)
	s := serve(t, database, "--trust-proxy=127.0.0.0/8", "--trust-proxy=::1", "--sign-in-header=Remote-User")
	page := s.url + "/visit?app=shop&uri=https://shop.example/a"

	// Behind a proxy, visits count for the client that the proxy names. ip is accepted only from a caller with a key.
	status, body, _ := ask(t, page, "X-Forwarded-For: 203.0.113.1, 192.0.2.1")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, `{"site":{"pv":1,"uv":1,"rank":1,"hot":1},"page":{"pv":1,"uv":1,"rank":1,"hot":1}}`, body)
	_, body, header := ask(t, page, "X-Forwarded-For: 192.0.2.99")
	assert.Equal(t, "ignored", header.Get("Footfall-Skipped"))
	assert.Equal(t, `{"site":{"pv":1,"uv":1,"rank":0,"hot":1},"page":{"pv":1,"uv":1,"rank":0,"hot":1}}`, body)
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("# spam\nspam.example\nother.example\n"), 0o600))
	well(t, "app", "set", "shop", "--ignore-file="+hosts, database)
	assert.Contains(t, well(t, "app", "list", database), "ignore=192.0.2.99/32,ignore=from:… (2 hosts)")
	_, _, header = ask(t, page+"&referrer=https://www.spam.example/", "X-Forwarded-For: 192.0.2.98")
	assert.Equal(t, "ignored", header.Get("Footfall-Skipped"))
	status, body, _ = ask(t, page+"&ip=192.0.2.2")
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, body, "send such a key")

	made := footfall(t, "app", "key", "add", "shop", "--scope=assert", "--scope=read", database)
	require.Zero(t, made.code, made.stderr)
	key := strings.TrimSuffix(made.stdout, "\n")
	assert.Regexp(t, `^[A-Za-z0-9_-]+$`, key, "only the key")
	bearer := "Authorization: Bearer " + key
	status, body, _ = ask(t, page+"&ip=192.0.2.2", bearer)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, `{"site":{"pv":2,"uv":2,"rank":2,"hot":2},"page":{"pv":2,"uv":2,"rank":2,"hot":2}}`, body)
	counts := strings.Replace(page, "/visit", "/counts", 1)
	status, _, _ = ask(t, counts+"&ip=192.0.2.1", bearer)
	assert.Equal(t, http.StatusOK, status)

	shared := footfall(t, "app", "share", "add", "shop", "--site=shop.example", "--until=2030-01-31", "--public-url="+s.url, database)
	require.Zero(t, shared.code, shared.stderr)
	assert.Contains(t, shared.stderr, "up to 2030-01-31")
	link := strings.TrimSuffix(shared.stdout, "\n")
	status, body, _ = ask(t, link)
	assert.Equal(t, http.StatusOK, status, body)
	assert.Regexp(t, `(?m)^`+link[len(s.url+"/share/"):][:8]+`_…  shop.example  20\d\d-\d\d-\d\d \d\d:\d\d UTC  2030-01-31  -$`,
		well(t, "app", "share", "list", "shop", database))
	assert.Equal(t, "revoked the link to app shop\n", well(t, "app", "share", "revoke", "shop", link, database))
	status, _, _ = ask(t, link)
	assert.Equal(t, http.StatusNotFound, status)

	assert.Equal(t, "added a note for 2026-11-22, shop.example: A new version (number 1)\n",
		well(t, "app", "note", "add", "shop", "2026-11-22", "A new version", "--site=shop.example", database))
	assert.Regexp(t, `(?m)^1 +2026-11-22  shop.example  A new version$`, well(t, "app", "note", "list", "shop", database))
	assert.Equal(t, "removed the note for 2026-11-22, shop.example: A new version\n", well(t, "app", "note", "remove", "shop", "1", database))
	assert.NotContains(t, well(t, "app", "note", "list", "shop", database), "version")

	assert.Regexp(t, `^WHEN +WHO +APP +WHAT +WAS +IS\n20.{15}UTC  shell  shop  note  2026-11-22, shop.example: A new version  -\n$`,
		well(t, "changes", "shop", "--n=1", database))

	list := well(t, "app", "key", "list", "shop", database)
	assert.Regexp(t, `(?m)^`+key[:17]+`_…  assert,read  20\d\d-\d\d-\d\d \d\d:\d\d UTC  \S+.*-$`, list)
	assert.NotContains(t, list, key)
	assert.Equal(t, "revoked the key of app shop\n", well(t, "app", "key", "revoke", "shop", key[:17], database))
	status, _, header = ask(t, page+"&ip=192.0.2.2", bearer)
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Equal(t, "Bearer", header.Get("WWW-Authenticate"))

	// The stored data of a visitor, and their erasure.
	assert.Equal(t, "TARGET          STORED AS  RANK  FIRST DAY  LAST DAY\n", well(t, "visitor", "show", "shop", "192.0.2.2", database)[:53])
	assert.Equal(t, "erased from 2 pages and sites\n", well(t, "visitor", "erase", "shop", "192.0.2.2", "--yes", database))
	assert.Equal(t, "nothing is stored about this visitor\n", well(t, "visitor", "show", "shop", "192.0.2.2", database))
	_, body, _ = ask(t, page, "X-Forwarded-For: 192.0.2.2")
	assert.Equal(t, `{"site":{"pv":3,"uv":3,"rank":3,"hot":3},"page":{"pv":3,"uv":3,"rank":3,"hot":3}}`, body,
		"a visitor who comes again is new")

	assert.Equal(t, "deleted shop.example/a; its numbers (hot 3, pv 3, uv 3) are now part of shop.example/(deleted)\n",
		well(t, "page", "delete", "shop", "shop.example/a", "--yes", database))
	_, body, _ = ask(t, counts)
	assert.Equal(t, `{"site":{"pv":3,"uv":3,"rank":0,"hot":3},"page":{"pv":0,"uv":0,"rank":0,"hot":0}}`, body)
	assert.Equal(t, "3\n", well(t, "psql", database, "--", "-Atc",
		"SELECT uv FROM pages JOIN counters ON page_id = id WHERE uri = 'shop.example/(deleted)'"))
	gone := footfall(t, "page", "delete", "shop", "https://shop.example/a", "--yes", database)
	assert.Equal(t, 1, gone.code)
	assert.Contains(t, gone.stderr, "has no page shop.example/a")

	status, _, _ = ask(t, counts)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "deleted app shop\n", well(t, "app", "delete", "shop", "--yes", database))
	status, _, _ = ask(t, counts)
	assert.Equal(t, http.StatusNotFound, status)
	assert.NotContains(t, well(t, "app", "list", database), "shop")

	assert.Zero(t, s.stop())
	assert.Contains(t, s.said(), "--sign-in-header: any machine in a network of --trust-proxy")
	for _, secret := range []string{"192.0.2.", "203.0.113.", key[17:], link[len(s.url+"/share/"):]} {
		assert.NotContains(t, s.said(), secret)
	}
}

// The secret of the embedded database is created once, readable by its owner only, outside the tables. The app demo is created
// together with the cluster, and never again.
func TestSecret(t *testing.T) {
	t.Parallel()
	data := usedData(t)
	well(t, "app", "delete", "demo", "--yes", "--data", data)
	well(t, "app", "add", "people", "--access=open", "--visitor=id", "--data", data)
	path := filepath.Join(data, secretFile)
	made, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, strings.TrimSpace(string(made)), 64)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	s := serve(t, "--data", data)
	assert.NotContains(t, well(t, "app", "list", "--data", data), "demo")
	const visit = "/visit?app=people&uri=http://a.example/&visitor=anna"
	status, body := get(s.url + visit)
	assert.Equal(t, http.StatusOK, status, body)
	assert.Zero(t, s.stop())
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, made, again)

	// With another secret the service refuses to count, because it would not recognize visitors. With the same secret from
	// another file it continues.
	other := writeFile(t, strings.Repeat("b", 64))
	s = serve(t, "--data", data, "--secret-file", other)
	status, body = get(s.url + visit)
	assert.Equal(t, http.StatusServiceUnavailable, status, body)
	assert.Contains(t, s.said(), "--secret-file")
	assert.Zero(t, s.stop())
	s = serve(t, "--data", data, "--secret-file", writeFile(t, string(made)+"\n"))
	_, body = get(s.url + visit)
	assert.Equal(t, `{"site":{"pv":1,"uv":1,"rank":1,"hot":2},"page":{"pv":1,"uv":1,"rank":1,"hot":2}}`, body)

	for _, wrong := range []string{writeFile(t, "too short"), filepath.Join(data, "none")} {
		r := footfall(t, "app", "list", "--data", data, "--secret-file", wrong)
		assert.Equal(t, 2, r.code)
		assert.Contains(t, r.stderr, "--secret-file:")
	}
}

// A service with only the rights of footfall_app can count, and can do nothing else.
func TestServeWithFewRights(t *testing.T) {
	t.Parallel()
	owner := dbtest.New(t)
	few := dbtest.WithParameter(t, owner, "options", "-c role=footfall_app")
	well(t, "app", "add", "shop", "--visitor=address", "--site=shop.example", "--database-url", owner)
	s := serve(t, "--no-migrate", "--database-url", few)
	for n := range 2 {
		status, body := get(s.url + "/visit?app=shop&uri=https://shop.example/" + strings.Repeat("a", n))
		assert.Equal(t, http.StatusOK, status, body)
	}
	key := well(t, "app", "key", "add", "shop", "--scope=assert", "--database-url", owner)
	status, _, _ := ask(t, s.url+"/visit?app=shop&uri=https://shop.example/&ip=192.0.2.1", "Authorization: Bearer "+strings.TrimSpace(key))
	assert.Equal(t, http.StatusOK, status)
	well(t, "app", "add", "blog", "--visitor=address", "--site=blog.example", "--database-url", owner)
	log := accessLog(t, "access.log", 1, 300)
	assert.Contains(t, well(t, "import", log, "--app=blog", "--database-url", few), "visits counted        300\n")
	assert.Contains(t, well(t, "import", "list", "--database-url", few), "blog  -  ")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, s.url+"/api/apps/shop", strings.NewReader(`{"retain_days":9}`))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(well(t, "key", "add", "--scope=admin", "--database-url", owner)))
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	require.NoError(t, err)
	said, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(said), "may only count visits", response.StatusCode)
	assert.NoError(t, response.Body.Close())
	assert.Zero(t, s.stop(), s.said())
	assert.NotContains(t, s.said(), "permission denied")
	assert.NotContains(t, well(t, "app", "key", "list", "shop", "--database-url", owner), "-  -", "its use was noted")

	for _, refused := range [][]string{
		{"psql", "--database-url", few, "--", "-v", "ON_ERROR_STOP=1", "-c", "DELETE FROM visitors"},
		{"app", "set", "shop", "--access=open", "--database-url", few},
		{"visitor", "erase", "shop", "192.0.2.1", "--yes", "--database-url", few},
		{"migrate", "up", "--database-url", few},
	} {
		r := footfall(t, refused...)
		assert.NotZero(t, r.code, refused)
		assert.Contains(t, r.stderr, "permission denied", refused)
	}
	well(t, "migrate", "down", "--yes", "--database-url", owner)
	old := footfall(t, "serve", "--no-migrate", "--database-url", owner, "--addr=127.0.0.1:0", "--admin-addr=off")
	assert.Equal(t, 1, old.code)
	assert.Contains(t, old.stderr, "footfall migrate up")
}

// The commands change the rights of accounts, and never create the first account.
func TestAccounts(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	_, at, _ := strings.Cut(database, "=")
	all := account.Open(dbtest.Open(t, at, db.Options{}))
	first := footfall(t, "account", "add", "Ann", database)
	assert.Equal(t, exitUsage, first.code)
	assert.Contains(t, first.stderr, "the first one is created in a browser: `footfall start-link` prints the address")
	const public = "--public-url=https://count.example"
	links := regexp.MustCompile(`^https://count\.example/start/([A-Za-z0-9_-]{43})\n$`)
	follow := func(printed, name, password string) {
		t.Helper()
		link := links.FindStringSubmatch(printed)
		require.NotNil(t, link, printed)
		_, err := all.Follow(t.Context(), link[1], name, password, "a test")
		require.NoError(t, err)
	}
	container := footfallWith(t, []string{published + "=127.0.0.1:9090"}, "", "start-link", database)
	assert.Regexp(t, `^http://127\.0\.0\.1:9090/start/`, container.stdout, "where the compose file publishes its port")
	assert.Empty(t, container.stderr)
	follow(well(t, "start-link", public, database), "Olga", desk.Password)
	again := footfall(t, "start-link", public, database)
	assert.Equal(t, exitUsage, again.code)
	assert.Contains(t, again.stderr, "sign in at https://count.example/enter")

	link := well(t, "account", "add", "Ann Smith", "--look=demo", public, database)
	list := func() string { return well(t, "account", "list", database) }
	assert.Regexp(t, `(?m)^1 +Olga +everything +everything +password +\d{4}-.* UTC +-$`, list())
	assert.Regexp(t, `(?m)^2 +Ann Smith +demo +- +- +- +\d{4}-.* UTC$`, list())
	follow(link, "", desk.Password)
	assert.Regexp(t, `(?m)^2 +Ann Smith +demo +- +password +\d{4}-.* UTC +-$`, list())
	well(t, "account", "set", "ann smith", "--change", "demo", database)
	assert.Regexp(t, `(?m)^2 +Ann Smith +demo +demo +password `, list())
	for range 10 { // in any order
		well(t, "account", "set", "2", "--change", "demo", "--look", "demo", database)
		require.Regexp(t, `(?m)^2 +Ann Smith +demo +demo +password `, list())
	}
	well(t, "account", "set", "2", "--hide", "demo", database)
	assert.Regexp(t, `(?m)^2 +Ann Smith +- +- +password `, list())
	follow(well(t, "account", "link", "Ann Smith", public, database), "", "eight trombones")
	_, err := all.SignIn(t.Context(), "Ann Smith", desk.Password, "a test")
	assert.Error(t, err)

	for says, args := range map[string][]string{
		"there is no account \"Bob\"":                 {"link", "Bob"},
		"it is the only owner":                        {"remove", "Olga"},
		"it is the only owner, and nobody else":       {"set", "OLGA", "--no-owner"},
		"there is no app \"none\"":                    {"set", "Ann Smith", "--look", "none"},
		"\"olga\" already belongs to another account": {"add", "olga"},
		"its letters are of several scripts":          {"add", "Оlga"},
	} {
		r := footfall(t, append(append([]string{"account"}, args...), database)...)
		assert.NotZero(t, r.code, says)
		assert.Contains(t, r.stderr, says)
	}
	well(t, "account", "set", "Ann Smith", "--owner", database)
	well(t, "account", "remove", "Olga", database)
	assert.NotContains(t, list(), "Olga")
	_, err = all.SignIn(t.Context(), "Olga", desk.Password, "a test")
	assert.Error(t, err)
}

type call struct{ id, body, timestamp, signature string }

func (c call) check(t *testing.T, key string) {
	t.Helper()
	bytes, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	require.NoError(t, err)
	mac := hmac.New(sha256.New, bytes)
	mac.Write([]byte(c.id + "." + c.timestamp + "." + c.body))
	assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), c.signature)
}

// A webhook's call that was in progress when the service was killed is repeated by the next service that has the secret. The
// call is signed with the key that was printed when the webhook was added. A service without the secret leaves calls waiting,
// and the status shows this.
func TestWebhookOutlivesTheService(t *testing.T) {
	t.Parallel()
	calls := make(chan call, 100)
	takes := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{r.Header.Get("webhook-id"), string(body), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature")}
		select {
		case <-takes:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(receiver.Close)
	database := withDemo(t)
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("s", 32)), 0o600))
	secret := "--secret-file=" + file
	add := []string{"app", "webhook", "add", "demo", receiver.URL + "/token", "--private", "--site=a.example", database}

	r := footfall(t, add...)
	assert.Equal(t, exitUsage, r.code)
	assert.Contains(t, r.stderr, "footfall: --secret-file: it is missing")
	r = footfall(t, "app", "webhook", "add", "demo", receiver.URL, database, secret)
	assert.Equal(t, exitUsage, r.code)
	assert.Contains(t, r.stderr, "footfall: url: 127.0.0.1 is not a public address")
	r = footfall(t, "app", "webhook", "add", "demo", "https://hook.example", database, secret)
	assert.Equal(t, exitUsage, r.code)
	assert.Contains(t, r.stderr, "footfall: --site: name a site, or a page with --uri")
	r = footfall(t, append(add, secret)...)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stderr, "Added webhook 1 for a.example.")
	key := strings.TrimSuffix(r.stdout, "\n")

	s := serve(t, database, secret)
	status, _ := get(s.url + "/visit?app=demo&ip=192.0.2.1&uri=http://a.example/")
	require.Equal(t, http.StatusOK, status)
	first := <-calls
	first.check(t, key)
	require.NoError(t, s.cmd.Process.Kill())
	s.wait()
	assert.Regexp(t, `(?m)^1 +a\.example +`+receiver.URL+`/token +1 +20\S+ \S+ UTC +20\S+ \S+ UTC$`,
		well(t, "app", "webhook", "list", "demo", database))

	waiting := func() string {
		return well(t, "psql", database, "--", "-Atc", "SELECT cardinality(waiting) FROM webhooks")
	}
	s = serve(t, database) // without a key to sign with
	status, _ = get(s.url + "/visit?app=demo&ip=192.0.2.2&uri=http://a.example/")
	require.Equal(t, http.StatusOK, status)
	eventually(t, "calls wait", func() bool { return strings.Contains(waiting(), "2") })
	assert.Zero(t, s.stop())
	assert.Empty(t, calls)

	well(t, "psql", database, "--", "-c", "UPDATE webhooks SET try_at = now()") // instead of waiting for the attempt's time limit
	s = serve(t, database, secret)
	again := <-calls
	again.check(t, key)
	assert.Equal(t, [2]string{first.id, first.body}, [2]string{again.id, again.body})
	close(takes)
	eventually(t, "they are taken", func() bool { return strings.Contains(waiting(), "0") })
	assert.NotContains(t, s.said(), "token")
	assert.Zero(t, s.stop())
	assert.Len(t, calls, 1)
	assert.Equal(t, "removed webhook 1 for a.example\n", well(t, "app", "webhook", "remove", "demo", "1", database))
	assert.NotContains(t, well(t, "app", "webhook", "list", "demo", database), "a.example")
}
