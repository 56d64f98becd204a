package counter

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

// The limits besides those of apps. Each number stands for an app, and no app has it.
const (
	passwordsFrom = 0  // passwords tried from one address
	wrongLinks    = -1 // links followed from one address that show or do nothing
	passwordsFor  = -2 // passwords that strangers tried for one name
	keysFrom      = -3 // wrong admin keys sent from one address
	devicesFor    = -4 // passwords that known browsers tried for one name
	deviceTries   = -5 // passwords that one known browser tried
	fromNetwork   = -9 // is added to a limit of addresses for the networks that they are in

	mostTries        = 10 // a minute from one address
	mostTriesOfName  = 20
	mostTriesNetwork = 100 // a minute from a /48 of IPv6, in which one caller has 65,536 addresses as sourceOf counts them
	networkBits      = 48

	tooManyPasswords = "too many passwords were tried from one address, or for one name; try again in %d s"
)

// Try refuses a stranger if too many passwords were tried from the address or for the name ("": no name is known).
// Each instance counts for itself, as with all limits.
func (c *Counter) Try(peer netip.Addr, name string) error {
	wait := c.takeTry(passwordsFrom, peer)
	if wait == 0 { // an address that is refused takes no tries from the name
		wait = c.takeTryOf(passwordsFor, name, mostTriesOfName)
	}
	return c.refuseTry(wait, tooManyPasswords)
}

// TryDevice refuses a browser that has signed in before if too many passwords were tried in it (device) or in all such
// browsers for the name. Strangers take none of these tries.
func (c *Counter) TryDevice(device, name string) error {
	wait := c.takeTryOf(deviceTries, device, mostTries)
	if wait == 0 {
		wait = c.takeTryOf(devicesFor, name, mostTriesOfName)
	}
	return c.refuseTry(wait, tooManyPasswords)
}

// TryKey refuses an address that has sent too many wrong admin keys: a program that has an old one keeps nobody from signing in.
func (c *Counter) TryKey(peer netip.Addr) error {
	return c.refuseTry(c.takeTry(keysFrom, peer), "too many wrong keys were sent from one address; try again in %d s")
}

// TryLink refuses an address that has followed too many links that show or do nothing: an image of another site
// is enough to follow one, so that they keep nobody from signing in.
func (c *Counter) TryLink(peer netip.Addr) error {
	if wait := c.rates.take(sourceOf(wrongLinks, peer), mostTries, 1); wait > 0 {
		return c.tooMany(wait, "too many links that show nothing were followed from one address; try again in a minute")
	}
	return nil
}

func (c *Counter) refuseTry(wait time.Duration, says string) error {
	if wait == 0 {
		return nil
	}
	return c.tooMany(wait, says, int64((wait+time.Second-1)/time.Second))
}

// takeTry takes a try of an address, and of its network. It returns how long until there is one.
func (c *Counter) takeTry(limit int32, peer netip.Addr) time.Duration {
	wait := c.rates.take(sourceOf(limit, peer), mostTries, 1)
	if wait == 0 && peer.Is6() {
		network, _ := peer.Prefix(networkBits) // cannot fail for IPv6
		wait = c.rates.take(source{app: limit + fromNetwork, from: network.Addr().As16()}, mostTriesNetwork, 1)
	}
	return wait
}

// takeTryOf takes a try of what a text names; "" has any number.
func (c *Counter) takeTryOf(limit int32, text string, most int64) time.Duration {
	if text == "" {
		return 0
	}
	hash := sha256.Sum256([]byte(text))
	return c.rates.take(source{app: limit, from: [16]byte(hash[:])}, most, 1)
}
