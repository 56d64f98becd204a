package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"footfall/db"
)

// DeviceLifetime is the lifetime of a known browser's cookie. A known browser is one that has signed in to the account before.
// Password attempts of known browsers have their own limits. So attackers who guess passwords in other browsers do not lock out
// the users of known browsers. The cookie does not replace the password.
const DeviceLifetime = 365 * 24 * time.Hour

// SignDevices returns a copy of s that signs the cookies of known browsers (see DeviceLifetime) with key. All instances use the
// same key.
func (s *Accounts) SignDevices(key []byte) *Accounts {
	signing := *s
	signing.deviceKey = key
	return &signing
}

// ForDevice returns a copy of s for a known browser (see DeviceLifetime). The password checks of this copy do not wait for the
// checks of unknown browsers.
func (s *Accounts) ForDevice() *Accounts {
	known := *s
	known.hashSlots = s.deviceSlots
	return &known
}

// NewDevice returns the account of a new session, and the cookie that identifies the session's browser in later sign-ins.
func (s *Accounts) NewDevice(ctx context.Context, session string) (account int32, cookie string, err error) {
	row, err := read(ctx, s, func(q *Queries) (PasswordOfSessionRow, error) { return q.PasswordOfSession(ctx, hashOf(session)) })
	if errors.Is(err, db.ErrNoRows) {
		err = errWrongSignIn // a change of the password has just ended the session
	}
	if err != nil {
		return 0, "", err
	}
	random, _ := newToken()
	signed := strconv.FormatInt(time.Now().Unix(), 10) + "." + random
	return row.ID, signed + "." + s.signDevice(row.ID, row.Password, signed), nil
}

// Device returns the ID of a known browser (see DeviceLifetime). It reads the ID from the cookie that cookieFor returns for the
// account with this name. It returns "" if no account has the name, or if the cookie is missing or has expired. It also returns
// "" if the password has changed since the cookie was signed.
func (s *Accounts) Device(ctx context.Context, name string, cookieFor func(account int32) string) (device string, err error) {
	_, folded, err := readName(name)
	if err != nil {
		return "", nil //nolint:nilerr // no account has such a name
	}
	row, err := read(ctx, s, func(q *Queries) (AccountNamedRow, error) { return q.AccountNamed(ctx, folded) })
	if errors.Is(err, db.ErrNoRows) || row.Password == "" {
		return "", nil
	} else if err != nil {
		return "", err
	}
	cookie := cookieFor(row.ID)
	at := strings.LastIndexByte(cookie, '.')
	if at < 0 || !hmac.Equal([]byte(s.signDevice(row.ID, row.Password, cookie[:at])), []byte(cookie[at+1:])) {
		return "", nil
	}
	since, _, _ := strings.Cut(cookie, ".")
	if seconds, err := strconv.ParseInt(since, 10, 64); err != nil || time.Unix(seconds, 0).Before(expiryBound(DeviceLifetime)) {
		return "", nil //nolint:nilerr // other values are not signed
	}
	return cookie[:at], nil
}

// signDevice returns the signature of a cookie. The signed text contains the password's hash, so that cookies become invalid when
// the password changes.
func (s *Accounts) signDevice(account int32, password, signed string) string {
	mac := hmac.New(sha256.New, s.deviceKey)
	fmt.Fprintf(mac, "%d %s %s", account, signed, password) // unambiguous: only the last value could contain a blank
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
