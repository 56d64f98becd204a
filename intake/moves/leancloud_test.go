package moves_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
)

// lean is an export of LeanCloud's class Counter, of themes that use url or target.
const lean = `#filetype:JSON-streaming {"type":"Class","class":"Counter"}
{"objectId":"5f0c8a1b2d3e4f5061728394","url":"/hello/","title":"Hello","time":120,"ACL":{},"createdAt":"2020-01-02T03:04:05.000Z"}

{"target":"/文章/","time":7}
{"target":"/%E6%96%87%E7%AB%A0/","time":3}
{"url":"/hello/","time":1}
{"url":"/post?id=7","time":0}
{"target":"site-pv","time":900}
{"target":"site-uv","time":300}
{"target":"site-pv","time":100}
`

// offsets are all that there are, a line each.
func (i *imports) offsets() string {
	i.t.Helper()
	return strings.Join(i.Column(`SELECT concat_ws(' ', uri, hot, pv, uv) FROM offsets ORDER BY uri COLLATE "C"`), "\n")
}

// An export of LeanCloud becomes offsets of its site and pages.
func TestLeanCloud(t *testing.T) {
	i := newImports(t)
	of := admin.History{Source: "leancloud", Site: "blog.example"}
	try := of
	try.Try = true
	for _, text := range []string{lean, gzipped(lean), strings.ReplaceAll(lean, "\n", "\r\n")} {
		done, err := i.read(try, file{"Counter.0.jsonl", text})
		require.NoError(t, err)
		assert.Equal(t, &admin.OffsetsDone{Added: 4}, done.Offsets)
		assert.Empty(t, i.offsets())
	}
	done, err := i.read(of, file{"Counter.0.jsonl.gz", gzipped(lean)})
	require.NoError(t, err)
	assert.Equal(t, &admin.OffsetsDone{Added: 4}, done.Offsets)
	const want = "blog.example 1000 300 300\nblog.example/%E6%96%87%E7%AB%A0/ 10 0 0\nblog.example/hello/ 121 0 0\nblog.example/post 0 0 0"
	assert.Equal(t, want, i.offsets())
	done, err = i.read(of, file{"Counter.0.jsonl", lean})
	require.NoError(t, err)
	assert.Equal(t, &admin.OffsetsDone{Same: 4}, done.Offsets, "nothing is added twice")

	for text, says := range map[string]string{
		`{"time":1}`:                            "a.jsonl, line 3, column url: it is missing, and so is target",
		`{"url":"/a/"}`:                         "a.jsonl, line 3, column time: it is missing",
		`{"url":"/a/","time":null}`:             "a.jsonl, line 3, column time: it is missing",
		`{"url":"/a/","time":-1}`:               "a.jsonl, line 3, column time: -1 is not a number of visits",
		`{"url":"/a/","time":1.5}`:              "a.jsonl, line 3, column time: 1.5 is not a number of visits",
		`{"url":"/a/","time":"x"}`:              "a.jsonl, line 3: it is no JSON of LeanCloud",
		`{"url":"http://e.example","time":1}`:   `a.jsonl, line 3, column url: "http://e.example" is not a path`,
		`[1]`:                                   "a.jsonl, line 3: it is no JSON of LeanCloud",
		`{"url":"/\u0000","time":1}`:            "line 3: uri: ",
		`{"url":"/b/","time":9000000000000000}`: "a.jsonl, line 3, column time: 9000000000000000 is not a number of visits",
		`{"target":"site-uv","time":1}`:         "site-uv, 1, is above site-pv, 0",
	} {
		_, err = i.read(of, file{"a.jsonl", `{"url":"/ok/","time":5}` + "\n\n" + text + "\n"})
		require.ErrorContains(t, err, says)
		assert.Equal(t, want, i.offsets(), says)
	}
	for _, c := range []struct {
		into admin.History
		text string
		says string
	}{
		{admin.History{Source: "leancloud"}, lean, "site: it is missing"},
		{admin.History{Source: "leancloud", Site: "b.example"}, lean, "line 2: uri: app blog does not count b.example"},
		{admin.History{Source: "leancloud", Site: "blog example"}, lean, "site: "},
		{of, "", "there is no record"}, {of, "# nothing\n", "there is no record"}, {of, gzipped(lean)[:60], "it ends early"},
	} {
		_, err = i.read(c.into, file{"a.jsonl", c.text})
		require.ErrorContains(t, err, c.says)
	}
	_, err = i.read(of, file{"a", lean}, file{"b", lean})
	require.ErrorContains(t, err, "give one file")
	i.h.Skip = true
	_, err = i.read(of, file{"a", lean})
	require.ErrorContains(t, err, "leave out --skip")
	assert.Equal(t, want, i.offsets())
}
