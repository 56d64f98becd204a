package country

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"

	"footfall/visit/tag"
)

// read reads the file at a path, and its IPv6 file (with a 6 added to the name) if that exists.
func read(path string) (*table, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("file of countries: %w", err)
	}
	t := newTable()
	if bytes.Contains(content, []byte("\xab\xcd\xefMaxMind.com")) {
		err = t.readDatabase(content)
	} else if err = t.readLines(string(content)); err == nil {
		content, err = readFile(path + "6")
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		} else if err == nil {
			path += "6"
			err = t.readLines(string(content))
		}
	}
	if err == nil && len(t.from) == 1 {
		err = errors.New("it contains no country: use a file of countries")
	}
	if err != nil {
		return nil, fmt.Errorf("file of countries %s: %w", path, err)
	}
	t.from, t.codes = slices.Clip(t.from), slices.Clip(t.codes)
	return t, nil
}

// Limits for the size of a file and the number of its ranges. A file of countries has about 10 MB and half a million
// ranges. A file of cities has about ten times as much.
const (
	mostBytes  = 256 << 20
	mostRanges = 10_000_000
)

var errTooLarge = fmt.Errorf("it has more than %d MiB or %d ranges: use a file of countries, not of cities", mostBytes>>20, mostRanges)

// readFile reads a file. It reads at most mostBytes, even if the file is a device or grows. If the file is larger, it
// returns an error.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var content []byte
	info, err := file.Stat()
	if err == nil && info.Size() <= mostBytes {
		content, err = io.ReadAll(io.LimitReader(file, mostBytes+1))
	}
	if err == nil && (info.Size() > mostBytes || len(content) > mostBytes) {
		err = fmt.Errorf("%s: %w", path, errTooLarge)
	}
	return content, err
}

// readLines reads lines like 16777216,16777471,AU or 2001:200::,2001:200:ffff:…,JP, in order of address. It also
// reads the comments about the vendor and the licence.
func (t *table) readLines(content string) error {
	number := 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			t.readComment(line)
			continue
		}
		from, rest, _ := strings.Cut(line, ",")
		to, code, found := strings.Cut(rest, ",")
		first, err := readAddress(from)
		last, failed := readAddress(to)
		if !found || err != nil || failed != nil {
			return fmt.Errorf("line %d is not FIRST,LAST,COUNTRY: %.64q", number, line)
		}
		if err := t.add(first, last, tag.CountryOf(code)); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return nil
}

func (t *table) readComment(line string) {
	for _, name := range []string{"# Vendor:", "# License:"} {
		if value, found := strings.CutPrefix(line, name); found && !strings.Contains(t.about, strings.TrimSpace(value)) {
			t.about = strings.TrimPrefix(t.about+", "+strings.TrimSpace(value), ", ")
		}
	}
}

// readAddress parses an address. An IPv4 address may be written as a decimal number.
func readAddress(text string) (netip.Addr, error) {
	if strings.ContainsAny(text, ".:") {
		return netip.ParseAddr(text)
	}
	number, err := strconv.ParseUint(text, 10, 32)
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], uint32(number))
	return netip.AddrFrom4(bytes), err
}

// readDatabase reads a database in MaxMind's format.
func (t *table) readDatabase(content []byte) error {
	database, err := maxminddb.OpenBytes(content)
	if err != nil {
		return err
	}
	t.about = database.Metadata.Description["en"]
	if t.about == "" {
		t.about = database.Metadata.DatabaseType
	}
	codes := map[uintptr]string{} // by the offset of a record: a cache, because many networks share a record
	for network := range database.Networks() {
		if err := network.Err(); err != nil {
			return err
		}
		code, ok := codes[network.Offset()]
		if !ok {
			code = codeIn(network)
			codes[network.Offset()] = code
		}
		prefix := network.Prefix()
		if err := t.add(prefix.Addr(), lastOf(prefix), code); err != nil {
			return err
		}
	}
	return nil
}

// codeIn returns the country code in a record. The name of the field that contains the code depends on the vendor.
func codeIn(record maxminddb.Result) string {
	for _, path := range [][]any{{"country", "iso_code"}, {"country_code"}, {"country"}} {
		var code string
		if record.DecodePath(&code, path...) == nil && tag.CountryOf(code) != "" {
			return tag.CountryOf(code)
		}
	}
	return ""
}

// lastOf returns the last address of a network.
func lastOf(network netip.Prefix) netip.Addr {
	bytes := network.Addr().AsSlice()
	for bit := network.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}
