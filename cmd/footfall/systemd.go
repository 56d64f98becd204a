package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// tellSystemd says, where a unit of Type=notify has started the program, that visits are counted at an
// address; that the service is alive, for as long as it answers there, where a watchdog asks; and,
// when ctx ends, that it stops. Whether it can count is not asked again: where the database is away
// another start would not help.
func tellSystemd(ctx context.Context, address string, log *slog.Logger) {
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
			log.Warn("systemd cannot be told how the service is", "state", state, "error", err)
		}
	}
	tell("READY=1")
	var ticks <-chan time.Time // none without a watchdog
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
