package handler

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"footfall/pause"
)

// clientHeaders are the headers in which proxies usually name the client.
var clientHeaders = []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip"}

// isUnlisted reports whether a visit counted for client most likely came through a proxy that should be trusted. There are two
// cases: a peer on this machine or a private network is not trusted, but sends one of clientHeaders; or a trusted peer sends
// another header than the configured one. In both cases, all visitors behind the proxy count as one. Other peers may send any
// header.
func (p *Proxies) isUnlisted(r *http.Request, client netip.Addr) bool {
	if p.trusts(client) {
		if r.Header[p.header] != nil {
			return false
		}
	} else if !client.IsLoopback() && !client.IsPrivate() && !client.IsLinkLocalUnicast() {
		return false
	}
	if !slices.ContainsFunc(clientHeaders, func(name string) bool { return r.Header[name] != nil }) {
		return false
	}
	peer, err := peerOf(r)
	return err == nil && peer == client // false if a trusted proxy has named the client
}

const warnEvery = time.Minute

// unlistedProxy warns the operator about proxies that should be trusted.
type unlistedProxy struct {
	log      *slog.Logger
	speak    pause.Seldom[struct{}]
	requests prometheus.Counter
}

func newUnlistedProxy(log *slog.Logger, r prometheus.Registerer) *unlistedProxy {
	return &unlistedProxy{
		log: log, speak: pause.Seldom[struct{}]{Every: warnEvery},
		requests: promauto.With(r).NewCounter(prometheus.CounterOpts{
			Name: "footfall_overlooked_proxy_requests_total",
			Help: "Requests that most likely came through a proxy that is not trusted, since they name a client: all clients " +
				"of the proxy count as one visitor.",
		}),
	}
}

// warn logs no address, like all of the log.
func (o *unlistedProxy) warn() {
	o.requests.Inc()
	if more, speak := o.speak.Next(struct{}{}, time.Now()); speak {
		o.log.Warn("a proxy that is not trusted names the clients of this service, so all of its clients count as one visitor: "+
			"name its address or network with --trust-proxy, like 127.0.0.0/8 for one on this machine, "+
			"and its header with --proxy-header unless that is "+defaultProxyHeader, "unlogged_before", more)
	}
}
