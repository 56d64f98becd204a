package visit

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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

// What counting stores is checked with each target of the tests of Normalize.
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
