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
	// pulseFresh is how long the last result of a write to the database is used. So readiness checks cause at most
	// one write in this time.
	pulseFresh = 5 * time.Second
	// probeWithin is the time limit of a probe. It is a little less than the timeout of `footfall health`.
	probeWithin = 2500 * time.Millisecond
)

// pulse reports whether batches can be written. It uses the result of the last batch or probe. If this result is too
// old, pulse first sends a new probe, which commits a batch without visits.
type pulse struct {
	probe func(ctx context.Context) error
	now   func() time.Time

	log     *slog.Logger
	faults  pause.Seldom[db.Fault] // limits the log messages, because every batch fails if, for example, the disk is full
	last    atomic.Pointer[writeResult]
	probing sync.Mutex // one probe at a time; other callers wait for its result
}

// writeResult is the result of the last batch or probe. err is nil if the database accepted the write.
type writeResult struct {
	at  time.Time
	err error
}

func newPulse(d *db.DB, log *slog.Logger) *pulse {
	return &pulse{probe: d.Probe, now: time.Now, log: log, faults: pause.Seldom[db.Fault]{Every: time.Second}}
}

// record records the result of a batch or a probe.
func (p *pulse) record(err error) { p.last.Store(&writeResult{p.now(), err}) }

// fresh returns the last result if it is still valid, else nil.
func (p *pulse) fresh() *writeResult {
	if last := p.last.Load(); last != nil && p.now().Sub(last.at) < pulseFresh {
		return last
	}
	return nil
}

// ready returns nil if a batch can be written, otherwise an error. If the caller's ctx ends, the probe continues,
// because later callers use its result.
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
		p.record(p.probe(ctx))
		last = p.last.Load()
	}
	return last.err
}
