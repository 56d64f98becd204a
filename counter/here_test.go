package counter_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
)

// Who is on a site now is told once, whichever instances counted them, for some minutes; not of visits
// whose time a caller gave, and not of those who were erased.
func TestHere(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	other := plain.startOn(t, in.URL, counter.Options{})
	const home, about = "http://a.example/", "http://a.example/about"
	here := func(site string) int64 { return in.One(t, `SELECT report.here('demo', $1)`, site) }
	come := func() {
		for _, ip := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::1"} {
			in.Count(t, ip, home)
			in.Count(t, ip, about)
			other.Count(t, ip, home)
		}
		other.Count(t, "192.0.2.1", "http://b.example/")
		in.later(t, counter.Request{IP: "192.0.2.3", URI: home})
		in.CountAs(t, counter.Request{App: "demo", IP: "192.0.2.4", URI: home, At: in.Clock.Now().Format("2006-01-02T15:04:05Z07:00")})
	}
	told := func(site string, visitors int64) {
		t.Helper()
		require.Eventually(t, func() bool { return here(site) == visitors }, dbtest.Patience, dbtest.Tick)
	}
	come()
	in.Drained(t)
	told("b.example", 1)
	told("a.example", 4)
	require.Zero(t, here("c.example"))

	_, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.1")
	require.NoError(t, err)
	assert.Zero(t, in.One(t, `SELECT count(*) FROM here WHERE '192.0.2.1' = ANY (visitors)`))
	assert.Zero(t, here("b.example"))

	come() // who was counted today already
	told("b.example", 1)
	told("a.example", 4)
	in.Exec(t, `UPDATE here SET came_at = came_at - interval '5 minutes'`)
	assert.Zero(t, here("a.example"))
	require.Eventually(t, func() bool { return in.One(t, `SELECT count(*) FROM here`) == 0 }, dbtest.Patience, dbtest.Tick,
		"also where nobody comes")
	come()
	told("b.example", 1)
	told("a.example", 4)
	require.NoError(t, in.Admin.DeleteApp(t.Context(), "demo"))
	assert.Zero(t, in.One(t, `SELECT count(*) FROM here`))
}
