package admin

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// StoredAs returns the addresses under which an app may have stored a visitor. A visitor is typed
// as an address, as an id (with id: in front where it could be read as something else), or as
// reports write one who is a hash: an address in fd00::/8. Where hashes change each day there is
// one address for each day whose key is still there, that of the latest day first.
func (a *Admin) StoredAs(ctx context.Context, row *db.App, typed string) (ips []netip.Addr, err error) {
	if stored, err := netip.ParseAddr(typed); err == nil && visit.IsHash(stored) {
		return []netip.Addr{stored}, nil
	}
	err = a.db.Read(ctx, func(q *db.Queries) (err error) {
		ips, err = a.storedAs(ctx, q, row, strings.TrimPrefix(typed, app.IDPrefix))
		return err
	})
	return ips, wrap("find a visitor of app "+row.Name, err)
}

// storedAs does so for an address or an id.
func (a *Admin) storedAs(ctx context.Context, q *db.Queries, row *db.App, visitor string) (ips []netip.Addr, err error) {
	of, err := app.New(*row, a.secret)
	if err != nil {
		return nil, err
	}
	if of.Fault != nil {
		return nil, visit.Errorf(visit.Invalid, "app", "%v", of.Fault)
	}
	if of.Mode == app.ByID {
		ip, err := of.VisitorByID(a.secret, visitor)
		return []netip.Addr{ip}, err
	}
	address, err := visit.ParseAddress(visitor)
	if err != nil {
		return nil, err
	}
	days := []db.DayKey{{}} // no key, where none is needed
	if of.Mode == app.ByDay {
		if days, err = q.DayKeysList(ctx); err != nil {
			return nil, err
		}
	}
	for _, day := range slices.Backward(days) {
		ip, err := of.VisitorByAddress(a.secret, address, day.Key)
		if err != nil {
			return nil, err
		}
		ips = append(ips, ip)
	}
	return ips, nil
}
