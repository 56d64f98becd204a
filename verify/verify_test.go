package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/desk"
	"footfall/record"
	"footfall/retention"
	"footfall/verify"
	"footfall/visit"
)

// proven is a database with counted visits of three days and other changes.
type proven struct{ *desk.Desk }

// newProven counts new and returning visitors, an erased one, a deleted page, closed days, and an app without visits.
func newProven(t *testing.T) *proven {
	t.Helper()
	at := func(day int) time.Time { return time.Date(2026, 6, day, 12, 0, 0, 0, time.UTC) }
	p := on(t, dbtest.NewPrepared(t, "proven", at(28), func(d *db.DB) {
		admin, open := admin.NewAdmin(d, nil), "open"
		for _, name := range []string{"demo", "empty"} {
			require.NoError(t, admin.AddApp(t.Context(), name, app.Settings{Access: &open}))
		}
		for i, visits := range provenDays {
			c, err := counter.Open(t.Context(), d, counter.Options{Options: record.Options{MaxWait: time.Minute, Clock: desk.At(at(27 + i)).Now,
				Calm: true}})
			require.NoError(t, err)
			for _, v := range strings.Fields(visits) {
				_, err := c.Visit(t.Context(), visitOf(v))
				require.NoError(t, err)
			}
			c.Close()
		}
		_, err := admin.EraseVisitor(t.Context(), "demo", "192.0.2.2")
		require.NoError(t, err)
		require.NoError(t, admin.DeletePage(t.Context(), "demo", "http://a.example/old"))
		for _, day := range []int32{20260627, 20260628} {
			require.NoError(t, d.InTx(t.Context(),
				func(q *db.Queries) error { _, err := retention.New(q.Tx()).DayClose(t.Context(), day); return err }))
		}
	}))
	// Imported history, even on a day that was counted here, is not part of the proof.
	p.Exec(t, `INSERT INTO history_imports (app_id, source, files) SELECT id, 'umami', '{a}' FROM apps WHERE name = 'demo'`)
	p.Exec(t, `INSERT INTO history_days (app_id, import_id, day_id, site)
		SELECT i.app_id, i.id, d, 'a.example' FROM history_imports AS i, unnest(ARRAY[20260626, 20260628]) AS d`)
	p.Exec(t, `INSERT INTO history (day, uri, page_views, visitors, new_visitors)
		SELECT d.id, u, 9, 4, 4 FROM history_days AS d, unnest('{a.example,a.example/home}'::text[]) AS u`)
	p.Exec(t, `UPDATE apps SET visitor = 'id', secret_id = '\x0102030405060708' WHERE name = 'empty'`)
	p.Exec(t, `INSERT INTO tags (app_id, name, value) SELECT a.id, v.name, v.value
		FROM apps AS a, (VALUES ('age', '25-34'), ('age', '35-44'), ('plan', 'pro')) AS v (name, value) WHERE a.name = 'empty'`)
	p.Exec(t, `WITH open AS (SELECT people_period() AS period, a.id, (SELECT array_agg(t.id) FROM tags AS t WHERE t.app_id = a.id
		AND t.value <> '35-44') AS tags FROM apps AS a WHERE name = 'empty')
		INSERT INTO people (app_id, period, height, id, person, tag_ids)
		SELECT o.id, v.period, height, v.id, person, CASE WHEN tagged THEN o.tags END FROM open AS o CROSS JOIN LATERAL (VALUES
			(o.period, 2, '`+person+`'::inet, NULL::inet, true), (o.period, 1, '`+alias+`', '`+person+`', false), (o.period, 0, '`+moved+`', '`+
		alias+`', false),
			(1 - o.period, 0, 'fd00::4', '`+person+`', false), (1 - o.period, 1, 'fd00::5', NULL, false), (1 - o.period, 0, '`+moved+
		`', 'fd00::5', false)) AS v (period, height, id, person, tagged)`)
	return p
}

// Ids of the app named empty.
const (
	person = "fd00::1"
	alias  = "fd00::2" // an id of the person
	moved  = "fd00::3" // leads to alias, and used to lead to another id
)

// provenDays are the visits of the 27th to the 29th, as pairs of visitor and page.
var provenDays = []string{
	"1a/home 1a/home 2a/home 3a/home 1a/about 2a/old 1b/x 5b/x",
	"1a/home 2a/home 4a/home 4a/old 5b/x 5b/y",
	"1a/home 1a/about 3a/home 6a/home 6a/home 5b/x 7b/x",
}

// provenModel returns the model of these visits.
func provenModel() *desk.Model {
	model := &desk.Model{}
	for i, visits := range provenDays {
		for _, v := range strings.Fields(visits) {
			page := strings.Replace(v[1:2]+".example"+v[2:], "/old", "/(deleted)", 1)
			model.Counted(desk.Seen{Visitor: v[:1], Page: page, Day: int32(20260627 + i)}) //nolint:gosec // small
		}
	}
	return model
}

// on returns a database on the last of the days.
func on(t *testing.T, url string) *proven {
	t.Helper()
	return &proven{desk.On(t, url, desk.Options{Began: time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)})}
}

// eachDamage runs a test on each damage, which is repaired before the next.
func (p *proven) eachDamage(t *testing.T, test func(run func(name, damage string, look func(t *testing.T, proof *verify.Proof)))) {
	t.Helper()
	save, mend := `CREATE SCHEMA sound; `, ``
	for _, table := range []string{"counters", "visitors", "erased_visitors", "visits", "erased_visits", "days", "open_returns",
		"packed_returns", "sketches", "tops", "tag_days", "tag_news", "closed_days", "visits_kept", "people", "here", "history_days", "history",
		"log_hours", "counted_lines"} {
		save += fmt.Sprintf(`CREATE TABLE sound.%[1]s AS TABLE %[1]s; `, table)
		mend += fmt.Sprintf(`DELETE FROM %[1]s; INSERT INTO %[1]s OVERRIDING SYSTEM VALUE SELECT * FROM sound.%[1]s; `, table)
	}
	p.Exec(t, save)
	test(func(name, damage string, look func(t *testing.T, proof *verify.Proof)) {
		t.Run(name, func(t *testing.T) {
			p.Exec(t, damage)
			look(t, p.verify(t, verify.Options{Jobs: 1}))
			p.Exec(t, mend)
		})
	})
	assert.Empty(t, violations(p.verify(t, verify.Options{})), "all was mended")
}

// visitOf returns a visit such as 1a/home: visitor 1, on page /home of site a. Each visit has the referrer east or
// west.
func visitOf(v string) counter.Request {
	from := []string{"east", "west"}[v[0]%2]
	return counter.Request{App: "demo", IP: "192.0.2." + v[:1], URI: fmt.Sprintf("http://%s.example%s", v[1:2], v[2:]),
		Referrer: "https://" + from + ".example/"}
}

func (p *proven) verify(t *testing.T, o verify.Options) *verify.Proof {
	t.Helper()
	if o.Jobs == 0 {
		o.Jobs = 2
	}
	proof, err := verify.Run(t.Context(), p.DB, o)
	require.NoError(t, err)
	return proof
}

// inPieces is so short that each snapshot covers the minimum of rows: one target.
const inPieces = time.Nanosecond

// violations lists the violations in a proof. Each line names the promise and the offender.
func violations(proof *verify.Proof) (lines []string) {
	for _, u := range proof.Promises {
		for _, o := range u.Offenders {
			lines = append(lines, fmt.Sprintf("%s: %s %d %s", u.Name, o.Target, o.Day, o.Problem))
		}
	}
	return lines
}

func TestVerifyFindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"as counted":    countedLine,
		"a day dropped": `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260628 FROM apps; SELECT drop_visits_day(20260627)`,
		"a day on which it is not known of one with what they came": `UPDATE visits SET tags = NULL WHERE ip = '192.0.2.1' AND day_id = 20260629;
			UPDATE tag_days SET pv = pv - 1 WHERE day_id = 20260629 AND tag_id = ` + west + ` AND page_id = ` + siteA,
		"rows being deleted": `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260629 FROM apps; DELETE FROM visits
			WHERE day_id = 20260628 AND ip = '192.0.2.1'`,
		"rows of one app deleted": `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260629 FROM apps WHERE name = 'demo';
			DELETE FROM visits WHERE day_id < 20260629`,
		"tops forgotten": `DELETE FROM tops`,
		"a visitor forgotten with their days": `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260629 FROM apps; DELETE FROM visits
			WHERE day_id < 20260629;
			WITH gone AS (DELETE FROM visitors WHERE ip = '192.0.2.4' RETURNING page_id, rank)
			SELECT erase_ranks(array_agg(page_id), array_agg(rank)) FROM gone`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProven(t)
			p.Exec(t, change)
			proof := p.verify(t, verify.Options{})
			assert.Empty(t, violations(proof))
			assert.Zero(t, proof.Violations)
			assert.EqualValues(t, 7, proof.Targets)
			if change == countedLine {
				assert.Equal(t, provenModel().Totals(), p.TotalsOf(t))
				assert.EqualValues(t, 3, proof.Erased, "the visitor at the site and both pages")
				assert.EqualValues(t, 20, proof.Visitors)
				assert.EqualValues(t, 28, proof.Visits)
				assert.EqualValues(t, 17, proof.Days)
				assert.Zero(t, proof.OlderDays)
				for _, u := range proof.Promises {
					assert.Positive(t, u.Checked, u.Name)
				}
			}
		})
	}
}

const (
	siteA    = "(SELECT id FROM pages WHERE uri = 'a.example')"
	homeA    = "(SELECT id FROM pages WHERE uri = 'a.example/home')"
	pageX    = "(SELECT id FROM pages WHERE uri = 'b.example/x')"
	deletedA = "(SELECT id FROM pages WHERE uri = 'a.example/(deleted)')"
	east     = "(SELECT id FROM tags WHERE value = 'east.example')"
	west     = "(SELECT id FROM tags WHERE value = 'west.example')"
	ofEmpty  = "(people of app 2)"
)

// Verify finds each kind of damage, and reports the broken promise and the target.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	p.Exec(t, `ALTER TABLE visitors DROP CONSTRAINT visitors_rank_is_unique;
		ALTER TABLE counters DROP CONSTRAINT counters_hot_pv_uv_descend;
		ALTER TABLE days DROP CONSTRAINT days_numbers_descend;
		ALTER TABLE people DROP CONSTRAINT people_lead_to_others, DROP CONSTRAINT people_height_range, DROP CONSTRAINT people_tags_of_persons,
		DROP CONSTRAINT people_tags_are_some`)
	p.eachDamage(t, func(run func(name, damage string, look func(t *testing.T, proof *verify.Proof))) {
		for _, c := range []struct{ name, damage, promise, target, problem string }{
			{"uv above pv", `UPDATE counters SET uv = pv + 1 WHERE page_id = ` + homeA, "order", "a.example/home", "pv: 9"},
			{"pv above hot", `UPDATE counters SET pv = hot + 1 WHERE page_id = ` + homeA, "order", "a.example/home", "pv: 12"},

			{"a rank twice", `UPDATE visitors SET rank = 1 WHERE rank = 3 AND page_id = ` + homeA, "ranks", "a.example/home",
				"ranks taken: 4, but uv: 5"},
			{"two ranks twice", `UPDATE visitors SET rank = CASE rank WHEN 3 THEN 1 ELSE 5 END WHERE rank IN (3, 4) AND page_id = ` + homeA,
				"ranks", "a.example/home", "ranks taken: 3, but uv: 5"},
			{"a gap", `UPDATE visitors SET rank = 9 WHERE rank = 3 AND page_id = ` + homeA, "ranks", "a.example/home",
				"the last rank: 9, but uv: 5"},
			{"an erased rank that a visitor has", `UPDATE erased_visitors SET place = 2 WHERE page_id = ` + homeA, "ranks", "a.example/home",
				"ranks taken: 4"},
			{"an erased rank in another part", `UPDATE erased_visitors SET part = 1 WHERE page_id = ` + homeA, "ranks", "a.example/home",
				"the last rank: 258, but uv: 5"},
			{"an erased rank too many", `SELECT erase_ranks(ARRAY[` + homeA + `], '{6}')`, "visitors", "a.example/home",
				"uv: 5, but rows of visitors: 6"},
			{"erased ranks moved by a bit", `DELETE FROM visitors WHERE rank = 3 AND page_id = ` + homeA + `; SELECT erase_ranks(ARRAY[` + homeA +
				`], '{3}');
				UPDATE erased_visitors SET places = places >> 1 WHERE page_id = ` + homeA, "ranks", "a.example/home", "ranks taken: 4, but uv: 5"},
			{"an erased rank lost", `DELETE FROM erased_visitors WHERE page_id = ` + homeA, "visitors", "a.example/home",
				"uv: 5, but rows of visitors: 4"},

			{"uv too high", `UPDATE counters SET uv = uv + 1 WHERE page_id = ` + homeA, "visitors", "a.example/home",
				"uv: 6, but rows of visitors: 5"},
			{"uv too low", `UPDATE counters SET uv = uv - 1 WHERE page_id = ` + homeA, "visitors", "a.example/home", "uv: 4"},
			{"a visitor lost", `DELETE FROM visitors WHERE ip = '192.0.2.1' AND page_id = ` + homeA, "visitors", "a.example/home",
				"uv: 5, but rows of visitors: 4"},
			{"counters lost", `DELETE FROM counters WHERE page_id = ` + homeA, "visitors", "a.example/home", "uv: 0, but rows of visitors: 5"},

			{"hot of a site", `UPDATE counters SET hot = hot + 1 WHERE page_id = ` + siteA, "sites", "a.example",
				"hot: 16, but the sum over its pages: 15"},
			{"hot of a page", `UPDATE counters SET hot = hot + 1 WHERE page_id = ` + homeA, "sites", "a.example",
				"hot: 15, but the sum over its pages: 16"},
			{"pv of a site below a page's", `UPDATE counters SET pv = 8 WHERE page_id = ` + siteA, "sites", "a.example", "pv: 8, but"},
			{"pv of a site above its pages'", `UPDATE counters SET pv = 14 WHERE page_id = ` + siteA, "sites", "a.example", "pv: 14, but"},
			{"uv of a site below a page's", `UPDATE counters SET uv = 4 WHERE page_id = ` + siteA, "sites", "a.example", "uv: 4, but"},
			{"uv of a site above its pages'", `UPDATE counters SET uv = 9 WHERE page_id = ` + siteA, "sites", "a.example", "uv: 9, but"},

			{"pv too high", `UPDATE counters SET pv = pv + 1 WHERE page_id = ` + homeA, "days", "a.example/home",
				"the sum of days' pv: 9, but pv: 10"},
			{"pv too low", `UPDATE counters SET pv = pv - 1 WHERE page_id = ` + homeA, "days", "a.example/home",
				"the sum of days' pv: 9, but pv: 8"},
			{"hot of a day", `UPDATE days SET hot = hot + 1 WHERE day_id = 20260628 AND page_id = ` + homeA, "days", "a.example/home",
				"the sum of days' hot: 12, but hot: 11"},
			{"uv of a day too high", `UPDATE days SET new_visitors = new_visitors + 1 WHERE day_id = 20260628 AND page_id = ` + homeA, "days",
				"a.example/home", "the sum of days' new visitors: 6, but uv: 5"},
			{"history among the days", `INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
					SELECT p.id, p.site_id, d.day_id, h.page_views, h.visitors, h.new_visitors
					FROM history AS h JOIN history_days AS d ON d.id = h.day AND d.day_id = 20260626
					JOIN pages AS p ON p.app_id = d.app_id AND p.uri = h.uri;
				UPDATE counters SET hot = hot + 9, pv = pv + 4, uv = uv + 4 WHERE page_id IN (` + siteA + `, ` + homeA + `)`, "visitors",
				"a.example/home", "uv: 9, but rows of visitors: 5"},
			{"history added to a day", `UPDATE days SET hot = hot + 9, pv = pv + 4 WHERE day_id = 20260628 AND page_id IN (` + siteA + `, ` + homeA +
				`); UPDATE counters SET hot = hot + 9, pv = pv + 4 WHERE page_id IN (` + siteA + `, ` + homeA + `)`, "kept days", "a.example/home",
				"pv: 7, but rows of visits: 3"},
			{"a day lost", `DELETE FROM days WHERE day_id = 20260628 AND page_id = ` + homeA, "days", "a.example/home",
				"the sum of days' pv: 6, but pv: 9"},

			{"uv of a day too low", `UPDATE days SET new_visitors = new_visitors - 1 WHERE day_id = 20260629 AND page_id = ` + homeA,
				"new or returned", "a.example/home", "new and returning visitors: 2, but pv: 3"},
			{"returns too many", `UPDATE open_returns SET visitors = visitors + 1 WHERE day_id = 20260629 AND page_id = ` + pageX, "new or returned",
				"b.example/x", "3, but pv: 2"},
			{"returns lost", `DELETE FROM open_returns WHERE day_id = 20260629 AND page_id = ` + pageX, "new or returned", "b.example/x",
				"1, but pv: 2"},
			{"returns of no day", `INSERT INTO open_returns VALUES (` + pageX + `, 20260630, 20260629, 1)`, "new or returned", "b.example/x",
				"1, but pv: 0"},

			{"hot of a site's day", `UPDATE days SET hot = hot + 1 WHERE day_id = 20260628 AND page_id = ` + siteA, "site days", "a.example",
				"hot: 5, but the sum over its pages: 4"},
			{"pv of a site's day too low", `UPDATE days SET pv = 1 WHERE day_id = 20260628 AND page_id = ` + siteA, "site days", "a.example",
				"pv: 1, but"},
			{"pv of a site's day too high", `UPDATE days SET pv = 7 WHERE day_id = 20260628 AND page_id = ` + siteA, "site days", "a.example",
				"pv: 7, but"},

			{"a visit's row lost", `DELETE FROM visits WHERE ip = '192.0.2.1' AND day_id = 20260628 AND page_id = ` + homeA, "kept days",
				"a.example/home", "pv: 3, but rows of visits: 2"},
			{"a visit's row too many", `INSERT INTO visits VALUES (` + homeA + `, 20260628, 0, '192.0.2.6')`, "kept days", "a.example/home",
				"pv: 3, but rows of visits: 4"},
			{"pv of a day", `UPDATE days SET pv = pv - 1 WHERE day_id = 20260628 AND page_id = ` + homeA, "kept days", "a.example/home",
				"pv: 2, but rows of visits: 3"},
			{"an erased day lost", `DELETE FROM erased_visits WHERE day_id = 20260628 AND page_id = ` + homeA, "kept days", "a.example/home",
				"pv: 3, but rows of visits: 2"},
			{"an erased day too many", `UPDATE erased_visits SET visitors = 2 WHERE day_id = 20260628 AND page_id = ` + homeA, "kept days",
				"a.example/home", "pv: 3, but rows of visits: 4"},
			{"a day that has rows alone", `DELETE FROM days WHERE day_id = 20260627 AND page_id = ` + pageX, "kept days", "b.example/x",
				"pv: 0, but rows of visits: 2"},
			{"a day of a deleted page", `DELETE FROM visits WHERE page_id = ` + deletedA, "kept days", "a.example/(deleted)",
				"pv: 1, but rows of visits: 0"},

			{"new visitors moved to another day",
				`UPDATE days SET new_visitors = CASE day_id WHEN 20260627 THEN 1 ELSE 2 END WHERE day_id IN (20260627, 20260629) AND page_id = ` +
					pageX,
				"new visitors", "b.example/x", "new visitors: 1, but visitors whose first day it is: 2"},
			{"a first day too late", `UPDATE visitors SET first_day = 20260628 WHERE ip = '192.0.2.5' AND page_id = ` + pageX,
				"new visitors", "b.example/x", "new visitors: 2, but visitors whose first day it is: 1"},
			{"a first visit given to somebody else", `UPDATE visits SET ip = '192.0.2.3' WHERE ip = '192.0.2.4' AND page_id = ` + homeA,
				"new visitors", "a.example/home",
				"rows of visits of the visitors whose first day it is: 0, but number of these visitors: 1"},
			{"new visitors of a deleted page", `UPDATE days SET new_visitors = 1 WHERE day_id = 20260628 AND page_id = ` + deletedA, "new visitors",
				"a.example/(deleted)", "new visitors: 1"},

			{"another previous day", `UPDATE open_returns SET previous_day = 20260627 WHERE day_id = 20260629 AND page_id = ` + pageX,
				"returns", "b.example/x", "returning visitors: 0, but rows of visits with that previous day: 1 (previous day 20260628)"},
			{"a previous day of nobody", `UPDATE open_returns SET previous_day = 20260601 WHERE day_id = 20260629 AND page_id = ` + pageX,
				"returns", "b.example/x", "returning visitors: 0, but rows of visits with that previous day: 1"},

			{"a row's previous day", `UPDATE visits SET previous_day = 20260601 WHERE previous_day = 20260628 AND day_id = 20260629 AND page_id = ` +
				pageX,
				"returns", "b.example/x", "returning visitors: 1, but rows of visits with that previous day: 0 (previous day 20260628)"},
			{"a previous day in rows and returns",
				`UPDATE visits SET previous_day = 20260601 WHERE previous_day = 20260628 AND day_id = 20260629 AND page_id = ` + pageX + `;
				UPDATE open_returns SET previous_day = 20260601 WHERE previous_day = 20260628 AND day_id = 20260629 AND page_id = ` + pageX,
				"returns", "b.example/x", "rows of visits whose previous day is not the day of the row before: 1"},
			{"an erased visitor's previous day", `UPDATE erased_visits SET previous_day = 20260601 WHERE previous_day > 0 AND page_id = ` + homeA,
				"returns", "a.example/home", "rows of visits with that previous day"},
			{"an erased newcomer", `UPDATE erased_visits SET previous_day = 20260601 WHERE previous_day = 0 AND page_id = ` + homeA,
				"new visitors", "a.example/home", "but visitors whose first day it is"},
			{"returns of a deleted page", `INSERT INTO open_returns VALUES (` + deletedA + `, 20260628, 20260627, 1)`,
				"returns", "a.example/(deleted)", "returning visitors: 1, but rows of visits with that previous day: 0"},
			{"a previous day of a deleted page", `UPDATE visits SET previous_day = 20260627 WHERE page_id = ` + deletedA,
				"returns", "a.example/(deleted)", "returning visitors: 0, but rows of visits with that previous day: 1"},

			{"visits of nobody", `DELETE FROM visitors WHERE ip = '192.0.2.7' AND page_id = ` + pageX, "visits", "b.example/x",
				"rows of visits without a visitor: 1"},
			{"a visit before the first day", `UPDATE visitors SET first_day = 20260628 WHERE ip = '192.0.2.5' AND page_id = ` + pageX, "visits",
				"b.example/x", "rows of visits without a visitor: 1"},
			{"a visit after the last day", `UPDATE visitors SET last_day = 20260628 WHERE ip = '192.0.2.5' AND page_id = ` + pageX, "visits",
				"b.example/x", "rows of visits without a visitor: 1"},
			{"a last day without a visit", `UPDATE visitors SET last_day = 20260630 WHERE ip = '192.0.2.5' AND page_id = ` + pageX,
				"visits", "b.example/x", "rows of visits on the last day of their visitor: 2, but number of these visitors: 3"},

			{"a sketch lost", `DELETE FROM sketches WHERE day_id = 20260628 AND page_id = ` + homeA, "sketches", "a.example/home", "sketches: 0"},
			{"a sketch that lacks a visitor", `UPDATE sketches SET entries = entries[:1] WHERE day_id = 20260627 AND page_id = ` + pageX,
				"registers", "b.example/x", "wrong registers of the sketch: 1"},
			{"a sketch of a visitor who did not come", `UPDATE sketches SET entries = entries || 262143 WHERE day_id = 20260627 AND page_id = ` +
				pageX, "registers", "b.example/x", "wrong registers of the sketch: 1"},
			{"a register too low", `UPDATE sketches SET entries[1] = entries[1] / 64 * 64 WHERE day_id = 20260627 AND page_id = ` + pageX,
				"registers", "b.example/x", "wrong registers of the sketch: 1"},
			{"a sketch out of order", `UPDATE sketches SET entries = ARRAY[entries[2], entries[1]] WHERE day_id = 20260627 AND page_id = ` + pageX,
				"registers", "b.example/x", "wrong registers of the sketch: 1"},
			{"a sketch that has more than those who were erased",
				`UPDATE sketches SET entries = entries || '{262079,262143}' WHERE day_id = 20260628 AND page_id = ` + homeA, "registers",
				"a.example/home", "wrong registers of the sketch: 1"},
			{"a wrong number in tops", `UPDATE tops SET numbers[1] = 99 WHERE day_id = 20260627 AND by = 'hot' AND site_id = (SELECT id FROM pages
				WHERE uri = 'b.example')`,
				"top pages", "b.example", "correct places in the list of top pages: 0, but its length: 1"},
			{"a wrong page in tops", `UPDATE tops SET page_ids[1] = 99 WHERE day_id = 20260627 AND by = 'uv' AND site_id = (SELECT id FROM pages
				WHERE uri = 'b.example')`, "top pages", "b.example", ": 0, but its length: 1"},
			{"tops too long", `UPDATE tops SET page_ids = page_ids || 99::bigint, numbers = numbers || 1::bigint WHERE day_id = 20260627
				AND by = 'uv' AND site_id = (SELECT id FROM pages WHERE uri = 'b.example')`,
				"top pages", "b.example", ": 0, but its length: 1"},
			{"a wrong number in tops of all sites", `UPDATE tops SET numbers[2] = 99 WHERE day_id = 20260628 AND by = 'pv' AND site_id = 0`,
				"top pages", "(all sites)", "correct places in the list of top pages: 3, but its length: 4"},
			{"tops of all sites too short", `UPDATE tops SET page_ids = page_ids[:1], numbers = numbers[:1] WHERE day_id = 20260628 AND by = 'hot'
				AND site_id = 0`,
				"top pages", "(all sites)", "correct places in the list of top pages: 1, but its length: 4"},

			{"a tag too often", `UPDATE tag_days SET pv = pv + 9 WHERE day_id = 20260628 AND page_id = ` + siteA, "tags", "a.example",
				"the sum over the values of a tag: 12, but pv: 0 to 3"},
			{"a newcomer too many", `UPDATE tag_days SET newcomers = pv WHERE page_id = ` + siteA, "tags", "a.example",
				"newcomers of all values of a tag up to this day: 9, but new visitors up to this day: 0 to 5"},
			{"a newcomer on a day before the first visit", `UPDATE tag_days SET day_id = 20260626 WHERE day_id = 20260627 AND newcomers > 0
				AND page_id = ` + homeA, "tags", "a.example/home", "up to this day: 3, but new visitors up to this day: 0"},
			{"newcomers of a page's day above its new visitors", `UPDATE tag_days SET newcomers = pv WHERE day_id = 20260628 AND page_id = ` + homeA,
				"tags", "a.example/home", "newcomers of all values of a tag up to this day: 6, but new visitors up to this day: 0 to 4"},
			{"a page's tag too often", `UPDATE tag_days SET pv = pv + 1 WHERE day_id = 20260628 AND tag_id = ` + east + ` AND page_id = ` + homeA,
				"tags", "a.example/home", "the sum over the values of a tag: 4, but pv: 0 to 3"},
			{"a day of tags alone", `UPDATE tag_days SET day_id = 20260625 WHERE day_id = 20260628 AND page_id = ` + siteA, "tags", "a.example",
				"the sum over the values of a tag: 3, but pv: 0"},
			{"a tag of another app", `INSERT INTO tags (app_id, name, value) SELECT id, 'hour', '12' FROM apps WHERE name = 'empty';
				UPDATE tag_days SET tag_id = (SELECT max(id) FROM tags) WHERE day_id = 20260628 AND tag_id = ` + east +
				` AND page_id = ` + siteA, "tags", "a.example",
				"tags of another app, or of no app: 1"},
			{"tags that are lost", `UPDATE tag_days SET tag_id = 999 WHERE day_id = 20260628 AND tag_id = ` + east + ` AND page_id = ` + siteA,
				"tags", "a.example",
				"tags of another app, or of no app: 1"},
			{"tags of no page", `INSERT INTO tag_days (page_id, pv, newcomers, day_id, tag_id) VALUES (999, 1, 1, 20260628, 1)`, "tags",
				"(no page has the number 999)", "newcomers of all values of a tag up to this day: 1, but new visitors up to this day: 0"},

			{"a source's sum under another source", `UPDATE tag_days SET pv = pv + CASE tag_id WHEN ` + west + ` THEN -1 ELSE 1 END
				WHERE day_id = 20260629 AND tag_id IN (` + west + `, ` + east + `) AND page_id = ` + siteA, "tag rows", "a.example",
				"the sum: 1, but rows of visits with the tag: 2"},
			{"a sum one short", `UPDATE tag_days SET pv = pv - 1 WHERE day_id = 20260629 AND tag_id = ` + west + ` AND page_id = ` + siteA,
				"tag rows",
				"a.example", "the sum: 1, but rows of visits with the tag: 2"},
			{"a sum one too many", `UPDATE tag_days SET pv = pv + 1 WHERE day_id = 20260629 AND tag_id = ` + west + ` AND page_id = ` + siteA,
				"tag rows",
				"a.example", "the sum: 3, but rows of visits with the tag: 2"},
			{"a sum with more than those who were erased", `UPDATE tag_days SET pv = pv + 1 WHERE day_id = 20260628 AND tag_id = ` + east +
				` AND page_id = ` + siteA, "tag rows", "a.example", "the sum: 3, but rows of visits with the tag: 1 to 2"},
			{"another source in a row", `UPDATE visits SET tags = array_replace(tags, ` + west + `, ` + east + `) WHERE ip = '192.0.2.1'
				AND day_id = 20260629 AND page_id = ` + siteA, "tag rows", "a.example", "the sum: 1, but rows of visits with the tag: 2"},
			{"a row without its tags", `UPDATE visits SET tags = '{}' WHERE ip = '192.0.2.1' AND day_id = 20260629 AND page_id = ` + siteA,
				"tag rows", "a.example", "the sum: 2, but rows of visits with the tag: 1"},
			{"a sum too high on a day with a row whose tags are null", `UPDATE visits SET tags = NULL WHERE ip = '192.0.2.1' AND day_id = 20260629
				AND page_id = ` + siteA + `; UPDATE tag_days SET pv = pv + 1 WHERE day_id = 20260629 AND tag_id = ` + west + ` AND page_id = ` + siteA,
				"tag rows", "a.example", "the sum: 3, but rows of visits with the tag: 1 to 2"},
			{"a sum too low on such a day", `UPDATE visits SET tags = NULL WHERE ip = '192.0.2.6' AND day_id = 20260629
				AND page_id = ` + siteA + `; UPDATE tag_days SET pv = pv - 1 WHERE day_id = 20260629 AND tag_id = ` + west + ` AND page_id = ` + siteA,
				"tag rows", "a.example", "the sum: 1, but rows of visits with the tag: 2"},
			{"a newcomer too few", `UPDATE tag_days SET newcomers = newcomers - 1 WHERE day_id = 20260629 AND tag_id = ` + east + ` AND page_id = ` +
				siteA, "tag rows", "a.example", "newcomers: 0, but rows of visits with the tag and without a previous day: 1"},
			{"a newcomer with another source", `UPDATE tag_days SET newcomers = CASE tag_id WHEN ` + east + ` THEN 0 ELSE 1 END
				WHERE day_id = 20260629 AND tag_id IN (` + east + `, ` + west + `) AND page_id = ` + siteA, "tag rows", "a.example",
				"newcomers: 1, but rows of visits with the tag and without a previous day: 0"},
			{"a newcomer of an hour too few", `UPDATE tag_days SET newcomers = newcomers - 1 WHERE day_id = 20260629 AND page_id = ` + siteA + `
				AND tag_id IN (SELECT id FROM tags WHERE name = 'hour')`, "hours", "a.example", "newcomers of all hours: 4, but uv: 5"},

			{"a day of tags lost", `DELETE FROM tag_days WHERE day_id = 20260628 AND page_id = ` + siteA, "hours", "a.example",
				"the sum over the hours: 0, but pv: 3"},
			{"hours of a day short", `UPDATE tag_days SET pv = pv - 1, newcomers = 0 WHERE pv = 3 AND day_id = 20260628 AND page_id = ` + siteA,
				"hours",
				"a.example", "the sum over the hours: 2, but pv: 3"},
			{"news of tags lost", `DELETE FROM tag_days; INSERT INTO tag_news (tags) VALUES ('\x')`, "hours", "a.example",
				"the sum over the hours: 0, but pv: 3"},
			{"news of tags damaged", `DELETE FROM tag_days; INSERT INTO tag_news (tags) VALUES ('\xff')`, "hours", "a.example",
				"the sum over the hours: 0, but pv: 3"},

			{"a day of a visitor that the site lacks",
				`UPDATE visits SET ip = '192.0.2.8' WHERE ip = '192.0.2.4' AND day_id = 20260628 AND page_id = ` + homeA,
				"site visitors", "a.example", "visitors of its pages who are missing at the site on this day: 1"},
			{"a visitor of a site lost on a day", `UPDATE visits SET ip = '192.0.2.8' WHERE ip = '192.0.2.1' AND day_id = 20260628 AND page_id = ` +
				siteA,
				"site visitors", "a.example", "visitors of its pages who are missing at the site on this day: 1"},
			{"an old visitor whom the site lacks",
				`INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260629 FROM apps; DELETE FROM visits WHERE day_id < 20260629;
				UPDATE visitors SET ip = '192.0.2.8' WHERE ip = '192.0.2.4' AND page_id = ` + siteA, "belonging", "a.example/home",
				"visitors of its pages who are missing at the site: 1"},
			{"rows kept from a day to come", `INSERT INTO visits_kept (app_id, from_day) SELECT id, latest_day(1) FROM apps
				WHERE name = 'demo'; DELETE FROM visits`,
				"no day ahead", "(all sites)", "the day from which visits are kept: "},
			{"a day closed ahead", `INSERT INTO closed_days (day_id) VALUES (latest_day(1))`, "no day ahead", "(all apps)", "a closed day: "},

			{"a circle", `UPDATE people SET tag_ids = NULL, person = '` + moved + `' WHERE id = '` + person + `'`, "people", ofEmpty,
				"ids that do not lead to an id with a greater height: 1"},
			{"an id that leads to itself", `UPDATE people SET person = id WHERE id = 'fd00::4'`, "people", ofEmpty,
				"ids that do not lead to an id with a greater height: 1"},
			{"a height too low", `UPDATE people SET height = 1 WHERE id = '` + person + `'`, "people", ofEmpty,
				"ids that do not lead to an id with a greater height: 1"},
			{"a height that an id had before", `UPDATE people SET height = 3 WHERE id = '` + moved + `'`, "people", ofEmpty,
				"ids that do not lead to an id with a greater height: 1"},
			{"a person lost", `DELETE FROM people WHERE id = '` + person + `'`, "people", ofEmpty, "ids that do not lead to an id with a greater height: 1"},
			{"five steps", `UPDATE people SET height = height + 3 WHERE id IN ('` + person + `', '` + alias + `', '` + moved + `')`, "people",
				ofEmpty, "rows that are neither an id that leads to another one nor a person: 2"},
			{"a height below 0", `UPDATE people SET height = -1 WHERE id = 'fd00::4'`, "people", ofEmpty, "nor a person: 1"},
			{"tags of an id that leads to a person", `UPDATE people SET tag_ids = (SELECT p.tag_ids FROM people AS p WHERE p.id = '` + person +
				`') WHERE id = '` + alias + `'`, "people", ofEmpty, "nor a person: 1"},
			{"a list of no tags", `UPDATE people SET tag_ids = '{}' WHERE id = '` + person + `'`, "people", ofEmpty, "nor a person: 1"},
			{"a person's tag that is lost", `UPDATE people SET tag_ids = tag_ids || 999 WHERE id = '` + person + `'`, "people", ofEmpty,
				"persons with tags that the app does not have, or with two tags of one name: 1"},
			{"a person's tag of another app", `UPDATE people SET tag_ids = (SELECT array_agg(id) FROM tags WHERE app_id <> people.app_id)
				WHERE id = '` + person + `'`, "people", ofEmpty, "persons with tags that the app does not have"},
			{"two values of a person's tag", `UPDATE people SET tag_ids = (SELECT array_agg(id) FROM tags WHERE app_id = people.app_id)
				WHERE id = '` + person + `'`, "people", ofEmpty, "or with two tags of one name: 1"},
			{"people of no app", `INSERT INTO people (app_id, period, height, id) VALUES (999, 0, 0, '` + person + `')`, "people",
				"(people of app 999)", "rows of an app that does not exist, or whose visitors have no ids: 1"},
			{"people of an app whose visitors have no ids", `UPDATE people SET app_id = 1 WHERE id = 'fd00::5'`, "people", "(people of app 1)",
				"rows of an app that does not exist, or whose visitors have no ids: 1"},

			{"another site of a day", `UPDATE days SET site_id = 1 + site_id WHERE day_id = 20260628 AND page_id = ` + pageX, "belonging",
				"b.example/x", "the number of the day's site"},
			{"a page's day without a site", `UPDATE days SET site_id = NULL WHERE day_id = 20260628 AND page_id = ` + pageX, "belonging",
				"b.example/x", "the number of the day's site: 0"},
			{"counters of no page", `INSERT INTO counters VALUES (999, 0, 0, 0)`, "belonging", "(no page has the number 999)",
				"pages with this number: 0"},
			{"visitors of no page", `INSERT INTO visitors VALUES (-5, 1, 20260627, 20260627, '192.0.2.1')`, "belonging",
				"(no page has the number -5)", "pages with this number: 0"},
			{"erased visitors of no page", `INSERT INTO erased_visitors VALUES (999, 0, 0)`, "belonging", "(no page has the number 999)",
				"pages with this number: 0"},
			{"days of no page", `INSERT INTO days VALUES (999, NULL, 20260628, 0, 0, 0)`, "belonging", "(no page has the number 999)",
				"pages with this number: 0"},
			{"returns of no page", `INSERT INTO open_returns VALUES (999, 20260628, 20260627, 1)`, "belonging", "(no page has the number 999)",
				"pages with this number: 0"},
			{"visits of no page", `INSERT INTO visits VALUES (999, 20260628, 0, '192.0.2.1')`, "belonging", "(no page has the number 999)",
				"rows of visits without a page: 1"},
			{"a block of counted lines is missing", countedLines + `DELETE FROM counted_lines WHERE first = 0`, "log lines", "(logs of app 1)",
				"lines in blocks without a gap: 10, but the number of lines stored with the hour: 200"},
			{"a block of counted lines twice", countedLines + `INSERT INTO counted_lines SELECT app_id, hour, server, first + 10, hashes
				FROM counted_lines WHERE first = 190`, "log lines", "(logs of app 1)",
				"lines in blocks without a gap: 210, but the number of lines stored with the hour: 200"},
			{"a block of counted lines of another hour", countedLines + `UPDATE counted_lines SET hour = hour + 1 WHERE first = 190`, "log lines",
				"(logs of app 1)", "lines in blocks without a gap: 10, but the number of lines stored with the hour: 0"},
			{"more lines of a day than visits", countedLines, "log lines", "(logs of app 1)", "lines of the day: 200, but hot of the app's sites"},
			{"somebody here at no site", `INSERT INTO here (site_id, visitors) VALUES (999, '{192.0.2.1}')`, "belonging",
				"(no page has the number 999)", "rows of current visitors without a site: 1"},
			{"somebody here at a page", `INSERT INTO here (site_id, visitors) VALUES (` + homeA + `, '{192.0.2.1}')`, "belonging",
				"a.example/home", "rows of current visitors without a site: 1"},
			{"a page of history under another site", `UPDATE history SET uri = 'b.example/x' WHERE uri = 'a.example/home'`, "belonging",
				"(all sites)", "pages in history that are not on the site of their day: 1"},
			{"a day of history of another site", `UPDATE history_days SET site = 'a.example.org' WHERE day_id = 20260626`, "belonging",
				"(all sites)", "pages in history that are not on the site of their day: 1"},
		} {
			run(c.name, c.damage, func(t *testing.T, proof *verify.Proof) {
				assert.Positive(t, proof.Violations)
				if slices.Contains([]string{"order", "visitors", "sites", "days", "new or returned", "kept days", "site days", "returns"}, c.promise) {
					assert.True(t, len(desk.Broken(t, p.Desk)) > 0 || !slices.Equal(provenModel().Totals(), p.TotalsOf(t)), "tests look for it, too")
				}
				found := violations(proof)
				assert.True(t, slices.ContainsFunc(found, func(line string) bool {
					return strings.HasPrefix(line, c.promise+": "+c.target+" ") && strings.Contains(line, c.problem)
				}), "%s: %s … %s\nis not in\n%s", c.promise, c.target, c.problem, strings.Join(found, "\n"))
			})
		}
	})
}

// countedLines records 200 log lines of app 1, on a day without visits to it.
const countedLines = `SELECT count_lines(1, '', ARRAY[24 * 7], ARRAY[0], ARRAY[timestamptz '1970-01-08'],
	ARRAY[(SELECT string_agg(int8send(n), '' ORDER BY n) FROM generate_series(1, 200) AS n)]); `

// countedLine records one log line of app 1, on a day with visits.
const countedLine = `SELECT count_lines(1, '', ARRAY[24 * (date '2026-06-28' - date '1970-01-01')], ARRAY[0],
	ARRAY[timestamptz '2026-06-28'],
	ARRAY[int8send(1)])`

// Damage is also found if each piece has only one target.
func TestVerifyFindsDamageInPieces(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	of5 := ` WHERE ip = '192.0.2.5' AND page_id = ` + pageX
	for _, c := range []struct{ damage, mend, found string }{
		{`UPDATE visits SET ip = '192.0.2.3' WHERE ip = '192.0.2.4' AND page_id = ` + homeA,
			`UPDATE visits SET ip = '192.0.2.4' WHERE ip = '192.0.2.3' AND day_id = 20260628 AND page_id = ` + homeA,
			"rows of visits of the visitors whose first day it is: 0, but number of these visitors: 1"},
		{`UPDATE visitors SET first_day = 20260628` + of5, `UPDATE visitors SET first_day = 20260627` + of5,
			"rows of visits without a visitor: 1"},
		{`UPDATE visitors SET last_day = 20260630` + of5, `UPDATE visitors SET last_day = 20260629` + of5,
			"rows of visits on the last day of their visitor: 2, but number of these visitors: 3"},
		{`UPDATE visits SET previous_day = 20260601` + of5 + ` AND day_id = 20260629`, `UPDATE visits SET previous_day = 20260628` + of5 +
			` AND day_id = 20260629`,
			"rows of visits whose previous day is not the day of the row before: 1"},
		{`UPDATE days SET pv = pv + 1, hot = hot + 1 WHERE day_id = 20260628 AND page_id = ` + pageX,
			`UPDATE days SET pv = pv - 1, hot = hot - 1 WHERE day_id = 20260628 AND page_id = ` + pageX, "pv: 2, but rows of visits: 1"},
		{`INSERT INTO visits VALUES (999, 20260628, 0, '192.0.2.1')`, `DELETE FROM visits WHERE page_id = 999`, "rows of visits without a page: 1"},
		{`UPDATE people SET height = 1 WHERE id = '` + person + `'`, `UPDATE people SET height = 2 WHERE id = '` + person + `'`,
			"ids that do not lead to an id with a greater height: 1"},
	} {
		p.Exec(t, c.damage)
		assert.Contains(t, strings.Join(violations(p.verify(t, verify.Options{Within: inPieces})), "\n"), c.found)
		p.Exec(t, c.mend)
	}
	whole, inParts := p.verify(t, verify.Options{}), p.verify(t, verify.Options{Within: inPieces})
	assert.Empty(t, violations(inParts))
	for i := range whole.Promises {
		whole.Promises[i].Seconds, inParts.Promises[i].Seconds = 0, 0
	}
	whole.Seconds, inParts.Seconds = 0, 0
	assert.Equal(t, whole, inParts)
}

// Tags that are not added up yet are not missing.
func TestVerifyAddsWhatWaits(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	p.Exec(t, `SELECT pg_advisory_lock(hashtext('footfall.fold_tags'))`)
	p.Count(t, "192.0.2.8", "http://a.example/home")
	p.Count(t, "192.0.2.9", "http://c.example/home")
	assert.Empty(t, violations(p.verify(t, verify.Options{})))
	p.Exec(t, `DELETE FROM tag_news`)
	assert.Equal(t, []string{
		"tag rows: a.example 20260629 the sum: 3, but rows of visits with the tag: 4 (tag 2)",
		"tag rows: c.example 20260629 the sum: 0, but rows of visits with the tag: 1 (tag 2)",
		"hours: a.example 20260629 the sum over the hours: 3, but pv: 4", "hours: c.example 20260629 the sum over the hours: 0, but pv: 1",
		"hours: a.example 0 newcomers of all hours: 5, but uv: 6", "hours: c.example 0 newcomers of all hours: 0, but uv: 1",
	}, violations(p.verify(t, verify.Options{})))
}

// A late visit makes an earlier day the visitor's first day, but the sums by tag still count the newcomer on the
// later day. Both days, and the days in between, are not compared with rows. Other days are.
func TestVerifyWithLateVisits(t *testing.T) {
	t.Parallel()
	p, years := newProven(t), 3650
	require.NoError(t, p.Admin.SetApp(t.Context(), "demo", app.Settings{RetainDays: &years}))
	late := func(day int, v string) {
		r := visitOf(v)
		r.At = fmt.Sprintf("2026-06-%dT13:00:00Z", day)
		p.CountAs(t, r)
	}
	late(28, "6a/home") // a visitor of the 29th
	late(27, "4a/about")
	late(27, "8a/home") // a newcomer
	_, err := p.Admin.EraseVisitor(t.Context(), "demo", "192.0.2.6")
	require.NoError(t, err)
	late(28, "6a/home")
	require.NoError(t, p.DB.FoldTags(t.Context()))
	assert.Equal(t, []string{"2 1\n"}, p.Table(t, `SELECT t.newcomers, (SELECT count(*) FROM visits AS v WHERE v.page_id = t.page_id
		AND v.day_id = t.day_id AND v.previous_day = 0 AND `+east+` = ANY (v.tags)) FROM tag_days AS t
		WHERE tag_id = `+east+` AND page_id = `+siteA+` AND day_id = 20260628`), "newcomers are not those without a previous day")
	assert.Empty(t, violations(p.verify(t, verify.Options{})))
	assert.Empty(t, violations(p.verify(t, verify.Options{Within: inPieces})))
	p.Exec(t, `UPDATE tag_days SET newcomers = newcomers - 1 WHERE newcomers > 0 AND tag_id = `+west+`
		AND page_id = (SELECT id FROM pages WHERE uri = 'b.example') AND day_id = 20260629`)
	assert.Equal(t, []string{
		"tag rows: b.example 20260629 newcomers: 0, but rows of visits with the tag and without a previous day: 1 (tag 3)",
	}, violations(p.verify(t, verify.Options{})))
}

// No snapshot is held for long. Visits that are counted in the meantime are in the next snapshot.
func TestVerifyTakesManySnapshots(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	steps := 0
	proof := p.verify(t, verify.Options{Jobs: 1, Within: inPieces, Progress: func(verify.Step) {
		if steps++; steps == 1 {
			p.CountAs(t, visitOf("1a/later"))
		}
	}})
	assert.Empty(t, violations(proof))
	assert.EqualValues(t, 8, proof.Targets)
}

// Days without rows are trusted by their daily numbers, and later days are still checked against their rows.
func TestVerifyWithoutOldRows(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	p.Exec(t, `INSERT INTO visits_kept (app_id, from_day) SELECT id, 20260628 FROM apps; SELECT drop_visits_day(20260627)`)
	p.eachDamage(t, func(run func(name, damage string, look func(t *testing.T, proof *verify.Proof))) {
		for _, c := range []struct{ name, damage, promise, target string }{
			{"pv of an old day", `UPDATE days SET pv = pv - 1, new_visitors = new_visitors - 1 WHERE day_id = 20260627 AND page_id = ` + pageX,
				"days", "b.example/x"},
			{"returned from an old day, too few", `UPDATE days SET new_visitors = new_visitors + 1 WHERE day_id = 20260628 AND page_id = ` + pageX +
				`;
			DELETE FROM open_returns WHERE day_id = 20260628 AND page_id = ` + pageX, "returns", "b.example/x"},
			{"a kept row", `DELETE FROM visits WHERE day_id = 20260629 AND page_id = ` + pageX, "kept days", "b.example/x"},
			{"a previous day before the first", `UPDATE visits SET previous_day = 20260601 WHERE day_id = 20260628 AND page_id = ` + pageX + `;
			UPDATE open_returns SET previous_day = 20260601 WHERE day_id = 20260628 AND page_id = ` + pageX, "returns", "b.example/x"},
			{"a visit of somebody else whose first day is not kept", `UPDATE visits SET ip = '192.0.2.3' WHERE day_id = 20260628 AND page_id = ` +
				pageX, "visits", "b.example/x"},
		} {
			run(c.name, c.damage, func(t *testing.T, proof *verify.Proof) {
				assert.EqualValues(t, 6, proof.OlderDays)
				assert.Contains(t, strings.Join(violations(proof), "\n"), c.promise+": "+c.target+" ")
			})
		}
	})
}

func TestVerifyOfOneApp(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	p.Exec(t, `UPDATE counters SET uv = uv - 1 WHERE page_id = `+homeA)
	assert.Zero(t, p.verify(t, verify.Options{App: "empty"}).Violations)
	assert.Positive(t, p.verify(t, verify.Options{}).Violations)
	noted := func() []int64 { return desk.Column[int64](t, p.Desk, `SELECT value FROM epochs WHERE name = 'proved'`) }
	assert.Empty(t, noted(), "a run over one app, or with violations, is not noted as a proof")
	p.Exec(t, `UPDATE counters SET uv = uv + 1 WHERE page_id = `+homeA)
	assert.Zero(t, p.verify(t, verify.Options{}).Violations)
	assert.Len(t, noted(), 1)
	p.Exec(t, `UPDATE counters SET uv = uv - 1 WHERE page_id = `+homeA)
	proof := p.verify(t, verify.Options{App: "demo"})
	assert.Positive(t, proof.Violations)
	assert.EqualValues(t, 7, proof.Targets)
}

// A sample consists of whole sites, so that every promise holds for it. The same seed selects the
// same sites.
func TestVerifySample(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	sizes := map[int64]bool{}
	for seed := range int64(12) {
		proof := p.verify(t, verify.Options{Sample: 50, Seed: seed})
		assert.Empty(t, violations(proof))
		assert.Equal(t, proof.Targets, p.verify(t, verify.Options{Sample: 50, Seed: seed}).Targets)
		sizes[proof.Targets] = true
	}
	assert.Equal(t, map[int64]bool{0: true, 3: true, 4: true, 7: true}, sizes, "neither site, one site, both")
	p.Exec(t, `UPDATE counters SET uv = uv - 1 WHERE page_id = `+pageX)
	found := 0
	for seed := range int64(12) {
		if proof := p.verify(t, verify.Options{Sample: 50, Seed: seed}); proof.Violations > 0 {
			assert.Contains(t, []int64{3, 7}, proof.Targets)
			found++
		}
	}
	assert.Positive(t, found)
}

// Only the first offenders are named, up to the limit. All of them are counted.
func TestVerifyLimit(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	p.Exec(t, `UPDATE days SET hot = hot + 1 WHERE site_id IS NULL`)
	for _, u := range p.verify(t, verify.Options{Limit: 2}).Promises {
		if u.Name == "site days" {
			assert.EqualValues(t, 6, u.Violations)
			assert.Len(t, u.Offenders, 2)
			assert.Equal(t, []string{"a.example 20260627", "a.example 20260628"},
				[]string{fmt.Sprint(u.Offenders[0].Target, " ", u.Offenders[0].Day), fmt.Sprint(u.Offenders[1].Target, " ", u.Offenders[1].Day)})
		}
	}
}

// Each comparison uses the data of one moment, even if visits are counted, and visitors, pages and days are
// erased, at the same time. No visit fails because of the verification.
func TestVerifyWhileCounting(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	keep := 1
	require.NoError(t, p.Admin.SetApp(t.Context(), "demo", app.Settings{RetainDays: &keep}))
	disperse := dbtest.Crowd(t, 4, func(client, i int) {
		_, err := p.Visit(context.Background(), counter.Request{
			App: "demo", IP: fmt.Sprintf("198.51.100.%d", (i*7+client)%200), URI: fmt.Sprintf("http://%c.example/%d", 'a'+i%3, i%5)})
		assert.NoError(t, err)
	})
	for i := range dbtest.LongOrShort(8, 4) {
		assert.Empty(t, violations(p.verify(t, verify.Options{Within: []time.Duration{0, 10 * time.Millisecond}[i%2]})))
		_, err := p.Admin.EraseVisitor(t.Context(), "demo", fmt.Sprintf("198.51.100.%d", i*23))
		assert.NoError(t, err)
		page := fmt.Sprintf("http://%c.example/%d", 'a'+i%3, i%5)
		p.Count(t, "192.0.2.9", page)
		assert.NoError(t, p.Admin.DeletePage(t.Context(), "demo", page))
		_, err = retention.NewRetainer(p.DB, retention.Options{Clock: p.Clock.Now}).Run(t.Context())
		assert.NoError(t, err)
	}
	disperse()
	assert.Empty(t, violations(p.verify(t, verify.Options{})))
}

// An app whose deletion is in progress, or was killed, has lost some of its rows. It is left out, unlike the other
// apps.
func TestVerifyLeavesOutAnAppThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	admin, open := p.Admin, "open"
	require.NoError(t, admin.AddApp(t.Context(), "leaving", app.Settings{Access: &open}))
	_, err := p.Visit(t.Context(), counter.Request{App: "leaving", IP: "192.0.2.1", URI: "http://a.example/"})
	require.NoError(t, err)
	targets := p.verify(t, verify.Options{}).Targets

	tx, err := p.Tables().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM page_tallies WHERE app_id = (SELECT id FROM apps WHERE name = 'leaving') FOR UPDATE`)
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	deleted := make(chan error, 1)
	go func() { deleted <- admin.DeleteApp(ctx, "leaving") }()
	require.Eventually(t, func() bool {
		var gone bool
		err := tx.QueryRow(t.Context(), `SELECT NOT EXISTS (SELECT FROM visitors JOIN pages ON id = page_id JOIN apps AS a ON a.id = app_id
			WHERE a.name = 'leaving')`).Scan(&gone)
		return err == nil && gone
	}, dbtest.Patience, dbtest.Tick, "its second step waits for the row that is held")
	beside := p.verify(t, verify.Options{})
	kill()
	require.Error(t, <-deleted)
	require.NoError(t, tx.Rollback(t.Context()))
	for _, proof := range []*verify.Proof{beside, p.verify(t, verify.Options{}), p.verify(t, verify.Options{App: "leaving"})} {
		assert.Empty(t, violations(proof))
		assert.EqualValues(t, 1, proof.Deleted)
	}
	assert.Equal(t, targets-2, beside.Targets)
	_, err = p.Visit(t.Context(), counter.Request{App: "leaving", IP: "192.0.2.1", URI: "http://a.example/"})
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	assert.Equal(t, visit.NotFound, verr.Kind, "it counts nothing")
	require.NoError(t, admin.DeleteApp(t.Context(), "leaving"), "the next goes on")
	assert.Zero(t, p.verify(t, verify.Options{}).Deleted)

	p.Exec(t, `UPDATE counters SET uv = uv - 1 WHERE page_id = `+homeA)
	assert.Positive(t, p.verify(t, verify.Options{}).Violations)
}

// An app whose deletion starts during the run is also left out.
func TestVerifyWhileAnAppIsDeleted(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	steps := 0
	proof := p.verify(t, verify.Options{Jobs: 1, Within: inPieces, Progress: func(verify.Step) {
		if steps++; steps == 2 {
			p.Exec(t, `UPDATE apps SET deleted_at = now() WHERE name = 'demo'; DELETE FROM visits; DELETE FROM counters`)
		}
	}})
	assert.Empty(t, violations(proof))
	assert.EqualValues(t, 1, proof.Deleted)
	assert.EqualValues(t, 2, proof.Targets)
}

// Every promise is reported once, when its result is complete, and the run ends.
func TestVerifyProgress(t *testing.T) {
	t.Parallel()
	p := newProven(t)
	told := map[string]int64{}
	var step verify.Step
	proof := p.verify(t, verify.Options{
		Progress: func(s verify.Step) { assert.GreaterOrEqual(t, s.Done, step.Done); step = s },
		Promised: func(u verify.PromiseResult) { assert.NotContains(t, told, u.Name); told[u.Name] = u.Checked },
	})
	assert.Equal(t, step.Whole, step.Done)
	for _, u := range proof.Promises {
		assert.Equal(t, u.Checked, told[u.Name], u.Name)
	}
}

func TestMain(m *testing.M) { dbtest.Main(m) }
