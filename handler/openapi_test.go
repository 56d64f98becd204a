package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/embed"
	"footfall/handler/routing"
	"footfall/intake"
	"footfall/report"
)

// document is openapi.json.
type document struct{ all map[string]any }

func readDocument(t *testing.T) document {
	t.Helper()
	var d document
	require.NoError(t, json.Unmarshal(openAPI(), &d.all))
	return d
}

// at returns a part of the document, after following references.
func (d document) at(from any, path ...string) any {
	from = d.follow(from)
	for _, name := range path {
		members, _ := from.(map[string]any)
		from = d.follow(members[name])
	}
	return from
}

func (d document) follow(part any) any {
	for {
		members, _ := part.(map[string]any)
		to, is := members["$ref"].(string)
		if !is {
			return part
		}
		part = any(d.all)
		for name := range strings.SplitSeq(strings.TrimPrefix(to, "#/"), "/") {
			part = part.(map[string]any)[name]
		}
		if part == nil {
			panic("nothing is at " + to)
		}
	}
}

// operations returns all calls, by method and path.
func (d document) operations() map[string]any {
	all := map[string]any{}
	for path, methods := range d.at(d.all, "paths").(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			all[strings.ToUpper(method)+" "+path] = operation
		}
	}
	return all
}

// parameters returns the parameters of a call, by name.
func (d document) parameters(operation any) map[string]any {
	all := map[string]any{}
	list, _ := d.at(operation, "parameters").([]any)
	for _, p := range list {
		all[d.at(p, "name").(string)] = d.follow(p)
	}
	return all
}

// faults returns the ways in which a value violates its schema. An unknown keyword in a schema is a fault, too.
func (d document) faults(where string, schema, value any) (faults []string) {
	members := d.follow(schema).(map[string]any)
	fault := func(ok bool, word string) {
		if !ok {
			faults = append(faults, fmt.Sprintf("%s: %v is not of %s %v", where, value, word, members[word]))
		}
	}
	number, _ := value.(float64)
	text, _ := value.(string)
	list, _ := value.([]any)
	object, _ := value.(map[string]any)
	for word, is := range members {
		switch word {
		case "type":
			kinds := map[string]bool{"boolean": value == true || value == false, "integer": number == float64(int64(number)) && isA[float64](value),
				"number": isA[float64](value), "string": isA[string](value), "array": isA[[]any](value), "object": isA[map[string]any](value)}
			if some, several := is.([]any); several {
				fault(value == nil || kinds[some[0].(string)], word) // or null
			} else {
				fault(kinds[is.(string)], word)
			}
		case "minimum":
			fault(value == nil || number >= is.(float64), word)
		case "maximum":
			fault(number <= is.(float64), word)
		case "minLength":
			fault(float64(len(text)) >= is.(float64), word)
		case "minItems":
			fault(float64(len(list)) >= is.(float64), word)
		case "maxItems":
			fault(float64(len(list)) <= is.(float64), word)
		case "pattern":
			fault(regexp.MustCompile(is.(string)).MatchString(text), word)
		case "enum":
			fault(slices.Contains(is.([]any), value), word)
		case "format":
			_, notTime := time.Parse(time.RFC3339, text)
			_, notIP := netip.ParseAddr(text)
			fault(map[any]bool{"date-time": notTime == nil, "ip": notIP == nil, "int32": number < 1<<31, "int64": true}[is], word)
		case "items":
			for i, item := range list {
				faults = append(faults, d.faults(fmt.Sprintf("%s[%d]", where, i), is, item)...)
			}
		case "required":
			for _, name := range is.([]any) {
				_, there := object[name.(string)]
				fault(there, word)
			}
		case "properties":
			for name, member := range object {
				if property, named := is.(map[string]any)[name]; named {
					faults = append(faults, d.faults(where+"."+name, property, member)...)
				}
			}
		case "additionalProperties":
			for name := range object {
				_, named := members["properties"].(map[string]any)[name]
				fault(named, word)
			}
		case "description", "default", "example":
		default:
			fault(false, word)
		}
	}
	return faults
}

func isA[T any](value any) bool { _, is := value.(T); return is }

func TestSchemasTellFaults(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	for _, c := range []struct {
		schema, value string
		faults        int
	}{
		{"Counts", `{"pv":1,"uv":1,"rank":0,"hot":1}`, 0},
		{"Counts", `{"pv":1,"uv":1,"rank":0}`, 1},
		{"Counts", `{"pv":1,"uv":1,"rank":0,"hot":1,"x":1}`, 1},
		{"Counts", `{"pv":1.5,"uv":"1","rank":-1,"hot":1}`, 3},
		{"Sites", `{"sites":[{"site":"a","pv":1,"uv":1,"hot":1,"since":"yesterday","shown":"a"}]}`, 1},
		{"Sites", `{"sites":null}`, 1},
		{"Ranks", `{"ranks":[{"rank":1,"erased":true,"visitor":"me"}]}`, 1},
		{"Days", `{"days":[{"day":1,"pv":1,"new_visitors":1,"hot":1}]}`, 1},
		{"State", `{"state":"asleep"}`, 1},
	} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(c.value), &value))
		faults := d.faults("$", map[string]any{"$ref": "#/components/schemas/" + c.schema}, value)
		assert.Len(t, faults, c.faults, "%s: %v", c.value, faults)
	}
}

// examples calls tell for each example and default in a part of the document, with its schema.
func (d document) examples(where string, part any, tell func(where string, schema, example any)) {
	list, _ := part.([]any)
	for i, item := range list {
		d.examples(fmt.Sprintf("%s[%d]", where, i), item, tell)
	}
	members, _ := part.(map[string]any)
	for _, word := range []string{"example", "default"} {
		example, given := members[word]
		schema, beside := members["schema"]
		if !beside {
			schema = part
		}
		if given {
			tell(where+"."+word, schema, example)
		}
	}
	for name, member := range members {
		if name != "example" && name != "default" {
			d.examples(where+"."+name, member, tell)
		}
	}
}

func TestExamplesAreOfTheirSchemas(t *testing.T) {
	t.Parallel()
	d, found := readDocument(t), 0
	d.examples("$", d.all, func(where string, schema, example any) {
		found++
		assert.Empty(t, d.faults(where, schema, example))
	})
	assert.Greater(t, found, 15)
}

// A generator of clients treats the key as required, or not, as documented for each call.
func TestEveryCallSaysWhetherItTakesAKey(t *testing.T) {
	t.Parallel()
	for call, operation := range readDocument(t).operations() {
		security, said := operation.(map[string]any)["security"].([]any)
		assert.True(t, said, call)
		path := strings.Fields(call)[1]
		takesKey := path == "/visit" || path == "/visits" || path == "/counts" || path == "/top" || strings.HasPrefix(path, "/people") ||
			strings.HasPrefix(path, "/api/")
		assert.Equal(t, takesKey, len(security) > 0, call)
	}
}

func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	s := newService(Options{Cells: routing.NewSingle(&routing.Cell{Admin: admin.NewAdmin(nil, nil)}), Accounts: account.Open(nil)})
	var want []string
	var others []string // protocols of other services, which their clients know
	for _, r := range append((&busuanzi{}).routes(), (&leancloud{}).routes()...) {
		others = append(others, r.path)
	}
	for _, r := range s.publicRoutes() {
		for _, method := range r.methods {
			if method != http.MethodHead && method != http.MethodOptions && !slices.Contains(others, r.path) {
				of := strings.NewReplacer(":app", "{app}", ":version", "{version}", ":file", "{file}", ":one", "{one}").Replace(r.path)
				want = append(want, method+" "+of)
			}
		}
	}
	var documented []string
	for name := range readDocument(t).operations() {
		documented = append(documented, name)
	}
	assert.ElementsMatch(t, want, documented)
}

func TestDocumentedParametersAreThoseOfReports(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	operations := d.operations()
	for _, k := range report.Reports {
		var documented []string
		for name, p := range d.parameters(operations["GET /api/apps/{app}/"+k.Name]) {
			if d.at(p, "in") == "query" {
				documented = append(documented, name)
				assert.Equal(t, slices.Contains(k.Repeats, name), d.at(p, "schema", "type") == "array", "%s of %s", name, k.Name)
			}
		}
		assert.ElementsMatch(t, append([]string{"format"}, k.Parameters...), documented, k.Name)
	}
}

// sent is a call by its name in the document.
type sent struct {
	call    string // method and path
	query   string
	headers []string
	body    string
	status  int
}

// checker sends calls and compares the responses with the document.
type checker struct {
	*edge
	document
	operations map[string]any
	reached    map[string]bool // calls with a status
	accepted   map[string]bool // calls with a parameter
	said       map[string]bool // the values of headers
}

func (c *checker) send(t *testing.T, s sent) {
	t.Helper()
	app := "demo"
	if given, query, found := strings.Cut(s.query, "!"); found {
		app, s.query = given, query
	}
	file := app
	if !strings.Contains(app, ".") {
		file += ".svg"
	}
	method, path, _ := strings.Cut(s.call, " ")
	path = strings.NewReplacer("{app}", app, "{version}", "0123456789ab.js", "{file}", file).Replace(path) + "?" + s.query
	a := c.askWith(s.body, method, path, s.headers...)
	require.Equal(t, s.status, a.status, "%s %s: %s", s.call, s.query, a.body)
	c.reached[fmt.Sprint(s.call, " ", s.status)] = true
	if s.status == http.StatusOK || s.status == http.StatusAccepted {
		query, err := url.ParseQuery(s.query)
		require.NoError(t, err)
		parameters := c.parameters(c.operations[s.call])
		for name, values := range query {
			c.accepted[s.call+" "+name] = true
			if p, described := parameters[name]; described && c.at(p, "schema", "enum") != nil {
				assert.Empty(t, c.faults(s.call+" "+name, c.at(p, "schema"), values[0]))
			}
		}
	}
	answers := c.at(c.operations[s.call], "responses", fmt.Sprint(s.status))
	require.NotNil(t, answers, "%s is not documented to answer %d", s.call, s.status)
	if s.status == http.StatusNotModified {
		return
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	schema := c.at(answers, "content", kind, "schema")
	require.NotNil(t, schema, "%s is not documented to answer %s", s.call, kind)
	var value any = a.body
	if kind == "application/json" {
		require.NoError(t, json.Unmarshal([]byte(a.body), &value))
	}
	assert.Empty(t, c.faults(s.call, schema, value))
	if kind == "text/csv" {
		header, _, _ := strings.Cut(c.at(answers, "content", kind, "example").(string), "\n")
		assert.True(t, strings.HasPrefix(a.body, header+"\n"), "%s: %s", s.call, a.body)
	}
	headers, _ := c.at(answers, "headers").(map[string]any)
	for _, name := range []string{"Link", "ETag", "Retry-After", skippedHeader, repeatedHeader} {
		if said := a.header.Get(name); said != "" && assert.Contains(t, headers, name, s.call) {
			assert.Empty(t, c.faults(s.call+" "+name, c.at(headers[name], "schema"), said))
			c.said[name+" "+said] = true
		}
	}
}

func TestServiceDoesWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	c := &checker{edge: newEdge(t), document: readDocument(t), reached: map[string]bool{}, accepted: map[string]bool{},
		said: map[string]bool{}}
	c.operations = c.document.operations()
	c.administer(func(ctx context.Context, a *admin.Admin) error {
		if err := a.AddApp(ctx, "choosy", app.Settings{Sites: []string{"example.com"}, RespectDNT: ptr(true),
			PublicCounts: ptr("count")}); err != nil {
			return err
		}
		if err := a.SetApp(ctx, "demo", app.Settings{Tags: []string{"default", "plan"}}); err != nil {
			return err
		}
		if err := a.AddApp(ctx, "deaf", app.Settings{Access: ptr("open"), Ignore: []string{"192.0.2.1"}}); err != nil {
			return err
		}
		for _, name := range []string{"people", "people_limited"} {
			if err := a.AddApp(ctx, name, app.Settings{Access: ptr("open"), Visitor: ptr("id"), Tags: []string{"age"}}); err != nil {
				return err
			}
		}
		if err := a.AddApp(ctx, "listed", app.Settings{Sites: []string{"example.com"}, PublicCounts: ptr("answers"), PublicTop: ptr("on"),
			MaxRequests: ptr("1")}); err != nil {
			return err
		}
		if err := a.SetApp(ctx, "shop", app.Settings{PublicTop: ptr("on")}); err != nil {
			return err
		}
		if err := a.SetApp(ctx, "people_limited", app.Settings{MaxRequests: ptr("1")}); err != nil {
			return err
		}
		return a.AddApp(ctx, "limited", app.Settings{Access: ptr("open"), MaxRequests: ptr("1")})
	})
	count, asserting := c.key("shop", app.ScopeCount), c.key("shop", app.ScopeAssert)
	c.sixSteps()
	page := url.QueryEscape("http://hhui.top/home")
	inJSON := []string{"Content-Type", "application/json"}
	const manyVisits = `[{"uri":"http://a.example/","ip":"192.0.2.1"},{"uri":"http://a.example/","ip":"192.0.2.1","agent":"Googlebot/2.1"}]`
	c.sendAll(t, []sent{
		{"GET /visit", "app=demo&ip=192.168.0.1&uri=" + page, nil, "", 200},
		{"GET /visit", "app=demo&ip=192.168.0.1&uri=" + page, []string{"Sec-Purpose", "prefetch"}, "", 200},
		{"GET /visit", "app=demo&ip=192.168.0.1&title=Home&uri=" + page, nil, "", 200},
		{"GET /visit", "app=demo&ip=192.168.0.1&id=1&offsets=no&referrer=https://news.example/&language=de&country=DE&uri=" + page, nil, "", 200},
		{"GET /visit", "app=demo&ip=192.168.0.1&agent=&event=signup", nil, "", 200}, {"GET /counts", "app=demo&event=signup", nil, "", 403},
		{"GET /counts", "app=demo&event=signup", []string{"Authorization", "Bearer " + c.key("demo", app.ScopeRead)}, "", 200},
		{"POST /visit", "", inJSON, `{"app":"demo","ip":"192.168.0.1","event":"signup"}`, 200},
		{"GET /visit", "app=choosy&uri=http://example.com/", []string{"DNT", "1"}, "", 200},
		{"GET /visit", "app=choosy&uri=http://example.com/", []string{"User-Agent", "curl/8"}, "", 200},
		{"GET /visit", "app=deaf&ip=192.0.2.1&uri=http://example.com/", nil, "", 200},
		{"GET /visit", "app=demo&answer=later&ip=192.168.0.1&uri=" + page, nil, "", 202}, {"GET /visit", "app=demo&answer=now&uri=" + page, nil,
			"", 400},
		{"POST /visit", "", inJSON, `{"app":"demo","ip":"192.168.0.1","uri":"http://hhui.top/home","answer":"later"}`, 202},
		{"GET /visit", "app=demo", nil, "", 400}, {"GET /visit", "app=none", nil, "", 404},
		{"GET /visit", "app=shop&uri=http://example.com/", []string{"Authorization", "Bearer x"}, "", 401},
		{"GET /visit", "app=shop&uri=" + page, nil, "", 403},
		{"GET /visit", "app=limited&ip=192.0.2.1&uri=" + page, nil, "", 200}, {"GET /visit", "app=limited&ip=192.0.2.1&uri=" + page, nil, "",
			429},
		{"POST /visit", "", inJSON, `{"app":"demo","ip":"192.168.0.1","uri":"http://hhui.top/home"}`, 200},
		{"POST /visit", "", inJSON, `{"app":"demo","ip":"192.168.0.1","uri":"http://hhui.top/home","id":"1"}`, 200},
		{"POST /visit", "", inJSON, `{"app":"demo"}`, 400}, {"POST /visit", "", inJSON, `{"app":"none"}`, 404},
		{"POST /visit", "", append([]string{"Authorization", "Bearer x"}, inJSON...), `{"app":"shop","uri":"http://example.com/"}`, 401},
		{"POST /visit", "", inJSON, `{"app":"shop","ip":"192.0.2.1","uri":"http://example.com/"}`, 403},
		{"POST /visit", "", inJSON, `{"app":"limited","ip":"192.0.2.1","uri":"http://example.com/"}`, 429},
		{"POST /visit", "", []string{"Content-Type", "text/plain"}, `{}`, 415},
		{"POST /visit", "", inJSON, strings.Repeat(" ", int(oneVisit.most)+1), 413},
		{"POST /visits", "app=demo", append([]string{"Idempotency-Key", "k"}, inJSON...), manyVisits, 200},
		{"POST /visits", "app=demo", append([]string{"Idempotency-Key", "k"}, inJSON...), manyVisits, 200},
		{"POST /visits", "app=shop", append([]string{"Idempotency-Key", "k", "Authorization", "Bearer " + asserting}, inJSON...), `[]`, 200},
		{"POST /visits", "app=shop", append([]string{"Idempotency-Key", "k", "Authorization", "Bearer " + asserting}, inJSON...), manyVisits,
			422},
		{"POST /visits", "app=demo&answers=none&offsets=no", []string{"Content-Type", "application/x-ndjson"}, `{"uri":"/"}`, 200},
		{"POST /visits", "app=deaf", inJSON, manyVisits, 200},
		{"POST /visits", "app=demo", inJSON, `[{]`, 400}, {"POST /visits", "app=none", inJSON, `[]`, 404},
		{"POST /visits", "app=shop", inJSON, `[]`, 401},
		{"POST /visits", "app=shop", append([]string{"Authorization", "Bearer " + count}, inJSON...), `[]`, 403},
		{"POST /visits", "app=demo", []string{"Content-Type", "text/plain"}, `[]`, 415},
		{"POST /visits", "app=demo", inJSON, strings.Repeat(" ", intake.MostBytes+1), 413},
		{"GET /counts", "app=demo&ip=192.168.0.1&agent=Firefox&offsets=no&uri=" + page, nil, "", 200},
		{"GET /counts", "app=demo&with=today,here&uri=" + page, nil, "", 200},
		{"GET /top", "app=shop&site=example.com&days=1&n=1", nil, "", 200}, {"GET /top", "app=shop&site=example.com&days=2", nil, "", 400},
		{"GET /top", "app=shop&site=example.com", []string{"Authorization", "Bearer x"}, "", 401},
		{"GET /top", "app=demo&site=hhui.top", nil, "", 403}, {"GET /top", "app=none&site=hhui.top", nil, "", 404},
		{"GET /top", "app=listed&site=example.com", nil, "", 200}, {"GET /top", "app=listed&site=example.com", nil, "", 429},
		{"GET /counts", "app=demo", nil, "", 400}, {"GET /counts", "app=none", nil, "", 404}, {"GET /counts", "app=shop&uri=" + page, nil, "",
			403},
		{"GET /counts", "app=shop&uri=" + page, []string{"Authorization", "Bearer x"}, "", 401},
		{"GET /counts", "app=limited&ip=192.0.2.1&uri=" + page, nil, "", 429},
		{"POST /counts", "", inJSON, `{"app":"demo","ip":"192.168.0.1","uris":["http://hhui.top/home","/"]}`, 200},
		{"POST /counts", "", inJSON, `{"app":"demo"}`, 400}, {"POST /counts", "", inJSON, `{"app":"none"}`, 404},
		{"POST /counts", "", append([]string{"Authorization", "Bearer x"}, inJSON...), `{"app":"shop","uris":[]}`, 401},
		{"POST /counts", "", inJSON, `{"app":"shop","ip":"192.0.2.1","uris":[]}`, 403},
		{"POST /counts", "", inJSON, `{"app":"limited","ip":"192.0.2.1","uris":[]}`, 429},
		{"POST /counts", "", []string{"Content-Type", "text/plain"}, `{}`, 415},
		{"POST /counts", "", inJSON, strings.Repeat(" ", int(manyCounts.most)+1), 413},
		{"PUT /people", "app=people", inJSON, `[{"id":"cookie:abc","is":"user:42"},{"id":"user:42","tags":{"age":"25-34"}},{"id":""}]`, 200},
		{"PUT /people", "app=people", inJSON, `[{]`, 400}, {"PUT /people", "app=demo", inJSON, `[]`, 400},
		{"PUT /people", "app=none", inJSON, `[]`, 404}, {"PUT /people", "app=shop", inJSON, `[]`, 401},
		{"PUT /people", "app=shop", append([]string{"Authorization", "Bearer " + count}, inJSON...), `[]`, 403},
		{"PUT /people", "app=people_limited", inJSON, `[]`, 200},
		{"PUT /people", "app=people_limited", inJSON, `[]`, 429}, {"GET /people", "app=people_limited&id=a", nil, "", 429},
		{"POST /people/lookup", "", inJSON, `{"app":"people_limited","ids":[]}`, 429},
		{"PUT /people", "app=people", []string{"Content-Type", "text/plain"}, `[]`, 415},
		{"PUT /people", "app=people", inJSON, strings.Repeat(" ", intake.MostBytes+1), 413},
		{"GET /people", "app=people&id=cookie:abc", nil, "", 200}, {"GET /people", "app=people&id=nobody", nil, "", 200},
		{"GET /people", "app=people", nil, "", 400}, {"GET /people", "app=none", nil, "", 404},
		{"GET /people", "app=shop&id=a", nil, "", 401}, {"GET /people", "app=shop&id=a", []string{"Authorization", "Bearer " + count}, "", 403},
		{"POST /people/lookup", "", inJSON, `{"app":"people","ids":["cookie:abc","nobody",""]}`, 200},
		{"POST /people/lookup", "", inJSON, `{"app":"people"}`, 400}, {"POST /people/lookup", "", inJSON, `{"app":"none","ids":[]}`, 404},
		{"POST /people/lookup", "", inJSON, `{"app":"shop","ids":[]}`, 401},
		{"POST /people/lookup", "", append([]string{"Authorization", "Bearer " + count}, inJSON...), `{"app":"shop","ids":[]}`, 403},
		{"POST /people/lookup", "", []string{"Content-Type", "text/plain"}, `{}`, 415},
		{"POST /people/lookup", "", inJSON, strings.Repeat(" ", int(manyPeople.most)+1), 413},
		{"GET /livez", "", nil, "", 200}, {"GET /readyz", "", nil, "", 200}, {"GET /healthz", "", nil, "", 200},
		{"GET /api/apps/{app}/sites", "after=a&limit=1&format=json&offsets=no", nil, "", 200},
		{"GET /api/apps/{app}/pages", "limit=1&from=20190101&to=20200101&site=hhui.top&order=hot", nil, "", 200},
		{"GET /api/apps/{app}/pages", "limit=1&after=cHYgMSAwIDA", nil, "", 200},
		{"GET /api/apps/{app}/days", "uri=" + page + "&from=2019-01-01&to=20200101&limit=1", nil, "", 200},
		{"GET /api/apps/{app}/days", "site=hhui.top&after=20190629&history=yes", nil, "", 200},
		{"GET /api/apps/{app}/tags", "uri=" + page + "&from=2019-01-01&to=20200101&limit=1", nil, "", 200},
		{"GET /api/apps/{app}/tags", "site=hhui.top&name=plan", nil, "", 200},
		{"GET /api/apps/{app}/visitors", "uri=" + page + "&day=20190629&limit=1&offsets=no", nil, "", 200},
		{"GET /api/apps/{app}/visitors", "site=hhui.top&after=20190629-192.168.0.1", nil, "", 200},
		{"GET /api/apps/{app}/ranks", "uri=" + page + "&rank=1&offsets=no", nil, "", 200},
		{"GET /api/apps/{app}/ranks", "site=hhui.top&ip=192.168.0.2", nil, "", 200},
		{"GET /api/apps/{app}/uniques", "uri=" + page + "&from=20190101&to=20200101", nil, "", 200},
		{"GET /api/apps/{app}/uniques", "site=hhui.top&site=a.example", nil, "", 200}, {"GET /api/apps/{app}/uniques", "prefix=" + page, nil, "",
			200},
	})
	named := []string{"Authorization", "Bearer " + c.key("demo", app.ScopeRead)}
	const compared = "&from=20190629&to=20190630&days_before=1&compared_to=20190629"
	c.sendAll(t, []sent{
		{"GET /api/apps/{app}/pages", "site=hhui.top&find=om&limit=all" + compared, nil, "", 200},
		{"GET /api/apps/{app}/tags", "site=hhui.top&limit=all" + compared, nil, "", 200},
		{"GET /api/apps/{app}/numbers", "uri=" + page + compared, nil, "", 200}, {"GET /api/apps/{app}/totals", "uri=" + page, nil, "", 200},
		{"GET /api/apps/{app}/chart", "uri=" + page + "&period=week&compared_from=20190629" + compared, nil, "", 200},
		{"GET /api/apps/{app}/returns", "uri=" + page + "&from=20190629&to=20190630", nil, "", 200}, {"GET /api/apps/{app}/first-visits", "uri=" +
			page, nil, "", 200},
		{"GET /api/apps/{app}/tag-pages", "site=hhui.top&name=campaign&value=x&from=20190629&to=20190630", nil, "", 200},
		{"GET /api/apps/{app}/sites-between", compared[1:], nil, "", 200},
		{"GET /api/apps/{app}/goals", "site=hhui.top&where=new&from=20190629&to=20190630&goal=page:/home&by=day&limit=3", nil, "", 200},
		{"GET /api/apps/{app}/funnel", "site=hhui.top&where=new&from=20190629&to=20190630&step=page:/home&step=returning", nil, "", 200},
		{"GET /api/apps/{app}/here", "site=hhui.top", nil, "", 200},
		{"GET /api/apps/{app}/one-page", "site=hhui.top&where=new&from=20190629&to=20190630", nil, "", 200},
		{"GET /api/apps/{app}/events", "site=hhui.top&where=new&from=20190629&to=20190630&limit=1", nil, "", 200},
		{"GET /api/apps/{app}/days", "site=hhui.top&where=returning&where=new", nil, "", 200},
		{"GET /api/apps/{app}/chart", "site=hhui.top&period=week&from=20190629&where=page:/home", nil, "", 200},
		{"GET /api/apps/{app}/pages", "site=hhui.top&where=new", nil, "", 200},
		{"GET /api/apps/{app}/numbers", "site=hhui.top&where=new", nil, "", 200},
		{"GET /api/apps/{app}/uniques", "site=hhui.top&where=new", nil, "", 200},
		{"GET /api/apps/{app}/tags", "site=hhui.top&where=new", nil, "", 200},
		{"GET /api/apps/{app}/who-came", "uri=" + page + "&from=20190629&to=20190630&limit=1", named, "", 200},
		{"GET /api/apps/{app}/who-came", "site=hhui.top&limit=all&after=20190629-192.168.0.1", named, "", 200},
	})
	c.allIsCounted() // so that no response changes before the second request, which sends its ETag
	c.sendSame(t, count)
	c.send(t, sent{"POST /visits", "app=limited", inJSON, `[]`, 429})

	// The tables refuse new rows, and then disappear.
	conn := c.Conn(c.t)
	_, err := conn.Exec(t.Context(), `ALTER TABLE footfall.visitors ADD CONSTRAINT nobody_else CHECK (ip <> '192.168.0.66'); ALTER TABLE
		footfall.people ADD CONSTRAINT no_more CHECK (height < 2)`)
	require.NoError(t, err)
	c.send(t, sent{"GET /visit", "app=demo&ip=192.168.0.66&uri=" + page, nil, "", 500})
	c.send(t, sent{"POST /visit", "", inJSON, `{"app":"demo","ip":"192.168.0.66","uri":"http://hhui.top/home"}`, 500})
	c.send(t, sent{"POST /visits", "app=demo", inJSON, `[{"uri":"http://a.example/","ip":"192.168.0.66"}]`, 500})
	c.send(t, sent{"PUT /people", "app=people", inJSON, `[{"id":"device:1","is":"cookie:abc"}]`, 500})
	_, err = conn.Exec(t.Context(), `ALTER SCHEMA report RENAME TO lost; ALTER VIEW footfall.totals RENAME TO lost_totals; ALTER TABLE
		footfall.counters RENAME TO lost_counters; ALTER TABLE footfall.days RENAME TO lost_days; ALTER TABLE footfall.pages RENAME TO lost_pages;
		ALTER TABLE footfall.people RENAME TO lost_people`)
	require.NoError(t, err)
	close(c.stopping)
	c.sendAll(t, []sent{
		{"GET /visit", "app=demo&ip=192.168.0.1&uri=http://a.example/", nil, "", 503},
		{"POST /visit", "", inJSON, `{"app":"demo","ip":"192.168.0.1","uri":"http://a.example/"}`, 503},
		{"POST /visits", "app=demo", inJSON, manyVisits, 503},
		{"GET /top", "app=shop&site=example.com&days=90", nil, "", 503},
		{"GET /counts", "app=demo&uri=" + page, nil, "", 503}, {"POST /counts", "", inJSON, `{"app":"demo","uris":["http://a.example/"]}`, 503},
		{"PUT /people", "app=people", inJSON, `[{"id":"a","is":"b"}]`, 503}, {"GET /people", "app=people&id=a", nil, "", 503},
		{"POST /people/lookup", "", inJSON, `{"app":"people","ids":["a"]}`, 503},
		{"GET /readyz", "", nil, "", 503}, {"GET /healthz", "", nil, "", 503},
	})
	for _, k := range report.Reports {
		var headers []string
		if k.ToNamed {
			headers = named
		}
		c.send(t, sent{"GET /api/apps/{app}/" + k.Name, c.least(k), headers, "", 503})
	}
	c.checkReached(t)
}

// allIsCounted waits until the inbox is counted, and tags are added up.
func (e *edge) allIsCounted() {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		return len(e.texts(`SELECT 'waits' FROM footfall.tag_news UNION ALL SELECT 'waits' FROM footfall.apps
			WHERE footfall.inbox_behind(id) > 0`)) == 0
	}, dbtest.Patience, dbtest.Tick)
}

func (c *checker) sendAll(t *testing.T, all []sent) {
	t.Helper()
	for _, s := range all {
		c.send(t, s)
	}
}

// least returns the shortest query of a report.
func (c *checker) least(k report.Report) string {
	query := ""
	if slices.Contains(k.Parameters, "uri") {
		query = "site=hhui.top"
	}
	if slices.Contains(k.Parameters, "rank") {
		query += "&rank=1"
	}
	if k.OfSite {
		query = "site=hhui.top"
	}
	if slices.Contains(k.Parameters, "value") {
		query += "&value=google"
	}
	if slices.Contains(k.Parameters, "step") {
		query += "&step=page:/home"
	}
	return query
}

// sendSame sends the requests common to all reports, and requests the files.
func (c *checker) sendSame(t *testing.T, count string) {
	t.Helper()
	require.Equal(t, http.StatusOK, c.get("/api/apps/limited/sites").status, "the one of this minute")
	for _, k := range report.Reports {
		call, least := "GET /api/apps/{app}/"+k.Name, c.least(k)
		var keys [2][]string // open apps need one for some reports
		for i, of := range []string{"demo", "limited"} {
			if k.ToNamed {
				keys[i] = []string{"Authorization", "Bearer " + c.key(of, app.ScopeRead)}
			}
		}
		tag := c.ask(http.MethodGet, "/api/apps/demo/"+k.Name+"?"+least, keys[0]...).header.Get("ETag")
		c.sendAll(t, []sent{
			{call, least + "&format=csv", keys[0], "", 200}, {call, least, append([]string{"Accept", "text/csv"}, keys[0]...), "", 200},
			{call, least, append([]string{"If-None-Match", tag}, keys[0]...), "", 304},
			{call, least + "&nonsense=1", nil, "", 400}, {call, "shop!" + least, nil, "", 401}, {call, "none!" + least, nil, "", 404},
			{call, "shop!" + least, []string{"Authorization", "Bearer " + count}, "", 403}, {call, "limited!" + least, keys[1], "", 429},
		})
	}
	const example = "choosy!uri=http://example.com/"
	c.sendAll(t, []sent{
		{"GET /badge/{file}", example + "&show=site.uv&label=x&style=plain&color=red&chart=30d&count=1&offsets=no", nil, "", 200},
		{"GET /badge/{file}", strings.Replace(example, "!", ".json!", 1), nil, "", 200}, {"GET /badge/{file}", "choosy.png!", nil, "", 404},
	})
	tag := c.get("/badge/choosy.svg?uri=http://example.com/").header.Get("ETag") // of the badge after the calls above
	c.send(t, sent{"GET /badge/{file}", example, []string{"If-None-Match", tag}, "", 304})
	for _, path := range []string{"/openapi.json", "/count.js", "/count.{version}"} {
		c.send(t, sent{"GET " + path, "", nil, "", 200})
		tag := c.get(strings.Replace(path, "{version}", embed.Version+".js", 1)).header.Get("ETag")
		c.send(t, sent{"GET " + path, "", []string{"If-None-Match", tag}, "", 304})
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/openapi.json", "/count.js", "/count.{version}"} {
		c.send(t, sent{"GET " + path, "", []string{"X-Long", strings.Repeat("x", 2*maxHeader)}, "", 431})
	}
}

// checkReached checks that everything documented occurred.
func (c *checker) checkReached(t *testing.T) {
	t.Helper()
	for _, why := range c.at(c.all, "components", "headers", skippedHeader, "schema", "enum").([]any) {
		assert.True(t, c.said[skippedHeader+" "+why.(string)], "%s: %s", skippedHeader, why)
	}
	assert.True(t, c.said[repeatedHeader+" id"])
	elsewhere := map[string]bool{
		// TestReportsFindVisitorsAsCountsDoes, and the tests of apps with ids: they need a secret.
		"GET /visit visitor": true, "GET /counts visitor": true, "GET /api/apps/{app}/ranks visitor": true,
		// TestVisitsOfOtherDays: its app keeps the days of the test's clock.
		"GET /visit at": true,
		// TestAttacks/floods: the body has to arrive slowly, for seconds.
		"POST /visits 408": true, "PUT /people 408": true,
	}
	for call, operation := range c.operations {
		if slices.Contains(c.at(operation, "tags").([]any), any("changes")) {
			continue // TestProgramsChangeApps, TestRightsOfKeys
		}
		for status := range c.at(operation, "responses").(map[string]any) {
			assert.True(t, c.reached[call+" "+status] || elsewhere[call+" "+status], "%s answers %s", call, status)
		}
		for name, p := range c.parameters(operation) {
			if c.at(p, "in") == "query" && !elsewhere[call+" "+name] {
				assert.True(t, c.accepted[call+" "+name], "%s takes %s", call, name)
			}
		}
	}
}

// Validators such as redocly's require more of a document than the OpenAPI standard, such as descriptions of tags and 4xx
// responses. This test checks these requirements.
func TestDocumentIsWhatValidatorsWant(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	for _, tag := range d.at(d.all, "tags").([]any) {
		assert.NotEmpty(t, d.at(tag, "description"), tag)
	}
	for call, operation := range d.operations() {
		statuses := slices.Collect(maps.Keys(d.at(operation, "responses").(map[string]any)))
		assert.True(t, slices.ContainsFunc(statuses, func(status string) bool { return status[0] == '4' }), "%s answers no 4xx", call)
	}
	var look func(at any)
	look = func(at any) {
		switch at := at.(type) {
		case []any:
			for _, one := range at {
				look(one)
			}
		case map[string]any:
			required, _ := at["required"].([]any)
			for _, name := range required {
				assert.Contains(t, at["properties"], name)
			}
			for _, one := range at {
				look(one)
			}
		}
	}
	look(d.all)
}

// The document's patterns of days match exactly the days that the service accepts.
func TestDocumentedDays(t *testing.T) {
	t.Parallel()
	e, d := newEdge(t), readDocument(t)
	for _, name := range []string{"from", "to", "day"} {
		pattern := regexp.MustCompile(d.at(d.all, "components", "parameters", name+"Parameter", "schema", "pattern").(string))
		ask := "/api/apps/demo/pages?" + name + "="
		if name == "day" {
			ask = "/api/apps/demo/visitors?site=hhui.top&day="
		}
		for _, text := range []string{"20190629", "2019-06-29", "today", "yesterday", "1d", "30d", "all",
			"2019-0629", "2019", "tomorrow", "Today", "d", "-1d", "all days"} {
			status := e.get(ask + url.QueryEscape(text)).status
			assert.Equal(t, pattern.MatchString(text), status == http.StatusOK, "%s=%s: %d", name, text, status)
		}
	}

	// The description can be read, but pages of other sites can neither read nor embed it.
	a := e.get("/openapi.json")
	assert.Equal(t, "application/json", a.header.Get("Content-Type"))
	assert.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	assert.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, http.StatusMethodNotAllowed, e.do(http.MethodPost, e.public+"/openapi.json", "", "").status)
	assert.Equal(t, http.StatusNotFound, e.get("/api").status)
}

// oapi-codegen generates a client of /openapi.json with its defaults, which compiles, counts and reads. It is a
// separate module in testdata/client, which pins the generator and the client's dependencies.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	e, dir := newEdge(t), t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/client")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.json"), []byte(e.get("/openapi.json").body), 0o600))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run("tool", "oapi-codegen", "-generate", "types,client", "-package", "main", "-o", "client.go", "openapi.json")
	run("build", "-o", "client", ".")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "client"), e.public).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "visit: 1 1 1 1\npage: hhui.top/home 1\n"+
		"refused: app: there is no app \"none\": ask its operator for its exact name\n", string(out))
}
