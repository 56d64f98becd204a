package db_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

// A session that is just reading which partitions there are, as it does first of all, would know
// nothing of one that is attached meanwhile, for good: PostgreSQL has told it already.
func TestEverySessionKnowsANewDay(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	d := dbtest.Open(t, m.url, db.Options{})
	for range dbtest.LongOrShort(40, 10) {
		day, sessions := m.take(t, func(day int32) {
			_, err := d.MakeDays(t.Context(), day)
			require.NoError(t, err)
		})
		for _, session := range sessions {
			assert.True(t, knows(t, session, day))
		}
	}
}

// A session that does know nothing of a day finds its visitors' visits there all the same.
func TestLateVisitsOfADayThatTheSessionMissed(t *testing.T) {
	t.Parallel()
	m := newMeeting(t)
	for range 20 {
		day, sessions := m.take(t, func(day int32) { exec(t, m.conn, `SELECT make_visits_day($1)`, day) })
		for _, session := range sessions {
			if !knows(t, session, day) {
				found := query[[]int32](t, session, `SELECT next_days FROM days_after('{1}', '{2}', '{192.0.2.1}', ARRAY[$1::integer],
					ARRAY[$1::integer])`, day)
				assert.Equal(t, []int32{day}, found)
				assert.True(t, knows(t, session, day))
				return
			}
		}
	}
	t.Skip("no session has missed a day")
}

// knows reports whether a session finds the visit of a day.
func knows(t *testing.T, session *pgx.Conn, day int32) bool {
	t.Helper()
	return query[int64](t, session, `SELECT count(*) FROM visits WHERE day_id = $1`, day) == 1
}

// meeting is a database in which sessions begin to read while a day is made.
type meeting struct {
	url  string
	conn *pgx.Conn
	next time.Time
}

func newMeeting(t *testing.T) *meeting {
	t.Helper()
	url, conn := fixture(t)
	// The more days there are, the longer reading takes.
	exec(t, conn, `SELECT make_visits_day(to_char(date '2019-01-01' + n, 'YYYYMMDD')::integer) FROM generate_series(0, 59) AS n`)
	return &meeting{url, conn, time.Date(2019, 3, 2, 0, 0, 0, 0, time.UTC)}
}

// take makes the next day, with a visit. It returns the sessions that have read meanwhile, but for
// those that read so long on a slow machine that they would not be waited for.
func (m *meeting) take(t *testing.T, makeDay func(day int32)) (day int32, read []*pgx.Conn) {
	t.Helper()
	day, m.next = visit.DayOf(m.next, time.UTC), m.next.AddDate(0, 0, 1)
	var sessions [6]*pgx.Conn
	var took [6]time.Duration
	var reading sync.WaitGroup
	for i := range sessions {
		sessions[i] = dbtest.Connect(t, m.url)
		reading.Go(func() {
			<-time.After(time.Duration(i) * time.Millisecond) // one of them meets it, mostly
			began := time.Now()
			_, err := sessions[i].Exec(t.Context(), `SELECT FROM visits`)
			assert.NoError(t, err)
			took[i] = time.Since(began)
		})
	}
	makeDay(day)
	exec(t, m.conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, $1, 0, '192.0.2.1')`, day)
	reading.Wait()
	for i, session := range sessions {
		if took[i] < time.Second/2 {
			read = append(read, session)
		}
	}
	return day, read
}
