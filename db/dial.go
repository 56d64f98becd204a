package db

import (
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

const defaultDeadAfter = 10 * time.Second

// aliveProbes is how many keepalives without an answer end a connection where the system has no
// TCP_USER_TIMEOUT. Where it has, that alone decides.
const aliveProbes = 3

// keepAlive makes both ends of the connections of cfg give one up when the other end has been
// silent for that long: the server, since a client that has vanished may hold locks; the client,
// since somebody waits for its answer. Keepalives alone would not do: none is sent while data waits
// to be acknowledged, and TCP sends such data again for a quarter of an hour. TCP_USER_TIMEOUT
// bounds that. On a Unix socket, which cannot lose its other end, none of this has an effect.
func keepAlive(cfg *pgx.ConnConfig, settings map[string]string, deadAfter time.Duration) {
	idle := max(deadAfter/2, time.Second) // TCP counts in seconds
	interval := max((deadAfter-idle)/aliveProbes, time.Second)
	settings["tcp_keepalives_idle"] = fmt.Sprint(int(idle.Seconds()))
	settings["tcp_keepalives_interval"] = fmt.Sprint(int(interval.Seconds()))
	settings["tcp_keepalives_count"] = fmt.Sprint(aliveProbes)
	settings["tcp_user_timeout"] = milliseconds(deadAfter)
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: aliveProbes},
		Control:         userTimeout(deadAfter),
	}
	cfg.DialFunc = dialer.DialContext
}
