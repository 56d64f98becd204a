package country

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

const (
	lines4 = "# Vendor:    IPFire Project\n# License:   CC BY-SA " +
		"4.0\n#\n16777216,16777471,AU\n16777472,16778239,CN\n16778240,16779263,AU\n\n3405803776,3405804031,??\n3405804032,3405804287,EU\n"
	lines6 = "# Vendor:    IPFire Project\n# License:   CC BY-SA 4.0\n2001:200::,2001:200:134:ffff:ffff:ffff:ffff:ffff,JP\n" +
		"2a00:1:1:1::,2a00:1:1:1:7fff:ffff:ffff:ffff,DE\n2a00:1:1:1:8000::,2a00:1:1:2:ffff:ffff:ffff:ffff,FR\nffff::,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,UK\n"
)

var answers = map[string]string{
	"1.0.0.0": "AU", "1.0.0.255": "AU", "1.0.1.0": "CN", "1.0.3.255": "CN", "1.0.4.0": "AU", "1.0.7.255": "AU",
	"::ffff:1.0.1.1": "CN",
	"0.255.255.255":  "", "1.0.8.0": "", "203.0.113.1": "", "203.0.114.1": "", "223.0.0.1": "",
	"2001:200::1": "JP", "2001:200:134:ffff:ffff:ffff:ffff:ffff": "JP", "2001:200:135::": "", "2001:1ff::": "", "2a00:1:1:1::7": "DE",
	"2a00:1:1:2::7": "FR", "2a00:1:1:3::7": "",
}

// write replaces a file atomically, like package managers.
func write(t testing.TB, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name+".new", content, 0o600))
	require.NoError(t, os.Rename(name+".new", name))
}

func files(t testing.TB, four, six string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "geoip")
	write(t, path, []byte(four))
	if six != "" {
		write(t, path+"6", []byte(six))
	}
	return path
}

func requireAnswers(t *testing.T, c *Countries) {
	t.Helper()
	for address, want := range answers {
		require.Equal(t, want, c.Of(netip.MustParseAddr(address)), address)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	c, err := Open(files(t, lines4, lines6), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	requireAnswers(t, c)
	require.Equal(t, "IPFire Project, CC BY-SA 4.0", c.About())

	both, err := Open(files(t, strings.ReplaceAll(lines4, "16777216,16777471", "1.0.0.0,1.0.0.255")+lines6, ""), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	requireAnswers(t, both)
}

// If several ranges are in one visitor's network, the first range decides for the whole network. A range below
// 2000:: is left out. After the last range no address has a country.
func TestSmallNetworks(t *testing.T) {
	t.Parallel()
	c, err := Open(files(t, "16777216,16777471,AU\n",
		"::1,::1,XK\n2a00:1:1:1::,2a00:1:1:1:7fff:ffff:ffff:ffff,DE\n2a00:1:1:1:8000::,2a00:1:1:1:ffff:ffff:ffff:ffff,FR\n2a00:1:1:2::,2a00:1:1:2:ffff:ffff:ffff:ffff,IT\n"),
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for address, want := range map[string]string{
		"1.0.0.255": "AU", "1.0.1.0": "", "2001::1": "", "2a00:1:1::1": "", "2a00:1:1:1::1": "DE", "2a00:1:1:1:9000::": "DE",
		"2a00:1:1:2::1": "IT", "2a00:1:1:3::1": "",
	} {
		requireOf(t, c, address, want)
	}
	require.True(t, slices.IsSorted(c.table.Load().from))
}

// Private addresses have no country, whatever the file contains.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	c, err := Open(files(t, "0,4294967295,AU\n", "::,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,JP\n"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for _, address := range []string{"10.1.2.3", "192.168.0.1", "172.16.0.1", "127.0.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1",
		"255.255.255.255", "::", "::1", "fd00::1", "fe80::1", "ff02::1", "::ffff:10.0.0.1"} {
		require.Empty(t, c.Of(netip.MustParseAddr(address)), address)
	}
	require.Empty(t, c.Of(netip.Addr{}))
	require.Equal(t, "AU", c.Of(netip.MustParseAddr("223.255.255.255")))
	require.Equal(t, "JP", c.Of(netip.MustParseAddr("2a00::1")))
	var none *Countries
	require.Empty(t, none.Of(netip.MustParseAddr("1.0.0.1")))
	require.Empty(t, none.About())
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ four, six, says string }{
		"empty":                      {"", "", "contains no country"},
		"something else":             {"<html>", "", "line 1 is not FIRST,LAST,COUNTRY"},
		"cut":                        {lines4[:len(lines4)-30], "", "line 8 is not"},
		"backwards":                  {"2,1,DE\n", "", "line 1: 0.0.0.2 to 0.0.0.1 is not a range"},
		"of two kinds":               {"1,2001::,DE\n", "", "is not a range"},
		"not in order":               {"5,6,DE\n1,2,FR\n", "", "line 2: the ranges are not in order"},
		"overlapping":                {"1,5,DE\n5,9,FR\n", "", "line 2: the ranges are not in order"},
		"the second one":             {lines4, "2001::,FR\n", "geoip6: line 1"},
		"a database that is cut":     {string(database(t, 6, 24, geo)[200:]), "", ""},
		"a database without its end": {string(database(t, 6, 24, geo)[:300]), "", "line 1 is not"},
		"a database of other things": {string(
			database(t, 6, 24, func(string) mmdbtype.DataType { return mmdbtype.Map{"asn": mmdbtype.Uint32(1)} })), "", "contains no country"},
	} {
		_, err := Open(files(t, test.four, test.six), slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "file of countries", name)
		require.ErrorContains(t, err, test.says, name)
	}
	_, err := Open(filepath.Join(t.TempDir(), "nowhere"), slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)

	for _, behind := range []string{"", "6"} {
		large := files(t, lines4, lines6)
		require.NoError(t, os.Truncate(large+behind, mostBytes+1))
		_, err = Open(large, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, large+behind+": it has more than 256 MiB or 10000000 ranges: use a file of countries, not of cities")
	}
	full := newTable()
	full.from, full.codes = make([]uint64, mostRanges), make([][2]byte, mostRanges)
	require.ErrorIs(t, full.add(netip.MustParseAddr("1.0.0.1"), netip.MustParseAddr("1.0.0.2"), "DE"), errTooLarge)
}

func geo(code string) mmdbtype.DataType {
	return mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code), "names": mmdbtype.Map{"en": mmdbtype.String("somewhere")}}}
}

// database returns a database with the ranges of lines4 and lines6, made with the vendor's library.
func database(t testing.TB, version, bits int, record func(code string) mmdbtype.DataType) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test-Country", Description: map[string]string{"en": "of a test"},
		IPVersion: version, RecordSize: bits, IncludeReservedNetworks: true})
	require.NoError(t, err)
	for line := range strings.Lines(lines4 + lines6) {
		parts := strings.Split(strings.TrimSpace(line), ",")
		if len(parts) != 3 || parts[2] == "??" || version == 4 && strings.Contains(line, ":") {
			continue
		}
		first, _ := readAddress(parts[0])
		last, _ := readAddress(parts[1])
		require.NoError(t, tree.InsertRange(net.IP(first.AsSlice()), net.IP(last.AsSlice()), record(parts[2])))
	}
	var out bytes.Buffer
	_, err = tree.WriteTo(&out)
	require.NoError(t, err)
	return out.Bytes()
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]func(string) mmdbtype.DataType{
		"as MaxMind and DB-IP have it": geo,
		"as IPinfo has it": func(code string) mmdbtype.DataType {
			return mmdbtype.Map{"country": mmdbtype.String("Somewhere"), "country_code": mmdbtype.String(code)}
		},
		"by its code alone": func(code string) mmdbtype.DataType { return mmdbtype.Map{"country": mmdbtype.String(code)} },
	} {
		for _, bits := range []int{24, 28, 32} {
			c, err := Open(files(t, string(database(t, 6, bits, record)), ""), slog.New(slog.DiscardHandler))
			require.NoError(t, err, name)
			requireAnswers(t, c)
			require.Equal(t, "of a test", c.About())
		}
	}
	c, err := Open(files(t, string(database(t, 4, 24, geo)), ""), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, "CN", c.Of(netip.MustParseAddr("1.0.1.1")))
	require.Empty(t, c.Of(netip.MustParseAddr("2001:200::1")))
}

// A changed file is read again. A broken or missing file does not affect the data read before.
func TestFollow(t *testing.T) {
	t.Parallel()
	var log dbtest.Log
	path := files(t, lines4, lines6)
	c, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Follow(ctx, time.Millisecond); close(ended) }()
	is := func(address, want string) {
		t.Helper()
		at := netip.MustParseAddr(address)
		require.Eventually(t, func() bool { return c.Of(at) == want }, dbtest.Patience, dbtest.Tick)
	}
	says := func(text string, times int) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Count(log.String(), text) == times }, dbtest.Patience, dbtest.Tick)
	}
	write(t, path, []byte("16777216,16777471,NZ\n"))
	is("1.0.0.1", "NZ")
	write(t, path, []byte("16777216,16777471,NZ\n5,"))
	says("cannot be read", 1)
	requireOf(t, c, "1.0.0.1", "NZ")
	write(t, path, database(t, 6, 24, geo))
	is("1.0.0.1", "AU")
	require.NoError(t, os.Remove(path))
	says("cannot be read", 2)
	requireOf(t, c, "2001:200::1", "JP")
	write(t, path, []byte(lines4))
	write(t, path+"6", []byte("2001:200::,2001:200:134:ffff:ffff:ffff:ffff:ffff,KR\n"))
	is("2001:200::1", "KR")
	cancel()
	<-ended
}

func requireOf(t *testing.T, c *Countries, address, want string) {
	t.Helper()
	require.Equal(t, want, c.Of(netip.MustParseAddr(address)))
}

// Look-ups in random ranges equal a search through all ranges.
func TestAtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	for range dbtest.LongOrShort(200, 20) {
		type span struct {
			first, last uint64
			code        string
		}
		var spans []span
		var text strings.Builder
		for next := uint64(1 + random.IntN(3)); next < 1<<32 && len(spans) < 200; {
			last := min(next+uint64(random.Int64N(1<<random.IntN(27))), 1<<32-1)
			spans = append(spans, span{next, last, []string{"DE", "FR", ""}[random.IntN(3)]})
			fmt.Fprintf(&text, "%d,%d,%s\n", next, last, spans[len(spans)-1].code)
			next = last + 1 + uint64(random.IntN(2)*random.IntN(1<<20))
		}
		text.WriteString("ffff::,ffff::1,IT\n")
		table := newTable()
		require.NoError(t, table.readLines(text.String()))
		at := func(key uint64) {
			want := ""
			for _, s := range spans {
				if s.first <= key && key <= s.last {
					want = s.code
				}
			}
			address := netip.AddrFrom4([4]byte{byte(key >> 24), byte(key >> 16), byte(key >> 8), byte(key)})
			require.Equal(t, want, table.of(address), key)
		}
		for _, s := range spans {
			at(s.first)
			at(s.last)
			at(min(s.last+1, 1<<32-1))
			at(1 + random.Uint64N(1<<32-1))
		}
		at(1)
		at(1<<32 - 1)
	}
}

// Whatever a file contains, reading it returns a table or an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte(lines4))
	f.Add([]byte(lines6))
	f.Add(database(f, 6, 24, geo))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, read := range []func(*table) error{
			func(table *table) error { return table.readLines(string(content)) },
			func(table *table) error { return table.readDatabase(content) },
		} {
			if table := newTable(); read(table) == nil {
				for address := range answers {
					table.of(netip.MustParseAddr(address).Unmap())
				}
			}
		}
	})
}

// debian is the path of tor-geoipdb's files.
const debian = "/usr/share/tor/geoip"

func TestDebiansFile(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(debian); err != nil {
		t.Skip("Debian's tor-geoipdb is not installed")
	}
	c, err := Open(debian, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Contains(t, c.About(), "CC BY-SA")
	require.Equal(t, "US", c.Of(netip.MustParseAddr("8.8.8.8")))
	require.Equal(t, "US", c.Of(netip.MustParseAddr("2001:4860:4860::8888")))
	require.Greater(t, len(c.table.Load().from), 300_000)
}

func BenchmarkOf(b *testing.B) {
	if _, err := os.Stat(debian); err != nil {
		b.Skip("Debian's tor-geoipdb is not installed")
	}
	c, err := Open(debian, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	four, six := make([]netip.Addr, 1<<12), make([]netip.Addr, 1<<12)
	for i := range four {
		n := rand.Uint32()
		four[i] = netip.AddrFrom4([4]byte{byte(n>>24)%223 + 1, byte(n >> 16), byte(n >> 8), byte(n)})
		six[i] = netip.AddrFrom16([16]byte{0x2a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	for name, addresses := range map[string][]netip.Addr{"IPv4": four, "IPv6": six} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.Of(addresses[i%len(addresses)])
			}
		})
	}
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t, err := read(debian)
			require.NoError(b, err)
			b.ReportMetric(float64(10*len(t.from)), "kept-bytes")
		}
	})
}
