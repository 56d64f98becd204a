package app

import (
	"fmt"
	"net/netip"
	"strings"
)

// ignored are the visitors whose visits an app does not count.
type ignored struct {
	networks []netip.Prefix
	ids      map[string]bool
}

// IDPrefix stands in front of an id of a visitor, since an id may look like an address.
const IDPrefix = "id:"

func newIgnored(list []string) (i ignored) {
	for _, one := range list {
		if id, ok := strings.CutPrefix(one, IDPrefix); ok {
			if i.ids == nil {
				i.ids = map[string]bool{}
			}
			i.ids[id] = true
		} else if network, err := netip.ParsePrefix(one); err == nil {
			i.networks = append(i.networks, network)
		}
	}
	return i
}

// Ignores reports whether an app does not count the visits of an address (the zero one: unknown) or
// an id ("": none).
func (a *App) Ignores(address netip.Addr, id string) bool {
	for _, network := range a.ignored.networks {
		if network.Contains(address) {
			return true
		}
	}
	return id != "" && a.ignored.ids[id]
}

// readIgnored reads a setting of ignored visitors: an address, a network, or else an id.
func readIgnored(raw string) (string, error) {
	if id, ok := strings.CutPrefix(raw, IDPrefix); ok {
		return readIgnoredID(id)
	}
	if address, err := netip.ParseAddr(raw); err == nil && address.Zone() == "" {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()).String(), nil
	}
	network, err := netip.ParsePrefix(raw)
	switch {
	case err == nil && network.Addr().Is4In6():
		return "", fmt.Errorf("ignore: %.64q is a network of IPv4 addresses written as IPv6: write it like 192.0.2.0/24", raw)
	case err == nil && network != network.Masked():
		return "", fmt.Errorf("ignore: %.64q is an address within a network: write the network, %v, or the address alone", raw, network.Masked())
	case err == nil:
		return network.String(), nil
	case strings.Contains(raw, "/"):
		return "", fmt.Errorf("ignore: %.64q is not a network: write one like 192.0.2.0/24 or 2001:db8::/32, or id:… for the id of a visitor", raw)
	}
	return readIgnoredID(raw)
}

func readIgnoredID(id string) (string, error) {
	if err := checkVisitor(id); err != nil {
		return "", fmt.Errorf("ignore: %.64q is neither an address, nor a network, nor the id of a visitor", id)
	}
	return IDPrefix + id, nil
}
