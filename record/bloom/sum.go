package bloom

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
)

// Sum is the 64-bit hash of a key. In one process, a key has the same sum in all filters. In another process, it has
// a different sum.
type Sum uint64

var secret = maphash.MakeSeed()

// Visitor returns the sum of a (target, visitor) pair. An IPv4 address and the same address mapped to IPv6 are one
// visitor.
func Visitor(target int64, visitor netip.Addr) Sum {
	var key [24]byte
	binary.LittleEndian.PutUint64(key[:8], uint64(target))
	address := visitor.As16()
	copy(key[8:], address[:])
	return Bytes(key[:])
}

// Bytes returns the sum of a key.
func Bytes(key []byte) Sum { return Sum(maphash.Bytes(secret, key)) }

// String returns the same sum as Bytes for the bytes of key.
func String(key string) Sum { return Sum(maphash.String(secret, key)) }
