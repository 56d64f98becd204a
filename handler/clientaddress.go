package handler

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"footfall/visit"
)

// Proxies are the networks of trusted proxies, and the header in which they send the client's address. A nil *Proxies, or one
// without networks, trusts no proxy.
type Proxies struct {
	networks []netip.Prefix // none is an IPv4 network in IPv6 notation (::ffff:…)
	header   string         // name in canonical form
}

const (
	defaultProxyHeader = "X-Forwarded-For"
	widestIPv4         = 8 // minimum prefix lengths of trusted networks, in bits; a shorter prefix means a wider network
	widestIPv6         = 16
	mostHops           = 64 // maximum number of addresses to read per request, so that a long header is cheap
)

// NewProxies parses the networks of trusted proxies (CIDRs or single addresses), and the name of the header with the client's
// address; "" means X-Forwarded-For. It returns all errors at once.
func NewProxies(networks []string, header string) (*Proxies, []error) {
	p := &Proxies{header: defaultProxyHeader}
	var faults []error
	for _, written := range networks {
		network, err := readNetwork(strings.TrimSpace(written))
		if err != nil {
			faults = append(faults, fmt.Errorf("--trust-proxy: %.64q %w", written, err))
			continue
		}
		p.networks = append(p.networks, network)
	}
	if header != "" {
		if len(networks) == 0 {
			faults = append(faults, errors.New("--proxy-header: it has no effect without --trust-proxy: set --trust-proxy to the networks of "+
				"your proxies, or leave --proxy-header out"))
		}
		if err := checkProxyHeader(header); err != nil {
			faults = append(faults, fmt.Errorf("--proxy-header: %.64q %w", header, err))
		}
		p.header = http.CanonicalHeaderKey(header)
	}
	if faults != nil {
		return nil, faults
	}
	return p, nil
}

func readNetwork(written string) (netip.Prefix, error) {
	if strings.Contains(written, "%") {
		return netip.Prefix{}, errors.New("has a zone (the part after %), which does not identify a proxy: leave the zone out")
	}
	if address, err := netip.ParseAddr(written); err == nil {
		if address = address.Unmap(); address.IsUnspecified() {
			return netip.Prefix{}, errors.New("is not the address of a machine: write the addresses of your proxies")
		}
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(written)
	if err != nil {
		return netip.Prefix{}, errors.New("is neither a network nor an address: write one like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1")
	}
	widest := widestIPv6
	if network.Addr().Is4() {
		widest = widestIPv4
	}
	switch meant := network.Masked(); {
	case network.Addr().Is4In6():
		return netip.Prefix{}, errors.New("is a network of IPv4 addresses written as IPv6: write it like 10.0.0.0/8")
	case network.Bits() < widest:
		// A wider network would contain clients, which would be trusted as proxies. Rejecting only 0.0.0.0/0 is not enough,
		// because 0.0.0.0/1 and 128.0.0.0/1 together contain the same addresses.
		return netip.Prefix{}, fmt.Errorf("is too wide, because every client in it could claim any address as its own: write "+
			"networks that contain only your proxies, each /%d or narrower", widest)
	case network != meant:
		return netip.Prefix{}, fmt.Errorf("is an address within a network: write the network, %v, or only the address, %v", meant,
			network.Addr())
	}
	return network, nil
}

// otherHeaders, and headers that start with one of otherPrefixes, never contain the client's address, and any client can set
// them. So checkProxyHeader rejects them.
var (
	otherHeaders = []string{
		"Authorization", "Cache-Control", "Connection", "Cookie", "Date", "Dnt", "Expect", "Host", "Keep-Alive", "Origin", "Pragma", "Priority",
		"Proxy-Authorization", "Proxy-Connection", "Range", "Referer", "Server", "Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Upgrade-Insecure-Requests", "User-Agent", "Via", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Server",
		"X-Request-Id", "X-Requested-With",
	}
	otherPrefixes = []string{"Accept", "Access-Control-", "Content-", "If-", "Sec-"}
)

func checkProxyHeader(header string) error {
	if !httpguts.ValidHeaderFieldName(header) {
		return errors.New("cannot be the name of a header: write only the name, like X-Real-IP")
	}
	header = http.CanonicalHeaderKey(header)
	begins := func(prefix string) bool { return strings.HasPrefix(header, prefix) }
	switch {
	case header == "Forwarded":
		return errors.New("is not supported: have the proxy send X-Forwarded-For, and leave --proxy-header out")
	case slices.Contains(otherHeaders, header), slices.ContainsFunc(otherPrefixes, begins):
		return errors.New("is not a header that names a client: write the one that your proxy sets, like X-Real-IP")
	}
	return nil
}

// client returns the client's address. If the peer (the other end of the connection) is a trusted proxy, this is the address in
// the proxy's header. Otherwise it is the peer's address. The address has no zone. An IPv4 address mapped into IPv6 is returned
// as IPv4.
func (p *Proxies) client(r *http.Request) (netip.Addr, error) {
	peer, err := peerOf(r)
	if err != nil {
		return netip.Addr{}, visit.Errorf(visit.Invalid, "ip", "the connection has no IP address: connect over TCP")
	}
	if !p.trusts(peer) {
		return peer, nil
	}
	return p.clientFromHeader(r.Header[p.header], peer)
}

// CheckCountryHeader checks the name of the header in which trusted proxies send the client's country; "" means none.
func CheckCountryHeader(header string, networks []string) error {
	switch {
	case header == "":
		return nil
	case len(networks) == 0:
		return errors.New("--country-header: it has no effect without --trust-proxy: set --trust-proxy to the networks of your proxies, " +
			"or leave --country-header out")
	case !httpguts.ValidHeaderFieldName(header):
		return fmt.Errorf("--country-header: %.64q cannot be the name of a header: write only the name, like CF-IPCountry", header)
	}
	return nil
}

// country returns the country that a trusted proxy sends in the header. If the request has several lines of this header, the
// client may have sent one of them. country then returns all lines joined, which is not a valid country.
func (p *Proxies) country(r *http.Request, header string) string {
	if header == "" || !p.isSender(r) {
		return ""
	}
	return strings.Join(r.Header.Values(header), ",")
}

// CheckSignInHeader checks the name of the header in which trusted proxies send the signed-in user; "" means none.
func CheckSignInHeader(header string, networks []string) error {
	if header == "" {
		return nil
	}
	if len(networks) == 0 {
		return errors.New("--sign-in-header: it has no effect without --trust-proxy: set --trust-proxy to the networks of your proxies, " +
			"or leave --sign-in-header out")
	}
	if checkProxyHeader(header) != nil || http.CanonicalHeaderKey(header) == defaultProxyHeader {
		return fmt.Errorf("--sign-in-header: %.64q is not a header that names the signed-in user: write the one that your "+
			"proxy sets, like Remote-User", header)
	}
	return nil
}

// TrustNetworks reports whether at least one trusted network contains more than one address.
func (p *Proxies) TrustNetworks() bool {
	return slices.ContainsFunc(p.networks, func(network netip.Prefix) bool { return !network.IsSingleIP() })
}

// signedInUser returns the name of the signed-in user that a trusted proxy sends in the header, or "". It ignores a header with
// several lines, because the client may have sent one of the lines.
func (p *Proxies) signedInUser(r *http.Request, header string) string {
	if header == "" || !p.isSender(r) {
		return ""
	}
	if said := r.Header.Values(header); len(said) == 1 {
		return said[0]
	}
	return ""
}

// isSender reports whether the request is from a trusted proxy.
func (p *Proxies) isSender(r *http.Request) bool {
	peer, err := peerOf(r)
	return err == nil && p.trusts(peer)
}

// peerOf returns the address of the connection's other end: a client or a proxy.
func peerOf(r *http.Request) (netip.Addr, error) {
	connection, err := netip.ParseAddrPort(r.RemoteAddr)
	return connection.Addr().WithZone("").Unmap(), err
}

// overTLS reports whether the client used TLS, according to a trusted proxy. With a chain of proxies, X-Forwarded-Proto may
// contain several words. The first word is from the proxy that the client connected to.
func (p *Proxies) overTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return p.isSender(r) && strings.EqualFold(strings.TrimSpace(first), "https")
}

func (p *Proxies) trusts(address netip.Addr) bool {
	return p != nil && slices.ContainsFunc(p.networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

// clientFromHeader returns the client's address from the lines of the proxy header: the last address that is not a trusted proxy
// or, if all are trusted proxies, the first address. Each proxy appends the address of its peer. So any addresses before the
// client's own address may be forged by the client, and clientFromHeader ignores them.
func (p *Proxies) clientFromHeader(lines []string, peer netip.Addr) (netip.Addr, error) {
	if len(lines) == 1 && trimBlanks(lines[0]) == "" {
		return peer, nil
	}
	found, hops := peer, 0
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			if hops++; hops > mostHops {
				return netip.Addr{}, p.refusal(fmt.Sprintf("contains %d addresses of trusted proxies and no address of a client", mostHops))
			}
			var element string
			line, element, more = cutLast(line)
			var ok bool
			if found, ok = readHop(trimBlanks(element)); !ok {
				return netip.Addr{}, p.refusal("contains a value that is not an IP address")
			}
			if !p.trusts(found) {
				return found, nil
			}
		}
	}
	return found, nil
}

// refusal returns an error about the proxy header. The error does not quote the header's value, which may contain anything.
func (p *Proxies) refusal(problem string) error {
	return visit.Errorf(visit.Invalid, "ip", "the header %s of the trusted proxy %s: fix the proxy's configuration", p.header, problem)
}

func trimBlanks(s string) string { return strings.Trim(s, " \t") }

// cutLast cuts the last element off a comma-separated line. more reports whether other elements precede it.
func cutLast(line string) (before, last string, more bool) {
	if comma := strings.LastIndexByte(line, ','); comma >= 0 {
		return line[:comma], line[comma+1:], true
	}
	return "", line, false
}

// readHop parses an address in the proxy header. Some load balancers add a port or brackets. readHop rejects an address with a
// zone, because a zone has a meaning only on the proxy's machine.
func readHop(written string) (netip.Addr, bool) {
	var address netip.Addr
	var err error
	inner, opened := strings.CutPrefix(written, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	switch {
	case strings.Contains(written, "%"):
		return netip.Addr{}, false
	case opened && closed:
		if address, err = netip.ParseAddr(inner); address.Is4() {
			return netip.Addr{}, false // only IPv6 addresses may be in brackets
		}
	case opened, strings.Count(written, ":") == 1:
		var pair netip.AddrPort
		pair, err = netip.ParseAddrPort(written)
		address = pair.Addr()
	default:
		address, err = netip.ParseAddr(written)
	}
	return address.Unmap(), err == nil
}
