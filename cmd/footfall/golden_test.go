package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter/app"
	"footfall/desk"
	"footfall/handler"
	"footfall/handler/routing"
	"footfall/report"
)

var update = flag.Bool("update", false, "rewrite the golden files with the output of this version")

// goldenFiles are transcripts. A line that starts with one of these signs is an input, and the indented lines after it are
// the output that the test compares:
//
//	# a comment
//	@ 2019-06-29 12:00              sets the clock of the service
//	$ app list < text on stdin      runs a command
//	> GET /visit?app=demo as NAME   sends a request, with the key NAME or from the browser NAME; "from URL" names the page
//	                                that sends it, and a body follows after " -- "
//
// An input that ends with "=> NAME" saves the secret that the output contains. {NAME} inserts it, and the output shows {NAME}
// in its place.
const goldenFiles = "testdata/golden/*.txt"

// notCalled are the commands and requests that the transcripts do not call, with the reason.
var notCalled = map[string]string{
	"serve":             "the transcripts send requests to the same handlers",
	"psql":              "its output is psql's",
	"help":              "exits this process: TestGoldenHelp",
	"upgrade":           "needs two versions of PostgreSQL: upgrade_test.go",
	"cell move":         "needs Citus: cells_test.go",
	"cell node add":     "needs Citus: cells_test.go",
	"cell node replace": "needs Citus: cells_test.go",
	"cell node remove":  "needs Citus: cells_test.go",
}

// goldenClock is the time at which the transcripts begin. Dates of this year stay unchanged in the output. Dates since 2025
// come from the machine's clock, and are replaced.
var goldenClock = time.Date(2019, 6, 20, 12, 0, 0, 0, time.UTC)

// golden runs transcripts against one database and one service.
type golden struct {
	*desk.Desk
	t       *testing.T
	root    *kong.Node // of all commands
	flags   []string   // of every command
	public  http.Handler
	metrics *prometheus.Registry
	secrets map[string]string                  // by name
	pages   map[string]string                  // the text of each page when it was last shown, by reader and path
	jars    map[string]map[string]*http.Cookie // of browsers, by name
	called  map[string]bool                    // commands, and requests as METHOD /path
}

func newGolden(t *testing.T) *golden {
	t.Helper()
	g := &golden{t: t, root: new(parsedLine).newParser("", nil, nil).Model.Node, metrics: prometheus.NewRegistry(),
		pages: map[string]string{}, jars: map[string]map[string]*http.Cookie{}, called: map[string]bool{}}
	g.Desk = desk.Open(t, desk.Options{Began: goldenClock, Apps: map[string]app.Settings{}})
	g.Exec(t, `SELECT make_visits_day(20190630)`) // the service of the desk makes no partitions ahead
	// Visitors of the last five minutes would depend on how long the test takes.
	g.Exec(t, `CREATE FUNCTION skip_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	g.Exec(t, `CREATE TRIGGER nobody_here BEFORE INSERT ON here FOR EACH ROW EXECUTE FUNCTION skip_row()`)
	g.flags = []string{"--database-url=" + g.URL, "--secret-file=" + writeFile(t, string(desk.Secret))}
	cell := &routing.Cell{Counter: g.Counter, Admin: g.Admin, Reports: report.NewReader(g.DB)}
	server, _ := handler.Servers(handler.Options{Metrics: g.metrics, Cells: routing.NewSingle(cell), Accounts: account.Open(g.DB),
		Dashboard: true, PublicURL: "https://count.example", Help: readHelp(helpText)})
	g.public = server.Handler
	day := time.Now().UTC().AddDate(0, 0, -1)
	g.secrets = map[string]string{"yesterday": day.Format("02/Jan/2006")}
	return g
}

// Every command, request and page has the output that the golden files contain. `go test ./cmd/footfall -run TestGolden -update`
// rewrites them.
func TestGolden(t *testing.T) {
	t.Parallel()
	g := newGolden(t)
	files, err := filepath.Glob(goldenFiles)
	require.NoError(t, err)
	for _, file := range files { // in order, because each file needs the data of the files before it
		g.transcript(file)
	}
	g.requireAllCalled()
}

// Each command has the help that the golden files contain.
func TestGoldenHelp(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"footfall": helpOf(t)}
	for _, command := range commandsOf(new(parsedLine).newParser(everybodysData, nil, nil).Model.Node) {
		words := strings.Fields(command)
		texts[words[0]] += helpOf(t, words...)
	}
	for name, text := range texts {
		compareGolden(t, filepath.Join("testdata", "golden", "help", name+".txt"), text)
	}
}

// helpOf returns the help of a command. It omits the flags that all commands share, except from the help of the root.
func helpOf(t *testing.T, words ...string) string {
	t.Helper()
	var out bytes.Buffer
	parser := new(parsedLine).newParser(everybodysData, &out, &out)
	for _, flag := range parser.Model.Flags {
		flag.Hidden = len(words) > 0
	}
	exited := errors.New("exited")
	parser.Exit = func(code int) { assert.Zero(t, code); panic(exited) }
	assert.PanicsWithValue(t, exited, func() { _, _ = parser.Parse(append(slices.Clone(words), "--help")) })
	return "$ " + strings.Join(append(slices.Clone(words), "--help"), " ") + "\n" + (&golden{}).indent("", out.String()) + "\n"
}

// commandsOf returns the names of all commands below a node that can be run.
func commandsOf(node *kong.Node) (names []string) {
	for _, child := range node.Leaves(false) {
		names = append(names, strings.TrimPrefix(child.FullPath(), "footfall "))
	}
	return names
}

// transcript runs the inputs of a file and compares their output.
func (g *golden) transcript(file string) {
	g.t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(g.t, err)
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line != "" && strings.HasPrefix(line, " ") {
			continue // former output
		}
		if line != "" || out.Len() > 0 {
			out.WriteString(line + "\n")
		}
		if len(line) < 2 || line[0] == '#' {
			continue
		}
		input, save, _ := strings.Cut(line[2:], " => ")
		input = g.fill(input)
		var output string
		switch line[0] {
		case '@':
			now, err := time.Parse("2006-01-02 15:04", input)
			require.NoError(g.t, err, file)
			g.Clock.Set(now)
		case '$':
			output = g.command(input, save)
		case '>':
			output = g.request(input, save)
		default:
			g.t.Fatalf("%s: unknown input %q", file, line)
		}
		out.WriteString(output)
	}
	compareGolden(g.t, file, out.String())
}

func compareGolden(t *testing.T, file, is string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(is), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	// assert.Equal takes minutes to print the difference of long texts.
	if was, now := strings.Split(string(want), "\n"), strings.Split(is, "\n"); !slices.Equal(was, now) {
		at := 0
		for at < min(len(was), len(now)) && was[at] == now[at] {
			at++
		}
		excerpt := func(lines []string) string { return strings.Join(lines[max(0, at-3):min(len(lines), at+6)], "\n") }
		t.Errorf("%s:%d differs from this version's output. If the change is meant, run `go test ./cmd/footfall -run TestGolden -update` "+
			"and commit the file.\n--- the file\n%s\n--- this version\n%s", file, at+1, excerpt(was), excerpt(now))
	}
}

// fill inserts secrets by their names.
func (g *golden) fill(text string) string {
	for name, secret := range g.secrets {
		text = strings.ReplaceAll(text, "{"+name+"}", secret)
	}
	return text
}

// save saves the secret that an output contains under a name.
func (g *golden) save(name, output string) {
	g.t.Helper()
	if name == "" {
		return
	}
	secret := goldenSecret.FindString(output)
	require.NotEmpty(g.t, secret, "%s: %s", name, output)
	g.secrets[name] = secret
	if link, _, is := strings.Cut(secret, "_"); is && len(link) == 8 && link != "footfall" { // lists show this id
		g.secrets[name+"…"] = link
	}
}

// command runs a command in this process.
func (g *golden) command(input, save string) string {
	g.t.Helper()
	input, stdin, _ := strings.Cut(input, " < ")
	words := []string{}
	for _, word := range goldenWord.FindAllString(input, -1) {
		words = append(words, strings.ReplaceAll(word, `'`, ""))
	}
	node := g.root
	for _, word := range words {
		if at := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word }); at >= 0 {
			node = node.Children[at]
		} else if node.DefaultCmd != nil {
			node = node.DefaultCmd
		}
	}
	g.called[strings.TrimPrefix(node.FullPath(), "footfall ")] = true
	var stdout, stderr bytes.Buffer
	stdin = strings.ReplaceAll(stdin, `\n`, "\n")
	code := run(g.t.Context(), append(slices.Clone(g.flags), words...), strings.NewReader(stdin), &stdout, &stderr)
	for code != 0 && strings.Contains(stderr.String(), goldenSlow) { // a report may be too slow on a busy machine
		stdout.Reset()
		stderr.Reset()
		code = run(g.t.Context(), append(slices.Clone(g.flags), words...), strings.NewReader(stdin), &stdout, &stderr)
	}
	g.save(save, stdout.String())
	output := g.indent("", stdout.String()) + g.indent("! ", stderr.String())
	if code != 0 {
		output = fmt.Sprintf("    exit code %d\n", code) + output
	}
	return output
}

// request sends a request to the service.
func (g *golden) request(input, save string) string {
	g.t.Helper()
	input, body, _ := strings.Cut(input, " -- ")
	input, from, _ := strings.Cut(input, " from ")
	input, as, _ := strings.Cut(input, " as ")
	method, path, _ := strings.Cut(input, " ")
	sent := strings.NewReader(strings.ReplaceAll(body, `\n`, "\n"))
	r := httptest.NewRequestWithContext(g.t.Context(), method, "https://count.example"+path, sent)
	g.called[method+" "+r.URL.Path] = true
	r.Header.Set("User-Agent", desk.Browser)
	if from != "" {
		r.Header.Set("Referer", from)
		r.Header.Set("Origin", goldenOrigin.FindString(from))
	}
	if key := g.secrets[as]; key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for _, cookie := range g.jars[as] {
		r.AddCookie(cookie)
	}
	switch {
	case strings.Contains(body, `}\n{`):
		r.Header.Set("Content-Type", "application/x-ndjson")
	case strings.HasPrefix(body, "{"), strings.HasPrefix(body, "["):
		r.Header.Set("Content-Type", "application/json")
	case body != "":
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	g.public.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		if g.jars[as] == nil {
			g.jars[as] = map[string]*http.Cookie{}
		}
		g.jars[as][cookie.Name] = cookie
	}
	text, kind := w.Body.String(), w.Header().Get("Content-Type")
	g.save(save, text)
	switch {
	case strings.HasPrefix(kind, "text/html"):
		if r.URL.Path != "/" { // all pages have the same layout, so it is shown only once
			text = goldenLayout.ReplaceAllString(text, "$1$2")
		}
		text = strings.Join(strings.Fields(goldenLong.ReplaceAllString(text, "$1…$2")), " ")
		text = goldenTag.ReplaceAllString(text, "\n$0")
	case strings.HasPrefix(kind, "application/json"):
		var indented bytes.Buffer
		if len(text) > 200 && json.Indent(&indented, w.Body.Bytes(), "", "  ") == nil {
			text = goldenDeep.ReplaceAllString(indented.String(), " ")
		}
	case !strings.HasPrefix(kind, "text/csv") && !strings.HasPrefix(kind, "image/svg") && !strings.HasPrefix(kind, "text/plain"):
		text = "" // scripts and styles are not part of the transcript
	}
	output := g.indent("", text)
	switch page := as + r.URL.Path; {
	case strings.HasPrefix(kind, "text/html") && method == http.MethodGet && w.Code == http.StatusOK:
		g.pages[page] = output
	case strings.HasPrefix(kind, "text/html") && g.pages[page] != "":
		output = withoutLinesOf(output, g.pages[page])
	}
	return g.indent("", fmt.Sprintln(w.Code, kind, w.Header().Get("Location"))) + output
}

// withoutLinesOf removes from an output the lines that a page, which was shown before, also contains.
func withoutLinesOf(output, page string) string {
	shown, left, same := strings.Split(page, "\n"), []string{}, 0
	for line := range strings.Lines(output) {
		if slices.Contains(shown, strings.TrimSuffix(line, "\n")) {
			same++
		} else {
			left = append(left, line)
		}
	}
	return fmt.Sprintf("    (%d lines as above)\n", same) + strings.Join(left, "")
}

// indent marks the lines of an output, in which the values that differ from run to run are replaced.
func (g *golden) indent(mark, output string) string {
	for _, name := range slices.Sorted(maps.Keys(g.secrets)) {
		output = strings.ReplaceAll(output, g.secrets[name], "{"+name+"}")
	}
	fixed := output
	for _, r := range goldenReplaced {
		output = r.found.ReplaceAllString(output, r.by)
	}
	if output != fixed { // the replaced values had different widths
		output = goldenColumns.ReplaceAllString(output, "$1  ")
	}
	var lines strings.Builder
	for line := range strings.Lines(output) {
		if line = strings.TrimRight(line, "\r\n "); line != "" {
			lines.WriteString("    " + mark + line + "\n")
		}
	}
	return lines.String()
}

var (
	goldenWord    = regexp.MustCompile(`(?:[^\s']|'[^']*')+`)
	goldenSecret  = regexp.MustCompile(`footfall_[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{43,}`)
	goldenOrigin  = regexp.MustCompile(`^\w+://[^/]+`)
	goldenDeep    = regexp.MustCompile(`\n {10,}`)
	goldenColumns = regexp.MustCompile(`(\S) {2,}`)
	goldenTag     = regexp.MustCompile(`<(?:details|div|dl|dt|fieldset|figure|form|h[1-6]|input|label|li|main|nav|ol|option|p|pre|` +
		`section|select|svg|table|textarea|tr|ul)\b`)
	goldenLayout = regexp.MustCompile(`(?s)^.*(<title>.*?</title>).*(<main.*</main>).*$`)
	goldenLong   = regexp.MustCompile(`(?s)(<(?:style|script|datalist|select id="zone")[^>]*>).*?(</(?:style|script|datalist|select)>)`)

	goldenReplaced = []struct {
		found *regexp.Regexp
		by    string
	}{
		{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`), "SECRET"},
		{goldenSecret, "SECRET"},
		{regexp.MustCompile(`(?m)^ +\d+\.\d s  .*\n`), ""},         // the progress of verify
		{regexp.MustCompile(`(?m)^.* nothing reads it: .*\n`), ""}, // variables of other tests, as CI sets them
		{regexp.MustCompile(`footfall_[A-Za-z0-9_-]{6,}`), "SECRET"},
		{regexp.MustCompile(regexp.QuoteMeta(os.Args[0])), "footfall"},
		{regexp.MustCompile(`PostgreSQL \d[\w.]*(?: \([^)]*\))?`), "PostgreSQL N"},
		{regexp.MustCompile(`"version": "[^"]*"`), `"version": "N"`},
		{regexp.MustCompile(`("(?:bytes|seconds|clock_offset_seconds)": )[-+.e\d]+`), "${1}0"},
		{regexp.MustCompile(`(huge.pages"?: "?)\w+`), "${1}off"},
		{regexp.MustCompile(`(a table for each of |not closed \()\d+`), "${1}N"},
		// Yesterday ends in the last time zone at noon UTC, so before noon the last closed day is an earlier one.
		{regexp.MustCompile(`(closed: )\d+ \((\d+) to \d+`), "${1}N ($2 to DATE"},
		{regexp.MustCompile(`(last day closed )\d+`), "${1}DATE"},
		{regexp.MustCompile(`testgolden_\w+`), "DATABASE"},
		{regexp.MustCompile(`(?s)"tables": \[.*?\n  \]`), `"tables": […]`},
		{regexp.MustCompile(`\b20(?:2[5-9]|[3-9]\d)-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d| UTC)?)?`), "DATE"},
		{regexp.MustCompile(`\b20(?:2[5-9]|[3-9]\d)[01]\d[0-3]\d\b`), "DATE"},
		{regexp.MustCompile(`("used": )(?:"DATE"|null)`), `${1}"DATE"`}, // an instance notes it a few seconds later
		{regexp.MustCompile(`<td data-of="(?:Last used|Zuletzt benutzt)"><bdi>DATE`), `<td><bdi>–`},
		{regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ns|µs|ms|s|m\d+s)\b`), "DURATION"},
		{regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:[kKMGT]i?B|bytes)\b`), "SIZE"},
		{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
		{regexp.MustCompile(`go1\.\d+[.\w]*`), "GO"},
	}
)

// goldenSlow is the message of a report that the database did not finish in time. Such a report can be requested again.
const goldenSlow = "the database did not finish in time"

// requireAllCalled fails for each command, route and operation that no transcript has called.
func (g *golden) requireAllCalled() {
	g.t.Helper()
	for _, command := range commandsOf(g.root) {
		assert.NotEqual(g.t, g.called[command], notCalled[command] != "",
			"%s: a transcript in %s must call this command, or notCalled must give a reason, and not both", command, goldenFiles)
	}
	families, err := g.metrics.Gather()
	require.NoError(g.t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "footfall_http_request_duration_seconds" {
				assert.NotZero(g.t, metric.GetHistogram().GetSampleCount(), "%s: a transcript in %s must call this route",
					metric.GetLabel()[0].GetValue(), goldenFiles)
			}
		}
	}
	w := httptest.NewRecorder()
	g.public.ServeHTTP(w, httptest.NewRequestWithContext(g.t.Context(), http.MethodGet, "/openapi.json", http.NoBody))
	var api struct{ Paths map[string]map[string]any }
	require.NoError(g.t, json.Unmarshal(w.Body.Bytes(), &api))
	require.NotEmpty(g.t, api.Paths)
	for path, methods := range api.Paths {
		like := regexp.MustCompile("^" + regexp.MustCompile(`\\{\w+\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`) + "$")
		for method := range methods {
			assert.True(g.t, slices.ContainsFunc(slices.Collect(maps.Keys(g.called)), func(call string) bool {
				called, at, _ := strings.Cut(call, " ")
				return strings.EqualFold(called, method) && like.MatchString(at)
			}), "%s %s: a transcript in %s must call it", method, path, goldenFiles)
		}
	}
}
