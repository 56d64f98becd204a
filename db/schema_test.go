package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

func TestEverythingHasAComment(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	exec(t, conn, `SELECT make_visits_day(20190629)`)
	silent := dbtest.Column[string](t, conn, `
		WITH tables AS (
			SELECT oid, relname, relispartition FROM pg_class
			WHERE relnamespace IN ('footfall'::regnamespace, 'report'::regnamespace) AND relkind IN ('r', 'p', 'v', 'm')
		)
		SELECT 'table ' || relname FROM tables WHERE obj_description(oid, 'pg_class') IS NULL
		UNION ALL
		SELECT 'column ' || t.relname || '.' || a.attname
		FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE NOT t.relispartition AND col_description(t.oid, a.attnum) IS NULL
		  AND NOT starts_with(t.relname, 'takeout_') -- whose comments are in the README of an export, and tell of each column
		UNION ALL
		SELECT 'function ' || proname FROM pg_proc
		WHERE pronamespace IN ('footfall'::regnamespace, 'report'::regnamespace) AND obj_description(oid, 'pg_proc') IS NULL`)
	assert.Empty(t, silent)

	listed, err := os.ReadFile("../docs/sql.md")
	require.NoError(t, err)
	for _, table := range dbtest.Column[string](t, conn, `
		SELECT relname FROM pg_class
		WHERE relnamespace = 'footfall'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`) {
		assert.Contains(t, string(listed), "`"+table+"`", "the list of tables")
	}
	for _, call := range dbtest.Column[string](t, conn, `
		SELECT format('%s(%s)', p.proname, array_to_string(p.proargnames[:p.pronargs], ', ')) FROM pg_proc AS p
		WHERE p.pronamespace = 'report'::regnamespace`) {
		assert.Contains(t, string(listed), call, "the functions of reports and their arguments")
	}
}

func TestEveryQueryHasAComment(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"../queries", "../bench/tables"} {
		files, err := filepath.Glob(folder + "/*.sql")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, query := range strings.Split(string(text), "\n-- name: ")[1:] {
				name, rest, _ := strings.Cut(query, "\n")
				assert.True(t, strings.HasPrefix(rest, "-- "), "%s: %s has no comment on its result", file, name)
			}
		}
	}
}

// rules are statements that the schema refuses for every role: the name of the constraint (or the SQLSTATE, if
// PostgreSQL gives no name), and the statement, on the tables as filled by TestConstraints.
var rules = []struct{ refusedBy, sql string }{
	{"apps_pkey", `INSERT INTO apps (id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'other')`},
	{"apps_name_is_unique", `INSERT INTO apps (name) VALUES ('shop')`},
	{"apps_name_is_a_word", `INSERT INTO apps (name) VALUES ('')`},
	{"apps_name_is_a_word", `INSERT INTO apps (name) VALUES ('Shop')`},
	{"apps_name_is_a_word", `INSERT INTO apps (name) VALUES ('my shop')`},
	{"apps_name_is_a_word", `INSERT INTO apps (name) VALUES ('-shop')`},
	{"apps_name_is_a_word", `INSERT INTO apps (name) VALUES (E'other\n')`},
	{"apps_name_is_a_word", `INSERT INTO apps (name) VALUES (repeat('a', 64))`},
	{"22023", `INSERT INTO apps (name, tz) VALUES ('other', 'Mars/Olympus')`}, // fails before apps_tz_is_known is checked
	{"apps_ipv6_prefix_range", `INSERT INTO apps (name, ipv6_prefix) VALUES ('other', 31)`},
	{"apps_ipv6_prefix_range", `INSERT INTO apps (name, ipv6_prefix) VALUES ('other', 129)`},
	{"apps_sites_no_nulls", `INSERT INTO apps (name, sites) VALUES ('other', '{example.com, NULL}')`},
	{"apps_keep_query_no_nulls", `INSERT INTO apps (name, keep_query) VALUES ('other', '{NULL}')`},

	{"apps_visitor_is_known", `UPDATE apps SET visitor = 'cookie', secret_id = '\x0102030405060708'`},
	{"apps_secret_keys_visitors", `UPDATE apps SET visitor = 'hashed'`},
	{"apps_secret_keys_visitors", `UPDATE apps SET secret_id = '\x0102030405060708'`},
	{"apps_secret_id_length", `UPDATE apps SET visitor = 'daily', secret_id = '\x01'`},
	{"apps_bots_is_known", `UPDATE apps SET bots = 'maybe'`},
	{"apps_ignore_no_nulls", `UPDATE apps SET ignore = '{192.0.2.0/24, NULL}'`},
	{"apps_count_as_they_began", `UPDATE apps SET tz = 'Europe/Berlin'`},
	{"apps_count_as_they_began", `UPDATE apps SET ipv6_prefix = 56`},
	{"apps_count_as_they_began", `UPDATE apps SET visitor = 'id', secret_id = '\x0102030405060708'`},
	{"apps_limits_are_not_negative", `UPDATE apps SET max_requests = -1`},
	{"apps_access_is_known", `UPDATE apps SET access = 'closed'`},
	{"apps_limits_are_not_negative", `UPDATE apps SET max_requests = -1, max_new_pages = 1`},
	{"apps_limits_are_not_negative", `UPDATE apps SET max_new_pages = -1`},

	{"apps_retain_days_range", `UPDATE apps SET retain_days = -1`},
	{"apps_retain_days_range", `UPDATE apps SET retain_days = 36501`},
	{"apps_forget_days_range", `UPDATE apps SET forget_days = -1`},
	{"apps_public_counts_are_known", `UPDATE apps SET public_counts = 'all'`},
	{"apps_public_counts_are_known", `UPDATE apps SET public_counts = 'count', access = 'key'`},
	{"apps_forget_days_range", `UPDATE apps SET forget_days = 36501`},
	{"apps_forget_days_range", `UPDATE apps SET retain_days = 10, forget_days = 9`},
	{"apps_forget_days_range", `UPDATE apps SET retain_days = 0, forget_days = 9`},
	{"apps_tags_have_hour", `UPDATE apps SET tags = '{source}'`},
	{"apps_tags_have_hour", `UPDATE apps SET tags = '{hour, NULL}'`},

	{"keys_pkey", `INSERT INTO keys (id, app_id, name, hash, scopes) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'b', sha256('b'), '{count}')`},
	{"keys_name_is_unique", `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'a', sha256('b'), '{count}')`},
	{"keys_hash_is_unique", `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'b', sha256('a'), '{count}')`},
	{"keys_hash_is_sha256", `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'b', 'plain', '{count}')`},
	{"keys_scopes_are_known", `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'b', sha256('b'), '{}')`},
	{"keys_scopes_are_known", `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'b', sha256('b'), '{count, owner}')`},
	{"keys_app_id_fkey", `INSERT INTO keys (app_id, name, hash, scopes) VALUES (99, 'b', sha256('b'), '{count}')`},

	{"page_tallies_pkey", `INSERT INTO page_tallies (app_id, day_id, today) VALUES (1, 20190629, 0)`},
	{"page_tallies_app_id_fkey", `INSERT INTO page_tallies (app_id, day_id, today) VALUES (99, 20190629, 0)`},
	{"page_tallies_are_not_negative", `UPDATE page_tallies SET today = -1`},
	{"page_tallies_own_tags_are_not_negative", `UPDATE page_tallies SET own_tags_today = -1`},

	{"tags_pkey", `INSERT INTO tags (id, app_id, name, value) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'hour', '12')`},
	{"tags_app_id_fkey", `UPDATE tags SET app_id = 99`},
	{"tags_are_different", `INSERT INTO tags (app_id, name, value) VALUES (1, 'source', 'a.example')`},
	{"tags_name_is_short", `UPDATE tags SET name = 'Source'`},
	{"tags_value_length", `UPDATE tags SET value = ''`},
	{"tag_days_pkey", `INSERT INTO tag_days (page_id, pv, newcomers, day_id, tag_id) VALUES (1, 1, 1, 20190629, 1)`},
	{"tag_days_numbers_descend", `UPDATE tag_days SET newcomers = 2`},
	{"tag_days_numbers_descend", `UPDATE tag_days SET pv = 0, newcomers = 0`},

	{"shares_pkey", `INSERT INTO shares (id, app_id, last_day, name, hash) OVERRIDING SYSTEM VALUE
		VALUES (1, 1, to_char(now(), 'YYYYMMDD')::integer, 'b', sha256('b'))`},
	{"shares_app_id_fkey", `UPDATE shares SET app_id = 99`},
	{"shares_name_is_unique", `INSERT INTO shares (app_id, last_day, name, hash)
		VALUES (1, to_char(now(), 'YYYYMMDD')::integer, 'a', sha256('b'))`},
	{"shares_hash_is_unique", `INSERT INTO shares (app_id, last_day, name, hash)
		VALUES (1, to_char(now(), 'YYYYMMDD')::integer, 'b', sha256('a'))`},
	{"shares_hash_is_sha256", `UPDATE shares SET hash = 'plain'`},
	{"shares_site_is_named", `UPDATE shares SET site = ''`},
	{"shares_end", `UPDATE shares SET last_day = 20190629`},
	{"shares_end", `UPDATE shares SET last_day = 29990101`},

	{"apps_moving_to_is_a_name", `UPDATE apps SET moving_to = 'A'`},
	{"apps_cell_is_a_name", `UPDATE apps SET cell = 'A'`},
	{"apps_hashed_as_is_of_hashes", `UPDATE apps SET hashed_as = 1 WHERE visitor = 'address'`},
	{"apps_goals_are_few", `UPDATE apps SET goals = '{NULL}'`},
	{"offsets_pkey", `INSERT INTO offsets (app_id, uri, hot, pv, uv) VALUES (1, 'example.com', 1, 1, 1)`},
	{"offsets_app_id_fkey", `INSERT INTO offsets (app_id, uri, hot, pv, uv) VALUES (99, 'example.com', 1, 1, 1)`},
	{"offsets_hot_pv_uv_descend", `UPDATE offsets SET hot = 1, pv = 2, uv = 1`},
	{"offsets_hot_pv_uv_descend", `UPDATE offsets SET hot = 2, pv = 1, uv = 2`},
	{"offsets_hot_pv_uv_descend", `UPDATE offsets SET hot = 1, pv = 1, uv = -1`},
	{"offsets_hot_is_exact", `UPDATE offsets SET hot = 1000000000000001`},
	{"offsets_uri_length", `UPDATE offsets SET uri = ''`},
	{"offsets_uri_length", `UPDATE offsets SET uri = repeat('a', 2049)`},

	{"notes_pkey", `INSERT INTO notes (id, app_id, day_id, text) OVERRIDING SYSTEM VALUE VALUES (1, 1, 20190629, 'a')`},
	{"notes_app_id_fkey", `UPDATE notes SET app_id = 99`},
	{"notes_day_is_one", `UPDATE notes SET day_id = 10000101`},
	{"22008", `UPDATE notes SET day_id = 20190631`},
	{"notes_site_is_named", `UPDATE notes SET site = ''`},
	{"notes_text_is_a_line", `UPDATE notes SET text = ''`},
	{"notes_text_is_a_line", `UPDATE notes SET text = ' a'`},
	{"notes_text_is_a_line", `UPDATE notes SET text = E'a\nb'`},
	{"notes_text_is_short", `UPDATE notes SET text = repeat('é', 201)`},

	{"day_keys_pkey", `INSERT INTO day_keys (day_id, key) VALUES (20190629, sha256('b'))`},
	{"day_keys_length", `INSERT INTO day_keys (day_id, key) VALUES (20190630, 'short')`},

	{"erased_visitors_pkey", `INSERT INTO erased_visitors (page_id, part, place) VALUES (2, 0, 1)`},
	{"erased_visitors_part_from_zero", `INSERT INTO erased_visitors (page_id, part, place) VALUES (2, -1, 1)`},
	{"erased_visitors_place_is_a_bit", `UPDATE erased_visitors SET place = -1`},
	{"erased_visitors_place_is_a_bit", `UPDATE erased_visitors SET place = 256`},
	{"22026", `UPDATE erased_visitors SET place = NULL, places = B'11'`}, // an error of the type bit(256)
	{"erased_visitors_one_or_several", `UPDATE erased_visitors SET place = NULL`},
	{"erased_visitors_one_or_several", `UPDATE erased_visitors SET place = NULL, places = 1::bit(256)`},
	{"erased_visitors_one_or_several", `UPDATE erased_visitors SET places = 3::bit(256)`},
	{"erased_visitors_one_or_several", `SELECT erase_ranks('{2}', '{1}')`}, // a rank that is erased already
	{"erased_visits_pkey", `INSERT INTO erased_visits (page_id, day_id, previous_day, visitors) VALUES (2, 20190629, 0, 1)`},
	{"erased_visits_days_run_forwards", `UPDATE erased_visits SET previous_day = day_id`},
	{"erased_visits_are_some", `INSERT INTO erased_visits (page_id, day_id, previous_day, visitors) VALUES (2, 20190630, 0, 0)`},

	{"webhooks_pkey", `INSERT INTO webhooks (id, app_id, uri, url, private, seen) OVERRIDING SYSTEM VALUE
		VALUES (1, 1, 'example.com', 'https://a.example', false, 0)`},
	{"webhooks_app_id_fkey", `UPDATE webhooks SET app_id = 99`},
	{"webhooks_uri_length", `UPDATE webhooks SET uri = ''`},
	{"webhooks_url_is_one", `UPDATE webhooks SET url = 'file:///etc/passwd'`},
	{"webhooks_url_is_one", `UPDATE webhooks SET url = 'https://a.example/' || repeat('a', 2048)`},
	{"webhooks_salt_is_16_bytes", `UPDATE webhooks SET salt = ''`},
	{"webhooks_waiting_no_nulls", `UPDATE webhooks SET waiting = '{NULL}'`},
	{"admin_keys_pkey", `INSERT INTO admin_keys (id, name, hash) OVERRIDING SYSTEM VALUE VALUES (1, 'b', sha256('b')), (1, 'c', sha256('c'))`},
	{"admin_keys_name_is_unique", `INSERT INTO admin_keys (name, hash) VALUES ('b', sha256('b')), ('b', sha256('c'))`},
	{"admin_keys_hash_is_unique", `INSERT INTO admin_keys (name, hash) VALUES ('b', sha256('b')), ('c', sha256('b'))`},
	{"admin_keys_hash_is_sha256", `INSERT INTO admin_keys (name, hash) VALUES ('b', 'plain')`},
	{"changes_pkey", `INSERT INTO changes (id, who, what, was, is_now) OVERRIDING SYSTEM VALUE VALUES (1, 'shell', 'x', '', ''), (1, 'shell', 'x', '', '')`},
	{"changes_are_short", `INSERT INTO changes (who, what, was, is_now) VALUES ('shell', '', '', '')`},
	{"changes_are_short", `INSERT INTO changes (who, what, was, is_now) VALUES ('shell', 'x', '', repeat('a', 8193))`},

	{"epochs_pkey", `INSERT INTO epochs (name) VALUES ('apps')`},
	{"epochs_value_counts_up", `UPDATE epochs SET value = -1`},

	{"pages_pkey", `INSERT INTO pages (id, app_id, uri) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'example.org')`},
	{"pages_app_key_is_unique", `INSERT INTO pages (app_id, uri) VALUES (1, 'example.com')`},
	{"pages_app_key_is_unique", `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'example.com/a')`},
	{"pages_uri_length", `INSERT INTO pages (app_id, uri) VALUES (1, '')`},
	{"pages_uri_length", `INSERT INTO pages (app_id, uri) VALUES (1, repeat('a', 2049))`},
	{"pages_uri_length", `INSERT INTO pages (app_id, uri) VALUES (1, repeat('é', 1025))`},
	{"pages_site_xor_path", `INSERT INTO pages (app_id, uri) VALUES (1, 'example.com/without-a-site')`},
	{"pages_site_xor_path", `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'site.of.a.site')`},
	{"pages_app_id_fkey", `INSERT INTO pages (app_id, uri) VALUES (99, 'example.org')`},
	{"pages_app_id_fkey", `DELETE FROM keys; DELETE FROM shares; DELETE FROM notes; DELETE FROM page_tallies; DELETE FROM tags; DELETE
		FROM apps`},
	{"pages_site_id_fkey", `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 99, 'example.com/c')`},
	{"pages_site_id_fkey", `DELETE FROM pages WHERE id = 1`},
	{"428C9", `INSERT INTO pages (app_id, uri, key) VALUES (1, 'example.org', '\x00')`}, // the key is computed

	{"counters_pkey", `INSERT INTO counters (page_id) VALUES (1)`},
	{"counters_hot_pv_uv_descend", `UPDATE counters SET hot = 1, pv = 2, uv = 1`},
	{"counters_hot_pv_uv_descend", `UPDATE counters SET hot = 2, pv = 1, uv = 2`},
	{"counters_hot_pv_uv_descend", `UPDATE counters SET hot = 1, pv = 1, uv = -1`},

	{"visitors_pkey", `INSERT INTO visitors (page_id, ip, rank, first_day, last_day) VALUES (2, '192.0.2.1', 2, 20190629, 20190629)`},
	{"visitors_rank_is_unique", `INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
		VALUES (2, '192.0.2.2', 1, 20190629, 20190629)`},
	{"visitors_rank_from_one", `INSERT INTO visitors (page_id, ip, rank, first_day, last_day) VALUES (2, '192.0.2.2', 0, 20190629, 20190629)`},
	{"visitors_days_run_forwards", `UPDATE visitors SET last_day = 20190628`},
	{"visitors_ip_is_one_address", `UPDATE visitors SET ip = '192.0.2.0/24'`},
	{"visitors_ip_is_one_address", `UPDATE visitors SET ip = '2001:db8::/64'`},

	{"visits_pkey", `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, 20190629, 0, '192.0.2.1')`},
	{"visits_days_run_forwards", `UPDATE visits SET previous_day = day_id`},
	// there is no partition for this day, and no default partition
	{"23514", `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, 20190630, 0, '192.0.2.1')`},

	{"batches_pkey", `INSERT INTO batches (id, turn, schema_version) VALUES ('00000000-0000-0000-0000-000000000000', 0, 2)`},
	{"23514", `INSERT INTO batches (id, turn, schema_version) VALUES (gen_random_uuid(), 2, 2)`}, // there are only two turns
	{"batches_by_this_version", `INSERT INTO batches (id, schema_version) VALUES (gen_random_uuid(), 0)`},
	{"23502", `INSERT INTO batches (id) VALUES (gen_random_uuid())`}, // earlier versions insert only the id

	{"positions_pkey", `INSERT INTO positions (app_id, source, part) VALUES (1, 'calls', 'a')`},
	{"positions_app_id_fkey", `INSERT INTO positions (app_id, source, part) VALUES (99, 'calls', 'a')`},
	{"positions_next_from_zero", `UPDATE positions SET next = -1`},
	{"positions_content_is_hash", `UPDATE positions SET content = '\x01'`},
	{"positions_uncounted_up_to_next", `UPDATE positions SET uncounted = ''`}, // the position is not of a call
	{"positions_uncounted_up_to_next", `UPDATE positions SET content = sha256('')`},
	{"positions_uncounted_up_to_next", `UPDATE positions SET content = sha256(''), uncounted = '0'`}, // the position is at 0
	{"FF004", `SELECT move_position(1, 'calls', 'a', 1, 2)`},                                         // the position is at 0
	{"FF004", `SELECT move_position(1, 'calls', 'a', 0, -1)`},

	{"refused_pkey", `INSERT INTO refused (app_id, source, part, position, reason, beginning) VALUES (1, 'kafka', '0', 7, '', '')`},
	{"refused_texts_are_short", `UPDATE refused SET reason = repeat('a', 1001)`},
	{"refused_texts_are_short", `UPDATE refused SET beginning = repeat('é', 501)`},

	{"logs_pkey", `INSERT INTO logs (id, app_id, claimed, lines, hash, file, rules, counted) OVERRIDING SYSTEM VALUE
		VALUES (1, 1, 0, 0, sha256('b'), '', '', 0)`},
	// 0.1.0 inserts rows like this one
	{"logs_know_what_is_counted", `INSERT INTO logs (app_id, claimed, lines, last_hour, hash, file, rules, skips)
		VALUES (1, 0, 0, 0, sha256('a'), '', '', '{}')`},
	{"logs_counted_range", `UPDATE logs SET counted = -1`},
	{"logs_counted_range", `UPDATE logs SET counted = 10`},
	{"logs_counted_hash_length", `UPDATE logs SET counted_hash = '\x01'`},
	{"logs_told_is_known", `UPDATE logs SET told = 'x'`},
	{"logs_after_has_lines", `UPDATE logs SET after = now()`},
	{"22023", `SELECT move_log(1, 1, 0, 0, 2, sha256('b'), 1, NULL, '', NULL)`},
	{"log_hours_pkey", `INSERT INTO log_hours (app_id, hour) VALUES (1, 1)`},
	{"log_hours_arrays_are_one_table", `UPDATE log_hours SET gone = '{}'`},
	{"counted_lines_pkey", `INSERT INTO counted_lines (app_id, hour, server, first, hashes) VALUES (1, 1, '', 0, sha256('a'))`},
	{"counted_lines_first_from_zero", `UPDATE counted_lines SET first = -1`},
	{"counted_lines_are_short_blocks", `UPDATE counted_lines SET hashes = ''`},
	{"counted_lines_are_short_blocks", `UPDATE counted_lines SET hashes = '\x0102'`},
	{"counted_lines_are_short_blocks", `UPDATE counted_lines SET hashes = convert_to(repeat('a', 1608), 'UTF8')`},
	{"read_logs_pkey", `INSERT INTO read_logs (app_id, options, inode, run) VALUES (1, sha256('a'), '1:1', 'a')`},
	{"read_logs_app_id_fkey", `UPDATE read_logs SET app_id = 99`},
	{"read_logs_options_are_a_hash", `UPDATE read_logs SET options = ''`},
	{"FF004", `SELECT count_lines(1, '', '{1}', '{3}', '{2026-01-01}', ARRAY[sha256('b')])`},  // the version of the hour is 4
	{"FF004", `SELECT count_lines(1, 'a', '{1}', '{3}', '{2026-01-01}', ARRAY[sha256('b')])`}, // the lines of '' count, too
	{"FF004", `SELECT count_lines(1, '', '{2}', '{1}', '{2026-01-01}', ARRAY[sha256('b')])`},  // the hour does not exist yet
	{"log_samples_pkey", `INSERT INTO log_samples (app_id, log_id, hour, sample) VALUES (1, 1, 1, repeat('a', 28)::bytea)`},
	{"log_samples_log_id_fkey", `UPDATE log_samples SET log_id = 99`},
	{"log_samples_are_of_20_bytes", `UPDATE log_samples SET sample = ''`},
	{"log_samples_are_of_20_bytes", `UPDATE log_samples SET sample = repeat('a', 29)::bytea`},
	{"apps_log_key_length", `UPDATE apps SET log_key = '\x01'`},
	{"logs_app_id_fkey", `UPDATE logs SET app_id = 99`},
	{"logs_hash_is_sha256", `UPDATE logs SET hash = '\x01'`},
	{"logs_lines_have_bytes", `UPDATE logs SET claimed = 0`},
	{"logs_lines_have_bytes", `UPDATE logs SET lines = -1`},
	{"logs_skips_are_pairs", `UPDATE logs SET skips = '{1}'`},
	{"log_lines_pkey", `INSERT INTO log_lines (app_id, log_id, line, hour, hashes) VALUES (1, 1, 0, 1, sha256('a'))`},
	{"log_lines_log_id_fkey", `UPDATE log_lines SET log_id = 99`},
	{"log_lines_hashes_of_8_bytes", `UPDATE log_lines SET hashes = '\x01'`},
	{"log_lines_hashes_of_8_bytes", `UPDATE log_lines SET hashes = ''`},

	{"inbox_pkey", `INSERT INTO inbox (number, app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages,
		ips) OVERRIDING SYSTEM VALUE
		SELECT number, app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips FROM inbox`},
	{"inbox_rows_wait", `UPDATE inbox SET counted = 1`},
	{"inbox_rows_wait", `UPDATE inbox SET counted = -1`},
	{"inbox_arrays_are_one_table", `UPDATE inbox SET visits = 0`},
	{"inbox_arrays_are_one_table", `UPDATE inbox SET days = '{20260629,20260629}'`},
	{"inbox_arrays_are_one_table", `UPDATE inbox SET ids = '{}'`},
	{"inbox_pages_have_a_uri", `UPDATE inbox SET uris = '{}'`},

	{"visit_ids_pkey", `INSERT INTO visit_ids (app_id, day_id, id) VALUES (1, 20190630, 'a')`}, // an id is unique across days
	{"visit_ids_length", `UPDATE visit_ids SET id = ''`},
	{"visit_ids_length", `UPDATE visit_ids SET id = repeat('é', 33)`},

	{"days_pkey", `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) VALUES (1, 20190629, 1, 1, 1)`},
	{"days_numbers_descend", `UPDATE days SET hot = 1, pv = 2, new_visitors = 1`},
	{"days_numbers_descend", `UPDATE days SET hot = 2, pv = 1, new_visitors = 2`},
	{"days_numbers_descend", `UPDATE days SET hot = 1, pv = 1, new_visitors = -1`},
	{"open_returns_pkey", `INSERT INTO open_returns (page_id, day_id, previous_day, visitors) VALUES (1, 20190629, 20190628, 1)`},
	{"open_returns_are_some", `UPDATE open_returns SET visitors = 0`},
	{"open_returns_from_an_earlier_day", `UPDATE open_returns SET previous_day = day_id`},
	{"packed_returns_pkey", `INSERT INTO packed_returns (page_id, day_id, previous_days, visitors) VALUES (1, 20190629, B'1', B'1')`},
	{"packed_returns_end_with_a_day", `UPDATE packed_returns SET previous_days = B''`},
	{"packed_returns_end_with_a_day", `UPDATE packed_returns SET previous_days = B'10'`}, // no visitor from two days before
	{"packed_returns_have_a_number_each", `UPDATE packed_returns SET previous_days = B'11', visitors = B'11010'`},
	{"packed_returns_are_some", `UPDATE packed_returns SET visitors = B''`},
	{"packed_returns_are_some", `UPDATE packed_returns SET visitors = B'0'`},
	{"packed_returns_are_some", `UPDATE packed_returns SET previous_days = B'11', visitors = B'1010'`}, // no visitor from one day before
	{"packed_returns_are_some", `UPDATE packed_returns SET previous_days = B'11', visitors = B'0111'`}, // a negative number
	{"22023", `SELECT add_packed_returns('{1}', '{20190629}', '{20190629}', '{1}')`},
	{"packed_returns_are_some", `SELECT add_packed_returns('{1, 1}', '{20190629, 20190629}', '{20190627, 20190626}', '{-1, 1}')`},
	{"packed_returns_are_some", `SELECT add_packed_returns('{1}', '{20190629}', '{20190628}', '{-2}')`},
	{"packed_returns_are_some", `SELECT add_packed_returns('{1, 1}', '{20190629, 20190629}', '{20190628, 20190627}', '{-5, 1}')`},

	{"accounts_pkey", `INSERT INTO accounts (id, name, folded) OVERRIDING SYSTEM VALUE VALUES (1, 'b', 'b')`},
	{"accounts_names_are_different", `INSERT INTO accounts (name, folded) VALUES ('A', 'a')`},
	{"accounts_name_length", `UPDATE accounts SET name = ''`},
	{"accounts_name_is_folded", `UPDATE accounts SET folded = NULL`},
	{"accounts_language_is_a_tag", `UPDATE accounts SET language = 'Deutsch'`},
	{"accounts_password_is_hashed", `UPDATE accounts SET password = 'plain'`},
	{"account_apps_pkey", `INSERT INTO account_apps (account_id, app_id) VALUES (1, 1)`},
	{"account_apps_account_id_fkey", `UPDATE account_apps SET account_id = 99`},
	{"account_apps_app_id_fkey", `UPDATE account_apps SET app_id = 99`},
	{"account_sessions_pkey", `INSERT INTO account_sessions (id, account_id, hash, browser) OVERRIDING SYSTEM VALUE
		VALUES (1, 1, sha256('b'), '')`},
	{"account_sessions_account_id_fkey", `UPDATE account_sessions SET account_id = 99`},
	{"account_sessions_are_different", `INSERT INTO account_sessions (account_id, hash, browser) VALUES (1, sha256('a'), '')`},
	{"account_sessions_hash_is_sha256", `UPDATE account_sessions SET hash = 'plain'`},
	{"account_sessions_browser_is_short", `UPDATE account_sessions SET browser = repeat('b', 101)`},
	{"account_links_pkey", `INSERT INTO account_links (hash) VALUES (sha256('a'))`},
	{"account_links_account_id_fkey", `UPDATE account_links SET account_id = 99`},
	{"account_links_one_an_account", `INSERT INTO account_links (hash, account_id) VALUES (sha256('b'), 1)`},
	{"account_links_hash_is_sha256", `UPDATE account_links SET hash = 'plain'`},
	{"titles_pkey", `INSERT INTO titles (page_id, title, told_at) VALUES (2, 'a', now()), (2, 'a', now())`},
	{"titles_page_id_fkey", `INSERT INTO titles (page_id, title, told_at) VALUES (99, 'a', now())`},
	{"titles_title_length", `INSERT INTO titles (page_id, title, told_at) VALUES (2, '', now())`},
	{"titles_title_length", `INSERT INTO titles (page_id, title, told_at) VALUES (2, repeat('é', 101), now())`},
	{"history_imports_pkey", `INSERT INTO history_imports (app_id, id, source, files) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'umami', '{a}')`},
	{"history_imports_app_id_fkey", `INSERT INTO history_imports (app_id, source, files) VALUES (99, 'umami', '{a}')`},
	{"history_imports_source_is_short", `UPDATE history_imports SET source = 'Umami'`},
	{"history_imports_have_files", `UPDATE history_imports SET files = '{}'`},
	{"history_imports_have_files", `UPDATE history_imports SET files = '{NULL}'`},
	{"history_days_pkey", `INSERT INTO history_days (id, app_id, import_id, day_id, site) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 20190630, 'a')`},
	{"history_days_are_different", `INSERT INTO history_days (app_id, import_id, day_id, site) VALUES (1, 1, 20190629, 'example.com')`},
	{"history_days_import_fkey", `UPDATE history_days SET import_id = 2`},
	{"history_days_day_is_one", `UPDATE history_days SET day_id = 19901231`},
	{"22008", `UPDATE history_days SET day_id = 20190631`},
	{"history_days_site_is_one", `UPDATE history_days SET site = 'example.com/a'`},
	{"history_days_site_is_one", `UPDATE history_days SET site = ''`},
	{"history_pkey", `INSERT INTO history (day, uri, visits) VALUES (1, 'example.com', 1)`},
	{"history_day_fkey", `INSERT INTO history (day, uri, visits) VALUES (99, 'example.com', 1)`},
	{"history_numbers_are_exact", `UPDATE history SET page_views = -1`},
	{"history_numbers_are_exact", `UPDATE history SET new_visitors = 1000000000001`},
	{"history_numbers_are_some", `UPDATE history SET page_views = NULL`},
	{"history_uri_length", `UPDATE history SET uri = ''`},
	{"history_uri_length", `UPDATE history SET uri = repeat('a', 2049)`},
	{"here_pkey", `INSERT INTO here (site_id, number, visitors) OVERRIDING SYSTEM VALUE VALUES (1, 1, '{}'), (1, 1, '{}')`},
	{"visits_kept_pkey", `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20190629)`},
	{"visits_kept_app_id_fkey", `INSERT INTO visits_kept (app_id, from_day) VALUES (99, 20190629)`},
	{"retention_pauses_pkey", `INSERT INTO retention_pauses (app_id, run, from_day, until) VALUES (1, 7, 20190629, now())`},
	{"retention_pauses_app_id_fkey", `INSERT INTO retention_pauses (app_id, run, from_day, until) VALUES (99, 7, 20190629, now())`},
	{"visits_kept_go_in_order", `UPDATE visits_kept SET gone_before = from_day + 1`},
	{"closed_days_pkey", `INSERT INTO closed_days (day_id) VALUES (20190629)`},
	{"sketches_pkey", `INSERT INTO sketches (page_id, day_id, entries) VALUES (1, 20190629, '{1}')`},
	{"sketches_have_registers", `UPDATE sketches SET entries = '{}'`},
	{"sketches_have_registers", `UPDATE sketches SET entries = array_fill(65, '{4097}')`},
	{"tops_pkey", `INSERT INTO tops (app_id, site_id, day_id, by, page_ids, numbers) VALUES (1, 1, 20190629, 'pv', '{2}', '{1}')`},
	{"tops_by_is_known", `UPDATE tops SET by = 'ip'`},
	{"tops_lists_match", `UPDATE tops SET numbers = '{1, 2}'`},

	{"people_pkey", `INSERT INTO people (app_id, period, height, id) VALUES (1, 0, 0, '192.0.2.1'), (1, 0, 0, '192.0.2.1')`},
	{"people_lead_to_others", `INSERT INTO people (app_id, period, height, id, person) VALUES (1, 0, 0, '192.0.2.1', '192.0.2.1')`},
	{"people_height_range", `INSERT INTO people (app_id, period, height, id) VALUES (1, 0, 5, '192.0.2.1')`},
	{"people_height_range", `INSERT INTO people (app_id, period, height, id, person) VALUES (1, 0, 4, '192.0.2.1', '192.0.2.2')`},
	{"people_tags_of_persons", `INSERT INTO people (app_id, period, height, id, person, tag_ids)
		VALUES (1, 0, 0, '192.0.2.1', '192.0.2.2', '{1}')`},
	{"people_tags_are_some", `INSERT INTO people (app_id, period, height, id, tag_ids) VALUES (1, 0, 0, '192.0.2.1', '{}')`},

	{"schema_files_pkey", `INSERT INTO schema_files (name, hash) VALUES ('functions', '')`},
	{"schema_objects_pkey", `INSERT INTO schema_objects (kind, name) VALUES ('VIEW', 'report.days')`},
	{"schema_objects_kind_is_known", `INSERT INTO schema_objects (kind, name) VALUES ('TABLE', 'visits')`},
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	_, conn := fixture(t)
	assert.Equal(t, int64(2), query[int64](t, conn, `SELECT id FROM pages WHERE key = page_key('example.com/a')`))
	exec(t, conn, `INSERT INTO visitors (page_id, ip, rank, first_day, last_day) VALUES (2, '192.0.2.1', 1, 20190629, 20190629)`)
	exec(t, conn, `INSERT INTO visits (page_id, day_id, previous_day, ip) VALUES (2, 20190629, 0, '192.0.2.1')`)
	exec(t, conn, `INSERT INTO batches (id, turn, schema_version) VALUES ('00000000-0000-0000-0000-000000000000', 0, 2)`)
	exec(t, conn, `INSERT INTO positions (app_id, source, part) VALUES (1, 'calls', 'a')`)
	exec(t, conn, `INSERT INTO refused (app_id, source, part, position, reason, beginning) VALUES (1, 'kafka', '0', 7, '', '')`)
	exec(t, conn, `INSERT INTO visit_ids (app_id, day_id, id) VALUES (1, 20190629, 'a')`)
	exec(t, conn, `INSERT INTO inbox (app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips)
		VALUES (1, 1, 'UTC', 'address', 64, '{example.com/a}', '{1}', '{20190629}', '{0}', '{192.0.2.1}')`)
	exec(t, conn, `INSERT INTO logs (app_id, claimed, lines, hash, file, rules, counted)
		VALUES (1, 9, 1, sha256('a'), 'access.log', '', 0)`)
	exec(t, conn, `SELECT count_lines(1, '', '{1}', '{0}', '{2026-01-01}', ARRAY[sha256('a')])`)
	exec(t, conn, `INSERT INTO read_logs (app_id, options, inode, run) VALUES (1, sha256('a'), '1:1', 'a')`)
	exec(t, conn, `INSERT INTO log_samples (app_id, log_id, hour, sample) VALUES (1, 1, 1, repeat('a', 28)::bytea)`)
	exec(t, conn, `INSERT INTO log_lines (app_id, log_id, line, hour, hashes) VALUES (1, 1, 0, 1, sha256('a'))`)
	exec(t, conn, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) VALUES (1, 20190629, 1, 1, 0)`)
	exec(t, conn, `INSERT INTO open_returns (page_id, day_id, previous_day, visitors) VALUES (1, 20190629, 20190628, 1)`)
	exec(t, conn, `INSERT INTO packed_returns (page_id, day_id, previous_days, visitors) VALUES (1, 20190629, B'1', B'1')`)
	exec(t, conn, `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'a', sha256('a'), '{count, assert, read}')`)
	exec(t, conn, `INSERT INTO accounts (name, folded) VALUES ('a', 'a')`)
	exec(t, conn, `INSERT INTO account_apps (account_id, app_id) VALUES (1, 1)`)
	exec(t, conn, `INSERT INTO account_sessions (account_id, hash, browser) VALUES (1, sha256('a'), '')`)
	exec(t, conn, `INSERT INTO account_links (hash, account_id) VALUES (sha256('a'), 1)`)
	exec(t, conn, `INSERT INTO shares (app_id, last_day, name, hash) VALUES (1, to_char(now(), 'YYYYMMDD')::integer, 'a', sha256('a'))`)
	exec(t, conn, `INSERT INTO notes (app_id, day_id, text) VALUES (1, 20190629, 'a')`)
	exec(t, conn, `INSERT INTO offsets (app_id, uri, hot, pv, uv) VALUES (1, 'example.com', 1, 1, 1)`)
	exec(t, conn, `INSERT INTO history_imports (app_id, source, files) VALUES (1, 'umami', '{a.csv}')`)
	exec(t, conn, `INSERT INTO history_days (app_id, import_id, day_id, site) VALUES (1, 1, 20190629, 'example.com')`)
	exec(t, conn, `INSERT INTO history (day, uri, page_views) VALUES (1, 'example.com', 1)`)
	exec(t, conn, `INSERT INTO webhooks (app_id, uri, url, private, seen) VALUES (1, 'example.com', 'https://a.example', false, 0)`)
	exec(t, conn, `INSERT INTO page_tallies (app_id, day_id, today) VALUES (1, 20190629, 2)`)
	exec(t, conn, `INSERT INTO tags (app_id, name, value) VALUES (1, 'source', 'a.example')`)
	exec(t, conn, `INSERT INTO tag_days (page_id, pv, newcomers, day_id, tag_id) VALUES (1, 1, 1, 20190629, 1)`)
	exec(t, conn, `INSERT INTO day_keys (day_id, key) VALUES (20190629, sha256('a'))`)
	exec(t, conn, `INSERT INTO erased_visitors (page_id, part, place) VALUES (2, 0, 0)`)
	exec(t, conn, `INSERT INTO erased_visits (page_id, day_id, previous_day, visitors) VALUES (2, 20190629, 0, 1)`)
	exec(t, conn, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20190629)`)
	exec(t, conn, `INSERT INTO retention_pauses (app_id, run, from_day, until) VALUES (1, 7, 20190629, now())`)
	exec(t, conn, `INSERT INTO closed_days (day_id) VALUES (20190629)`)
	exec(t, conn, `INSERT INTO sketches (page_id, day_id, entries) VALUES (1, 20190629, '{65}')`)
	exec(t, conn, `INSERT INTO tops (app_id, site_id, day_id, by, page_ids, numbers) VALUES (1, 1, 20190629, 'pv', '{2}', '{1}')`)
	for _, rule := range rules {
		t.Run(rule.refusedBy, func(t *testing.T) {
			_, err := conn.Exec(t.Context(), rule.sql)
			var refused *pgconn.PgError
			require.True(t, errors.As(err, &refused), "%s: %v", rule.sql, err)
			by := refused.ConstraintName
			if by == "" {
				by = refused.Code
			}
			// A partition's key is named after the partition.
			by = strings.NewReplacer("visits_20190629_", "visits_", "batches_0_", "batches_", "people_0_", "people_").Replace(by)
			assert.Equal(t, rule.refusedBy, by, rule.sql)
		})
	}

	// Each constraint has a name from us, and a line in rules under this name. The exception is apps_tz_is_known:
	// PostgreSQL's own error 22023 comes before this check can fail.
	tried := map[string]bool{"apps_tz_is_known": true}
	for _, rule := range rules {
		tried[strings.Replace(rule.refusedBy, "inbox_0_", "inbox_", 1)] = true // a partition has its own name for the constraint
	}
	for _, name := range dbtest.Column[string](t, conn, `
		SELECT c.conname FROM pg_constraint AS c JOIN pg_class AS t ON t.oid = c.conrelid
		WHERE t.relnamespace = 'footfall'::regnamespace AND NOT t.relispartition AND t.relname NOT LIKE 'goose%'
		  AND c.contype IN ('c', 'u', 'p', 'f', 'x')`) {
		assert.NotRegexp(t, `_(check|key|excl)\d*$`, name, "PostgreSQL's name, not ours")
		assert.True(t, tried[name], "rules has no line for %s", name)
	}
}
