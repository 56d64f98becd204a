package visit

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of a counter. No label bears an address or a URI.
type metrics struct {
	visits  *prometheus.CounterVec // by outcome
	faults  *prometheus.CounterVec // of batches, by what was met
	sizes   prometheus.Histogram
	flushes prometheus.Histogram
	waiting prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	if r == nil {
		r = prometheus.NewRegistry() // read by nobody
	}
	make := promauto.With(r)
	return &metrics{
		visits: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_visits_total",
			Help: "Visits by what became of them: counted, refused (not counted), lost (counted or not, its numbers unknown).",
		}, []string{"outcome"}),
		faults: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_batch_faults_total",
			Help: "Batches that did not commit at once, by what they met.",
		}, []string{"fault"}),
		sizes: make.NewHistogram(prometheus.HistogramOpts{
			Name: "footfall_batch_visits", Help: "Visits in a batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}),
		flushes: make.NewHistogram(prometheus.HistogramOpts{
			Name: "footfall_batch_seconds", Help: "Time from taking a batch up to its answers.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
		waiting: make.NewGauge(prometheus.GaugeOpts{
			Name: "footfall_visits_waiting", Help: "Visits accepted and not yet answered.",
		}),
	}
}
