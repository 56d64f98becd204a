package imports

import (
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db/dbtest"
)

// Logs cannot be imported for an app whose visitors have ids.
func TestAppWhoseVisitorsHaveIDs(t *testing.T) {
	t.Parallel()
	byID := app.ByID
	d := newDeskOf(t, app.Secret("thirty-two bytes that are secret"), app.Settings{Visitor: &byID}, "blog")
	_, err := d.run(d.options(d.file("access.log", nil)))
	require.ErrorContains(t, err, "app: blog distinguishes visitors by ids, which logs do not contain")
}

// An app that distinguishes visitors by address and browser needs logs with User-Agents.
func TestAppWhoseVisitorsHaveBrowsers(t *testing.T) {
	t.Parallel()
	byBrowser := app.ByBrowser
	d := newDeskOf(t, app.Secret("thirty-two bytes that are secret"), app.Settings{Visitor: &byBrowser}, "blog")
	line := `192.0.2.1 - - [` + firstTime.Format("02/Jan/2006:15:04:05 -0700") + `] "GET / HTTP/1.1" 200 1`
	_, err := d.run(d.options(d.file("common.log", []byte(line+"\n"))))
	require.ErrorContains(t, err, "app: blog distinguishes visitors by address and browser, but line 1 of ")
	conn := dbtest.Connect(t, d.url)
	require.Zero(t, dbtest.Column[int64](t, conn, `SELECT count(*) FROM visitors`)[0])
	for _, browser := range []string{"Firefox/140.0", "Chrome/140.0"} {
		_, err = d.run(d.options(d.file("combined.log", []byte(line+` "-" "Mozilla/5.0 (X11; Linux x86_64) `+browser+"\"\n"))))
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, dbtest.Column[int64](t, conn, `SELECT max(rank) FROM visitors`)[0])
}
