package db_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	neturl "net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// withRole returns the URL with the rights of a role.
func withRole(t *testing.T, url, role string) string {
	t.Helper()
	u, err := neturl.Parse(url)
	require.NoError(t, err)
	query := u.Query()
	query.Set("role", role)
	u.RawQuery = query.Encode()
	return u.String()
}

// withLogin returns the URL for a separate user, with the password from newLogin.
func withLogin(t *testing.T, url, user string) string {
	t.Helper()
	u, err := neturl.Parse(url)
	require.NoError(t, err)
	u.User = neturl.UserPassword(user, "secret")
	return u.String()
}

// newLogin makes a user that is a member of a role, until the end of the test.
func newLogin(t *testing.T, conn *pgx.Conn, memberOf string) (user string) {
	t.Helper()
	dbtest.NeedSuperuser(t, conn)
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails
	user = "footfall_test_" + hex.EncodeToString(unique)
	exec(t, conn, `CREATE ROLE `+user+` LOGIN PASSWORD 'secret' IN ROLE `+memberOf)
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), `DROP OWNED BY `+user+` CASCADE; DROP ROLE `+user)
		assert.NoError(t, err)
	})
	return user
}

// code returns the SQLSTATE of an error.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

const insufficientPrivilege = "42501"

// For a service whose URL names the role, see TestOwnerWhoMayNotMakeRoles.
func TestServiceCountsAsAMemberOfFootfallApp(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	dbtest.NeedSuperuser(t, conn)
	exec(t, conn, `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'a', sha256('a'), '{count}')`)
	serveOn(t, dbtest.Open(t, withLogin(t, url, newLogin(t, conn, "footfall_app")), db.Options{}), conn)
}

// serveOn makes the calls of a running service. owner is a connection of the tables' owner.
func serveOn(t *testing.T, d *db.DB, owner *pgx.Conn) {
	ctx := t.Context()
	require.NoError(t, d.Ping(ctx))
	require.NoError(t, d.CheckSchema(ctx))
	require.NoError(t, d.Probe(ctx))

	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := make(chan *db.Access, 10)
	watcher := async(t, func() error { return d.WatchApps(watching, "", func(a *db.Access) { seen <- a }) })
	require.Len(t, receive(t, seen, "the apps").Keys, 1)
	exec(t, owner, `INSERT INTO apps (name) VALUES ('second')`)
	require.Len(t, receive(t, seen, "the new app").Apps, 2)
	stop()
	require.ErrorIs(t, receive(t, watcher, "the end of the watcher"), context.Canceled)
	require.NoError(t, d.Queries().KeysUsed(ctx, []int32{1}))
	require.True(t, query[bool](t, owner, `SELECT used_at IS NOT NULL FROM keys`))

	for _, made := range []bool{true, false} {
		mine, err := d.Queries().VisitsDayMake(ctx, today+1)
		require.NoError(t, err)
		require.Equal(t, made, mine)
	}
	missing, err := d.Queries().VisitsDaysMissing(ctx, []int32{today, today + 1})
	require.NoError(t, err)
	require.Empty(t, missing)

	serveVisits(t, d, owner)

	key := make([]byte, 32)
	require.NoError(t, d.Queries().DayKeyMake(ctx, today, key))
	require.NoError(t, d.Queries().DayKeyMake(ctx, today, key))
	_, err = d.Queries().DayKeyGet(ctx, today)
	require.NoError(t, err)
	require.NoError(t, d.Queries().DayKeysForget(ctx, today+1))
	require.Zero(t, query[int64](t, owner, `SELECT count(*) FROM day_keys`))

	serveInbox(t, d, owner)
	letGo(t, d, owner)
}

// serveInbox writes visits to the inbox, and takes them out.
func serveInbox(t *testing.T, d *db.DB, owner *pgx.Conn) {
	ctx, q := t.Context(), d.Queries()
	visit := db.InboxPutParams{App: 1, Tz: "UTC", Visitor: "address", Ipv6Prefix: 64, Uris: []string{"example.org/x"}, Pages: []int32{1, 1},
		Days: []int32{today, today}, NewPages: []int32{0, 0}, Ips: []netip.Addr{netip.MustParseAddr("192.0.2.1"),
			netip.MustParseAddr("192.0.2.2")}}
	require.NoError(t, d.Accept(ctx, [16]byte{9}, []db.InboxPutParams{visit}, db.PastDayColumns{}))
	rows, err := q.InboxRead(ctx, db.InboxReadParams{ButFor: []int32{}, Visits: 10})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.NoError(t, q.InboxTake(ctx, db.InboxTakeParams{Numbers: []int64{rows[0].Number}, Froms: []int32{0}, Untils: []int32{1}}))
	exec(t, owner, `SELECT pg_advisory_lock(hashtext('footfall.past_days'), 1)`)
	now, err := q.InboxLook(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, []db.InboxLookRow{{AppID: 1, Visits: 1, First: rows[0].Number, Last: rows[0].Number, Oldest: now[0].Oldest,
		IsLocked: true}}, now)
	exec(t, owner, `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, q.InboxTake(ctx, db.InboxTakeParams{Numbers: []int64{rows[0].Number}, Froms: []int32{1}, Untils: []int32{2}}))
	behind, err := q.InboxBehind(ctx, 1, 0)
	require.NoError(t, err)
	require.Zero(t, behind)
	_, err = q.InboxUncounted(ctx, 1, 0)
	require.NoError(t, err)
}

// serveVisits counts, deletes ids of batches, and reads the numbers.
func serveVisits(t *testing.T, d *db.DB, owner *pgx.Conn) {
	ctx := t.Context()
	basis, err := d.Basis(ctx)
	require.NoError(t, err)
	ids, _, err := d.Intern(ctx, interning([]string{"example.org/x", "example.org/y"}, []string{"example.org", "example.org"}))
	require.NoError(t, err)
	require.Len(t, ids, 3)
	from := db.Tag{Name: "source", Value: "a.example"}
	require.NoError(t, d.MakeTags(ctx, 1, today, db.NewTags{Open: []db.Tag{from}}, 1, map[db.Tag]int32{}))
	tags, err := d.FindTags(ctx, 1, []db.Tag{from})
	require.NoError(t, err)
	var out db.Outcome
	for day := range int32(2) {
		b := visitBatch("192.0.2.1", ids["example.org"], ids["example.org/x"])
		b.Basis = basis
		onDay(b, today+day)
		b.Pairs.Tags.Add(0, ids["example.org"], today+day, []int32{tags[from]})
		require.NoError(t, d.Write(ctx, b, &out))
		require.Equal(t, db.Verdict{Rank: 1, Newcomer: day == 0, Counted: true}, out.Verdicts[0])
		committed, err := d.DidCommit(ctx, b.ID)
		require.NoError(t, err)
		require.True(t, committed)
	}
	require.Equal(t, int32(today+1), query[int32](t, owner, `SELECT max(last_day) FROM visitors`))
	late, err := d.MayBeLate(ctx, []int64{ids["example.org"]}, []int32{today})
	require.NoError(t, err)
	require.True(t, late)
	b := visitBatch("192.0.2.1", ids["example.org"], ids["example.org/x"])
	onDay(b, today)
	b.PastDays = db.PastDayColumns{Apps: []int32{1}, Days: []int32{today}}
	b.Late, b.Rows = true, db.DayColumns{Targets: b.Targets.IDs, Sites: []int64{0, ids["example.org"]}, Days: []int32{today, today},
		Hot: []int64{1, 1}}
	b.Targets.Days = []int32{0, 0}
	require.NoError(t, d.Write(ctx, b, &out))
	require.Equal(t, db.Verdict{Rank: 1}, out.Verdicts[0])
	_, err = d.FirstDay(ctx, 1)
	require.NoError(t, err)
	_, err = d.EmptyBatches(ctx)
	require.NoError(t, err)
	counted, err := d.CountedVisits(ctx, &b.Pairs)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true}, counted)
	require.NoError(t, d.FoldTags(ctx))
	require.Equal(t, int64(2), query[int64](t, owner, `SELECT sum(pv) FROM tag_days`))

	visitor := netip.MustParseAddr("192.0.2.1")
	counts, err := d.Queries().CountsGet(ctx, db.CountsGetParams{AppID: 1, Uris: []string{"example.org/x"}, Ip: &visitor})
	require.NoError(t, err)
	require.Equal(t, int64(3), counts[0].Hot)
	visitors, err := d.Queries().VisitorsCount(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(2), visitors)
	require.NoError(t, d.InTx(ctx, func(q *db.Queries) error {
		if err := q.ReadInOrder(ctx, "1s"); err != nil {
			return err
		}
		rows, err := q.VisitorsAfter(ctx, db.VisitorsAfterParams{Ip: netip.IPv4Unspecified(), Rows: 10})
		assert.Len(t, rows, 2)
		return err
	}))
}

// notForTheService are statements by which a compromised service could change or read more than it needs.
var notForTheService = []string{
	`UPDATE apps SET access = 'open'`, `INSERT INTO apps (name) VALUES ('mine')`, `DELETE FROM apps`, `SELECT FROM apps FOR UPDATE`,
	`INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'b', sha256('b'), '{assert}')`,
	`UPDATE keys SET hash = sha256('b')`, `UPDATE keys SET scopes = '{assert}'`, `UPDATE keys SET revoked_at = NULL`, `DELETE FROM keys`,
	`INSERT INTO shares (app_id, last_day, name, hash) VALUES (1, 20270101, 'b', sha256('b'))`, `UPDATE shares SET revoked_at = NULL`,
	`DELETE FROM shares`, `UPDATE notes SET text = 'x'`,
	`INSERT INTO notes (app_id, day_id, text) VALUES (1, 20190629, 'a')`, `DELETE FROM notes`,
	`INSERT INTO admin_keys (name, hash) VALUES ('b', sha256('b'))`, `UPDATE admin_keys SET revoked_at = NULL`, `DELETE FROM admin_keys`,
	`UPDATE changes SET who = 'other'`, `DELETE FROM changes`,
	`UPDATE webhooks SET url = 'https://b.example'`, `UPDATE webhooks SET private = true`, `UPDATE webhooks SET uri = 'b.example'`,
	`DELETE FROM webhooks`, `UPDATE webhooks SET salt = NULL`,
	`INSERT INTO webhooks (app_id, uri, url, private, seen) VALUES (1, 'a.example', 'https://a.example', false, 0)`,
	`UPDATE epochs SET value = 0`, `DELETE FROM epochs`, `INSERT INTO epochs (name) VALUES ('x')`,
	`UPDATE pages SET uri = 'example.com/z'`, `DELETE FROM pages`, `SELECT setval('pages_id_seq', 1)`,
	`UPDATE page_tallies SET app_id = 2`, `DELETE FROM page_tallies`,
	`UPDATE tags SET value = 'x'`, `DELETE FROM tags`, `UPDATE tag_days SET day_id = 20190628`, `DELETE FROM tag_days`,
	`DELETE FROM account_apps; TRUNCATE accounts CASCADE`, `UPDATE tag_news SET tags = ''`, `TRUNCATE tag_news`,
	`UPDATE here SET visitors = '{}'`, `TRUNCATE here`,
	`INSERT INTO history_imports (app_id, source, files) VALUES (1, 'umami', '{a}')`, `DELETE FROM history_imports`,
	`INSERT INTO history_days (app_id, import_id, day_id, site) VALUES (1, 1, 20190629, 'a')`, `UPDATE history SET visits = 1`,
	`INSERT INTO titles (page_id, title, told_at) VALUES (2, 'a', now())`, `UPDATE titles SET title = 'a'`, `DELETE FROM titles`,
	`UPDATE counters SET page_id = 9`, `DELETE FROM counters`,
	`UPDATE visitors SET ip = '192.0.2.9'`, `UPDATE visitors SET rank = 9`, `UPDATE visitors SET first_day = 20190101`, `DELETE FROM visitors`,
	`UPDATE visits SET ip = '192.0.2.9'`, `DELETE FROM visits`,
	`UPDATE batches SET id = gen_random_uuid()`, `UPDATE day_keys SET key = sha256('x')`, `DELETE FROM day_keys`, `TRUNCATE day_keys`,
	`SELECT FROM erased_visitors`, `INSERT INTO erased_visitors (page_id, part, place) VALUES (2, 0, 0)`, `DELETE FROM erased_visitors`,
	`SELECT FROM erased_ranks`, `SELECT erase_ranks('{2}', '{1}')`,
	`SELECT FROM erased_visits`, `INSERT INTO erased_visits (page_id, day_id, previous_day, visitors) VALUES (2, 20190629, 0, 1)`,
	`DELETE FROM erased_visits`,
	`UPDATE inbox SET visits = 2`, `UPDATE inbox SET counted = 1`, `DELETE FROM inbox`, `TRUNCATE inbox`,

	`SELECT merge_sketches(2, 3)`, `SELECT drop_functions()`, `SELECT note_functions('')`,
	`UPDATE visits_kept SET from_day = 20190701`, `INSERT INTO visits_kept (app_id, from_day) VALUES (1, 20190701)`, `DELETE FROM visits_kept`,
	`INSERT INTO closed_days (day_id) VALUES (20190629)`, `DELETE FROM closed_days`, `DELETE FROM tops`,
	`UPDATE days SET day_id = 20190628`, `DELETE FROM days`, `UPDATE open_returns SET previous_day = 20190628`, `DELETE FROM open_returns`,
	`INSERT INTO packed_returns (page_id, day_id, previous_days, visitors) VALUES (1, 20190629, B'1', B'1')`,
	`UPDATE packed_returns SET visitors = B'1'`, `DELETE FROM packed_returns`,
	`SELECT add_packed_returns('{1}', '{20190629}', '{20190628}', '{1}')`,
	`UPDATE schema_files SET hash = ''`, `DELETE FROM schema_files`, `SELECT FROM schema_objects`,
	`INSERT INTO schema_objects (kind, name) VALUES ('FUNCTION', 'mine()')`,
	`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`, `DELETE FROM goose_db_version`,

	`SELECT FROM visits_20190629`, `DELETE FROM visits_20190629`, `DROP TABLE visits_20190629`,
	`INSERT INTO visits_20190629 (page_id, day_id, previous_day, ip) VALUES (2, 20190629, 0, '192.0.2.1')`,
	`ALTER TABLE visits DETACH PARTITION visits_20190629`,

	`TRUNCATE visitors`, `TRUNCATE batches`, `TRUNCATE batches_0`, `DELETE FROM batches`, `TRUNCATE visits`, `DROP TABLE visitors`,
	`DROP SCHEMA footfall CASCADE`, `DROP FUNCTION basis()`,
	`ALTER TABLE visitors ADD COLUMN x integer`, `ALTER TABLE visitors DISABLE TRIGGER visitors_erased`, `LOCK TABLE visitors`,
	`CREATE TABLE footfall.mine ()`, `CREATE TABLE public.mine ()`, `CREATE TABLE report.mine ()`, `CREATE SCHEMA mine`,
	`CREATE OR REPLACE FUNCTION footfall.basis() RETURNS text LANGUAGE sql AS 'SELECT NULL::text'`,
	`CREATE TRIGGER mine BEFORE INSERT ON visitors FOR EACH ROW EXECUTE FUNCTION erasure_raises_epoch()`,
	`CREATE ROLE mine`, `GRANT SELECT ON erased_visitors TO footfall_report`, `SELECT grant_roles()`, `COPY visitors TO PROGRAM 'true'`,
}

func TestServiceMayDoNoMore(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	needRole(t, conn, "footfall_app")
	service := dbtest.Connect(t, url)
	exec(t, service, `SET ROLE footfall_app`)
	for _, sql := range notForTheService {
		_, err := service.Exec(t.Context(), `BEGIN; `+sql)
		assert.Equal(t, insufficientPrivilege, code(err), "%s: %v", sql, err)
		exec(t, service, `ROLLBACK`)
		_, err = conn.Exec(t.Context(), `BEGIN; `+sql)
		assert.NotRegexp(t, `^42`, code(err), "the owner might, so that it is a matter of rights: %s: %v", sql, err)
		exec(t, conn, `ROLLBACK`)
	}
}

// needRole skips a test if its session cannot assume a role.
func needRole(t *testing.T, conn *pgx.Conn, role string) {
	t.Helper()
	dbtest.NeedSuperuser(t, conn)
	require.True(t, query[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1 AND NOT rolcanlogin)`, role),
		"migrating as a superuser makes the role")
}

func TestEveryTableIsTheServicesAndNobodyElses(t *testing.T) {
	t.Parallel()
	conn := dbtest.Connect(t, dbtest.New(t))
	for _, right := range rightsOf(t, conn, "PUBLIC") {
		if name, isFunction := strings.CutPrefix(right, "function "); isFunction {
			name = strings.TrimSuffix(name, ": EXECUTE")
			assert.False(t, query[bool](t, conn, `SELECT bool_or(prosecdef) FROM pg_proc WHERE proname = $1`, name),
				"%s runs with its owner's rights, not its caller's", name)
			continue
		}
		assert.Equal(t, "schema public: USAGE", right)
	}
	assert.NotNil(t, query[*string](t, conn, `SELECT obj_description('report'::regnamespace, 'pg_namespace')`),
		"the schema report has a comment")

	needRole(t, conn, "footfall_app")
	others := dbtest.Column[string](t, conn, `
		SELECT relname FROM pg_class
		WHERE relnamespace = 'footfall'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND NOT relispartition
		  AND NOT has_table_privilege('footfall_app', oid, 'SELECT')
		  AND NOT starts_with(relname, 'takeout_') -- of commands
		ORDER BY 1`)
	assert.Equal(t, []string{"erased_ranks", "erased_visitors", "erased_visits", "returns", "schema_objects", "sketches"}, others,
		"grant_roles() grants the service its rights on a new table")
}

// rightsOf lists the rights granted to a role, or to PUBLIC, in the database, without PostgreSQL's own schemas.
func rightsOf(t *testing.T, conn *pgx.Conn, role string) []string {
	t.Helper()
	return dbtest.Column[string](t, conn, `
		WITH granted AS (
			SELECT 'schema ' || nspname AS what, nspacl AS acl, nspname AS schema FROM pg_namespace
			UNION ALL
			SELECT 'table ' || relname, relacl, relnamespace::regnamespace::name FROM pg_class
			UNION ALL
			SELECT format('column %s.%s', c.relname, a.attname), a.attacl, c.relnamespace::regnamespace::name
			FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid AND NOT a.attisdropped
			UNION ALL
			SELECT 'function ' || proname, coalesce(proacl, acldefault('f', proowner)), pronamespace::regnamespace::name FROM pg_proc
			UNION ALL
			SELECT format('later %s in %s', defaclobjtype, defaclnamespace::regnamespace), defaclacl, '' FROM pg_default_acl
		)
		SELECT format('%s: %s', what, a.privilege_type)
		FROM granted CROSS JOIN aclexplode(acl) AS a
		WHERE schema !~ '^pg_|^information_schema$'
		  AND a.grantee = CASE $1::text WHEN 'PUBLIC' THEN 0 ELSE (SELECT oid FROM pg_roles WHERE rolname = $1::text) END
		ORDER BY 1`, role)
}

func TestReadersReadReportsAndNothingElse(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	needRole(t, conn, "footfall_report")
	assert.Equal(t, []string{
		"column apps.access: SELECT", "column apps.cell: SELECT", "column apps.hashed_as: SELECT", "column apps.id: SELECT",
		"column apps.ipv6_prefix: SELECT",
		"column apps.keep_query: SELECT", "column apps.name: SELECT",
		"column apps.secret_id: SELECT", "column apps.sites: SELECT", "column apps.tz: SELECT", "column apps.visitor: SELECT",
		"function apps_today: EXECUTE", "function chart: EXECUTE", "function days_where: EXECUTE", "function events_where: EXECUTE",
		"function filter_panels: EXECUTE", "function filters_since: EXECUTE",
		"function find_pages: EXECUTE", "function first_visits: EXECUTE", "function funnel_where: EXECUTE", "function goals_where: EXECUTE",
		"function here: EXECUTE",
		"function numbers: EXECUTE", "function numbers_where: EXECUTE",
		"function one_page_where: EXECUTE", "function pages_where: EXECUTE", "function people: EXECUTE", "function periods: EXECUTE",
		"function returned_after: EXECUTE", "function sites_between: EXECUTE", "function tag_names: EXECUTE", "function tag_pages: EXECUTE",
		"function tags: EXECUTE", "function tags_where: EXECUTE",
		"function top_pages: EXECUTE", "function totals: EXECUTE", "function uniques: EXECUTE", "function uniques: EXECUTE",
		"function uniques_under: EXECUTE", "function visitors_where: EXECUTE", "function who_came: EXECUTE",
		"later f in report: EXECUTE", "later r in report: SELECT", "schema footfall: USAGE", "schema report: USAGE",
		"table counters: SELECT", "table days: SELECT", "table days: SELECT", "table goose_db_version: SELECT", "table history: SELECT",
		"table notes: SELECT",
		"table pages: SELECT", "table pages: SELECT",
		"table ranks: SELECT", "table returns: SELECT", "table schema_files: SELECT", "table sites: SELECT", "table tag_days: SELECT",
		"table titles: SELECT", "table totals: SELECT", "table visitors: SELECT", "table visitors_today: SELECT",
		"table visits: SELECT", "table visits: SELECT", "table visits_kept: SELECT",
	}, rightsOf(t, conn, "footfall_report"))
	exec(t, conn, `CREATE VIEW report.uris AS SELECT uri FROM footfall.pages`)
	exec(t, conn, `CREATE FUNCTION report.one() RETURNS integer LANGUAGE sql AS 'SELECT 1'`)

	reader := dbtest.Connect(t, url)
	exec(t, reader, `SET ROLE footfall_report`)
	assert.Len(t, dbtest.Column[string](t, reader, `SELECT uri FROM report.uris`), 3, "a view that was made later")
	assert.Equal(t, int32(1), query[int32](t, reader, `SELECT report.one()`), "a function that was made later")
	exec(t, reader, `CREATE TEMP TABLE scratch AS SELECT uri FROM report.uris`)

	tables := dbtest.Column[string](t, conn,
		`SELECT 'footfall.' || relname FROM pg_class WHERE relnamespace = 'footfall'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')`)
	require.Contains(t, tables, "footfall.visits_20190629")
	refused := []string{
		`INSERT INTO report.uris VALUES ('x')`, `CREATE TABLE report.mine ()`, `CREATE TABLE footfall.mine ()`, `CREATE TABLE public.mine ()`,
		`DROP VIEW report.uris`,
		`SELECT footfall.make_visits_day(20190701)`, `SELECT footfall.drop_visits_day(20190629)`, `SELECT footfall.grant_roles()`,
		`SELECT footfall.basis()`,
	}
	read := []string{
		"footfall.apps", "footfall.pages", "footfall.counters", "footfall.visitors", "footfall.visits", "footfall.days", "footfall.visits_kept",
		"footfall.schema_files", "footfall.goose_db_version", "footfall.totals", "footfall.titles",
	}
	for _, table := range tables {
		if slices.Contains(read, table) { // by `footfall report`
			exec(t, reader, `SELECT FROM `+table)
		} else {
			refused = append(refused, `SELECT FROM `+table)
		}
		views := []string{"footfall.returns", "footfall.erased_ranks", "footfall.totals", "footfall.bases"}
		if !slices.Contains(views, table) && !strings.HasPrefix(table, "footfall.takeout_") {
			refused = append(refused, `INSERT INTO `+table+` DEFAULT VALUES`, `DELETE FROM `+table, `TRUNCATE `+table)
		}
	}
	for _, column := range []string{"ignore", "created_at", "bots", "respect_dnt", "max_requests", "max_new_pages", "retain_days",
		"forget_days", "public_counts", "tags"} {
		refused = append(refused, `SELECT `+column+` FROM footfall.apps`)
	}
	for _, sql := range refused {
		_, err := reader.Exec(t.Context(), sql)
		assert.Equal(t, insufficientPrivilege, code(err), "%s: %v", sql, err)
	}
}

func TestGrantsGoDownAndUpAgain(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	d, conn := dbtest.Open(t, url, db.Options{}), dbtest.Connect(t, url)
	needRole(t, conn, "footfall_app")
	roles := []string{"footfall_app", "footfall_report", "PUBLIC"}
	var before [3][]string
	for i, role := range roles {
		before[i] = rightsOf(t, conn, role)
		require.NotEmpty(t, before[i], role)
	}
	for name := ""; !strings.Contains(name, "roles"); {
		var err error
		name, err = d.MigrateDown(t.Context())
		require.NoError(t, err)
	}
	assert.Empty(t, rightsOf(t, conn, "footfall_app"))
	assert.Empty(t, rightsOf(t, conn, "footfall_report"))
	assert.Empty(t, dbtest.Column[string](t, conn, `SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'footfall'::regnamespace`))
	assert.Nil(t, query[*string](t, conn, `SELECT to_regnamespace('report')::text`))

	for range 2 { // the second time there is nothing to apply
		_, err := d.MigrateUp(t.Context())
		require.NoError(t, err)
		for i, role := range roles {
			assert.Equal(t, before[i], rightsOf(t, conn, role), role)
		}
	}
}

// Roles belong to a whole server, and the shared test server has them: tests of missing roles need another server.

// ownServer starts a server for one test. The connection is its superuser's.
func ownServer(t *testing.T) (url string, admin *pgx.Conn) {
	t.Helper()
	url = dbtest.Own(t, dbtest.OwnDir(t), "").URL()
	return url, dbtest.Connect(t, url)
}

// inDatabase returns the URL of another database of the server.
func inDatabase(t *testing.T, url, name string) string {
	t.Helper()
	u, err := neturl.Parse(url)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

func TestOwnerWhoMayNotMakeRoles(t *testing.T) {
	t.Parallel()
	url, admin := ownServer(t)
	exec(t, admin, `CREATE ROLE keeper LOGIN PASSWORD 'secret'`)
	exec(t, admin, `CREATE DATABASE managed OWNER keeper TEMPLATE template0 ENCODING 'UTF8'`)
	url = inDatabase(t, url, "managed")
	keeper := dbtest.Open(t, withLogin(t, url, "keeper"), db.Options{})

	applied, err := keeper.MigrateUp(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, applied)
	missing, err := keeper.Queries().RolesGrant(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"footfall_app", "footfall_report"}, missing)
	require.NoError(t, keeper.CheckSchema(t.Context()))
	owner := dbtest.Connect(t, withLogin(t, url, "keeper"))
	exec(t, owner, `CREATE VIEW report.names AS SELECT name FROM footfall.apps`)

	exec(t, admin, `CREATE ROLE footfall_app`)
	service := dbtest.Open(t, withRole(t, url, "footfall_app"), db.Options{})
	require.ErrorContains(t, service.CheckSchema(t.Context()), "the role footfall_app may not read")
	missing, err = keeper.Queries().RolesGrant(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"footfall_report"}, missing)
	require.NoError(t, service.CheckSchema(t.Context()))

	exec(t, admin, `CREATE ROLE footfall_report`)
	again, err := keeper.MigrateUp(t.Context())
	require.NoError(t, err)
	assert.Empty(t, again)
	reader := dbtest.Connect(t, withRole(t, url, "footfall_report"))
	dbtest.Column[string](t, reader, `SELECT name FROM report.names`) // the view was made before the role existed

	exec(t, owner, `INSERT INTO apps (name) VALUES ('shop')`)
	exec(t, owner, `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'a', sha256('a'), '{count}')`)
	require.True(t, query[bool](t, owner, `SELECT make_visits_day($1)`, today))
	serveOn(t, service, owner)
	exec(t, owner, `DROP VIEW report.names`) // the last step down could not drop a schema with this view
	steps := query[int](t, owner, `SELECT count(*) FROM goose_db_version WHERE version_id > 0`)
	require.Positive(t, steps)
	for range steps {
		_, err := keeper.MigrateDown(t.Context())
		require.NoError(t, err, "the owner reverts their own steps")
	}
}

// Tests, and hosts of many small sites, migrate many databases of one server at the same time.
func TestManyDatabasesMakeTheRolesAtOnce(t *testing.T) {
	t.Parallel()
	databases, rounds := dbtest.LongOrShort(8, 4), dbtest.LongOrShort(5, 2)
	url, admin := ownServer(t)
	var all sync.WaitGroup
	opened, conns := make([]*db.DB, databases), make([]*pgx.Conn, databases)
	for i := range opened {
		name := fmt.Sprintf("site_%d", i)
		exec(t, admin, `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'UTF8'`)
		opened[i], conns[i] = dbtest.Open(t, inDatabase(t, url, name), db.Options{}), dbtest.Connect(t, inDatabase(t, url, name))
		all.Go(func() {
			_, err := opened[i].MigrateUp(t.Context())
			assert.NoError(t, err)
		})
	}
	all.Wait()
	for range rounds {
		for _, conn := range conns {
			exec(t, conn, `DROP OWNED BY footfall_app, footfall_report`)
		}
		exec(t, admin, `DROP ROLE footfall_app, footfall_report`)
		start := make(chan struct{})
		for _, d := range opened {
			for range 2 { // in addition, an administrator grants by hand
				all.Go(func() {
					<-start
					missing, err := d.Queries().RolesGrant(t.Context())
					assert.NoError(t, err)
					assert.Empty(t, missing)
				})
			}
		}
		close(start)
		all.Wait()
		for _, conn := range conns {
			assert.Contains(t, rightsOf(t, conn, "footfall_app"), "table visits: INSERT")
			assert.Contains(t, rightsOf(t, conn, "footfall_report"), "schema report: USAGE")
		}
	}
}
