package db_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/report"
)

// Pages come in order of uri, part by part, also where the 200 characters that the index holds do
// not tell them apart.
func TestPagesAfterAreInOrder(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	exec(t, conn, `INSERT INTO apps (name) VALUES ('shop')`)
	exec(t, conn, `INSERT INTO pages (app_id, uri) VALUES (1, 'example.com')`)
	long := "example.com/" + strings.Repeat("long/", 50)
	var uris []string
	for i := range 40 {
		uris = append(uris, fmt.Sprintf("example.com/%d", i), fmt.Sprintf("%s%d", long, i), fmt.Sprintf("%s%d/é", long, i))
	}
	rand.Shuffle(len(uris), func(i, j int) { uris[i], uris[j] = uris[j], uris[i] })
	exec(t, conn, `INSERT INTO pages (app_id, site_id, uri) SELECT 1, 1, unnest($1::text[])`, uris)
	slices.Sort(uris)
	d := dbtest.Open(t, url, db.Options{})
	for _, prefix := range []string{"", "example.com/", "example.com/1", long, long + "2", "other.example/"} {
		var want, found []string
		for _, uri := range uris {
			if strings.HasPrefix(uri, prefix) {
				want = append(want, uri)
			}
		}
		for after := ""; ; after = found[len(found)-1] {
			some, err := report.New(d.Tx()).PagesAfter(t.Context(), report.PagesAfterParams{App: "shop", Prefix: prefix, After: after,
				ToDay: 99991231, N: 7})
			require.NoError(t, err)
			for _, page := range some {
				found = append(found, page.Uri)
			}
			if len(some) < 7 {
				break
			}
		}
		assert.Equal(t, want, found, prefix)
	}
}

// Somebody types another time zone into psql while the app's first page is being made: it waits for
// that, and is refused. An app that has no page may be changed.
func TestAppsCountAsTheyBegan(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn, maker := dbtest.Connect(t, url), dbtest.Connect(t, url)
	exec(t, conn, `INSERT INTO apps (name) VALUES ('shop')`)
	exec(t, conn, `UPDATE apps SET tz = 'Europe/Berlin'`)
	tx, err := maker.Begin(t.Context())
	require.NoError(t, err)
	exec(t, maker, `INSERT INTO pages (app_id, uri) VALUES (1, 'example.com')`)
	changed := make(chan error, 1)
	changer := dbtest.Connect(t, url)
	go func() {
		_, err := changer.Exec(t.Context(), `UPDATE apps SET tz = 'UTC'`)
		changed <- err
	}()
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorContains(t, <-changed, "stay what they are")
	exec(t, conn, `UPDATE apps SET retain_days = 7, tz = 'Europe/Berlin'`)
}
