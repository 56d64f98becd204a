package counter

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"unicode/utf8"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// What tells an app's visitors apart.
const (
	byAddress = "address" // the address, as it is
	byID      = "id"      // what the caller calls them
	byHash    = "hashed"  // a keyed hash of the address
	byDay     = "daily"   // one whose key turns each day
)

var visitorModes = []string{byAddress, byID, byHash, byDay}

// Secret keys the hashes that stand for visitors. It is kept outside the database: who has the tables alone cannot try
// addresses against them. Empty: there is none.
type Secret []byte

// SecretBytes is how long a Secret is at least.
const SecretBytes = 32

// id tells a secret from others, and nothing else of it.
func (s Secret) id() []byte {
	if len(s) == 0 {
		return nil
	}
	return s.sum("id")[:8]
}

func (s Secret) sum(parts ...string) []byte {
	mac := hmac.New(sha256.New, s)
	for _, part := range parts {
		var length [4]byte                                       // so that no two lists of parts are one text
		binary.BigEndian.PutUint32(length[:], uint32(len(part))) //nolint:gosec // parts are short
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// hashes is where visitors that are hashes are stored. No public address lies there.
var hashes = netip.MustParsePrefix("fd00::/8")

// hashOf is the visitor in fd00::/8 that stands for something of an app: 120 bits of a keyed hash.
func (s Secret) hashOf(app int32, mode string, parts ...string) netip.Addr {
	sum := s.sum(append([]string{"visitor", fmt.Sprint(app), mode}, parts...)...)
	var address [16]byte
	address[0] = 0xfd
	copy(address[1:], sum)
	return netip.AddrFrom16(address)
}

const (
	noSecret = "visitors of app %s are hashed with a secret that this instance does not have: " +
		"start it with the --secret-file that the app was made with"
	longestID = 256 // bytes
)

// checkSecret tells whether a secret is the one that the visitors of an app are hashed with.
func checkSecret(row *db.App, secret Secret) error {
	if row.Visitor == byAddress || bytes.Equal(row.SecretID, secret.id()) {
		return nil
	}
	return fmt.Errorf(noSecret, row.Name)
}

// readID checks an id that a caller calls a visitor by.
func readID(id string) error {
	switch {
	case id == "":
		return visit.Errorf(visit.Invalid, "visitor", "it is missing: give the id by which you know the visitor")
	case len(id) > longestID:
		return visit.Errorf(visit.Invalid, "visitor", "it is longer than %d bytes: shorten it, or send a hash of it", longestID)
	case !utf8.ValidString(id):
		return visit.Errorf(visit.Invalid, "visitor", "it is not valid UTF-8")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return visit.Errorf(visit.Invalid, "visitor", "it has control characters: leave them out")
	}
	return nil
}

// visitorByID returns the visitor that an id stands for.
func (a *app) visitorByID(secret Secret, id string) (netip.Addr, error) {
	if err := readID(id); err != nil {
		return netip.Addr{}, err
	}
	return secret.hashOf(a.id, byID, id), nil
}

// visitorByAddress returns the visitor that an address stands for. Where hashes turn each day, dayKey is the key of the day.
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

// dayKeys are the halves of the keys of days that lie in the database. Any number of instances agree on them. They are remembered
// as long as the recorder remembers anything of the tables.
type dayKeys struct {
	db         *db.DB
	recorder   *record.Recorder
	mu         sync.Mutex
	keys       map[int32][]byte // guarded by mu, as what follows; a few days
	generation uint64           // of what the recorder remembers, which they rest on too
}

func newDayKeys(d *db.DB, r *record.Recorder) *dayKeys {
	return &dayKeys{db: d, recorder: r, keys: map[int32][]byte{}}
}

// of returns the key of a day, and makes it if nobody has.
func (k *dayKeys) of(ctx context.Context, day int32) ([]byte, error) {
	now := k.recorder.Generation()
	if key := k.remembered(now, day); key != nil {
		return key, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	key, err := k.read(ctx, day)
	if err != nil {
		return nil, visit.Errorf(visit.Unavailable, "", "the database does not answer; try again").Because(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation == now {
		k.keys[day] = key
	}
	return key, nil
}

func (k *dayKeys) remembered(now uint64, day int32) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation != now {
		k.generation = now
		clear(k.keys)
	}
	return k.keys[day]
}

func (k *dayKeys) read(ctx context.Context, day int32) ([]byte, error) {
	var key []byte
	get := func(q *db.Queries) (err error) { key, err = q.DayKeyGet(ctx, day); return err }
	err := k.db.Read(ctx, get)
	if !errors.Is(err, db.ErrNoRows) {
		return key, err
	}
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // never fails: it would end the process
	if err := k.db.KeepDayKey(ctx, day, fresh); err != nil {
		return nil, err
	}
	err = k.db.Read(ctx, get)
	return key, err // another instance's, if it was faster
}

// keep forgets the keys of the days before one, and makes those of some others beforehand, so that midnight finds them.
func (k *dayKeys) keep(ctx context.Context, from int32, days ...int32) error {
	if err := k.db.InTx(ctx, func(q *db.Queries) error { return q.DayKeysForget(ctx, from) }); err != nil {
		return fmt.Errorf("forget the keys of past days: %w", err)
	}
	k.mu.Lock()
	for day := range k.keys {
		if day < from {
			delete(k.keys, day)
		}
	}
	k.mu.Unlock()
	for _, day := range days {
		if _, err := k.of(ctx, day); err != nil {
			return fmt.Errorf("make the key of day %d: %w", day, err)
		}
	}
	return nil
}
