package visit

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A page or site is found by each way of writing it, on a terminal and over REST.
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
