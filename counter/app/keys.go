package app

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"footfall/db"
)

// Scope is a permission of a key.
type Scope string

// The scopes of keys.
const (
	ScopeCount  Scope = "count"  // count visits
	ScopeAssert Scope = "assert" // count visits of any visitor
	ScopeRead   Scope = "read"   // read reports, and visitors' ranks
	ScopeAdmin  Scope = "admin"  // change the app, or all apps
)

// Scopes lists all scopes.
var Scopes = []Scope{ScopeCount, ScopeAssert, ScopeRead, ScopeAdmin}

// A key consists of keyPrefix, random letters, "_" and 256 random bits. The prefix and the letters are the key's name, which is
// not secret.
const (
	keyPrefix     = "footfall_"
	keyNameRandom = 8  // characters
	keyRandom     = 32 // bytes
)

// keyLetters can be read aloud without confusion: no 0 and o, no 1 and l.
const keyLetters = "23456789abcdefghijkmnpqrstuvwxyz"

// newToken generates the secret token of a key or a link, and its name.
func newToken(prefix string) (name, token string) {
	var random [keyNameRandom + keyRandom]byte
	_, _ = rand.Read(random[:]) // returns no error: if it failed, the runtime would stop the process
	name = prefix
	for _, b := range random[:keyNameRandom] {
		name += string(keyLetters[int(b)%len(keyLetters)])
	}
	return name, name + "_" + base64.RawURLEncoding.EncodeToString(random[keyNameRandom:])
}

// NewKey generates a key and its name.
func NewKey() (name, key string) { return newToken(keyPrefix) }

// NewLink generates the token of a link and its name.
func NewLink() (name, token string) { return newToken("") }

// HashOf returns the hash of a key or of a link's token. Only the hash is stored.
func HashOf(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// Key is a key that is not revoked.
type Key struct {
	ID     int32
	App    int32
	scopes []Scope
}

// Opens reports whether the key has a scope. The scope assert includes count.
func (k *Key) Opens(scope Scope) bool {
	return slices.Contains(k.scopes, scope) || scope == ScopeCount && slices.Contains(k.scopes, ScopeAssert)
}

func newKeys(rows []db.KeysOpenRow) map[[sha256.Size]byte]*Key {
	keys := make(map[[sha256.Size]byte]*Key, len(rows))
	for _, row := range rows {
		k := &Key{ID: row.ID, App: row.AppID}
		for _, scope := range row.Scopes {
			k.scopes = append(k.scopes, Scope(scope))
		}
		keys[[sha256.Size]byte(row.Hash)] = k
	}
	return keys
}

// KeyName returns the name of a key, and any other text unchanged. Users revoke a key by its name, but may have only the
// key itself.
func KeyName(key string) string {
	if length := len(keyPrefix) + keyNameRandom; len(key) > length && strings.HasPrefix(key, keyPrefix) {
		return key[:length]
	}
	return key
}

// Share is a share link that is not revoked.
type Share struct {
	App     *App
	Site    string // "": the whole app
	LastDay int32
}

// newShares returns the shares of existing apps, by the hash of the link's token.
func newShares(rows []db.SharesOpenRow, apps map[string]*App) map[[sha256.Size]byte]Share {
	byNumber := make(map[int32]*App, len(apps))
	for _, a := range apps {
		byNumber[a.ID] = a
	}
	shares := make(map[[sha256.Size]byte]Share, len(rows))
	for _, row := range rows {
		if a := byNumber[row.AppID]; a != nil {
			s := Share{App: a, LastDay: row.LastDay}
			if row.Site != nil {
				s.Site = *row.Site
			}
			shares[[sha256.Size]byte(row.Hash)] = s
		}
	}
	return shares
}

// Share returns the share link with this token, unless the link is revoked or does not exist.
func (r *Register) Share(token string) (s Share, found bool) {
	s, found = r.shares[HashOf(token)]
	return s, found
}
