package counter

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Scope is what a key allows.
type Scope string

// The scopes of keys.
const (
	ScopeCount  Scope = "count"  // count visits
	ScopeAssert Scope = "assert" // count visits, and assert their visitors
	ScopeRead   Scope = "read"   // read reports, and ask for the ranks of visitors
)

var scopes = []Scope{ScopeCount, ScopeAssert, ScopeRead}

// A key is keyPrefix, some random letters, a "_" and 256 random bits. What stands before that "_"
// is the key's name, which need not be kept secret.
const (
	keyPrefix     = "footfall_"
	keyNameRandom = 8  // characters
	keyRandom     = 32 // bytes
)

// keyLetters make names that can be read aloud: neither 0 nor o, neither 1 nor l.
const keyLetters = "23456789abcdefghijkmnpqrstuvwxyz"

// newToken makes a key, or what is secret of a link, and its name.
func newToken(prefix string) (name, token string) {
	var random [keyNameRandom + keyRandom]byte
	_, _ = rand.Read(random[:]) // never fails: it would end the process
	name = prefix
	for _, b := range random[:keyNameRandom] {
		name += string(keyLetters[int(b)%len(keyLetters)])
	}
	return name, name + "_" + base64.RawURLEncoding.EncodeToString(random[keyNameRandom:])
}

func hashKey(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

// openKey is a key that is not revoked.
type openKey struct {
	id     int32
	app    int32
	scopes []Scope
}

// opens reports whether the key has a scope; the scope assert includes count.
func (k *openKey) opens(scope Scope) bool {
	return slices.Contains(k.scopes, scope) || scope == ScopeCount && slices.Contains(k.scopes, ScopeAssert)
}

func newOpenKeys(rows []db.KeysOpenRow) map[[sha256.Size]byte]*openKey {
	keys := make(map[[sha256.Size]byte]*openKey, len(rows))
	for _, row := range rows {
		k := &openKey{id: row.ID, app: row.AppID}
		for _, scope := range row.Scopes {
			k.scopes = append(k.scopes, Scope(scope))
		}
		keys[[sha256.Size]byte(row.Hash)] = k
	}
	return keys
}

// keyUses gathers which keys have been used, until they are written into the database. It is safe
// for concurrent use.
type keyUses struct {
	used  sync.Map // id → *atomic.Bool
	dirty atomic.Bool
}

func (u *keyUses) note(id int32) {
	mark, ok := u.used.Load(id)
	if !ok {
		mark, _ = u.used.LoadOrStore(id, new(atomic.Bool))
	}
	if used := mark.(*atomic.Bool); !used.Load() {
		used.Store(true)
		u.dirty.Store(true)
	}
}

// write writes into the database which keys were used since the last time.
func (u *keyUses) write(ctx context.Context, d *db.DB) error {
	if !u.dirty.Swap(false) {
		return nil
	}
	var ids []int32
	u.used.Range(func(id, mark any) bool {
		if mark.(*atomic.Bool).Swap(false) {
			ids = append(ids, id.(int32))
		}
		return true
	})
	if err := d.InTx(ctx, func(q *db.Queries) error { return q.KeysUsed(ctx, ids) }); err != nil {
		for _, id := range ids {
			u.note(id) // next time
		}
		return fmt.Errorf("write the use of keys: %w", err)
	}
	return nil
}

// Key is what is known of a key of an app. The key itself is known to its holder alone.
type Key struct {
	Name    string
	Scopes  []string
	Made    time.Time
	Used    *time.Time // nil: never
	Revoked *time.Time // nil: it is valid
}

// AddKey makes a key of an app with some scopes and returns it. The key cannot be read again: only
// its hash is stored.
func (a *Admin) AddKey(ctx context.Context, app string, with []Scope) (key string, err error) {
	if len(with) == 0 {
		return "", visit.Errorf(visit.Invalid, "scope", "it is missing: name what the key allows: %s", scopeNames())
	}
	var names []string
	for _, scope := range with {
		if !slices.Contains(scopes, scope) {
			return "", visit.Errorf(visit.Invalid, "scope", "%.64q is not a scope: write %s", scope, scopeNames())
		}
		if !slices.Contains(names, string(scope)) {
			names = append(names, string(scope))
		}
	}
	name, key := newToken(keyPrefix)
	hash := hashKey(key)
	err = a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
		return q.KeyAdd(ctx, db.KeyAddParams{AppID: row.ID, Name: name, Hash: hash[:], Scopes: names})
	})
	if err != nil {
		return "", wrap("add a key of app "+app, err)
	}
	return key, a.db.WaitForInstances(ctx, instancesWithin) // the key is valid even with ErrInstancesBehind
}

func scopeNames() string {
	var names []string
	for _, scope := range scopes {
		names = append(names, string(scope))
	}
	return strings.Join(names, ", ")
}

// Keys lists an app's keys, revoked ones included.
func (a *Admin) Keys(ctx context.Context, app string) (keys []Key, err error) {
	var rows []db.KeysListRow
	err = a.db.Read(ctx, func(q *db.Queries) error {
		row, err := appOf(ctx, q, app)
		if err == nil {
			rows, err = q.KeysList(ctx, row.ID)
		}
		return err
	})
	for _, k := range rows {
		keys = append(keys, Key{Name: k.Name, Scopes: k.Scopes, Made: k.CreatedAt, Used: k.UsedAt, Revoked: k.RevokedAt})
	}
	return keys, wrap("list the keys of app "+app, err)
}

// RevokeKey makes a key invalid. It is named by its name, or by all of it.
func (a *Admin) RevokeKey(ctx context.Context, app, name string) error {
	err := a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
		revoked, err := q.KeyRevoke(ctx, db.KeyRevokeParams{AppID: row.ID, Name: keyName(name)})
		if err == nil && revoked == 0 {
			return visit.Errorf(visit.NotFound, "key", "app %s has no key %.64q that is not revoked: `footfall app key list` names them", app, keyName(name))
		}
		return err
	})
	if err != nil {
		return wrap("revoke a key of app "+app, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}

// keyName returns the name of a key: somebody who must revoke a key may have nothing but the key
// itself.
func keyName(key string) string {
	if length := len(keyPrefix) + keyNameRandom; len(key) > length && strings.HasPrefix(key, keyPrefix) {
		return key[:length]
	}
	return key
}
