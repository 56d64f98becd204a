package generate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/intake/logs"
)

// A log has a line for each visit, in order, and three others for two of them.
func TestWriteLog(t *testing.T) {
	t.Parallel()
	set := Set{Visits: 1000, Visitors: 100, Pages: 50, Sites: 3, Days: 4}
	var text bytes.Buffer
	require.NoError(t, WriteLog(&text, set))
	var again bytes.Buffer
	require.NoError(t, WriteLog(&again, set))
	require.True(t, bytes.Equal(text.Bytes(), again.Bytes()))
	p, visits, lines, last := logs.NewParser(logs.CombinedHost), 0, 0, time.Time{}
	for line := range bytes.Lines(text.Bytes()) {
		var l logs.Line
		require.NoError(t, p.Parse(bytes.TrimSuffix(line, []byte("\n")), &l))
		require.False(t, l.Time.Before(last))
		last = l.Time
		lines++
		if l.Status == 200 && !bytes.HasSuffix(l.Target, []byte(".css")) && !strings.Contains(string(l.Agent), "bot") {
			visits++
		}
	}
	require.Equal(t, 1000, visits)
	require.Equal(t, 2500, lines)
}
