package visit

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// The tables are the specification: one line per rule. If a row has no site the URI is refused, and page is a part of
// the error.

func TestNormalize(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", targetMaxBytes-len("h/"))
	tests := []struct{ rule, uri, site, page string }{
		{"a plain page", "http://hhui.top/home", "hhui.top", "hhui.top/home"},
		{"the scheme is not part of it", "https://hhui.top/home", "hhui.top", "hhui.top/home"},
		{"the scheme's case does not matter", "HTTPS://hhui.top/home", "hhui.top", "hhui.top/home"},
		{"an empty path is the home page", "http://hhui.top", "hhui.top", "hhui.top/"},
		{"the home page", "http://hhui.top/", "hhui.top", "hhui.top/"},
		{"an empty path before a query", "http://hhui.top?a=1", "hhui.top", "hhui.top/"},
		{"an empty path before a fragment", "http://hhui.top#top", "hhui.top", "hhui.top/"},
		{"a slash at the end is another page", "http://h/a/", "h", "h/a/"},
		{"paths have upper and lower case", "http://h/Ab", "h", "h/Ab"},
		{"spaces around are ignored", "  http://h/a  ", "h", "h/a"},

		{"nothing", "", "", "missing"},
		{"only spaces", "   ", "", "missing"},
		{"no scheme", "hhui.top/home", "", "http://"},
		{"a scheme of nothing", "//hhui.top/home", "", "http://"},
		{"a path", "/home", "", "http://"},
		{"javascript", "javascript:alert(1)", "", "http://"},
		{"another scheme", "ftp://h/a", "", "http://"},
		{"another scheme that looks alike", "httpx://h/a", "", "http://"},
		{"data", "data:text/html,hello", "", "http://"},
		{"no slashes", "http:h/a", "", "http://"},
		{"one slash", "http:/h/a", "", "http://"},
		{"three slashes", "http:///h/a", "", "no host"},
		{"a backslash for the third slash", `http://\h/a`, "", "no host"},
		{"backslashes for slashes before the host", `http:\\h\a`, "", "http://"},
		{"only a scheme", "http://", "", "http://"},
		{"no host before a query", "http://?a", "", "no host"},
		{"no host before a fragment", "http://#a", "", "no host"},
		{"no host before a port", "http://:80/", "", "no host"},
		{"no host after user-info", "http://user@/", "", "no host"},

		{"user-info is dropped", "http://user:pass@h/a", "h", "h/a"},
		{"user-info may contain @", "http://a@b@h/a", "h", "h/a"},
		{"user-info may look like host and port", "http://other:80@h/a", "h", "h/a"},
		{"user-info may be empty", "http://@h/a", "h", "h/a"},
		{"an @ in the path does not end user-info", "http://h/a@b", "h", "h/a@b"},
		{"a backslash ends the host", `http://h\@other/`, "h", "h/@other/"},

		{"http's port is dropped", "http://h:80/", "h", "h/"},
		{"https's port is dropped", "https://h:443/", "h", "h/"},
		{"https's port is kept with http", "http://h:443/", "h:443", "h:443/"},
		{"http's port is kept with https", "https://h:80/", "h:80", "h:80/"},
		{"another port is kept", "http://h:8080/a", "h:8080", "h:8080/a"},
		{"an empty port is none", "http://h:/a", "h", "h/a"},
		{"leading zeros of a port", "http://h:008080/", "h:8080", "h:8080/"},
		{"many leading zeros of a default port", "http://h:00000000000000000000080/", "h", "h/"},
		{"port 0", "http://h:000/", "h:0", "h:0/"},
		{"the highest port", "http://h:65535/", "h:65535", "h:65535/"},
		{"a port too high", "http://h:65536/", "", "65535"},
		{"a port far too high", "http://h:99999999999999999999/", "", "65535"},
		{"a port of letters", "http://h:http/", "", "port"},
		{"a negative port", "http://h:-1/", "", "port"},
		{"two ports", "http://h:80:80/", "", "port"},

		{"dot segments", "http://h/a/./b/../c", "h", "h/a/c"},
		{"a dot at the end", "http://h/a/.", "h", "h/a/"},
		{"two dots at the end", "http://h/a/b/..", "h", "h/a/"},
		{"above the root", "http://h/../../a", "h", "h/a"},
		{"above the root at the end", "http://h/..", "h", "h/"},
		{"encoded dots", "http://h/a/%2e/%2E%2e/.%2e/b", "h", "h/b"},
		{"three dots are a name", "http://h/.../a", "h", "h/.../a"},
		{"dots in names", "http://h/.a/b./..c", "h", "h/.a/b./..c"},
		{"empty segments stay", "http://h//a///b//", "h", "h//a///b//"},
		{"two dots take one empty segment", "http://h/a//../b", "h", "h/a/b"},
		{"backslashes are slashes", `http://h\a\..\b`, "h", "h/b"},
		{"a dot segment before a query", "http://h/a/..?q", "h", "h/"},

		{"escapes of unreserved characters are decoded", "http://h/%41%7a%30%2D%5f%7E", "h", "h/Az0-_~"},
		{"other escapes are written in upper case", "http://h/%e9%a6%96%2b", "h", "h/%E9%A6%96%2B"},
		{"an encoded slash is not a slash", "http://h/a%2fb", "h", "h/a%2Fb"},
		{"an encoded slash parts no dots", "http://h/a%2f..%2fb", "h", "h/a%2F..%2Fb"},
		{"an encoded backslash is not a slash", "http://h/a%5cb", "h", "h/a%5Cb"},
		{"an encoded question mark begins no query", "http://h/a%3fb", "h", "h/a%3Fb"},
		{"an encoded hash begins no fragment", "http://h/a%23/b", "h", "h/a%23/b"},
		{"non-ASCII characters are encoded", "http://h/首页", "h", "h/%E9%A6%96%E9%A1%B5"},
		{"what a path escapes", "http://h/a b\"<>^`{}", "h", "h/a%20b%22%3C%3E%5E%60%7B%7D"},
		{"what a path leaves", "http://h/!$&'()*+,;=:@|[]", "h", "h/!$&'()*+,;=:@|[]"},
		{"a percent sign alone", "http://h/100%", "h", "h/100%25"},
		{"a percent sign before no digits", "http://h/%zz%4", "h", "h/%25zz%254"},
		{"what is decoded forms no escape", "http://h/%%34%31", "h", "h/%2541"},
		{"escapes are decoded once", "http://h/%2541%252e%2500", "h", "h/%2541%252e%2500"},

		{"NUL", "http://h/a\x00", "", "control"},
		{"encoded NUL", "http://h/a%00", "", "NUL"},
		{"encoded NUL in a dropped query", "http://h/a?b=%00", "", "NUL"},
		{"encoded NUL in a dropped fragment", "http://h/a#%00", "", "NUL"},
		{"a tab", "http://h/a\tb", "", "control"},
		{"a line break in the scheme", "ht\ntp://h/a", "", "control"},
		{"a line break at the end", "http://h/a\n", "", "control"},
		{"DEL", "http://h/a\x7f", "", "control"},
		{"a C1 control character", "http://h/a\u0085", "", "control"},
		{"an encoded line break is not a control character", "http://h/a%0ab", "h", "h/a%0Ab"},
		{"invalid UTF-8", "http://h/\xff", "", "UTF-8"},
		{"encoded invalid UTF-8", "http://h/%ff", "", "UTF-8"},
		{"encoded invalid UTF-8 in a dropped query", "http://h/?q=%c4%e3", "", "UTF-8"},
		{"a character cut short", "http://h/%e9%a6", "", "UTF-8"},
		{"half a character escaped", "http://h/\xe9%a6%96", "", "UTF-8"},
		{"an overlong encoding", "http://h/%c0%af", "", "UTF-8"},
		{"an overlong NUL", "http://h/%c0%80", "", "UTF-8"},
		{"a surrogate", "http://h/%ed%a0%80", "", "UTF-8"},
		{"beyond Unicode", "http://h/%f4%90%80%80", "", "UTF-8"},

		{"the fragment is dropped", "http://h/a#top", "h", "h/a"},
		{"a route is kept", "http://h/a#/users/1", "h", "h/a#/users/1"},
		{"a hashbang is kept", "http://h/#!users/1", "h", "h/#!users/1"},
		{"a route is canonical", "http://h/#/%7e%2f é<a`", "h", "h/#/~%2F%20%C3%A9%3Ca%60"},
		{"dots, queries and hashes in a route stay", "http://h/#/a/../b?c=1#d", "h", "h/#/a/../b?c=1#d"},
		{"an encoded slash begins no route", "http://h/#%2Fusers", "h", "h/"},
		{"an empty fragment", "http://h/#", "h", "h/"},

		{"2,048 bytes", "http://h/" + long, "h", "h/" + long},
		{"2,049 bytes", "http://h/" + long + "x", "", "2,048"},
		{"2,048 bytes once canonical", "http://u@h:80/a/../" + long + "?" + long, "h", "h/" + long},
		{"2,048 bytes with escapes", "http://h/" + long[6:] + "é", "h", "h/" + long[6:] + "%C3%A9"},
		{"2,049 bytes with escapes", "http://h/" + long[5:] + "é", "", "2,048"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			checkNormalize(t, test.uri, nil, test.site, test.page)
		})
	}
}

func TestNormalizeHost(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 600)
	tests := []struct{ rule, host, canonical string }{
		{"upper case", "ExAmple.COM", "example.com"},
		{"a dot at the end is another host", "example.com.", "example.com."},
		{"escapes are decoded", "ex%61mple%2Ecom", "example.com"},
		{"escapes are decoded once", "ex%2561mple.com", ""},
		{"underscores and hyphens", "a_b.-c-.d--e", "a_b.-c-.d--e"},
		{"lengths are not checked", label + "." + label, label + "." + label},
		{"a space", "a b", ""},
		{"an encoded space", "a%20b", ""},
		{"an encoded slash", "a%2fb", ""},
		{"an encoded at", "a%40b", ""},
		{"an encoded colon", "a%3ab", ""},
		{"an encoded line break", "a%0ab", ""},
		{"a percent sign", "a%", ""},
		{"a caret", "a^b", ""},
		{"a bar", "a|b", ""},
		{"angles", "<a>", ""},
		{"a bracket", "a[b", ""},

		{"IDN", "bücher.example", "xn--bcher-kva.example"},
		{"IDN in upper case", "BÜCHER.example", "xn--bcher-kva.example"},
		{"IDN encoded", "b%C3%BCcher.example", "xn--bcher-kva.example"},
		{"IDN decomposed", "bu\u0308cher.example", "xn--bcher-kva.example"},
		{"IDN in Punycode", "xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"IDN in upper-case Punycode", "XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"IDN in Chinese", "首页.中国", "xn--q05a5v.xn--fiqs8s"},
		{"sharp s is itself", "faß.de", "xn--fa-hia.de"},
		{"mixed scripts", "раypal.com", "xn--ypal-43d9g.com"},
		{"emoji", "☕.example", "xn--53h.example"},
		{"soft hyphens vanish", "a\u00adb.example", "ab.example"},
		{"only a soft hyphen", "\u00ad", ""},
		{"full-width letters and dots", "ｅｘ．ｃｏｍ", "ex.com"},
		{"ideographic dots", "a。b｡c", "a.b.c"},
		{"full-width Punycode", "ｘｎ－－ｂｃｈｅｒ－ｋｖａ.example", "xn--bcher-kva.example"},
		{"a full-width escape", "ａ％４１", ""},
		{"a character that maps to a slash", "℀.com", ""},
		{"a disallowed character", "a\u2488.com", ""},
		{"a joiner out of place", "a\u200db.example", ""},
		{"right-to-left", "مثال.example", "xn--mgbh0fb.example"},
		{"right-to-left mixed up", "\u0661a.example", ""},
		{"broken Punycode", "xn--a.example", ""},
		{"Punycode of ASCII", "xn--example-.com", ""},
		{"Punycode of nothing", "example.com.xn--", ""},
		{"Punycode of nothing beside IDN", "bücher.xn--", ""},
		{"Punycode of nothing, full-width", "bücher.ｘｎ－－", ""},
		{"Punycode of Punycode", "xn--xn---epa", ""},
		{"Punycode with a non-ASCII character", "xn--が-.example", ""},
		{"Punycode with a non-ASCII character, full-width", "ｘｎ－\u00ad－が－.example", ""},
		{"Punycode after an ellipsis", "a…xn--が-", ""},
		{"IDN beside Punycode", "bücher.xn--bcher-kva", "xn--bcher-kva.xn--bcher-kva"},
		{"512 characters with Punycode", "xn--bcher-kva." + label[:498], "xn--bcher-kva." + label[:498]},
		{"513 characters with Punycode", "xn--bcher-kva." + label[:499], ""},
		{"513 characters once converted", "bücher." + label[:499], ""},
		{"underscores and hyphens beside IDN", "a_b.-x-.ab--c.ß", "a_b.-x-.ab--c.xn--zca"},
		{"513 characters to convert", strings.Repeat("\u00ad", maxConvertedDomain) + "a", ""},

		{"IPv4", "192.168.0.1", "192.168.0.1"},
		{"IPv4 with a dot at the end", "192.168.0.1.", "192.168.0.1"},
		{"IPv4 as one number", "3232235521", "192.168.0.1"},
		{"IPv4 as two numbers", "192.11010049", "192.168.0.1"},
		{"IPv4 as three numbers", "192.168.257", "192.168.1.1"},
		{"IPv4 in octal", "0300.0250.0.01", "192.168.0.1"},
		{"IPv4 in hexadecimal", "0xC0.0XA8.0x.0x1", "192.168.0.1"},
		{"IPv4 encoded", "%31%32%37.1", "127.0.0.1"},
		{"IPv4 in full-width digits", "１２７．１", "127.0.0.1"},
		{"IPv4 of five numbers", "1.2.3.4.5", ""},
		{"IPv4 of five numbers, the last one nothing", "1.2.3.4.0", ""},
		{"IPv4 with a part too great", "1.2.256.4", ""},
		{"IPv4 with a last part too great", "1.2.3.256", ""},
		{"IPv4 beyond 64 bits", "0xfffffffffffffffff", ""},
		{"IPv4 with an empty part", "1..2", ""},
		{"IPv4 with a bad octal", "1.2.3.08", ""},
		{"a host that ends in a number", "example.1", ""},
		{"a host that ends in a hexadecimal number", "example.0xaf", ""},
		{"a host that only seems to", "example.0xag", "example.0xag"},
		{"signs are no numbers", "1.-2", "1.-2"},
		{"a host that begins with a number", "1.example", "1.example"},

		{"IPv6", "[2001:db8::1]", "[2001:db8::1]"},
		{"IPv6 is compressed", "[2001:0DB8:0:0:0:0:0:1]", "[2001:db8::1]"},
		{"IPv6 compresses the longest stretch", "[1:0:0:2:0:0:0:3]", "[1:0:0:2::3]"},
		{"IPv6 compresses no single zero", "[1:2:3:4:5:6:7::]", "[1:2:3:4:5:6:7:0]"},
		{"IPv6 with IPv4 in it", "[::1.2.3.4]", "[::102:304]"},
		{"IPv4-mapped IPv6 is another host", "[::ffff:1.2.3.4]", "[::ffff:102:304]"},
		{"IPv4-mapped zeros", "[::ffff:0:0]", "[::ffff:0:0]"},
		{"IPv6 with a zone", "[fe80::1%25eth0]", ""},
		{"IPv6 with a raw zone", "[fe80::1%eth0]", ""},
		{"IPv6 of seven pieces", "[1:2:3:4:5:6:7]", ""},
		{"IPv6 without an end", "[::1", ""},
		{"IPv6 with a tail", "[::1]a", ""},
		{"IPv6 in two brackets", "[[::1]]", ""},
		{"IPv4 in brackets", "[1.2.3.4]", ""},
		{"nothing in brackets", "[]", ""},
		{"IPv6 without brackets", "2001:db8::1", ""},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			page, pagePort := test.canonical+"/a", test.canonical+":8080/a"
			if test.canonical == "" {
				page, pagePort = "host", "host"
			}
			if test.rule == "IPv6 without brackets" {
				page, pagePort = "port", "port"
			}
			checkNormalize(t, "http://"+test.host+"/a", nil, test.canonical, page)
			if test.canonical != "" {
				checkNormalize(t, "https://me@"+test.host+":8080/a", nil, test.canonical+":8080", pagePort)
			}
		})
	}
}

func TestNormalizeQuery(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, query string
		keep        []string
		kept        string
	}{
		{"dropped", "?id=1", nil, ""},
		{"empty", "?", []string{"id"}, ""},
		{"kept", "?id=1", []string{"id"}, "?id=1"},
		{"others are dropped", "?utm=x&id=1&b=2", []string{"id"}, "?id=1"},
		{"in the app's order", "?b=2&a=1", []string{"a", "b"}, "?a=1&b=2"},
		{"absent ones are left out", "?b=2", []string{"a", "b", "c"}, "?b=2"},
		{"none of them there", "?c=2", []string{"a", "b"}, ""},
		{"names have upper and lower case", "?ID=1", []string{"id"}, ""},
		{"a part of a name is another name", "?idx=1&i=2", []string{"id"}, ""},
		{"all values, in their order", "?a=2&b=x&a=1&a=2", []string{"a"}, "?a=2&a=1&a=2"},
		{"an empty value", "?a=", []string{"a"}, "?a="},
		{"no value is an empty one", "?a", []string{"a"}, "?a="},
		{"empty parameters", "?&&a=1&", []string{"a", ""}, "?a=1"},
		{"a value with an equals sign", "?a=b=c", []string{"a"}, "?a=b=c"},
		{"a value with a question mark and slashes", `?a=?/\`, []string{"a"}, `?a=?/\`},
		{"values are canonical", "?a=%7e%2f %e9%a6%96é'\"%", []string{"a"}, "?a=~%2F%20%E9%A6%96%C3%A9%27%22%25"},
		{"dots in values are no segments", "?a=/../b", []string{"a"}, "?a=/../b"},
		{"encoded separators part nothing", "?a=1%26b%3D2&b=3", []string{"a", "b"}, "?a=1%26b%3D2&b=3"},
		{"encoded names", "?%61=1", []string{"a"}, "?a=1"},
		{"names are written as the app does", "?ids%5B%5D=1&ids[]=2", []string{"ids[]"}, "?ids[]=1&ids[]=2"},
		{"odd names are escaped", "?a%26%3D%25=1&名=2", []string{"名", "a&=%"}, "?%E5%90%8D=2&a%26%3D%25=1"},
		{"a plus is a plus", "?a+b=c+d", []string{"a b", "a+b"}, "?a+b=c+d"},
		{"a name listed twice counts once", "?a=1", []string{"a", "a"}, "?a=1"},
		{"before a route", "?a=1#/r", []string{"a"}, "?a=1#/r"},
		{"a question mark in a route begins no query", "#/r?a=1", []string{"a"}, "#/r?a=1"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			checkNormalize(t, "http://h/p"+test.query, test.keep, "h", "h/p"+test.kept)
		})
	}
}

func TestNormalizeCountsTheKeptQuery(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("x", targetMaxBytes-len("h/?a="))
	checkNormalize(t, "http://h/?a="+value, []string{"a"}, "h", "h/?a="+value)
	checkNormalize(t, "http://h/?a="+value+"x", []string{"a"}, "", "2,048")
	checkNormalize(t, "http://h/?a="+value+"x", nil, "h", "h/")
}

func checkNormalize(t *testing.T, uri string, keep []string, site, page string) {
	t.Helper()
	got, err := Normalize(uri, keep)
	if site == "" {
		var input *Error
		if !errors.As(err, &input) || input.Field != "uri" || !strings.Contains(input.Message(), page) {
			t.Errorf("Normalize(%.100q) = %.100q, %v; want an error about the uri that says %q", uri, got, err, page)
		}
		return
	}
	if want := (Target{Site: site, Page: page}); err != nil || got != want {
		t.Fatalf("Normalize(%.100q) = %.100q, %v; want %.100q", uri, got, err, want)
	}
	checkTargetPromises(t, uri, keep, got)
}

// checkTargetPromises checks the properties of every target.
func checkTargetPromises(t *testing.T, uri string, keep []string, target Target) {
	t.Helper()
	if !strings.HasPrefix(target.Page, target.Site+"/") || target.Site == "" {
		t.Errorf("%q: page %q does not begin with site %q and a slash", uri, target.Page, target.Site)
	}
	if len(target.Page) > targetMaxBytes {
		t.Errorf("%q: the page has %d bytes", uri, len(target.Page))
	}
	for i := 0; i < len(target.Page); i++ {
		if c := target.Page[i]; c <= ' ' || c > '~' {
			t.Errorf("%q: the page %q contains %q", uri, target.Page, c)
		}
		if target.Page[i] != '%' {
			continue
		}
		if c, ok := escapeAt(target.Page, i); !ok || c == 0 || strings.ToUpper(target.Page[i:i+3]) != target.Page[i:i+3] {
			t.Errorf("%q: the page %q has a bad escape", uri, target.Page)
		}
	}
	if err := errors.Join(CheckStored(target.Page), CheckStored(target.Site)); err != nil {
		t.Errorf("%q: %v", uri, err)
	}
	for _, scheme := range []string{"http://", "https://"} {
		if scheme == "http://" && strings.HasSuffix(target.Site, ":80") || scheme == "https://" && strings.HasSuffix(target.Site, ":443") {
			continue // the URI has the other scheme: see Normalize
		}
		if again, err := Normalize(scheme+target.Page, keep); err != nil || again != target {
			t.Errorf("%q gave %q, and that gave %q, %v", uri, target, again, err)
		}
	}
}

func TestUTS46HasNoOtherHyphens(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		mapped, _ := targetIDNA.ToASCII(string(r))
		if strings.Contains(mapped, "-") && !strings.HasPrefix(mapped, punycodePrefix) && !strings.ContainsRune(hyphens, r) {
			t.Errorf("%U is mapped to %q: add it to hyphens", r, mapped)
		}
	}
}

var normalizeSeeds = []string{
	"http://hhui.top/home/page?x=1", "https://u:p@H.example:8443/a/../%7Eb/%2e%2E/c%2fd?b=2&a=%26&a#/r/%41",
	"http://bücher.example/首页?名=1#!x", "http://xn--bcher-kva.example", "http://ｘｎ－－ｚｃａ", "http://a…xn--が-",
	"http://xn--xn---epa", "http://ü.xn--/", "http://0x7f.1", "http://1.2.3.4.", "http://[::ffff:1.2.3.4]:80", "http://[[::1]]",
	"https://h:80/", "http://h:443", "http://h:00080", "http://%%34%31", "http://h/%%34%31%", "http://h/%25%32%35",
	`http:\\h`, `http://h\..\..`, "http://h/..;/.%2", "http://h/%c0%80", "http://h/\u0085", "http://h/%00", "http://\u00ad.\u00ad/",
	"http://h?a#b?c", "http://h/?a&a=&a=%", "http://مثال.1a/", "http://-.b--c._/", "javascript:alert(1)", "//h", "http:h",
}

func FuzzNormalize(f *testing.F) {
	for _, seed := range normalizeSeeds {
		f.Add(seed, "a", "名")
	}
	f.Fuzz(func(t *testing.T, uri, keep1, keep2 string) {
		keep := []string{keep1, keep2}
		for _, keep := range [][]string{nil, keep} {
			target, err := Normalize(uri, keep)
			if err == nil {
				checkTargetPromises(t, uri, keep, target)
				continue
			}
			var input *Error
			if !errors.As(err, &input) || input.Field != "uri" || input.Message() == "" {
				t.Fatalf("Normalize(%q): %v is not an error about the uri", uri, err)
			}
		}
	})
}

// FuzzPlainHost checks that the fast path for plain hosts has the same result as the standard path.
func FuzzPlainHost(f *testing.F) {
	for _, seed := range []string{"hhui.top", "a.b-c.d_e", "a--b", "xn--a", "a.1", "a.0x1", "a.x0", "a.", ".a", "1.a", "-a-.b-", "a..b",
		"b.e1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !isPlainHost(host) || len(host) > targetMaxBytes {
			return
		}
		standard, problem := appendStandardHost(nil, host)
		if problem != "" || string(standard) != host {
			t.Errorf("%q passes as canonical, but the standard gives %q %s", host, standard, problem)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	for _, bench := range []struct {
		name, uri string
		keep      []string
	}{
		{"plain", "http://hhui.top/home/page?x=1", nil},
		{"keep", "http://hhui.top/home/page?utm_source=x&id=1", []string{"id"}},
		{"escaped", "http://hhui.top/%e9%a6%96%e9%a1%b5/page", nil},
		{"punycode", "http://xn--bcher-kva.example/home", nil},
		{"idn", "http://bücher.example/首页", nil},
		{"refused", "javascript:alert(1)", nil},
		{"longest", "http://hhui.top/" + strings.Repeat("x", 2000), nil},
		{"costliest-host", "http://" + costlyHost() + "/", nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Normalize(bench.uri, bench.keep)
			}
		})
	}
}

// costlyHost returns the host that takes the longest to convert. It has one label, with as many different
// characters as are allowed, because the cost of Punycode is quadratic.
func costlyHost() string {
	host := make([]rune, maxConvertedDomain)
	for i := range host {
		host[i] = rune(0x4e00 + i)
	}
	return string(host)
}
