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

// clientHeaders are those in which proxies usually name the client.
var clientHeaders = []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip"}

// isUnlisted reports whether a request, which counts as a visit of client, most likely came through a
// proxy that should be believed and is not: its peer, this machine or a neighbour, is not trusted
// and names somebody else; or it is trusted, but about another header. Then everybody behind the
// proxy is one visitor. A stranger from further away may write what they like.
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
	return err == nil && peer == client // and not whom a trusted proxy has named
}

const warnEvery = time.Minute

// unlistedProxy warns the operator of proxies that should be trusted.
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
			Help: "Requests that name their client and most likely came through a proxy that is not trusted: everybody behind it counts as " +
				"one visitor.",
		}),
	}
}

// warn names no address, as nothing in the log does.
func (o *unlistedProxy) warn() {
	o.requests.Inc()
	if more, speak := o.speak.Next(struct{}{}, time.Now()); speak {
		o.log.Warn("a proxy names the clients of this service and is not believed, so everybody behind it counts as one visitor: "+
			"name its address or network with --trust-proxy, like 127.0.0.0/8 for one on this machine, "+
			"and its header with --proxy-header unless that is "+defaultProxyHeader, "unlogged_before", more)
	}
}
