package counter

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"footfall/db"
	"footfall/visit"
)

// How an app tells visitors apart.
const (
	byAddress = "address" // by their address
	byID      = "id"      // by the id that the caller gives them
	byHash    = "hashed"  // by a keyed hash of their address
	byDay     = "daily"   // by a hash whose key changes each day
)

var visitorModes = []string{byAddress, byID, byHash, byDay}

// How long ids may be, in bytes.
const (
	longestID      = 256 // of visitors
	longestVisitID = 64  // of visits
)

// checkVisitor checks an id that a caller gives a visitor.
func checkVisitor(id string) error {
	if id == "" {
		return visit.Errorf(visit.Invalid, "visitor", "it is missing: give the id by which you know the visitor")
	}
	return checkID("visitor", id, longestID)
}

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

// visitorByID returns the visitor that an id stands for.
func (a *app) visitorByID(secret Secret, id string) (netip.Addr, error) {
	if err := checkVisitor(id); err != nil {
		return netip.Addr{}, err
	}
	return secret.hashOf(a.id, byID, id), nil
}

// visitorByAddress returns the visitor that an address stands for. Where hashes change each day,
// dayKey is the key of the day.
func (a *app) visitorByAddress(secret Secret, address netip.Addr, dayKey []byte) (netip.Addr, error) {
	network, err := visit.NetworkOf(address, a.ipv6Prefix)
	if err != nil || a.mode == byAddress {
		return network, err
	}
	parts := []string{string(network.AsSlice())}
	if a.mode == byDay {
		parts = append(parts, string(dayKey))
	}
	return secret.hashOf(a.id, a.mode, parts...), nil
}

// hashOf returns the visitor of an app that an id or an address stands for: 120 bits of a keyed
// hash, in fd00::/8.
func (s Secret) hashOf(app int32, mode string, parts ...string) netip.Addr {
	sum := s.sum(append([]string{"visitor", fmt.Sprint(app), mode}, parts...)...)
	var address [16]byte
	address[0] = 0xfd
	copy(address[1:], sum)
	return netip.AddrFrom16(address)
}

// StoredAs returns the addresses under which an app may have stored a visitor. A visitor is typed
// as an address, as an id (with id: in front where it could be read as something else), or as
// reports write one who is a hash: an address in fd00::/8. Where hashes change each day there is
// one address for each day whose key is still there, that of the latest day first.
func (a *Admin) StoredAs(ctx context.Context, app *db.App, typed string) (ips []netip.Addr, err error) {
	if stored, err := netip.ParseAddr(typed); err == nil && visit.IsHash(stored) {
		return []netip.Addr{stored}, nil
	}
	err = a.db.Read(ctx, func(q *db.Queries) (err error) {
		ips, err = a.storedAs(ctx, q, app, strings.TrimPrefix(typed, ignoredID))
		return err
	})
	return ips, wrap("find a visitor of app "+app.Name, err)
}

// storedAs does so for an address or an id.
func (a *Admin) storedAs(ctx context.Context, q *db.Queries, row *db.App, visitor string) (ips []netip.Addr, err error) {
	if err := checkSecret(row, a.secret); err != nil {
		return nil, visit.Errorf(visit.Invalid, "app", "%v", err)
	}
	app, err := newApp(*row, a.secret)
	if err != nil {
		return nil, err
	}
	if app.mode == byID {
		ip, err := app.visitorByID(a.secret, visitor)
		return []netip.Addr{ip}, err
	}
	address, err := visit.ParseAddress(visitor)
	if err != nil {
		return nil, err
	}
	days := []db.DayKey{{}} // no key, where none is needed
	if app.mode == byDay {
		if days, err = q.DayKeysList(ctx); err != nil {
			return nil, err
		}
	}
	for _, day := range slices.Backward(days) {
		ip, err := app.visitorByAddress(a.secret, address, day.Key)
		if err != nil {
			return nil, err
		}
		ips = append(ips, ip)
	}
	return ips, nil
}
