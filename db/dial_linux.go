package db

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout returns a Control function for net.Dialer. It makes TCP close a connection if sent data is not
// acknowledged within the duration `after`.
func userTimeout(after time.Duration) func(network, address string, conn syscall.RawConn) error {
	return func(network, _ string, conn syscall.RawConn) (err error) {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		failed := conn.Control(func(socket uintptr) {
			err = unix.SetsockoptInt(int(socket), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
				int(after.Milliseconds())) //nolint:gosec // a file descriptor
		})
		if failed != nil {
			return failed
		}
		return err
	}
}
