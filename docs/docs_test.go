package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	named    = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)(?:/[^`]*)?`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// Every test that a document names is there, and every fault in faults.md names one.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	documents, tests := map[string]string{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") && !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".md") {
			documents[path] = string(text)
		}
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = true
		}
		return err
	}))
	for path, text := range documents {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			assert.True(t, tests[found[1]], "%s names %s, and there is no such test", path, found[1])
		}
	}
	faults := 0
	for line := range strings.Lines(documents["../docs/faults.md"]) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault |") {
			continue
		}
		faults++
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		require.Len(t, cells, 3, line)
		assert.Regexp(t, named, cells[2], line)
	}
	assert.Positive(t, faults)
}
