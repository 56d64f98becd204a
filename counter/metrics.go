package counter

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of a counter. No label bears an address or a URI.
type metrics struct {
	skipped *prometheus.CounterVec // by reason
	limited prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	make := promauto.With(r) // registers nowhere where r is nil
	return &metrics{
		skipped: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_visits_skipped_total",
			Help: "Visits that were not counted on purpose, by reason: prefetch, ignored, do-not-track, bot.",
		}, []string{"reason"}),
		limited: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_limited_total",
			Help: "Requests refused with 429: too many in a minute from one address.",
		}),
	}
}
