// Package attacks attacks the service from outside, as docs/security.md tells.
package attacks

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attack is one case: what is sent, what comes back and what is stored. Its texts are its line in
// docs/security.md. Either it has requests, all of which get the same answer, or it is a story of
// its own.
type attack struct {
	name string
	sent string

	requests []string // in the form that world.send reads
	via      via      // the listener that they go to
	status   int
	says     string // a part of the answer's error
	stores   string // what each request adds, in the form of world.stored; "": nothing
	headers  map[string]string

	answered, stored string // texts, where status, says and stores are not enough
	story            func(w *world)
}

// groups are all attacks. Those of one group are made on one world, one after the other.
var groups = []struct {
	name    string
	attacks []attack
	alone   bool // it measures memory
}{
	{"floods", floodAttacks, true},
	{"keys", keyAttacks, false},
	{"reading", readingAttacks, false},
	{"addresses", addressAttacks, false},
	{"sites", siteAttacks, false},
	{"origins", originAttacks, false},
	{"uncounted", uncountedAttacks, false},
	{"limits", limitAttacks, false},
	{"requests", requestAttacks, false},
	{"rights", rightsAttacks, false},
	{"badges", badgeAttacks, false},
	{"busuanzi", busuanziAttacks, false},
	{"logs", logAttacks, false},
}

// TestAttacks is not parallel, so that nothing runs beside the group that measures memory.
func TestAttacks(t *testing.T) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			if !g.alone {
				t.Parallel()
			}
			w := newWorld(t)
			for _, a := range g.attacks {
				t.Run(a.name, func(t *testing.T) { a.make(w.of(t)) })
			}
			w.of(t).checkTables()
			w.of(t).checkSilence()
		})
	}
}

func (a attack) make(w *world) {
	if a.story != nil {
		a.story(w)
	}
	for _, request := range a.requests {
		w.page++
		before := w.tables()
		got := w.send(a.via, request)
		told := w.expand(request)
		if len(told) > 300 {
			told = told[:300] + "…"
		}
		assert.Equal(w.t, a.status, got.status, "%s\n%s", told, got.body)
		assert.Contains(w.t, got.body, inJSON(a.says), told)
		assert.Equal(w.t, w.expand(a.stores), w.tables().since(before), told)
		for name, want := range a.headers {
			assert.Equal(w.t, w.expand(want), strings.Join(got.header[name], "|"), "%s: %s", name, told)
		}
	}
}

// line is an attack as docs/security.md tells it.
func (a attack) line(group string) string {
	answered := cmp.Or(a.answered, strings.TrimSpace(fmt.Sprintf("%d %s", a.status, a.says)))
	if why := a.headers[skippedHeader]; why != "" {
		answered += ", `" + skippedHeader + ": " + why + "`"
	}
	stored := cmp.Or(a.stored, a.stores, "nothing")
	return fmt.Sprintf("| %s: %s | %s | %s | %s |", group, a.name, a.sent, answered, strings.ReplaceAll(stored, "{page}", "the page, by"))
}

// The table of attacks in docs/security.md has a line for each subtest of TestAttacks, and no
// other. With FOOTFALL_WRITE_DOCS set it is written.
func TestSecurityTableIsWhatIsTested(t *testing.T) {
	t.Parallel()
	const file, head = "../../docs/security.md", "| case | sent | answered | stored |\n|---|---|---|---|\n"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, table, found := strings.Cut(string(text), head)
	require.True(t, found, "%s has no table of attacks", file)
	var want strings.Builder
	for _, g := range groups {
		for _, a := range g.attacks {
			want.WriteString(a.line(g.name) + "\n")
		}
	}
	if os.Getenv("FOOTFALL_WRITE_DOCS") != "" {
		require.NoError(t, os.WriteFile(file, []byte(before+head+want.String()), 0o600))
		return
	}
	assert.Equal(t, want.String(), table, "write it anew: FOOTFALL_WRITE_DOCS=1 go test -run TestSecurityTable ./handler/attacks")
}
