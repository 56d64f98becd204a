package db_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

func TestWriteTellsWhatEachVisitWas(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `SELECT make_visits_day($1)`, today+1)
	d := dbtest.Open(t, url, db.Options{})
	var out db.Outcome
	verdicts := func(b *db.Batch) []db.Verdict {
		t.Helper()
		require.NoError(t, d.Write(t.Context(), b, &out))
		return out.Verdicts
	}
	first := db.Verdict{Rank: 1, Newcomer: true, Counted: true}
	assert.Equal(t, []db.Verdict{first, first}, verdicts(visitBatch("192.0.2.9", 1, 2)))
	assert.Equal(t, []db.Sums{{Hot: 1}, {Hot: 1}}, out.Sums)

	assert.Equal(t, []db.Verdict{{Rank: 1}}, verdicts(visitBatch("192.0.2.9", 2)), "again on the same day")
	assert.Equal(t, []db.Sums{{Hot: 2, PV: 1, UV: 1}}, out.Sums)

	tomorrow := onDay(visitBatch("192.0.2.9", 2), today+1)
	assert.Equal(t, []db.Verdict{{Rank: 1, Counted: true}}, verdicts(tomorrow), "the next day")
	assert.Equal(t, []db.Verdict{{Rank: 1}}, verdicts(visitBatch("192.0.2.9", 2)), "a day that is over counts as the last one")

	// Ranks are in order of arrival, not of address, and separate for each target.
	many := &db.Batch{ID: batchID(), Targets: db.TargetColumns{IDs: []int64{2, 3}, Hot: []int64{3, 1}, Newcomers: []int64{0, 0}},
		Pairs: db.PairColumns{Hinted: make([]bool, 4)}}
	for i, last := range []byte{7, 9, 5, 7} {
		many.Pairs.Visitors = append(many.Pairs.Visitors, netip.AddrFrom4([4]byte{192, 0, 2, last}))
		many.Pairs.Targets = append(many.Pairs.Targets, []int64{2, 2, 2, 3}[i])
	}
	assert.Equal(t, []db.Verdict{{Rank: 2, Newcomer: true, Counted: true}, {Rank: 1}, {Rank: 3, Newcomer: true, Counted: true}, first},
		verdicts(onDay(many, today+1)))
	assert.Equal(t, []int64{7, 4, 3}, numbers(t, conn, 2))
	assert.Equal(t, []int64{1, 1, 1}, numbers(t, conn, 3))

	sumsOnly := &db.Batch{ID: batchID(), Targets: db.TargetColumns{IDs: []int64{2}, Hot: []int64{5}, Newcomers: []int64{0}}}
	assert.Empty(t, verdicts(onDay(sumsOnly, today+1)))
	assert.Equal(t, []db.Sums{{Hot: 12, PV: 4, UV: 3}}, out.Sums)
}

func TestWritersAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	const writers, batches = 4, 25
	url, conn := fixture(t)
	ranks := make([][]int64, writers)
	var all sync.WaitGroup
	for w := range writers {
		d := dbtest.Open(t, url, db.Options{})
		all.Go(func() {
			var out db.Outcome
			for n := range batches {
				// Two writers share each visitor, so that newcomers race.
				b := visitBatch(fmt.Sprintf("192.0.%d.%d", w/2, n), 1, 2)
				if !assert.NoError(t, d.Write(t.Context(), b, &out)) {
					return
				}
				for _, v := range out.Verdicts {
					if v.Newcomer {
						ranks[w] = append(ranks[w], v.Rank)
					}
				}
			}
		})
	}
	all.Wait()
	for _, target := range []int64{1, 2} {
		assert.Equal(t, []int64{writers * batches, writers / 2 * batches, writers / 2 * batches}, numbers(t, conn, target))
	}
	given := map[int64]int{}
	for _, mine := range ranks {
		for _, rank := range mine {
			given[rank]++
		}
	}
	for rank := range int64(writers / 2 * batches) {
		assert.Equal(t, 2, given[rank+1], "rank %d: once for each of two targets", rank+1)
	}
}

// For a transaction that commits, see TestBatchAcrossTheTurn.
func TestDidCommitOfATransactionThatRollsBack(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{})
	id := batchID()
	running := begin(t, url, db.BatchBegin, id)
	claim := async(t, func() bool {
		committed, err := d.DidCommit(context.Background(), id)
		assert.NoError(t, err)
		return committed
	})
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, running.Rollback(t.Context()))
	assert.False(t, receive(t, claim, "the answer"))
}

func TestInternAgreesWhoeverComesFirst(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	exec(t, conn, `INSERT INTO apps (name) VALUES ('shop')`)
	var pages, sites []string
	for i := range 50 {
		sites = append(sites, fmt.Sprintf("site%d.example", i%5))
		pages = append(pages, fmt.Sprintf("site%d.example/%d", i%5, i))
	}
	found := make([]map[string]int64, 8)
	var all sync.WaitGroup
	for i := range found {
		d := dbtest.Open(t, url, db.Options{})
		from := i * 5 // each starts at another place in the list
		mine := append(append([]string{}, pages[from:]...), pages[:from]...)
		theirs := append(append([]string{}, sites[from:]...), sites[:from]...)
		all.Go(func() {
			var err error
			found[i], _, err = d.Intern(t.Context(), interning(mine, theirs))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Len(t, found[0], 55)
	for _, ids := range found {
		assert.Equal(t, found[0], ids)
	}
	assert.Equal(t, int64(55), query[int64](t, conn, `SELECT count(*) FROM pages`))
	assert.Equal(t, int64(50), query[int64](t, conn, `SELECT count(*) FROM pages AS p JOIN pages AS s ON s.id = p.site_id
		WHERE starts_with(p.uri, s.uri || '/')`), "pages with the right site")
}

// Newcomers with and without a hint get their ranks in one common order: the order of arrival.
func TestHintedNewcomersShareTheOrder(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	d := dbtest.Open(t, url, db.Options{Writers: 1})
	require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.9", 2)))
	b := &db.Batch{ID: batchID(), Targets: db.TargetColumns{IDs: []int64{2, 3}, Hot: []int64{6, 1}, Newcomers: []int64{3, 1}}}
	for i, hinted := range []bool{true, false, false, true, true, true, false} {
		b.Pairs.Visitors = append(b.Pairs.Visitors, netip.AddrFrom4([4]byte{192, 0, 2, byte(50 - i)}))
		b.Pairs.Targets = append(b.Pairs.Targets, []int64{2, 2, 2, 2, 2, 3, 2}[i])
		b.Pairs.Hinted = append(b.Pairs.Hinted, hinted)
	}
	b.Pairs.Visitors[2] = netip.MustParseAddr("192.0.2.9")
	var out db.Outcome
	require.NoError(t, d.Write(t.Context(), onDay(b, today), &out))
	var ranks []int64
	for i, v := range out.Verdicts {
		assert.Equal(t, i != 2, v.Newcomer && v.Counted, "place %d", i)
		ranks = append(ranks, v.Rank)
	}
	assert.Equal(t, []int64{2, 3, 1, 4, 5, 1, 6}, ranks)
	assert.Equal(t, []db.Sums{{Hot: 7, PV: 4, UV: 4}, {Hot: 1, PV: 1, UV: 1}}, out.Sums, "with the hinted")
	assert.Equal(t, []int64{7, 6, 6}, numbers(t, conn, 2))
	assert.Equal(t, []int64{1, 1, 1}, numbers(t, conn, 3))
}

// A batch in which all visitors are newcomers leads to the same rows, whether the visitors are hinted or looked up.
func TestNewcomersAloneComeOutTheSame(t *testing.T) {
	t.Parallel()
	var tables [2][]string
	var outcomes [2]db.Outcome
	for k, hinted := range []bool{true, false} {
		url, conn := fixture(t)
		d := dbtest.Open(t, url, db.Options{Writers: 1})
		require.Equal(t, db.FaultNone, write(t, d, visitBatch("192.0.2.9", 1, 3)))
		b := &db.Batch{ID: batchID(), Targets: db.TargetColumns{IDs: []int64{1, 2, 3}, Hot: []int64{5, 4, 4}, Newcomers: []int64{0, 0, 0}}}
		for i, target := range []int64{3, 1, 2, 1, 3, 1, 2, 3} {
			visitor := netip.AddrFrom4([4]byte{192, 0, 2, byte(50 - i)})
			if i > 5 {
				visitor = netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)})
			}
			b.Pairs.Targets, b.Pairs.Visitors, b.Pairs.Hinted = append(b.Pairs.Targets, target), append(b.Pairs.Visitors, visitor),
				append(b.Pairs.Hinted, hinted)
			if hinted {
				b.Targets.Newcomers[target-1]++
			}
		}
		require.NoError(t, d.Write(t.Context(), onDay(b, today), &outcomes[k]))
		tables[k] = query[[]string](t, conn, `
			SELECT array_agg(r ORDER BY r COLLATE "C") FROM (
				SELECT 'counters ' || c::text FROM counters AS c UNION ALL SELECT 'visitors ' || v::text FROM visitors AS v
				UNION ALL SELECT 'visits ' || v::text FROM visits AS v UNION ALL SELECT 'days ' || d::text FROM days AS d) AS rows (r)`)
	}
	assert.Equal(t, tables[1], tables[0])
	assert.Equal(t, outcomes[1].Verdicts, outcomes[0].Verdicts)
	assert.Equal(t, []db.Sums{{Hot: 6, PV: 4, UV: 4}, {Hot: 4, PV: 2, UV: 2}, {Hot: 5, PV: 4, UV: 4}}, outcomes[0].Sums)
	assert.Len(t, tables[0], 3+2*10+3)
}

// A probe needs room on the disk, not only room in an existing page.
func TestProbeNeedsRoom(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	dbtest.NeedSuperuser(t, conn)
	err := dbtest.Open(t, dbtest.WithParameter(t, url, "temp_file_limit", "8kB"), db.Options{}).Probe(t.Context())
	require.ErrorContains(t, err, "temp_file_limit")
	assertNothingCounted(t, conn)
	require.NoError(t, dbtest.Open(t, url, db.Options{}).Probe(t.Context()))
}

// During the first stay seconds of a turn, and during the last, no table is emptied.
const (
	turn = 180
	stay = int(db.BatchIDsStay / 1e9)
)

// batchesAt makes the tables of batches take turns by a clock that the test sets.
func batchesAt(t *testing.T, conn *pgx.Conn) (set func(second int)) {
	t.Helper()
	exec(t, conn, `CREATE TABLE clock (seconds bigint)`)
	exec(t, conn, `INSERT INTO clock VALUES (0)`)
	exec(t, conn, `CREATE OR REPLACE FUNCTION batches_clock() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT seconds FROM footfall.clock'`)
	return func(second int) { exec(t, conn, `UPDATE clock SET seconds = $1`, second) }
}

// Each id is kept for at least a minute, and not much longer. It does not matter when in a turn the id was written,
// or how often the tables are emptied.
func TestIDsOfBatchesGo(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	set := batchesAt(t, conn)
	d := dbtest.Open(t, url, db.Options{})
	for at := 0; at < turn; at += dbtest.LongOrShort(7, 28) {
		set(4*turn + at)
		b := visitBatch("192.0.2.1", 1)
		require.Equal(t, db.FaultNone, write(t, d, b))
		age := 0
		for ; query[bool](t, conn, `SELECT EXISTS (SELECT FROM batches WHERE id = $1)`, b.ID); age++ {
			require.Less(t, age, 3*turn, "an id of second %d stays", at)
			set(4*turn + at + age)
			_, err := d.EmptyBatches(t.Context())
			require.NoError(t, err)
		}
		assert.Greater(t, age, stay, "seconds that an id of second %d was kept", at)
		assert.LessOrEqual(t, age, 2*turn)
	}
	assert.Zero(t, query[int64](t, conn, `SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relname IN ('batches_0', 'batches_1')`),
		"bytes on disk")
}

// A batch that commits after the next turn has started is found, and its id is kept while it runs.
func TestBatchAcrossTheTurn(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	set := batchesAt(t, conn)
	d := dbtest.Open(t, url, db.Options{})
	set(turn - 1)
	id := batchID()
	running := begin(t, url, db.BatchBegin, id)
	set(turn + stay + 1)
	emptied, err := d.EmptyBatches(t.Context())
	require.NoError(t, err)
	require.False(t, emptied, "it waits for nobody")
	claim := async(t, func() bool {
		committed, err := d.DidCommit(context.Background(), id)
		assert.NoError(t, err)
		return committed
	})
	dbtest.AwaitWaiting(t, conn, 1)
	require.NoError(t, running.Commit(t.Context()))
	require.True(t, receive(t, claim, "the answer"))
	committed, err := d.DidCommit(t.Context(), id)
	require.NoError(t, err)
	require.True(t, committed, "it can be repeated")
}

// An abandoned batch is refused for the promised time, whenever it was abandoned, in whichever turn it arrives, and
// however often the tables are emptied in the meantime.
func TestAbandonedBatchArrivesLate(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	set := batchesAt(t, conn)
	d := dbtest.Open(t, url, db.Options{})
	for at := 0; at < turn; at += dbtest.LongOrShort(7, 28) {
		for _, late := range []int{1, stay / 2, stay - 1} {
			set(4*turn + at)
			b := visitBatch("192.0.2.1", 1)
			committed, err := d.DidCommit(t.Context(), b.ID)
			require.NoError(t, err)
			require.False(t, committed)
			for s := range late {
				set(4*turn + at + s)
				_, err := d.EmptyBatches(t.Context())
				require.NoError(t, err)
			}
			set(4*turn + at + late)
			require.NotEqual(t, db.FaultNone, write(t, d, b), "abandoned in second %d of a turn, it came %d seconds later", at, late)
			committed, err = d.DidCommit(t.Context(), b.ID)
			require.NoError(t, err)
			require.False(t, committed)
		}
	}
}

// Some changes of the tables change the basis, so that instances drop their caches. Other changes must not: a basis
// that changed with every visit would be useless.
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
		{"visitors are recreated, as by a restore",
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
			// like a batch for a repeated visit, which has no pairs
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

// Another database has another basis, whatever its content.
func TestBasisOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	one, err := dbtest.Open(t, dbtest.New(t), db.Options{}).Basis(t.Context())
	require.NoError(t, err)
	other, err := dbtest.Open(t, dbtest.New(t), db.Options{}).Basis(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, one, other)
}

// An erasure holds the locks of the counters until it commits. A batch that waits for these locks may not use the
// earlier state.
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

// Late visits to two sites of an app delete the same lists, without an earlier common lock. Both delete in the same
// order, which prevents a deadlock.
func TestListsGoInOneOrder(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `INSERT INTO tops (app_id, site_id, day_id, by, page_ids, numbers)
		SELECT 1, s, to_char(date '2019-01-01' + d, 'YYYYMMDD')::integer, 'hot', '{2}', '{1}'
		FROM generate_series(0, 1) AS s, generate_series(0, 99) AS d`)
	const held = 20190220
	tx, err := dbtest.Connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM tops WHERE site_id = 0 AND day_id = $1 FOR UPDATE`, held)
	require.NoError(t, err)
	late := dbtest.Connect(t, url)
	done := async(t, func() error {
		_, err := late.Exec(context.Background(),
			`SELECT drop_tops(array_agg(1::bigint), array_agg(d ORDER BY hashint4(d))) FROM (SELECT DISTINCT day_id FROM tops) AS t (d)`)
		return err
	})
	dbtest.AwaitWaiting(t, conn, 1)
	assert.Empty(t, dbtest.Column[int32](t, conn, `SELECT day_id FROM tops WHERE site_id = 0 AND day_id < $1 FOR UPDATE SKIP LOCKED`, held),
		"taken already")
	assert.Len(t, dbtest.Column[int32](t, conn, `SELECT day_id FROM tops WHERE site_id = 1 OR day_id > $1 FOR UPDATE SKIP LOCKED`, held), 149,
		"not taken yet")
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, receive(t, done, "the deletion"))
	assert.Empty(t, dbtest.Column[int32](t, conn, `SELECT day_id FROM tops`))
}

// Two sessions count the inbox, because one of them has lost its lock without noticing. Both have read the same
// rows. A row is taken only if it is unchanged since it was read, so the second session takes none.
func TestInboxIsTakenAsItWasRead(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	for range 3 {
		exec(t, conn, `INSERT INTO inbox (app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips)
			VALUES (1, 10, 'UTC', 'address', 64, '{a.example/}', array_fill(1, '{10}'), array_fill(20260629, '{10}'), array_fill(0, '{10}'),
			array_fill('::'::inet, '{10}'))`)
	}
	waiting := func() []string {
		return dbtest.Column[string](t, conn, `SELECT format('%s %s', number, counted) FROM inbox ORDER BY number`)
	}
	exec(t, conn, `SELECT take_from_inbox('{1,2}', '{0,0}', '{10,3}')`)
	require.Equal(t, []string{"2 3", "3 0"}, waiting())
	for _, take := range []string{
		`'{1}', '{0}', '{10}'`, `'{1}', '{0}', '{5}'`, `'{1,2}', '{0,0}', '{10,3}'`, `'{2}', '{0}', '{10}'`, `'{2}', '{0}', '{5}'`,
		`'{2}', '{2}', '{5}'`, `'{2}', '{4}', '{5}'`,
		`'{2}', '{3}', '{3}'`, `'{2}', '{3}', '{2}'`, `'{2}', '{3}', '{11}'`, `'{3,4}', '{0,0}', '{10,1}'`, `'{2,3}', '{2,0}', '{10,10}'`,
		`'{4}', '{0}', '{1}'`,
	} {
		_, err := conn.Exec(t.Context(), `SELECT take_from_inbox(`+take+`)`)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, take)
		require.Equal(t, "FF004", refused.Code, take)
		require.Equal(t, []string{"2 3", "3 0"}, waiting(), take)
	}
	require.Equal(t, int64(17), query[int64](t, conn, `SELECT inbox_behind(1)`))
	require.Equal(t, int64(10), query[int64](t, conn, `SELECT inbox_behind(1, 2)`))
	exec(t, conn, `SELECT take_from_inbox('{2,3}', '{3,0}', '{10,10}')`)
	require.Empty(t, waiting())
	require.Zero(t, query[int64](t, conn, `SELECT inbox_behind(1)`))
}
