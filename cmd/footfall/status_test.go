package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/status"
)

// The status is available next to a running service, and without one.
func TestStatus(t *testing.T) {
	t.Parallel()
	data := usedData(t)
	s := serve(t, "--data", data)
	code, _ := get(s.url + "/visit?app=demo&ip=192.0.2.1&uri=http://example.com/")
	require.Equal(t, http.StatusOK, code)
	read := func() (found status.Status) {
		r := footfall(t, "status", "--json", "--data", data)
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &found), r.stderr)
		others := []string{}
		for _, warning := range found.Warnings { // the disk usage of this machine does not matter
			if !strings.HasPrefix(warning, "the disk of the data has ") {
				others = append(others, warning)
			}
		}
		if len(found.Warnings) > 0 {
			assert.Equal(t, exitWarned, r.code)
			assert.Contains(t, r.stderr, "there are warnings")
		} else {
			assert.Zero(t, r.code, r.stderr)
		}
		found.Warnings = others
		return found
	}
	running := read()
	assert.Len(t, running.Instances, 1)
	assert.Empty(t, running.Warnings)
	assert.Equal(t, int64(1), running.Apps[0].Hot)
	assert.NotNil(t, running.Disk)
	text := footfall(t, "status", "--data", data).stdout
	assert.Regexp(t, `(?m)^APP .*\ndemo +1 +\d{8} +1 +35 days$`, text)
	assert.Regexp(t, `(?m)^INSTANCE .*\nfootfall dev `+regexp.QuoteMeta(strings.TrimPrefix(s.url, "http://"))+` \S+ +- +\d{4}-`, text,
		"which one it is")

	require.Zero(t, s.stop())
	assert.NotContains(t, text, "pg_read_all_stats")
	stopped := read()
	assert.Empty(t, stopped.Instances)
	require.Len(t, stopped.Warnings, 1)
	assert.Contains(t, footfall(t, "status", "--data", data).stdout, "\nWARNING: "+stopped.Warnings[0])
}

// A section without content has no table, and a section that could not be read shows the reason.
func TestStatusHasNoEmptyTables(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	require.NoError(t, printStatus(&text, &status.Status{Instances: []status.Instance{{Name: "footfall dev"}}}))
	assert.NotContains(t, text.String(), "TABLE")
	assert.Regexp(t, `(?m)^footfall dev +- +-\n\(members of pg_read_all_stats see more about sessions of other roles\)$`, text.String())
}

func TestStatusOfTheInbox(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	printInbox(&text, &status.Inbox{})
	assert.Empty(t, text.String())
	oldest := time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)
	printInbox(&text, &status.Inbox{Waiting: 7, Skipped: 2, Oldest: &oldest})
	assert.Equal(t, "inbox: visits waiting to be counted: 7, the first since 2026-06-29T12:00:00Z; of apps that are locked for now: 2\n",
		text.String())
}

// verify runs next to a counting service. Its output and exit code are checked.
func TestVerify(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	s := serve(t, database)
	for i := range 30 {
		status, body := get(fmt.Sprintf("%s/visit?app=demo&ip=192.0.2.%d&uri=http://a%d.example/%d", s.url, i%7, i%2, i%3))
		require.Equal(t, http.StatusOK, status, body)
	}

	sound := footfall(t, "verify", database)
	assert.Zero(t, sound.code, sound.stderr)
	assert.Regexp(t, `(?m)^PROMISE +RESTS ON +CHECKED +VIOLATIONS$`, sound.stdout)
	assert.Regexp(t, `(?m)^ranks are exactly 1\.\.uv +rows of visitors and erased visitors +8 targets +0$`, sound.stdout)
	assert.Regexp(t, `(?m)^8 targets, 44 visitors \(0 of them erased\), 44 visits, 8 days \(0 rest only on daily numbers\): 0 `+
		`violations, in [\d.]+m?s$`, sound.stdout)
	assert.Regexp(t, `(?m)^ +\d+\.\d s  ranks: 8 targets, 0 violations$`, sound.stderr)
	assert.NotContains(t, sound.stderr, "\r", "nobody watches")

	well(t, "psql", database, "--", "-c", "UPDATE counters SET hot = hot + 5 WHERE page_id = (SELECT id FROM pages WHERE uri = "+
		"'a0.example/0')")
	damaged := footfall(t, "verify", database)
	assert.Equal(t, 1, damaged.code)
	assert.Contains(t, damaged.stderr, "footfall: verify: 2 violations: the listed promises do not hold")
	assert.Regexp(t, `(?m)^  demo +a0\.example/0 +- +the sum of days' hot: 5, but hot: 10$`, damaged.stdout)
	assert.Regexp(t, `(?m)^  demo +a0\.example +- +hot: 15, but the sum over its pages: 20$`, damaged.stdout)

	inJSON := footfall(t, "verify", database, "--json", "--app=demo")
	assert.Equal(t, 1, inJSON.code)
	var proof struct {
		Targets, Violations int
		Promises            []struct {
			Name       string
			Violations int
			Offenders  []struct{ App, Target, Problem string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(inJSON.stdout), &proof), inJSON.stdout)
	assert.Equal(t, 8, proof.Targets)
	assert.Equal(t, 2, proof.Violations)
	for _, p := range proof.Promises {
		assert.Len(t, p.Offenders, p.Violations, p.Name)
	}

	well(t, "psql", database, "--", "-c", "UPDATE days SET hot = hot + 1; INSERT INTO counters SELECT generate_series(1000, 1029), 0, 0, 0")
	assert.Contains(t, footfall(t, "verify", database).stdout, "\n  and 10 more\n")
	assert.NotContains(t, footfall(t, "verify", database, "--all").stdout, "more\n")

	for flag, says := range map[string]string{
		"--sample=0": "--sample: 0 is not a percentage", "--sample=101": "--sample: 101", "--sample=NaN": "--sample: NaN",
		"--jobs=0": "--jobs: 0",
	} {
		r := footfall(t, "verify", database, flag)
		assert.Equal(t, 2, r.code)
		assert.Contains(t, r.stderr, says)
	}
	unknown := footfall(t, "verify", database, "--app=nobody")
	assert.Equal(t, 1, unknown.code)
	assert.Contains(t, unknown.stderr, `app: there is no app "nobody"`)
	nothing := footfall(t, "verify", database, "--sample=0.001", "--seed=7")
	assert.Equal(t, exitNothing, nothing.code, "unchecked promises are not proved")
	assert.Contains(t, nothing.stdout, "0 targets, ")
	assert.Contains(t, nothing.stderr, "nothing was checked")
}

// An operator sets how long visits are kept, lists the rows to be deleted, and deletes them.
func TestRetain(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	url := "--database-url=" + database
	well(t, "app", "add", "shop", "--visitor=address", "--access=open", "--retain-days=10", "--forget-days=20", url)
	well(t, "app", "add", "other", "--visitor=address", "--access=open", "--retain-days=0", url)
	list := well(t, "app", "list", url)
	assert.Regexp(t, `(?m)^shop .* public-counts=read,retain-days=10,forget-days=20$`, list)
	assert.Regexp(t, `(?m)^other .* public-counts=read,retain-days=0$`, list)
	refused := footfall(t, "app", "set", "shop", "--retain-days=21", url)
	assert.Equal(t, exitUsage, refused.code)
	assert.Equal(t, "footfall: --forget-days: visits would be kept for longer than their visitors, so forgotten visitors would still be in "+
		"the rows of visits: give --retain-days from 1 to 20, or --forget-days 0\n", refused.stderr)
	assert.Equal(t, "there is nothing to delete or forget\n", well(t, "retain", url))

	countLongAgo(t, database)
	dry := well(t, "retain", "--dry-run", url)
	assert.Regexp(t, `^past days, would be closed: \d+ \(20190628 to 20190708\)
visits that would be deleted:
DAY       APP              VISITS  FREED
20190628  \(the whole day\)  -       \d+KiB
20190629  \(the whole day\)  -       \d+KiB
20190629  shop             2       with the day
20190630  shop             2       other apps keep the day
(?:2019070\d  \(the whole day\)  -       \d+KiB
)+visitors that would be forgotten, each counted once for every page and site:
APP   VISITORS  NOT SEEN SINCE
shop  2         20\d{6}
$`, dry)
	assert.Equal(t, dry, well(t, "retain", "--dry-run", url), "nothing has changed")
	done := well(t, "retain", url)
	assert.Equal(t, strings.NewReplacer("days, would be closed", "days, closed", "would be", "were").Replace(dry), done)
	assert.Equal(t, "there is nothing to delete or forget\n", well(t, "retain", url))
}

// countLongAgo counts visits for the app shop on two days, and on the second day also for the app other.
func countLongAgo(t *testing.T, url string) {
	t.Helper()
	for day, apps := range [][]string{{"shop"}, {"shop", "other"}} {
		d := desk.On(t, url, desk.Options{Began: time.Date(2019, 6, 29+day, 12, 0, 0, 0, time.UTC)})
		for _, app := range apps {
			d.CountAs(t, counter.Request{App: app, IP: "192.0.2.1", URI: "http://a.example/"})
		}
		d.Close()
	}
}

// SIGTERM interrupts a long request, whether its statement waits or its body is still being read, so that the service exits in
// time.
func TestLongWorkEndsWithTheService(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	_, at, _ := strings.Cut(database, "=")
	well(t, "app", "add", "shop", "--site", "shop.example", "--visitor", "address", "--tz", "UTC", database)
	start, err := account.Open(dbtest.Open(t, at, db.Options{})).NewStart(t.Context())
	require.NoError(t, err)
	session, err := account.Open(dbtest.Open(t, at, db.Options{})).Follow(t.Context(), start, "Olga", desk.Password, "a test")
	require.NoError(t, err)
	r := serve(t, database)

	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range map[string]string{"do": "import history", "from": "csv", "site": "shop.example"} {
		require.NoError(t, w.WriteField(name, value))
	}
	file, err := w.CreateFormFile("file", "a.csv")
	require.NoError(t, err)
	_, _ = io.WriteString(file, "day,page,page_views\n2019-05-03,/a,9\n")
	require.NoError(t, w.Close())
	headers := func(app string, length int) string {
		return fmt.Sprintf("POST /settings/%s HTTP/1.1\r\nHost: %s\r\nCookie: footfall_session=%s\r\nContent-Type: %s\r\nContent-Length: %d\r\n",
			app, strings.TrimPrefix(r.url, "http://"), session, w.FormDataContentType(), length)
	}
	send := func(text string) (*bufio.Reader, net.Conn) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
		return bufio.NewReader(conn), conn
	}
	conn := dbtest.Connect(t, at)
	_, err = conn.Exec(t.Context(), `BEGIN; SELECT FROM apps WHERE name = 'shop' FOR UPDATE`)
	require.NoError(t, err)
	answer, _ := send(headers("shop", body.Len()) + "\r\n" + body.String())
	dbtest.AwaitWaiting(t, dbtest.Connect(t, at), 1)
	reading, _ := send(headers("demo", body.Len()) + "Expect: 100-continue\r\n\r\n")
	line, err := reading.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue", "its body is being read")

	began := time.Now()
	assert.Zero(t, r.stop())
	assert.Less(t, time.Since(began), 20*time.Second)
	response, err := http.ReadResponse(answer, nil)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	assert.Contains(t, strings.ToLower(string(text)), "the service is shutting down", string(text))
	_, err = conn.Exec(context.Background(), `ROLLBACK`)
	require.NoError(t, err)
	assert.Empty(t, dbtest.Column[int64](t, conn, `SELECT id FROM history_days`))
}
