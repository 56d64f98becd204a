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
	// mostReceived bounds the memory of all bodies as they come, packed or not, until they are
	// texts. With those texts, of MostBytes in each turn, that is 64 MB.
	mostReceived = 32 << 20
	// A body has bodyGrace to come, and a second more for each slowest bytes that have come.
	bodyGrace = 5 * time.Second
	slowest   = 16 << 10
	// bodyWithin is how long it may take in all, so that its call is answered before its connection
	// is closed.
	bodyWithin = 30 * time.Second
	// bodyQuick is how long a body is certain to keep its memory. One that takes longer gives way
	// where others need it.
	bodyQuick = time.Second
	// Bounds of the parts in which a body is read: what nobody sends takes no memory.
	leastPart = 4 << 10
	mostPart  = 256 << 10
)

// body is what has come of a body.
type body struct {
	parts [][]byte
	size  int64 // bytes that have come
	begun time.Time
	until func(time.Time) error

	takes    int64 // bytes of parts, with what is left in the last one
	received bool
	gaveWay  bool
}

// bodies bounds the memory of the bodies of a desk.
type bodies struct {
	mu    sync.Mutex    // guards what follows, and takes, received and gaveWay of each body
	free  int64         // bytes
	freed chan struct{} // closed, and made anew, when there is more
	all   []*body       // in the order in which they have begun
}

// receive reads a body to its end, as it is, and returns it; leave lets go of its memory.
func (b *bodies) receive(c *Call, wait time.Duration) (*body, error) {
	r := &body{begun: time.Now(), until: c.ReadUntil}
	if r.until == nil {
		r.until = func(time.Time) error { return nil }
	}
	b.mu.Lock()
	b.all = append(b.all, r)
	b.mu.Unlock()
	if err := b.fill(r, c, wait); err != nil {
		b.leave(r)
		return nil, err
	}
	return r, nil
}

// fill reads a body to its end, as quickly as it has to come.
func (b *bodies) fill(r *body, c *Call, wait time.Duration) error {
	var grace time.Duration // for waiting that is no fault of the sender's
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
		due := bodyGrace + grace + time.Duration(r.size)*time.Second/slowest
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

// tooSlow is what to tell of a body whose time has run out.
func (b *bodies) tooSlow(r *body) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.gaveWay {
		return tooMany()
	}
	return visit.Errorf(visit.TooSlow, "body", "it comes too slowly: send 16 KB a second or more, and all of it within 30 s")
}

// take waits until a body may have so many bytes of memory more.
func (b *bodies) take(r *body, size int64, wait time.Duration) error {
	end := time.Now().Add(wait)
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < size {
		now := time.Now()
		if r.gaveWay || !now.Before(end) {
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
	r.takes += size
	return nil
}

// makeRoom has other bodies give way that are not quick, those first that have begun first, until
// there will be room. It returns when to look again.
func (b *bodies) makeRoom(r *body, size int64, now time.Time) time.Duration {
	room := b.free
	for _, other := range b.all {
		if other.gaveWay {
			room += other.takes
		}
	}
	for _, other := range b.all {
		if room >= size {
			break
		}
		if other == r || other.received || other.gaveWay {
			continue
		}
		if quick := bodyQuick - now.Sub(other.begun); quick > 0 {
			return quick
		}
		other.gaveWay = true
		_ = other.until(now) // where that fails, there is no connection to read from
		room += other.takes
	}
	return bodyQuick
}

// readUntil sets when the next read of a body is to end, unless it has given way; the zero time: all
// of it has come.
func (b *bodies) readUntil(r *body, end time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.gaveWay {
		return tooMany()
	}
	r.received = end.IsZero()
	_ = r.until(end) // likewise
	return nil
}

// leave lets go of a body's memory.
func (b *bodies) leave(r *body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(other *body) bool { return other == r })
	if r.takes > 0 {
		b.free += r.takes
		r.takes, r.parts = 0, nil
		close(b.freed)
		b.freed = make(chan struct{})
	}
}

func tooMany() error {
	return visit.Errorf(visit.Unavailable, "", "too many calls of many visits are under way; try again")
}
