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

// dayKeys are the keys that change hashes each day. They lie in the database, so that all instances
// agree on them; the Secret, which hashes need as well, does not. An instance remembers them for as
// long as its recorder remembers anything of the tables, and for each app by itself: one that is moved
// here brings those by which it has counted, in place of what no app has used.
type dayKeys struct {
	db         *db.DB
	recorder   *record.Recorder
	mu         sync.Mutex
	keys       map[appDay][]byte // guarded by mu, as what follows; a few days of each app
	generation uint64            // of what the recorder remembers, which they rest on too
}

type appDay struct{ app, day int32 }

func newDayKeys(d *db.DB, r *record.Recorder) *dayKeys {
	return &dayKeys{db: d, recorder: r, keys: map[appDay][]byte{}}
}

// of returns the key of a day for an app that was read before, and makes it if there is none; not for
// a day that is past, where the error is db.ErrNoRows.
func (k *dayKeys) of(ctx context.Context, app, day int32, past bool) ([]byte, error) {
	generation := k.recorder.Generation()
	if key := k.remembered(generation, appDay{app, day}); key != nil {
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

func (k *dayKeys) remembered(generation uint64, of appDay) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation != generation {
		k.generation = generation
		clear(k.keys)
	}
	return k.keys[of]
}

func (k *dayKeys) read(ctx context.Context, day int32, past bool) ([]byte, error) {
	var key []byte
	get := func(q *db.Queries) (err error) { key, err = q.DayKeyGet(ctx, day); return err }
	err := k.db.Read(ctx, get)
	if past || !errors.Is(err, db.ErrNoRows) {
		return key, err
	}
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // never fails: it would end the process
	if err := k.db.KeepDayKey(ctx, day, fresh); err != nil {
		return nil, err
	}
	err = k.db.Read(ctx, get)
	return key, err // that of another instance, if it was faster
}

// keep deletes the keys of the days before from, and makes those of other days ahead of time, so
// that they are there at midnight.
func (k *dayKeys) keep(ctx context.Context, from int32, days ...int32) error {
	if err := k.db.InTx(ctx, func(q *db.Queries) error { return q.DayKeysForget(ctx, from) }); err != nil {
		return fmt.Errorf("delete the keys of past days: %w", err)
	}
	k.mu.Lock()
	for of := range k.keys {
		if of.day < from {
			delete(k.keys, of)
		}
	}
	k.mu.Unlock()
	for _, day := range days {
		if _, err := k.read(ctx, day, false); err != nil {
			return fmt.Errorf("make the key of day %d: %w", day, err)
		}
	}
	return nil
}
