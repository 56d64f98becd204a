// Package country finds the country of an IP address. It looks up the address in a file that the operator provides.
// The file is a list of ranges in the format of Debian's package tor-geoipdb, or a database in MaxMind's format,
// which several vendors offer. Footfall includes no such file, because every file is soon outdated and has its own
// licence.
//
// The whole file is read into a sorted list in memory. After that, the file is not used, so the operator may replace
// or overwrite it at any time.
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

// Countries is a table of address ranges and their countries, read from a file. It is safe for concurrent use. A nil
// Countries contains no country.
type Countries struct {
	path  string
	log   *slog.Logger
	table atomic.Pointer[table]
	seen  stamps // the state of the files when they were last read, even if reading failed
}

// Open reads the file at path. If there is also a file with the same path and a 6 at the end, Open reads this file,
// too: tor-geoipdb stores IPv6 networks in it.
func Open(path string, log *slog.Logger) (*Countries, error) {
	c := &Countries{path: path, log: log}
	err := c.read()
	return c, err
}

func (c *Countries) read() error {
	c.seen = stampsOf(c.path) // before reading, so that Follow notices a change during the reading
	t, err := read(c.path)
	if err == nil {
		c.table.Store(t)
	}
	return err
}

// Of returns the code of an address's country, like DE. It returns "" if the file does not contain the address, or
// if the address is not public.
func (c *Countries) Of(address netip.Addr) string {
	address = address.Unmap()
	if c == nil || !address.IsGlobalUnicast() || address.IsPrivate() || shared.Contains(address) {
		return ""
	}
	return c.table.Load().of(address)
}

// shared is the range of addresses for carrier-grade NAT. These addresses belong to no country.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// About returns the vendor and the licence of the file, or any other description that the file contains of itself.
func (c *Countries) About() string {
	if c == nil {
		return ""
	}
	return c.table.Load().about
}

// Follow checks regularly whether the file has changed. If it has, Follow reads it again. Follow returns when ctx
// ends. If a new file cannot be read, the previous content stays in use. Only one goroutine may call Follow.
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
			c.log.Warn("the file of countries has changed and cannot be read; its previous content stays in use",
				"file", c.path, "error", err)
		} else {
			c.log.Info("the file of countries was read again", "file", c.path, "ranges", len(c.table.Load().from))
		}
	}
}

// stamps contains the time of the last change and the size of two files: the file of countries and its IPv6 file. If
// these are unchanged, Follow assumes that the files are unchanged.
type stamps [2]struct{ changed, size int64 }

func stampsOf(path string) (s stamps) {
	for i, name := range []string{path, path + "6"} {
		if info, err := os.Stat(name); err == nil {
			s[i].changed, s[i].size = info.ModTime().UnixNano(), info.Size()
		}
	}
	return s
}

// table is the content of a file of countries: a sorted list of ranges of keys. Each range starts directly after the
// end of the previous range. The key of an IPv4 address is the address itself. The key of an IPv6 address is the
// first half of the address, because a visitor has at least a /64 network. The keys of IPv6 addresses are greater
// than those of IPv4 addresses.
type table struct {
	from  []uint64  // the first key of each range
	codes [][2]byte // the country code of each range; zero if unknown
	last  uint64    // the last key of the last range
	about string
}

func newTable() *table { return &table{from: []uint64{0}, codes: make([][2]byte, 1)} }

// keyOf returns the key of an address. It returns 0 for an IPv6 address whose key would be in the range of the keys
// of IPv4 addresses. No visitor has such an address, because no network before 2000:: is assigned.
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

// add adds a range to the table. The range must be after all ranges that were added before.
func (t *table) add(first, last netip.Addr, code string) error {
	from, to := keyOf(first), keyOf(last)
	if first.Is4() != last.Is4() || last.Less(first) {
		return fmt.Errorf("%v to %v is not a range", first, last)
	}
	switch {
	case first.Is4():
	case to == 0:
		return nil
	case from == 0:
		from = math.MaxUint32 + 1
	case from == t.last: // the previous range has a part of this /64 network, so it gets the whole network
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
		at-- // the range before key contains it; there is one, because the first range starts with 0
	}
	code := t.codes[at]
	return strings.TrimRight(string(code[:]), "\x00")
}
