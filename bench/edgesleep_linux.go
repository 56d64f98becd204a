package bench

import (
	"syscall"
	"time"
)

// sleepUntil returns at a time, to a tenth of a millisecond: Go's own timers may be a whole one late while nothing else happens, and
// are on time while much does, which would favour the crowded over the quiet.
func sleepUntil(at time.Time) {
	for {
		left := time.Until(at)
		if left <= 0 {
			return
		}
		pause := syscall.NsecToTimespec(left.Nanoseconds())
		_ = syscall.Nanosleep(&pause, nil) // returns early at a signal: look again
	}
}
