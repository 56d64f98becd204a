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

// DeviceFor is how long the cookie of a known browser is valid. A browser is known to an account from its first sign-in on.
// Known browsers have tries and a place for hashing of their own, so that strangers who guess passwords keep nobody out who
// has signed in before. The cookie grants nothing else: the password is still needed.
const DeviceFor = 365 * 24 * time.Hour

// SignDevices sets the key by which cookies of known browsers are signed, which is the same in all instances.
func (s *Accounts) SignDevices(key []byte) *Accounts {
	signing := *s
	signing.deviceKey = key
	return &signing
}

// ForDevice returns the accounts for a known browser, whose passwords do not wait for those of strangers.
func (s *Accounts) ForDevice() *Accounts {
	known := *s
	known.places = s.reserved
	return &known
}

// NewDevice makes the cookie of a browser that has just signed in, and returns it with the account that it is for.
func (s *Accounts) NewDevice(ctx context.Context, session string) (account int32, cookie string, err error) {
	row, err := read(ctx, s, func(q *Queries) (PasswordOfSessionRow, error) { return q.PasswordOfSession(ctx, hashOf(session)) })
	if errors.Is(err, db.ErrNoRows) {
		err = errWrong // another password has just ended it
	}
	if err != nil {
		return 0, "", err
	}
	random, _ := newToken()
	signed := strconv.FormatInt(time.Now().Unix(), 10) + "." + random
	return row.ID, signed + "." + s.signDevice(row.ID, row.Password, signed), nil
}

// Device returns the id of a browser that is known to the account of a name, by the cookie that it sends for that account;
// "" if it is not known, the cookie is too old, or the account has another password since.
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
	if seconds, err := strconv.ParseInt(since, 10, 64); err != nil || time.Unix(seconds, 0).Before(ago(DeviceFor)) {
		return "", nil //nolint:nilerr // nothing else is signed
	}
	return cookie[:at], nil
}

// signDevice signs with the password as it is stored, so that another password revokes the cookies of before.
func (s *Accounts) signDevice(account int32, password, signed string) string {
	mac := hmac.New(sha256.New, s.deviceKey)
	fmt.Fprintf(mac, "%d %s %s", account, signed, password) // of which only the last could have a blank
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
