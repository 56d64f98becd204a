package handler

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

// forwardedCase is a request and its expected client.
type forwardedCase struct {
	name   string
	peer   string
	trust  string   // --trust-proxy, separated by spaces
	header string   // --proxy-header
	lines  []string // of the request's header
	client string   // "": the request is refused
}

const (
	proxy     = "10.0.0.1:4711"
	neighbour = "203.0.113.7:4711"
	networks  = "10.0.0.0/8 2001:db8:ff::/48"

	lookedAt = 64 // elements of a header
)

// forgeable are headers in which some proxies name a client. Any client can send them. The attacks send more.
var forgeable = []string{"X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "Forwarded"}

// unasked are requests of untrusted peers, whose headers are ignored.
func unasked() (cases []forwardedCase) {
	for _, name := range forgeable {
		value := "198.51.100.66"
		if name == "Forwarded" {
			value = "for=198.51.100.66"
		}
		line := name + ": " + value
		cases = append(cases,
			forwardedCase{name: "nobody is trusted: " + name, peer: neighbour, lines: []string{line}, client: "203.0.113.7"},
			forwardedCase{name: "the peer is not trusted: " + name, peer: neighbour, trust: networks, lines: []string{line}, client: "203.0.113.7"},
		)
		if name != defaultProxyHeader {
			cases = append(cases, forwardedCase{name: "another header is the proxy's: " + name, peer: proxy, trust: networks,
				lines: []string{line, "X-Forwarded-For: 198.51.100.7"}, client: "198.51.100.7"})
		}
	}
	return cases
}

// behindProxy are requests from a trusted proxy, with the lines of their X-Forwarded-For.
func behindProxy() (cases []forwardedCase) {
	const real, realIPv6 = "198.51.100.7", "2001:db8::7"
	hops := func(n int) string { return strings.Repeat(", 10.9.8.7", n) }
	for _, c := range []struct {
		name   string
		lines  []string
		client string
	}{
		{"no header", nil, "10.0.0.1"},
		{"an empty header", []string{""}, "10.0.0.1"},
		{"the client", []string{real}, real},
		{"an IPv6 client", []string{realIPv6}, realIPv6},
		{"a mapped client is IPv4", []string{"::ffff:198.51.100.7"}, real},

		// A client's own entries are to the left of those that the proxy appended.
		{"a forged address before the client", []string{"203.0.113.66, " + real}, real},
		{"the client forges the whole chain", []string{"203.0.113.66, 10.0.0.9, 10.0.0.8, " + real + ", 10.0.0.2"}, real},
		{"garbage before the client", []string{"<script>, " + real}, real},
		{"a chain too long, before the client", []string{"10.9.8.7" + hops(1000) + ", " + real}, real},

		// All lines form one list.
		{"a forged line before the proxy's", []string{"203.0.113.66", real}, real},
		{"the second proxy in a line of its own", []string{"203.0.113.66, " + real, "10.0.0.2"}, real},
		{"each in a line of its own", []string{"203.0.113.66", real, "10.0.0.3", "10.0.0.2"}, real},
		{"an empty line of the proxy's", []string{"203.0.113.66", ""}, ""},
		{"two empty lines are two empty elements", []string{"", ""}, ""},
		{"a line of garbage of the proxy's", []string{real, "unknown"}, ""},

		// Trusted hops.
		{"one hop", []string{real + ", 10.0.0.2"}, real},
		{"hops over IPv4 and IPv6", []string{realIPv6 + ", 2001:db8:ff::2, 10.0.0.2"}, realIPv6},
		{"a mapped hop", []string{real + ", ::ffff:10.0.0.2"}, real},
		{"a hop with a port", []string{real + ", 10.0.0.2:8080"}, real},
		{"an IPv6 hop with a port", []string{real + ", [2001:db8:ff::2]:8080"}, real},
		{"an untrusted hop is the client", []string{real + ", 203.0.113.80, 10.0.0.2"}, "203.0.113.80"},
		{"just outside the trusted network", []string{real + ", 11.0.0.0"}, "11.0.0.0"},
		{"just inside the trusted network", []string{real + ", 10.255.255.255"}, real},
		{"nobody but proxies: the first of them", []string{"10.0.0.4, 10.0.0.3, 10.0.0.2"}, "10.0.0.4"},
		{"as many hops as are looked at", []string{"10.0.0.4" + hops(lookedAt-1)}, "10.0.0.4"},
		{"the client behind as many hops", []string{real + hops(lookedAt-1)}, real},
		{"one hop more", []string{real + hops(lookedAt)}, ""},
		{"as many hops in lines of their own, and one more", slices.Repeat([]string{"10.9.8.7"}, lookedAt+1), ""},
		{"100,000 elements before the client", []string{strings.Repeat(",", 100_000) + real}, real},

		// Forms that some balancers write.
		{"brackets and a port", []string{"[2001:db8::7]:443"}, realIPv6},
		{"a mapped address in brackets with a port", []string{"[::ffff:198.51.100.7]:443"}, real},
		{"what may be IPv6 and a port is IPv6", []string{"2001:db8::1:443"}, "2001:db8::1:443"},
		{"blanks and tabs around", []string{"203.0.113.66,\t " + real + " \t"}, real},

		// Values that are not an address where one is expected.
		{"a port that is none", []string{"198.51.100.7:http"}, ""},
		{"a colon without a port", []string{"198.51.100.7:"}, ""},
		{"two ports", []string{"198.51.100.7:80:80"}, ""},
		{"IPv4 in brackets", []string{"[198.51.100.7]"}, ""},
		{"IPv4 in brackets with a port", []string{"[198.51.100.7]:80"}, ""},
		{"a bracket that is not closed", []string{"[2001:db8::7"}, ""},
		{"a bracket that is not opened", []string{"2001:db8::7]"}, ""},
		{"a zone", []string{"fe80::1%eth0"}, ""},
		{"a zone in brackets", []string{"[fe80::1%eth0]:443"}, ""},
		{"an empty zone", []string{"2001:db8::7%"}, ""},
		{"unknown", []string{"unknown"}, ""},
		{"garbage between hops", []string{real + ", x, 10.0.0.2"}, ""},
		{"an empty element at the end", []string{real + ","}, ""},
		{"an empty element between hops", []string{real + ", , 10.0.0.2"}, ""},
		{"a comma alone", []string{","}, ""},
		{"quotes", []string{`"198.51.100.7"`}, ""},
		{"a network", []string{"198.51.100.0/24"}, ""},
		{"leading zeros", []string{"198.051.100.007"}, ""},
	} {
		full := forwardedCase{name: c.name, peer: proxy, trust: networks, client: c.client}
		for _, value := range c.lines {
			full.lines = append(full.lines, "X-Forwarded-For: "+value)
		}
		cases = append(cases, full)
	}
	return cases
}

// setUp are requests to services with other settings.
func setUp() []forwardedCase {
	return []forwardedCase{
		{name: "an IPv6 peer", peer: "[2001:db8::7]:4711", client: "2001:db8::7"},
		{name: "a mapped peer is IPv4", peer: "[::ffff:203.0.113.7]:4711", client: "203.0.113.7"},
		{name: "a peer's zone is left out", peer: "[fe80::7%eth0]:4711", client: "fe80::7"},
		{name: "a peer on a Unix socket", peer: "@", lines: []string{"X-Forwarded-For: 198.51.100.66"}, client: ""},
		{name: "no peer", peer: "", lines: []string{"X-Forwarded-For: 198.51.100.66"}, client: ""},
		{name: "a peer without a port", peer: "203.0.113.7", client: ""},

		{name: "a trusted mapped peer", peer: "[::ffff:10.0.0.1]:4711", trust: networks,
			lines: []string{"X-Forwarded-For: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "a trusted IPv6 peer", peer: "[2001:db8:ff::1]:4711", trust: networks,
			lines: []string{"X-Forwarded-For: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "a trusted link-local peer with a zone", peer: "[fe80::1%eth0]:4711", trust: "fe80::/64",
			lines: []string{"X-Forwarded-For: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "the neighbour of a trusted IPv6 network", peer: "[2001:db8:fe::1]:4711", trust: networks,
			lines: []string{"X-Forwarded-For: 198.51.100.66"}, client: "2001:db8:fe::1"},
		{name: "one trusted address", peer: proxy, trust: "10.0.0.1",
			lines: []string{"X-Forwarded-For: 203.0.113.66, 198.51.100.7"}, client: "198.51.100.7"},
		{name: "the neighbour of one trusted address", peer: "10.0.0.2:4711", trust: "10.0.0.1",
			lines: []string{"X-Forwarded-For: 198.51.100.66"}, client: "10.0.0.2"},
		{name: "a trusted address written as mapped", peer: proxy, trust: "::ffff:10.0.0.1",
			lines: []string{"X-Forwarded-For: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "the widest networks", peer: "[2001:ffff::1]:4711", trust: "10.0.0.0/8 2001::/16",
			lines: []string{"X-Forwarded-For: 2002::1, 10.1.1.1"}, client: "2002::1"},
		{name: "networks listed twice, with blanks around", peer: proxy, trust: "10.0.0.0/8 10.0.0.0/8 \t10.0.0.1",
			lines: []string{"X-Forwarded-For: 198.51.100.7"}, client: "198.51.100.7"},

		{name: "the header's name in lower case", peer: proxy, trust: networks,
			lines: []string{"x-forwarded-for: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "the name in two ways is one header", peer: proxy, trust: networks,
			lines: []string{"x-forwarded-for: 203.0.113.66", "X-Forwarded-For: 198.51.100.7"}, client: "198.51.100.7"},

		{name: "another header", peer: proxy, trust: networks, header: "X-Real-IP",
			lines: []string{"X-Real-IP: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "another header, and X-Forwarded-For forged", peer: proxy, trust: networks, header: "X-Real-IP",
			lines: []string{"X-Forwarded-For: 203.0.113.66", "X-Real-IP: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "another header is missing, and X-Forwarded-For forged", peer: proxy, trust: networks, header: "X-Real-IP",
			lines: []string{"X-Forwarded-For: 203.0.113.66"}, client: "10.0.0.1"},
		{name: "another header is empty, and X-Forwarded-For forged", peer: proxy, trust: networks, header: "X-Real-IP",
			lines: []string{"X-Forwarded-For: 203.0.113.66", "X-Real-IP:"}, client: "10.0.0.1"},
		{name: "another header, forged and then set", peer: proxy, trust: networks, header: "X-Real-IP",
			lines: []string{"X-Real-IP: 203.0.113.66", "X-Real-IP: 198.51.100.7"}, client: "198.51.100.7"},
		{name: "another header from an untrusted peer", peer: neighbour, trust: networks, header: "X-Real-IP",
			lines: []string{"X-Real-IP: 203.0.113.66"}, client: "203.0.113.7"},
		{name: "another header that holds no address", peer: proxy, trust: networks, header: "True-Client-IP",
			lines: []string{"True-Client-IP: unknown", "X-Forwarded-For: 198.51.100.7"}, client: ""},
	}
}

func forwardedCases() []forwardedCase { return slices.Concat(unasked(), behindProxy(), setUp()) }

func (c forwardedCase) proxies(t testing.TB) *Proxies {
	t.Helper()
	if c.trust == "" && c.header == "" {
		return nil
	}
	p, faults := NewProxies(strings.Split(c.trust, " "), c.header)
	require.Empty(t, faults)
	return p
}

func (c forwardedCase) request() *http.Request {
	r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
	for _, line := range c.lines {
		name, value, _ := strings.Cut(line, ":")
		r.Header.Add(name, strings.TrimPrefix(value, " "))
	}
	return r
}

func TestForwardedCases(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, c := range forwardedCases() {
		require.False(t, names[c.name], "two cases are called %q", c.name)
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, r := c.proxies(t), c.request()
			before := r.Header.Clone()
			got, err := p.client(r)
			assert.Equal(t, before, r.Header)
			if c.client == "" {
				requireRefused(t, p, c.lines, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, netip.MustParseAddr(c.client), got)
		})
	}
}

// requireRefused checks errors of client: the caller may read them, they name the header, and they contain no part of
// its value.
func requireRefused(t testing.TB, p *Proxies, lines []string, err error) {
	t.Helper()
	var told *visit.Error
	require.ErrorAs(t, err, &told)
	require.Equal(t, visit.Invalid, told.Kind)
	require.NoError(t, told.Err)
	switch told.Message() {
	case "ip: the connection has no IP address: connect over TCP":
		return
	case fmt.Sprintf("ip: the header %s of the trusted proxy contains a value that is not an IP address: "+
		"fix the proxy's configuration", p.header):
	case fmt.Sprintf("ip: the header %s of the trusted proxy contains %d addresses of trusted proxies and no address of a client: "+
		"fix the proxy's configuration", p.header, lookedAt):
	default:
		require.Fail(t, "an error of another wording", told.Message())
	}
	require.NotEmpty(t, lines)
}

// net/http gives every header its canonical name. A header under another name was not received from a connection.
func TestHeaderIsReadByItsCanonicalNameOnly(t *testing.T) {
	t.Parallel()
	p, faults := NewProxies([]string{"10.0.0.0/8"}, "")
	require.Empty(t, faults)
	got, err := p.client(&http.Request{RemoteAddr: proxy, Header: http.Header{"x-forwarded-for": {"203.0.113.66"}}})
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1", got.String())
	got, err = p.client(&http.Request{RemoteAddr: proxy})
	require.NoError(t, err, "no header at all")
	assert.Equal(t, "10.0.0.1", got.String())
}

func TestNewProxies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		networks []string
		header   string
		reads    string // the header that is used
	}{
		{"nothing", nil, "", "X-Forwarded-For"},
		{"one network", []string{"10.0.0.0/8"}, "", "X-Forwarded-For"},
		{"the default header by name", []string{"10.0.0.0/8"}, "x-forwarded-for", "X-Forwarded-For"},
		{"a header in lower case", []string{"10.0.0.0/8"}, "cf-connecting-ip", "Cf-Connecting-Ip"},
		{"a header like one for other purposes", []string{"10.0.0.0/8"}, "Proxy-Client-IP", "Proxy-Client-Ip"},
		{"a header of one's own", []string{"10.0.0.0/8"}, "Client", "Client"},
	} {
		p, faults := NewProxies(c.networks, c.header)
		assert.Empty(t, faults, c.name)
		require.NotNil(t, p, c.name)
		assert.Equal(t, c.reads, p.header, c.name)
		assert.Len(t, p.networks, len(c.networks), c.name)
	}
}

func TestNewProxiesRefuses(t *testing.T) {
	t.Parallel()
	const tooWide = "is too wide, because every client in it could claim any address as its own"
	on := []string{"10.0.0.0/8"}
	for _, c := range []struct {
		name     string
		networks []string
		header   string
		says     []string // one for each fault
	}{
		{"everybody", []string{"0.0.0.0/0"}, "", []string{`--trust-proxy: "0.0.0.0/0" ` + tooWide}},
		{"everybody in two halves", []string{"0.0.0.0/1", "128.0.0.0/1"}, "", []string{tooWide, tooWide}},
		{"a bit too wide", []string{"10.0.0.0/7"}, "", []string{"each /8 or narrower"}},
		{"a bit too wide over IPv6", []string{"2001::/15"}, "", []string{"each /16 or narrower"}},
		{"everybody's IPv4, mapped", []string{"::ffff:0:0/96"}, "", []string{"IPv4 addresses written as IPv6: write it like 10.0.0.0/8"}},
		{"a mapped network", []string{"::ffff:10.0.0.0/104"}, "", []string{"IPv4 addresses written as IPv6"}},
		{"nobody's address", []string{"0.0.0.0"}, "", []string{`"0.0.0.0" is not the address of a machine: write the addresses of your proxies`}},
		{"an address within a network", []string{"10.0.0.1/8"}, "", []string{"write the network, 10.0.0.0/8, or only the address, 10.0.0.1"}},
		{"an IPv6 address within a network", []string{"2001:db8::1/32"}, "",
			[]string{"write the network, 2001:db8::/32, or only the address, 2001:db8::1"}},
		{"a zone", []string{"fe80::1%eth0"}, "", []string{"has a zone (the part after %), which does not identify a proxy: leave the zone out"}},
		{"nothing", []string{""}, "", []string{`--trust-proxy: "" is neither a network nor an address: write one like 10.0.0.0/8`}},
		{"leading zeros", []string{"010.0.0.0/8"}, "", []string{"neither a network nor an address"}},
		{"one bad among good", []string{"10.0.0.0/8", "x", "192.0.2.1"}, "", []string{`--trust-proxy: "x"`}},
		{"something long", []string{strings.Repeat("x", 1000)}, "", []string{`--trust-proxy: "` + strings.Repeat("x", 64) + `" is`}},

		{"a header that nobody may set", nil, "X-Real-IP", []string{"--proxy-header: it has no effect without --trust-proxy"}},
		{"Forwarded", on, "Forwarded", []string{`--proxy-header: "Forwarded" is not supported: have the proxy send X-Forwarded-For`}},
		{"a header with a blank", on, "X Real IP", []string{"cannot be the name of a header: write only the name, like X-Real-IP"}},

		{"everything", []string{"x", "0.0.0.0/0"}, "Cookie", []string{`"x" is neither`, tooWide, "--proxy-header"}},
		{"a bad header without networks", nil, "Host", []string{"without --trust-proxy", "not a header that names a client"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, faults := NewProxies(c.networks, c.header)
			assert.Nil(t, p)
			require.Len(t, faults, len(c.says))
			for i, says := range c.says {
				assert.ErrorContains(t, faults[i], says)
			}
		})
	}
}

func TestNewProxiesRefusesHeadersForOtherPurposes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Host", "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Origin", "Referer", "User-Agent", "Content-Type",
		"Content-Length",
		"Accept", "Accept-Language", "If-None-Match", "Sec-Purpose", "Sec-Fetch-Site", "Access-Control-Request-Method", "DNT", "Connection",
		"Transfer-Encoding", "TE", "Via", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-ID", "cookie", "HOST",
	} {
		_, faults := NewProxies([]string{"10.0.0.0/8"}, name)
		require.Len(t, faults, 1, name)
		assert.EqualError(t, faults[0], fmt.Sprintf(
			"--proxy-header: %q is not a header that names a client: write the one that your proxy sets, like X-Real-IP", name))
	}
}

// Not parallel: allocations are counted over the whole process.
func TestClientAllocatesNothing(t *testing.T) {
	for _, c := range measuredCases() {
		p, r := c.proxies(t), c.request()
		assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = p.client(r) }), c.name)
	}
}

func measuredCases() []forwardedCase {
	forged := []string{"X-Forwarded-For: 203.0.113.66"}
	return []forwardedCase{
		{name: "nobody trusted", peer: neighbour, lines: forged},
		{name: "nobody trusted, IPv6", peer: "[2001:db8::7]:4711", lines: forged},
		{name: "peer not trusted", peer: neighbour, trust: networks, lines: forged},
		{name: "one proxy", peer: proxy, trust: networks, lines: []string{"X-Forwarded-For: 203.0.113.66, 198.51.100.7"}},
		{name: "one hop", peer: proxy, trust: networks, lines: []string{"X-Forwarded-For: 203.0.113.66, 198.51.100.7, 10.0.0.2"}},
		{name: "100,000 elements before the client", peer: proxy, trust: networks,
			lines: []string{"X-Forwarded-For: " + strings.Repeat("10.9.8.7, ", 100_000) + "198.51.100.7"}},
	}
}

func FuzzClient(f *testing.F) {
	for _, c := range forwardedCases() {
		if values := c.request().Header["X-Forwarded-For"]; len(values) > 0 && len(values[0]) < 1000 {
			f.Add(c.peer, values[0], values[len(values)-1])
		}
	}
	for _, seed := range [][3]string{
		{proxy, "", ""}, {proxy, ",", "10.0.0.2"}, {proxy, "10.0.0.3", "10.0.0.2"}, {"[fe80::1%0]:1", "a", "b"},
		{proxy, "x", "::ffff:10.0.0.1, [::1]:80"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	p, faults := NewProxies([]string{"10.0.0.0/8", "2001:db8:ff::/48"}, "")
	require.Empty(f, faults)
	nobody, faults := NewProxies(nil, "")
	require.Empty(f, faults)
	f.Fuzz(func(t *testing.T, peer, left, right string) {
		ask := func(p *Proxies, lines ...string) (netip.Addr, error) {
			got, err := p.client(&http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": lines}})
			if err != nil {
				requireRefused(t, p, lines, err)
				require.Equal(t, netip.Addr{}, got)
				return got, errors.New("refused")
			}
			require.True(t, got.IsValid() && !got.Is4In6() && got.Zone() == "", "%v", got)
			return got, nil
		}
		same := func(want netip.Addr, wantErr error, got netip.Addr, err error) {
			t.Helper()
			require.Equal(t, want, got)
			require.Equal(t, wantErr, err)
		}

		connection, parseErr := netip.ParseAddrPort(peer)
		own := connection.Addr().Unmap().WithZone("")
		for _, distrustful := range []*Proxies{nil, nobody} {
			got, err := ask(distrustful, left, right)
			require.Equal(t, parseErr != nil, err != nil)
			require.Equal(t, own, got)
		}
		if parseErr != nil {
			_, err := ask(p, left, right)
			require.Error(t, err)
			return
		}

		// Several lines form one list.
		one, oneErr := ask(p, left+","+right)
		two, twoErr := ask(p, left, right)
		same(one, oneErr, two, twoErr)

		alone, aloneErr := ask(p, right)
		if !p.trusts(own) {
			require.Equal(t, own, alone)
			same(alone, aloneErr, one, oneErr)
			return
		}
		// An address that is not trusted, or a fault, decides, and hides everything to its left.
		if strings.Trim(right, " \t") != "" && (aloneErr != nil || !p.trusts(alone)) {
			same(alone, aloneErr, one, oneErr)
		}
		got, err := ask(p, left+","+right+",\t198.51.100.7 ")
		same(netip.MustParseAddr("198.51.100.7"), nil, got, err)
		_, err = ask(p, left+","+right+",")
		require.Error(t, err)
	})
}

func TestUnlistedProxies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		peer          string
		header        string
		trust, proxys string // --trust-proxy and --proxy-header
		unlisted      bool
	}{
		{"on this machine", "127.0.0.1:4711", "X-Forwarded-For: 203.0.113.7", "", "", true},
		{"on this machine, over IPv6", "[::1]:4711", "X-Forwarded-For: 203.0.113.7", "", "", true},
		{"beside it", "172.18.0.2:4711", "X-Real-Ip: 203.0.113.7", "", "", true},
		{"mapped into IPv6", "[::ffff:10.0.0.1]:4711", "Forwarded: for=203.0.113.7", "", "", true},
		{"in a unique local network", "[fd00::1]:4711", "Cf-Connecting-Ip: 203.0.113.7", "", "", true},
		{"link-local", "[fe80::1%eth0]:4711", "True-Client-Ip: 203.0.113.7", "", "", true},
		{"another one is trusted", "172.18.0.2:4711", "X-Forwarded-For: 203.0.113.7", "10.0.0.0/8", "", true},
		{"trusted about another header", "10.0.0.1:4711", "X-Forwarded-For: 203.0.113.7", "10.0.0.0/8", "X-Real-IP", true},
		{"a trusted one further away, about another header", "198.51.100.1:4711", "X-Real-Ip: 203.0.113.7", "198.51.100.0/24", "", true},
		{"trusted", "10.0.0.1:4711", "X-Forwarded-For: 203.0.113.7", "10.0.0.0/8", "", false},
		{"trusted, and the client is a neighbour", "10.0.0.1:4711", "X-Forwarded-For: 192.168.1.7", "10.0.0.0/8", "", false},
		{"the trusted one itself asks", "10.0.0.1:4711", "X-Forwarded-For: 10.0.0.1", "10.0.0.0/8", "", false},
		{"a stranger who forges a header", "198.51.100.1:4711", "X-Forwarded-For: 203.0.113.7", "", "", false},
		{"a neighbour who names nobody", "10.0.0.1:4711", "X-Forwarded-Proto: https", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := forwardedCase{trust: c.trust, header: c.proxys}.proxies(t)
			r := forwardedCase{peer: c.peer, lines: []string{c.header}}.request()
			client, err := p.client(r)
			require.NoError(t, err)
			assert.Equal(t, c.unlisted, p.isUnlisted(r, client))
		})
	}
	assert.False(t, (*Proxies)(nil).isUnlisted(&http.Request{}, netip.Addr{}), "the client of a request that is refused")
}

// A proxy that is not trusted is logged once a minute, and each of its requests is counted.
func TestUnlistedProxyIsWarnedOf(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for range 3 {
		assert.Equal(t, http.StatusOK, e.get("/visit?app=shop&uri=http://example.com/").status)
	}
	e.get("/visit?app=demo&uri=http://example.com/&ip=203.0.113.9") // the caller asserts this visitor
	assert.Equal(t, 1, strings.Count(e.log.String(), "a proxy that is not trusted"), e.log)
	assert.NotContains(t, e.log.String(), "203.0.113", "no address is logged")
	assert.Contains(t, e.do(http.MethodGet, e.admin+"/metrics", "", "").body, "\nfootfall_overlooked_proxy_requests_total 3\n")
}
