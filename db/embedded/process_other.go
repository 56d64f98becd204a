//go:build !linux && !freebsd

package embedded

import "syscall"

// stopWithParent does nothing, because this system has no such signal. The next start stops a
// server that was left behind.
func stopWithParent(*syscall.SysProcAttr) {}
