package moves_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/intake/moves"
)

func TestReadCSV(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		want []admin.Offset
		says string
	}{
		"all columns": {"uri,hot,uv,pv\nhttps://a/,9,3,5\na,7,,\n",
			[]admin.Offset{{Line: 2, URI: "https://a/", Hot: 9, UV: 3, PV: 5}, {Line: 3, URI: "a", Hot: 7}}, ""},
		"pv is uv where it is not known": {"uri,hot,uv\na/,9,3", []admin.Offset{{Line: 2, URI: "a/", Hot: 9, UV: 3, PV: 3}}, ""},
		"as a spreadsheet writes it": {"\ufeffHot, URI\r\n9,\"a/x,y\"\r\n\r\n8, a/b \r\n", []admin.Offset{{Line: 2, URI: "a/x,y", Hot: 9},
			{Line: 4, URI: "a/b", Hot: 8}}, ""},
		"as UTF-16": {inUTF16("uri,hot\na/ü,8\n"), []admin.Offset{{Line: 2, URI: "a/ü", Hot: 8}}, ""},
		"no text":   {"\x00\x01\x02", nil, "it is not text"},
		"no lines":  {"uri,hot\n", nil, ""},
		"faults of lines": {"uri,hot,uv\na/,\"1,204\",1\nb/,-1\nc/,,\nd/,1,x\n", []admin.Offset{
			{Line: 2, URI: "a/", UV: 1, PV: 1, Fault: `hot: "1,204" is not a number: write only digits, like 1204`},
			{Line: 3, Fault: "the first line names 3 columns, but this line has 2"},
			{Line: 4, URI: "c/", Fault: `hot: "" is not a number: write only digits, like 1204`},
			{Line: 5, URI: "d/", Hot: 1, Fault: `uv: "x" is not a number: write only digits, like 1204`},
		}, ""},
		"more than a number can be": {"uri,hot\na/,9223372036854775808",
			[]admin.Offset{{Line: 2, URI: "a/", Hot: 1<<63 - 1, Fault: `hot: "9223372036854775808" is not a number: write only digits, like 1204`}},
			""},
		"empty":             {"", nil, "it is empty"},
		"no header":         {"https://a/,9\n", nil, `line 1: "https://a/" is not a column`},
		"another separator": {"uri;hot\na/;9\n", nil, `line 1: "uri;hot" is not a column`},
		"twice":             {"uri,hot,hot\n", nil, "line 1: column hot is named twice"},
		"missing":           {"uri,uv\n", nil, "line 1: column hot is missing"},
		"no CSV":            {"uri,hot\na/,9\n\"b/,1\n", nil, "line 3: it is not CSV"},
	} {
		got, err := moves.ReadCSV(strings.NewReader(c.file))
		if c.says != "" {
			require.ErrorContains(t, err, c.says, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
}

// lean is an export of LeanCloud's class Counter, from themes that use url or target.
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

// offsets returns all offsets, one per line.
func (i *imports) offsets() string {
	i.t.Helper()
	return strings.Join(i.Column(`SELECT concat_ws(' ', uri, hot, pv, uv) FROM offsets ORDER BY uri COLLATE "C"`), "\n")
}

// An export of LeanCloud becomes offsets of its site and pages.
func TestLeanCloud(t *testing.T) {
	i := newImports(t)
	of := admin.History{Source: "leancloud", Site: "blog.example"}
	try := of
	try.DryRun = true
	for _, text := range []string{lean, gzipped(lean), strings.ReplaceAll(lean, "\n", "\r\n")} {
		done, err := i.read(try, file{"Counter.0.jsonl", text})
		require.NoError(t, err)
		assert.Equal(t, &admin.OffsetCounts{Added: 4}, done.Offsets)
		assert.Empty(t, i.offsets())
	}
	done, err := i.read(of, file{"Counter.0.jsonl.gz", gzipped(lean)})
	require.NoError(t, err)
	assert.Equal(t, &admin.OffsetCounts{Added: 4}, done.Offsets)
	const want = "blog.example 1000 300 300\nblog.example/%E6%96%87%E7%AB%A0/ 10 0 0\nblog.example/hello/ 121 0 0\nblog.example/post 0 0 0"
	assert.Equal(t, want, i.offsets())
	done, err = i.read(of, file{"Counter.0.jsonl", lean})
	require.NoError(t, err)
	assert.Equal(t, &admin.OffsetCounts{Same: 4}, done.Offsets, "nothing is added twice")

	for text, says := range map[string]string{
		`{"time":1}`:                            "a.jsonl, line 3, column url: it is missing, and so is target",
		`{"url":"/a/"}`:                         "a.jsonl, line 3, column time: it is missing",
		`{"url":"/a/","time":null}`:             "a.jsonl, line 3, column time: it is missing",
		`{"url":"/a/","time":-1}`:               "a.jsonl, line 3, column time: -1 is not a number of visits",
		`{"url":"/a/","time":1.5}`:              "a.jsonl, line 3, column time: 1.5 is not a number of visits",
		`{"url":"/a/","time":"x"}`:              "a.jsonl, line 3: it is not JSON from LeanCloud",
		`{"url":"http://e.example","time":1}`:   `a.jsonl, line 3, column url: "http://e.example" is not a path`,
		`[1]`:                                   "a.jsonl, line 3: it is not JSON from LeanCloud",
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
		{of, "", "there is no record"}, {of, "# nothing\n", "there is no record"}, {of, gzipped(lean)[:60], "it is incomplete"},
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
