package record

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/visit"
)

// A title is that which most of the last five visitors have seen, each once, and two at least; another one
// comes after an hour. A caller who vouches for it needs nobody.
func TestTitlesAreVotedOn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1561766400, 0)
	told := &titles{clock: func() time.Time { return now }, told: map[int64]string{}}
	g := &generation{ballots: newBallots()}
	sees := func(page int64, visitor int, title string, vouched bool) string {
		e := &entry{Visit: Visit{Title: title, Vouched: vouched, SeenFrom: netip.AddrFrom4([4]byte{192, 0, 2, byte(visitor)})}}
		e.page.id = page
		told.saw(e, g)
		return told.told[page]
	}
	for i, c := range []struct {
		visitor int
		title   string
		later   time.Duration
		told    string
	}{
		{1, "a", 0, ""}, {1, "a", 0, ""}, {1, "b", 0, ""}, {1, "b", 2 * time.Hour, ""}, // one visitor, whatever they do
		{2, "a", 0, ""}, {3, "a", 0, "a"}, // two of three
		{4, "b", 2 * time.Hour, "a"}, {5, "c", 0, "a"}, {6, "b", 0, "a"}, // 2 of 5
		{7, "b", 0, "b"},                                                        // 3 of 5
		{8, "a", 0, "b"}, {9, "a", 0, "b"}, {8, "a", 0, "b"}, {10, "a", 0, "b"}, // within the hour
		{10, "a", 59 * time.Minute, "b"}, {10, "a", time.Minute, "a"},
	} {
		now = now.Add(c.later)
		assert.Equal(t, c.told, sees(1, c.visitor, c.title, false), "%d: %v", i, c)
	}
	assert.Equal(t, "x", sees(2, 1, "x", true))
	assert.Equal(t, "x", sees(2, 1, "y", true), "within the hour")
	for name, e := range map[string]*entry{
		"no title": {}, "no page": {Visit: Visit{Title: "x", Vouched: true}}, "long ago": {Visit: Visit{Title: "x", Vouched: true, When: Past}},
		"(other)": {Visit: Visit{Title: "x", Vouched: true}, other: visit.Target{Page: "a/(other)"}},
	} {
		if e.page.id = 3; name == "no page" {
			e.page.id = 0
		}
		told.saw(e, g)
		assert.Len(t, told.told, 2, name)
	}
	for page := range int64(2 * titlesMost) {
		sees(page+10, 1, fmt.Sprint(page), true)
	}
	assert.Len(t, told.told, titlesMost, "what waits is bounded")
	assert.Less(t, g.ballots.pages.Count(), 2*titleBytes/titleEntry)
}
