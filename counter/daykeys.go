package counter

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
)

// dayKeys reads, creates and caches the keys of days. Visitors of apps with the mode ByDay are hashed with the key of the
// day, and with the Secret, which is not in the database. All instances use the same keys, which are in the table day_keys.
// Instances cache keys until the recorder starts a new generation of its caches.
//
// The cache has separate entries for each app. So an app that was just moved here reads its keys from the table, where the
// move has put the app's own keys. A move does this only if no other app here uses keys of days.
type dayKeys struct {
	db         *db.DB
	recorder   *record.Recorder
	mu         sync.Mutex
	keys       map[appDay][]byte // guarded by mu, like generation; a few days for each app
	generation uint64            // the recorder's generation of caches in which keys were read
}

type appDay struct{ app, day int32 }

func newDayKeys(d *db.DB, r *record.Recorder) *dayKeys {
	return &dayKeys{db: d, recorder: r, keys: map[appDay][]byte{}}
}

// get returns the key of a day for an app. If the key is missing, get creates it or, if past is true, returns db.ErrNoRows.
func (k *dayKeys) get(ctx context.Context, app, day int32, past bool) ([]byte, error) {
	generation := k.recorder.Generation()
	if key := k.cachedKey(generation, appDay{app, day}); key != nil {
		return key, nil
	}
	ctx, cancel := k.db.InTime(ctx)
	defer cancel()
	key, err := k.read(ctx, day, past)
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation == generation && !past {
		k.keys[appDay{app, day}] = key
	}
	return key, nil
}

func (k *dayKeys) cachedKey(generation uint64, entry appDay) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation != generation {
		k.generation = generation
		clear(k.keys)
	}
	return k.keys[entry]
}

func (k *dayKeys) read(ctx context.Context, day int32, past bool) ([]byte, error) {
	var key []byte
	get := func(q *db.Queries) (err error) { key, err = q.DayKeyGet(ctx, day); return err }
	err := k.db.Read(ctx, get)
	if past || !errors.Is(err, db.ErrNoRows) {
		return key, err
	}
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // returns no error: if it failed, the runtime would stop the process
	if err := k.db.KeepDayKey(ctx, day, fresh); err != nil {
		return nil, err
	}
	err = k.db.Read(ctx, get)
	return key, err // the key of another instance if that one was stored first
}

// store deletes the keys of days before the day from, and creates the keys of the given days in advance, so that they exist
// at midnight.
func (k *dayKeys) store(ctx context.Context, from int32, days ...int32) error {
	if err := k.db.InTx(ctx, func(q *db.Queries) error { return q.DayKeysForget(ctx, from) }); err != nil {
		return fmt.Errorf("delete the keys of past days: %w", err)
	}
	k.mu.Lock()
	for entry := range k.keys {
		if entry.day < from {
			delete(k.keys, entry)
		}
	}
	k.mu.Unlock()
	for _, day := range days {
		if _, err := k.read(ctx, day, false); err != nil {
			return fmt.Errorf("create the key of day %d: %w", day, err)
		}
	}
	return nil
}
