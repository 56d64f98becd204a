package imports

import (
	"bytes"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/bench/generate"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
	"footfall/visit/country"
)

// The numbers by tag of a generated log equal the numbers from a script that shares no code with Footfall. FOOTFALL_LOG_VISITS
// makes the log longer: 400000 are a million lines.
func TestTagsOfALogEqualAScriptsTally(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.counter.Close()
	d.file("geoip", nil)
	d.file("geoip6", []byte("2001:db8::,2001:db8:7fff:ffff:ffff:ffff:ffff:ffff,DE\n2001:db8:8000::,"+
		"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff,FR\n"))
	countries, err := country.Open(d.folder+"/geoip", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	tables := dbtest.Open(t, d.url, db.Options{Writers: record.Connections()})
	d.counter, err = counter.Open(t.Context(), tables,
		counter.Options{Countries: countries, Options: record.Options{MaxWait: time.Minute, Filter: true, Memory: 8 << 20}})
	require.NoError(t, err)
	t.Cleanup(d.counter.Close)
	open, all, unlimited := "open", 0, "0"
	require.NoError(t, admin.NewAdmin(tables, nil).AddApp(t.Context(), "big", app.Settings{Access: &open, RetainDays: &all,
		MaxNewPages: &unlimited}))

	visits := dbtest.FromEnv(t, "FOOTFALL_LOG_VISITS", dbtest.LongOrShort(20_000, 3000))
	var log bytes.Buffer
	require.NoError(t, generate.WriteLog(&log, generate.Set{Visits: visits, Visitors: visits / 5, Pages: 20 + visits/40, Sites: 5, Days: 30}))
	script := exec.CommandContext(t.Context(), "awk", "-f", "tally.awk")
	script.Stdin = bytes.NewReader(log.Bytes())
	tally, err := script.Output()
	require.NoError(t, err)

	// Create all values first, each by another visitor of another site: the visit of a visitor who was at the site
	// before creates no values.
	first, values := []byte{}, map[string]bool{}
	for line := range strings.Lines(log.String()) {
		parts := strings.Split(line, `"`)
		_, query, _ := strings.Cut(strings.Fields(parts[1])[1], "?")
		if value := query + parts[3]; !values[value] {
			values[value] = true
			_, stamp, _ := strings.Cut(parts[0], " - - ")
			first = fmt.Appendf(first, "first.example 192.0.%d.%d - - %s\"GET /?%s HTTP/1.1\" 200 1 %q %q\n", len(values)/200, len(values)%200,
				stamp, query, parts[3], browser)
		}
	}
	o := d.options(d.file("first.log", first))
	o.App = "big"
	_, err = d.run(o)
	require.NoError(t, err)
	o.Files = []string{d.file("big.log", log.Bytes())}
	begin := time.Now()
	s, err := d.run(o)
	require.NoError(t, err)
	require.EqualValues(t, visits, s.Counted)
	t.Logf("%d lines imported in %v", s.Lines, time.Since(begin))
	_, err = d.run(o)
	require.NoError(t, err)

	d.counter.Close() // adds up the remaining visits
	want := strings.Split(strings.TrimSpace(string(tally)), "\n")
	is := dbtest.Column[string](t, dbtest.Connect(t, d.url), `
		SELECT concat_ws(' ', p.uri, g.day_id, t.name, t.value, g.pv, g.newcomers)
		FROM footfall.tag_days AS g JOIN footfall.tags AS t ON t.id = g.tag_id JOIN footfall.pages AS p ON p.id = g.page_id
		WHERE p.uri NOT LIKE 'first.example%'`)
	slices.Sort(want)
	slices.Sort(is)
	for i := range min(len(is), len(want)) {
		require.Equal(t, want[i], is[i])
	}
	require.Equal(t, len(want), len(is))
	t.Logf("%d rows of tag_days", len(is))
	d.prove()
}
