package counter_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/record"
)

// An erasure holds the sites of its visitor, and looks there by keys alone: nobody waits for longer
// because visitors is large. FOOTFALL_ERASE_ROWS says how many rows it has (decision 26).
func TestLongestWaitBesideAnErasure(t *testing.T) {
	rows := os.Getenv("FOOTFALL_ERASE_ROWS")
	if rows == "" {
		t.Skip("it measures: set FOOTFALL_ERASE_ROWS to 3000000, say")
	}
	in := both.newInstance(t, counter.Options{Options: record.Options{MaxWait: time.Minute}})
	in.Count(t, "192.0.2.7", "http://big.example/0")
	in.Exec(t, `
		INSERT INTO pages (app_id, site_id, uri)
		SELECT app_id, id, 'big.example/p/' || n FROM pages, generate_series(1, `+rows+` / 30) AS n WHERE uri = 'big.example';
		ALTER TABLE visitors DROP CONSTRAINT visitors_rank_is_unique, DROP CONSTRAINT visitors_pkey;
		INSERT INTO visitors (page_id, rank, first_day, last_day, ip)
		SELECT p.id, v, 20260629, 20260629, '10.0.0.0'::inet + (p.id * 31 + v) % 1000003 FROM pages AS p, generate_series(1, 30) AS v WHERE `+
		`p.uri LIKE 'big.example/p/%';
		ALTER TABLE visitors ADD PRIMARY KEY (page_id, ip), ADD CONSTRAINT visitors_rank_is_unique UNIQUE (page_id, rank);
		INSERT INTO counters (page_id, hot, pv, uv) SELECT id, 30, 30, 30 FROM pages WHERE uri LIKE 'big.example/p/%'`)
	in.Exec(t, `VACUUM ANALYZE`)
	var mu sync.Mutex
	var longest time.Duration
	disperse := dbtest.Crowd(t, 20, func(client, i int) {
		began := time.Now()
		_, err := in.Visit(context.Background(), counter.Request{App: "demo", IP: fmt.Sprintf("192.0.2.%d", 100+client),
			URI: "http://big.example/0"})
		assert.NoError(t, err)
		mu.Lock()
		longest = max(longest, time.Since(began))
		mu.Unlock()
	})
	for round := range 5 {
		mu.Lock()
		alone := longest
		longest = 0
		mu.Unlock()
		began := time.Now()
		_, err := in.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.7")
		took := time.Since(began)
		require.NoError(t, err)
		for range 20 { // visits that waited have come to their end before these have
			in.Count(t, "192.0.2.7", "http://big.example/0")
		}
		mu.Lock()
		beside := longest
		longest = 0
		mu.Unlock()
		t.Logf("%s rows, round %d: longest wait %v beside an erasure of %v, %v before it", rows, round, beside, took, alone)
		assert.Less(t, beside, 150*time.Millisecond)
		for range 50 {
			in.Count(t, "192.0.2.7", "http://big.example/0")
		}
	}
	disperse()
}
