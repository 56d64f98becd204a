package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// notifySystemd tells systemd the following, if a unit of Type=notify has started the program:
//   - the service is ready
//   - the service still responds, if the unit has a watchdog
//   - the service is stopping, when ctx ends
//
// For the watchdog, it only checks that the service responds at address. It does not check that visits can be counted: if
// the database is unavailable, a restart of the service would not help.
func notifySystemd(ctx context.Context, address string, log *slog.Logger) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	tell := func(state string) {
		conn, err := net.Dial("unixgram", socket)
		if err == nil {
			_, err = conn.Write([]byte(state))
			_ = conn.Close()
		}
		if err != nil {
			log.Warn("systemd cannot be notified of the state of the service", "state", state, "error", err)
		}
	}
	tell("READY=1")
	var ticks <-chan time.Time // nil without a watchdog
	if micros, _ := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); micros > 0 {
		ticker := time.NewTicker(time.Duration(micros) * time.Microsecond / 4)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			tell("STOPPING=1")
			return
		case <-ticks:
		}
		if askService(ctx, address, "/livez") == nil {
			tell("WATCHDOG=1")
		}
	}
}
