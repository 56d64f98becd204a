package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter/desk"
	"footfall/db"
	"footfall/db/dbtest"
)

// SIGTERM ends long work, whose statement waits or whose body is still being read, so that the service exits in time.
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
