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

// dayKeys are the keys for apps whose hashes of visitors change every day. The table day_keys stores them, so that all
// instances use the same keys. The hashes also need the Secret, which is not in the database. An instance caches keys until
// the recorder discards its own caches and starts a new generation of them. The cache has separate entries for each app, so
// that an app that was just moved here reads its keys from the table. A move replaces the stored keys by the app's own
// keys, but only if no other app here uses day keys.
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
	_, _ = rand.Read(fresh) // never fails: the runtime would stop the process
	if err := k.db.KeepDayKey(ctx, day, fresh); err != nil {
		return nil, err
	}
	err = k.db.Read(ctx, get)
	return key, err // if another instance was faster, this is its key
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
