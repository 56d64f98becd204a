package handler

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
)

// peopleEdge returns an edge with an app that has people, and the headers of a caller who may read and write links.
func peopleEdge(t *testing.T) (e *edge, headers []string) {
	t.Helper()
	e = newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "blog", app.Settings{Sites: []string{"blog.example"}, Visitor: ptr("id"),
			Tags: []string{"default", "age", "plan", "a", "b", "c", "d", "e", "f", "g"}})
	})
	return e, []string{"Authorization", "Bearer " + e.key("blog", app.ScopeAssert, app.ScopeRead)}
}

// put links ids, and returns the result of each: ok, or the problem.
func (e *edge) put(body string, headers ...string) (said []string) {
	e.t.Helper()
	a := e.askWith(body, http.MethodPut, "/people?app=blog", headers...)
	require.Equal(e.t, http.StatusOK, a.status, a.body)
	var answer struct {
		People []struct {
			OK    bool
			Error string
		}
	}
	require.NoError(e.t, json.Unmarshal([]byte(a.body), &answer))
	for _, one := range answer.People {
		require.NotEqual(e.t, one.OK, one.Error != "", a.body)
		said = append(said, strings.TrimPrefix(one.Error, "is: "))
		if one.OK {
			said[len(said)-1] = "ok"
		}
	}
	return said
}

// A caller with the right to write links can do so, and a caller with the right to read sees the links.
func TestPeople(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	said := e.put(`{"id":"cookie:abc","is":"user:42"}
{"id":"user:42","tags":{"age":"25-34","plan":" Pro "}}

{"id":"device:1","is":"cookie:abc","tags":{"age":"35-44","plan":"pro"}}`, append(inLines, headers...)...)
	assert.Equal(t, []string{"ok", "ok", "ok"}, said)
	a := e.askWith(`{"app":"blog","ids":["device:1","cookie:abc","user:42","nobody","","`+strings.Repeat("x", 300)+`"]}`, http.MethodPost,
		"/people/lookup", append(inArray, headers...)...)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var answer struct{ People []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(a.body), &answer))
	person := answer.People[0]["person"]
	assert.Regexp(t, "^fd", person)
	tags := map[string]any{"age": "35-44", "plan": "pro"}
	assert.Equal(t, []map[string]any{
		{"id": "device:1", "person": person, "tags": tags}, {"id": "cookie:abc", "person": person, "tags": tags},
		{"id": "user:42", "person": person, "tags": tags},
		{"id": "nobody", "tags": map[string]any{}},
		{"error": "id: it is missing: send your own id for the visitor"},
		{"error": "id: it is longer than 256 bytes: shorten it, or send a hash of it"},
	}, answer.People)

	assert.JSONEq(t, `{"id":"cookie:abc","person":"`+person.(string)+`","tags":{"age":"35-44","plan":"pro"}}`,
		e.ask(http.MethodGet, "/people?app=blog&id=cookie:abc", headers...).body)
	assert.JSONEq(t, `{"id":"nobody","tags":{}}`, e.ask(http.MethodGet, "/people?app=blog&id=nobody", headers...).body)
	assert.Equal(t, []string{"ok"}, e.put(`[{"id":"cookie:abc","tags":{}}]`, append(inArray, headers...)...))
	assert.JSONEq(t, `{"id":"user:42","person":"`+person.(string)+`","tags":{}}`, e.ask(http.MethodGet, "/people?app=blog&id=user:42",
		headers...).body)

	// The same id in another app is another person, and its person here is not shown there.
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "other", app.Settings{Access: ptr("open"), Visitor: ptr("id"), Tags: []string{"age"}})
	})
	e.put(`{"id":"a","is":"b","tags":{"age":"1"}}`, append(inLines, headers...)...)
	assert.JSONEq(t, `{"id":"a","tags":{}}`, e.ask(http.MethodGet, "/people?app=other&id=a").body)
	assert.JSONEq(t, `{"people":[{"ok":true}]}`, e.askWith(`{"id":"b","is":"a"}`, http.MethodPut, "/people?app=other", inLines...).body,
		"which is a circle in neither")
	assert.Equal(t, "1", e.whom("a", headers...))
}

// Each rule on links, with the calls and their results: a>b is a link, a:t a tag.
func TestLinks(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	const ok, itself, circle, long = "ok", "it is the same as id", "this person is already linked to the id",
		"the id would lead to the person over more than 4 links"
	for name, calls := range map[string][][2]string{
		"to itself":                       {{"a>a", itself}},
		"a circle":                        {{"a>b", ok}, {"b>a", circle}},
		"a long circle":                   {{"a>b", ok}, {"b>c", ok}, {"c>d", ok}, {"d>a", circle}, {"c>a", circle}, {"d>e", ok}},
		"a circle in one call":            {{"a>b b>c c>a", ok + " " + ok + " " + circle}, {"c>d", ok}},
		"4 steps, the person last":        {{"a>b", ok}, {"b>c", ok}, {"c>d", ok}, {"d>e", ok}, {"e>f", long}, {"x>a", long}, {"x>b", ok}},
		"4 steps, the person first":       {{"d>e", ok}, {"c>d", ok}, {"b>c", ok}, {"a>b", ok}, {"x>a", long}, {"x>b", ok}, {"e>f", long}},
		"4 steps, in the middle last":     {{"a>b", ok}, {"d>e", ok}, {"c>d", ok}, {"b>c", ok}, {"x>a", long}, {"e>f", long}},
		"4 steps in one call":             {{"b>c a>b d>e c>d e>f x>a", ok + " " + ok + " " + ok + " " + ok + " " + long + " " + long}},
		"two chains to one of 4":          {{"a>b b>c", ok + " " + ok}, {"d>e", ok}, {"c>d", ok}, {"e>f", long}},
		"two chains to one of 5":          {{"a>b b>c", ok + " " + ok}, {"d>e e>f", ok + " " + ok}, {"c>d", long}, {"c>e", ok}},
		"a chain that is longer on a way": {{"a>b b>c", ok + " " + ok}, {"x>d d>e", ok + " " + ok}, {"c>d", ok}, {"e>f", long}},
		"a shorter chain comes later":     {{"a>b b>c", ok + " " + ok}, {"x>c", ok}, {"c>d d>e", ok + " " + ok}, {"e>f", long}},
		"another person":                  {{"a>b", ok}, {"a>c", ok}, {"b>a", ok}, {"c>b", circle}},
		"the same again":                  {{"a>b", ok}, {"a>b b>c", ok + " " + ok}, {"a>b", ok}, {"b>c a>b", ok + " " + ok}},
		"what fails changes nothing": {{"a>b b>c c>d d>e", strings.TrimSpace(strings.Repeat(" ok", 4))}, {"e>f", long},
			{"f>g g>h h>i i>j", strings.TrimSpace(strings.Repeat(" ok", 4))}},
	} {
		of := strings.ReplaceAll(name, " ", "-") + "." // prefix of the ids of a case
		for _, call := range calls {
			var items []string
			for link := range strings.FieldsSeq(call[0]) {
				id, is, _ := strings.Cut(link, ">")
				items = append(items, `{"id":"`+of+id+`","is":"`+of+is+`"}`)
			}
			said := strings.Join(e.put("["+strings.Join(items, ",")+"]", append(inArray, headers...)...), " ")
			for _, rest := range []string{": give the id of the person that this id belongs to",
				", so the links would form a circle: leave one of them out", ": give the id of the person itself"} {
				said = strings.ReplaceAll(said, rest, "")
			}
			assert.Equal(t, call[1], said, "%s: %s", name, call[0])
		}
	}
	assert.Empty(t, e.texts(`SELECT 'a height too low' FROM footfall.people AS p JOIN footfall.people AS q ON q.id = p.person
		WHERE q.height <= p.height`))
}

// texts returns the rows of a query with one text per row.
func (e *edge) texts(sql string) []string {
	e.t.Helper()
	rows, err := e.Conn(e.t).Query(e.t.Context(), sql)
	require.NoError(e.t, err)
	read, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(e.t, err)
	return read
}

// whom shows a person by their tags.
func (e *edge) whom(id string, headers ...string) string {
	e.t.Helper()
	a := e.ask(http.MethodGet, "/people?app=blog&id="+id, headers...)
	require.Equal(e.t, http.StatusOK, a.status, a.body)
	var answer struct {
		Person string
		Tags   map[string]string
	}
	require.NoError(e.t, json.Unmarshal([]byte(a.body), &answer))
	if answer.Person == "" {
		return "nobody"
	}
	return answer.Tags["age"]
}

// An id that is linked to another loses its own tags. The last change counts.
func TestTagsOfPeople(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	inLines := append(inLines, headers...)
	e.put(`{"id":"a","tags":{"age":"1"}}`+"\n"+`{"id":"b","tags":{"age":"2"}}`, inLines...)
	assert.Equal(t, []string{"ok"}, e.put(`{"id":"a","is":"b"}`, inLines...))
	assert.Equal(t, "2", e.whom("a", headers...))
	assert.Equal(t, []string{"ok"}, e.put(`{"id":"a","is":"c","tags":{"age":"3"}}`, inLines...))
	assert.Equal(t, []string{"3", "2", "3"}, []string{e.whom("a", headers...), e.whom("b", headers...), e.whom("c", headers...)})
	said := e.put(`{"id":"a","tags":{"age":"4","source":"x"}}
{"id":"a","tags":{"size":"4"}}
{"id":"a","tags":{"age":"4","plan":"\u0007"}}
{"id":"a","tags":{"age":4}}
{"id":"a","tags":["age"]}
{"id":"a","tags":{"age":"4","age":"5"}}
{"id":"a","is":"d","tags":{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1","age":"1","plan":"1"}}
{"id":"a"}
{"id":"","is":"b"}
{"is":"b"}
{"id":"a","is":"`+strings.Repeat("x", 300)+`"}
{"id":"`+strings.Repeat("x", 300)+`","is":"a"}
{"id":"a\u0000","is":"b"}
{"id":"a","is":7}
{"id":"a","was":"b"}
"a"
{"id":"a","is":"","tags":{"age":"6"}}
{"id":"a","is":"d\u007f"}
{"id":"a","is":"d","id":"b"}
{"id":"a","tags":{"age":"6"},"tags":{"plan":"6"}}
{"id":"a","tags":{"":"6"}}
{"id":"a","tags":null}
{"id":"a","is":"`+strings.Repeat("é", 128)+`x"}
{"id":"a","tags":{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1","age":"5"}}`, inLines...)
	for i, want := range []string{
		"tags: app blog has no tag \"source\" of its own", "tags: app blog has no tag \"size\" of its own",
		"tags: plan has no value that can be counted", "tags: \"age\" is not a string", "tags: they are not an object",
		"tags: \"age\" is given twice", "tags: there are 9: a person can have at most 8", "it is missing: give the id of the person",
		"id: it is empty", "id: it is missing", "it is longer than 256 bytes", "id: it is longer than 256 bytes",
		"id: it has control characters", "it is not a string", "\"was\" is not a field of item: give id, is, tags",
		"it is not an object: send {\"id\":\"…\",\"is\":\"…\"}",
		"it is empty", "it has control characters", "id: it is given twice", "tags: it is given twice",
		"tags: app blog has no tag \"\" of its own", "tags: they are not an object", "it is longer than 256 bytes", "ok",
	} {
		assert.True(t, strings.HasPrefix(said[i], want), "%d: %s, not %s", i, said[i], want)
	}
	assert.Equal(t, []string{"5", "2", "5", "nobody"}, []string{e.whom("a", headers...), e.whom("b", headers...), e.whom("c", headers...),
		e.whom("d", headers...)})
	assert.Equal(t, []string{"ok"}, e.put(`{"id":"b","tags":{}}`, inLines...))
	assert.Empty(t, e.whom("b", headers...))

	// The longest ids, compressed. A value that is too long is reported.
	longest, long := strings.Repeat("é", 128), strings.Repeat("x", 256)
	var packed strings.Builder
	zip := gzip.NewWriter(&packed)
	fmt.Fprintf(zip, `{"id":%q,"is":%q}`+"\n"+`{"id":%q,"tags":{"age":"%0200d"}}`, longest, long, longest, 1)
	require.NoError(t, zip.Close())
	assert.Equal(t, []string{"ok", "ok"}, e.put(packed.String(), append(inLines, "Content-Encoding", "gzip")...))
	assert.Equal(t, "(other)", e.whom(long, headers...))
	assert.Equal(t, "(other)", e.whom(url.QueryEscape(longest), headers...))
}

// Two calls that together would make a circle arrive before either is written.
func TestLinksThatMeet(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	inLines := append(inLines, headers...)
	e.put(`{"id":"z","tags":{"age":"1"}}`, inLines...)
	release := e.hold(`SELECT FROM people FOR UPDATE`)
	said := make(chan string, 2)
	for _, link := range []string{`{"id":"a","is":"b"}`, `{"id":"b","is":"a"}`} {
		go func() { said <- strings.Join(e.put(`{"id":"z","tags":{}}`+"\n"+link, inLines...), " ") }()
	}
	e.blocked(2)
	release()
	assert.ElementsMatch(t, []string{"ok ok",
		"ok this person is already linked to the id, so the links would form a circle: leave one of them out"}, []string{<-said, <-said})
}

// Calls that are refused as a whole write nothing, in the order of the checks.
func TestPeopleAreRefused(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	asserting, reading := headers[1], "Bearer "+e.key("blog", app.ScopeRead)
	counting, other := "Bearer "+e.key("blog", app.ScopeCount, app.ScopeAssert), "Bearer "+e.key("shop", app.ScopeAssert, app.ScopeRead)
	revoked := "Bearer " + e.key("blog", app.ScopeAssert)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		keys, err := a.Keys(ctx, "blog")
		require.NoError(t, err)
		return a.RevokeKey(ctx, "blog", keys[len(keys)-1].Name)
	})
	for _, c := range []struct {
		call, key, body string
		status          int
		says            string
	}{
		{"PUT /people", other, "[", 400, "app: it is missing"},
		{"PUT /people?app=blog", "", "[", 401, "key: app blog accepts links between ids only with a key of the scope assert: send it as"},
		{"PUT /people?app=blog", revoked, "[", 401, "key: it is not a key of app blog"},
		{"PUT /people?app=blog", asserting, "", 400, "body: line 1, column 1: a list of items should begin here with ["},
		{"PUT /people?app=blog", asserting, `[{"id":"a","is":"b"},{"id":"` + "\xff" + `","is":"b"}]`, 400,
			"body: line 1, column 29: it is not valid UTF-8"},
		{"PUT /people?app=blog", reading, "[", 403,
			"key: app blog accepts links between ids only with a key of the scope assert, which this one does not have"},
		{"PUT /people?app=blog", asserting, `[{"id":"a","is":"b"},{"id":"c"`, 400,
			"body: line 1, column 31: a comma or } should follow the value"},
		{"PUT /people?app=blog", asserting, `[` + strings.Repeat(`{"id":"a","is":"b"},`, 10_000) + `{}]`, 400,
			"body: it has more than 10000 items: send them in several calls"},
		{"PUT /people?app=shop", other, "[", 400, "app: app shop distinguishes visitors by address"},
		{"GET /people?app=blog", "", "", 401, "key: app blog looks up people only with a key of the scope read"},
		{"GET /people?app=blog", counting, "", 403,
			"key: app blog looks up people only with a key of the scope read, which this one does not have"},
		{"GET /people?app=blog", reading, "", 400, "id: it is missing"},
		{"GET /people?app=blog&id=", reading, "", 400, "id: it is empty"},
		{"GET /people?app=blog&id=" + strings.Repeat("x", 257), reading, "", 400, "id: it is longer than 256 bytes"},
		{"GET /people?app=shop&id=a", other, "", 400, "app: app shop distinguishes visitors by address"},
		{"POST /people/lookup", counting, `{"app":"blog","ids":["a"]}`, 403,
			"key: app blog looks up people only with a key of the scope read"},
		{"POST /people/lookup", reading, `{"app":"blog","ids":["a",7]}`, 400, "ids: they are not a list of strings"},
		{"POST /people/lookup", reading, `{"app":"blog","ids":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, 400,
			"ids: there are 1001: send at most 1000"},
		{"GET /people?app=blog&id=a%0Ab", reading, "", 400, "id: it has control characters"},
		{"POST /people/lookup", reading, `{"app":"blog","uris":[]}`, 400, `body: "uris" is not a field: send {"app":"…","ids":["…",…]}`},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		with := inArray
		if c.key != "" {
			with = append([]string{"Authorization", c.key}, inArray...)
		}
		a := e.askWith(c.body, method, path, with...)
		require.Equal(t, c.status, a.status, "%s %.80s: %s", c.call, c.body, a.body)
		assert.Contains(t, a.error(t), c.says, "%s %.80s", c.call, c.body)
	}
	assert.Equal(t, "nobody", e.whom("a", headers...))
	assert.Equal(t, http.StatusMethodNotAllowed, e.ask(http.MethodPost, "/people").status)
	assert.Equal(t, "GET, HEAD, PUT", e.ask(http.MethodDelete, "/people").header.Get("Allow"))
}

// An app that is deleted while people wait to be written gets none.
func TestPeopleOfAnAppThatGoes(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	conn := e.Conn(t)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT footfall.lock_people(id) FROM footfall.apps WHERE name = 'blog'`)
	require.NoError(t, err)
	said := make(chan answer, 1)
	go func() {
		said <- e.askWith(`{"id":"a","is":"b"}`, http.MethodPut, "/people?app=blog", append(inLines, headers...)...)
	}()
	require.Eventually(t, func() bool { return len(e.texts(`SELECT 'waits' FROM pg_locks WHERE NOT granted`)) > 0 }, dbtest.Patience,
		dbtest.Tick)
	_, err = tx.Exec(t.Context(), `UPDATE footfall.apps SET deleted_at = now() WHERE name = 'blog'`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	a := <-said
	assert.Equal(t, http.StatusNotFound, a.status, a.body)
	assert.Empty(t, e.texts(`SELECT id::text FROM footfall.people`))
}

// turnPeople starts the next period.
func (e *edge) turnPeople() {
	e.t.Helper()
	_, err := e.Conn(e.t).Exec(e.t.Context(), `DO $$ BEGIN EXECUTE format(
		'CREATE OR REPLACE FUNCTION footfall.people_clock() RETURNS bigint LANGUAGE sql STABLE RETURN %s', footfall.people_clock() + 1); END $$`)
	require.NoError(e.t, err)
	require.Eventually(e.t, func() bool { // the service may do it, too
		e.texts(`SELECT footfall.turn_people()::text`)
		return len(e.texts(`SELECT name FROM footfall.epochs WHERE name = 'people' AND value = footfall.people_clock()`)) > 0
	}, dbtest.Patience, dbtest.Tick)
}

// Ids used in a period are in its table with every id on their way to the person. Unused ids are gone after two
// periods.
func TestPeopleAreKeptWhileTheyAreUsed(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	inLines := append(inLines, headers...)
	ids := []string{"a", "b", "c", "d", "e", "unused", "nobody's", "p", "q", "m", "n", "x", "y", "z"}
	e.put(`{"id":"a","is":"b"}
{"id":"b","is":"c"}
{"id":"c","is":"d"}
{"id":"d","is":"e","tags":{"age":"1"}}
{"id":"unused","is":"nobody's","tags":{"age":"2"}}
{"id":"p","is":"q","tags":{"age":"3"}}
{"id":"m","is":"n","tags":{"age":"4"}}
{"id":"x","is":"y","tags":{"age":"5"}}`, inLines...)
	e.turnPeople()
	assert.Equal(t, "1", e.whom("a", headers...))
	e.put(`{"id":"p","is":"q"}`+"\n"+`{"id":"z","is":"x"}`, inLines...)
	e.askWith(`{"app":"blog","ids":["m"]}`, http.MethodPost, "/people/lookup", append(inArray, headers...)...)
	assert.Equal(t, []string{"12 of 25"}, e.texts(
		`SELECT count(*) FILTER (WHERE period = footfall.people_period()) || ' of ' || count(*) FROM footfall.people`))
	e.turnPeople()
	assert.Equal(t, []string{"12"}, e.texts(`SELECT count(*)::text FROM footfall.people`))
	for i, want := range []string{"1", "1", "1", "1", "1", "nobody", "nobody", "3", "3", "4", "4", "5", "5", "5"} {
		assert.Equal(t, want, e.whom(ids[i], headers...), ids[i])
	}
	assert.Equal(t, []string{"12 of 24"}, e.texts(
		`SELECT count(*) FILTER (WHERE period = footfall.people_period()) || ' of ' || count(*) FROM footfall.people`))

	// If an id has rows in both periods, the row of the present one counts, also on the way of other ids.
	e.put(`{"id":"A","is":"B","tags":{"age":"1"}}`+"\n"+`{"id":"X","is":"A"}`+"\n"+`{"id":"C","tags":{"age":"2"}}`, inLines...)
	e.turnPeople()
	assert.Equal(t, []string{"ok"}, e.put(`{"id":"A","is":"C"}`, inLines...))
	assert.Equal(t, []string{"2", "2", "1"}, []string{e.whom("A", headers...), e.whom("X", headers...), e.whom("B", headers...)})
}
