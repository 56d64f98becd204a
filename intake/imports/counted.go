package imports

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"footfall/db"
	"footfall/visit"
)

// counted contains hashes of log lines that an app has already counted, grouped by hour and server. It is a cache of the
// table counted_lines. It is safe for concurrent use.
type counted struct {
	db     *db.DB
	app    int32
	server string // use only lines of this server and lines without a server name; "": use the lines of all servers

	mu    sync.Mutex // guards the following fields
	hours map[int32]*hourLines
	lines int   // number of lines in memory
	ahead int32 // number of hours that the next load by numberNow reads
	clock int64 // number of loads so far
}

type hourLines struct {
	seen    bool  // the lines of the hour were loaded at least once
	loaded  bool  // the lines of the hour are in memory
	used    int64 // value of counted.clock when a load last needed the hour
	servers map[string]*serverLines
	dry     hashSet // in a dry run: the lines that an import would have counted
}

// serverLines contains the counted lines of one server and hour. They are numbered from 1, in the order in which they were
// counted.
type serverLines struct {
	gone    int64    // number of the last line that `footfall import forget` deleted from the database
	version int64    // number of the last line in memory; the first line in memory has the number gone+1
	latest  int64    // number of the last line in the database
	fresh   []uint64 // loaded lines that sort has not moved to before or since yet
	first   int64    // number of the last line in the database when this import first loaded the hour
	before  hashSet  // lines with numbers up to first: counted before this import loaded the hour
	since   hashSet  // lines with higher numbers: counted since then, by this import or another one
}

const (
	// mostRemembered is the maximum number of lines in memory. If there are more, unload frees the hours that are not
	// needed now.
	mostRemembered = 1 << 20
	// mostHours is the maximum number of hours in one load. If a load reads more than fewLines lines, the next load reads
	// only one hour.
	mostHours = 48
	fewLines  = 100_000
	// blocksAtOnce is the maximum number of blocks that one query reads for each hour and server. A block is a row of
	// counted_lines.
	blocksAtOnce = 2000
)

func newCounted(d *db.DB, app int32, server string) *counted {
	return &counted{db: d, app: app, server: server, hours: map[int32]*hourLines{}, ahead: 1}
}

// numberNow returns how often a line was counted in total (all), and how often before this import (before). If the line's
// hour is not in memory, numberNow loads this hour and some of the following hours.
func (c *counted) numberNow(ctx context.Context, hour int32, hash uint64) (all, before int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hours[hour]; h == nil || !h.loaded {
		hours := make([]int32, c.ahead)
		for i := range c.ahead {
			hours[i] = hour + i
		}
		if err := c.load(ctx, hours); err != nil {
			return 0, 0, err
		}
	}
	all, before = c.hours[hour].number(hash)
	return all, before, nil
}

// number returns how often a line was counted in total (all), and how often before this import (before).
func (h *hourLines) number(hash uint64) (all, before int) {
	for _, lines := range h.servers {
		before += lines.before.count(hash)
		all += lines.since.count(hash)
	}
	return all + before + h.dry.count(hash), before
}

// version returns the sum of the versions of all servers. The database compares it with the sum of the stored versions. If
// the sums differ, lines were counted in the meantime.
func (h *hourLines) version() (sum int64) {
	for _, lines := range h.servers {
		sum += lines.version
	}
	return sum
}

// load reads the counted lines of the given hours from the database, except lines that are already in memory.
func (c *counted) load(ctx context.Context, hours []int32) error {
	c.clock++
	for _, hour := range hours {
		if c.hours[hour] == nil {
			c.hours[hour] = &hourLines{servers: map[string]*serverLines{}}
		}
		c.hours[hour].used = c.clock
	}
	had := c.lines
	for rest := slices.Clone(hours); len(rest) > 0; {
		var rows []CountedLinesGetRow
		err := c.db.Read(ctx, func(q *db.Queries) (err error) {
			rows, err = New(q.Tx()).CountedLinesGet(ctx, c.buildParams(rest))
			return err
		})
		if err != nil {
			return visit.Unanswered(err)
		}
		for _, row := range rows {
			c.addBlock(&row)
		}
		rest = slices.DeleteFunc(rest, func(hour int32) bool { return c.hours[hour].isComplete() })
	}
	for _, hour := range hours {
		c.hours[hour].sort()
	}
	c.ahead = min(2*c.ahead, mostHours)
	if c.lines-had > fewLines {
		c.ahead = 1
	}
	if c.lines > mostRemembered {
		c.unload()
	}
	return nil
}

// buildParams returns the parameters of the query that reads the lines of the given hours, except lines that are already in
// memory.
func (c *counted) buildParams(hours []int32) CountedLinesGetParams {
	p := CountedLinesGetParams{AppID: c.app, AllHours: hours, Compared: c.server, Most: blocksAtOnce}
	for _, hour := range hours {
		for server, lines := range c.hours[hour].servers {
			p.Hours, p.Servers, p.Versions = append(p.Hours, hour), append(p.Servers, server), append(p.Versions, lines.version)
		}
	}
	return p
}

// addBlock adds the lines in a row of counted_lines to the lines in memory.
func (c *counted) addBlock(row *CountedLinesGetRow) {
	h := c.hours[row.Hour]
	l := h.servers[row.Server]
	if l == nil {
		l = &serverLines{}
		if h.servers[row.Server] = l; !h.seen {
			l.first = row.Version
		}
	}
	if l.gone != row.Gone { // `footfall import forget` has deleted lines in the meantime
		c.drop(l, row.Gone)
	}
	had := l.version
	if l.latest, l.version = row.Version, row.Version; len(row.Hashes) > 0 { // without hashes, no line was added
		l.version = row.First + int64(len(row.Hashes)/8)
		l.fresh = slices.Grow(l.fresh, int(row.Version-had))
		for block := row.Hashes[8*max(0, had-row.First):]; len(block) > 0; block = block[8:] {
			l.fresh = append(l.fresh, binary.BigEndian.Uint64(block))
		}
	}
	c.lines += int(l.version - had)
}

func (h *hourLines) isComplete() bool {
	for _, l := range h.servers {
		if l.version < l.latest {
			return false
		}
	}
	return true
}

// sort moves newly loaded lines from fresh to before or since, depending on their numbers.
func (h *hourLines) sort() {
	for _, l := range h.servers {
		before := min(max(l.first-l.version+int64(len(l.fresh)), 0), int64(len(l.fresh)))
		l.before.add(l.fresh[:before:before])
		l.since.add(l.fresh[before:])
		l.fresh = nil
	}
	h.seen, h.loaded = true, true
}

// unload frees the memory for the lines of all hours that the last load did not need.
func (c *counted) unload() {
	for _, h := range c.hours {
		if h.used == c.clock {
			continue
		}
		for _, l := range h.servers {
			c.drop(l, l.gone)
		}
		h.loaded = false
	}
}

// drop frees the memory for the lines of a server and hour. gone is the number of the last line that was deleted from the
// database.
func (c *counted) drop(l *serverLines, gone int64) {
	c.lines -= int(l.version - l.gone)
	*l = serverLines{first: l.first, gone: gone, version: gone}
}

// hashSet is a set of hashes that may contain a hash several times. It consists of sorted slices (parts). Each part is at
// least twice as long as the next one, so adding a few hashes to a large set is cheap. A part with mostMerged or more
// hashes is not merged with smaller parts, because that would need twice its memory.
type hashSet struct{ parts [][]uint64 }

const mostMerged = 1 << 20

func (s *hashSet) add(hashes []uint64) {
	if len(hashes) == 0 {
		return
	}
	slices.Sort(hashes)
	s.parts = append(s.parts, hashes)
	for n := len(s.parts); n > 1 && len(s.parts[n-2]) < min(2*len(s.parts[n-1]), mostMerged); n = len(s.parts) {
		s.parts[n-2] = mergeSorted(s.parts[n-2], s.parts[n-1])
		s.parts = s.parts[:n-1]
	}
}

func mergeSorted(a, b []uint64) []uint64 {
	both := make([]uint64, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] <= b[0] {
			both, a = append(both, a[0]), a[1:]
		} else {
			both, b = append(both, b[0]), b[1:]
		}
	}
	return append(append(both, a...), b...)
}

func (s *hashSet) count(hash uint64) (n int) {
	for _, part := range s.parts {
		at, there := slices.BinarySearch(part, hash)
		if there {
			for ; at < len(part) && part[at] == hash; at++ {
				n++
			}
		}
	}
	return n
}
