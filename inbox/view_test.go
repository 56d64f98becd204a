package inbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// What is gone is not looked at again, but a row whose session hung for long before it committed is
// found within a minute; and an app that is passed by keeps nobody from going on.
func TestViewPassesWhatIsGone(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	put := func(number int64, app int32) {
		_, err := conn.Exec(t.Context(), `INSERT INTO inbox (number, app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages,
			ips) OVERRIDING SYSTEM VALUE
			VALUES ($1, $2, 1, 'UTC', 'address', 64, '{a.example/}', '{1}', '{20260629}', '{0}', '{::1}')`, number, app)
		require.NoError(t, err)
	}
	v := &view{db: d, metrics: newMetrics(nil)}
	look := func(gone, from int64, aside ...int32) {
		t.Helper()
		require.NoError(t, v.look(t.Context()))
		assert.Equal(t, gone, v.gone.Load())
		butFor := map[int32]*rest{}
		for _, app := range aside {
			butFor[app] = &rest{}
		}
		assert.Equal(t, from, v.from(0, butFor))
	}
	passes := func() { v.marked = v.marked.Add(-2 * putsEnd) }
	put(10, 1)
	put(20, 2)
	look(0, 0)
	passes() // numbers up to 20 are old now, but 10 waits
	look(9, 9)
	assert.Equal(t, int64(20), v.from(0, map[int32]*rest{1: {}, 2: {}}))
	assert.Equal(t, int64(19), v.from(0, map[int32]*rest{1: {}}))
	assert.Equal(t, []int64{9, 19, 9}, []int64{v.from(1, nil), v.from(2, nil), v.from(3, nil)})
	_, err := conn.Exec(t.Context(), `DELETE FROM inbox`)
	require.NoError(t, err)
	look(20, 20)
	put(15, 1) // very late
	look(20, 20)
	v.whole = time.Now().Add(-2 * wholeEvery)
	look(14, 14)
	look(14, 20, 1)
	_, err = conn.Exec(t.Context(), `DELETE FROM inbox`)
	require.NoError(t, err)
	look(20, 20)
}
