package record

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"footfall/db"
	"footfall/pause"
)

const (
	// pulseFresh is how long it is believed of the database that it takes writes, or does not. So
	// nobody who asks makes it write more often than that.
	pulseFresh = 5 * time.Second
	// probeWithin bounds a probe. It is a little less than `footfall health` waits for the answer.
	probeWithin = 2500 * time.Millisecond
)

// pulse knows whether batches can be written: from the last one that was, or from a probe where
// there was none of late.
type pulse struct {
	probe func(ctx context.Context) error
	now   func() time.Time

	log     *slog.Logger
	faults  pause.Seldom[db.Fault] // that the lanes log: on a full disk every batch fails
	last    atomic.Pointer[beat]
	probing sync.Mutex // one probe at a time; the others wait for what it finds
}

// beat is what was seen of the database at a moment: it took a batch, or refused it.
type beat struct {
	at  time.Time
	err error
}

func newPulse(d *db.DB, log *slog.Logger) *pulse {
	return &pulse{probe: d.Probe, now: time.Now, log: log, faults: pause.Seldom[db.Fault]{Every: time.Second}}
}

// saw notes what became of a batch.
func (p *pulse) saw(err error) { p.last.Store(&beat{p.now(), err}) }

// fresh returns what was seen of late; nil: nothing.
func (p *pulse) fresh() *beat {
	if last := p.last.Load(); last != nil && p.now().Sub(last.at) < pulseFresh {
		return last
	}
	return nil
}

// ready returns an error unless a batch can be written. It goes on without the caller, for those
// who ask next.
func (p *pulse) ready(ctx context.Context) error {
	if last := p.fresh(); last != nil {
		return last.err
	}
	p.probing.Lock()
	defer p.probing.Unlock()
	last := p.fresh()
	if last == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeWithin)
		defer cancel()
		p.saw(p.probe(ctx))
		last = p.last.Load()
	}
	return last.err
}
