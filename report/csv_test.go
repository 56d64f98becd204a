package report

import (
	encoding "encoding/csv"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/report/draw"
)

func TestCSV(t *testing.T) {
	t.Parallel()
	written := csv([]string{"uri", "pv", "share", "exact", "visitor", "since", "note"}, [][]any{
		{"example.com/a", int64(-3), 0.5, true, netip.MustParseAddr("192.0.2.1"), time.Date(2019, 6, 29, 1, 0, 0, 0, time.UTC), nil},
		{`=cmd|'/c calc'!A1`, 7, -1.25, false, netip.MustParseAddr("::1"), nil, "a,b"},
	})
	assert.Equal(t, "uri,pv,share,exact,visitor,since,note\n"+
		"example.com/a,-3,0.5,true,192.0.2.1,2019-06-29T01:00:00Z,\n"+
		`"'=cmd|'/c calc'!A1",7,-1.25,false,::1,,"a,b"`+"\n", written)
}

func TestCSVFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stored, field string }{
		{"example.com/a?b=c", "example.com/a?b=c"},
		{"=1+1", "'=1+1"},
		{"+1", "'+1"},
		{"-1", "'-1"},
		{"@SUM(1)", "'@SUM(1)"},
		{"\t=1", "'\t=1"},
		{"\r=1", "'\r=1"},
		{"\n=1", "'\n=1"},
		{"  =1", "'  =1"},
		{"＝1", "'＝1"},
		{"－1", "'－1"},
		{"'=1", "''=1"},
		{"a;-1", "a;-1"},
		{`say "hi"`, `say "hi"`},
		{"two\nlines", "two\nlines"},
		{"", ""},
	} {
		t.Run(c.stored, func(t *testing.T) {
			t.Parallel()
			written := csv([]string{"uri", "next"}, [][]any{{c.stored, 1}})
			if c.stored == "a;-1" {
				assert.Contains(t, written, `"a;-1"`, "else it becomes two cells where semicolons separate")
			}
			read, err := encoding.NewReader(strings.NewReader(written)).ReadAll()
			require.NoError(t, err)
			assert.Equal(t, [][]string{{"uri", "next"}, {c.field, "1"}}, read)
		})
	}
}

func TestWriteErrorsAreReported(t *testing.T) {
	t.Parallel()
	for _, format := range []Format{Text, JSON, CSV} {
		assert.ErrorIs(t, Print(brokenPipe{}, &Rows{Name: "pages", List: []TitledPage{}}, format, draw.Style{}), errBroken)
		assert.ErrorIs(t, Print(brokenPipe{}, &Rows{Name: "pages", List: []TitledPage{}}, format, draw.Style{Width: 80}), errBroken)
	}
}

var errBroken = errors.New("broken pipe")

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }
