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
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type call struct{ id, body, timestamp, signature string }

func (c call) check(t *testing.T, key string) {
	t.Helper()
	bytes, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	require.NoError(t, err)
	mac := hmac.New(sha256.New, bytes)
	mac.Write([]byte(c.id + "." + c.timestamp + "." + c.body))
	assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), c.signature)
}

// A call that is under way as the service is killed is made again by the next one that has the
// secret, signed with the key that was printed. One without it lets calls wait, of which the status
// tells.
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
	assert.Contains(t, r.stderr, "footfall: url: 127.0.0.1 is no public address")
	r = footfall(t, "app", "webhook", "add", "demo", "https://hook.example", database, secret)
	assert.Equal(t, exitUsage, r.code)
	assert.Contains(t, r.stderr, "footfall: --site: name a site, or else a page with --uri")
	r = footfall(t, append(add, secret)...)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stderr, "Added webhook 1 of a.example.")
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
	s = serve(t, database) // with nothing to sign with
	status, _ = get(s.url + "/visit?app=demo&ip=192.0.2.2&uri=http://a.example/")
	require.Equal(t, http.StatusOK, status)
	eventually(t, "calls wait", func() bool { return strings.Contains(waiting(), "2") })
	assert.Zero(t, s.stop())
	assert.Empty(t, calls)

	well(t, "psql", database, "--", "-c", "UPDATE webhooks SET try_at = now()") // rather than wait until it must have ended
	s = serve(t, database, secret)
	again := <-calls
	again.check(t, key)
	assert.Equal(t, [2]string{first.id, first.body}, [2]string{again.id, again.body})
	close(takes)
	eventually(t, "they are taken", func() bool { return strings.Contains(waiting(), "0") })
	assert.NotContains(t, s.said(), "token")
	assert.Zero(t, s.stop())
	assert.Len(t, calls, 1)
	assert.Equal(t, "removed webhook 1 of a.example\n", well(t, "app", "webhook", "remove", "demo", "1", database))
	assert.NotContains(t, well(t, "app", "webhook", "list", "demo", database), "a.example")
}
