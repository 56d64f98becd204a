package visit

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddress parses an IP address. An IPv4 address that is mapped to IPv6 becomes an IPv4 address again. An address
// with a zone is refused, because a zone has a meaning on only one machine. Every error is an *Error about the field
// "ip".
func ParseAddress(address string) (netip.Addr, error) {
	read, err := netip.ParseAddr(address)
	if err != nil || read.Zone() != "" {
		return netip.Addr{}, &Error{Kind: Invalid, Field: "ip", Text: Text{Format: addressProblem(address)}}
	}
	return read.Unmap(), nil
}

// hashes is a range of private addresses. If visitors are stored as hashes, each hash is stored as an address in this
// range.
var hashes = netip.MustParsePrefix("fd00::/8")

// IsHash reports whether a visitor is stored as a hash.
func IsHash(visitor netip.Addr) bool { return hashes.Contains(visitor) }

// NetworkOf returns the address under which the visits from an address are counted. For IPv4, this is the address
// itself. For IPv6, it is the network of ipv6Prefix bits (32 to 128), because one visitor has many IPv6 addresses.
func NetworkOf(address netip.Addr, ipv6Prefix int) (netip.Addr, error) {
	if ipv6Prefix < 32 || ipv6Prefix > 128 {
		return netip.Addr{}, fmt.Errorf("IPv6 prefix of %d bits: it must be from 32 to 128", ipv6Prefix)
	}
	if address.Is4() || ipv6Prefix == 128 {
		return address, nil
	}
	network, err := address.Prefix(ipv6Prefix)
	return network.Addr(), err
}

// addressProblem returns the probable reason why an address could not be parsed.
func addressProblem(address string) string {
	_, notPort := netip.ParseAddrPort(address)
	_, notNetwork := netip.ParsePrefix(address)
	switch {
	case strings.Contains(address, "%"):
		return "it has a zone (the part after %%): leave the zone out"
	case address == "":
		return "it is missing: give the visitor's IPv4 or IPv6 address"
	case strings.TrimSpace(address) != address:
		return "it has spaces around it: give only the address"
	case notPort == nil:
		return "it has a port: give only the address"
	case notNetwork == nil:
		return "it is a network: give one address"
	}
	return "it is not an IPv4 or IPv6 address: write one like 192.0.2.1 or 2001:db8::1"
}
