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

// How an app distinguishes visitors.
const (
	ByAddress = "address" // by address
	ByID      = "id"      // by an id that the caller sends
	ByHash    = "hashed"  // by a keyed hash of the address
	ByBrowser = "browser" // by a keyed hash of the address and the names of browser and system
	ByDay     = "daily"   // by a hash of the address whose key changes every day
)

var visitorModes = []string{ByAddress, ByID, ByHash, ByBrowser, ByDay}

// Maximum length of ids, in bytes.
const (
	longestID      = 256 // of visitors
	longestVisitID = 64  // of visits
)

// BadgeVisitor is the one visitor for all visits that badges count. Nearly all of these visits arrive through the image
// proxies of code hosts, which hide the visitor. No network uses this address, and a hash equals it with a probability of
// 2⁻¹²⁰.
var BadgeVisitor = netip.MustParseAddr("fd00::ba:d9e")

// checkVisitor validates a visitor's id in a field of a request.
func checkVisitor(field, id string) error {
	if id == "" {
		return visit.Errorf(visit.Invalid, field, "it is missing: send your own id for the visitor")
	}
	return checkID(field, id, longestID)
}

// CheckVisitID validates the id of a visit.
func CheckVisitID(id string) error { return checkID("id", id, longestVisitID) }

// checkID validates an id. field is the name of the field in errors.
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

// VisitorByID returns the visitor for an id.
func (a *App) VisitorByID(secret Secret, id string) (netip.Addr, error) {
	if err := checkVisitor("visitor", id); err != nil {
		return netip.Addr{}, err
	}
	return a.hashOf(secret, ByID, id), nil
}

// VisitorByAddress returns the visitor for an address. The mode ByBrowser also needs agent, but ignores its version and
// device, which change. The mode ByDay needs dayKey, the key of the day.
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

// VisitorsByAddress returns all visitors that an address may belong to: one for each browser if the app distinguishes
// browsers.
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

// HashedFor returns the app's ID in hashes of visitors and logs. An app that was moved here keeps the ID that it had in its
// first database.
func (a *App) HashedFor() int32 {
	if a.HashedAs != nil {
		return *a.HashedAs
	}
	return a.ID
}

// hashOf returns the visitor for an id or an address: 120 bits of a keyed hash, in fd00::/8.
func (a *App) hashOf(s Secret, mode string, parts ...string) netip.Addr {
	sum := s.sum(append([]string{"visitor", fmt.Sprint(a.HashedFor()), mode}, parts...)...)
	var address [16]byte
	address[0] = 0xfd
	copy(address[1:], sum)
	return netip.AddrFrom16(address)
}

// Secret is the key of visitors' hashes. It is kept outside the database: someone with only the tables cannot test
// addresses against the hashes. It may be empty.
type Secret []byte

// SecretBytes is the minimum length of a Secret.
const SecretBytes = 32

// ID identifies a secret and reveals nothing else about it.
func (s Secret) ID() []byte {
	if len(s) == 0 {
		return nil
	}
	return s.sum("id")[:8]
}

func (s Secret) sum(parts ...string) []byte {
	mac := hmac.New(sha256.New, s)
	for _, part := range parts {
		var length [4]byte                                       // so that different lists of parts never produce the same text
		binary.BigEndian.PutUint32(length[:], uint32(len(part))) //nolint:gosec // parts are short
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// WebhookKey returns the key that signs the calls of a webhook. Webhooks from 0.1.0 have no salt: two such webhooks in
// different databases share a key if their IDs and the databases' secrets are equal.
func (s Secret) WebhookKey(id int32, salt []byte) []byte {
	if salt == nil {
		return s.sum("webhook", fmt.Sprint(id))
	}
	return s.sum("webhook", fmt.Sprint(id), string(salt))
}

// DeviceKey returns the key that signs the cookies of browsers that have signed in.
func (s Secret) DeviceKey() []byte { return s.sum("device") }

// LogKey returns the key for hashing log lines of an app with hashed visitors. id is App.HashedFor.
func (s Secret) LogKey(id int32) []byte { return s.sum("logs", fmt.Sprint(id)) }

// checkSecret returns an error if the app's visitors are hashed with another secret.
func checkSecret(row *db.App, secret Secret) error {
	if row.Visitor == ByAddress || bytes.Equal(row.SecretID, secret.ID()) {
		return nil
	}
	return fmt.Errorf("visitors of app %s are hashed with a secret that this instance does not have: "+
		"start it with the --secret-file that the app was made with", row.Name)
}

// ignored contains the networks and ids of visitors, and the hosts of referrers, whose visits an app does not count.
type ignored struct {
	networks   []netip.Prefix
	ids, hosts map[string]bool
}

// IDPrefix marks a visitor's id in the setting ignore, since an id may look like an address. FromPrefix marks the host of a
// referrer.
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

// Ignores reports whether the app skips a visit because of its address (zero: unknown), visitor id, referrer, or a
// source named in the visited URI.
func (a *App) Ignores(address netip.Addr, id, referrer, uri string) bool {
	for _, network := range a.ignored.networks {
		if network.Contains(address) {
			return true
		}
	}
	return id != "" && a.ignored.ids[id] || len(a.ignored.hosts) > 0 &&
		(a.ignored.ignoresHost(tag.HostOf(referrer)) || a.ignored.ignoresHost(tag.MarkedHost(uri)))
}

// ignoresHost reports whether a host, or a domain above it, is listed.
func (i *ignored) ignoresHost(host string) bool {
	for ; host != ""; _, host, _ = strings.Cut(host, ".") {
		if i.hosts[host] {
			return true
		}
	}
	return false
}

// readIgnored reads an entry of the setting ignore: a referrer's host, an address, a network, or a visitor's id.
func readIgnored(raw string) (string, error) {
	if host, ok := strings.CutPrefix(raw, FromPrefix); ok {
		return readIgnoredHost(host)
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
		return "", invalid("%.64q is an address within a network: write the network, %v, or only the address", raw, network.Masked())
	case err == nil:
		return network.String(), nil
	case strings.Contains(raw, "/"):
		return "", invalid("%.64q is not a network: write one like 192.0.2.0/24 or 2001:db8::/32, or id:… for the id of a visitor",
			raw)
	}
	return readIgnoredID(raw)
}

func readIgnoredHost(raw string) (string, error) {
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
