// Package country finds the country of an address in a file that the operator has: a list of ranges
// as Debian's package tor-geoipdb has them, or a database in MaxMind's format, as several vendors
// give away. No file comes with Footfall, as each is out of date soon, and has a licence of its
// own.
//
// A file is read whole into a sorted list, and not touched after that: it may be replaced, or written
// over, at any time.
package country

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Countries is the countries of a file. It is safe for concurrent use. Nil has none.
type Countries struct {
	path  string
	log   *slog.Logger
	table atomic.Pointer[table]
	seen  stamps // of the files that were read last, whether they could be or not
}

// Open reads a file, and the one beside it whose name has a 6 behind, if there is one: tor-geoipdb
// has networks of IPv6 there.
func Open(path string, log *slog.Logger) (*Countries, error) {
	c := &Countries{path: path, log: log}
	err := c.read()
	return c, err
}

func (c *Countries) read() error {
	c.seen = stampsOf(c.path) // before, so that what changes meanwhile is read once more
	t, err := read(c.path)
	if err == nil {
		c.table.Store(t)
	}
	return err
}

// Of returns the code of an address's country, as DE; "" where it is not in the file, or of a
// network that nobody sees from outside.
func (c *Countries) Of(address netip.Addr) string {
	address = address.Unmap()
	if c == nil || !address.IsGlobalUnicast() || address.IsPrivate() || shared.Contains(address) {
		return ""
	}
	return c.table.Load().of(address)
}

// shared are addresses behind which providers have theirs.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// About says what the file says of itself: who has made it, and under which licence, where that is
// known.
func (c *Countries) About() string {
	if c == nil {
		return ""
	}
	return c.table.Load().about
}

// Follow reads the file again whenever it has changed, which it looks for every so often, until ctx
// ends. As long as one cannot be read, the last one that could holds. One goroutine calls it.
func (c *Countries) Follow(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		if stampsOf(c.path) == c.seen {
			continue
		}
		if err := c.read(); err != nil {
			c.log.Warn("the file of countries has changed and cannot be read: what it had before holds", "file", c.path, "error", err)
		} else {
			c.log.Info("the file of countries was read again", "file", c.path, "ranges", len(c.table.Load().from))
		}
	}
}

// stamps tell versions of the two files apart.
type stamps [2]struct{ changed, size int64 }

func stampsOf(path string) (s stamps) {
	for i, name := range []string{path, path + "6"} {
		if info, err := os.Stat(name); err == nil {
			s[i].changed, s[i].size = info.ModTime().UnixNano(), info.Size()
		}
	}
	return s
}

// table is what a file says: a sorted list of ranges, each of which begins where the one before
// ends. Its keys are IPv4 addresses, and behind these the first halves of IPv6 addresses: a visitor
// has a network of that size at least.
type table struct {
	from  []uint64
	codes [][2]byte // of the range's country; zero: none
	last  uint64    // up to which the list goes
	about string
}

func newTable() *table { return &table{from: []uint64{0}, codes: make([][2]byte, 1)} }

// keyOf is the key of an address; 0: it has none, since no network is given from before 2000::.
func keyOf(address netip.Addr) uint64 {
	if address.Is4() {
		bytes := address.As4()
		return uint64(binary.BigEndian.Uint32(bytes[:]))
	}
	bytes := address.As16()
	if key := binary.BigEndian.Uint64(bytes[:]); key > math.MaxUint32 {
		return key
	}
	return 0
}

// add adds a range behind all others.
func (t *table) add(first, last netip.Addr, code string) error {
	from, to := keyOf(first), keyOf(last)
	if first.Is4() != last.Is4() || last.Less(first) {
		return fmt.Errorf("%v to %v is no range", first, last)
	}
	switch {
	case first.Is4():
	case to == 0:
		return nil
	case from == 0:
		from = math.MaxUint32 + 1
	case from == t.last: // a part of a network that is there: the first part stands for it
		if from == to {
			return nil
		}
		from++
	}
	if from <= t.last && t.last > 0 {
		return errors.New("the ranges are not in order, or overlap")
	}
	if len(t.from) >= mostRanges {
		return errTooLarge
	}
	if from > t.last+1 {
		t.put(t.last+1, [2]byte{})
	}
	var letters [2]byte
	copy(letters[:], code)
	t.put(from, letters)
	t.last = to
	return nil
}

func (t *table) put(from uint64, code [2]byte) {
	if t.codes[len(t.codes)-1] != code {
		t.from, t.codes = append(t.from, from), append(t.codes, code)
	}
}

func (t *table) of(address netip.Addr) string {
	key := keyOf(address)
	if key > t.last {
		return ""
	}
	at, found := slices.BinarySearch(t.from, key)
	if !found {
		at-- // the first range begins with 0
	}
	code := t.codes[at]
	return strings.TrimRight(string(code[:]), "\x00")
}
