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

// clientHeaders are the headers in which proxies usually send the client's address.
var clientHeaders = []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip"}

// isUnlisted reports whether a visit most likely arrived through a proxy that is missing in --trust-proxy, or that does not send
// the header in --proxy-header. Then all visitors behind this proxy count as one visitor. There are two cases:
//   - The peer is on this machine or in a private network, is not trusted, and sends one of clientHeaders.
//   - The peer is trusted, and sends one of clientHeaders, but not the header in --proxy-header.
//
// The headers of an untrusted peer on the internet prove nothing, because any client can send them.
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
	return err == nil && peer == client // peer and client differ if a trusted proxy has sent the client's address
}

const warnEvery = time.Minute

// unlistedProxy warns the operator about proxies that are missing in --trust-proxy or do not send the header in --proxy-header.
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
			Help: "Requests that most likely arrived through a proxy that is not trusted, because one of their headers contains a " +
				"client's address: all clients of such a proxy count as one visitor.",
		}),
	}
}

// warn counts the request, and logs a warning at most once per warnEvery. The warning contains no address, because Footfall logs
// no addresses of clients.
func (o *unlistedProxy) warn() {
	o.requests.Inc()
	if more, speak := o.speak.Next(struct{}{}, time.Now()); speak {
		o.log.Warn("a proxy that is not trusted sends the addresses of its clients in a header, so all of its clients count as one "+
			"visitor: set --trust-proxy to the address or network of the proxy, like 127.0.0.0/8 for a proxy on this machine, "+
			"and --proxy-header to the name of this header unless it is "+defaultProxyHeader, "unlogged_before", more)
	}
}
