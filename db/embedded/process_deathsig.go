//go:build linux || freebsd

package embedded

import "syscall"

// stopWithParent has the kernel send the child what asks PostgreSQL for a fast, clean stop.
func stopWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
