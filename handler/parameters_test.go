package handler

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/desk"
)

// hostileValues are valid for some parameters, and malformed for others.
var hostileValues = []string{"/x", "-1", "yes", "20190629", "'\x00\xff<", strings.Repeat("9", 5000)}

// parameterNames returns the names of all parameters that pages read, from their source.
func parameterNames(t *testing.T) []string {
	t.Helper()
	read := regexp.MustCompile(`(?:Get|Has|QueryParam|put)\("([a-z_]+)"|q\["([a-z_]+)"\]`)
	var names []string
	for _, pattern := range []string{"*.go", "../web/*.go"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, found := range read.FindAllStringSubmatch(string(text), -1) {
				names = append(names, found[1]+found[2])
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, known := range []string{"page", "panel", "range", "where", "who", "value"} {
		require.Contains(t, names, known, "the pattern must find parameters")
	}
	return names
}

// No request makes a page panic or fail: each page gets every parameter of any page, one at a time and all at once.
func TestNoParameterBreaksAPage(t *testing.T) {
	t.Parallel()
	e := newSharingEdge(t)
	e.options.Metrics = nil
	public := publicHandler(e.options)
	session := sessionCookie + "=" + e.SignIn(t, desk.Owner, desk.Looks())
	names, values := parameterNames(t), hostileValues
	if testing.Short() {
		values = values[:2]
	}
	get := func(path string, query url.Values, cookie string) {
		r := httptest.NewRequest(http.MethodGet, path+"?"+query.Encode(), http.NoBody)
		r.Header.Set("Cookie", cookie)
		answered := httptest.NewRecorder()
		public.ServeHTTP(answered, r)
		assert.Less(t, answered.Code, 500, "%s signed in: %t", r.URL, cookie != "")
	}
	tokens := []string{"never"}
	for _, site := range []string{"", "example.com"} {
		tokens = append(tokens, strings.TrimPrefix(e.share("shop", site), "/share/"))
	}
	pages := 0
	for _, r := range (&reports{service: newService(e.options)}).dashboardFor(e.options.Cells.Home()).routes() {
		for _, token := range tokens {
			path := strings.NewReplacer(":app", "shop", ":site", "example.com", ":token", token).Replace(r.path)
			if !strings.Contains(r.path, ":token") && token != tokens[0] {
				continue
			}
			pages++
			for _, value := range values {
				all := url.Values{}
				for _, name := range names {
					get(path, url.Values{name: {value}}, session)
					all.Set(name, value)
				}
				get(path, all, session)
				get(path, all, "")
				all.Del("page") // most pages stop at the first wrong parameter
				get(path, all, session)
			}
		}
	}
	assert.Greater(t, pages, 20)
	e.close()
	assert.NotContains(t, e.log.String(), "panicked")
}
