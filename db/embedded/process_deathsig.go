//go:build linux || freebsd

package embedded

import "syscall"

// stopWithParent makes the kernel send the child SIGINT when its parent exits. PostgreSQL then does
// a fast, clean shutdown.
func stopWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
