package admin_test

import (
	"testing"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/desk"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// newCommands returns an operator's commands on a new database with the apps demo, which is open, and shop, which
// counts shop.example. Commands that run alongside visits are tested in counter.
func newCommands(t *testing.T) *desk.Desk {
	t.Helper()
	t.Parallel()
	open := app.AccessOpen
	o := desk.Options{Real: true, Apps: map[string]app.Settings{"demo": {Access: &open}, "shop": {Sites: []string{"shop.example"}}}}
	d := desk.Idle(t, desk.Database(t, o), o)
	d.Admin = admin.NewAdmin(d.DB, nil)
	return d
}
