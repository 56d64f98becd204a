package handler

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the HTTP metrics of a listener. The labels are routes and status codes, and never contain input from a caller.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	make := promauto.With(r)
	return &metrics{
		requests: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_http_requests_total", Help: "Requests by route and status code; other: requests that match no route.",
		}, []string{"route", "code"}),
		seconds: make.NewHistogramVec(prometheus.HistogramOpts{
			Name: "footfall_http_request_duration_seconds", Help: "Time from a request's header to its response, by route.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"route"}),
	}
}

func (m *metrics) forRoute(route string) *routeMetrics {
	return &routeMetrics{
		requests: m.requests.MustCurryWith(prometheus.Labels{"route": route}),
		seconds:  m.seconds.WithLabelValues(route),
	}
}

type routeMetrics struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Observer
	byCode   [600]atomic.Pointer[prometheus.Counter] // counters by status code, cached so that a request needs no lookup
}

func (m *routeMetrics) observe(status int, begin time.Time) {
	if status < 100 || status >= len(m.byCode) {
		return
	}
	m.seconds.Observe(time.Since(begin).Seconds())
	counter := m.byCode[status].Load()
	if counter == nil {
		found := m.requests.WithLabelValues(strconv.Itoa(status))
		counter = &found
		m.byCode[status].Store(counter)
	}
	(*counter).Inc()
}
