package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	named    = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)(?:/[^`]*)?`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
	linked   = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	fenced   = regexp.MustCompile("(?s)```.*?```")
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// read returns the texts of the project's files with this suffix, by path.
func read(t *testing.T, ending string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." { // downloads, too
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	}))
	return texts
}

// Every test named in a document exists.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	for _, text := range read(t, "_test.go") {
		for _, found := range declared.FindAllStringSubmatch(text, -1) {
			tests[found[1]] = true
		}
	}
	for path, text := range read(t, ".md") {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			assert.True(t, tests[found[1]], "%s names %s, which is not a test", path, found[1])
		}
	}
}

// A README in another language has the same commands as the English one, and names the commit that it follows. The
// blocks of its section on busuanzi are in embed.md.
func TestReadmesFollowTheOneInEnglish(t *testing.T) {
	t.Parallel()
	texts := read(t, ".md")
	blocksOf := func(path string) []string { // without the texts for a page's readers, which are in their language
		blocks := fenced.FindAllString(texts[path], -1)
		for i, block := range blocks {
			if strings.HasPrefix(block, "```html") {
				blocks[i] = regexp.MustCompile(`>[^<>]+<`).ReplaceAllString(block, "><")
			}
		}
		return blocks
	}
	english, embed := blocksOf("../README.md"), blocksOf("../docs/embed.md")
	require.NotEmpty(t, english)
	for _, path := range []string{"../README.zh-CN.md", "../README.ko.md"} {
		assert.Regexp(t, "\\[README\\.md\\]\\(README\\.md\\).*`[0-9a-f]{12}`", texts[path], path)
		blocks := slices.DeleteFunc(blocksOf(path), func(block string) bool { return slices.Contains(embed, block) })
		assert.Equal(t, english, blocks, "the commands and code of %s", path)
	}
}

// Every link between documents leads to an existing file, and to an existing heading.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	documents := read(t, ".md")
	for path, text := range documents {
		for _, found := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			file, anchor := found[1], found[2]
			if strings.Contains(file, ":") || strings.HasPrefix(file, "/") {
				continue // an external link
			}
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			_, err := os.Stat(to)
			assert.NoError(t, err, "%s links to %s", path, file)
			if anchor != "" {
				assert.Contains(t, anchors(documents[to]), anchor, "%s links to %s#%s", path, file, anchor)
			}
		}
	}
}

// anchors returns the anchors that GitHub generates for the headings of a document.
func anchors(text string) (list []string) {
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		kept := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_ ", r) {
				return r
			}
			return -1
		}, strings.ToLower(found[1]))
		list = append(list, strings.ReplaceAll(kept, " ", "-"))
	}
	return list
}

// The text for readers has the same content in each of its languages.
func TestPrivacyIsToldInEachLanguage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("privacy.md")
	require.NoError(t, err)
	languages := strings.Split(string(text), "\n## ")[1:]
	require.Len(t, languages, 7)
	for _, told := range languages {
		for _, is := range []string{"`hashed`", "`browser`", "`address`", "`id`", "`daily`",
			"35", "IPv6", "`#footfall-ignore`", "Global Privacy Control"} {
			assert.Contains(t, strings.ReplaceAll(told, "\n", " "), is)
		}
	}
}

// The proxy of the compose file does not sign users in, so it drops the headers that would.
func TestProxyDropsWhoHasSignedIn(t *testing.T) {
	t.Parallel()
	compose, err := os.ReadFile("../docker-compose.yml")
	require.NoError(t, err)
	_, proxy, _ := strings.Cut(string(compose), "reverse_proxy footfall:8080 {")
	proxy, _, _ = strings.Cut(proxy, "END")
	assert.Equal(t, []string{"header_up", "-Remote-User", "header_up", "-${FOOTFALL_SIGN_IN_HEADER:-Remote-User}", "}", "}"},
		strings.Fields(proxy))
}

// The name of a tree by scripts/version, with and without tags.
func TestVersion(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../scripts/version")
	require.NoError(t, err)
	const released = "# Changelog\n\n## 0.2.9 - 2026-12-01\n\n## 0.1.0 - 2026-11-24\n"
	const unreleased = "# Changelog\n\n## Unreleased\n\n- x\n\n## 0.2.9 - 2026-12-01\n"
	for _, c := range []struct{ name, changelog, before, is string }{
		{"released", released, "", "0.2.9"},
		{"unreleased", unreleased, "", "0.2.10-dev+COMMIT"},
		{"a candidate", "## 0.3.0-rc.1 - 2027-01-01\n" + released, "", "0.3.0-rc.1"},
		{"tagged", released, "git tag v0.3.0", "0.3.0"},
		{"tagged with something else", released, "git tag works", "0.2.9"},
		{"changed since it was released", released, "echo >>CHANGELOG.md", "0.2.10-dev+COMMIT-dirty"},
		{"changed since it was tagged", unreleased, "git tag v0.3.0; echo >>CHANGELOG.md", "0.2.10-dev+COMMIT-dirty"},
		{"without Git", unreleased, "rm -rf .git", "0.2.10-dev"},
		{"released, without Git", released, "rm -rf .git", "0.2.9"},
		{"of no version", "## Unreleased\n", "", "CHANGELOG.md has no heading that is a version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(command string) (string, error) {
				shell := exec.CommandContext(t.Context(), "bash", "-euc", command)
				shell.Dir = dir
				shell.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
				printed, err := shell.CombinedOutput()
				return strings.TrimSpace(string(printed)), err
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(c.changelog), 0o600))
			made, err := run(`mkdir scripts; cp ` + script + ` scripts; git init -q; git add .
				git -c user.name=a -c user.email=a@b.example commit -qm one; git rev-parse --short=12 HEAD`)
			require.NoError(t, err, made)
			said, err := run(c.before)
			require.NoError(t, err, said)
			said, err = run("scripts/version")
			assert.Equal(t, strings.ReplaceAll(c.is, "COMMIT", made), said)
			assert.Equal(t, c.name != "of no version", err == nil)
		})
	}
}
