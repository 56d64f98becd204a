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
		"no text":   {"\x00\x01\x02", nil, "it is no text"},
		"no lines":  {"uri,hot\n", nil, ""},
		"faults of lines": {"uri,hot,uv\na/,\"1,204\",1\nb/,-1\nc/,,\nd/,1,x\n", []admin.Offset{
			{Line: 2, URI: "a/", UV: 1, PV: 1, Fault: `hot: "1,204" is not a number: write digits alone, like 1204`},
			{Line: 3, Fault: "the first line names 3 columns, and it has 2"},
			{Line: 4, URI: "c/", Fault: `hot: "" is not a number: write digits alone, like 1204`},
			{Line: 5, URI: "d/", Hot: 1, Fault: `uv: "x" is not a number: write digits alone, like 1204`},
		}, ""},
		"more than a number can be": {"uri,hot\na/,9223372036854775808",
			[]admin.Offset{{Line: 2, URI: "a/", Hot: 1<<63 - 1, Fault: `hot: "9223372036854775808" is not a number: write digits alone, like 1204`}},
			""},
		"empty":             {"", nil, "it is empty"},
		"no header":         {"https://a/,9\n", nil, `line 1: "https://a/" is no column`},
		"another separator": {"uri;hot\na/;9\n", nil, `line 1: "uri;hot" is no column`},
		"twice":             {"uri,hot,hot\n", nil, "line 1: column hot is there twice"},
		"missing":           {"uri,uv\n", nil, "line 1: column hot is missing"},
		"no CSV":            {"uri,hot\na/,9\n\"b/,1\n", nil, "line 3: it is no CSV"},
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
