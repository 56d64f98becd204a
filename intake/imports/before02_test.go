package imports

import (
	"crypto/aes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// counted02 writes the rows that 0.2 wrote after it counted the first lines of a log. It adds no visits.
func (d *desk) counted02(server, told string, lines []string, many int) {
	d.t.Helper()
	conn := dbtest.Connect(d.t, d.url)
	key := dbtest.Column[[]byte](d.t, conn, `UPDATE footfall.apps SET log_key = coalesce(log_key, sha256('key')) WHERE name = $1
		RETURNING log_key`, d.app)[0]
	block, _ := aes.NewCipher(keyedSum(key, "lines"))
	whole, last, tail := sha256.Sum256([]byte(strings.Join(lines[:many], ""))), int64(0), []byte{}
	hours, times := []int32{}, []int64{}
	for _, line := range lines[:many] {
		at, _ := time.Parse("02/Jan/2006:15:04:05 -0700", line[strings.Index(line, "[")+1:strings.Index(line, "]")])
		times, last = append(times, at.Unix()), max(last, at.Unix())
		if hour := int32(at.Unix() / 3600); !slices.Contains(hours, hour) { //nolint:gosec // some hundred thousand
			hours = append(hours, hour)
		}
	}
	for i, line := range lines[:many] {
		var hash [aes.BlockSize]byte
		binary.BigEndian.PutUint64(hash[:], xxhash.Sum64String(strings.TrimSuffix(line, "\n")))
		block.Encrypt(hash[:], hash[:])
		tail = binary.BigEndian.AppendUint32(append(tail, hash[:8]...), uint32(last-times[i])) //nolint:gosec // some days
	}
	bytes := len(strings.Join(lines[:many], ""))
	_, err := conn.Exec(d.t.Context(), `WITH log AS (
			INSERT INTO footfall.logs (app_id, claimed, lines, hash, file, rules, counted, counted_hash, server, told, last_at, tail)
			SELECT a.id, $2, $3, $4, '', '', $2, $4, $5, $6, to_timestamp($7), $8 FROM footfall.apps AS a WHERE a.name = $1
			RETURNING app_id, id
		)
		INSERT INTO footfall.log_samples (app_id, log_id, hour, sample) SELECT app_id, id, unnest($9::integer[]), decode(repeat('00', 28), 'hex')
		FROM log`, d.app, bytes, many, keyedSum(key, "log", string(whole[:])), server, told, float64(last), tail, hours)
	require.NoError(d.t, err)
}

// Logs that 0.2 counted, completely or in part, continue without a flag, even under another name.
func TestLogsOf02GoOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := written(1, 0, 300), written(2, 10_000, 300)
	d.counted02("", "", a, 300)
	d.counted02("", "", b, 100)
	grown := d.lines("access.log", b...)
	rotated := d.file("access.log.1.gz", packGzip(t, []byte(strings.Join(a, ""))))
	s := d.imported(grown, rotated)
	require.Empty(t, s.Problems)
	require.Equal(t, 200, d.hot(), "without the lines that 0.2 counted, whose visits this test did not add")
	s = d.imported(d.lines("cat", slices.Concat(a, b)...), d.lines("tail", b[50:]...))
	require.Empty(t, s.Problems, "the lines are recorded")
	require.Zero(t, s.Counted)
}

// A file that begins with one counted log and continues with another one does not count that log twice.
func TestKnownBeginningsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, b := written(1, 0, 300), written(2, 400, 300)
	d.counted02("", "", a, 300)
	d.counted02("", "", b, 300)
	cat := slices.Concat(a, b, written(2, 900, 50))
	s := d.imported(d.lines("cat", cat...))
	require.Len(t, s.Problems, 1)
	require.Zero(t, d.hot())
	require.Contains(t, s.Problems[0], "add --after "+firstTime.Add(699*time.Second).Format(time.RFC3339))
	o := d.options(d.lines("cat", cat...))
	o.After = firstTime.Add(699 * time.Second)
	s, err := d.run(o)
	require.NoError(t, err)
	require.Empty(t, s.Problems)
	require.Equal(t, 50, d.hot())
	require.Zero(t, d.imported(d.lines("cat", cat...)).Counted)
}

// A file that 0.2 may have counted is refused. If 0.2 was configured so, its lines up to the last one that 0.2 counted are left
// out instead. In the last second, only the lines that 0.2 counted are left out.
func TestWindowsOfLogsOf02(t *testing.T) {
	t.Parallel()
	for _, told := range []string{"", "counted"} {
		d := newDesk(t)
		lines := append(written(1, 0, 100), asked("10.9.9.9", "/same-second", 99))
		lines = append(lines, written(1, 100, 50)...)
		d.counted02("web1", told, lines, 100)
		window := d.lines("window", lines[40:]...)
		o := d.options(window)
		o.Server = "web1"
		s, err := d.run(o)
		require.NoError(t, err)
		if told == "" {
			require.Len(t, s.Problems, 1)
			require.Contains(t, s.Problems[0], "add --after")
			require.Zero(t, d.hot())
			o.After = firstTime.Add(99 * time.Second)
			_, err = d.run(o)
			require.NoError(t, err)
		}
		require.Equal(t, 51, d.hot(), told)
		require.Zero(t, d.as("web1", window).Counted, "the next import needs no flag")
		require.EqualValues(t, 101, d.as("web2", d.lines("other", written(2, 0, 101)...)).Counted, "other servers are not closed")
	}
}

// An import of 0.2 that is still running cannot count any more, so its log does not matter to new imports.
func TestImportsOf02End(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := written(1, 0, 10)
	d.exec(`INSERT INTO footfall.logs (app_id, claimed, lines, hash, file, rules, counted)
		SELECT id, 900, 10, sha256('a'), '', '', 0 FROM footfall.apps WHERE name = 'blog'`)
	_, err := dbtest.Connect(t, d.url).Exec(t.Context(), `SELECT move_log(1, 1, 0, 0, 1, sha256('a'), 1, NULL, '', NULL)`)
	require.ErrorContains(t, err, "this version can no longer import")
	require.EqualValues(t, 10, d.imported(d.lines("access.log", lines...)).Counted)
}
