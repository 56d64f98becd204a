//go:build !linux && !freebsd

package embedded

import "syscall"

// stopWithParent does nothing, because this system cannot signal a child when its parent exits. The next start
// stops a server that was left behind.
func stopWithParent(*syscall.SysProcAttr) {}
