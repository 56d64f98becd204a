package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

// exampleBlock matches the commands in docs/people.md, and their output.
var exampleBlock = regexp.MustCompile("(?ms)^```(sh|)\n(.*?\n)```")

// TestPeopleIsAsWritten runs every command of docs/people.md, in order.
func TestPeopleIsAsWritten(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("not installed: " + program)
		}
	}
	document, err := os.ReadFile("../../docs/people.md")
	require.NoError(t, err)
	database, secret, folder := dbtest.New(t), writeFile(t, strings.Repeat("s", 32)), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "bin"), 0o700))
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(folder, "bin", "footfall")))
	s := serve(t, "--database-url="+database, "--secret-file="+secret)
	said := ""
	person := regexp.MustCompile(`"person":"fd[0-9a-f:]+"`)
	for _, block := range exampleBlock.FindAllStringSubmatch(string(document), -1) {
		if block[1] == "" {
			assert.Equal(t, strings.TrimSpace(block[2]), strings.TrimSpace(person.ReplaceAllString(said, `"person":"PERSON"`)))
			continue
		}
		script := exec.Command("bash", "-euo", "pipefail", "-c", strings.ReplaceAll(block[2], "http://127.0.0.1:8080", s.url))
		script.Dir, script.Env = folder, append(environment(), "FOOTFALL_DATABASE_URL="+database, "FOOTFALL_SECRET_FILE="+secret)
		out, err := script.CombinedOutput()
		require.NoError(t, err, "%s\n%s", block[2], out)
		said = string(out)
	}
	assert.Zero(t, s.stop())
}

// peopleFile writes a file in which 6 of a thousand lines are wrong, and one is empty. It returns the expected messages about
// the wrong lines.
func peopleFile(t *testing.T, lines int) (path, says string) {
	t.Helper()
	var text, wrong strings.Builder
	for n := 1; n <= lines; n++ {
		line, why := fmt.Sprintf(`{"id":"cookie:%d","is":"user:%d"}`, n, n/10), ""
		switch n % 1000 {
		case 507:
			line, why = `{"id":"cookie`, "at byte 7: this string is not closed"
		case 508:
			line, why = `{"id":"","is":"user:1"}`, "id: it is empty: give it a value, or leave it out"
		case 509:
			line, why = fmt.Sprintf(`{"id":"user:%d","is":"cookie:%d"}`, n/10-1, n-10),
				"is: this person is already linked to the id, so the links would form a circle: leave one of them out"
		case 510:
			line = ""
		case 511:
			line, why = `{"id":"a","tags":{"age":"1","`+strings.Repeat("x", 20_000)+`":"1"}}`,
				"it is longer than a line may be: write JSON with one line for each id"
		case 512:
			line, why = "\xff", "it is not valid UTF-8"
		case 513:
			line = fmt.Sprintf(`{"id":"user:%d","tags":{"age":"%d"}}`, n/10, n%80)
		case 514:
			line, why = `{"id":"user:1","tags":{"size":"1"}}`,
				`tags: app blog has no tag "size" of its own: leave it out, or have its operator list it (app set --tags)`
		}
		text.WriteString(line + "\n")
		if why != "" {
			fmt.Fprintf(&wrong, "line %d: %s\n", n, why)
		}
	}
	path = filepath.Join(t.TempDir(), "people.ndjson")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path, wrong.String()
}

// Each wrong line of a long file is reported, and all others are loaded. Loading the file again writes nothing. A killed import
// can be repeated.
func TestPeopleAreLoaded(t *testing.T) {
	t.Parallel()
	lines := dbtest.FromEnv(t, "FOOTFALL_PEOPLE_LINES", 20_000)
	file, wrong := peopleFile(t, lines)
	secret := "--secret-file=" + writeFile(t, strings.Repeat("s", 32))
	blog := func() (url string, look func(what string) string) {
		database := dbtest.New(t)
		url = "--database-url=" + database
		well(t, "app", "add", "blog", "--site=blog.example", "--visitor=id", "--tags=age", url, secret)
		conn := dbtest.Connect(t, database)
		return url, func(what string) (text string) {
			require.NoError(t, conn.QueryRow(t.Context(), "SELECT coalesce("+what+", '') FROM footfall.people AS p").Scan(&text))
			return text
		}
	}
	database, look := blog()
	load := func(url string) {
		t.Helper()
		r := footfall(t, "people", "load", "blog", file, url, secret)
		assert.Equal(t, 1, r.code)
		require.Equal(t, wrong+"loaded "+grouped(lines-lines/1000*7)+" lines\n", r.stdout)
		assert.Equal(t, fmt.Sprintf("footfall: people load: %s lines could not be loaded: see above. All other lines were loaded\n",
			grouped(lines/1000*6)), r.stderr)
	}
	load(database)
	const rows = `count(*) || ' ' || md5(string_agg(concat_ws(' ', p.id, p.person, p.height,
		ARRAY(SELECT t.value FROM footfall.tags AS t WHERE t.id = ANY (p.tag_ids))), '; ' ORDER BY p.id))`
	const written = rows + ` || md5(string_agg(p.tableoid::text || p.ctid || p.xmin, ' ' ORDER BY p.id))`
	all, once := look(rows), look(written)
	assert.Regexp(t, `^\d{5,} `, all)
	load(database)
	assert.Equal(t, once, look(written), "nothing is written twice")

	// The last line is not sent, so that the import cannot have written the last lines when it is killed.
	other, looks := blog()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	killed := exec.Command(os.Args[0], "people", "load", "blog", "-", other, secret)
	killed.Env = environment()
	typed, err := killed.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, killed.Start())
	go func() { _, _ = typed.Write(text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1]) }()
	eventually(t, "some are loaded", func() bool { n, _ := strconv.Atoi(looks("count(*)::text")); return n > lines/3 })
	require.NoError(t, killed.Process.Kill())
	require.ErrorContains(t, killed.Wait(), "killed")
	assert.NotEqual(t, all, looks(rows))
	load(other)
	assert.Equal(t, all, looks(rows))

	for _, c := range [][2]string{{"none", "app: there is no app"}, {"demo", "app: app demo distinguishes visitors by address"}} {
		if c[0] == "demo" {
			well(t, "app", "add", "demo", "--site=blog.example", "--visitor=address", database)
		}
		assert.Contains(t, footfall(t, "people", "load", c[0], file, database, secret).stderr, c[1])
	}
	assert.Contains(t, footfall(t, "people", "load", "blog", "/no/such", database, secret).stderr, "no such file")
}

// grouped returns a number with its digits grouped.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
