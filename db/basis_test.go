package db_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Which changes of the tables change the basis, so that instances drop their caches. A basis that
// changed with every visit would be exact, and useless.
func TestBasis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql string
		changes   bool
	}{
		{"a visitor is erased", `DELETE FROM visitors WHERE ip = '192.0.2.1'`, true},
		{"a visitor is made another", `UPDATE visitors SET ip = '192.0.2.77'`, true},
		{"a rank is changed", `UPDATE visitors SET rank = rank + 1`, true},
		{"all visitors are erased", `TRUNCATE visitors`, true},
		{"a page is deleted", `DELETE FROM pages WHERE id = 3`, true},
		{"a page is renamed", `UPDATE pages SET uri = 'example.com/c' WHERE id = 3`, true},
		{"visitors are made anew, as by a restore",
			`CREATE TABLE copy (LIKE visitors INCLUDING ALL); DROP TABLE visitors CASCADE; ALTER TABLE copy RENAME TO visitors`, true},
		{"the epochs are restored as they were", `DELETE FROM epochs WHERE name = 'erasures'; INSERT INTO epochs (name) VALUES ('erasures')`,
			true},
		{"visitors were imported", `SELECT read_anew()`, true},
		{"a day's visits are dropped", `DROP TABLE visits_20190629`, false},
		{"a page is added", `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'example.com/c')`, false},
		{"an app is changed", `UPDATE apps SET access = 'open'`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, conn := fixture(t)
			d := dbtest.Open(t, url, db.Options{Writers: 1})
			remembered, err := d.Basis(t.Context())
			require.NoError(t, err)
			batch := func(ip string, targets ...int64) *db.Batch {
				b := visitBatch(ip, targets...)
				b.Basis = remembered
				return b
			}
			tomorrow := onDay(batch("192.0.2.1", 2), today+1)
			_, err = d.Queries().VisitsDayMake(t.Context(), today+1)
			require.NoError(t, err)
			require.Equal(t, db.FaultNone, write(t, d, batch("192.0.2.1", 1, 2)))
			require.Equal(t, db.FaultNone, write(t, d, tomorrow), "which updates last_day")
			hot := func() int64 { return query[int64](t, conn, `SELECT hot FROM counters WHERE page_id = 1`) }
			before := hot()

			exec(t, conn, c.sql)
			// all that a repeat needs
			next := onDay(&db.Batch{ID: batchID(), Basis: remembered, Targets: db.TargetColumns{IDs: []int64{1}, Hot: []int64{1},
				Newcomers: []int64{0}}}, today)
			if !c.changes {
				assert.Equal(t, db.FaultNone, write(t, d, next))
				return
			}
			assert.Equal(t, db.FaultStale, write(t, d, next))
			assert.Equal(t, before, hot(), "nothing was counted")
			renewed, err := d.Basis(t.Context())
			require.NoError(t, err)
			next.Basis = renewed
			assert.Equal(t, db.FaultNone, write(t, d, next), "the same on the new basis")
		})
	}
}

// Another database is another basis, whatever it holds.
func TestBasisOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	one, err := dbtest.Open(t, dbtest.New(t), db.Options{}).Basis(t.Context())
	require.NoError(t, err)
	other, err := dbtest.Open(t, dbtest.New(t), db.Options{}).Basis(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, one, other)
}

// An erasure holds the locks of the counters until it commits. A batch that waits for them must not
// go by what was before.
func TestBasisIsReadUnderTheLocks(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{Writers: 1})
	require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.1", 2)))
	remembered, err := d.Basis(t.Context())
	require.NoError(t, err)
	erasure := begin(t, url, lockCounters, 2)
	_, err = erasure.Exec(t.Context(), `DELETE FROM visitors`)
	require.NoError(t, err)
	late := visitBatch("192.0.2.1", 2)
	late.Basis = remembered
	fault := async(t, func() db.Fault { return write(t, d, late) })
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, erasure.Commit(t.Context()))
	assert.Equal(t, db.FaultStale, receive(t, fault, "the batch's end"))
}
