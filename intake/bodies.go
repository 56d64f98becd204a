package intake

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"footfall/visit"
)

const (
	// mostReceived is the maximum total size, in bytes, of the request bodies that a Desk holds in memory before it
	// decompresses them. The decompressed texts need up to 32 MB in addition (callsAtOnce · MostBytes).
	mostReceived = 32 << 20
	// A body must arrive within bodyGrace, plus one second for each minBytesPerSecond bytes that have already arrived. A
	// slower body is refused.
	bodyGrace         = 5 * time.Second
	minBytesPerSecond = 16 << 10
	// bodyWithin is the maximum time for receiving a body. After it, the server still has time to respond before it closes
	// the connection.
	bodyWithin = 30 * time.Second
	// bodyQuick is the time during which a body may arrive without being aborted. After this time, a body that is still
	// arriving is aborted if another body needs its memory.
	bodyQuick = time.Second
	// A body is read into several buffers: when one is full, it gets the next one. leastPart and mostPart are the minimum
	// and maximum size of a buffer in bytes.
	leastPart = 4 << 10
	mostPart  = 256 << 10
)

// body is a request body that is arriving or has arrived.
type body struct {
	parts       [][]byte
	size        int64 // number of received bytes
	begun       time.Time
	setDeadline func(time.Time) error

	reserved int64 // capacity of all parts, in bytes
	received bool
	aborted  bool
}

// bodies limits the memory that a Desk uses for request bodies.
type bodies struct {
	mu    sync.Mutex    // guards the following fields, and the fields reserved, received and aborted of each body
	free  int64         // unused memory, in bytes
	freed chan struct{} // closed, and replaced by a new channel, when memory is freed
	all   []*body       // all bodies, the oldest first
}

// receive reads the body of c to its end, but does not decompress it. wait is the maximum time to wait for memory. The
// caller must pass the result to release, which frees the memory.
func (b *bodies) receive(c *Call, wait time.Duration) (*body, error) {
	r := &body{begun: time.Now(), setDeadline: c.ReadUntil}
	if r.setDeadline == nil {
		r.setDeadline = func(time.Time) error { return nil }
	}
	b.mu.Lock()
	b.all = append(b.all, r)
	b.mu.Unlock()
	if err := b.fill(r, c, wait); err != nil {
		b.release(r)
		return nil, err
	}
	return r, nil
}

// fill reads the body of c into r, and enforces the time limits.
func (b *bodies) fill(r *body, c *Call, wait time.Duration) error {
	var grace time.Duration // time that the body has waited for memory, added to its time limit
	for part := []byte(nil); ; {
		if len(part) == cap(part) {
			size := min(max(r.size, leastPart), mostPart)
			if left := c.Length - r.size; left > 0 {
				size = min(size, left)
			}
			begin := time.Now()
			if err := b.take(r, size, wait); err != nil {
				return err
			}
			grace += time.Since(begin)
			part = make([]byte, 0, size)
			r.parts = append(r.parts, part)
		}
		due := bodyGrace + grace + time.Duration(r.size)*time.Second/minBytesPerSecond
		if err := b.readUntil(r, r.begun.Add(min(due, bodyWithin))); err != nil {
			return err
		}
		n, err := c.Body.Read(part[len(part):cap(part)])
		part = part[:len(part)+n]
		r.parts[len(r.parts)-1] = part
		switch r.size += int64(n); {
		case r.size > MostBytes:
			return tooLarge()
		case errors.Is(err, io.EOF):
			return b.readUntil(r, time.Time{})
		case errors.Is(err, os.ErrDeadlineExceeded):
			return b.tooSlow(r)
		case err != nil:
			return c.unread(err)
		}
	}
}

// tooSlow returns the error for a body whose deadline has passed. If makeRoom has aborted the body, the error states that
// there are too many calls. Otherwise it states that the sender is too slow.
func (b *bodies) tooSlow(r *body) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.aborted {
		return tooMany()
	}
	return visit.Errorf(visit.TooSlow, "body", "it arrives too slowly: send at least 16 KB a second, and all of it within 30 s")
}

// take reserves size bytes of memory for a body. If too little memory is free, it waits, at most for the duration wait.
func (b *bodies) take(r *body, size int64, wait time.Duration) error {
	end := time.Now().Add(wait)
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < size {
		now := time.Now()
		if r.aborted || !now.Before(end) {
			return tooMany()
		}
		again, freed := b.makeRoom(r, size, now), b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-time.After(min(again, end.Sub(now))):
		}
		b.mu.Lock()
	}
	b.free -= size
	r.reserved += size
	return nil
}

// makeRoom makes memory available for r. It aborts other bodies that have been arriving for longer than bodyQuick, the
// oldest first, until size bytes are free or will be freed. It returns the time after which the caller should call makeRoom
// again.
func (b *bodies) makeRoom(r *body, size int64, now time.Time) time.Duration {
	room := b.free
	for _, other := range b.all {
		if other.aborted {
			room += other.reserved
		}
	}
	for _, other := range b.all {
		if room >= size {
			break
		}
		if other == r || other.received || other.aborted {
			continue
		}
		if quick := bodyQuick - now.Sub(other.begun); quick > 0 {
			return quick
		}
		other.aborted = true
		_ = other.setDeadline(now) // an error means that the connection is already closed
		room += other.reserved
	}
	return bodyQuick
}

// readUntil sets the deadline for the next read of a body, unless the body was aborted. With the zero time, it removes the
// deadline and marks the body as received.
func (b *bodies) readUntil(r *body, end time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.aborted {
		return tooMany()
	}
	r.received = end.IsZero()
	_ = r.setDeadline(end) // an error means that the connection is already closed
	return nil
}

// release frees a body's memory. It may be called more than once.
func (b *bodies) release(r *body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(other *body) bool { return other == r })
	if r.reserved > 0 {
		b.free += r.reserved
		r.reserved, r.parts = 0, nil
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

func tooMany() error {
	return visit.Errorf(visit.Unavailable, "", "too many calls with many visits are in progress; try again")
}
