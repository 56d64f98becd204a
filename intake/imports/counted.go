package imports

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"footfall/db"
	"footfall/visit"
)

// counted knows which lines of an app were counted, as the tables had them when it last looked. It is
// safe for concurrent use.
type counted struct {
	db     *db.DB
	app    int32
	server string // the server of the import; "": it has none

	mu    sync.Mutex // guards everything below
	hours map[int32]*hourLines
	first map[serverHour]int64 // the version at which this import first saw an hour
	seen  map[int32]bool       // hours that were loaded once
	dry   map[int32]*hashSet   // lines that a dry run would have counted
	lines int                  // in hours
	clock int64                // rises with each load
}

type serverHour struct {
	hour   int32
	server string
}

// hourLines are the counted lines of an hour.
type hourLines struct {
	used    int64 // the clock of the last load that needed it
	servers map[string]*serverLines
}

// serverLines are the counted lines of an hour and a server, up to a version.
type serverLines struct {
	version, gone int64
	before        hashSet // counted before this import looked first
	since         hashSet // counted since: by this import, or by another one at the same time
}

const (
	// mostRemembered is the number of counted lines that stay in memory after their hours were needed.
	mostRemembered = 1 << 20
	// loadAhead is the number of following hours that are loaded with an hour, if they have few lines.
	loadAhead = 48
	fewLines  = 200_000
	// blocksAtOnce is the number of blocks that one query reads.
	blocksAtOnce = 2000
)

func newCounted(d *db.DB, app int32, server string) *counted {
	return &counted{db: d, app: app, server: server, hours: map[int32]*hourLines{}, first: map[serverHour]int64{}, seen: map[int32]bool{},
		dry: map[int32]*hashSet{}}
}

// isCompared reports whether lines that a server wrote count as counted in this import.
func (c *counted) isCompared(server string) bool {
	return c.server == "" || server == "" || server == c.server
}

// numberNow returns how often a line was counted, and how often before this import. If the hour was not loaded yet, it is loaded, with the
// hours after it.
func (c *counted) numberNow(ctx context.Context, hour int32, hash uint64) (all, before int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hours[hour] == nil {
		ahead := make([]int32, loadAhead)
		for i := range ahead {
			ahead[i] = hour + int32(i) //nolint:gosec // a few
		}
		if err := c.load(ctx, ahead, hour); err != nil {
			return 0, 0, err
		}
	}
	all, before = c.number(hour, hash)
	return all, before, nil
}

// number returns how often a line was counted, and how often before this import.
func (c *counted) number(hour int32, hash uint64) (all, before int) {
	if of := c.hours[hour]; of != nil {
		for server, lines := range of.servers {
			if c.isCompared(server) {
				n := lines.before.count(hash)
				before, all = before+n, all+n+lines.since.count(hash)
			}
		}
	}
	if dry := c.dry[hour]; dry != nil {
		all += dry.count(hash)
	}
	return all, before
}

// version returns the sum of the versions of an hour's compared servers.
func (c *counted) version(hour int32) (sum int64) {
	for server, lines := range c.hours[hour].servers {
		if c.isCompared(server) {
			sum += lines.version
		}
	}
	return sum
}

// load brings hours up to date. If only is not 0, it is brought up to date in any case, and the other hours
// only as long as few lines have to be read.
func (c *counted) load(ctx context.Context, hours []int32, only int32) error {
	err := c.db.Read(ctx, func(q *db.Queries) error { return c.loadWith(ctx, New(q.Tx()), hours, only) })
	if err != nil {
		return visit.Unanswered(err)
	}
	return nil
}

func (c *counted) loadWith(ctx context.Context, q *Queries, hours []int32, only int32) error {
	c.clock++
	rows, err := q.LogHoursGet(ctx, c.app, hours)
	if err != nil {
		return err
	}
	fresh, many := map[serverHour]*LogHoursGetRow{}, map[int32]int64{}
	for i := range rows {
		row := &rows[i]
		if c.isCompared(row.Server) {
			fresh[serverHour{row.Hour, row.Server}] = row
			many[row.Hour] += row.Version - row.Gone
		}
	}
	few := int64(fewLines)
	for _, hour := range hours {
		if few -= many[hour]; only != 0 && hour != only && (c.hours[hour] != nil || few < 0) {
			maps.DeleteFunc(fresh, func(k serverHour, _ *LogHoursGetRow) bool { return k.hour == hour })
			continue
		}
		if c.hours[hour] == nil {
			c.hours[hour] = &hourLines{servers: map[string]*serverLines{}}
		}
		c.hours[hour].used = c.clock
	}
	added, err := c.read(ctx, q, fresh)
	if err != nil {
		for _, hour := range hours { // as if they had never been loaded
			c.drop(hour)
		}
		return err
	}
	for k, row := range fresh {
		c.learn(k, row, added[k])
	}
	for _, hour := range hours {
		c.seen[hour] = c.seen[hour] || c.hours[hour] != nil
	}
	c.shrink()
	return nil
}

// read reads the lines between the known versions and those of fresh.
func (c *counted) read(ctx context.Context, q *Queries, fresh map[serverHour]*LogHoursGetRow) (map[serverHour][]uint64, error) {
	ask, added := CountedLinesGetParams{AppID: c.app, Most: blocksAtOnce}, map[serverHour][]uint64{}
	reached := map[serverHour]int64{}
	for k, row := range fresh {
		lines := c.hours[k.hour].servers[k.server]
		if lines == nil || lines.gone != row.Gone { // lines were forgotten
			reached[k] = row.Gone
		} else {
			reached[k] = lines.version
		}
		added[k] = make([]uint64, 0, row.Version-reached[k])
	}
	for {
		ask.Hours, ask.Servers, ask.Versions = ask.Hours[:0], ask.Servers[:0], ask.Versions[:0]
		for k, version := range reached {
			if version < fresh[k].Version {
				ask.Hours, ask.Servers, ask.Versions = append(ask.Hours, k.hour), append(ask.Servers, k.server), append(ask.Versions, version)
			}
		}
		if len(ask.Hours) == 0 {
			return added, nil
		}
		blocks, err := q.CountedLinesGet(ctx, ask)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			k := serverHour{b.Hour, b.Server}
			for at := 0; at+8 <= len(b.Hashes); at += 8 {
				// Lines after the version may have been counted since that was read.
				if place := b.First + int64(at/8); place >= reached[k] && place < fresh[k].Version {
					added[k] = append(added[k], binary.BigEndian.Uint64(b.Hashes[at:]))
				}
			}
			reached[k] = max(reached[k], b.First+int64(len(b.Hashes)/8))
		}
		if len(blocks) < blocksAtOnce {
			return added, nil // or they were forgotten since, which the batch will notice
		}
	}
}

// learn adds lines to what is known of an hour and a server.
func (c *counted) learn(k serverHour, row *LogHoursGetRow, added []uint64) {
	servers := c.hours[k.hour].servers
	lines := servers[k.server]
	if lines == nil || lines.gone != row.Gone {
		if lines != nil {
			c.lines -= lines.size()
		}
		lines = &serverLines{version: row.Gone, gone: row.Gone}
		servers[k.server] = lines
	}
	first, there := c.first[k]
	if !there && !c.seen[k.hour] {
		first = row.Version
	}
	c.first[k] = first
	c.lines += len(added)
	n := min(max(first-lines.version, 0), int64(len(added)))
	lines.before.add(added[:n:n])
	lines.since.add(added[n:])
	lines.version = row.Version
}

func (c *counted) drop(hour int32) {
	if of := c.hours[hour]; of != nil {
		for _, lines := range of.servers {
			c.lines -= lines.size()
		}
		delete(c.hours, hour)
	}
}

// shrink drops the hours that were not needed for longest.
func (c *counted) shrink() {
	if c.lines <= mostRemembered {
		return
	}
	hours := slices.SortedFunc(maps.Keys(c.hours), func(a, b int32) int { return int(c.hours[a].used - c.hours[b].used) })
	for _, hour := range hours {
		if c.lines <= mostRemembered || c.hours[hour].used == c.clock {
			return
		}
		c.drop(hour)
	}
}

func (l *serverLines) size() int { return l.before.size() + l.since.size() }

// hashSet is a multiset of hashes: sorted parts, each at least twice as long as the next one, so that
// adding to many is cheap.
type hashSet struct{ parts [][]uint64 }

func (s *hashSet) add(hashes []uint64) {
	if len(hashes) == 0 {
		return
	}
	slices.Sort(hashes)
	s.parts = append(s.parts, hashes)
	for n := len(s.parts); n > 1 && len(s.parts[n-2]) < 2*len(s.parts[n-1]); n = len(s.parts) {
		s.parts[n-2] = merged(s.parts[n-2], s.parts[n-1])
		s.parts = s.parts[:n-1]
	}
}

func merged(a, b []uint64) []uint64 {
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

func (s *hashSet) size() (n int) {
	for _, part := range s.parts {
		n += len(part)
	}
	return n
}
