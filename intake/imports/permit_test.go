package imports

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
)

// No log has the ids of an app that tells visitors apart by them.
func TestAppWhoseVisitorsHaveIDs(t *testing.T) {
	t.Parallel()
	d := &desk{t: t, folder: t.TempDir()}
	secret, byID := app.Secret("thirty-two bytes that are secret"), app.ByID
	d.url = madeWith(t, "ids", secret, app.Settings{Sites: []string{"blog.example"}, Visitor: &byID})
	d.openWith(secret)
	_, err := d.run(d.options(d.file("access.log", nil)))
	require.ErrorContains(t, err, "app: blog tells visitors apart by ids, which no log has")
}

// madeWith makes a database of a name, with an app blog that has a secret.
func madeWith(t *testing.T, name string, secret app.Secret, settings app.Settings) string {
	return dbtest.Made(t, name, time.Now(), func(tables *db.DB) {
		require.NoError(t, admin.NewAdmin(tables, secret).AddApp(t.Context(), "blog", settings))
	})
}
