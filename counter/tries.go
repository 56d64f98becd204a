package counter

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

// The constants from passwordsFrom to deviceTries identify limits that do not belong to an app. In a rateKey, they are in
// the place of an app's ID, which is never 0 or negative. A known browser is one in which a user has signed in before.
const (
	passwordsFrom = 0  // passwords from one address
	wrongLinks    = -1 // invalid links from one address
	passwordsFor  = -2 // passwords from unknown browsers for one name
	keysFrom      = -3 // wrong admin keys from one address
	devicesFor    = -4 // passwords from known browsers for one name
	deviceTries   = -5 // passwords from one known browser
	fromNetwork   = -9 // added to one of the constants above for the limit of an IPv6 network

	mostTries        = 10 // a minute from one address, or in one known browser
	mostTriesOfName  = 20
	mostTriesNetwork = 100 // a minute from an IPv6 /48, which contains 65,536 /64 networks: each is one source for rateKeyOf
	networkBits      = 48

	tooManyPasswords = "too many passwords were tried from one address, or for one name; try again in %d s"
)

// Try uses up a try of a password in an unknown browser. It returns an error if too many passwords were tried from the
// address, or for the name. An empty name has no limit. Each instance counts the tries separately, as for all limits.
func (c *Counter) Try(peer netip.Addr, name string) error {
	wait := c.takeTry(passwordsFrom, peer)
	if wait == 0 { // a refused address does not use up the name's limit
		wait = c.takeTryOf(passwordsFor, name, mostTriesOfName)
	}
	return c.refuseTry(wait, tooManyPasswords)
}

// TryDevice uses up a try of a password in a known browser (device). It returns an error if too many passwords were tried
// in this browser, or for the name in all known browsers. An empty device has no limit. Tries in unknown browsers do not
// use up these limits.
func (c *Counter) TryDevice(device, name string) error {
	wait := c.takeTryOf(deviceTries, device, mostTries)
	if wait == 0 {
		wait = c.takeTryOf(devicesFor, name, mostTriesOfName)
	}
	return c.refuseTry(wait, tooManyPasswords)
}

// TryKey returns an error if an address sent too many wrong admin keys. Wrong keys and passwords have separate limits, so
// that a program that sends an old key does not block sign-ins.
func (c *Counter) TryKey(peer netip.Addr) error {
	return c.refuseTry(c.takeTry(keysFrom, peer), "too many wrong keys were sent from one address; try again in %d s")
}

// TryLink returns an error if an address followed too many invalid links. An image on another site can make a browser
// follow links, and this must not block sign-ins. So invalid links and passwords have separate limits.
func (c *Counter) TryLink(peer netip.Addr) error {
	if wait := c.rates.take(rateKeyOf(wrongLinks, peer), mostTries, 1); wait > 0 {
		return c.refuseRate(wait, "too many invalid links were followed from one address; try again in a minute")
	}
	return nil
}

func (c *Counter) refuseTry(wait time.Duration, format string) error {
	if wait == 0 {
		return nil
	}
	return c.refuseRate(wait, format, int64((wait+time.Second-1)/time.Second))
}

// takeTry uses up one try of an address and, for IPv6, one of its network. If no try is left, it returns the time until the
// next one.
func (c *Counter) takeTry(limit int32, peer netip.Addr) time.Duration {
	wait := c.rates.take(rateKeyOf(limit, peer), mostTries, 1)
	if wait == 0 && peer.Is6() {
		network, _ := peer.Prefix(networkBits) // cannot fail for IPv6
		wait = c.rates.take(rateKey{app: limit + fromNetwork, from: network.Addr().As16()}, mostTriesNetwork, 1)
	}
	return wait
}

// takeTryOf uses up one try of a text, such as a name. If no try is left, it returns the time until the next one. An empty
// text has no limit.
func (c *Counter) takeTryOf(limit int32, text string, most int64) time.Duration {
	if text == "" {
		return 0
	}
	hash := sha256.Sum256([]byte(text))
	return c.rates.take(rateKey{app: limit, from: [16]byte(hash[:])}, most, 1)
}
