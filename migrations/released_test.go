package migrations_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/migrations"
)

// Existing databases depend on the released steps: released steps do not change, new steps follow after them, and changed
// functions and views have a higher version. If CHANGELOG has no unreleased part, the file `released` lists all steps and
// functions.
func TestReleased(t *testing.T) {
	t.Parallel()
	line := func(name string, patterns ...string) string {
		sum := sha256.New()
		for _, pattern := range patterns {
			paths, err := filepath.Glob(pattern)
			require.NoError(t, err)
			for _, path := range paths {
				text := read(t, path)
				fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text) // the same hash as in the database's schema_files
			}
		}
		return fmt.Sprintf("%x  %s", sum.Sum(nil), name)
	}
	steps, err := filepath.Glob("0*.sql")
	require.NoError(t, err)
	present := []string{line(fmt.Sprint("functions ", migrations.Functions), "comments/*.sql", "functions/*.sql", "report/*.sql",
		"cell/cell.sql", "cell/nodes.sql")}
	for _, step := range steps {
		present = append(present, line(step, step))
	}

	released, frozen := []string{}, []string{}
	for _, is := range regexp.MustCompile(`(?m)^[0-9a-f]{64}  .+$`).FindAllString(read(t, "released"), -1) {
		released = append(released, is)
		_, name, _ := strings.Cut(is, "  ")
		number, ofFunctions := strings.CutPrefix(name, "functions ")
		if !ofFunctions {
			frozen = append(frozen, is)
			continue
		}
		n, err := strconv.Atoi(number)
		require.NoError(t, err, is)
		assert.LessOrEqual(t, n, migrations.Functions, "migrations.Functions never falls")
		if n == migrations.Functions {
			assert.Equal(t, is, present[0], "functions or views have changed since they were released: raise migrations.Functions by one")
		}
	}
	require.LessOrEqual(t, len(frozen), len(steps))
	assert.Equal(t, frozen, present[1:][:len(frozen):len(frozen)],
		"a step that was released is never edited, and none comes before it: add the next one")
	missing := slices.DeleteFunc(present, func(is string) bool { return slices.Contains(released, is) })
	if len(missing) > 0 && !regexp.MustCompile(`\n## Unreleased\n+-`).MatchString(read(t, "../CHANGELOG.md")) {
		t.Errorf("a release: add these lines to migrations/released\n%s", strings.Join(missing, "\n"))
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
