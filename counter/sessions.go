package counter

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"time"

	"footfall/counter/app"
	"footfall/visit"
)

// A session is what a browser keeps in place of a key: the number of the key, until when it holds,
// and a MAC of both, keyed with the key's hash. So nothing has to be stored, every instance knows
// it, and it ends when the key is revoked. It does not tell the key.
const (
	SessionFor   = 30 * 24 * time.Hour
	mostTries    = 10 // keys that may be typed a minute from one address
	tries        = 0  // stands for an app where tries are counted; none has this number
	wrongLinks   = -1 // and this one for wrong links
	sessionStart = 4 + 8
)

// SignIn takes a key of the scope read and returns its app and a session.
func (c *Counter) SignIn(ctx context.Context, key string, peer netip.Addr) (name, session string, err error) {
	if wait := c.rates.take(sourceOf(tries, peer), mostTries, 1); wait > 0 {
		return "", "", c.tooMany(wait, "too many keys were typed from one address; try again in a minute")
	}
	register, err := c.apps.Current(ctx)
	if err != nil {
		return "", "", err
	}
	if found := register.Key(key); found != nil && found.Opens(app.ScopeRead) {
		for _, a := range register.Apps {
			if a.ID == found.App {
				c.uses.note(found.ID)
				return a.Name, newSession(found.ID, app.HashOf(key), c.clock().Add(SessionFor)), nil
			}
		}
	}
	return "", "", visit.Errorf(visit.Forbidden, "key", "it opens nothing here: type a key of the scope %s that is not revoked", app.ScopeRead)
}

func newSession(key int32, hash [sha256.Size]byte, until time.Time) string {
	var signed [sessionStart]byte
	binary.BigEndian.PutUint32(signed[:4], uint32(key))          //nolint:gosec // read as it is written
	binary.BigEndian.PutUint64(signed[4:], uint64(until.Unix())) //nolint:gosec // read as it is written
	return base64.RawURLEncoding.EncodeToString(append(signed[:], sessionMAC(hash, signed)...))
}

func sessionMAC(hash [sha256.Size]byte, signed [sessionStart]byte) []byte {
	mac := hmac.New(sha256.New, hash[:])
	mac.Write([]byte("footfall session"))
	mac.Write(signed[:])
	return mac.Sum(nil)
}

// sessionKey returns the key of a session with which a reader looks at an app; nil if the session
// does not hold (as "" does not), or its key is none of this app, or does not let them look.
func (c *Counter) sessionKey(register *app.Register, a *app.App, session string) *app.Key {
	sent, err := base64.RawURLEncoding.DecodeString(session)
	if err != nil || len(sent) != sessionStart+sha256.Size {
		return nil
	}
	signed := [sessionStart]byte(sent[:sessionStart])
	id := int32(binary.BigEndian.Uint32(signed[:4]))                  //nolint:gosec // as it was written
	until := time.Unix(int64(binary.BigEndian.Uint64(signed[4:])), 0) //nolint:gosec // as it was written
	key, hash := register.KeyOf(id)
	if !c.clock().Before(until) || key == nil || !hmac.Equal(sent[sessionStart:], sessionMAC(hash, signed)) {
		return nil
	}
	if key.App != a.ID || !key.Opens(app.ScopeRead) {
		return nil
	}
	c.uses.note(key.ID)
	return key
}
