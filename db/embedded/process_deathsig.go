//go:build linux || freebsd

package embedded

import "syscall"

// stopWithParent makes the kernel send the child SIGINT when its parent ends, which asks PostgreSQL
// for a fast, clean stop.
func stopWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
