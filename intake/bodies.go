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
	// mostReceived limits the total memory of the bodies that a Desk is receiving, compressed or not. The decompressed
	// texts (MostBytes for each of callsAtOnce calls) take another 32 MB.
	mostReceived = 32 << 20
	// bodyGrace and slowest limit the time of a body: bodyGrace, plus one second for every slowest bytes that have arrived.
	bodyGrace         = 5 * time.Second
	minBytesPerSecond = 16 << 10
	// bodyWithin is the longest time for receiving a body. It is so short that the server can still respond before it closes
	// the connection.
	bodyWithin = 30 * time.Second
	// bodyQuick is the time for which a body may keep its memory in any case. After bodyQuick, a body that is still arriving is
	// aborted if other bodies need its memory.
	bodyQuick = time.Second
	// leastPart and mostPart limit the size of the buffers into which a body is read. The next buffer is allocated only
	// when the last one is full.
	leastPart = 4 << 10
	mostPart  = 256 << 10
)

// body is a request body that is being received, or has been received.
type body struct {
	parts       [][]byte
	size        int64 // received bytes
	begun       time.Time
	setDeadline func(time.Time) error

	reserved int64 // bytes of all parts, including the unused rest of the last part
	received bool
	aborted  bool
}

// bodies limits the memory of the request bodies of a Desk.
type bodies struct {
	mu    sync.Mutex    // guards the following fields, and takes, received and aborted of each body
	free  int64         // bytes
	freed chan struct{} // closed and replaced whenever memory is freed
	all   []*body       // the oldest body first
}

// receive reads the body of c to its end without decompressing it. The caller must pass the result to leave, which frees
// the memory.
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

// fill reads a body to its end, and enforces the time limits.
func (b *bodies) fill(r *body, c *Call, wait time.Duration) error {
	var grace time.Duration // time spent waiting for memory, which is not the sender's fault
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

// tooSlow returns the error for a body whose read deadline has passed. Either the sender was too slow, or makeRoom has
// aborted the body.
func (b *bodies) tooSlow(r *body) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.aborted {
		return tooMany()
	}
	return visit.Errorf(visit.TooSlow, "body", "it arrives too slowly: send at least 16 KB a second, and all of it within 30 s")
}

// take reserves size bytes of memory for a body. If too little memory is free, take waits for at most the duration wait.
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

// makeRoom aborts bodies that are older than bodyQuick, the oldest first, until size bytes will be free. It returns how
// long the caller should wait before it checks again.
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
		_ = other.setDeadline(now) // an error means that the connection is already gone
		room += other.reserved
	}
	return bodyQuick
}

// readUntil sets the deadline of the next read, unless the body was aborted. The zero time marks the body as received.
func (b *bodies) readUntil(r *body, end time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.aborted {
		return tooMany()
	}
	r.received = end.IsZero()
	_ = r.setDeadline(end) // an error means that the connection is already gone
	return nil
}

// release frees a body's memory.
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
