package record

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"footfall/db"
)

// faultsEvery is how often a fault of batches is logged at most. On a full disk every batch fails,
// and a log that told of each would fill what is left of it.
const faultsEvery = time.Second

// faultLog is the log of faults, which the lanes share.
type faultLog struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex // guards what follows
	spoken map[db.Fault]time.Time
	missed map[db.Fault]int
}

func newFaultLog(log *slog.Logger) *faultLog {
	return &faultLog{log: log, now: time.Now, spoken: map[db.Fault]time.Time{}, missed: map[db.Fault]int{}}
}

// tell logs that a batch did not commit at once, with how often the same was not logged before.
func (l *faultLog) tell(level slog.Level, fault db.Fault, err error, visits int) {
	l.mu.Lock()
	now := l.now()
	if now.Sub(l.spoken[fault]) < faultsEvery {
		l.missed[fault]++
		l.mu.Unlock()
		return
	}
	missed := l.missed[fault]
	l.spoken[fault], l.missed[fault] = now, 0
	l.mu.Unlock()
	l.log.Log(context.Background(), level, "a batch did not commit at once",
		"fault", fault.String(), "visits", visits, "error", err, "unlogged_before", missed)
}
