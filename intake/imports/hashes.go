package imports

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"footfall/counter"
	"footfall/db"
	"footfall/visit"
)

// hashes computes the hashes of lines with a secret key. Without the key, nobody can find out from stored hashes which
// addresses a log contained, or write a line that has the same hash as another one. hashes is not safe for concurrent use.
type hashes struct {
	key     []byte
	dayKeys map[int32][]byte // the key of each day; nil: the app's hashes do not change every day
	seed    uint64
	line    cipher.Block
	days    map[int32]cipher.Block // by day; used instead of line if the app's hashes change every day; otherwise nil
	digest  xxhash.Digest
	block   [aes.BlockSize]byte // reused, because allocating memory takes longer than hashing
}

// newHashes returns hashes with an app's keys. key is the key of the app's logs. days contains the key of each day, or is
// nil if the app's hashes do not change every day.
func newHashes(key []byte, days map[int32][]byte) *hashes {
	h := &hashes{key: key, dayKeys: days, line: blockOf(key, "counted lines"), seed: binary.BigEndian.Uint64(keyedSum(key, "seed of lines"))}
	if days != nil {
		h.days = map[int32]cipher.Block{}
	}
	for day, half := range days {
		h.days[day] = blockOf(key, "counted lines", string(half))
	}
	return h
}

func blockOf(key []byte, parts ...string) cipher.Block {
	block, _ := aes.NewCipher(keyedSum(key, parts...)) // no error, because the key has a valid length
	return block
}

func keyedSum(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) //nolint:gosec // parts are short
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// hashLine returns the hash of a line. If the line contains no host, site is the value of --site. Otherwise site is "".
// hashLine returns false if it needs the key of the line's day, but does not have it.
func (h *hashes) hashLine(day int32, text []byte, site string) (uint64, bool) {
	block := h.line
	if h.days != nil {
		if block = h.days[day]; block == nil {
			return 0, false
		}
	}
	h.digest.ResetWithSeed(h.seed)
	_, _ = h.digest.Write(text)
	if site != "" {
		_, _ = h.digest.WriteString("\n" + site)
	}
	h.block = [aes.BlockSize]byte{}
	binary.BigEndian.PutUint64(h.block[:], h.digest.Sum64())
	block.Encrypt(h.block[:], h.block[:])
	return binary.BigEndian.Uint64(h.block[:]), true
}

// loadHashes loads an app's keys and returns hashes with these keys. If the app has no key for its logs yet, loadHashes
// creates and stores one.
func loadHashes(ctx context.Context, g *counter.Counting) (*hashes, error) {
	key, daily, err := g.LogKey(ctx)
	if err != nil {
		return nil, err
	}
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // never returns an error
	var days map[int32][]byte
	err = g.DB().InTx(ctx, func(q *db.Queries) (err error) {
		if key == nil {
			key, err = New(q.Tx()).LogKeyMake(ctx, g.App().ID, fresh)
		}
		if err != nil || !daily {
			return err
		}
		rows, err := New(q.Tx()).LogDayKeys(ctx)
		days = map[int32][]byte{}
		for _, row := range rows {
			days[row.DayID] = row.Key
		}
		return err
	})
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	return newHashes(key, days), nil
}
