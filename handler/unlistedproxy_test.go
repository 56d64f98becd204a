package handler

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnlistedProxies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		peer          string
		header        string
		trust, proxys string // --trust-proxy and --proxy-header
		unlisted      bool
	}{
		{"on this machine", "127.0.0.1:4711", "X-Forwarded-For: 203.0.113.7", "", "", true},
		{"on this machine, over IPv6", "[::1]:4711", "X-Forwarded-For: 203.0.113.7", "", "", true},
		{"beside it", "172.18.0.2:4711", "X-Real-Ip: 203.0.113.7", "", "", true},
		{"mapped into IPv6", "[::ffff:10.0.0.1]:4711", "Forwarded: for=203.0.113.7", "", "", true},
		{"in a unique local network", "[fd00::1]:4711", "Cf-Connecting-Ip: 203.0.113.7", "", "", true},
		{"link-local", "[fe80::1%eth0]:4711", "True-Client-Ip: 203.0.113.7", "", "", true},
		{"another one is trusted", "172.18.0.2:4711", "X-Forwarded-For: 203.0.113.7", "10.0.0.0/8", "", true},
		{"trusted about another header", "10.0.0.1:4711", "X-Forwarded-For: 203.0.113.7", "10.0.0.0/8", "X-Real-IP", true},
		{"a trusted one further away, about another header", "198.51.100.1:4711", "X-Real-Ip: 203.0.113.7", "198.51.100.0/24", "", true},
		{"trusted", "10.0.0.1:4711", "X-Forwarded-For: 203.0.113.7", "10.0.0.0/8", "", false},
		{"trusted, and the client is a neighbour", "10.0.0.1:4711", "X-Forwarded-For: 192.168.1.7", "10.0.0.0/8", "", false},
		{"the trusted one itself asks", "10.0.0.1:4711", "X-Forwarded-For: 10.0.0.1", "10.0.0.0/8", "", false},
		{"a stranger who forges a header", "198.51.100.1:4711", "X-Forwarded-For: 203.0.113.7", "", "", false},
		{"a neighbour who names nobody", "10.0.0.1:4711", "X-Forwarded-Proto: https", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := forwardedCase{trust: c.trust, header: c.proxys}.proxies(t)
			r := forwardedCase{peer: c.peer, lines: []string{c.header}}.request()
			client, err := p.client(r)
			require.NoError(t, err)
			assert.Equal(t, c.unlisted, p.isUnlisted(r, client))
		})
	}
	assert.False(t, (*Proxies)(nil).isUnlisted(&http.Request{}, netip.Addr{}), "the client of a request that is refused")
}

// A proxy that nobody trusts is told of once a minute, and each of its requests is counted.
func TestUnlistedProxyIsWarnedOf(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for range 3 {
		assert.Equal(t, http.StatusOK, e.get("/visit?app=shop&uri=http://example.com/").status)
	}
	e.get("/visit?app=demo&uri=http://example.com/&ip=203.0.113.9") // of this visitor the caller vouches
	assert.Equal(t, 1, strings.Count(e.log.String(), "is not believed"), e.log)
	assert.NotContains(t, e.log.String(), "203.0.113", "no address is logged")
	assert.Contains(t, e.do(http.MethodGet, e.admin+"/metrics", "", "").body, "\nfootfall_overlooked_proxy_requests_total 3\n")
}
