package bloom

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
)

// Sum represents a key. A key has the same sum in all filters of a process, and a different sum in
// another process.
type Sum uint64

// secret is the seed of every sum of this process.
var secret = maphash.MakeSeed()

// Visitor returns the key of a visitor of a target. An IPv4 address and its IPv4-mapped IPv6
// address are the same visitor.
func Visitor(target int64, visitor netip.Addr) Sum {
	var key [24]byte
	binary.LittleEndian.PutUint64(key[:8], uint64(target))
	address := visitor.As16()
	copy(key[8:], address[:])
	return Bytes(key[:])
}

// Bytes returns the key of a byte string.
func Bytes(key []byte) Sum { return Sum(maphash.Bytes(secret, key)) }

// String returns the key of a string, which is the same as the key of its bytes.
func String(key string) Sum { return Sum(maphash.String(secret, key)) }
