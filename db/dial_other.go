//go:build !linux

package db

import (
	"syscall"
	"time"
)

// userTimeout returns nil: this system has no TCP_USER_TIMEOUT, only keepalives.
func userTimeout(time.Duration) func(network, address string, conn syscall.RawConn) error { return nil }
