package visit

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// visitorOf returns the visitor that an address counts as.
func visitorOf(address string, ipv6Prefix int) (netip.Addr, error) {
	read, err := ParseAddress(address)
	if err != nil {
		return netip.Addr{}, err
	}
	return NetworkOf(read, ipv6Prefix)
}

// If a row has no visitor the address is refused, and problem is a part of the error.
func TestVisitorOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, address string
		prefix        int
		visitor       string
		problem       string
	}{
		{"IPv4", "192.168.0.1", 64, "192.168.0.1", ""},
		{"IPv4 whatever the prefix", "192.168.0.1", 32, "192.168.0.1", ""},
		{"IPv4-mapped IPv6 is the IPv4 address", "::ffff:192.168.0.1", 64, "192.168.0.1", ""},
		{"IPv4-mapped IPv6 in hexadecimal", "::FFFF:c0a8:1", 32, "192.168.0.1", ""},
		{"IPv6 counts by its /64", "2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::", ""},
		{"a neighbour in the /64 is the same visitor", "2001:0DB8:1:2::", 64, "2001:db8:1:2::", ""},
		{"another /64 is another", "2001:db8:1:3::6", 64, "2001:db8:1:3::", ""},
		{"IPv6 by the shortest prefix", "2001:db8:1:2:3:4:5:6", 32, "2001:db8::", ""},
		{"IPv6 by a prefix inside a byte", "2001:db8:1:ff:3:4:5:6", 60, "2001:db8:1:f0::", ""},
		{"IPv6 whole", "2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6", ""},
		{"IPv4-compatible IPv6 is IPv6", "::192.168.0.1", 128, "::192.168.0.1", ""},
		{"NAT64 is IPv6", "64:ff9b::192.168.0.1", 128, "64:ff9b::192.168.0.1", ""},
		{"6to4 is IPv6", "2002:c0a8:1::5", 64, "2002:c0a8:1::", ""},

		{"nothing", "", 64, "", "missing"},
		{"a zone", "fe80::1%eth0", 64, "", "zone"},
		{"an empty zone", "fe80::1%", 64, "", "zone"},
		{"a zone on IPv4-mapped IPv6", "::ffff:192.168.0.1%eth0", 64, "", "zone"},
		{"space before", " 192.168.0.1", 64, "", "space"},
		{"a line break behind", "192.168.0.1\n", 64, "", "space"},
		{"a port", "192.168.0.1:80", 64, "", "port"},
		{"a port on IPv6", "[2001:db8::1]:80", 64, "", "port"},
		{"brackets", "[2001:db8::1]", 64, "", "not an IPv4 or IPv6"},
		{"a network", "192.168.0.0/24", 64, "", "network"},
		{"two addresses", "192.168.0.1, 192.168.0.2", 64, "", "not an IPv4 or IPv6"},
		{"leading zeros", "192.168.0.01", 64, "", "not an IPv4 or IPv6"},
		{"three parts", "192.168.1", 64, "", "not an IPv4 or IPv6"},
		{"one number", "3232235521", 64, "", "not an IPv4 or IPv6"},
		{"hexadecimal", "0xc0.0xa8.0.1", 64, "", "not an IPv4 or IPv6"},
		{"a part too great", "192.168.0.256", 64, "", "not an IPv4 or IPv6"},
		{"a name", "localhost", 64, "", "not an IPv4 or IPv6"},
		{"NUL", "192.168.0.1\x00", 64, "", "not an IPv4 or IPv6"},
		{"full-width digits", "１９２.168.0.1", 64, "", "not an IPv4 or IPv6"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got, err := visitorOf(test.address, test.prefix)
			if test.visitor == "" {
				var input *Error
				if !errors.As(err, &input) || input.Field != "ip" || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("visitorOf(%q) = %v, %v; want an error about the ip that says %q", test.address, got, err, test.problem)
				}
				return
			}
			if err != nil || got != netip.MustParseAddr(test.visitor) {
				t.Errorf("visitorOf(%q, %d) = %v, %v; want %s", test.address, test.prefix, got, err, test.visitor)
			}
		})
	}
}

// A wrong prefix is an error of the app's settings, not of the caller.
func TestNetworkOfRefusesPrefixesOutsideTheRange(t *testing.T) {
	t.Parallel()
	for _, prefix := range []int{-1, 0, 31, 129} {
		for _, address := range []string{"2001:db8::1", "192.0.2.1"} {
			var input *Error
			if got, err := visitorOf(address, prefix); err == nil || errors.As(err, &input) {
				t.Errorf("prefix %d: %v, %v; want an error that is not about the input", prefix, got, err)
			}
		}
	}
}

func FuzzVisitorOf(f *testing.F) {
	for _, seed := range []string{"192.168.0.1", "::ffff:1.2.3.4", "2001:db8::1", "fe80::1%eth0", "[::1]:80", "::", "1.2.3.4/8", "%"} {
		f.Add(seed, 64)
	}
	f.Fuzz(func(t *testing.T, address string, prefix int) {
		prefix = 32 + int(uint(prefix)%97)
		visitor, err := visitorOf(address, prefix)
		if err != nil {
			var input *Error
			if !errors.As(err, &input) || input.Field != "ip" || input.Message() == "" {
				t.Fatalf("visitorOf(%q): %v is not an error about the ip", address, err)
			}
			return
		}
		if !visitor.IsValid() || visitor.Zone() != "" || visitor.Is4In6() {
			t.Errorf("visitorOf(%q, %d) = %v", address, prefix, visitor)
		}
		if again, err := visitorOf(visitor.String(), prefix); err != nil || again != visitor {
			t.Errorf("visitorOf(%q, %d) = %v, which gives %v, %v", address, prefix, visitor, again, err)
		}
	})
}

func BenchmarkVisitorOf(b *testing.B) {
	for _, bench := range []struct{ name, address string }{
		{"ipv4", "192.168.0.1"},
		{"mapped", "::ffff:192.168.0.1"},
		{"ipv6", "2001:db8:1:2:3:4:5:6"},
		{"refused", "192.168.0.1:80"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = visitorOf(bench.address, 64)
			}
		})
	}
}
