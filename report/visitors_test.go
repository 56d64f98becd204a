package report

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVisitorsOfADayAreReadInParts(t *testing.T) {
	t.Parallel()
	all := make([]DayVisitor, 10)
	for i := range all {
		all[i].Visitor = netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
	}
	for _, c := range []struct{ most, atOnce, want, reads int }{
		{0, 3, 10, 4}, {0, 5, 10, 3}, {0, 100, 10, 1}, {7, 3, 7, 3}, {6, 3, 6, 2}, {2, 3, 2, 1}, {50, 3, 10, 4},
	} {
		reads := 0
		visitors, err := readInParts(c.most, c.atOnce, func(after netip.Addr, n int) ([]DayVisitor, error) {
			require.LessOrEqual(t, n, c.atOnce)
			reads++
			from := 0
			for from < len(all) && after.IsValid() && all[from].Visitor.Compare(after) <= 0 {
				from++
			}
			return all[from:min(from+n, len(all))], nil
		})
		require.NoError(t, err)
		assert.Equal(t, all[:c.want], visitors)
		assert.Equal(t, c.reads, reads, "%+v", c)
	}
}
