package intake

import (
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"footfall/visit"
)

// Limits of a request body: the number of visits or links, and the size in bytes.
const (
	MostItems = 10_000
	MostBytes = 8 << 20 // after decompression
)

// read returns the text of a received body, and decompresses it if necessary. If the call has an Idempotency-Key, sum is
// the SHA-256 of the text.
func (c *Call) read(b *body) (text string, sum [sha256.Size]byte, err error) {
	parts := net.Buffers(b.parts)
	from := io.Reader(&parts)
	if c.Gzip {
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return "", sum, c.unread(err)
		}
		from = unpacked
	}
	var whole strings.Builder
	if !c.Gzip {
		whole.Grow(int(b.size))
	}
	hashed := sha256.New()
	into := io.Writer(&whole)
	if c.Key != "" {
		into = io.MultiWriter(&whole, hashed)
	}
	n, err := io.Copy(into, io.LimitReader(from, MostBytes+1))
	if err != nil {
		return "", sum, c.unread(err)
	}
	if n > MostBytes {
		return "", sum, tooLarge()
	}
	hashed.Sum(sum[:0])
	return whole.String(), sum, nil
}

func tooLarge() error {
	return visit.Errorf(visit.TooLarge, "body", "it is larger than %d bytes: send it in several calls", MostBytes)
}

// unread converts err, with which reading the body has failed, to an error for the caller.
func (c *Call) unread(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return visit.Errorf(visit.Invalid, "body", "its gzip data cannot be decompressed: compress it again, or leave out Content-Encoding")
	}
	if c.Gzip && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return visit.Errorf(visit.Invalid, "body", "its gzip data is incomplete")
	}
	return visit.Errorf(visit.Invalid, "body", "it could not be read to its end").Because(err)
}
