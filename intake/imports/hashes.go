package imports

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"github.com/cespare/xxhash/v2"
)

// hashes makes the keyed hashes by which logs and their lines are known again. Whoever has the
// tables, but not the key, cannot try addresses against them. It is for one goroutine.
type hashes struct {
	key  []byte
	seed uint64
	line cipher.Block
	// Of an app whose hashes of visitors change each day, lines are hashed with the key of the day
	// that they show, as long as there is one. By day since 1970; nil: of other apps.
	days map[int32]cipher.Block

	hashed [aes.BlockSize]byte // last: one that is made for each line costs more than the hash
}

// own are the same for another goroutine.
func (h hashes) own() *hashes { return &h }

// newHashes makes them of the key of an app's logs and, of a daily app, of its keys of days.
func newHashes(key []byte, days map[int32][]byte) *hashes {
	h := &hashes{key: key, line: blockOf(key, "lines"), seed: binary.BigEndian.Uint64(keyedSum(key, "read"))}
	if days != nil {
		h.days = map[int32]cipher.Block{}
	}
	for day, half := range days {
		at := time.Date(int(day/10000), time.Month(day/100%100), int(day%100), 0, 0, 0, 0, time.UTC)
		h.days[int32(at.Unix()/86400)] = blockOf(key, "lines", string(half)) //nolint:gosec // some ten thousand
	}
	return h
}

func blockOf(key []byte, parts ...string) cipher.Block {
	block, _ := aes.NewCipher(keyedSum(key, parts...)) // the length is one of AES
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

// ofBytes is the hash of the bytes of a log, of which sum is the SHA-256.
func (h *hashes) ofBytes(sum []byte) []byte { return keyedSum(h.key, "log", string(sum)) }

// ofSum is the same of what was written to a SHA-256 so far, or to what quick has made.
func (h *hashes) ofSum(sum hash.Hash) []byte { return h.ofBytes(sum.Sum(nil)) }

// quick makes hashes of what was read of logs and is not counted yet. They are an eighth of the work, and
// tell apart what is there twice, but not for ever.
func (h *hashes) quick() hash.Hash { return xxhash.NewWithSeed(h.seed) }

// ofLine is the hash of a line that shows an hour; false: the key of its day is gone, or has never
// been.
func (h *hashes) ofLine(hour int32, text []byte) (uint64, bool) {
	return h.ofXX(hour, xxhash.Sum64(text))
}

// ofXX is ofLine for a line of which only the XXH64 is known.
func (h *hashes) ofXX(hour int32, sum uint64) (uint64, bool) {
	block := h.line
	if h.days != nil {
		if block = h.days[hour/24]; block == nil {
			return 0, false
		}
	}
	return h.encrypted(block, sum), true
}

// ofBeginning is the hash of the line that a log begins with, of whatever day.
func (h *hashes) ofBeginning(sum uint64) int64 { return int64(h.encrypted(h.line, sum)) } //nolint:gosec // the same bits

func (h *hashes) encrypted(block cipher.Block, sum uint64) uint64 {
	h.hashed = [aes.BlockSize]byte{}
	binary.BigEndian.PutUint64(h.hashed[:], sum)
	block.Encrypt(h.hashed[:], h.hashed[:])
	return binary.BigEndian.Uint64(h.hashed[:])
}
