package counter

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

// What is limited besides requests to apps: each stands for an app, and none has these numbers.
const (
	triesFrom  = 0  // passwords and keys that one address has tried
	wrongLinks = -1 // links that show or do nothing, which one address has followed
	triesOf    = -2 // passwords that were tried for one name

	mostTries       = 10 // a minute from one address
	mostTriesOfName = 20
)

// Try refuses a caller who has tried too many passwords or keys, or where too many were tried for a name
// ("": none is named). Each instance counts for itself, as with all limits.
func (c *Counter) Try(peer netip.Addr, name string) error {
	wait := c.rates.take(sourceOf(triesFrom, peer), mostTries, 1)
	if wait == 0 && name != "" {
		hash := sha256.Sum256([]byte(name))
		wait = c.rates.take(source{app: triesOf, from: [16]byte(hash[:])}, mostTriesOfName, 1)
	}
	if wait > 0 {
		return c.tooMany(wait, "too many passwords or keys were tried from one address, or for one name; try again in %d s",
			int64((wait+time.Second-1)/time.Second))
	}
	return nil
}

// TryLink refuses an address that has followed too many links that show or do nothing: an image of another site
// is enough to follow one, so that they keep nobody from signing in.
func (c *Counter) TryLink(peer netip.Addr) error {
	if wait := c.rates.take(sourceOf(wrongLinks, peer), mostTries, 1); wait > 0 {
		return c.tooMany(wait, "too many links that show nothing were followed from one address; try again in a minute")
	}
	return nil
}
