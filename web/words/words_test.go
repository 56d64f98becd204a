package words

import (
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

// The cases of CLDR for the languages that there are.
func TestPlurals(t *testing.T) {
	t.Parallel()
	for tag, cases := range map[string]map[string][]float64{
		"en": {"one": {1}, "other": {0, 2, 1.5, 21, 1_000_000}},
		"de": {"one": {1}, "other": {0, 2, 1.5, 21, 1_000_000}},
		"fr": {"one": {0, 1, 0.5, 1.5}, "many": {1_000_000, 21_000_000}, "other": {2, 2.5, 17, 1_000_001, 999_999}},
		"es": {"one": {1}, "many": {1_000_000, 2_000_000}, "other": {0, 2, 1.5, 1_000_001, 999_999}},
		"zh": {"other": {0, 1, 2, 1.5, 1_000_000}}, "ja": {"other": {0, 1, 2, 1.5}}, "ko": {"other": {0, 1, 2, 1.5}},
	} {
		for form, numbers := range cases {
			for _, n := range numbers {
				assert.Equal(t, form, plurals[tag](int64(n), n == float64(int64(n))), "%s: %v", tag, n)
			}
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	l := newLanguage("en", `
		[language]
		name = "English" 
		[numbers]
		group = ","
		point = "."
		[days]
		weekdays = "a"
		months = "b"
		short-months = "c"
		[t]
		one = "{a} of {b}, {c}{gone}"
		many.one = "{count} visit of {n}"
		many.other = "{count} visits of {n}"
		marked = "<*{a}*> `+"`a*{a}*_b_`"+` [x {a}](b) _{c}_"
	`)
	assert.Equal(t, "1,234 of <b>, 2.5", l.Say("t.one", "a", int64(1234), "b", "<b>", "c", 2.5))
	assert.Equal(t, "1 visit of 5", l.Say("t.many", "count", 1, "n", 5))
	assert.Equal(t, "1.5 visits of 5", l.Say("t.many", "count", 1.5, "n", 5))
	assert.EqualValues(t,
		`&lt;<strong>&lt;i&gt;</strong>&gt; <code>a*&lt;i&gt;*_b_</code> <a href="/&#34;&amp;">x &lt;i&gt;</a> <em><b>{a}</b></em>`,
		l.HTML("t.marked", "a", "<i>", "b", `/"&`, "c", template.HTML("<b>{a}</b>")), "what stands in a place is no text with places")
	assert.Panics(t, func() { l.Say("t.none") })
	for _, wrong := range []string{"[t]\na", "[t]\na = b", "[t]\na = \"b\"\na = \"c\"", "[t]\n\"a\" = \"b\""} {
		_, err := parse(wrong)
		assert.Error(t, err, wrong)
	}
}

// Each file has every text of English, with its places, and every form that its language needs.
func TestFilesAreComplete(t *testing.T) {
	t.Parallel()
	needed := map[string][]string{"en": {"one", "other"},
		"de": {"one", "other"}, "fr": {"one", "many", "other"}, "es": {"one", "many", "other"},
		"zh": {"other"}, "ja": {"other"}, "ko": {"other"}}
	places := regexp.MustCompile(`\{[\w-]+\}`)
	marks := regexp.MustCompile("`[^`]*`|\\]\\(\\w+\\)")
	found, err := filepath.Glob("*.toml")
	require.NoError(t, err)
	assert.Len(t, found, len(tags), "a file for each language")
	english := English().texts
	for _, l := range All() {
		base, _, _ := strings.Cut(l.Tag, "-")
		for key, text := range english {
			keys := []string{key}
			if name, form := key[:max(strings.LastIndex(key, "."), 0)], key[strings.LastIndex(key, ".")+1:]; form == "one" || form == "other" {
				keys = nil
				for _, form := range needed[base] {
					keys = append(keys, name+"."+form)
				}
			}
			for _, key := range keys {
				has, is := l.texts[key]
				if !assert.True(t, is, "%s: %s is missing", l.Tag, key) || strings.HasPrefix(key, "days.") || strings.HasSuffix(key, ".one") {
					continue
				}
				assert.Equal(t, distinct(places.FindAllString(text, -1)), distinct(places.FindAllString(has, -1)),
					"%s: places of %s", l.Tag, key)
				assert.ElementsMatch(t, marks.FindAllString(text, -1), marks.FindAllString(has, -1), "%s: marks of %s", l.Tag, key)
			}
		}
		for key := range l.texts {
			name := key[:strings.LastIndex(key, ".")]
			_, same := english[key]
			_, plural := english[name+".other"]
			assert.True(t, same || plural, "%s: %s is no text of English", l.Tag, key)
		}
		for i, n := range []int{7, 12, 12} {
			assert.Len(t, l.names[i], n, l.Tag)
		}
	}
}

func distinct(all []string) []string { return slices.Sorted(maps.Keys(setOf(all))) }

func setOf(all []string) map[string]bool {
	set := map[string]bool{}
	for _, one := range all {
		set[one] = true
	}
	return set
}

// Each text that a page names is there, and each that is there is named.
func TestTextsAreUsed(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, pattern := range []string{"../*.go", "*.go", "../templates/*.html", "../../intake/moves/history.go"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if !strings.HasSuffix(path, "_test.go") {
				source.Write(text)
			}
		}
	}
	code := source.String()
	made := regexp.MustCompile(`"([a-z]+\.(?:[a-z0-9-]+-)?)" ?\+`).FindAllStringSubmatch(code, -1) // of which the rest is a word
	for _, call := range regexp.MustCompile(`(?:\bt|\bth|[sS]ay|HTML)\(? ?"([a-z]+\.[a-z0-9-]+)"`).FindAllStringSubmatch(code, -1) {
		_, is := English().texts[call[1]]
		_, plural := English().texts[call[1]+".other"]
		assert.True(t, is || plural || strings.HasSuffix(call[1], "-"), "%s is no text", call[1])
	}
	for key := range English().texts {
		name := strings.TrimSuffix(strings.TrimSuffix(key, ".one"), ".other")
		used := strings.HasPrefix(key, elsewhere) || strings.Contains(code, `"`+name) ||
			slices.ContainsFunc(made, func(m []string) bool { return strings.HasPrefix(name, m[1]) }) ||
			slices.ContainsFunc([]string{"compared.", "parts.when", "hours.", "who.nobody"},
				func(s string) bool { return strings.HasPrefix(name, s) })
		assert.True(t, used, "%s is said nowhere", key)
	}
}

func TestDays(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string][]string{
		"en": {"1,234,567", "999", "1234", "Sun 1 November 2026", "29 October – 27 November 2026", "24 – 27 November 2026", "29 December 2025 – 3 January 2026", "2.5\u202f%"},
	} {
		l := Named(tag)
		require.NotNil(t, l, tag)
		got := []string{l.Number(1234567), l.Number(999), strings.ReplaceAll(l.Number(1234), l.group, ""), l.Day(20261101),
			l.Days(visit.Range{From: 20261029, To: 20261127}), l.Days(visit.Range{From: 20261124, To: 20261127}),
			l.Days(visit.Range{From: 20251229, To: 20260103}), l.Percent(2.5, 1)}
		assert.Equal(t, want, got, tag)
	}
}
