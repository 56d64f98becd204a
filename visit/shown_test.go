package visit

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
)

func TestShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, target, shown string }{
		{"ASCII stays", "blog.example:8080/a/b?c=1#/d", "blog.example:8080/a/b?c=1#/d"},
		{"a site", "xn--r8jz45g.jp", "例え.jp"},
		{"Japanese", "xn--r8jz45g.jp/%E6%97%A5%E6%9C%AC%E8%AA%9E/%E3%83%9A%E3%83%BC%E3%82%B8", "例え.jp/日本語/ページ"},
		{"Chinese, and a port", "xn--fiqs8s.xn--fiqz9s:8080/%E5%85%B3%E4%BA%8E", "中国.中國:8080/关于"},
		{"Korean", "xn--bj0bj06e.kr/%ED%95%9C%EA%B5%AD", "한글.kr/한국"},
		{"Russian", "xn--d1abbgf6aiiy.xn--p1ai/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8", "президент.рф/новости"},
		{"Russian below an ASCII domain", "www.xn--d1acpjx3f.com/", "www.яндекс.com/"},
		{"Arabic", "xn--mgbh0fb.xn--kgbechtv/", "مثال.إختبار/"},
		{"German", "xn--mnchen-3ya.example/gr%C3%BC%C3%9Fe", "münchen.example/grüße"},
		{"a query that is kept, and a route", "a/?q=%E6%97%A5#/%E6%9C%AC", "a/?q=日#/本"},
		{"marks over letters", "a/cafe%CC%81", "a/cafe\u0301"},
		{"emoji", "a/%F0%9F%91%A9", "a/👩"},

		{"ASCII that is escaped stays so", "a/b%2Fc%20d%25E6%97", "a/b%2Fc%20d%25E6%97"},
		{"bytes that are not UTF-8", "a/%FF%E6%97%C0%AF%ED%A0%80", "a/%FF%E6%97%C0%AF%ED%A0%80"},
		{"text beside them", "a/%FF%E6%97%A5%E6", "a/%FF日%E6"},
		{"marks of direction", "a/%E2%80%AEb%E2%81%A6%E2%80%8F", "a/%E2%80%AEb%E2%81%A6%E2%80%8F"},
		{"controls", "a/%C2%85%E2%80%A8", "a/%C2%85%E2%80%A8"},
		{"what cannot be seen", "a/%E2%80%8B%EF%BB%BF%C2%A0%E3%80%80%EF%B8%8F%E3%85%A4%C2%AD%E2%A0%80",
			"a/%E2%80%8B%EF%BB%BF%C2%A0%E3%80%80%EF%B8%8F%E3%85%A4%C2%AD%E2%A0%80"},
		{"marks over a slash, or over nothing", "a/%CC%B8b.%CC%B8", "a/%CC%B8b.%CC%B8"},

		{"several scripts in a label", "xn--l-7sba6dbr.com/", "xn--l-7sba6dbr.com/"},
		{"Cyrillic that looks like ASCII", "xn--80ak6aa92e.com/", "xn--80ak6aa92e.com/"},
		{"Greek that looks like ASCII", "xn--yxadb.com/", "xn--yxadb.com/"},
		{"Katakana that looks like a slash, among ASCII", "xn--comlogin-634g.example/", "xn--comlogin-634g.example/"},
		{"an i without its dot", "xn--bng-jua.com/", "xn--bng-jua.com/"},
		{"a script whose likenesses are not listed, below an ASCII domain", "xn--12c1fe0br.com/", "xn--12c1fe0br.com/"},
		{"digits of other scripts", "xn--47b.xn--p1ai/", "xn--47b.xn--p1ai/"},
		{"symbols", "xn--n3h.net/", "xn--n3h.net/"},
		{"one label that may be mistaken keeps the host as it is", "xn--r8jz45g.xn--80ak6aa92e.com/", "xn--r8jz45g.xn--80ak6aa92e.com/"},
		{"Punycode that is none", "xn--a.example/xn--r8jz45g", "xn--a.example/xn--r8jz45g"},
		{"what is no target", "\x1b%E6%97%A5", "\x1b%E6%97%A5"},
	} {
		assert.Equal(t, c.shown, Shown(c.target), c.rule)
	}
}

// What is shown can be typed: it is the same target.
func FuzzShown(f *testing.F) {
	for _, uri := range []string{
		"https://例え.jp/日本語/%e3%83%9a", "http://президент.рф:443/a%2Fb?q=%E6%97", "http://h/(other)", "(events)/sign.up",
		"https://h:80/%CC%81%FF%E2%80%AE",
		"http://раураl.com/%25E6%97%A5", "http://münchen.de/e%CC%81#!/ß", "http://xn--fiqs8s.中國./", "http://[::1]:3000/日",
		"http://h/https://other.example/日",
	} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		target, err := Normalize(uri, []string{"q"})
		if err != nil {
			return
		}
		for _, stored := range []string{target.Page, target.Site} {
			shown := Shown(stored)
			if again, err := ParseTarget(shown, []string{"q"}); again != stored {
				t.Errorf("%q is shown as %q, which is read as %q, %v", stored, shown, again, err)
			}
			if strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is shown as %q, which has what cannot be printed", stored, shown)
			}
		}
	})
}

// What people read on a page finds it.
func TestPartsAreStoredAsTargetsAre(t *testing.T) {
	t.Parallel()
	for typed, stored := range map[string]string{"blog": "blog", "/日本": "/%E6%97%A5%E6%9C%AC", "Ä b": "%C3%84%20b", "a%2Fb": "a%2Fb",
		"?": "?"} {
		assert.Equal(t, stored, StoredPart(typed))
	}
	for typed, stored := range map[string]string{"page:/日本|/b c/*": "page:/%E6%97%A5%E6%9C%AC|/b%20c/*", "!event:a/Ä": "!event:a/%C3%84",
		"page:/%E6%97%A5": "page:/%E6%97%A5", "source:Ä b": "source:Ä b", "tag.page:Ä": "tag.page:Ä", "new": "new", "page": "page", "": ""} {
		assert.Equal(t, stored, StoredCondition(typed))
		assert.Equal(t, stored, StoredCondition(stored))
	}
}
