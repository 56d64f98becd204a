package words

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

// The CLDR plural categories of all languages of the pages.
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

// The file of each language has every text of English, with the same placeholders, and every plural form that the language
// needs.
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

// Each language uses its own punctuation marks and spacing.
func TestSigns(t *testing.T) {
	t.Parallel()
	wrong := map[string]*regexp.Regexp{
		"zh-CN": regexp.MustCompile(`\p{Han} ?[,;?!]|\p{Han}\(|\.\.\.`),
		"ja":    regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Katakana}](?: ?[,;?!]|\()|\d [年月日人回件]|〜`),
		"ko":    regexp.MustCompile(`[，。：；？！（）]`),
		"de":    regexp.MustCompile(`"|“[^,.;:?! )]|\d\.\d{3} \d|…\w`),
		"fr":    regexp.MustCompile(` [:;?!»]|« |[\p{L}\d)}][;?!]|[\p{L})}]: |\x{a0}[;?!]|"|\d \d{3}`),
		"es":    regexp.MustCompile(`"|“|^[^¿]*\?(?:$| )|\d \d{3}`),
	}
	typed := regexp.MustCompile("`[^`]*`|\\[?'.*'\\]?|<[^>]*>|[!?]\\w+[:=]|日\\(|\\b(?:Authorization|DNT|Sec-GPC): |" +
		`\b(?:open|sites|key|off|answers|read|count|default|hashed|browser|address|id|daily|none|on|skip): `)
	for _, l := range All()[1:] {
		for key, text := range l.texts {
			found := wrong[l.Tag].FindString(typed.ReplaceAllString(text, ""))
			assert.Empty(t, found, "%s: %s: %s", l.Tag, key, text)
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

// Each text that a page names exists, and each text that exists is named.
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

// Numbers, percentages, days with their weekday, ranges, and the labels below bars.
func TestDays(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"en": "1,234,567 1,234 999 -12,345 2.5% 12% | Sun 1 November 2026 | 1 May 2026 | 2 Mar | 2 Mar 2026 | March 2026 | Mar 26 | " +
			"29 October – 27 November 2026 | 24–27 November 2026 | 29 December 2025 – 3 January 2026 | 2 March 2026, 15:04",
		"zh-CN": "1,234,567 1,234 999 -12,345 2.5% 12% | 2026年11月1日 周日 | 2026年5月1日 | 3/2 | 2026/3/2 | 2026年3月 | 2026/3 | " +
			"2026年10月29日至11月27日 | 2026年11月24日至27日 | 2025年12月29日至2026年1月3日 | 2026年3月2日 15:04",
		"ja": "1,234,567 1,234 999 -12,345 2.5% 12% | 2026年11月1日(日) | 2026年5月1日 | 3/2 | 2026/3/2 | 2026年3月 | 2026/3 | " +
			"2026年10月29日～11月27日 | 2026年11月24日～27日 | 2025年12月29日～2026年1月3日 | 2026年3月2日 15:04",
		"ko": "1,234,567 1,234 999 -12,345 2.5% 12% | 2026년 11월 1일 (일) | 2026년 5월 1일 | 3. 2. | 2026. 3. 2. | 2026년 3월 | 2026. 3. | " +
			"2026년 10월 29일~11월 27일 | 2026년 11월 24일~27일 | 2025년 12월 29일~2026년 1월 3일 | 2026년 3월 2일 15:04",
		"de": "1.234.567 1.234 999 -12.345 2,5\u00a0% 12\u00a0% | So., 1. November 2026 | 1. Mai 2026 | 2. März | 2. März 2026 | März 2026 | " +
			"März 26 | 29. Oktober – 27. November 2026 | 24.–27. November 2026 | 29. Dezember 2025 – 3. Januar 2026 | 2. März 2026, 15:04",
		"fr": "1\u202f234\u202f567 1\u202f234 999 -12\u202f345 2,5\u202f% 12\u202f% | dim. 1er novembre 2026 | 1er mai 2026 | 2 mars | " +
			"2 mars 2026 | mars 2026 | mars 26 | 29 octobre – 27 novembre 2026 | 24–27 novembre 2026 | " +
			"29 décembre 2025 – 3 janvier 2026 | 2 mars 2026 à 15:04",
		"es": "1.234.567 1234 999 -12.345 2,5\u00a0% 12\u00a0% | dom, 1 de noviembre de 2026 | 1 de mayo de 2026 | 2 mar | 2 mar 2026 | " +
			"marzo de 2026 | mar 26 | 29 de octubre – 27 de noviembre de 2026 | 24–27 de noviembre de 2026 | " +
			"29 de diciembre de 2025 – 3 de enero de 2026 | 2 de marzo de 2026, 15:04",
	} {
		l, march := FindLanguage(tag), int32(20260302)
		require.NotNil(t, l, tag)
		assert.Equal(t, want, strings.Join([]string{
			strings.Join([]string{l.Number(1234567), l.Number(1234), l.Number(999), l.Number(-12345), l.Percent(2.5, 1), l.Percent(12, 0)}, " "),
			l.Day(20261101), l.LongDay(20260501), l.ShortDay(march), l.Dated(march), l.Month(march), l.ShortMonth(march),
			l.Days(visit.Range{From: 20261029, To: 20261127}), l.Days(visit.Range{From: 20261124, To: 20261127}),
			l.Days(visit.Range{From: 20251229, To: 20260103}), l.Say("days.moment", "day", l.LongDay(march), "time", "15:04"),
		}, " | "), tag)
	}
}

// Texts take the plural form for their number, even if the number is written with separators.
func TestForms(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"en": "0 visitors, 1 visitor, 1.5 visitors, 2 visitors, 1,000,000 visitors", "zh-CN": "0 位访客, 1 位访客, 1.5 位访客, 2 位访客, 1,000,000 位访客",
		"ja": "訪問者 0人, 訪問者 1人, 訪問者 1.5人, 訪問者 2人, 訪問者 1,000,000人", "ko": "방문자 0명, 방문자 1명, 방문자 1.5명, 방문자 2명, 방문자 1,000,000명",
		"de": "0 Besucher, 1 Besucher, 1,5 Besucher, 2 Besucher, 1.000.000 Besucher",
		"fr": "0 visiteur, 1 visiteur, 1,5 visiteur, 2 visiteurs, 1\u202f000\u202f000 de visiteurs",
		"es": "0 visitantes, 1 visitante, 1,5 visitantes, 2 visitantes, 1.000.000 de visitantes",
	} {
		var said []string
		for _, n := range []any{int64(0), 1, 1.5, Bold(2), int64(1_000_000)} {
			said = append(said, FindLanguage(tag).Say("counts.visitors", "count", n))
		}
		assert.Equal(t, want, strings.Join(said, ", "), tag)
	}
}

// Each English text in the section elsewhere is word for word in the source of another package. Each error that pages show has
// a text.
func TestTextsOfElsewhere(t *testing.T) {
	t.Parallel()
	made := map[string]bool{}
	add := func(text string) {
		name := strings.NewReplacer("-", " ", "_", " ").Replace(text) // of a field, whose label it becomes
		made[convertFormat(text, nil)], made[text], made[strings.ToUpper(name[:min(1, len(name))])+name[min(1, len(name)):]] = true, true, true
	}
	for status := range 600 {
		add(http.StatusText(status))
	}
	for _, one := range []string{"host", "key", "link", "note", "webhook"} {
		add("Add a " + one)
	}
	shown := regexp.MustCompile(`/(account/(account|links|name|password)|web/\w+|counter/app/settings)\.go$`)
	inShell := regexp.MustCompile(`is not a name for an app|^%s visitors are hashed|hosts: at most %d are possible|is not a host: write one`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".sql") {
			text, err := os.ReadFile(path)
			for _, found := range regexp.MustCompile(`filter_fault\('((?:[^']|'')+)'`).FindAllStringSubmatch(string(text), -1) {
				add(strings.ReplaceAll(found[1], "''", "'"))
			}
			return err
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		ast.Inspect(file, func(n ast.Node) bool {
			if text, is := constant(n); is {
				add(text)
				return false
			}
			if call, is := n.(*ast.CallExpr); is && shown.MatchString(path) {
				of, _ := call.Fun.(*ast.SelectorExpr)
				if of == nil || of.Sel.Name != "add" && (of.Sel.Name != "Errorf" || fmt.Sprint(of.X) != "visit") {
					return true
				}
				for _, argument := range call.Args {
					if text, _ := constant(argument); strings.Contains(text, " ") && !inShell.MatchString(text) {
						assert.Contains(t, keys(), convertFormat(text, nil), "%s: it has no text", path)
					}
				}
			}
			return true
		})
		return err
	}))
	for key, text := range English().texts {
		if strings.HasPrefix(key, elsewhere) && !strings.HasPrefix(key, elsewhere+"help-") { // help texts are changed
			assert.True(t, made[text], "%s is made nowhere any more: %s", key, text)
		}
	}
}

// constant returns the value of a text in quotes, or of a sum of such texts. is reports whether n is one.
func constant(n ast.Node) (text string, is bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		return text, n.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, is := constant(n.X)
		right, too := constant(n.Y)
		return left + right, n.Op == token.ADD && is && too
	}
	return "", false
}
