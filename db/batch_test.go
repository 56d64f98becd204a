package db_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

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

	// Ranks go by arrival, not by address; each target has its own.
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

// TestBatchAcrossTheTurn has one that commits.
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
		from := i * 5 // each begins elsewhere in the list
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

// Newcomers with and without a hint get their ranks in one order, that of arrival.
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

// A batch of nobody but newcomers comes out the same whether they are hinted or looked up.
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

// A probe needs room on the disk, not only a place in a page that is there.
func TestProbeNeedsRoom(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	dbtest.NeedSuperuser(t, conn)
	err := dbtest.Open(t, dbtest.With(t, url, "temp_file_limit", "8kB"), db.Options{}).Probe(t.Context())
	require.ErrorContains(t, err, "temp_file_limit")
	assertNothingCounted(t, conn)
	require.NoError(t, dbtest.Open(t, url, db.Options{}).Probe(t.Context()))
}
