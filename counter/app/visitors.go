package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"footfall/db"
	"footfall/visit"
	"footfall/visit/tag"
)

// How an app tells visitors apart.
const (
	ByAddress = "address" // by their address
	ByID      = "id"      // by the id that the caller gives them
	ByHash    = "hashed"  // by a keyed hash of their address
	ByBrowser = "browser" // by one of their address and of what their browser and system are called
	ByDay     = "daily"   // by a hash whose key changes each day
)

var visitorModes = []string{ByAddress, ByID, ByHash, ByBrowser, ByDay}

// How long ids may be, in bytes.
const (
	longestID      = 256 // of visitors
	longestVisitID = 64  // of visits
)

// BadgeVisitor is the one visitor that all are who are counted by a badge: nearly all of them come
// through the image proxies of code hosts, which hide who they are. No network has this address,
// and of hashes one in 2¹²⁰.
var BadgeVisitor = netip.MustParseAddr("fd00::ba:d9e")

// checkVisitor checks an id that a caller gives a visitor in a field.
func checkVisitor(field, id string) error {
	if id == "" {
		return visit.Errorf(visit.Invalid, field, "it is missing: give the id by which you know the visitor")
	}
	return checkID(field, id, longestID)
}

// CheckVisitID checks an id that a caller gives a visit.
func CheckVisitID(id string) error { return checkID("id", id, longestVisitID) }

// checkID checks an id that a caller gives, and names the field that it is in.
func checkID(field, id string, longest int) error {
	switch {
	case len(id) > longest:
		return visit.Errorf(visit.Invalid, field, "it is longer than %d bytes: shorten it, or send a hash of it", longest)
	case !utf8.ValidString(id):
		return visit.Errorf(visit.Invalid, field, "it is not valid UTF-8")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return visit.Errorf(visit.Invalid, field, "it has control characters: leave them out")
	}
	return nil
}

// VisitorByID returns the visitor that an id stands for.
func (a *App) VisitorByID(secret Secret, id string) (netip.Addr, error) {
	if err := checkVisitor("visitor", id); err != nil {
		return netip.Addr{}, err
	}
	return a.hashOf(secret, ByID, id), nil
}

// VisitorByAddress returns the visitor that an address stands for. Where browsers behind it are told
// apart, agent is what theirs is; its version and device, which change, do not matter. Where hashes
// change each day, dayKey is the key of the day.
func (a *App) VisitorByAddress(secret Secret, address netip.Addr, agent tag.Agent, dayKey []byte) (netip.Addr, error) {
	network, err := visit.NetworkOf(address, int(a.Ipv6Prefix))
	if err != nil || a.Mode == ByAddress {
		return network, err
	}
	parts := []string{string(network.AsSlice())}
	switch a.Mode {
	case ByBrowser:
		parts = append(parts, agent.Browser, agent.System)
	case ByDay:
		parts = append(parts, string(dayKey))
	}
	return a.hashOf(secret, a.Mode, parts...), nil
}

// VisitorsByAddress are all whom an address may stand for: where browsers are told apart, one for each.
func (a *App) VisitorsByAddress(secret Secret, address netip.Addr, dayKey []byte) (visitors []netip.Addr, err error) {
	agents := []tag.Agent{{}}
	if a.Mode == ByBrowser {
		agents = tag.Named()
	}
	for _, agent := range agents {
		visitor, err := a.VisitorByAddress(secret, address, agent, dayKey)
		if err != nil {
			return nil, err
		}
		visitors = append(visitors, visitor)
	}
	return visitors, nil
}

// HashedFor is the number of the app in hashes of visitors and of logs: that which it had where they began.
func (a *App) HashedFor() int32 {
	if a.HashedAs != nil {
		return *a.HashedAs
	}
	return a.ID
}

// hashOf returns the visitor of an app that an id or an address stands for: 120 bits of a keyed
// hash, in fd00::/8.
func (a *App) hashOf(s Secret, mode string, parts ...string) netip.Addr {
	sum := s.sum(append([]string{"visitor", fmt.Sprint(a.HashedFor()), mode}, parts...)...)
	var address [16]byte
	address[0] = 0xfd
	copy(address[1:], sum)
	return netip.AddrFrom16(address)
}

// Secret is the key of the hashes that stand for visitors. It is kept outside the database, so that
// somebody who has the tables alone cannot try addresses against the hashes. Empty: none.
type Secret []byte

// SecretBytes is the least length of a Secret.
const SecretBytes = 32

// ID tells a secret from others and reveals nothing else about it.
func (s Secret) ID() []byte {
	if len(s) == 0 {
		return nil
	}
	return s.sum("id")[:8]
}

func (s Secret) sum(parts ...string) []byte {
	mac := hmac.New(sha256.New, s)
	for _, part := range parts {
		var length [4]byte                                       // in front, so that different lists of parts never give the same text
		binary.BigEndian.PutUint32(length[:], uint32(len(part))) //nolint:gosec // parts are short
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// WebhookKey is the key by which the calls of a webhook are signed. Without a salt, as webhooks of 0.1.0
// are, those of the same number in several databases with this secret have the same key.
func (s Secret) WebhookKey(id int32, salt []byte) []byte {
	if salt == nil {
		return s.sum("webhook", fmt.Sprint(id))
	}
	return s.sum("webhook", fmt.Sprint(id), string(salt))
}

// DeviceKey is the key by which the cookies of browsers that have signed in are signed.
func (s Secret) DeviceKey() []byte { return s.sum("device") }

// LogKey is the key by which the logs of an app are known again whose visitors are hashed.
func (s Secret) LogKey(id int32) []byte { return s.sum("logs", fmt.Sprint(id)) }

// checkSecret checks that the visitors of an app are hashed with this secret, if with any.
func checkSecret(row *db.App, secret Secret) error {
	if row.Visitor == ByAddress || bytes.Equal(row.SecretID, secret.ID()) {
		return nil
	}
	return fmt.Errorf("visitors of app %s are hashed with a secret that this instance does not have: "+
		"start it with the --secret-file that the app was made with", row.Name)
}

// ignored are the visitors whose visits an app does not count, and the hosts of pages that none may
// come from.
type ignored struct {
	networks   []netip.Prefix
	ids, hosts map[string]bool
}

// IDPrefix stands in front of an id of a visitor, since an id may look like an address; FromPrefix
// in front of a host.
const (
	IDPrefix   = "id:"
	FromPrefix = "from:"
)

func newIgnored(list []string) ignored {
	i := ignored{ids: map[string]bool{}, hosts: map[string]bool{}}
	for _, one := range list {
		if host, ok := strings.CutPrefix(one, FromPrefix); ok {
			i.hosts[host] = true
		} else if id, ok := strings.CutPrefix(one, IDPrefix); ok {
			i.ids[id] = true
		} else if network, err := netip.ParsePrefix(one); err == nil {
			i.networks = append(i.networks, network)
		}
	}
	return i
}

// Ignores reports whether an app does not count the visits of an address (the zero one: unknown) or
// an id ("": none), or from a page ("": none), which the visited one's address may name, too.
func (a *App) Ignores(address netip.Addr, id, referrer, uri string) bool {
	for _, network := range a.ignored.networks {
		if network.Contains(address) {
			return true
		}
	}
	return id != "" && a.ignored.ids[id] || len(a.ignored.hosts) > 0 &&
		(a.ignored.from(tag.HostOf(referrer)) || a.ignored.from(tag.MarkedHost(uri)))
}

// from reports whether a host is one of the hosts, or below one.
func (i *ignored) from(host string) bool {
	for ; host != ""; _, host, _ = strings.Cut(host, ".") {
		if i.hosts[host] {
			return true
		}
	}
	return false
}

// readIgnored reads a setting of ignored visitors: a host that they come from, an address, a
// network, or else an id.
func readIgnored(raw string) (string, error) {
	if host, ok := strings.CutPrefix(raw, FromPrefix); ok {
		return readFrom(host)
	}
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
		return "", invalid("%.64q is a network of IPv4 addresses written as IPv6: write it like 192.0.2.0/24", raw)
	case err == nil && network != network.Masked():
		return "", invalid("%.64q is an address within a network: write the network, %v, or the address alone", raw, network.Masked())
	case err == nil:
		return network.String(), nil
	case strings.Contains(raw, "/"):
		return "", invalid("%.64q is not a network: write one like 192.0.2.0/24 or 2001:db8::/32, or id:… for the id of a visitor",
			raw)
	}
	return readIgnoredID(raw)
}

func readFrom(raw string) (string, error) {
	host := tag.HostOf("http://" + raw)
	if host == "" || strings.ContainsAny(raw, `/\?#@:*`) {
		return "", invalid("%.64q is not a host that visitors come from: write one like spam.example", raw)
	}
	return FromPrefix + host, nil
}

func readIgnoredID(id string) (string, error) {
	if err := checkVisitor("visitor", id); err != nil {
		return "", invalid("%.64q is neither an address, nor a network, nor the id of a visitor", id)
	}
	return IDPrefix + id, nil
}
