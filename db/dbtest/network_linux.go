package dbtest

import (
	"net"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

// Vanish drops every packet of the open connections, including acknowledgements and the packets that close a
// connection. Neither end is notified. Later connections are not affected.
func (n *Network) Vanish() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for conn := range n.conns {
		n.conns[conn] = true
		dropAll(n, conn)
	}
}

// VanishUnderBatch calls Vanish when the next batch has sent the statement that takes its locks, and then closes
// the returned channel.
func (n *Network) VanishUnderBatch() <-chan struct{} {
	vanished := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onLocks = func() { n.Vanish(); close(vanished) }
	return vanished
}

// dropAll makes the kernel drop each packet that arrives at a connection, before TCP sees it.
func dropAll(n *Network, conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return // a Unix socket cannot lose its other end
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return // the connection has been closed
	}
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	_ = raw.Control(func(socket uintptr) {
		// First the other end must acknowledge all data. Otherwise TCP would send the data again, and the other end would
		// notice.
		for begin := time.Now(); time.Since(begin) < time.Second; {
			if pending, err := unix.IoctlGetInt(int(socket), unix.TIOCOUTQ); err != nil || pending == 0 {
				break
			}
		}
		err = unix.SetsockoptSockFprog(int(socket), syscall.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &program[0]})
	})
	assert.NoError(n.t, err)
}
