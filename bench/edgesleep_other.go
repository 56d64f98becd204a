//go:build !linux

package bench

import "time"

// sleepUntil returns at a time, or up to a millisecond after it.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
