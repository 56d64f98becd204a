package admin_test

import (
	"testing"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// newCommands are those of an operator, on a database of their own that has the apps demo, which is
// open, and shop, which counts shop.example. What needs visits beside is tested in counter.
func newCommands(t *testing.T) *desk.Desk {
	t.Helper()
	t.Parallel()
	open := app.AccessOpen
	o := desk.Options{Real: true, Apps: map[string]app.Settings{"demo": {Access: &open}, "shop": {Sites: []string{"shop.example"}}}}
	d := desk.Idle(t, desk.Database(t, o), o)
	d.Admin = admin.NewAdmin(d.DB, nil)
	return d
}
