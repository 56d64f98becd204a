package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unplain maps words that comments, documents and texts never contain to plain alternatives. Footfall was once written in a dialect of
// its own, which every newcomer had to translate first. These words were frequent in it, and a common word is always at least as good.
// A word that is sometimes the right one, such as "what", does not belong here.
var unplain = map[string]string{
	"whoever":  "name the actor, such as the caller, the operator or everyone with the link",
	"anew":     "again, or a verb such as reopen, recreate, reread",
	"thereby":  "so, or a new sentence",
	"of whom":  "name the persons in a new sentence, or whose",
	"is told":  "is shown, is reported, receives; for told apart: is distinguished",
	"are told": "are shown, are reported, receive; for told apart: are distinguished",
}

// Released migrations do not change, and transcripts and generated code follow their sources.
var unread = regexp.MustCompile(`^\.\./(migrations/(released|000([01]\d|2[0-5])_.*)|docs/english_test\.go|.*\.gen\.go|.*/testdata/.*)$`)

// Comments, documents and texts are in plain English.
func TestEnglishIsPlain(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, ending := range []string{".go", ".sql", ".md", ".html", ".yml", ".yaml"} {
		for path, text := range read(t, ending) {
			texts[filepath.ToSlash(path)] = text
		}
	}
	for _, path := range []string{"../web/words/en.toml", "../cmd/footfall/help.txt", "../handler/openapi.json"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[path] = string(text)
	}
	texts["../CHANGELOG.md"], _, _ = strings.Cut(texts["../CHANGELOG.md"], "\n## 0.") // the parts of released versions stay
	var words []string
	for word := range unplain {
		words = append(words, strings.ReplaceAll(word, " ", `(?:\s|//|--|#)+`)) // possibly on two lines
	}
	pattern := regexp.MustCompile(`(?i)\b(?:` + strings.Join(words, "|") + `)\b`)
	for path, text := range texts {
		if unread.MatchString(path) {
			continue
		}
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			if at[0] > 0 && text[at[0]-1] == '`' { // the name of something
				continue
			}
			found := text[at[0]:at[1]]
			word := strings.Join(strings.FieldsFunc(strings.ToLower(found), func(r rune) bool { return r < 'a' || r > 'z' }), " ")
			line := 1 + strings.Count(text[:at[0]], "\n")
			assert.Fail(t, "not plain English", "%s:%d: %q. Instead: %s", strings.TrimPrefix(path, "../"), line, found, unplain[word])
		}
	}
}
