package visit

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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

// A target can be typed as it is shown, and is read as the same target.
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
				t.Errorf("%q is shown as %q, which has unprintable characters", stored, shown)
			}
		}
	})
}

// A part of a path can be typed as it is shown on a page, and finds the page.
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

// A page or site is found by each of its spellings, on the command line and over REST.
func TestParseTarget(t *testing.T) {
	t.Parallel()
	for typed, target := range map[string]string{
		"http://hhui.top/home":           "hhui.top/home",
		"HTTPS://HHUI.top:443/./home#up": "hhui.top/home",
		"http://hhui.top":                "hhui.top/",
		"hhui.top":                       "hhui.top",
		"HHUI.top":                       "hhui.top",
		"hhui.top/":                      "hhui.top/",
		"hhui.top/Hom%7e":                "hhui.top/Hom~",
		"localhost:3000/x":               "localhost:3000/x",
		"hhui.top:80/x":                  "hhui.top:80/x",
		"hhui.top:443/x":                 "hhui.top:443/x",
		"hhui.top/x?a=1&b=2":             "hhui.top/x?b=2",
		"(other)":                        "(other)",
		"(other)/(other)":                "(other)/(other)",
		"(events)":                       "(events)",
		"(events)/sign.up":               "(events)/sign.up",
		"(events)/(other)":               "(events)/(other)",
		"(events)/404/Hom~/%C3%A4":       "(events)/404/Hom~/%C3%A4",
		"hhui.top/(deleted)":             "hhui.top/(deleted)",
		"http://hhui.top/(deleted)":      "hhui.top/%28deleted%29",
		"hhui.top/(other)/x":             "hhui.top/(other)/x",
	} {
		read, err := ParseTarget(typed, []string{"b"})
		assert.NoError(t, err, typed)
		assert.Equal(t, target, read, typed)
	}
	for _, typed := range []string{"", " ", "ftp://hhui.top/", "me@hhui.top", "a b/(other)", "(events)/", "(events)/A", "(events)/a/b?q",
		"(events)/a/%7e", "http://(events)/a", "/home", "hhui.top\x00", "?q", "a..\x01"} {
		_, err := ParseTarget(typed, nil)
		assert.ErrorContains(t, err, "uri: ", "%q", typed)
	}
}

func TestParseSite(t *testing.T) {
	t.Parallel()
	for typed, site := range map[string]string{
		"hhui.top": "hhui.top", "HHUI.top:80": "hhui.top:80", "http://hhui.top:80": "hhui.top", "https://hhui.top/": "hhui.top",
		"localhost:3000": "localhost:3000", "[2001:DB8::1]": "[2001:db8::1]", "(other)": "(other)", "(events)": "(events)",
	} {
		read, err := ParseSite(typed)
		assert.NoError(t, err, typed)
		assert.Equal(t, site, read, typed)
	}
	for _, typed := range []string{"", "hhui.top/home", "http://hhui.top/home", "http://hhui.top/?q", "me@hhui.top", "a b",
		"http://(events)/"} {
		_, err := ParseSite(typed)
		assert.ErrorContains(t, err, "site: ", "%q", typed)
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for pair, overlaps := range map[[2]string]bool{
		{"a.example", "a.example"}: true, {"a.example", "b.example"}: false, {"a.example", "a.example:81"}: false,
		{"*.a.example", "a.example"}: false, {"*.a.example", "x.a.example"}: true, {"*.a.example", "x.y.a.example"}: true,
		{"*.a.example", "xa.example"}: false, {"*.a.example", "*.a.example"}: true, {"*.a.example", "*.b.a.example"}: true,
		{"*.a.example", "*.b.example"}: false, {"*.a.example:81", "x.a.example:81"}: true, {"*.a.example:81", "x.a.example"}: false,
		{"[2001:db8::1]", "[2001:db8::1]"}: true,
	} {
		assert.Equal(t, overlaps, Overlap(pair[0], pair[1]), pair)
		assert.Equal(t, overlaps, Overlap(pair[1], pair[0]), pair)
	}
}

func TestIsListable(t *testing.T) {
	t.Parallel()
	for _, site := range []string{"example.com", "localhost:3000", "my_host", "a-b.c--d.example", "xn--bcher-kva.example:8443", "127.0.0.1:80",
		"[2001:db8::1]:8080", "[::1]", "example.com.", "1.example"} {
		assert.True(t, IsListable(site), site)
	}
	for _, site := range []string{"'self'", "x.example;sandbox", "a,b.example", `"x"`, "a..b", ".a", "..", "(x)", "$x", "(other)", "(events)",
		"*", "a.*.b", "", "<x>", "a.example:", "a.example:x", "a/b", "a\x1b.example"} {
		assert.False(t, IsListable(site), site)
	}
}

// For more targets, the tests of Normalize also call CheckStored.
func TestCheckStored(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"(other)", "(events)", "(events)/signup", "(events)/404/a%20b", "a.example/(other)", "a.example/(deleted)",
		"a.example/(deleted) 17"} {
		assert.NoError(t, CheckStored(target), target)
	}
	for _, target := range []string{"", "A.example/", "a.example/\x1b[2J", "<xss>", "<xss>/", "http://a.example/", "a.example/a b",
		"a.example/ä",
		"a.example/%zz", "a.example/%61", "a.example/../b", "a.example/?a", "a.example/(deleted) x", "(events)/A", "/a",
		"a.example:080/"} {
		assert.Error(t, CheckStored(target), target)
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, told, kept string }{
		{"as it is", "Prices – 例え & <b>co</b>", "Prices – 例え & <b>co</b>"},
		{"none", "", ""},
		{"of nothing that is seen", " \t\u3000\x00\u202e\u200d\ufe0f\u3164\u2800", ""},
		{"one line", "\n\tPrices\r\n \u2028of\u00a0\u3000all  ", "Prices of all"},
		{"controls", "a\x00b\x1b[2Jc\u0085d\x7f", "ab[2Jc d"},
		{"marks of direction", "\u202eevil\u202c \u2066x\u2069\u200f\u061c", "evil x"},
		{"what cannot be seen", "\ufefff\u200bo\u00ado\U000e0041\ue000", "foo"},
		{"emoji that are joined, Persian", "👩\u200d👧 ❤\ufe0f می\u200cخواهم", "👩\u200d👧 ❤\ufe0f می\u200cخواهم"},
		{"not UTF-8", "caf\xe9", ""},
		{"half a surrogate", "a\xed\xa0\x80", ""},
		{"long", strings.Repeat("a", 250), strings.Repeat("a", 200)},
		{"long, up to a character", strings.Repeat("a", 199) + "é", strings.Repeat("a", 199)},
		{"long, up to a word", strings.Repeat("a", 199) + " b", strings.Repeat("a", 199)},
		{"a megabyte", strings.Repeat("例え ", 100_000), strings.TrimSuffix(strings.Repeat("例え ", 28), " ") + " 例"},
	} {
		assert.Equal(t, c.kept, Title(c.told), c.rule)
		assert.Equal(t, c.kept, Title(c.kept), c.rule)
	}
}

func FuzzTitle(f *testing.F) {
	f.Add("a \u202e\x00é")
	f.Fuzz(func(t *testing.T, told string) {
		kept := Title(told)
		assert.True(t, utf8.ValidString(kept) && len(kept) <= mostTitle && kept == Title(kept) && kept == strings.TrimSpace(kept), "%q", kept)
	})
}
