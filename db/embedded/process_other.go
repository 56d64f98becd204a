//go:build !linux && !freebsd

package embedded

import "syscall"

// stopWithParent does nothing where the kernel offers nothing: a server left behind is stopped by the next start.
func stopWithParent(*syscall.SysProcAttr) {}
