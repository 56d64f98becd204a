package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// commands are those of an operator, on a database of their own that has the apps demo, which is
// open, and shop, which counts shop.example. What needs visits beside is tested in counter.
type commands struct {
	*admin.Admin
	url string
}

func newCommands(t *testing.T) commands {
	t.Helper()
	t.Parallel()
	url := dbtest.Made(t, "commands", time.Now(), func(d *db.DB) {
		open := app.AccessOpen
		require.NoError(t, admin.NewAdmin(d, nil).AddApp(t.Context(), "demo", app.Settings{Access: &open}))
		require.NoError(t, admin.NewAdmin(d, nil).AddApp(t.Context(), "shop", app.Settings{Sites: []string{"shop.example"}}))
	})
	return commands{admin.NewAdmin(dbtest.Open(t, url, db.Options{}), nil), url}
}

// one is the number that a query gives.
func (c commands) one(t *testing.T, sql string) (n int64) {
	t.Helper()
	require.NoError(t, dbtest.Connect(t, c.url).QueryRow(context.Background(), sql).Scan(&n))
	return n
}
